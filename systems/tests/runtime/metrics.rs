//! Metrics: what is sampled, how an episode's samples are reduced, and when they are reported.

use manege_components::Metrics;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{Entry, EnvironmentConfig, MetricEntry, PhysicsConfig, TermParams};
use manege_systems::error::StepError;
use manege_systems::managers::event::EventOptions;
use manege_systems::managers::metrics::{MetricOptions, MetricTerm, Reduce, metric, state_metric};
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;
use serde::{Deserialize, Serialize};

use crate::env::{Env, options};
use crate::terms::{Made, config_without_accidents, event, made};

const ROWS: usize = 5;

/// The control steps that the row has completed in its episode, and ten times its index.
fn steps_and_row() -> Made<dyn MetricTerm> {
    made(|_| Ok(metric(|row| row.clock().step as f32 + 10.0 * row.row().0 as f32)))
}

fn reduced(reduce: Reduce) -> MetricEntry {
    Entry::new(MetricOptions::reduce(reduce), steps_and_row())
}

fn with_metrics<const K: usize>(metrics: [(&str, MetricEntry); K]) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    config.metrics = metrics.map(|(name, entry)| (name.to_owned(), entry)).into();
    config
}

fn all_reductions() -> EnvironmentConfig {
    with_metrics([
        ("mean", reduced(Reduce::Mean)),
        ("last", reduced(Reduce::Last)),
        ("max", reduced(Reduce::Max)),
        ("sum", reduced(Reduce::Sum)),
    ])
}

fn report(env: &Env) -> [Option<f64>; 4] {
    ["mean", "last", "max", "sum"].map(|name| env.log(&format!("Episode_Metrics/{name}")))
}

#[test]
fn each_reduction_is_reported_for_the_rows_that_are_reset_and_forgotten() {
    let mut env = Env::started(&all_reductions(), options(ROWS));
    assert_eq!(report(&env), [None; 4], "rows that took no step have nothing to report");
    for _ in 0..3 {
        env.step();
        assert_eq!(report(&env), [None; 4]);
    }
    env.step_ending(&[1, 3]);
    // Rows 1 and 3 sampled 1..=4 plus 10 and 30: means over the two rows.
    assert_eq!(report(&env), [Some(22.5), Some(24.0), Some(24.0), Some(90.0)]);
    assert_eq!(*env.get::<Metrics>(1), Metrics::zeros(4));
    assert_eq!(env.get::<Metrics>(0).samples[..], [4; 4]);
    env.step();
    env.step_ending(&[1]);
    assert_eq!(report(&env), [Some(11.5), Some(12.0), Some(12.0), Some(23.0)], "only the new episode counts");
    assert_eq!(env.get::<Metrics>(0).values[..], [21.0, 6.0, 6.0, 21.0]);
}

#[test]
fn the_greatest_sample_may_be_negative_and_come_first() {
    let falling = made(|_| Ok(metric(|row| -2.0 - row.clock().step as f32)));
    let mut env =
        Env::started(&with_metrics([("max", Entry::new(MetricOptions::reduce(Reduce::Max), falling))]), options(1));
    env.step();
    env.step();
    env.step_ending(&[0]);
    assert_eq!(env.log("Episode_Metrics/max"), Some(-3.0));
}

#[test]
fn rows_that_sit_a_step_out_are_not_sampled() {
    let mut env = Env::started(&all_reductions(), RuntimeOptions { auto_reset: AutoReset::NextStep, ..options(2) });
    env.step();
    env.step_ending(&[1]);
    assert_eq!(report(&env), [None; 4]);
    env.step();
    assert_eq!(report(&env), [Some(11.5), Some(12.0), Some(12.0), Some(23.0)]);
    assert_eq!(env.get::<Metrics>(0).samples[..], [3; 4]);
    assert_eq!(env.get::<Metrics>(1).samples[..], [0; 4]);
}

/// The height of the root, sampled as the options say.
fn height(options: MetricOptions) -> MetricEntry {
    Entry::new(options, made(|context| state_metric(context, |state| state.qpos[2] as f32)))
}

#[test]
fn a_metric_per_substep_has_a_sample_after_every_physics_step() {
    let per_substep = |reduce| height(MetricOptions::reduce(reduce).per_substep());
    let mut config = with_metrics([
        ("mean", per_substep(Reduce::Mean)),
        ("last", per_substep(Reduce::Last)),
        ("max", per_substep(Reduce::Max)),
        ("sum", per_substep(Reduce::Sum)),
    ]);
    let lift = event(|row| row.staged.qpos_mut()[2] = 5.0);
    config.events = [("lift".into(), Entry::new(EventOptions::reset(), lift))].into();
    let mut env = Env::started(&config, options(3));
    for _ in 0..4 {
        env.try_step(&[0.0; 6]).expect("a step");
    }
    // The arms are held in their pose, so the box falls freely: after k physics steps of h seconds, semi-implicit, by
    // g·h²·k(k+1)/2. Four control steps are 16 of them.
    let height = |k: u32| 5.0 - 9.81 * 0.005 * 0.005 * f64::from(k * (k + 1)) / 2.0;
    let sum: f64 = (1..=16).map(height).sum();
    let metrics = env.get::<Metrics>(1);
    assert_eq!(metrics.samples[..], [16; 4]);
    for (value, expected) in metrics.values.iter().zip([sum, height(16), height(1), sum]) {
        assert!((f64::from(*value) - expected).abs() < 2e-5, "{value} {expected}");
    }
}

#[test]
fn a_metric_per_substep_has_the_samples_of_a_finer_control_step() {
    // The targets are constant, so that control steps of 4 physics steps and of 1 take the same path.
    let targets = vec![0.3; 6];
    let run = |control_period: f64, per_substep: bool, steps: usize| {
        let options_of = |reduce| {
            let options = MetricOptions::reduce(reduce);
            if per_substep { options.per_substep() } else { options }
        };
        let mut config = with_metrics([
            ("sum", height(options_of(Reduce::Sum))),
            ("max", height(options_of(Reduce::Max))),
            ("last", height(options_of(Reduce::Last))),
        ]);
        config.physics.control_period = control_period;
        config.events.shift_remove("push");
        config.events.shift_remove("gust");
        let mut env = Env::started(&config, options(3));
        for _ in 0..steps {
            env.try_step(&targets).expect("a step");
        }
        (0..3).map(|row| env.get::<Metrics>(row).clone()).collect::<Vec<_>>()
    };
    let coarse = run(0.02, true, 10);
    assert_eq!(coarse[0].samples[..], [40; 3]);
    for (coarse, fine) in coarse.iter().zip(run(0.005, false, 40)) {
        assert_eq!(coarse.samples, fine.samples);
        assert_eq!(coarse.values[1..], fine.values[1..]);
        // Summed in another order.
        assert!((coarse.values[0] - fine.values[0]).abs() < 1e-4, "{coarse:?} {fine:?}");
    }
    // With one physics step in a control step, both rates are the same.
    assert_eq!(run(0.005, true, 40), run(0.005, false, 40));
}

#[test]
fn only_terms_of_positions_and_velocities_can_be_sampled_within_the_control_step() {
    let per_substep = Entry::new(MetricOptions::reduce(Reduce::Mean).per_substep(), steps_and_row());
    let mut config = with_metrics([("height", per_substep)]);
    let error = Env::try_new(&config, options(1), |_, _, _| {}).err().expect("an error");
    assert!(matches!(error, BuildError::Config(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("metrics.height.per_substep") && text.contains("4 physics steps"), "{text}");
    config.physics.control_period = config.physics.timestep;
    let mut env = Env::started(&config, options(1));
    env.step();
    assert_eq!(env.get::<Metrics>(0).values[..], [1.0]);
}

#[test]
fn a_sample_that_is_not_finite_names_the_term_and_the_rows() {
    let bad = made(|_| Ok(metric(|row| if row.row().0 == 2 { f32::NAN } else { 1.0 })));
    let config =
        with_metrics([("good", reduced(Reduce::Sum)), ("bad", Entry::new(MetricOptions::reduce(Reduce::Max), bad))]);
    let mut env = Env::started(&config, options(ROWS));
    let error = env.try_step(&[0.0; 2 * ROWS]).unwrap_err();
    let StepError::NotFinite { manager: "metric", term, count: 1, first } = &error else { panic!("{error:?}") };
    assert_eq!((term.as_str(), first[0].0), ("bad", 2));
    assert_eq!(env.get::<Metrics>(0).values[..], [1.0, 1.0], "the other rows have their samples");
    assert_eq!(env.get::<Metrics>(2).samples[..], [1, 0]);
}

/// A metric that a file can describe.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constant {
    value: f32,
}

impl TermParams<dyn MetricTerm> for Constant {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn MetricTerm>, BuildError> {
        let value = self.value;
        Ok(metric(move |_| value))
    }
}

#[test]
fn metrics_are_configured_by_key() {
    let constant = || Entry::new(MetricOptions::reduce(Reduce::Mean), Constant { value: 1.5 });
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, 0.02), 1.0);
    config.metrics = ["mean", "last", "max"].map(|name| (name.to_owned(), constant())).into();
    let changes = "mean = { reduce = \"sum\", value = 2 }\nlast.enabled = false\nmax.per_substep = true";
    config
        .apply(&toml::Table::from_iter([("metrics".to_owned(), changes.parse::<toml::Table>().unwrap().into())]))
        .unwrap();
    assert!(config.metrics["max"].options.per_substep);
    config.metrics["max"].options.per_substep = false;
    let mut env = Env::started(&config, options(1));
    env.try_step(&[]).unwrap();
    env.try_step(&[]).unwrap();
    env.reset();
    assert_eq!(report(&env), [Some(4.0), None, Some(1.5), None]);
    let error = config.apply(&"metrics.mean.reduse = \"sum\"".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("metrics.mean.reduse") && error.contains("did you mean `reduce`"), "{error}");
}
