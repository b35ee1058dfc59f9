//! Whole environments made at random: what builds steps, shows finite numbers of the widths that it says, and does the
//! same again.

mod generated;
mod senseless;

use std::hash::{DefaultHasher, Hash, Hasher};

use generated::{Generated, Traced, environment};
use manege_components::{AwaitingReset, Command, EpisodeClock, Metrics, Reward, RobotState, Row, StreamId, Streams};
use manege_systems::log::StepLog;
use manege_systems::managers::action::{ActionInput, ActionManager};
use manege_systems::managers::observation::{FinalObservations, ObservationBuffers, ObservationManager};
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;
use proptest::prelude::*;

use crate::env::Env;
use crate::observations::{Model, frame};

/// What the traced terms of a row must show, from plain lists.
struct Reference {
    traced: Vec<Traced>,
    /// For each row: the episode that its lists are of, and a list for each term.
    rows: Vec<(u32, Vec<Model>)>,
}

impl Reference {
    fn new(generated: &Generated) -> Self {
        Self { traced: generated.traced.clone(), rows: (0..generated.options.rows).map(|_| (0, Vec::new())).collect() }
    }

    /// Follows rows that were just observed, and compares. Others have kept what they showed.
    fn check(&mut self, env: &Env, observed: impl Fn(usize) -> bool) {
        for (row, (episode, models)) in self.rows.iter_mut().enumerate().filter(|(row, _)| observed(*row)) {
            let clock = *env.get::<EpisodeClock>(row);
            if *episode != clock.episode {
                (*episode, *models) = (clock.episode, self.traced.iter().map(|_| Model::default()).collect());
            }
            let mut expected = Vec::new();
            for (model, Traced { clip, scale, lag, history }) in models.iter_mut().zip(&self.traced) {
                let value = frame(row, clock.episode, clock.step).map(|value| value.clamp(clip[0], clip[1]) * scale);
                expected.extend(model.see(value, *lag, *history));
            }
            assert_eq!(env.observation(0, row), expected, "row {row}, {clock:?}");
        }
    }
}

/// The widths that managers tell are those of the buffers, and what the configuration makes them.
fn check_widths(env: &Env, generated: &Generated) {
    let rows = env.rows;
    let (observed, last) = (env.world.resource::<ObservationBuffers>(), env.world.resource::<FinalObservations>());
    let manager = env.world.resource::<ObservationManager>();
    assert_eq!(manager.groups().count(), generated.widths.len());
    for (index, (group, widths)) in manager.groups().zip(&generated.widths).enumerate() {
        let columns: Vec<_> = group.terms().map(|term| term.columns()).collect();
        assert_eq!(columns.iter().map(|columns| columns.len()).collect::<Vec<_>>(), *widths);
        let mut end = 0;
        for columns in columns {
            assert_eq!(columns.start, end);
            end = columns.end;
        }
        assert_eq!(group.width(), end);
        assert_eq!((observed.group(index).len(), last.group(index).len()), (rows * end, rows * end));
    }
    let buffers = env.buffers();
    assert_eq!(buffers.reward_terms.len(), rows * generated.config.rewards.len());
    for length in [buffers.rewards.len(), buffers.terminated.len(), buffers.truncated.len(), buffers.diverged.len()] {
        assert_eq!(length, rows);
    }
    let actions = env.world.resource::<ActionManager>();
    assert_eq!(actions.width(), if generated.config.actions.is_empty() { 0 } else { 2 });
    assert_eq!(env.world.resource::<ActionInput>().values.len(), rows * actions.width());
}

fn check_finite(env: &Env) {
    let all = |what: &str, values: &[f32]| assert!(values.iter().all(|value| value.is_finite()), "{what}: {values:?}");
    for group in 0..env.world.resource::<ObservationManager>().groups().count() {
        all("observation", env.world.resource::<ObservationBuffers>().group(group));
        all("final observation", env.world.resource::<FinalObservations>().group(group));
    }
    all("rewards", &env.buffers().rewards);
    all("reward terms", &env.buffers().reward_terms);
    for row in 0..env.rows {
        all("episode sums", &env.get::<Reward>(row).episode_sums);
        all("metrics", &env.get::<Metrics>(row).values);
        let command = env.get::<Command>(row);
        all("command", &command.values);
        all("command metrics", &command.metrics);
        assert!(env.get::<RobotState>(row).values.iter().all(|value| value.is_finite()));
    }
    for (name, value) in env.world.resource::<StepLog>().iter() {
        assert!(value.is_finite(), "{name} is {value}");
    }
}

/// Actions of a step: the same for any number of threads.
fn actions(env: &Env, step: u64) -> Vec<f32> {
    let width = env.world.resource::<ActionManager>().width();
    let row_actions = |row| {
        let mut draws = Streams::for_row(5, Row(row as u32), 0).draws(StreamId::new("test/actions"), step);
        (0..width).map(move |_| draws.normal(0.0, 1.0) as f32).collect::<Vec<_>>()
    };
    (0..env.rows).flat_map(row_actions).collect()
}

fn digest(env: &Env) -> u64 {
    let mut hasher = DefaultHasher::new();
    env.snapshots().hash(&mut hasher);
    hasher.finish()
}

/// Takes steps with resets by hand among them, checks everything, and returns a number for the bits after each step.
fn run(generated: &Generated, threads: usize, steps: u64) -> Vec<u64> {
    let options = RuntimeOptions { threads, ..generated.options };
    let mut env = Env::new(&generated.config, options);
    let mut reference = Reference::new(generated);
    check_widths(&env, generated);
    env.reset();
    reference.check(&env, |_| true);
    let mut digests = vec![digest(&env)];
    for step in 0..steps {
        let mut by_hand: Vec<u32> = if step % 11 == 5 { (0..env.rows as u32).step_by(2).collect() } else { Vec::new() };
        if options.auto_reset == AutoReset::Disabled {
            let awaits = |row: &u32| env.world.get::<AwaitingReset>(env.entity(*row as usize)).is_some();
            by_hand.extend((0..env.rows as u32).filter(awaits));
            by_hand.sort_unstable();
            by_hand.dedup();
        }
        env.reset_rows(&by_hand);
        reference.check(&env, |row| by_hand.contains(&(row as u32)));
        check_finite(&env);

        let actions = actions(&env, step);
        env.try_step(&actions).unwrap_or_else(|error| panic!("step {step}: {error}"));
        reference.check(&env, |_| true);
        check_finite(&env);
        digests.push(digest(&env));
    }
    check_widths(&env, generated);
    digests
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn whatever_builds_steps_with_finite_buffers_of_the_widths_it_says_and_can_be_repeated(generated in environment()) {
        let digests = run(&generated, 1, 40);
        prop_assert_eq!(&run(&generated, 1, 40), &digests, "the same again");
        prop_assert_eq!(&run(&generated, 2, 40), &digests, "two threads");
    }
}
