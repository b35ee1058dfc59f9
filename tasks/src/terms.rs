//! Terms that tasks are made of, by manager.
//!
//! Each is a struct of parameters that configuration files can change, with the formula it computes in its
//! documentation.

pub mod events;
pub mod gait;
pub mod gait_pair;
pub mod motion;
pub mod observations;
mod resolve;
pub mod rewards;
pub mod sensed;
pub mod terminations;
mod tracking;
