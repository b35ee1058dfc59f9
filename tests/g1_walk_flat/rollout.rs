//! Steps on end: noise, terminations in flight, time-outs, and independence from threads and rows.

use manege::Environment;
use manege::environment::InitialState;

use super::{JOINTS, NV, PRESETS, builder, observed, scatter, standing};

fn actions(env: &Environment, step: usize) -> Vec<f32> {
    // The same for a row whatever the number of rows.
    (0..env.rows() * JOINTS).map(|i| (0.5 * scatter(5000 * step + i)) as f32).collect()
}

#[test]
fn the_policy_is_corrupted_and_the_critic_is_not() {
    for preset in PRESETS {
        let [mut noisy, mut clean] = [true, false].map(|corruption| {
            let mut env = builder(preset, 8).seed(2).corruption(corruption).build().unwrap();
            env.reset().unwrap();
            env
        });
        let (mut positions, mut velocities) = (Vec::new(), Vec::new());
        for step in 0..20 {
            let actions = actions(&noisy, step);
            noisy.step(&actions).unwrap();
            clean.step(&actions).unwrap();
            assert_eq!(noisy.observation(1), clean.observation(1));
            for row in 0..8 {
                for term in ["base_ang_vel", "projected_gravity", "actions", "command", "gait_phase"] {
                    let [noisy, clean] = [&noisy, &clean].map(|env| observed(env, "policy", term, row));
                    assert_eq!(noisy, clean, "{term}");
                }
                for (term, noise) in [("joint_pos", &mut positions), ("joint_vel", &mut velocities)] {
                    let [seen, without] = [&noisy, &clean].map(|env| observed(env, "policy", term, row));
                    noise.extend(seen.iter().zip(without).map(|(seen, without)| f64::from(seen - without)));
                    // The critic sees what the policy would see without noise.
                    assert_eq!(without, observed(&noisy, "critic", term, row));
                }
            }
        }
        // 0.01 rad; 0.1 rad/s before the scale of 0.05.
        for (noise, limit) in [(positions, 0.01), (velocities, 0.005)] {
            let greatest = noise.iter().fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
            assert!(greatest <= limit + 1e-5 && greatest > 0.99 * limit, "{greatest} of {limit}");
            let count = noise.len() as f64;
            let variance = noise.iter().map(|value| value * value).sum::<f64>() / count;
            assert!((variance / (limit * limit / 3.0) - 1.0).abs() < 0.1, "{variance}");
        }
    }
}

#[test]
fn robots_in_free_fall_end_at_65_degrees() {
    // In the air at rest, with every joint at its target, nothing turns.
    let mut env = builder("sac", 4).build().unwrap();
    env.reset().unwrap();
    let rows = [0.0, 64.99, 65.01, -65.01f64].map(|degrees| (3.0, degrees.to_radians()));
    let initial =
        InitialState { qpos: Some(standing(&rows)), qvel: Some(vec![0.0; 4 * NV]), ..InitialState::default() };
    env.set_initial(&initial).unwrap();
    env.step(&[0.0; 4 * JOINTS]).unwrap();
    assert_eq!(env.terminated(), [false, false, true, true]);
    assert_eq!(env.truncated(), [false; 4]);
    assert_eq!(env.termination_terms(), [0, 0, 0b010, 0b010]);
    assert_eq!(env.log().get("Episode_Termination/tilt"), Some(2.0));
}

#[test]
fn episodes_are_cut_off_after_1000_steps() {
    let changes = "terminations.tilt.enabled = false\nterminations.base_height.enabled = false";
    let mut env = builder("sac", 1).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    for step in 1..=1000 {
        env.step(&[0.0; JOINTS]).unwrap();
        assert_eq!(env.truncated(), [step == 1000], "step {step}");
    }
    assert_eq!(env.terminated(), [false]);
}

/// Every bit of what a row gives in some steps.
fn run(rows: usize, threads: usize) -> Vec<Vec<u64>> {
    let mut env = builder("flashsac", rows).seed(4).threads(threads).build().unwrap();
    env.reset().unwrap();
    let mut bits = vec![Vec::new(); rows];
    let mut ended = 0;
    for step in 0..60 {
        env.step(&actions(&env, step)).unwrap();
        let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
        for (row, bits) in bits.iter_mut().enumerate() {
            let part = |values: &[f32]| {
                let width = values.len() / rows;
                values[row * width..][..width].iter().map(|value| u64::from(value.to_bits())).collect::<Vec<_>>()
            };
            for values in [env.observation(0), env.observation(1), env.rewards(), env.reward_terms()] {
                bits.extend(part(values));
            }
            bits.push(env.termination_terms()[row]);
            for values in [&qpos, &qvel] {
                let width = values.len() / rows;
                bits.extend(values[row * width..][..width].iter().map(|value| value.to_bits()));
            }
            ended += usize::from(env.terminated()[row]);
        }
    }
    assert!(ended >= rows / 2, "only {ended} episodes ended");
    bits
}

#[test]
fn results_do_not_depend_on_threads_or_other_rows() {
    let one = run(6, 1);
    assert_eq!(one, run(6, 2));
    // The curriculum is common to all rows; it stays at its least factor here.
    assert_eq!(one[..3], run(3, 1));
}
