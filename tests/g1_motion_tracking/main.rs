//! The task `g1_motion_tracking`: every term against values of other origin.

mod definition;
mod following;
mod oracle;
mod resets;
mod rollout;

use glam::DQuat;
use manege::Environment;
use manege::environment::EnvironmentBuilder;
use manege_components::rotation;
use manege_tasks::motion::{Kinematics, Motion, synthesize_g1};

/// Actuated joints.
const JOINTS: usize = 29;
/// Generalised positions and velocities: those of the root, then of the joints.
const NQ: usize = 7 + JOINTS;
const NV: usize = 6 + JOINTS;
/// Frames of the built-in motion.
const FRAMES: usize = 401;

fn builder(rows: usize) -> EnvironmentBuilder {
    Environment::builder("g1_motion_tracking").rows(rows).threads(1)
}

/// A number in `[-1, 1)` that looks random and depends on `i` alone.
fn scatter(i: usize) -> f64 {
    ((i as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) - 1.0
}

/// The motion that the task follows unless told otherwise.
fn motion() -> Motion {
    synthesize_g1(&mut Kinematics::g1().unwrap()).unwrap()
}

/// The generalised state of a motion's frame: root in the world (angular velocity in its own frame) and joints.
fn state(motion: &Motion, frame: usize) -> ([f64; NQ], [f64; NV]) {
    let bodies = motion.body_pos().len() / 3 / motion.frames();
    let wide = |values: &[f32], width: usize| -> Vec<f64> {
        values[frame * width..][..width].iter().map(|&value| f64::from(value)).collect()
    };
    let (mut qpos, mut qvel) = ([0.0; NQ], [0.0; NV]);
    qpos[..3].copy_from_slice(&wide(motion.body_pos(), 3 * bodies)[..3]);
    let orientation: DQuat = rotation::from_wxyz(&wide(motion.body_quat(), 4 * bodies)[..4]).normalize();
    qpos[3..7].copy_from_slice(&rotation::to_wxyz(orientation));
    qpos[7..].copy_from_slice(&wide(motion.joint_pos(), JOINTS));
    qvel[..3].copy_from_slice(&wide(motion.body_lin_vel(), 3 * bodies)[..3]);
    let angular = orientation.inverse() * rotation::vec3(&wide(motion.body_ang_vel(), 3 * bodies)[..3]);
    qvel[3..6].copy_from_slice(&angular.to_array());
    qvel[6..].copy_from_slice(&wide(motion.joint_vel(), JOINTS));
    (qpos, qvel)
}

/// The frame that each row is to match.
fn frames(env: &mut Environment) -> Vec<usize> {
    task_state(env, "motion_frame").iter().map(|row| row[0] as usize).collect()
}

/// Named task state of all rows.
fn task_state(env: &mut Environment, name: &str) -> Vec<Vec<f32>> {
    let columns = env.spec().task_state.iter().find(|state| state.name == name).unwrap().columns.clone();
    let world = env.world_mut();
    let mut query = world.query::<(&manege_components::Row, &manege_components::TaskState)>();
    let mut rows: Vec<_> =
        query.iter(world).map(|(row, state)| (row.0, state.values[columns.clone()].to_vec())).collect();
    rows.sort_by_key(|(row, _)| *row);
    rows.into_iter().map(|(_, values)| values).collect()
}
