//! The command of a motion: at every step, and at resets of a part of the rows.
//!
//! `step` is the command manager over all rows. `reset` is everything that belongs to commands in a reset pass: drawing
//! frames, staging the robots' states, and bringing commands up to date afterwards. `reset_pass` is the whole pass, with the
//! physics write, observations and all. Throughput is in rows.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege_components::ResetRequested;
use manege_systems::runtime;
use manege_systems::schedule::{ResetSystems, StepSystems, add_reset_systems};
use manege_systems::step::RowEntities;

use bevy_ecs::prelude::IntoScheduleConfigs;
use common::{environment, quick, schedule_of, stage, threads};

const ROWS: usize = 1024;
const PERCENTS: [usize; 3] = [1, 10, 100];

const TASK: &str = "g1_motion_tracking:sac";

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("motion_command");
    quick(&mut group);
    group.throughput(Throughput::Elements(ROWS as u64));
    let mut env = environment(TASK, ROWS, threads(), "");
    let mut schedule = stage(StepSystems::Command);
    group.bench_function(BenchmarkId::new("step", ROWS), |b| b.iter(|| schedule.run(env.world_mut())));
    group.finish();
}

fn resets(c: &mut Criterion) {
    let mut group = c.benchmark_group("motion_command");
    quick(&mut group);
    for percent in PERCENTS {
        let listed: Vec<u32> = (0..(ROWS * percent / 100) as u32).collect();
        group.throughput(Throughput::Elements(listed.len() as u64));

        let mut env = environment(TASK, ROWS, threads(), "");
        for &row in &listed {
            let entity = env.world().resource::<RowEntities>().0[row as usize];
            env.world_mut().entity_mut(entity).insert(ResetRequested);
        }
        // Lists the rows and opens the state write, once; the rows stay tagged.
        let begin = [ResetSystems::Begin, ResetSystems::Event];
        schedule_of(|schedule| begin.into_iter().for_each(|set| add_reset_systems(schedule, set))).run(env.world_mut());
        let mut schedule = schedule_of(|schedule| {
            schedule.configure_sets((ResetSystems::Command, ResetSystems::Update).chain());
            add_reset_systems(schedule, ResetSystems::Command);
            add_reset_systems(schedule, ResetSystems::Update);
        });
        group.bench_function(BenchmarkId::new("reset_percent_of_1024_rows", percent), |b| {
            b.iter(|| schedule.run(env.world_mut()));
        });

        let mut env = environment(TASK, ROWS, threads(), "");
        group.bench_function(BenchmarkId::new("reset_pass_percent_of_1024_rows", percent), |b| {
            b.iter(|| runtime::reset_rows(env.world_mut(), black_box(&listed)).expect("the rows reset"));
        });
    }
    group.finish();
}

criterion_group!(benches, step, resets);
criterion_main!(benches);
