//! A reset by hand of a part of the rows, the physics write and the new observations included, and what a step pays for resets
//! when no row asks for one. Throughput is in rows.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege_systems::runtime;
use manege_systems::schedule::StepSystems;

use common::{TASKS, environment, quick, short, stage, threads};

fn resets(c: &mut Criterion) {
    let rows = 1024;
    for task in TASKS {
        let mut group = c.benchmark_group(format!("reset/{}", short(task)));
        quick(&mut group);
        let mut env = environment(task, rows, threads(), "");
        let mut schedule = stage(StepSystems::Reset);
        group.bench_function(BenchmarkId::new("percent_of_1024_rows", 0), |b| b.iter(|| schedule.run(env.world_mut())));
        for percent in [1, 10, 100] {
            let listed: Vec<u32> = (0..rows as u32 * percent / 100).collect();
            group.throughput(Throughput::Elements(listed.len() as u64));
            group.bench_function(BenchmarkId::new("percent_of_1024_rows", percent), |b| {
                b.iter(|| runtime::reset_rows(env.world_mut(), black_box(&listed)).expect("the rows reset"));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, resets);
criterion_main!(benches);
