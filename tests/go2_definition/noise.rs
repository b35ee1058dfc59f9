//! Noise on observations: `flashsac` alone has it, on joint positions and velocities alone.

use crate::{BASE, FLASHSAC, assert_fills, builder, observed, step};

const TERMS: [&str; 8] =
    ["base_ang_vel", "projected_gravity", "joint_pos", "joint_vel", "actions", "command", "gait_phase", "base_lin_vel"];

fn terms(group: &str) -> &'static [&'static str] {
    if group == "policy" { &TERMS[..7] } else { &TERMS }
}

#[test]
fn joint_observations_of_flashsac_are_noisy() {
    const ROWS: usize = 16;
    let mut noisy = builder(FLASHSAC, ROWS).build().unwrap();
    let mut clean = builder(FLASHSAC, ROWS).corruption(false).build().unwrap();
    noisy.reset().unwrap();
    clean.reset().unwrap();
    let mut differences: [[Vec<f64>; 2]; 2] = Default::default();
    for number in 0..4 {
        if number > 0 {
            step(&mut noisy, 0.2);
            step(&mut clean, 0.2);
        }
        for row in 0..ROWS {
            for (g, group) in ["policy", "critic"].into_iter().enumerate() {
                for &term in terms(group) {
                    let (a, b) = (observed(&noisy, group, term, row), observed(&clean, group, term, row));
                    match ["joint_pos", "joint_vel"].iter().position(|noisy| *noisy == term) {
                        None => assert_eq!(a, b, "{group}/{term} of row {row}"),
                        Some(t) => differences[g][t].extend(a.iter().zip(b).map(|(a, b)| a - b)),
                    }
                }
            }
        }
    }
    for (t, limit) in [0.01, 0.1].into_iter().enumerate() {
        let [policy, critic] = [0, 1].map(|g| &differences[g][t]);
        let count = policy.len() as f64;
        for values in [policy, critic] {
            assert_fills("noise", values.iter().copied(), -limit, limit);
            // The standard error of the mean of `count` uniform numbers is limit / sqrt(3 count).
            let mean = values.iter().sum::<f64>() / count;
            assert!(mean.abs() < 4.0 * limit / (3.0 * count).sqrt(), "mean {mean}");
            // Rows, steps and columns are drawn anew.
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            sorted.dedup();
            assert!(sorted.len() as f64 > 0.9 * count, "{} different values of {count}", sorted.len());
        }
        let product: f64 = policy.iter().zip(critic).map(|(a, b)| a * b).sum();
        let correlation = product / count / (limit * limit / 3.0);
        assert!(correlation.abs() < 4.0 / count.sqrt(), "the groups' noise has correlation {correlation}");
    }
}

#[test]
fn base_has_no_noise() {
    let mut with = builder(BASE, 4).build().unwrap();
    let mut without = builder(BASE, 4).corruption(false).build().unwrap();
    with.reset().unwrap();
    without.reset().unwrap();
    for _ in 0..3 {
        for group in 0..2 {
            assert_eq!(with.observation(group), without.observation(group));
        }
        // And both groups see the same.
        for row in 0..4 {
            for &term in terms("policy") {
                assert_eq!(observed(&with, "policy", term, row), observed(&with, "critic", term, row));
            }
        }
        step(&mut with, 0.2);
        step(&mut without, 0.2);
    }
}
