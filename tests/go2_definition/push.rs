//! The push of `flashsac`: every 15 s of the environment's time, all rows at once.

use manege::Environment;
use manege_systems::managers::event::EventManager;

use crate::{BASE, FLASHSAC, assert_close, assert_fills, builder, observed, step};

/// Two environments that differ in the push alone.
fn twins(rows: usize, changes: &str) -> [Environment; 2] {
    ["true", "false"].map(|enabled| {
        let changes = format!("events.push.enabled = {enabled}\n{changes}");
        let mut env = builder(FLASHSAC, rows).seed(11).config(changes.parse().unwrap()).build().unwrap();
        env.reset().unwrap();
        env
    })
}

fn same_velocities([a, b]: &mut [Environment; 2]) -> bool {
    a.qvel() == b.qvel()
}

/// What the push added to the velocities of each row, linear and angular.
fn added([pushed, still]: &mut [Environment; 2]) -> Vec<[f64; 6]> {
    for (row, (a, b)) in pushed.qpos().chunks_exact(19).zip(still.qpos().chunks_exact(19)).enumerate() {
        let turned = (3..7).any(|i| (a[i] - b[i]).abs() > 1e-12);
        assert!(a[..3] == b[..3] && a[7..] == b[7..] && !turned, "a push has displaced row {row}");
    }
    let rows = pushed.qvel().chunks_exact(18).zip(still.qvel().chunks_exact(18));
    rows.map(|(a, b)| {
        assert_eq!(a[6..], b[6..], "a push leaves the joints alone");
        std::array::from_fn(|i| a[i] - b[i])
    })
    .collect()
}

#[test]
fn rows_are_pushed_in_step_750_whatever_was_reset_before() {
    const ROWS: usize = 3;
    let mut twins = twins(ROWS, "");
    for number in 1..750 {
        twins.iter_mut().for_each(|env| step(env, 0.0));
        assert!(same_velocities(&mut twins), "step {number}");
        if number == 100 {
            twins.iter_mut().for_each(|env| env.reset_rows(&[1]).unwrap());
        }
        if number == 400 {
            twins.iter_mut().for_each(|env| env.reset().unwrap());
        }
    }
    twins.iter_mut().for_each(|env| step(env, 0.0));
    let pushes = added(&mut twins);
    assert_eq!(twins[0].terminated(), [false; ROWS]);
    for (row, push) in pushes.iter().enumerate() {
        for (part, limit) in push.iter().zip([1.0, 1.0, 0.5]) {
            assert!(part.abs() <= limit + 1e-9 && part.abs() > 1e-6, "row {row}: {push:?}");
        }
        for angular in &push[3..] {
            assert_close("angular push", *angular, 0.0, 1e-9);
        }
    }
    assert_ne!(pushes[0], pushes[1], "rows are pushed differently");

    // The observation of the step sees the push, the reward does not yet.
    let qpos = twins[0].qpos().to_vec();
    for (row, push) in pushes.iter().enumerate() {
        let [pushed, still] = [0, 1].map(|i| observed(&twins[i], "critic", "base_lin_vel", row));
        let difference: Vec<f64> = pushed.iter().zip(still).map(|(a, b)| a - b).collect();
        let [w, x, y, z] = [3, 4, 5, 6].map(|i| qpos[19 * row + i]);
        let columns = [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)],
            [2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)],
            [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)],
        ];
        for (axis, column) in columns.iter().enumerate() {
            let expected: f64 = column.iter().zip(push).map(|(a, b)| a * b).sum();
            assert_close(&format!("base_lin_vel {axis} of row {row}"), difference[axis], expected, 1e-6);
        }
    }
    assert_eq!(twins[0].rewards(), twins[1].rewards());
    step(&mut twins[0], 0.0);
    step(&mut twins[1], 0.0);
    assert_ne!(twins[0].rewards(), twins[1].rewards());
}

/// With a shorter interval.
#[test]
fn pushes_repeat_and_fill_their_ranges() {
    let mut twins = twins(100, "events.push.mode.seconds = [0.1, 0.1]");
    for _ in 0..4 {
        twins.iter_mut().for_each(|env| step(env, 0.0));
        assert!(same_velocities(&mut twins));
    }
    twins.iter_mut().for_each(|env| step(env, 0.0));
    let pushes = added(&mut twins);
    for (axis, limit) in [1.0, 1.0, 0.5].into_iter().enumerate() {
        assert_fills("push", pushes.iter().map(|push| push[axis]), -limit, limit);
    }

    // A push of 1 m/s at most changes a component by 0.5 m/s on average, much more than legs do in 20 ms.
    let [mut env, _] = twins;
    let mut before = env.qvel().to_vec();
    for number in 6..=15 {
        step(&mut env, 0.0);
        let after = env.qvel().to_vec();
        let change = after.iter().zip(&before).step_by(18).map(|(a, b)| (a - b).abs()).sum::<f64>() / 100.0;
        assert_eq!(change > 0.3, number % 5 == 0, "step {number} changes the velocity by {change}");
        before = after;
    }
}

#[test]
fn nothing_pushes_base_or_a_run_without_randomization() {
    let push = |env: &Environment| env.world().resource::<EventManager>().names().any(|name| name == "push");
    assert!(push(&builder(FLASHSAC, 1).build().unwrap()));
    assert!(!push(&builder(FLASHSAC, 1).randomization(false).build().unwrap()));
    assert!(!push(&builder(BASE, 1).build().unwrap()));
}
