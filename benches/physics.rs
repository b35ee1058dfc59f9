//! The physics dispatch alone: by rows, by threads, and with MuJoCo's own options. Throughput is in environment steps.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege_systems::schedule::StepSystems;

use common::{TASKS, environment, quick, short, stage, threads};

/// What MuJoCo does when it is not told otherwise, and derived quantities as old as it leaves them.
const STOCK: &str = "physics.jacobian = \"auto\"\nphysics.islands = true\nphysics.midphase = true\n\
                     physics.sensors = \"every_substep\"\nphysics.fresh = false";

fn dispatch(c: &mut Criterion) {
    for task in &TASKS[..2] {
        let mut group = c.benchmark_group(format!("physics/{}", short(task)));
        quick(&mut group);
        let mut bench = |name: &str, rows: usize, threads: usize, changes: &str| {
            let mut env = environment(task, rows, threads, changes);
            let mut schedule = stage(StepSystems::Physics);
            group.throughput(Throughput::Elements(rows as u64));
            group.bench_function(BenchmarkId::new(name, rows), |b| b.iter(|| schedule.run(env.world_mut())));
        };
        for rows in [64, 256, 1024] {
            bench("all_threads", rows, threads(), "");
        }
        bench("one_thread", 256, 1, "");
        bench("one_physics_step_old", 256, threads(), "physics.fresh = false");
        bench("a_rows_own_data", 256, threads(), "physics.layout = \"persistent\"");
        bench("stock_options", 256, threads(), STOCK);
        group.finish();
    }
}

criterion_group!(benches, dispatch);
criterion_main!(benches);
