//! A control step takes no memory once it runs, resets included.

use std::alloc::System;

use manege::Environment;
use manege::collector::{Collector, RandomPolicy, ReplayRing, TransitionLayout};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROWS: usize = 16;
const STEPS: usize = 1000;

/// What makes rows restart often: short episodes, and actions that throw the robot over. The first time-out comes for all rows
/// that have lasted at once, so lists of rows have then had their greatest length.
fn environment(task: &str, threads: usize) -> Environment {
    let changes = "episode_length = 1.0";
    let mut env = Environment::builder(task)
        .rows(ROWS)
        .threads(threads)
        .config(changes.parse().expect("a table"))
        .build()
        .expect("the task builds");
    env.reset().expect("the task resets");
    env
}

fn action(step: usize, columns: usize, to: &mut [f32]) {
    for (i, value) in to.iter_mut().enumerate() {
        *value = (((step * columns + i) as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) as f32 - 1.0;
    }
}

// One test, because other tests of the same program would be counted.
#[test]
fn a_thousand_control_steps_with_resets_allocate_nothing() {
    let tasks = ["go2_joystick_flat:flashsac", "g1_walk_flat:sac", "g1_motion_tracking:sac"];
    for (task, threads) in tasks.into_iter().flat_map(|task| [(task, 1), (task, 2)]) {
        let mut env = environment(task, threads);
        let columns = ROWS * env.action_width();
        let mut actions = vec![0.0; columns];
        let mut resets = 0;
        let mut run = |steps: std::ops::Range<usize>| {
            for step in steps {
                action(step, columns, &mut actions);
                env.step(&actions).expect("a step");
                resets += env.terminated().iter().zip(env.truncated()).filter(|(a, b)| **a || **b).count();
            }
        };
        run(0..200);
        let region = Region::new(ALLOCATOR);
        run(200..200 + STEPS);
        let change = region.change();
        assert_eq!((change.allocations, change.reallocations), (0, 0), "{task}, {threads} threads: {change:?}");
        assert!(resets > STEPS / 10, "{task}: only {resets} episodes ended");

        let layout = TransitionLayout::of(&env);
        let mut ring = ReplayRing::new(layout, 64).expect("memory");
        let mut collector = Collector::new(env).expect("a reset");
        let mut policy = RandomPolicy::uniform(1, collector.environment().action_width());
        let mut run = |steps: usize| {
            for _ in 0..steps {
                let transitions = collector.step(&mut policy).expect("a step");
                ring.push(&transitions);
            }
        };
        run(100);
        let region = Region::new(ALLOCATOR);
        run(200);
        let change = region.change();
        assert_eq!(
            (change.allocations, change.reallocations),
            (0, 0),
            "{task}, {threads} threads, collected: {change:?}"
        );
    }
}
