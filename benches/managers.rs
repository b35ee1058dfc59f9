//! Each manager's part of the control step alone, on the state that a whole step left.
//!
//! `cargo x bench -- managers/g1_walk_flat/reward` runs one. Throughput is in environment steps, of one thread: a whole step spreads
//! the longer of these loops over all.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege_systems::schedule::StepSystems as S;

use common::{TASKS, environment, quick, short, stage};

const STAGES: [(&str, S); 10] = [
    ("check_actions", S::Check),
    ("action", S::Action),
    ("read_state", S::State),
    ("task", S::Task),
    ("termination", S::Termination),
    ("reward", S::Reward),
    ("publish", S::Metrics),
    ("event", S::Event),
    ("command", S::Command),
    ("observation", S::Observation),
];

fn managers(c: &mut Criterion) {
    let rows = 1024;
    for task in TASKS {
        let mut group = c.benchmark_group(format!("managers/{}", short(task)));
        quick(&mut group);
        group.throughput(Throughput::Elements(rows as u64));
        for (name, set) in STAGES {
            let mut env = environment(task, rows, 1, "");
            let mut schedule = stage(set);
            group.bench_function(BenchmarkId::new(name, rows), |b| b.iter(|| schedule.run(env.world_mut())));
        }
        group.finish();
    }
}

criterion_group!(benches, managers);
criterion_main!(benches);
