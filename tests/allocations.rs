//! What control steps need once they are under way: no allocation, and no more memory.

use std::alloc::System;

use manege::Environment;
use manege_systems::config::parse_assignment;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROWS: usize = 16;
const WARM_UP: usize = 200;
const STEPS: usize = 1000;

/// Bytes that a steady state may add to the process's memory: less than one per row and step.
const SLACK: usize = 8 * 1024;

/// Rows out of step with each other, whose episodes are short enough for some to end in every few control steps.
fn environment(task: &str) -> Environment {
    let mut env = Environment::builder(task)
        .rows(ROWS)
        .threads(1)
        .seed(3)
        .stagger_episodes(true)
        .config(parse_assignment("episode_length=0.5").expect("an assignment"))
        .build()
        .expect("the task builds");
    env.reset().expect("the task resets");
    env
}

/// Actions that change from step to step, written in place.
fn act(actions: &mut [f32], step: usize) {
    for (column, action) in actions.iter_mut().enumerate() {
        *action = (0.37 * step as f32 + 1.9 * column as f32).sin();
    }
}

/// Resident memory that is no file's, in bytes, where the system tells.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

// The only test of this file: others would allocate at the same time.
#[test]
fn steady_state_control_steps_allocate_nothing() {
    for task in ["go2_joystick_flat:flashsac", "g1_walk_flat"] {
        let mut env = environment(task);
        let mut actions = vec![0.0; ROWS * env.action_width()];
        for step in 0..WARM_UP {
            act(&mut actions, step);
            env.step(&actions).expect("the task steps");
        }

        let before = resident();
        let region = Region::new(ALLOCATOR);
        let (mut terminated, mut truncated) = (0, 0);
        for step in 0..STEPS {
            act(&mut actions, step);
            env.step(&actions).expect("the task steps");
            terminated += env.terminated().iter().filter(|flag| **flag).count();
            truncated += env.truncated().iter().filter(|flag| **flag).count();
        }
        let counted = region.change();
        let after = resident();

        assert_eq!((counted.allocations, counted.reallocations), (0, 0), "{task}: {counted:?}");
        assert!(terminated + truncated > STEPS / 10, "{task}: rows restart in the steps that are watched");
        assert!(truncated > 0, "{task}: some because their time is up");
        if let (Some(before), Some(after)) = (before, after) {
            let grown = after.saturating_sub(before);
            assert!(grown <= SLACK * 16, "{task}: {grown} bytes more after {STEPS} control steps of {ROWS} rows");
        }
    }
    let region = Region::new(ALLOCATOR);
    drop(std::hint::black_box(vec![0_u8; 64]));
    assert_eq!(region.change().allocations, 1, "the allocator counts");
}
