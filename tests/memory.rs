//! The process does not grow: neither while it steps and resets, nor when environments come and go.

#![cfg(target_os = "linux")]

use manege::Environment;

/// Memory that the process has resident, bytes.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of its own");
    let kibibytes = line.split_whitespace().nth(1).and_then(|value| value.parse::<i64>().ok());
    kibibytes.expect("a number of kB") * 1024
}

fn environment() -> Environment {
    let mut env = Environment::builder("go2_joystick_flat:flashsac")
        .rows(256)
        .threads(2)
        .config("episode_length = 0.2".parse().expect("a table"))
        .build()
        .expect("the task builds");
    env.reset().expect("the task resets");
    env
}

fn run(env: &mut Environment, steps: usize) -> usize {
    let actions = vec![0.0; env.rows() * env.action_width()];
    let mut resets = 0;
    for _ in 0..steps {
        env.step(&actions).expect("a step");
        resets += env.truncated().iter().filter(|cut| **cut).count();
    }
    resets
}

/// Some bytes for each of the steps' rows: what the allocator may still take without a leak, and less than any leak per reset.
const SLACK: i64 = 512 << 10;

// One test, because what other tests of the same program take would be counted.
#[test]
fn resident_memory_stays_flat() {
    let mut env = environment();
    run(&mut env, 100);
    let before = resident();
    let resets = run(&mut env, 800);
    let grown = resident() - before;
    assert!(resets > 10_000, "only {resets} resets");
    assert!(grown < SLACK, "{grown} bytes more after 800 control steps with {resets} resets");
    drop(env);

    let once = || run(&mut environment(), 12);
    (0..5).for_each(|_| _ = once());
    let before = resident();
    (0..20).for_each(|_| _ = once());
    let grown = resident() - before;
    // An environment takes some 5 MiB.
    assert!(grown < 5 << 20, "{grown} bytes more after 20 environments");
}
