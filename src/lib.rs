#![doc = include_str!("../README.md")]

pub mod collector;
pub mod environment;
mod files;
pub mod npz;

pub use environment::Environment;
