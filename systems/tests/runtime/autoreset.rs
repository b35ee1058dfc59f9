//! When the next episode begins: in the same step, in the next, or when the caller says so.

use manege_components::{AwaitingReset, EpisodeClock, Termination};
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::error::StepError;
use manege_systems::managers::termination::TerminationOptions;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{config, config_without_accidents, nothing, termination_of};

fn mode(rows: usize, auto_reset: AutoReset) -> RuntimeOptions {
    RuntimeOptions { auto_reset, ..options(rows) }
}

#[test]
fn in_next_step_mode_the_step_after_the_end_is_the_reset() {
    let config = config_without_accidents();
    let mut env = Env::started(&config, mode(3, AutoReset::NextStep));
    let mut same = Env::started(&config, mode(3, AutoReset::SameStep));
    for _ in 0..4 {
        env.step();
        same.step();
    }
    env.step_ending(&[1]);
    same.step_ending(&[1]);
    // The end: what is seen is the terminal observation, and nothing was reset.
    assert_eq!(env.buffers().terminated, [false, true, false]);
    assert_eq!(env.observation(0, 1), same.final_observation(0, 1));
    assert_eq!(env.final_observation(0, 1), env.observation(0, 1));
    assert_eq!(env.get::<EpisodeClock>(1).step, 5);
    assert_eq!(env.buffers().rewards, same.buffers().rewards);
    let reset = same.episode_start(1);

    env.step();
    same.step();
    assert_eq!(env.buffers().terminated, [false; 3]);
    assert_eq!(env.buffers().truncated, [false; 3]);
    assert_eq!(env.buffers().termination_terms, [0; 3]);
    assert_eq!(env.buffers().rewards[1], 0.0);
    assert_eq!(env.buffers().reward_terms[3..6], [0.0; 3]);
    assert_eq!(*env.get::<EpisodeClock>(1), EpisodeClock { step: 0, episode: 2 });
    assert_eq!(env.term(1, 1, "action"), [0.0, 0.0], "its action was ignored");
    assert_eq!(env.episode_start(1), reset, "the row was reset, not stepped");
    for row in [0, 2] {
        assert_eq!(env.snapshot(row), same.snapshot(row), "row {row}");
    }
    env.step();
    assert_eq!(env.get::<EpisodeClock>(1).step, 1);
    assert_ne!(env.buffers().rewards[1], 0.0);
}

#[test]
fn next_step_mode_logs_why_episodes_ended() {
    let mut env = Env::started(&config_without_accidents(), mode(3, AutoReset::NextStep));
    env.step_ending(&[0, 2]);
    assert_eq!(env.log("Episode_Termination/told"), None, "no row is reset yet");
    env.step();
    assert_eq!(env.log("Episode_Termination/told"), Some(2.0));
    assert!(env.log("Episode_Reward/alive").unwrap() > 0.0);
    env.step();
    assert_eq!(env.log("Episode_Termination/told"), None);
}

#[test]
fn next_step_mode_works_when_every_row_has_ended() {
    let mut env = Env::started(&config_without_accidents(), mode(2, AutoReset::NextStep));
    env.step_ending(&[0, 1]);
    env.step();
    for row in 0..2 {
        assert_eq!(*env.get::<EpisodeClock>(row), EpisodeClock { step: 0, episode: 2 });
        assert_eq!(env.buffers().rewards[row], 0.0);
    }
    env.step();
    assert_eq!(env.get::<EpisodeClock>(1).step, 1);
}

#[test]
fn in_next_step_mode_a_reset_by_hand_comes_first() {
    let mut env = Env::started(&config_without_accidents(), mode(2, AutoReset::NextStep));
    env.step_ending(&[1]);
    env.reset_rows(&[1]);
    assert_eq!(env.buffers().terminated, [false, false]);
    env.step();
    assert_eq!(*env.get::<EpisodeClock>(1), EpisodeClock { step: 1, episode: 2 }, "it is not reset again");
}

#[test]
fn all_modes_play_the_same_episodes() {
    // What each row's observation, reward and end is in every step that it takes, whatever global step that is. A row's
    // actions follow its own steps, and there is no global timer.
    const STEPS: usize = 120;
    let mut config = config();
    config.events.shift_remove("gust");
    let play = |auto_reset| {
        let mut env = Env::started(&config, mode(4, auto_reset));
        let mut taken = [0u64; 4];
        let mut seen = vec![Vec::new(); 4];
        while seen.iter().any(|steps| steps.len() < STEPS) {
            let waiting: Vec<bool> =
                (0..4).map(|row| env.world.entity(env.entity(row)).contains::<AwaitingReset>()).collect();
            let actions: Vec<f32> = (0..4).flat_map(|row| crate::env::action(row, taken[row])).collect();
            env.try_step(&actions).unwrap();
            let mut ended = Vec::new();
            for row in 0..4 {
                if waiting[row] {
                    continue;
                }
                taken[row] += 1;
                let same = auto_reset == AutoReset::SameStep && env.done(row);
                let observation = if same { env.final_observation(0, row) } else { env.observation(0, row) };
                let buffers = env.buffers();
                let flags = (buffers.terminated[row], buffers.truncated[row]);
                seen[row].push(format!("{observation:?} {:?} {flags:?}", buffers.rewards[row]));
                if env.done(row) {
                    ended.push(row as u32);
                }
            }
            if auto_reset == AutoReset::Disabled {
                env.reset_rows(&ended);
            }
        }
        seen.iter_mut().for_each(|steps| steps.truncate(STEPS));
        seen
    };
    let expected = play(AutoReset::SameStep);
    assert!(expected.iter().flatten().filter(|step| step.contains("true")).count() > 8);
    assert_eq!(play(AutoReset::NextStep), expected);
    assert_eq!(play(AutoReset::Disabled), expected);
}

#[test]
fn without_automatic_resets_the_next_step_is_refused_until_rows_are_reset() {
    let config = config_without_accidents();
    let (mut env, mut twin) =
        (Env::started(&config, mode(20, AutoReset::Disabled)), Env::started(&config, options(20)));
    let all: Vec<usize> = (3..17).collect();
    env.step_ending(&all);
    twin.step_ending(&all);
    let before = env.snapshots();
    let error = env.try_step(&[0.0; 40]).unwrap_err();
    let StepError::AwaitingReset { count: 14, ref first } = error else { panic!("{error}") };
    assert_eq!(*first, (3..13).collect::<Vec<u32>>(), "the first ten");
    assert!(error.to_string().contains("14 rows") && error.to_string().contains("[3, 4, 5"), "{error}");
    assert_eq!(env.snapshots(), before, "nothing has changed");

    env.reset_rows(&(4..17).collect::<Vec<u32>>());
    assert!(matches!(env.try_step(&[0.0; 40]), Err(StepError::AwaitingReset { count: 1, first }) if first == [3]));
    env.reset_rows(&[3]);
    env.step();
    twin.step();
    for row in 0..20 {
        assert_eq!(env.episode_start(row), twin.episode_start(row), "row {row}");
        assert_eq!(env.buffers().rewards[row], twin.buffers().rewards[row], "row {row}");
    }
}

/// Three steps to a time-out, and a failure at the same time in row 1; row 2 fails at once.
fn three_ends() -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let late = termination_of(nothing, |row, ()| row.clock().step >= 3);
    let fails = termination_of(nothing, |row, ()| match row.row().0 {
        1 => row.clock().step >= 3,
        2 => true,
        _ => false,
    });
    config.terminations = [
        ("fails".into(), Entry::new(TerminationOptions::failure(), fails)),
        ("time_out".into(), Entry::new(TerminationOptions::time_out(), late)),
    ]
    .into();
    config
}

#[test]
fn time_outs_truncate_failures_terminate_and_both_may_happen_at_once() {
    // Reports: rsl_rl 20, UniLab 236: who bootstraps must be able to tell them apart.
    let mut env = Env::started(&three_ends(), options(3));
    let expected = [
        ([false, false, true], [false; 3], [0, 0, 1]),
        ([false, false, true], [false; 3], [0, 0, 1]),
        ([false, true, true], [true, true, false], [2, 3, 1]),
        ([false, false, true], [false; 3], [0, 0, 1]),
    ];
    for (terminated, truncated, terms) in expected {
        env.step();
        assert_eq!(env.buffers().terminated, terminated);
        assert_eq!(env.buffers().truncated, truncated);
        assert_eq!(env.buffers().termination_terms, terms);
        // The flags of the step stay although the rows were reset.
        for row in 0..3 {
            let termination = env.get::<Termination>(row);
            assert_eq!((termination.terminated, termination.truncated), (terminated[row], truncated[row]));
        }
    }
}

#[test]
fn the_flags_of_an_end_are_gone_in_the_next_step() {
    // Report: UniLab 126.
    let mut env = Env::started(&config_without_accidents(), options(3));
    env.step_ending(&[0, 1]);
    assert_eq!(env.buffers().terminated, [true, true, false]);
    env.step_ending(&[2]);
    assert_eq!(env.buffers().terminated, [false, false, true]);
    env.step();
    assert_eq!(env.buffers().terminated, [false; 3]);
    assert_eq!(env.buffers().termination_terms, [0; 3]);
}

#[test]
fn an_episode_of_half_a_second_has_25_control_steps() {
    let mut config = config();
    config.terminations.shift_remove("away");
    let mut env = Env::started(&config, options(2));
    for episode in 1..=3 {
        for step in 1..=25 {
            env.step();
            assert_eq!(env.buffers().truncated[0], step == 25, "episode {episode}, step {step}");
        }
    }
}
