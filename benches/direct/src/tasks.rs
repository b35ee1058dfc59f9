//! The tasks, one file each.

pub(crate) mod g1_motion_tracking;
pub(crate) mod g1_walk_flat;
pub(crate) mod go2_joystick_flat;
