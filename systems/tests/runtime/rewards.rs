//! Rewards: weights, the control period, and terms that are not finite.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use manege_components::{Reward, Row};
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::error::StepError;
use manege_systems::managers::reward::{RewardManager, RewardOptions, RewardTerm};

use crate::env::{Env, options};
use crate::terms::{Made, config_without_accidents, nothing, reward_of};

const ROWS: usize = 4;

/// A term that counts how often it is evaluated and gives 1, 2, 3, ... by row.
fn counting(calls: &Arc<AtomicUsize>) -> Made<dyn RewardTerm> {
    let calls = calls.clone();
    reward_of(nothing, move |row, ()| {
        calls.fetch_add(1, Ordering::Relaxed);
        row.row().0 as f32 + 1.0
    })
}

fn with_rewards<const K: usize>(rewards: [(&str, f32, Made<dyn RewardTerm>); K]) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let entries =
        rewards.map(|(name, weight, term)| (name.to_owned(), Entry::new(RewardOptions::weight(weight), term)));
    config.rewards = entries.into();
    config
}

#[test]
fn a_term_of_weight_zero_is_not_evaluated_until_its_weight_is_raised() {
    // Report: Isaac Lab PR 655 (such terms were dropped, and a curriculum could not raise them).
    let calls = Arc::default();
    let mut env = Env::started(&with_rewards([("counted", 0.0, counting(&calls))]), options(ROWS));
    for _ in 0..3 {
        env.step();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert_eq!(env.buffers().rewards, [0.0; ROWS]);
    assert_eq!(env.log("reward/counted"), Some(0.0));
    env.world.resource_mut::<RewardManager>().weights[0] = 0.5;
    env.step();
    assert_eq!(calls.load(Ordering::Relaxed), ROWS);
    assert_eq!(env.buffers().reward_terms, [0.5, 1.0, 1.5, 2.0]);
    for (row, reward) in env.buffers().rewards.iter().enumerate() {
        assert!((reward - 0.02 * 0.5 * (row as f32 + 1.0)).abs() < 1e-8);
    }
    assert!((env.log("reward/counted").unwrap() - 1.25).abs() < 1e-9);
    env.world.resource_mut::<RewardManager>().weights[0] = 0.0;
    env.step();
    assert_eq!(calls.load(Ordering::Relaxed), ROWS);
    assert_eq!(env.get::<Reward>(1).episode_sums[..], [0.02 * 0.5 * 2.0], "the sum keeps what was earned");
}

#[test]
fn the_total_is_the_weighted_sum_times_the_control_period() {
    let term = |value: f32| reward_of(nothing, move |row, ()| value + row.clock().step as f32);
    let config = with_rewards([("a", 2.0, term(0.5)), ("b", -1.0, term(3.0)), ("c", 0.25, term(-8.0))]);
    for (scaled, factor) in [(true, 0.02f32), (false, 1.0)] {
        let mut config = config.clone();
        config.scale_rewards_by_dt = scaled;
        let mut env = Env::started(&config, options(ROWS));
        let mut sums = [0.0f32; 3];
        for step in 1..=20 {
            env.step();
            let step = step as f32;
            let terms = [2.0 * (0.5 + step), -(3.0 + step), 0.25 * (step - 8.0)];
            assert_eq!(env.buffers().reward_terms[3..6], terms, "before the control period");
            let total: f32 = terms.iter().sum::<f32>() * factor;
            assert!((env.buffers().rewards[1] - total).abs() < 1e-5 * (1.0 + total.abs()));
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += term * factor;
            }
            for (have, want) in env.get::<Reward>(1).episode_sums.iter().zip(sums) {
                assert!((have - want).abs() < 1e-4 * (1.0 + want.abs()), "{have}, not {want}");
            }
        }
    }
}

#[test]
fn a_term_that_is_not_finite_ends_in_an_error_that_names_it_and_the_rows() {
    // Report: legged_lab 15.
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let good = reward_of(nothing, |_, ()| 1.0);
        let sick =
            reward_of(nothing, move |row, ()| if row.clock().step == 2 && row.row().0 % 2 == 1 { bad } else { 1.0 });
        let mut env = Env::started(&with_rewards([("good", 1.0, good), ("sick", 3.0, sick)]), options(ROWS));
        env.step();
        let error = env.try_step(&[0.0; 2 * ROWS]).unwrap_err();
        let StepError::NotFinite { manager: "reward", ref term, count: 2, ref first } = error else {
            panic!("{error}")
        };
        assert_eq!((term.as_str(), &first[..]), ("sick", &[Row(1), Row(3)][..]));
        let text = error.to_string();
        assert!(text.contains("reward term `sick`") && text.contains("2 rows"), "{text}");
        // What is not finite does not stay in the sums.
        env.step();
        for row in 0..ROWS {
            assert!(env.get::<Reward>(row).episode_sums.iter().all(|sum| sum.is_finite()));
            assert!((env.buffers().rewards[row] - 4.0 * 0.02).abs() < 1e-7);
        }
    }
}

#[test]
fn at_most_ten_rows_are_named() {
    let sick = reward_of(nothing, |row, ()| if row.row().0 >= 5 { f32::NAN } else { 0.0 });
    let mut env = Env::started(&with_rewards([("sick", 1.0, sick)]), options(40));
    let error = env.try_step(&[0.0; 80]).unwrap_err();
    let StepError::NotFinite { count: 35, first, .. } = error else { panic!("{error}") };
    assert_eq!(first, (5..15).map(Row).collect::<Vec<_>>());
}

#[test]
fn a_weighted_value_beyond_single_precision_is_an_error_too() {
    let large = reward_of(nothing, |_, ()| 3e38);
    let mut env = Env::started(&with_rewards([("large", 100.0, large)]), options(ROWS));
    let error = env.try_step(&[0.0; 2 * ROWS]).unwrap_err();
    assert!(error.to_string().contains("reward term `large`"), "{error}");
}
