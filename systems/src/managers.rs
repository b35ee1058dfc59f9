//! The managers: each a module with its term trait, its options, and its systems.

pub mod action;
pub mod command;
pub mod curriculum;
pub mod event;
pub mod metrics;
pub mod observation;
pub mod recorder;
pub mod reward;
pub mod task;
pub mod termination;
