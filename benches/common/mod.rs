//! What the benches share: environments in the middle of their episodes, and parts of the step on their own.

// Not every bench uses everything.
#![allow(dead_code)]

use std::time::Duration;

use bevy_ecs::prelude::*;
use criterion::{BenchmarkGroup, measurement::WallTime};
use manege::Environment;
use manege_systems::schedule::{StepSystems, add_step_systems};

/// The tasks, with the presets that do most.
pub const TASKS: [&str; 3] = ["go2_joystick_flat:flashsac", "g1_walk_flat:sac", "g1_motion_tracking:sac"];

/// A task's name without its preset.
pub fn short(task: &str) -> &str {
    task.split_once(':').map_or(task, |(task, _)| task)
}

pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// An environment in the middle of its episodes, with small actions that keep the robot on its feet.
pub fn environment(task: &str, rows: usize, threads: usize, changes: &str) -> Environment {
    let mut env = Environment::builder(task)
        .rows(rows)
        .threads(threads)
        .seed(1)
        .config(changes.parse().expect("a table"))
        .build()
        .expect("the task builds");
    env.reset().expect("the task resets");
    let actions = actions(&env);
    for _ in 0..10 {
        env.step(&actions).expect("the task steps");
    }
    env
}

/// The same small action for every row.
pub fn actions(env: &Environment) -> Vec<f32> {
    vec![0.05; env.rows() * env.action_width()]
}

/// A schedule of some systems alone.
pub fn schedule_of(systems: impl FnOnce(&mut Schedule)) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.set_executor(bevy_ecs::schedule::SingleThreadedExecutor::new());
    systems(&mut schedule);
    schedule
}

/// One set of the step alone, to be run on the state that the step before it left.
pub fn stage(set: StepSystems) -> Schedule {
    schedule_of(|schedule| add_step_systems(schedule, set))
}

/// Few samples of what takes milliseconds, so that all benches take minutes.
pub fn quick(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.sample_size(15).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_millis(1500));
}
