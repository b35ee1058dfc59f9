#![doc = include_str!("../README.md")]

pub mod collector;
pub mod describe;
pub mod environment;
mod files;
pub mod motion;
pub mod recorder;
pub mod replay;

pub use environment::Environment;
pub use manege_tasks::npz;
