//! One measured run.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::{Bookkeeping, DirectError, Options, Recording, ReplayRing, build};

/// What is measured, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOptions {
    /// Rows, threads and seed.
    pub environment: Options,
    /// Control steps before the measured ones, after a first one that never counts.
    pub warmup: u64,
    /// Measured control steps.
    pub steps: u64,
    /// Control steps that the replay ring holds.
    pub replay_capacity: usize,
}

/// Durations of each measured control step, ms.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Measurement {
    /// The task.
    pub task: String,
    /// Number of rows.
    pub envs: usize,
    /// Most threads that ran at once.
    pub threads: usize,
    /// Key of every random stream.
    pub seed: u64,
    /// All that a collector does: the environment's step, the write into the replay ring, the bookkeeping.
    pub step_ms: Vec<f64>,
    /// The physics dispatch.
    pub physics_ms: Vec<f64>,
    /// The environment's step without physics and resets.
    pub update_ms: Vec<f64>,
    /// The resets, their physics included.
    pub reset_ms: Vec<f64>,
    /// Replay and bookkeeping.
    pub collector_ms: Vec<f64>,
    /// Rows reset in each step.
    pub resets: Vec<u64>,
    /// The same steps and state writes through the physics engine alone.
    pub ceiling_ms: Vec<f64>,
}

/// Runs a task's baseline under zero actions, and then its bare physics.
///
/// # Errors
/// See [`DirectError`].
pub fn measure(name: &str, options: RunOptions) -> Result<Measurement, DirectError> {
    let Options { rows, threads, seed } = options.environment;
    let mut measurement = Measurement { task: name.to_owned(), envs: rows, threads, seed, ..Measurement::default() };
    let unmeasured = 1 + options.warmup;
    let recording = {
        let mut environment = build(name, options.environment)?;
        environment.reset()?;
        let mut recording = Recording::start(&*environment);
        let actions = vec![0.0; rows * environment.action_width()];
        let mut ring = ReplayRing::new(&*environment, options.replay_capacity);
        let mut books = Bookkeeping::new(&*environment);
        for step in 0..unmeasured + options.steps {
            let begun = Instant::now();
            environment.step(&actions)?;
            ring.push(&*environment, &actions);
            books.add(&*environment);
            let elapsed = begun.elapsed();
            // Outside the measured time.
            recording.add_step(&*environment);
            if step >= unmeasured {
                let times = environment.times();
                measurement.step_ms.push(milliseconds(elapsed));
                measurement.physics_ms.push(milliseconds(times.physics));
                measurement.update_ms.push(milliseconds(times.total - times.physics - times.reset));
                measurement.reset_ms.push(milliseconds(times.reset));
                measurement.collector_ms.push(milliseconds(elapsed - times.total));
                measurement.resets.push(environment.reset_rows().len() as u64);
            }
        }
        recording
    };
    let (times, _) = recording.replay(name, options.environment, Vec::new())?;
    measurement.ceiling_ms = times.into_iter().skip(unmeasured as usize).map(milliseconds).collect();
    Ok(measurement)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
