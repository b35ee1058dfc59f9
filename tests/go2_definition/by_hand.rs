//! States whose rewards, observations and terminations can be worked out with pencil and paper.

use std::f64::consts::{FRAC_PI_3, SQRT_2};

use crate::{HOME, PRESETS, Placed, assert_close, observed, place, plain, rewarded, step};

/// What two physics steps of 10 ms do to a velocity: -9.81 m/s² × 20 ms.
const FALL_VELOCITY: f64 = -0.1962;
/// And to a position, the new velocity being used in each: -9.81 m/s² × (10 ms)² × (1 + 2).
const FALL: f64 = -0.002943;

/// Height of a foot's centre relative to the root's, for an upright root and a hip angle of 0.
///
/// Thigh and calf are 0.213 m long; the foot's centre lies 2 mm behind the calf's axis.
fn foot_height(thigh: f64, calf: f64) -> f64 {
    let below = thigh + calf;
    -0.213 * thigh.cos() - 0.213 * below.cos() + 0.002 * below.sin()
}

/// A robot that falls freely in its default pose neither turns nor moves its joints.
#[test]
fn free_fall_has_the_rewards_and_observations_of_its_formulas() {
    let yaw = 0.7f64;
    let mut flying = Placed::at_height(1.0).turned([0.0, 0.0, 1.0], yaw);
    flying.qvel[..3].copy_from_slice(&[0.5, -0.2, 0.3]);
    flying.command = [0.4, -0.1, 0.6];
    let mut still = Placed::at_height(0.8);
    still.qvel[2] = -FALL_VELOCITY;
    for preset in PRESETS {
        let mut env = plain(preset, 2);
        place(&mut env, &[flying.clone(), still.clone()]);
        step(&mut env, 0.0);

        // The world's velocity (0.5, -0.2) in a frame turned by 0.7 rad.
        let forward = 0.5 * yaw.cos() - 0.2 * yaw.sin();
        let left = -0.5 * yaw.sin() - 0.2 * yaw.cos();
        let error = (0.4 - forward).powi(2) + (-0.1 - left).powi(2);
        let check = |term: &str, row: usize, value: f64| {
            assert_close(
                &format!("{}: {term} of row {row}", preset.name),
                rewarded(&env, term, row),
                preset.weight(term) * value,
                1e-6,
            );
        };
        check("tracking_lin_vel", 0, (-error / preset.tracking_variance).exp());
        check("tracking_ang_vel", 0, (-0.36 / preset.tracking_variance).exp());
        check("lin_vel_z", 0, (0.3 + FALL_VELOCITY).powi(2));
        check("base_height", 0, (1.0 + 0.3 * 0.02 + FALL - 0.3).powi(2));
        check("tracking_lin_vel", 1, 1.0);
        check("tracking_ang_vel", 1, 1.0);
        check("lin_vel_z", 1, 0.0);
        for term in ["ang_vel_xy", "action_rate", "similar_to_default"] {
            check(term, 0, 0.0);
            check(term, 1, 0.0);
        }

        for group in ["policy", "critic"] {
            let check = |term: &str, expected: &[f64]| {
                let actual = observed(&env, group, term, 0);
                assert_eq!(actual.len(), expected.len());
                for (actual, expected) in actual.iter().zip(expected) {
                    assert_close(&format!("{group}/{term}"), *actual, *expected, 1e-6);
                }
            };
            check("base_ang_vel", &[0.0; 3]);
            check("projected_gravity", &[0.0, 0.0, -1.0]);
            check("joint_pos", &[0.0; 12]);
            check("joint_vel", &[0.0; 12]);
            check("actions", &[0.0; 12]);
            check("command", &[0.4, -0.1, 0.6]);
            check("gait_phase", &[0.04, 0.54, 0.54, 0.04]);
        }
        let sensed = observed(&env, "critic", "base_lin_vel", 0);
        for (actual, expected) in sensed.iter().zip([forward, left, 0.3 + FALL_VELOCITY]) {
            assert_close("base_lin_vel", *actual, expected, 1e-6);
        }
    }
}

#[test]
fn groups_hold_their_terms_in_order() {
    let terms = [
        ("base_ang_vel", 0..3),
        ("projected_gravity", 3..6),
        ("joint_pos", 6..18),
        ("joint_vel", 18..30),
        ("actions", 30..42),
        ("command", 42..45),
        ("gait_phase", 45..49),
        ("base_lin_vel", 49..52),
    ];
    for preset in PRESETS {
        let env = plain(preset, 1);
        let groups = &env.spec().groups;
        assert_eq!(groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["policy", "critic"]);
        for (group, count, width) in [(&groups[0], 7, 49), (&groups[1], 8, 52)] {
            assert_eq!(group.width, width);
            let found: Vec<_> = group.terms.iter().map(|term| (term.name.as_str(), term.columns.clone())).collect();
            assert_eq!(found, terms[..count]);
        }
        assert_eq!(
            env.spec().termination_terms,
            [("time_out".to_owned(), true), ("bad_orientation".to_owned(), false)]
        );
    }
}

/// The term is minus the upward axis in the *world*: under a heading it differs from gravity in the body frame, which for
/// a pitch of 0.5 rad would be (sin 0.5, 0, -cos 0.5) whatever the heading.
#[test]
fn projected_gravity_is_minus_the_world_axis() {
    let (pitch, yaw) = (0.5f64, 1.1f64);
    let placed = Placed::at_height(1.0).turned([0.0, 1.0, 0.0], pitch).turned([0.0, 0.0, 1.0], yaw);
    for preset in PRESETS {
        let mut env = plain(preset, 1);
        place(&mut env, std::slice::from_ref(&placed));
        let expected = [-pitch.sin() * yaw.cos(), -pitch.sin() * yaw.sin(), -pitch.cos()];
        for after in ["placing", "a step"] {
            for (actual, expected) in observed(&env, "policy", "projected_gravity", 0).iter().zip(expected) {
                assert_close(&format!("projected_gravity after {after}"), *actual, expected, 1e-6);
            }
            step(&mut env, 0.0);
        }
    }
}

/// At `home` the feet are in the floor, by 34.6 mm in front and 25.0 mm behind.
#[test]
fn contact_rewards_the_feet_that_agree_with_the_gait() {
    assert_close("front", 0.3 + foot_height(0.8, -1.5) - 0.022, -0.0346, 5e-5);
    assert_close("rear", 0.3 + foot_height(1.0, -1.5) - 0.022, -0.0250, 5e-5);
    // Height of the root, phase before the step, and how many of the feet agree after it.
    let cases = [
        (0.3, 0.0, 4.0),  // .04 .54 .54 .04: all on the ground, and should be
        (0.3, 0.26, 2.0), // .30 .80 .80 .30: one diagonal should be in the air
        (0.3, 0.5, 4.0),  // .54 .04 .04 .54
        (0.3, 0.6, 2.0),  // .64 .14 .14 .64: the other diagonal
        (1.0, 0.0, 0.0),  // all in the air, and should not be
        (1.0, 0.26, 2.0),
        (1.0, 0.6, 2.0),
    ];
    for preset in PRESETS {
        let mut env = plain(preset, cases.len());
        let rows: Vec<Placed> =
            cases.iter().map(|&(height, phase, _)| Placed { phase, ..Placed::at_height(height) }).collect();
        place(&mut env, &rows);
        step(&mut env, 0.0);
        for (row, (_, _, agreeing)) in cases.into_iter().enumerate() {
            let expected = preset.weight("contact") * agreeing / 4.0;
            assert_close(&format!("contact of row {row}"), rewarded(&env, "contact", row), expected, 1e-6);
        }
    }
}

#[test]
fn swing_rewards_the_height_of_the_feet_in_swing() {
    let bell = |height: f64| (-(height - 0.1).powi(2) / 0.01).exp();
    // Feet FR and RL swing, then FL and RR, then none; the legs of a pair are bent differently.
    let cases = [(0.26, [1, 2]), (0.6, [0, 3]), (0.0, [0, 0])];
    for preset in PRESETS {
        let mut env = plain(preset, cases.len());
        let rows: Vec<Placed> = cases.iter().map(|&(phase, _)| Placed { phase, ..Placed::at_height(0.42) }).collect();
        place(&mut env, &rows);
        step(&mut env, 0.0);
        for (row, (phase, feet)) in cases.into_iter().enumerate() {
            let height = |foot: usize| 0.42 + FALL + foot_height(HOME[3 * foot + 1], HOME[3 * foot + 2]);
            let value = if phase == 0.0 { 0.0 } else { feet.map(|foot| bell(height(foot))).iter().sum::<f64>() / 4.0 };
            let expected = preset.weight("swing_feet_z") * value;
            assert_close(&format!("swing of row {row}"), rewarded(&env, "swing_feet_z", row), expected, 1e-6);
        }
    }
}

/// Terms of quantities that the caller can read, and the sum of all.
#[test]
fn other_rewards_follow_from_what_the_caller_sees() {
    for preset in PRESETS {
        let mut env = plain(preset, 3);
        let mut placed = Placed::at_height(1.5);
        placed.qvel[3..]
            .copy_from_slice(&[0.9, -1.4, 0.4, 2.0, -1.0, 3.0, 0.5, 1.5, -2.0, 1.0, 0.3, -0.8, -2.5, 1.2, 0.6]);
        place(&mut env, &[placed.clone(), placed.clone(), placed]);
        let mut before = [0.0f32; 36];
        for k in 0..3 {
            let actions: [f32; 36] = std::array::from_fn(|i| (i as f32 * 0.7 + k as f32 * 1.9).sin());
            env.step(&actions).unwrap();
            for row in 0..3 {
                let (qpos, qvel) = (env.qpos()[row * 19..][..19].to_vec(), env.qvel()[row * 18..][..18].to_vec());
                let check = |term: &str, value: f64| {
                    assert_close(term, rewarded(&env, term, row), preset.weight(term) * value, 1e-5);
                };
                check("ang_vel_xy", qvel[3].powi(2) + qvel[4].powi(2));
                check("base_height", (qpos[2] - 0.3).powi(2));
                check("similar_to_default", qpos[7..].iter().zip(HOME).map(|(q, home)| (q - home).abs()).sum());
                let own = row * 12..(row + 1) * 12;
                let pairs = actions[own.clone()].iter().zip(&before[own]);
                check("action_rate", pairs.map(|(now, before)| f64::from(now - before).powi(2)).sum());
                let sum: f64 = preset.weights.iter().map(|(term, _)| rewarded(&env, term, row)).sum();
                assert_close("reward", f64::from(env.rewards()[row]), 0.02 * sum, 1e-6);
            }
            before = actions;
        }

        // The action of the last episode is not part of the next one's.
        env.reset().unwrap();
        assert_eq!(observed(&env, "policy", "actions", 1), [0.0; 12]);
        step(&mut env, 0.5);
        assert_eq!(observed(&env, "policy", "actions", 1), [0.5; 12]);
        assert_close("action_rate", rewarded(&env, "action_rate", 1), preset.weight("action_rate") * 3.0, 1e-6);
    }
}

#[test]
fn a_tilt_of_more_than_60_degrees_ends_the_episode() {
    let axes =
        [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [1.0 / SQRT_2, 1.0 / SQRT_2, 0.0]];
    let degree = 1f64.to_radians();
    // Nothing turns a robot that falls freely at rest.
    let tilted =
        |axis: [f64; 3], angle: f64, yaw: f64| Placed::at_height(2.0).turned([0.0, 0.0, 1.0], yaw).turned(axis, angle);
    let below = axes.map(|axis| tilted(axis, FRAC_PI_3 - 0.01 * degree, 0.4));
    let above = axes.map(|axis| tilted(axis, FRAC_PI_3 + 0.01 * degree, 0.4));
    let mut rows = [below, above].concat();
    rows.push(tilted([1.0, 0.0, 0.0], 180.0 * degree, 0.0));
    rows.push(tilted([1.0, 0.0, 0.0], 0.0, 180.0 * degree));
    for preset in PRESETS {
        let mut env = plain(preset, rows.len());
        place(&mut env, &rows);
        step(&mut env, 0.0);
        let expected = [vec![false; 5], vec![true; 5], vec![true, false]].concat();
        assert_eq!(env.terminated(), expected);
        assert!(!env.truncated().contains(&true) && !env.diverged().contains(&true));
        for (row, &over) in expected.iter().enumerate() {
            // The second of the two terms.
            assert_eq!(env.termination_terms()[row], if over { 0b10 } else { 0 }, "row {row}");
        }
    }
}
