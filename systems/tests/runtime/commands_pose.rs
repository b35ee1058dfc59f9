//! Pose commands against closed formulas.

use std::f64::consts::PI;

use glam::{DQuat, DVec3};
use manege_components::Command;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::command::{CommandOptions, UniformPoseCommand};

use crate::env::{Env, options};
use crate::terms::config_without_accidents;

/// Where the left arm is fixed to the trunk, m, in the trunk's frame.
const LEFT: [f64; 3] = [0.05, 0.13, 0.0];

fn fixed() -> UniformPoseCommand {
    UniformPoseCommand {
        body: "left".to_owned(),
        pos_x: [0.4, 0.4],
        pos_y: [-0.1, -0.1],
        pos_z: [0.2, 0.2],
        roll: [0.0; 2],
        pitch: [0.0; 2],
        yaw: [0.0; 2],
    }
}

fn with(pose: UniformPoseCommand) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    config.commands.insert("pose".into(), Entry::new(CommandOptions::every(0.1), pose));
    config
}

/// The 7 values of the pose, after the 3 of the velocity command.
fn pose(env: &Env, row: usize) -> [f64; 7] {
    let values = &env.get::<Command>(row).values;
    assert_eq!(values.len(), 10);
    [3, 4, 5, 6, 7, 8, 9].map(|i| f64::from(values[i]))
}

#[test]
fn poses_fill_their_ranges_and_their_quaternions_are_unit() {
    let wide = UniformPoseCommand {
        pos_x: [0.1, 0.5],
        pos_y: [-0.4, 0.4],
        pos_z: [-0.2, -0.1],
        roll: [-PI, PI],
        pitch: [-PI, PI],
        yaw: [-PI, PI],
        ..fixed()
    };
    let env = Env::started(&with(wide), options(500));
    let poses: Vec<[f64; 7]> = (0..500).map(|row| pose(&env, row)).collect();
    for (axis, (low, high)) in [(0.1, 0.5), (-0.4, 0.4), (-0.2, -0.1)].into_iter().enumerate() {
        let values = || poses.iter().map(|pose| pose[axis]);
        let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        let margin = 0.03 * (high - low);
        assert!(least >= low - 1e-7 && least < low + margin, "axis {axis} from {least}");
        assert!(most <= high + 1e-7 && most > high - margin, "axis {axis} up to {most}");
    }
    for pose in &poses {
        let length = pose[3..].iter().map(|q| q * q).sum::<f64>().sqrt();
        assert!((length - 1.0).abs() < 1e-6 && pose[3] >= 0.0, "{pose:?}");
    }
    // Every component of the vector part is spread over both signs.
    assert!((4..7).all(|i| poses.iter().any(|p| p[i] > 0.5) && poses.iter().any(|p| p[i] < -0.5)));
}

#[test]
fn the_orientation_is_yaw_after_pitch_after_roll() {
    let (r, p, y) = (0.3f64, -0.7f64, 2.9f64);
    let turned = UniformPoseCommand { roll: [r, r], pitch: [p, p], yaw: [y, y], ..fixed() };
    let env = Env::started(&with(turned), options(1));
    let (sr, cr) = (r / 2.0).sin_cos();
    let (sp, cp) = (p / 2.0).sin_cos();
    let (sy, cy) = (y / 2.0).sin_cos();
    let expected = [
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    ];
    let sign = expected[0].signum();
    for (value, expected) in pose(&env, 0)[3..].iter().zip(expected) {
        assert!((value - sign * expected).abs() < 1e-7, "{value}, not {expected}");
    }
}

/// Root and target turn and move together, so seen from the root the target is at rest: the arm's frame is at
/// [`LEFT`], turned about y by its joint.
#[test]
fn errors_are_those_of_the_body_against_the_pose_in_the_roots_frame() {
    let pitch = 0.8;
    let mut env = Env::started(&with(UniformPoseCommand { pitch: [pitch, pitch], ..fixed() }), options(20));
    let distance = DVec3::new(0.4, -0.1, 0.2).distance(DVec3::from(LEFT));
    let mut farthest = 0.0f64;
    for step in 0..30 {
        env.step();
        for row in 0..20 {
            let [position, orientation] = env.get::<Command>(row).metrics[2..] else { panic!("two metrics") };
            assert!((f64::from(position) - distance).abs() < 1e-6, "row {row}, step {step}: {position} m");
            let expected = (pitch - env.qpos(row)[7]).abs();
            assert!((f64::from(orientation) - expected).abs() < 1e-6, "row {row}, step {step}: {orientation} rad");
            let root = &env.qpos(row)[3..7];
            farthest = farthest.max(root[0].abs().acos());
        }
    }
    assert!(farthest > 0.02, "roots have turned, by {farthest} rad at most");
}

/// The trunk's own pose in the world is in `qpos`, as MuJoCo has it.
#[test]
fn the_target_in_the_world_follows_from_the_roots_pose() {
    let trunk = UniformPoseCommand { body: "trunk".to_owned(), roll: [0.5, 0.5], ..fixed() };
    let mut env = Env::started(&with(trunk), options(3));
    for _ in 0..5 {
        env.step();
    }
    for row in 0..3 {
        let (qpos, pose) = (env.qpos(row), pose(&env, row));
        let root = DQuat::from_xyzw(qpos[4], qpos[5], qpos[6], qpos[3]);
        let target = DVec3::from_slice(qpos) + root * DVec3::from_slice(&pose);
        let [position, orientation] = env.get::<Command>(row).metrics[2..] else { panic!("two metrics") };
        assert!((f64::from(position) - target.distance(DVec3::from_slice(qpos))).abs() < 1e-6);
        assert!((f64::from(orientation) - 0.5).abs() < 1e-6, "{orientation}");
    }
    // What the last control step had is what the end of the episode reports.
    let length = DVec3::new(0.4, -0.1, 0.2).length();
    env.reset_rows(&[1]);
    let logged = ["position_error", "orientation_error"].map(|key| env.log(&format!("Metrics/pose/{key}")).unwrap());
    assert!((logged[0] - length).abs() < 1e-6 && (logged[1] - 0.5).abs() < 1e-6, "{logged:?}");
}

#[test]
fn a_pose_that_cannot_be_asked_for_is_refused() {
    let error = |pose| Env::try_new(&with(pose), options(1), |_, _, _| {}).err().expect("an error").to_string();
    let text = error(UniformPoseCommand { body: "lefft".to_owned(), ..fixed() });
    assert!(text.contains("`pose`") && text.contains("did you mean `left`"), "{text}");
    let text = error(UniformPoseCommand { pitch: [0.3, 0.2], ..fixed() });
    assert!(text.contains("`pose`") && text.contains("`pitch`"), "{text}");
    let text = error(UniformPoseCommand { pos_z: [f64::NAN, 0.2], ..fixed() });
    assert!(text.contains("`pos_z`"), "{text}");
}
