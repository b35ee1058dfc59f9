//! Curricula: when they run, what they see, and what they change.

use std::sync::{Arc, Mutex};

use manege_components::Command;
use manege_systems::config::{CurriculumEntry, Entry, EnvironmentConfig};
use manege_systems::error::StepError;
use manege_systems::managers::curriculum::{
    CurriculumOptions, CurriculumTerm, PenaltyScaling, Progress, RangeSchedule, RangeStage, RewardWeightSchedule,
    WeightStage,
};
use manege_systems::managers::reward::{RewardManager, RewardOptions};
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{Made, config_without_accidents, made, nothing, reward_of};

const ROWS: usize = 4;

fn with(name: &str, entry: CurriculumEntry) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    config.curriculum = [(name.to_owned(), entry)].into();
    config
}

fn weight(env: &Env, reward: &str) -> f32 {
    let rewards = env.world.resource::<RewardManager>();
    let index = rewards.names().iter().position(|name| name == reward).expect("a reward");
    rewards.weights[index]
}

fn schedule(options: CurriculumOptions) -> EnvironmentConfig {
    let stages = vec![WeightStage { step: 3, weight: 0.5 }, WeightStage { step: 5, weight: 4.0 }];
    with("alive", Entry::new(options, RewardWeightSchedule { reward: "alive".to_owned(), stages }))
}

/// The weighted value of the reward `alive`, which is 1, in each of the next steps.
fn alive(env: &mut Env, steps: usize) -> Vec<f32> {
    (0..steps)
        .map(|_| {
            env.step();
            env.buffers().reward_terms[0]
        })
        .collect()
}

#[test]
fn a_schedule_that_runs_every_step_changes_the_weight_at_the_exact_step() {
    let mut env = Env::started(&schedule(CurriculumOptions::every_step()), options(ROWS));
    // Stages hold once 3 and 5 control steps are complete.
    assert_eq!(alive(&mut env, 7), [1.0, 1.0, 1.0, 0.5, 0.5, 4.0, 4.0]);
    assert_eq!(env.log("Curriculum/alive"), Some(4.0));
    assert!((env.buffers().rewards[0] - env.buffers().reward_terms[..3].iter().sum::<f32>() * 0.02).abs() < 1e-7);
}

#[test]
fn a_schedule_that_runs_at_resets_waits_for_one() {
    // Report: Isaac Lab issue 2079.
    let mut env = Env::started(&schedule(CurriculumOptions::at_resets()), options(ROWS));
    assert_eq!(env.log("Curriculum/alive"), Some(1.0), "the first reset reports the configured weight");
    assert_eq!(alive(&mut env, 6), [1.0; 6], "no row was reset");
    assert_eq!(env.log("Curriculum/alive"), None);
    env.step_ending(&[2]);
    assert_eq!(env.buffers().reward_terms[0], 1.0, "the step in which a row is reset still has the old weight");
    assert_eq!(env.log("Curriculum/alive"), Some(4.0));
    assert_eq!(alive(&mut env, 1), [4.0]);
}

#[test]
fn the_weight_changes_before_sums_are_cleared_but_after_they_are_earned() {
    let mut env = Env::started(&schedule(CurriculumOptions::at_resets()), options(ROWS));
    for _ in 0..3 {
        env.step();
    }
    env.step_ending(&[0]);
    // Four steps of weight 1, per second of an episode of 1000 s.
    let sum = env.log("Episode_Reward/alive").expect("a report");
    assert!((sum - 4.0 * 0.02 / 1000.0).abs() < 1e-9, "{sum}");
    assert_eq!(weight(&env, "alive"), 0.5);
}

#[test]
fn ranges_are_changed_by_name_and_hold_from_the_next_draw() {
    let stages = vec![RangeStage { step: 0, range: [2.0, 2.0] }, RangeStage { step: 2, range: [-7.0, -6.0] }];
    let range = "commands.twist.lin_vel_x".to_owned();
    let mut config = with("speed", Entry::new(CurriculumOptions::every_step(), RangeSchedule { range, stages }));
    config.commands["twist"].options.resampling_time = [1e6, 1e6];
    let mut env = Env::started(&config, options(ROWS));
    let speed = |env: &Env, row| env.get::<Command>(row).values[0];
    for _ in 0..3 {
        assert_eq!(speed(&env, 0), 2.0);
        env.step();
    }
    assert_eq!([env.log("Curriculum/speed/low"), env.log("Curriculum/speed/high")], [Some(-7.0), Some(-6.0)]);
    env.step_ending(&[1]);
    assert_eq!(speed(&env, 0), 2.0, "what was drawn is kept");
    assert!((-7.0..-6.0).contains(&speed(&env, 1)));
}

#[test]
fn unknown_names_and_senseless_stages_are_build_errors() {
    let at_resets = CurriculumOptions::at_resets;
    let weights = |reward: &str, stages: &[(u64, f32)]| {
        let stages = stages.iter().map(|&(step, weight)| WeightStage { step, weight }).collect();
        with("c", Entry::new(at_resets(), RewardWeightSchedule { reward: reward.to_owned(), stages }))
    };
    let ranges = |range: &str, low: f64, high: f64| {
        let stages = vec![RangeStage { step: 0, range: [low, high] }];
        with("c", Entry::new(at_resets(), RangeSchedule { range: range.to_owned(), stages }))
    };
    let scaling = |change: fn(&mut PenaltyScaling)| {
        let mut scaling = PenaltyScaling::default();
        change(&mut scaling);
        with("c", Entry::new(at_resets(), scaling))
    };
    for (config, parts) in [
        (weights("alife", &[(0, 1.0)]), ["did you mean `alive`", "curriculum term `c`"]),
        (weights("alive", &[]), ["stages", "none"]),
        (weights("alive", &[(5, 1.0), (5, 2.0)]), ["step 5", "does not come after"]),
        (weights("alive", &[(5, f32::NAN)]), ["step 5", "not finite"]),
        (ranges("commands.twist.lin_vel_xx", 0.0, 1.0), ["did you mean `commands.twist.lin_vel_x`", "lin_vel_y"]),
        (ranges("commands.twist.lin_vel_x", 1.0, 0.0), ["step 0", "empty range"]),
        (scaling(|scaling| scaling.initial = 0.5), ["range", "around 0.5"]),
        (scaling(|scaling| scaling.window_rows = 0.0), ["window_rows", "positive"]),
        (scaling(|scaling| scaling.grow = f64::NAN), ["grow", "NaN"]),
        (scaling(|scaling| scaling.short = 800.0), ["long", "750"]),
    ] {
        let text = Env::try_new(&config, options(1), |_, _, _| {}).err().expect("an error").to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

/// An environment with one reward, two penalties and a curriculum on them.
fn penalties(scaling: PenaltyScaling) -> EnvironmentConfig {
    let mut config = with("penalties", Entry::new(CurriculumOptions::at_resets(), scaling));
    let one = || reward_of(nothing, |_, ()| 1.0);
    config.rewards = [("bonus", 2.0), ("bad", -4.0), ("worse", -8.0)]
        .map(|(name, weight)| (name.to_owned(), Entry::new(RewardOptions::weight(weight), one())))
        .into();
    config
}

/// The average length and the scale, as reported.
fn scaling_report(env: &Env) -> (f64, f64) {
    let value = |key: &str| env.log(&format!("Curriculum/penalties/{key}")).expect("a report");
    (value("average_episode_length"), value("penalty_scale"))
}

#[test]
fn penalties_are_scaled_by_how_long_episodes_are() {
    // W = ⌊10 · 4 / 8⌋ = 5 episodes.
    let scaling = PenaltyScaling {
        initial: 0.5,
        range: [0.25, 0.75],
        window: 10.0,
        window_rows: 8.0,
        short: 2.0,
        long: 4.0,
        shrink: 0.5,
        grow: 1.25,
    };
    let mut env = Env::started(&penalties(scaling), options(ROWS));
    let weights = |env: &Env| ["bonus", "bad", "worse"].map(|name| weight(env, name));
    assert_eq!(weights(&env), [2.0, -2.0, -4.0], "scaled from the first step on");
    assert_eq!(scaling_report(&env), (0.0, 0.5), "a reset without episodes that ended changes nothing");
    env.step();
    assert_eq!(env.buffers().reward_terms[..3], [2.0, -2.0, -4.0]);

    for _ in 0..3 {
        env.step();
    }
    env.step_ending(&[0, 1, 2]);
    // Three episodes of 5 steps: 3/5 of the way from 0 to 5. Neither short nor long.
    let close = |(average, scale): (f64, f64), expected: (f64, f64)| {
        assert!((average - expected.0).abs() < 1e-12 && (scale - expected.1).abs() < 1e-12, "{average} {scale}");
    };
    close(scaling_report(&env), (3.0, 0.5));
    for _ in 0..9 {
        env.step();
    }
    env.step_ending(&[0, 3]);
    // Lengths 10 and 15: 2/5 of the way from 3 to 12.5. Long.
    close(scaling_report(&env), (6.8, 0.625));
    assert_eq!(weights(&env), [2.0, -2.5, -5.0]);
    env.step();
    env.step_ending(&[0, 1, 2, 3]);
    // Lengths 2, 12, 12 and 2: 4/5 of the way from 6.8 to 7. 0.625 × 1.25 is more than the greatest factor.
    close(scaling_report(&env), (0.2 * 6.8 + 0.8 * 7.0, 0.75));
    env.reset();
    close(scaling_report(&env), (6.96, 0.75));
    // Lengths of 1: 4/5 of the way to 1 each time. Short from the second time on, down to the least factor.
    for expected in [(2.192, 0.75), (1.2384, 0.375), (1.04768, 0.25), (1.009_536, 0.25)] {
        env.step_ending(&[0, 1, 2, 3]);
        close(scaling_report(&env), expected);
    }
    assert_eq!(weights(&env), [2.0, -1.0, -2.0]);
}

#[test]
fn the_window_of_penalty_scaling_follows_the_number_of_rows() {
    // W = max(1, ⌊1000 · 4 / 4096⌋) = 1: each reset replaces the average.
    let mut env = Env::started(&penalties(PenaltyScaling::default()), options(ROWS));
    env.step();
    env.step_ending(&[1]);
    assert_eq!(scaling_report(&env), (2.0, 0.125), "not below the least factor");
    // W = ⌊1000 · 9 / 4096⌋ = 2.
    let mut env = Env::started(&penalties(PenaltyScaling::default()), options(9));
    env.step();
    env.step_ending(&[1]);
    assert_eq!(scaling_report(&env), (1.0, 0.125));
}

#[test]
fn rows_that_end_in_the_step_before_count_as_ended() {
    for auto_reset in [AutoReset::NextStep, AutoReset::Disabled] {
        let mut env =
            Env::started(&penalties(PenaltyScaling::default()), RuntimeOptions { auto_reset, ..options(ROWS) });
        env.step();
        env.step_ending(&[3]);
        match auto_reset {
            AutoReset::NextStep => env.step(),
            _ => env.reset_rows(&[3]),
        }
        assert_eq!(scaling_report(&env), (2.0, 0.125), "{auto_reset:?}");
        env.reset_rows(&[0]);
        assert_eq!(scaling_report(&env), (2.0, 0.125), "a row reset in the middle of an episode does not count");
    }
}

/// What a curriculum saw at a reset: steps, rows, and row, length, end and sums of each episode.
type Seen = (u64, usize, Vec<(u32, u32, bool, Vec<f32>)>);

struct Spy {
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl CurriculumTerm for Spy {
    fn keys(&self) -> &[&'static str] {
        &["calls"]
    }

    fn start(&self, values: &mut [f64], _: &mut RewardManager) {
        values[0] = 100.0;
    }

    fn update(&self, values: &mut [f64], progress: &Progress<'_>, _: &mut RewardManager) {
        values[0] += 1.0;
        let episodes = progress.episodes().map(|episode| {
            let (view, sums) = (episode.view, episode.reward_sums.to_vec());
            (view.row().0, view.clock().step, episode.ended, sums)
        });
        self.seen.lock().unwrap().push((progress.steps, progress.rows, episodes.collect()));
    }
}

#[test]
fn a_curriculum_sees_the_episodes_before_anything_of_them_is_reset() {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let spy: Made<dyn CurriculumTerm> = {
        let seen = seen.clone();
        made(move |_| Ok(Box::new(Spy { seen: seen.clone() }) as Box<dyn CurriculumTerm>))
    };
    let mut config = with("spy", Entry::new(CurriculumOptions::at_resets(), spy));
    config.rewards.retain(|name, _| name == "alive");
    let mut env = Env::started(&config, options(3));
    let fresh = |row| (row, 0, false, vec![0.0]);
    assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<_>>(), [(0, 3, vec![fresh(0), fresh(1), fresh(2)])]);
    env.step();
    assert!(seen.lock().unwrap().is_empty());
    env.step_ending(&[2, 0]);
    let sum = 0.02f32 + 0.02;
    let ended = |row| (row, 2, true, vec![sum]);
    assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<_>>(), [(2, 3, vec![ended(0), ended(2)])]);
    env.reset_rows(&[1]);
    assert_eq!(seen.lock().unwrap().drain(..).collect::<Vec<_>>(), [(2, 3, vec![(1, 2, false, vec![sum])])]);
    assert_eq!(env.log("Curriculum/spy/calls"), Some(103.0));
}

#[test]
fn a_weight_that_is_not_finite_is_an_error_that_names_the_term() {
    struct Breaks;
    impl CurriculumTerm for Breaks {
        fn keys(&self) -> &[&'static str] {
            &[]
        }

        fn start(&self, _: &mut [f64], _: &mut RewardManager) {}

        fn update(&self, _: &mut [f64], progress: &Progress<'_>, rewards: &mut RewardManager) {
            if progress.steps > 0 {
                rewards.weights[1] = f32::INFINITY;
            }
        }
    }
    let term: Made<dyn CurriculumTerm> = made(|_| Ok(Box::new(Breaks) as Box<dyn CurriculumTerm>));
    let mut env = Env::started(&with("breaks", Entry::new(CurriculumOptions::every_step(), term)), options(1));
    env.step();
    let error = env.try_step(&[0.0; 2]).unwrap_err();
    assert!(
        matches!(&error, StepError::Curriculum { term, what, .. } if term == "breaks" && what == "height"),
        "{error}"
    );
    assert!(error.to_string().contains("`breaks` made height inf"), "{error}");
}
