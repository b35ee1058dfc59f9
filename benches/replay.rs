//! What the collector adds to a step: writing transitions into the replay ring, and the means over episodes. Throughput is in
//! environment steps.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege::collector::{Collector, ReplayRing, TransitionLayout, ZeroPolicy};

use common::{TASKS, environment, quick, short, threads};

fn collecting(c: &mut Criterion) {
    let rows = 1024;
    let mut group = c.benchmark_group("replay");
    quick(&mut group);
    group.throughput(Throughput::Elements(rows as u64));
    for task in TASKS {
        let env = environment(task, rows, threads(), "");
        let layout = TransitionLayout::of(&env);
        let mut ring = ReplayRing::new(layout, 64).expect("memory for 64 steps");
        let mut collector = Collector::new(env).expect("the task resets");
        let transitions = collector.step(&mut ZeroPolicy).expect("the task steps");
        group.bench_function(BenchmarkId::new(short(task), rows), |b| b.iter(|| ring.push(&transitions)));
    }
    group.finish();
}

criterion_group!(benches, collecting);
criterion_main!(benches);
