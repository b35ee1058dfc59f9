//! A whole control step of each task.
//!
//! `cargo x bench` runs all benches; `cargo x bench -- control_step/g1` those whose name contains the words. Throughput is in
//! environment steps: control steps × rows.

mod common;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

use common::{TASKS, actions, environment, quick, short, threads};

fn whole_step(c: &mut Criterion) {
    let mut group = c.benchmark_group("control_step");
    quick(&mut group);
    for task in TASKS {
        for rows in [256, 1024] {
            let mut env = environment(task, rows, threads(), "");
            let actions = actions(&env);
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::new(short(task), rows), |b| {
                b.iter(|| env.step(black_box(&actions)).expect("the task steps"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, whole_step);
criterion_main!(benches);
