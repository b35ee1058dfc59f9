//! Resets touch the rows that ask for one, and nothing else.

use glam::{DQuat, DVec3};
use manege_components::{Command, EpisodeClock, Reward, Row, Streams, Termination, rotation};
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::error::StepError;
use manege_systems::log::StepLog;
use manege_systems::managers::event::EventOptions;
use manege_systems::managers::observation::{GroupConfig, GroupOptions, ObservationOptions};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{Push, Sensor, config, config_without_accidents, event};

const ROWS: usize = 100;

/// None, 1 %, 10 % and all of the rows.
fn shares() -> [Vec<usize>; 4] {
    [vec![], vec![37], vec![2, 3, 5, 17, 40, 63, 64, 77, 98, 99], (0..ROWS).collect()]
}

fn as_u32(rows: &[usize]) -> Vec<u32> {
    rows.iter().map(|&row| row as u32).collect()
}

/// An environment with automatic resets off.
fn disabled(rows: usize) -> RuntimeOptions {
    RuntimeOptions { auto_reset: AutoReset::Disabled, ..options(rows) }
}

#[test]
fn a_reset_by_hand_leaves_the_other_rows_bitwise_untouched() {
    // Reports: unitree ASE PR 24 (a reset stepped the others), mjlab PR 1139 (a reset advanced their commands).
    let config = config_without_accidents();
    for share in shares() {
        let (mut env, mut twin) = (Env::started(&config, options(ROWS)), Env::started(&config, options(ROWS)));
        for _ in 0..7 {
            env.step();
            twin.step();
        }
        env.reset_rows(&as_u32(&share));
        for row in 0..ROWS {
            let episode = env.get::<EpisodeClock>(row);
            if share.contains(&row) {
                assert_eq!(*episode, EpisodeClock { step: 0, episode: 2 }, "row {row}");
            } else {
                assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}");
            }
        }
        // What the engine keeps for itself (warm start, time) shows in the steps that follow.
        for _ in 0..10 {
            env.step();
            twin.step();
        }
        for row in (0..ROWS).filter(|row| !share.contains(row)) {
            assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}");
        }
    }
}

#[test]
fn an_automatic_reset_leaves_the_other_rows_bitwise_untouched() {
    let config = config_without_accidents();
    for share in shares() {
        // The twin's rows end too, and stay where they are.
        let (mut env, mut twin) = (Env::started(&config, options(ROWS)), Env::started(&config, disabled(ROWS)));
        for _ in 0..5 {
            env.step();
            twin.step();
        }
        env.step_ending(&share);
        twin.step_ending(&share);
        for row in 0..ROWS {
            assert_eq!(env.done(row), share.contains(&row), "row {row}");
            assert_eq!(env.get::<EpisodeClock>(row).step == 0, share.contains(&row), "row {row}");
            if !share.contains(&row) {
                assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}");
            }
        }
    }
}

#[test]
fn resetting_a_row_in_every_step_does_not_speed_up_its_neighbours() {
    // Report: mjlab 1138.
    let config = config_without_accidents();
    let (mut env, mut twin) = (Env::started(&config, options(3)), Env::started(&config, options(3)));
    for step in 0..60 {
        env.step_ending(&[1]);
        twin.step();
        for row in [0, 2] {
            assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}, step {step}");
        }
        assert_eq!(env.get::<EpisodeClock>(1).episode, step + 2);
    }
}

#[test]
fn automatic_resets_and_resets_by_hand_give_the_same_episodes() {
    let (mut automatic, mut by_hand) = (Env::started(&config(), options(16)), Env::started(&config(), disabled(16)));
    let mut ends = 0;
    for step in 0..120 {
        automatic.step();
        by_hand.step();
        let done: Vec<usize> = (0..16).filter(|&row| by_hand.done(row)).collect();
        for &row in &done {
            // Terminal observations are what is seen when nothing is reset, and the reset does not overwrite them.
            // Reports: Isaac Lab 1362, mjlab 900, playground 305.
            for group in 0..2 {
                assert_eq!(automatic.final_observation(group, row), by_hand.observation(group, row), "step {step}");
                assert_ne!(automatic.final_observation(group, row), automatic.observation(group, row), "step {step}");
            }
            assert_eq!(automatic.buffers().terminated[row], by_hand.buffers().terminated[row]);
            assert_eq!(automatic.buffers().truncated[row], by_hand.buffers().truncated[row]);
        }
        by_hand.reset_rows(&as_u32(&done));
        ends += done.len();
        for row in 0..16 {
            assert_eq!(automatic.episode_start(row), by_hand.episode_start(row), "row {row}, step {step}");
            assert_eq!(automatic.get::<EpisodeClock>(row), by_hand.get::<EpisodeClock>(row), "row {row}, step {step}");
        }
    }
    assert!(ends > 60, "{ends} episodes ended");
}

#[test]
fn successive_resets_of_a_row_give_distinct_episodes() {
    // Reports: playground 164 and brax 167 (every reset gave the same cached state).
    let mut env = Env::started(&config(), options(2));
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        env.reset_rows(&[1]);
        assert!(seen.insert(format!("{:?}", env.qpos(1))), "a state came twice");
        assert!(seen.insert(format!("{:?}", env.get::<Command>(1).values)), "a command came twice");
        assert!(seen.insert(format!("{:?}", env.get::<Streams>(1))), "random streams came twice");
    }
}

#[test]
fn an_episode_does_not_depend_on_how_the_one_before_went() {
    let mut config = config_without_accidents();
    // Its timer belongs to the environment, not to an episode.
    config.events.shift_remove("gust");
    config.events.insert("shiver".into(), Entry::new(EventOptions::step(), Push { limit: 0.01 }));
    let (mut long, mut none) = (Env::started(&config, options(3)), Env::started(&config, options(3)));
    for _ in 0..20 {
        long.step();
    }
    for env in [&mut long, &mut none] {
        env.reset_rows(&[0, 2]);
        env.steps = 0;
    }
    for step in 0..30 {
        for row in [0, 2] {
            assert_eq!(long.episode_start(row), none.episode_start(row), "row {row}, step {step}");
        }
        long.step();
        none.step();
    }
}

#[test]
fn the_last_action_and_the_action_history_are_zero_after_a_reset() {
    // Reports: Isaac Lab 1547, 2926 and PR 1623; PR 6324 (a terminal action leaked into the next action rate).
    let mut env = Env::started(&config_without_accidents(), options(3));
    for _ in 0..4 {
        env.step();
    }
    env.step_ending(&[1]);
    assert_eq!(env.term(0, 1, "action"), [0.0, 0.0]);
    assert_ne!(env.term(0, 0, "action"), [0.0, 0.0]);
    let next = crate::env::action(1, env.steps);
    env.step();
    assert_eq!(env.term(1, 1, "action"), next);
    // The weight of the action rate is -0.01.
    let expected = -0.01 * next.iter().map(|a| a * a).sum::<f32>();
    assert!((env.buffers().reward_terms[3 + 2] - expected).abs() < 1e-7);
}

/// The tip of the left arm in the world, from the model's dimensions.
fn left_tip(qpos: &[f64]) -> DVec3 {
    let arm = DVec3::new(0.05, 0.13, 0.0) + DQuat::from_rotation_y(qpos[7]) * DVec3::new(0.0, 0.0, -0.25);
    rotation::vec3(qpos) + rotation::from_wxyz(&qpos[3..7]) * arm
}

/// Asserts that sensors describe the state that `qpos` and `qvel` describe.
fn assert_fresh(env: &Env, row: usize, when: &str) {
    let (qpos, qvel) = (env.qpos(row), env.qvel(row));
    let orientation = rotation::from_wxyz(&qpos[3..7]).normalize();
    let close = |term: &str, expected: DVec3| {
        let value = DVec3::from_iter(env.term(1, row, term).into_iter().map(f64::from));
        assert!((value - expected).length() < 2e-6, "{when}: {term} of row {row} is {value}, not {expected}");
    };
    close("tip", left_tip(qpos));
    close("up", orientation * DVec3::Z);
    close("gyro", rotation::vec3(&qvel[3..6]));
}

trait FromIter {
    fn from_iter(values: impl Iterator<Item = f64>) -> Self;
}

impl FromIter for DVec3 {
    fn from_iter(mut values: impl Iterator<Item = f64>) -> Self {
        Self::from_array(std::array::from_fn(|_| values.next().expect("three values")))
    }
}

/// Turns and moves the box in every step.
fn kicked() -> EnvironmentConfig {
    let mut config = config();
    let kick = event(|row| {
        let mut root = row.staged.root();
        root.position.x += row.draws.uniform(-0.1, 0.1);
        root.orientation *= DQuat::from_rotation_z(row.draws.uniform(-0.5, 0.5));
        root.angular_velocity += DVec3::splat(row.draws.uniform(-0.5, 0.5));
        row.staged.set_root(root);
        row.staged.qpos_mut()[7] += row.draws.uniform(-0.1, 0.1);
    });
    config.events.insert("kick".into(), Entry::new(EventOptions::step(), kick.clone()));
    config.events.insert("first_kick".into(), Entry::new(EventOptions::reset(), kick));
    config
}

#[test]
fn sensors_are_fresh_after_steps_resets_and_pushes() {
    // Reports: Isaac Lab 240 and 7236 (poses of before the reset), mjlab PR 1146 (velocity written after forward),
    // Gymnasium 1690 (stale after set_state), MuJoCo 1286 (sensors lag).
    for config in [config(), kicked()] {
        let mut env = Env::started(&config, options(8));
        (0..8).for_each(|row| assert_fresh(&env, row, "after the first reset"));
        let mut ends = 0;
        for step in 0..60 {
            env.step();
            ends += (0..8).filter(|&row| env.done(row)).count();
            (0..8).for_each(|row| assert_fresh(&env, row, &format!("after step {step}")));
        }
        assert!(ends > 8, "{ends}");
        env.reset_rows(&[3, 1]);
        (0..8).for_each(|row| assert_fresh(&env, row, "after a reset by hand"));
    }
}

#[test]
fn contacts_are_fresh_after_resets_and_teleports() {
    // Reports: Isaac Lab 4970 and PR 5782 (the contact sensor kept the contacts of the last episode).
    let mut config = config_without_accidents();
    config.events.clear();
    let lift = event(|row| {
        if row.view.clock().step == 90 {
            row.staged.qpos_mut()[2] += 1.0;
        }
    });
    config.events.insert("lift".into(), Entry::new(EventOptions::step(), lift));
    let ground = Entry::new(ObservationOptions::default(), Sensor::new("ground"));
    let group = GroupConfig { options: GroupOptions::default(), terms: [("ground".into(), ground)].into() };
    config.observations.insert("contact".into(), group);
    let mut env = Env::started(&config, options(2));
    let still = [0.0; 4];
    let contact = |env: &Env, row| env.observation(2, row)[0] > 0.0;
    assert!(!contact(&env, 0) && !contact(&env, 1), "it starts in the air");
    for _ in 0..80 {
        env.try_step(&still).unwrap();
    }
    assert!(contact(&env, 0) && contact(&env, 1), "it has fallen to the ground");
    env.try_step(&[0.0, 0.0, crate::env::END, 0.0]).unwrap();
    assert!(contact(&env, 0) && !contact(&env, 1), "row 1 is in the air again");
    for _ in 0..9 {
        assert!(contact(&env, 0));
        env.try_step(&still).unwrap();
    }
    assert!(!contact(&env, 0), "row 0 was lifted");
}

#[test]
fn logs_and_sums_describe_the_episodes_that_ended_and_start_anew() {
    // Report: Isaac Lab PR 974 (sums survived the episode).
    const N: usize = 24;
    let mut env = Env::started(&config(), options(N));
    let (dt, longest) = (0.02, 0.5);
    let names = ["alive", "height", "action_rate"];
    let mut sums = vec![[0.0f64; 3]; N];
    let mut resets = 0;
    for step in 0..100 {
        env.step();
        let terms = &env.buffers().reward_terms;
        for (sums, terms) in sums.iter_mut().zip(terms.chunks(3)) {
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += f64::from(*term) * dt);
        }
        let done: Vec<usize> = (0..N).filter(|&row| env.done(row)).collect();
        for (i, name) in names.iter().enumerate() {
            let mean = |f: &dyn Fn(usize) -> f64, rows: &[usize]| {
                rows.iter().map(|&row| f(row)).sum::<f64>() / rows.len() as f64
            };
            let all: Vec<usize> = (0..N).collect();
            let now = mean(&|row| f64::from(env.buffers().reward_terms[row * 3 + i]), &all);
            assert!((env.log(&format!("reward/{name}")).unwrap() - now).abs() < 1e-6, "{name}, step {step}");
            let logged = env.log(&format!("Episode_Reward/{name}"));
            if done.is_empty() {
                assert_eq!(logged, None);
            } else {
                let expected = mean(&|row| sums[row][i] / longest, &done);
                assert!((logged.unwrap() - expected).abs() < 1e-5, "{name}, step {step}: {logged:?}, not {expected}");
            }
        }
        let count = |flags: &[bool]| (!done.is_empty()).then(|| flags.iter().filter(|&&flag| flag).count() as f64);
        assert_eq!(env.log("Episode_Termination/time_out"), count(&env.buffers().truncated), "step {step}");
        assert_eq!(env.log("Episode_Termination/away"), count(&env.buffers().terminated), "step {step}");
        for &row in &done {
            assert_eq!(env.get::<Reward>(row).episode_sums[..], [0.0; 3]);
            sums[row] = [0.0; 3];
        }
        resets += done.len();
    }
    assert!(resets > 60, "{resets}");
}

#[test]
fn a_reset_by_hand_clears_flags_and_logs_the_episode() {
    let mut env = Env::started(&config_without_accidents(), disabled(3));
    env.step();
    env.step_ending(&[0, 2]);
    assert_eq!(env.buffers().terminated, [true, false, true]);
    assert_eq!(env.log("Episode_Reward/alive"), None);
    env.reset_rows(&[2]);
    assert_eq!(env.buffers().terminated, [true, false, false]);
    assert_eq!(env.buffers().termination_terms, [1, 0, 0]);
    assert_eq!(*env.get::<Termination>(2), Termination::default());
    assert!(env.get::<Termination>(0).terminated);
    assert_eq!(env.log("Episode_Termination/told"), Some(1.0));
    // Two steps of 0.02 s, per second of the longest episode.
    let expected = 2.0 * 0.02 / 1000.0;
    assert!((env.log("Episode_Reward/alive").unwrap() - expected).abs() < 1e-9);
}

#[test]
fn a_row_may_be_reset_twice_in_a_row() {
    let config = config_without_accidents();
    let mut env = Env::started(&config, options(3));
    env.step();
    let neighbours = (env.snapshot(0), env.snapshot(2));
    env.reset_rows(&[1]);
    let second = env.episode_start(1);
    env.reset_rows(&[1]);
    assert_ne!(env.episode_start(1), second);
    assert_eq!(*env.get::<EpisodeClock>(1), EpisodeClock { step: 0, episode: 3 });
    assert_eq!((env.snapshot(0), env.snapshot(2)), neighbours);
    // The third episode is the third, however it came about.
    let mut other = Env::started(&config, options(3));
    other.reset();
    other.reset();
    assert_eq!(env.episode_start(1), other.episode_start(1));
}

#[test]
fn a_row_that_does_not_exist_or_comes_twice_is_refused_and_nothing_changes() {
    let mut env = Env::started(&config_without_accidents(), options(4));
    env.step();
    env.step_ending(&[2]);
    let (before, log) = (env.snapshots(), format!("{:?}", env.world.resource::<StepLog>()));
    for (rows, bad) in [(vec![0, 4], 4), (vec![1, 3, 1], 1), (vec![u32::MAX], u32::MAX)] {
        let error = runtime::reset_rows(&mut env.world, &rows).unwrap_err();
        assert!(matches!(error, StepError::Row { row, rows: 4 } if row == bad), "{error}");
        assert!(error.to_string().contains(&format!("row {bad} ")), "{error}");
        assert_eq!(env.snapshots(), before);
        assert_eq!(format!("{:?}", env.world.resource::<StepLog>()), log);
    }
    // Any order of rows is fine.
    env.reset_rows(&[3, 0]);
    assert_eq!(env.get::<EpisodeClock>(3).step, 0);
    assert_eq!(env.snapshot(1), before[1]);
}

#[test]
fn resetting_no_rows_changes_nothing() {
    let mut env = Env::started(&config(), options(4));
    env.step();
    let before = env.snapshots();
    env.reset_rows(&[]);
    assert_eq!(env.snapshots(), before);
}

#[test]
fn rows_are_in_the_default_state_before_the_first_reset() {
    let mut env = Env::new(&config_without_accidents(), options(2));
    let home = [0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    for row in 0..2 {
        assert_eq!(*env.get::<Row>(row), Row(row as u32));
        assert_eq!(env.qpos(row), home, "the model's reference configuration");
        assert_eq!(env.qvel(row), [0.0; 8]);
    }
    env.reset();
    assert_eq!(*env.get::<EpisodeClock>(0), EpisodeClock { step: 0, episode: 1 });
}

#[test]
fn a_draw_of_width_zero_keeps_the_keyframe_exactly() {
    // Report: Isaac Lab PR 486 (the default orientation was lost).
    let mut config = config_without_accidents();
    config.events = [(
        "same_place".into(),
        Entry::new(
            EventOptions::reset(),
            event(|row| {
                let root = row.staged.root();
                row.staged.set_root(root);
            }),
        ),
    )]
    .into();
    let mut env = Env::started(&config, options(2));
    env.step();
    env.reset_rows(&[1]);
    assert_eq!(env.qpos(1), [0.0, 0.0, 0.32, 1.0, 0.0, 0.0, 0.0, 0.4, -0.3]);
    assert_eq!(env.qvel(1), [0.0; 8]);
}
