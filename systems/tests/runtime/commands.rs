//! Velocity commands: how rows follow them, when they are drawn, and whom a reset concerns.

use std::f64::consts::PI;

use glam::{DQuat, DVec3};
use manege_components::Command;
use manege_systems::build::BuildError;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::event::EventOptions;
use manege_systems::runtime::RuntimeOptions;

use crate::env::{Env, options};
use crate::terms::{config_without_accidents, event};

const ROWS: usize = 600;

/// A command drawn once, over rows that face all directions and spin at up to 8 rad/s, high above the ground.
fn spinning(twist: UniformVelocityCommand) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let spin = event(|row| {
        let mut root = row.staged.root();
        root.position.z = 5.0;
        root.orientation =
            DQuat::from_rotation_z(row.draws.uniform(-PI, PI)) * DQuat::from_rotation_x(row.draws.uniform(-0.5, 0.5));
        root.angular_velocity = DVec3::new(0.0, 0.0, row.draws.uniform(-8.0, 8.0));
        row.staged.set_root(root);
    });
    config.events = [("spin".into(), Entry::new(EventOptions::reset(), spin))].into();
    config.commands = [("twist".into(), Entry::new(CommandOptions::every(1000.0), twist))].into();
    config
}

fn varied() -> UniformVelocityCommand {
    UniformVelocityCommand {
        lin_vel_x: [-1.0, 1.0],
        lin_vel_y: [-0.5, 0.5],
        ang_vel_z: [-0.9, 0.6],
        ..UniformVelocityCommand::default()
    }
}

fn command(env: &Env, row: usize) -> [f64; 3] {
    let values = &env.get::<Command>(row).values;
    [0, 1, 2].map(|i| f64::from(values[i]))
}

fn commands(env: &Env) -> Vec<[f64; 3]> {
    (0..env.rows).map(|row| command(env, row)).collect()
}

/// The direction of the row's x axis over the ground: the first column of the rotation matrix, written out.
fn yaw(env: &Env, row: usize) -> f64 {
    let [w, x, y, z] = [3, 4, 5, 6].map(|i| env.qpos(row)[i]);
    (2.0 * (x * y + w * z)).atan2(w * w + x * x - y * y - z * z)
}

/// Whether a count of independent rows of the given probability is within 5 standard deviations.
fn is_likely(count: usize, probability: f64) -> bool {
    let mean = ROWS as f64 * probability;
    (count as f64 - mean).abs() < 5.0 * (mean * (1.0 - probability)).sqrt()
}

/// The yaw rate towards a heading, the error brought to the short way round by sine and cosine.
fn rate_towards(heading: f64, yaw: f64, stiffness: f64, [low, high]: [f64; 2]) -> f64 {
    let error = heading - yaw;
    (stiffness * error.sin().atan2(error.cos())).clamp(low, high)
}

#[test]
fn a_row_with_a_heading_turns_to_it_the_short_way() {
    // Errors reach over ±π: the heading is nearly backwards, and rows face everywhere.
    let twist = UniformVelocityCommand { rel_heading: 1.0, heading: [3.0, 3.0], heading_stiffness: 0.4, ..varied() };
    let mut env = Env::started(&spinning(twist), options(ROWS));
    let start = commands(&env);
    for step in 0..6 {
        let mut limited = 0;
        for (row, start) in start.iter().enumerate() {
            let expected = rate_towards(3.0, yaw(&env, row), 0.4, [-0.9, 0.6]);
            let [x, y, rate] = command(&env, row);
            assert!((rate - expected).abs() < 1e-6, "row {row}, step {step}: {rate}, not {expected}");
            assert_eq!([x, y], start[..2], "the linear velocity is what was drawn");
            limited += usize::from(rate == f64::from(0.6f32) || rate == f64::from(-0.9f32));
        }
        assert!((ROWS / 10..ROWS).contains(&limited), "{limited} rates at the ends of their range");
        env.step();
    }
}

#[test]
fn headings_fill_their_range() {
    let twist = UniformVelocityCommand {
        ang_vel_z: [-9.0, 9.0],
        rel_heading: 1.0,
        heading: [-1.0, 2.0],
        ..UniformVelocityCommand::default()
    };
    let mut config = spinning(twist);
    config.events.clear();
    let env = Env::started(&config, options(ROWS));
    // Rows face along x, so the rate is the heading × 1/s.
    let mut rates: Vec<f64> = commands(&env).iter().map(|command| command[2]).collect();
    rates.sort_by(f64::total_cmp);
    assert!((-1.0..-0.95).contains(&rates[0]) && (1.95..2.0).contains(&rates[ROWS - 1]), "{rates:?}");
    assert!((rates[ROWS / 2] - 0.5).abs() < 0.2, "the median is in the middle");
}

#[test]
fn a_heading_falls_to_as_many_rows_as_asked_for() {
    let twist = UniformVelocityCommand { rel_heading: 0.3, heading: [0.5, 0.5], ..varied() };
    let mut env = Env::started(&spinning(twist), options(ROWS));
    let plain = commands(&Env::started(&spinning(varied()), options(ROWS)));
    let turning: Vec<bool> = (0..ROWS).map(|row| command(&env, row) != plain[row]).collect();
    let count = turning.iter().filter(|turning| **turning).count();
    assert!(is_likely(count, 0.3), "{count} of {ROWS}");
    for _ in 0..3 {
        env.step();
    }
    for (row, turning) in turning.into_iter().enumerate() {
        let expected = rate_towards(0.5, yaw(&env, row), 1.0, [-0.9, 0.6]);
        let expected = if turning { expected } else { plain[row][2] };
        assert!((command(&env, row)[2] - expected).abs() < 1e-6, "row {row}");
    }
}

#[test]
fn a_row_in_the_world_keeps_its_direction_while_it_turns() {
    let twist = UniformVelocityCommand { rel_world: 1.0, lin_vel_x: [0.8, 0.8], lin_vel_y: [-0.6, -0.6], ..varied() };
    let mut env = Env::started(&spinning(twist), options(ROWS));
    let start = commands(&env);
    for step in 0..6 {
        for (row, start) in start.iter().enumerate() {
            let (sin, cos) = yaw(&env, row).sin_cos();
            let [x, y, rate] = command(&env, row);
            // R(−yaw)·(0.8, −0.6)
            let expected = [0.8 * cos - 0.6 * sin, -0.8 * sin - 0.6 * cos];
            let error = (x - expected[0]).hypot(y - expected[1]);
            assert!(error < 1e-6, "row {row}, step {step}: ({x}, {y}), not {expected:?}");
            assert_eq!(rate, start[2], "the yaw rate is what was drawn");
        }
        env.step();
    }
}

#[test]
fn a_standing_row_is_asked_for_nothing_whatever_else_it_is() {
    let modes = |rel_standing| UniformVelocityCommand {
        rel_heading: 0.5,
        rel_world: 0.5,
        rel_forward: 0.5,
        rel_standing,
        ..varied()
    };
    let standing = |env: &Env| -> Vec<bool> { (0..ROWS).map(|row| command(env, row) == [0.0; 3]).collect() };
    let mut env = Env::started(&spinning(modes(0.2)), options(ROWS));
    let first = standing(&env);
    let count = first.iter().filter(|standing| **standing).count();
    assert!(is_likely(count, 0.2), "{count} of {ROWS}");
    for _ in 0..3 {
        env.step();
        assert_eq!(standing(&env), first);
    }
    assert!(standing(&Env::started(&spinning(modes(1.0)), options(ROWS))).iter().all(|standing| *standing));
    // The other modes have no say in which rows stand, and the rows that do not are as if none did.
    let alone = UniformVelocityCommand { rel_standing: 0.2, ..varied() };
    assert_eq!(standing(&Env::started(&spinning(alone), options(ROWS))), first);
    let none = commands(&Env::started(&spinning(modes(0.0)), options(ROWS)));
    let some = commands(&Env::started(&spinning(modes(0.2)), options(ROWS)));
    assert!((0..ROWS).all(|row| first[row] || none[row] == some[row]));
}

#[test]
fn a_forward_row_walks_straight_on_at_three_decimetres_a_second_or_more() {
    let plain = commands(&Env::started(&spinning(varied()), options(ROWS)));
    let straight = |[x, _, _]: [f64; 3]| [x.abs().max(f64::from(0.3f32)), 0.0, 0.0];
    // Forward rows have neither a heading nor a direction in the world.
    let twist = UniformVelocityCommand { rel_forward: 1.0, rel_heading: 1.0, rel_world: 1.0, ..varied() };
    let mut env = Env::started(&spinning(twist), options(ROWS));
    for _ in 0..3 {
        for (row, plain) in plain.iter().enumerate() {
            assert_eq!(command(&env, row), straight(*plain), "row {row}");
        }
        env.step();
    }
    let twist = UniformVelocityCommand { rel_forward: 0.4, ..varied() };
    let some = commands(&Env::started(&spinning(twist), options(ROWS)));
    let forward = (0..ROWS).filter(|&row| some[row] == straight(plain[row])).count();
    assert!(is_likely(forward, 0.4), "{forward} of {ROWS}");
    assert!((0..ROWS).all(|row| some[row] == straight(plain[row]) || some[row] == plain[row]));
}

#[test]
fn modes_that_make_no_sense_are_refused() {
    let wrong: [(&str, fn(&mut UniformVelocityCommand)); 7] = [
        ("rel_heading", |twist| twist.rel_heading = 1.5),
        ("rel_standing", |twist| twist.rel_standing = -0.1),
        ("rel_world", |twist| twist.rel_world = f64::NAN),
        ("rel_forward", |twist| twist.rel_forward = f64::INFINITY),
        ("heading", |twist| twist.heading = [1.0, -1.0]),
        ("heading_stiffness", |twist| twist.heading_stiffness = -1.0),
        ("ang_vel_z", |twist| twist.ang_vel_z = [0.2, 0.1]),
    ];
    for (key, spoil) in wrong {
        let mut twist = varied();
        spoil(&mut twist);
        let error = Env::try_new(&spinning(twist), options(1), |_, _, _| {}).err().expect("an error").to_string();
        assert!(error.contains("twist") && error.contains(&format!("`{key}`")), "{error}");
    }
}

fn drawn_every(seconds: [f32; 2]) -> EnvironmentConfig {
    let mut config = spinning(varied());
    config.commands[0].options.resampling_time = seconds;
    config
}

#[test]
fn commands_are_drawn_as_often_as_their_time_range_says() {
    // Report: beyondAMP 10 (an empty range that became 0 to 1 s).
    for (seconds, least, most) in [(0.5, 40, 40), (0.06, 333, 333), (1.0, 20, 20)] {
        let mut env = Env::started(&drawn_every([seconds, seconds]), options(2));
        (0..1000).for_each(|_| env.step());
        // The first is the reset's.
        let draws = env.get::<Command>(0).resamplings[0] - 1;
        assert!((least..=most).contains(&draws), "{draws} draws in 20 s, one every {seconds} s");
    }
    let mut env = Env::started(&drawn_every([0.1, 0.3]), options(20));
    let mut since = vec![0; env.rows];
    let mut waits = Vec::new();
    for _ in 0..1000 {
        let before = commands(&env);
        env.step();
        for (row, before) in before.iter().enumerate() {
            since[row] += 1;
            if command(&env, row) != *before {
                waits.push(since[row]);
                since[row] = 0;
            }
        }
    }
    let (shortest, longest) = (waits.iter().min().expect("draws"), waits.iter().max().expect("draws"));
    // 0.1 s to 0.3 s are 5 to 15 control steps; only one draw in a thousand is near enough to 0.1 s for 5.
    assert!((5..=6).contains(shortest) && *longest == 15, "{shortest} to {longest} control steps");
    // A timer runs out with the first control step that ends after it, half a step late on average.
    let mean = f64::from(waits.iter().sum::<i32>()) / waits.len() as f64;
    assert!((mean - 10.5).abs() < 0.3, "{mean}");
}

#[test]
fn a_resampling_time_that_is_no_range_of_times_is_refused() {
    for seconds in
        [[0.3, 0.2], [0.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [1.0, f32::INFINITY], [f32::NAN, 1.0], [1.0, f32::NAN]]
    {
        let error = Env::try_new(&drawn_every(seconds), options(1), |_, _, _| {}).err().expect("an error");
        assert!(matches!(error, BuildError::Config(_)), "{error:?}");
        assert!(error.to_string().contains("`commands.twist.resampling_time`"), "{error}");
    }
}

#[test]
fn a_reset_of_one_row_leaves_the_commands_of_the_others_alone() {
    // Report: mjlab 1138 (resets advanced the commands of rows that were not reset).
    let modes = UniformVelocityCommand { rel_heading: 0.5, rel_world: 0.5, rel_standing: 0.1, ..varied() };
    let mut config = spinning(modes);
    config.commands[0].options.resampling_time = [0.06, 0.2];
    let (mut reset, mut undisturbed) = (Env::started(&config, options(6)), Env::started(&config, options(6)));
    for step in 0..40 {
        reset.reset_rows(&[0]);
        reset.step();
        undisturbed.step();
        for row in 1..6 {
            let (a, b) = (reset.get::<Command>(row), undisturbed.get::<Command>(row));
            assert_eq!(a, b, "row {row}, step {step}: values, timers and errors");
        }
        assert_eq!(reset.get::<Command>(0).resamplings[0], 1);
    }
}

#[test]
fn errors_are_added_once_in_every_control_step() {
    let twist =
        UniformVelocityCommand { lin_vel_x: [3.0, 3.0], ang_vel_z: [1.0, 1.0], ..UniformVelocityCommand::default() };
    let mut env = Env::started(&spinning(twist), RuntimeOptions { seed: 3, ..options(2) });
    assert_eq!(*env.get::<Command>(1).metrics, [0.0; 2], "no control step, no error");
    let steps = 1000.0 / 0.02;
    let mut sums = [0.0; 2];
    for _ in 0..5 {
        env.reset_rows(&[0]);
        env.step();
        let (qpos, qvel) = (env.qpos(1), env.qvel(1));
        let root = DQuat::from_xyzw(qpos[4], qpos[5], qpos[6], qpos[3]);
        let velocity = root.inverse() * DVec3::from_slice(qvel);
        sums[0] += (3.0 - velocity.x).hypot(velocity.y) / steps;
        sums[1] += (1.0 - qvel[5]).abs() / steps;
    }
    for (metric, sum) in env.get::<Command>(1).metrics.iter().zip(sums) {
        assert!((f64::from(*metric) - sum).abs() < 1e-5 * sum, "{metric}, not {sum}");
    }
}
