//! The observation pipeline: order of stages, noise, delays, histories, what is not finite.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use manege_components::{ObservationHistory, Row};
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{Entry, EnvironmentConfig, PerColumn, TermParams};
use manege_systems::error::StepError;
use manege_systems::managers::observation::{
    Delay, GroupConfig, GroupOptions, NanPolicy, Noise, NoiseOperation, ObservationOptions, ObservationTerm,
    observation,
};
use proptest::prelude::*;

use crate::env::{Env, options};
use crate::terms::{Made, config_without_accidents, nothing, observation_of};

type Terms = Vec<(&'static str, ObservationOptions, Made<dyn ObservationTerm>)>;

/// What a row sees in a step of an episode: different for each, and told at a glance.
pub fn frame(row: usize, episode: u32, step: u32) -> [f32; 2] {
    let value = (1000 * row) as f32 + (100 * episode) as f32 + step as f32;
    [value, -value]
}

pub fn clock() -> Made<dyn ObservationTerm> {
    observation_of(2, nothing, |row, (), out| {
        out.copy_from_slice(&frame(row.row().index(), row.clock().episode, row.clock().step));
    })
}

fn with_groups(groups: Vec<(&str, GroupOptions, Terms)>) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    config.observations = groups
        .into_iter()
        .map(|(name, options, terms)| {
            let terms = terms.into_iter().map(|(name, options, term)| (name.to_owned(), Entry::new(options, term)));
            (name.to_owned(), GroupConfig { options, terms: terms.collect() })
        })
        .collect();
    config
}

fn with_terms(terms: Terms) -> EnvironmentConfig {
    with_groups(vec![("policy", GroupOptions { corruption: true, ..GroupOptions::default() }, terms)])
}

fn plain() -> ObservationOptions {
    ObservationOptions::default()
}

#[test]
fn noise_comes_before_clip_and_clip_before_scale() {
    let noise = Noise::Constant { value: 10.0, operation: NoiseOperation::Add };
    let each = ObservationOptions { scale: PerColumn::Each(vec![2.0, -3.0]), ..plain() };
    let config = with_terms(vec![
        ("all", plain().noise(noise.clone()).clip(-50.0, 105.0).scale(2.0), clock()),
        ("each", each, clock()),
        ("factor", plain().noise(Noise::Constant { value: 3.0, operation: NoiseOperation::Scale }), clock()),
        ("instead", plain().noise(Noise::Constant { value: 7.0, operation: NoiseOperation::Abs }), clock()),
    ]);
    let env = Env::started(&config, options(1));
    // The frame is (100, -100): 110 is clipped to 105 and doubled, -90 is clipped to -50 and doubled.
    assert_eq!(env.term(0, 0, "all"), [210.0, -100.0]);
    assert_eq!(env.term(0, 0, "each"), [200.0, 300.0]);
    assert_eq!(env.term(0, 0, "factor"), [300.0, -300.0]);
    assert_eq!(env.term(0, 0, "instead"), [7.0, 7.0]);
}

#[test]
fn histories_run_from_oldest_to_newest_and_begin_full_of_the_first_frame() {
    // Reports: DACBench 94 and rl_sar 177 (histories that keep frames of the last episode, or begin with zeros).
    let mut env = Env::started(&with_terms(vec![("seen", plain().history(3), clock())]), options(2));
    let seen = |env: &Env, frames: [(u32, u32); 3]| {
        let expected: Vec<f32> = frames.iter().flat_map(|&(episode, step)| frame(1, episode, step)).collect();
        assert_eq!(env.term(0, 1, "seen"), expected);
    };
    seen(&env, [(1, 0), (1, 0), (1, 0)]);
    env.step();
    seen(&env, [(1, 0), (1, 0), (1, 1)]);
    env.step();
    env.step();
    seen(&env, [(1, 1), (1, 2), (1, 3)]);
    env.step_ending(&[1]);
    assert_eq!(env.final_observation(0, 1)[4..], frame(1, 1, 4));
    seen(&env, [(2, 0), (2, 0), (2, 0)]);
    assert_eq!(env.term(0, 0, "seen")[4..], frame(0, 1, 4), "the other row goes on");
}

#[test]
fn looking_at_an_observation_does_not_advance_it() {
    // Reports: IsaacLab 2884, 2942 (a recorder that reads pushes the history twice).
    let config = with_terms(vec![("seen", plain().history(2).delay(Delay::steps(1, 2)), clock())]);
    let mut env = Env::started(&config, options(1));
    env.step();
    let once = (env.observation(0, 0), env.get::<ObservationHistory>(0).clone());
    for _ in 0..3 {
        assert_eq!((env.observation(0, 0), env.get::<ObservationHistory>(0).clone()), once);
    }
}

#[test]
fn a_fixed_delay_counts_control_steps() {
    // Report: mjlab 366 (control steps confused with physics steps; this environment has four of them in one).
    let mut env = Env::started(&with_terms(vec![("seen", plain().delay(Delay::steps(2, 2)), clock())]), options(1));
    for step in 0..6u32 {
        assert_eq!(env.term(0, 0, "seen"), frame(0, 1, step.saturating_sub(2)), "step {step}");
        env.step();
    }
    env.step_ending(&[0]);
    assert_eq!(env.term(0, 0, "seen"), frame(0, 2, 0), "nothing of the old episode is seen in the new one");
}

#[test]
fn a_drawn_delay_stays_in_its_range_and_takes_every_value() {
    let per_row = |per_row| Delay { per_row, ..Delay::steps(1, 3) };
    let held = Delay { hold_probability: 1.0, ..Delay::steps(1, 3) };
    let slow = Delay { update_period: 10, ..Delay::steps(0, 3) };
    let config = with_terms(vec![
        ("own", plain().delay(per_row(true)), clock()),
        ("shared", plain().delay(per_row(false)), clock()),
        ("held", plain().delay(held), clock()),
        ("slow", plain().delay(slow), clock()),
    ]);
    let rows = 12;
    let mut env = Env::started(&config, options(rows));
    let mut lags = [0usize; 4];
    let mut apart = false;
    let mut kept = Vec::new();
    let mut slow_changes = 0;
    let mut slow_before = 0.0;
    for step in 1..=40u32 {
        env.step();
        let lag = |name: &str, row: usize| frame(row, 1, step)[0] - env.term(0, row, name)[0];
        let own: Vec<f32> = (0..rows).map(|row| lag("own", row)).collect();
        if step == 3 {
            kept = (0..rows).map(|row| lag("held", row)).collect();
        }
        for row in 0..rows {
            if step >= 3 {
                assert!((1.0..=3.0).contains(&own[row]), "step {step}: {own:?}");
                lags[own[row] as usize] += 1;
            }
            assert_eq!(lag("shared", row), lag("shared", 0), "all rows share it");
            if step > 3 {
                assert_eq!(lag("held", row), kept[row], "a lag that is always kept stays what it was drawn as");
            }
        }
        apart |= own.iter().any(|lag| *lag != own[0]);
        slow_changes += usize::from(lag("slow", 0) != slow_before && step > 4);
        slow_before = lag("slow", 0);
    }
    assert!(apart, "rows draw lags of their own");
    assert!(lags[0] == 0 && lags[1..].iter().all(|&count| count > 100), "{lags:?}");
    assert!(slow_changes <= 4, "a lag drawn every 10 steps changed {slow_changes} times in 40");
}

#[test]
fn groups_have_noise_of_their_own_on_a_shared_value() {
    // Report: mjlab changelog (one noise for a term of two groups, critics disturbed).
    let term = clock();
    let noisy = || plain().noise(Noise::uniform(1.0));
    let group = |corruption| GroupOptions { corruption, ..GroupOptions::default() };
    let config = with_groups(vec![
        ("policy", group(true), vec![("seen", noisy(), term.clone())]),
        ("second", group(true), vec![("seen", noisy(), term.clone())]),
        ("critic", group(false), vec![("seen", noisy(), term.clone())]),
    ]);
    let rows = 50;
    let mut env = Env::started(&config, options(rows));
    let (mut sum, mut product, mut square) = (0.0, 0.0, 0.0);
    for step in 1..=20 {
        env.step();
        for row in 0..rows {
            let clean = frame(row, 1, step);
            assert_eq!(env.term(2, row, "seen"), clean);
            for (component, clean) in clean.iter().enumerate() {
                let [a, b] = [0, 1].map(|group| env.term(group, row, "seen")[component] - clean);
                // A frame of up to 50,000 in single precision leaves noise with steps of 1/256.
                assert!(a.abs() <= 1.01 && b.abs() <= 1.01);
                sum += a;
                square += a * a;
                product += a * b;
            }
        }
    }
    let count = (rows * 20 * 2) as f32;
    assert!((sum / count).abs() < 0.05, "mean {}", sum / count);
    assert!((square / count - 1.0 / 3.0).abs() < 0.03, "variance {}", square / count);
    assert!((product / count).abs() < 0.03, "groups are independent: {}", product / count);
}

#[test]
fn a_bias_differs_between_components_and_rows_and_lasts_an_episode() {
    // Report: IsaacLab 2759 (one bias for all components).
    let zero = observation_of(3, nothing, |_, (), out| out.fill(0.0));
    let noise = Noise::UniformBias { min: -1.0, max: 1.0 };
    let mut env = Env::started(&with_terms(vec![("seen", plain().noise(noise), zero)]), options(2));
    let first = env.term(0, 0, "seen");
    assert!(first[0] != first[1] && first[1] != first[2] && first.iter().all(|bias| bias.abs() < 1.0));
    assert_ne!(first, env.term(0, 1, "seen"));
    for _ in 0..5 {
        env.step();
        assert_eq!(env.term(0, 0, "seen"), first);
    }
    env.step_ending(&[0]);
    assert_ne!(env.term(0, 0, "seen"), first);
}

#[test]
fn a_term_that_groups_share_is_computed_once_per_row() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let term = observation_of(1, nothing, move |_, (), out| {
        out[0] = 1.0;
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let group = || vec![("seen", plain(), term.clone())];
    let options_of = GroupOptions::default;
    let config = with_groups(vec![("a", options_of(), group()), ("b", options_of(), group())]);
    let mut env = Env::started(&config, options(7));
    let before = count.load(Ordering::Relaxed);
    env.step();
    assert_eq!(count.load(Ordering::Relaxed) - before, 7);
}

/// Two types of the same name and with the same parameters, as two crates may have them.
mod one {
    use super::*;

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    pub struct Number {}

    impl TermParams<dyn ObservationTerm> for Number {
        fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
            Ok(observation(1, |_, out| out[0] = 1.0))
        }
    }
}

mod two {
    use super::*;

    #[derive(Clone, serde::Serialize, serde::Deserialize)]
    pub struct Number {}

    impl TermParams<dyn ObservationTerm> for Number {
        fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
            Ok(observation(1, |_, out| out[0] = 2.0))
        }
    }
}

#[test]
fn terms_of_different_types_are_not_shared_although_they_are_called_the_same() {
    let mut config = with_terms(vec![]);
    let terms = &mut config.observations["policy"].terms;
    terms.insert("first".into(), Entry::new(plain(), one::Number {}));
    terms.insert("second".into(), Entry::new(plain(), two::Number {}));
    assert_eq!(terms["first"].term.kind(), terms["second"].term.kind());
    assert_eq!(Env::started(&config, options(1)).observation(0, 0), [1.0, 2.0]);
}

#[test]
fn a_lag_is_drawn_from_its_range_at_once_however_seldom_it_is_drawn_again() {
    let seldom = |per_row| Delay { per_row, update_period: 7, hold_probability: 0.9, ..Delay::steps(2, 3) };
    for per_row in [true, false] {
        let config = with_terms(vec![("seen", plain().delay(seldom(per_row)), clock())]);
        let mut env = Env::started(&config, options(4));
        // Resets fall into the middle of a period.
        for (episode, ends) in [(1, 5), (2, 4), (3, 20)] {
            for step in 1..=ends {
                if episode < 3 && step == ends {
                    env.step_ending(&[0, 1, 2, 3]);
                    break;
                }
                env.step();
                for row in 0..4 {
                    let lag = frame(row, episode, step)[0] - env.term(0, row, "seen")[0];
                    let range = 2.0_f32.min(step as f32)..=3.0_f32.min(step as f32);
                    assert!(range.contains(&lag), "row {row}, episode {episode}, step {step}: lag {lag}");
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_behind_a_delay_is_an_error_at_once_and_is_never_seen() {
    let sick = observation_of(1, nothing, |row, (), out| out[0] = if row.clock().step == 4 { f32::NAN } else { 1.0 });
    for looks_back in [plain().delay(Delay::steps(2, 2)), plain().delay(Delay::steps(2, 2)).history(3)] {
        let group = GroupOptions::default();
        let config = with_groups(vec![("policy", group, vec![("sick", looks_back, sick.clone())])]);
        let mut env = Env::started(&config, options(2));
        for step in 1..=12 {
            let result = env.try_step(&[0.0; 4]);
            if step == 4 {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("observation term `policy/sick`") && error.contains("2 rows"), "{error}");
            } else {
                result.unwrap_or_else(|error| panic!("step {step}: {error}"));
            }
            assert!(env.observation(0, 1).iter().all(|value| value.is_finite()), "step {step}");
        }
    }
}

/// A term that is not finite in rows 2 and above, from the second step of every episode on.
fn sick() -> Made<dyn ObservationTerm> {
    observation_of(2, nothing, |row, (), out| {
        out.copy_from_slice(&[1.0, if row.row().0 >= 2 && row.clock().step >= 2 { f32::NAN } else { 2.0 }]);
    })
}

fn with_policy(nan_policy: NanPolicy, options: ObservationOptions) -> EnvironmentConfig {
    let group = GroupOptions { nan_policy, ..GroupOptions::default() };
    with_groups(vec![("policy", group, vec![("well", plain(), clock()), ("sick", options, sick())])])
}

#[test]
fn what_is_not_finite_is_an_error_that_names_term_and_rows() {
    // Report: IsaacLab 673 and others (a run that dies without saying of what).
    for looks_back in [plain(), plain().history(2)] {
        let mut env = Env::started(&with_policy(NanPolicy::Error, looks_back), options(15));
        env.step();
        let error = env.try_step(&[0.0; 30]).unwrap_err();
        let StepError::NotFinite { manager: "observation", term, count: 13, first } = error else { panic!("{error}") };
        assert_eq!(term, "policy/sick");
        assert_eq!(first, (2..12).map(Row).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_finite_becomes_zero_where_asked_and_never_enters_a_history() {
    for policy in [NanPolicy::Sanitize, NanPolicy::Warn] {
        let mut env = Env::started(&with_policy(policy, plain().history(2)), options(3));
        env.step();
        env.step();
        assert_eq!(env.term(0, 2, "sick"), [1.0, 2.0, 1.0, 0.0]);
        assert_eq!(env.term(0, 1, "sick"), [1.0, 2.0, 1.0, 2.0]);
        assert!(env.get::<ObservationHistory>(2).history.iter().all(|value| value.is_finite()));
    }
    let mut env = Env::started(&with_policy(NanPolicy::Off, plain()), options(3));
    env.step();
    env.step();
    assert!(env.term(0, 2, "sick")[1].is_nan());
}

#[test]
fn options_that_make_no_sense_are_build_errors_that_name_the_term() {
    let bad = [
        (plain().clip(1.0, -1.0), "empty range"),
        (plain().scale(f32::NAN), "scale"),
        (ObservationOptions { scale: PerColumn::Each(vec![1.0]), ..plain() }, "1 factors for 2 values"),
        (plain().delay(Delay::steps(3, 1)), "lags 3 to 1"),
        (plain().delay(Delay { hold_probability: 1.5, ..Delay::steps(0, 1) }), "no probability"),
        (plain().delay(Delay { update_period: 0, ..Delay::steps(0, 1) }), "at least 1"),
        (plain().history(1_000_000), "history_length"),
        (plain().noise(Noise::gaussian(-1.0)), "noise"),
    ];
    for (options_of, expected) in bad {
        let config = with_terms(vec![("seen", options_of, clock())]);
        let error = match Env::try_new(&config, options(1), |_, _, _| {}) {
            Ok(_) => panic!("{expected}: it was built"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("policy/seen") && error.contains(expected), "{error}");
    }
}

/// A term's frames as a plain list would keep them.
#[derive(Default)]
pub struct Model {
    frames: Vec<[f32; 2]>,
    history: VecDeque<[f32; 2]>,
}

impl Model {
    /// The frames that are seen after one more, oldest first.
    pub fn see(&mut self, frame: [f32; 2], lag: usize, history: usize) -> Vec<f32> {
        self.frames.push(frame);
        let seen = self.frames[self.frames.len() - 1 - lag.min(self.frames.len() - 1)];
        if history == 0 {
            return seen.to_vec();
        }
        if self.history.is_empty() {
            self.history.extend(vec![seen; history]);
        } else {
            self.history.pop_front();
            self.history.push_back(seen);
        }
        self.history.iter().flatten().copied().collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Report: IsaacLab 2460, 1208 (wrong widths where options are combined).
    #[test]
    fn any_combination_of_delay_and_history_equals_plain_lists(
        terms in prop::collection::vec((0usize..4, 0usize..5, prop::bool::ANY), 1..4),
        group_history in prop::option::of(1u32..4),
        resets in prop::collection::vec(0usize..6, 12),
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let rows = 3;
        let options_of = |&(lag, history, delayed): &(usize, usize, bool)| {
            let options = plain().history(history as u32);
            if delayed { options.delay(Delay::steps(lag as u32, lag as u32)) } else { options }
        };
        let listed: Terms = terms.iter().zip(NAMES).map(|(term, name)| (name, options_of(term), clock())).collect();
        let group = GroupOptions { history_length: group_history, ..GroupOptions::default() };
        let mut env = Env::new(&with_groups(vec![("policy", group, listed)]), options(rows));
        env.reset();

        let mut models: Vec<Vec<Model>> = (0..rows).map(|_| terms.iter().map(|_| Model::default()).collect()).collect();
        let mut clocks = vec![(1u32, 0u32); rows];
        let mut check = |env: &Env, clocks: &[(u32, u32)], fresh: &[usize]| {
            for (row, models) in models.iter_mut().enumerate() {
                let (episode, step) = clocks[row];
                let mut expected = Vec::new();
                for (model, (lag, history, delayed)) in models.iter_mut().zip(&terms) {
                    if fresh.contains(&row) {
                        *model = Model::default();
                    }
                    let history = group_history.map_or(*history, |length| length as usize);
                    expected.extend(model.see(frame(row, episode, step), if *delayed { *lag } else { 0 }, history));
                }
                assert_eq!(env.observation(0, row), expected, "row {row}, step {step}");
            }
        };
        check(&env, &clocks, &[0, 1, 2]);
        for ending in resets {
            // 3, 4 and 5 end no episode.
            if ending < rows { env.step_ending(&[ending]) } else { env.step() }
            for (row, clock) in clocks.iter_mut().enumerate() {
                *clock = if row == ending { (clock.0 + 1, 0) } else { (clock.0, clock.1 + 1) };
            }
            let fresh: Vec<usize> = (ending < rows).then_some(ending).into_iter().collect();
            check(&env, &clocks, &fresh);
        }
    }
}
