//! Which action moves which motor, and how far.

use crate::{HOME, JOINTS, PRESETS, assert_close, plain};

/// Control index of each joint's actuator.
const CONTROLS: [usize; JOINTS] = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8];

#[test]
fn joints_and_actuators_have_their_names_and_places() {
    let names = |legs: [&str; 4], suffix: &str| -> Vec<String> {
        let parts = |leg: &&str| ["hip", "thigh", "calf"].map(|part| format!("{leg}_{part}{suffix}"));
        legs.iter().flat_map(parts).collect()
    };
    for preset in PRESETS {
        let env = plain(preset, 1);
        let spec = env.spec();
        assert_eq!(spec.joints, names(["FL", "FR", "RL", "RR"], "_joint"));
        assert_eq!(spec.actuators, names(["FR", "FL", "RR", "RL"], ""));
        assert_eq!(spec.joint_actuators, CONTROLS.map(Some));
        for (joint, control) in CONTROLS.into_iter().enumerate() {
            assert_eq!(spec.joints[joint], format!("{}_joint", spec.actuators[control]));
        }
        assert_eq!(spec.actions.len(), 1);
        assert_eq!((spec.actions[0].name.as_str(), spec.actions[0].columns.clone()), ("joint_pos", 0..JOINTS));
        assert_eq!((env.control_period(), env.substeps()), (0.02, 2));
    }
}

/// Row `i` moves joint `i` alone; the last row moves none.
#[test]
fn each_action_moves_its_own_motor() {
    for preset in PRESETS {
        let mut env = plain(preset, JOINTS + 1);
        // Far beyond the joint ranges too: nothing is clipped.
        for size in [1.0f32, -0.5, 40.0] {
            let mut actions = vec![0.0; (JOINTS + 1) * JOINTS];
            (0..JOINTS).for_each(|joint| actions[joint * JOINTS + joint] = size);
            env.step(&actions).unwrap();
            for (row, controls) in env.controls().chunks_exact(JOINTS).enumerate() {
                for (joint, home) in HOME.into_iter().enumerate() {
                    let moved = if row == joint { f64::from(size) * preset.action_scale } else { 0.0 };
                    let what = format!("{}: control of joint {joint} in row {row}", preset.name);
                    assert_close(&what, controls[CONTROLS[joint]], home + moved, 1e-6);
                }
            }
        }
    }
}
