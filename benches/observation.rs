//! The observation manager of `g1_walk_flat` with and without noise, delays and histories. Throughput is in environment steps.

mod common;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use manege_systems::schedule::StepSystems;

use common::{environment, quick, stage, threads};

const TERMS: [&str; 2] = ["joint_pos", "joint_vel"];

/// The same option for some terms of the policy's group.
fn for_terms(option: &str) -> String {
    TERMS.iter().map(|term| format!("observations.policy.terms.{term}.{option}\n")).collect()
}

fn observations(c: &mut Criterion) {
    let rows = 1024;
    let mut group = c.benchmark_group("observation");
    quick(&mut group);
    group.throughput(Throughput::Elements(rows as u64));
    let delay = "delay = { min_lag = 0, max_lag = 4, per_row = true, hold_probability = 0.1, update_period = 1, per_row_phase = false }";
    let variants = [
        ("as_the_task_has_it", String::new()),
        ("without_noise", "observations.policy.corruption = false\n".to_owned()),
        ("delay_of_two_terms", for_terms(delay)),
        ("history_of_two_terms", for_terms("history_length = 10")),
        ("history_of_the_group", "observations.policy.history_length = 10\n".to_owned()),
        (
            "without_the_finiteness_scan",
            "observations.policy.nan_policy = \"off\"\nobservations.critic.nan_policy = \"off\"\n".to_owned(),
        ),
    ];
    for (name, changes) in variants {
        let mut env = environment("g1_walk_flat:sac", rows, threads(), &changes);
        let mut schedule = stage(StepSystems::Observation);
        group.bench_function(BenchmarkId::new(name, rows), |b| b.iter(|| schedule.run(env.world_mut())));
    }
    group.finish();
}

criterion_group!(benches, observations);
criterion_main!(benches);
