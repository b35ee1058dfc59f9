//! The tasks: robots, terms and presets.
//!
//! A [`Task`] is a name, a model, and a function from preset to [`EnvironmentConfig`]. [`tasks`] lists the built-in ones.
//! [`terms`] holds the terms that they are made of; an application's own task uses them, and its own, in the same way.

mod g1_motion_tracking;
mod g1_walk_flat;
mod go2_joystick_flat;
pub mod motion;
pub mod npz;
mod robots;
mod task;
pub mod terms;

pub use robots::ModelFiles;
pub use task::{Preset, Task, TaskError, find, find_among, tasks};

#[cfg(doc)]
use manege_systems::config::EnvironmentConfig;
