//! The floating root, as all tasks place it.

use glam::{DQuat, DVec3};
use manege_components::{Draws, rotation};

use crate::task::at;

/// The root's orientation. `qpos` comes first in a row's state.
pub(crate) fn root_orientation(state: &[f64]) -> DQuat {
    rotation::from_wxyz(at::<4>(state, 3))
}

/// Velocity in the world frame: m/s and rad/s.
pub(crate) struct RootVelocity {
    pub(crate) linear: DVec3,
    pub(crate) angular: DVec3,
}

/// Places the root. The engine wants the angular velocity in the body's frame.
pub(crate) fn set_root(
    qpos: &mut [f64],
    qvel: &mut [f64],
    position: DVec3,
    orientation: DQuat,
    velocity: RootVelocity,
) {
    let orientation = orientation.normalize();
    position.write_to_slice(&mut qpos[..3]);
    qpos[3..7].copy_from_slice(&rotation::to_wxyz(orientation));
    velocity.linear.write_to_slice(&mut qvel[..3]);
    (orientation.inverse() * velocity.angular).write_to_slice(&mut qvel[3..6]);
}

/// Six numbers, each uniform within its limit of 0.
pub(crate) fn symmetric(draws: &mut Draws, limits: [f64; 6]) -> [f64; 6] {
    limits.map(|limit| draws.uniform(-limit, limit))
}
