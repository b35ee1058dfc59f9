//! The velocity command: its ranges, when it is drawn, and its errors in the log.

use manege::environment::{InitialState, Rows};

use crate::{BASE, PRESETS, assert_close, assert_fills, builder, observed, step};

#[test]
fn commands_fill_their_ranges() {
    for preset in PRESETS {
        let mut env = builder(preset, 128).seed(2).build().unwrap();
        env.reset().unwrap();
        for (column, (low, high)) in [(-0.6, 1.0), (-0.4, 0.4), (-0.8, 0.8)].into_iter().enumerate() {
            let values: Vec<f64> = env.commands().chunks_exact(3).map(|command| f64::from(command[column])).collect();
            assert_fills(&format!("component {column}"), values, low, high);
        }
    }
}

#[test]
fn a_command_lasts_for_20_seconds() {
    // Robots that may lie down, in episodes of 30 s, live through the 20 s.
    let changes = "episode_length = 30.0\nterminations.bad_orientation.enabled = false";
    let mut env = builder(BASE, 2).seed(4).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    let first = env.commands().to_vec();
    for number in 1..1000 {
        step(&mut env, 0.0);
        assert_eq!(env.commands(), first, "step {number}");
    }
    step(&mut env, 0.0);
    let second = env.commands().to_vec();
    assert!(first.iter().zip(&second).all(|(before, after)| before != after), "{first:?} {second:?}");
    for row in 0..2 {
        let shown: Vec<f32> = observed(&env, "policy", "command", row).iter().map(|&value| value as f32).collect();
        assert_eq!(shown, second[3 * row..][..3], "the step's observation shows the new command");
    }
    step(&mut env, 0.0);
    assert_eq!(env.commands(), second);
}

#[test]
fn a_reset_draws_the_commands_of_its_rows_alone() {
    let mut env = builder(BASE, 3).build().unwrap();
    env.reset().unwrap();
    let before = env.commands().to_vec();
    env.reset_rows(&[1]).unwrap();
    let after = env.commands().to_vec();
    assert_eq!((&before[..3], &before[6..]), (&after[..3], &after[6..]));
    assert!((3..6).all(|i| before[i] != after[i]), "{before:?} {after:?}");
}

/// Both metrics add error / 1000 steps, once in every control step.
#[test]
fn resets_log_the_mean_error() {
    let mut env = builder(BASE, 2).seed(9).build().unwrap();
    env.reset().unwrap();
    let commands: Vec<f64> = env.commands().iter().map(|&value| f64::from(value)).collect();
    let mut sums = [[0.0f64; 2]; 2];
    for _ in 0..7 {
        step(&mut env, 0.3);
        assert_eq!(env.log().get("Metrics/twist/error_vel_xy"), None, "nothing was reset");
        let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
        for (row, sums) in sums.iter_mut().enumerate() {
            let [w, x, y, z] = [3, 4, 5, 6].map(|i| qpos[19 * row + i]);
            let [u, v, t] = [0, 1, 2].map(|i| qvel[18 * row + i]);
            // The first two columns of the rotation matrix, times the velocity: its components in the body frame.
            let forward = (1.0 - 2.0 * (y * y + z * z)) * u + 2.0 * (x * y + w * z) * v + 2.0 * (x * z - w * y) * t;
            let left = 2.0 * (x * y - w * z) * u + (1.0 - 2.0 * (x * x + z * z)) * v + 2.0 * (y * z + w * x) * t;
            let command = &commands[3 * row..][..3];
            sums[0] += (command[0] - forward).hypot(command[1] - left) / 1000.0;
            sums[1] += (command[2] - qvel[18 * row + 5]).abs() / 1000.0;
        }
    }
    env.reset_rows(&[1]).unwrap();
    for (metric, sum) in ["error_vel_xy", "error_vel_yaw"].into_iter().zip(sums[1]) {
        let logged = env.log().get(&format!("Metrics/twist/{metric}")).unwrap();
        assert!((logged - sum).abs() < 1e-5 * sum, "{metric}: {logged} and {sum}");
    }
    // The other row's went on.
    env.reset_rows(&[0]).unwrap();
    assert_close("error_vel_xy", env.log().get("Metrics/twist/error_vel_xy").unwrap(), sums[0][0], 1e-6);
}

#[test]
fn modes_are_keys_of_the_configuration() {
    let changes = "commands.twist.rel_standing = 1.0\ncommands.twist.rel_heading = 0.5";
    let mut env = builder(BASE, 4).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    assert_eq!(env.commands(), [0.0; 12]);
    let error = builder(BASE, 4).config("commands.twist.rel_standign = 1.0".parse().unwrap()).build().err().unwrap();
    assert!(error.to_string().contains("`rel_standing`"), "{error}");
}

#[test]
fn an_override_stays_when_rows_are_placed_and_then_shows_what_they_were_placed_with() {
    let mut env = builder(BASE, 2).build().unwrap();
    env.reset().unwrap();
    let twist = env.command_handle("twist").unwrap();
    assert_eq!(twist.width(), 3);
    env.override_command(twist, Rows::These(&[1]), &[0.5, 0.0, -0.25]).unwrap();
    let commands = vec![("twist".to_owned(), vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6])];
    env.set_initial(&InitialState { commands, ..InitialState::default() }).unwrap();
    assert_eq!(env.commands(), [0.1, 0.2, 0.3, 0.5, 0.0, -0.25]);
    assert_eq!(observed(&env, "policy", "command", 1), [0.5, 0.0, -0.25]);
    env.release_command(twist, Rows::All).unwrap();
    assert_eq!(env.commands(), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    let error = env.command_handle("twits").unwrap_err().to_string();
    assert!(error.contains("did you mean `twist`"), "{error}");
}
