//! A whole control step, and the parts of it that belong to each manager.
//!
//! `cargo x bench` runs them all; `cargo x bench -- stage/reward` those whose name contains the words. Throughput is in
//! environment steps: control steps × rows.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege::Environment;
use manege_systems::runtime;
use manege_systems::schedule::{StepSystems, add_step_systems};

use bevy_ecs::prelude::*;

const TASK: &str = "go2_joystick_flat:flashsac";
const ROWS: [usize; 2] = [256, 1024];

/// An environment in the middle of its episodes, with small actions that keep the robot on its feet.
fn environment(rows: usize, threads: usize) -> Environment {
    let mut env = Environment::builder(TASK).rows(rows).threads(threads).seed(1).build().expect("the task builds");
    env.reset().expect("the task resets");
    let actions = vec![0.1; rows * env.action_width()];
    for _ in 0..20 {
        env.step(&actions).expect("the task steps");
    }
    env
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn whole_step(c: &mut Criterion) {
    let mut group = c.benchmark_group("control_step");
    group.sample_size(20).measurement_time(Duration::from_secs(4));
    for rows in ROWS {
        let mut env = environment(rows, threads());
        let actions = vec![0.1; rows * env.action_width()];
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(BenchmarkId::new("go2_joystick_flat", rows), |b| {
            b.iter(|| env.step(black_box(&actions)).expect("the task steps"));
        });
    }
    group.finish();
}

/// Runs one system set of the step on its own, on the state that the step before it left.
fn stages(c: &mut Criterion) {
    use StepSystems as S;
    let stages = [
        ("check_actions", S::Check),
        ("action", S::Action),
        ("physics", S::Physics),
        ("read_state", S::State),
        ("termination", S::Termination),
        ("reward", S::Reward),
        ("publish", S::Metrics),
        ("event", S::Event),
        ("command", S::Command),
        ("observation", S::Observation),
    ];
    let mut group = c.benchmark_group("stage");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for rows in ROWS {
        group.throughput(Throughput::Elements(rows as u64));
        for (name, set) in stages {
            // Rows that end would stay so, since no reset follows; without the term they go on.
            let mut env = environment(rows, threads());
            let mut schedule = Schedule::default();
            schedule.set_executor(bevy_ecs::schedule::SingleThreadedExecutor::new());
            add_step_systems(&mut schedule, set);
            group.bench_function(BenchmarkId::new(name, rows), |b| b.iter(|| schedule.run(env.world_mut())));
        }
    }
    group.finish();
}

/// A reset by hand of a share of the rows, the physics write included.
fn resets(c: &mut Criterion) {
    let mut group = c.benchmark_group("reset");
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    let rows = 1024;
    let mut env = environment(rows, threads());
    for percent in [1, 10, 100] {
        let listed: Vec<u32> = (0..rows as u32 * percent / 100).collect();
        group.throughput(Throughput::Elements(listed.len() as u64));
        group.bench_function(BenchmarkId::new("percent_of_1024_rows", percent), |b| {
            b.iter(|| runtime::reset_rows(env.world_mut(), black_box(&listed)).expect("the rows reset"));
        });
    }
    group.finish();
}

criterion_group!(benches, whole_step, stages, resets);
criterion_main!(benches);
