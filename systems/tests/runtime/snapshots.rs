//! The state of an environment, saved and put back.

use bevy_ecs::prelude::Resource;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::curriculum::{
    CurriculumOptions, PenaltyScaling, RangeSchedule, RangeStage, RewardWeightSchedule, WeightStage,
};
use manege_systems::managers::event::{EventMode, EventOptions};
use manege_systems::managers::metrics::{MetricOptions, Reduce, state_metric};
use manege_systems::managers::reward::RewardManager;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::snapshot::{self, Reader, Saved, SnapshotError, SnapshotParts, Writer};
use manege_systems::step::AutoReset;

use crate::env::{Env, options};
use crate::terms::{Push, config, made};

const ROWS: usize = 6;

/// An environment in which everything that can change does.
fn busy() -> EnvironmentConfig {
    let mut config = config();
    let height = made(|context| state_metric(context, |state| state.qpos[2] as f32));
    config.metrics = [("height".into(), Entry::new(MetricOptions::reduce(Reduce::Mean).per_substep(), height))].into();
    let mode = EventMode::Reset { min_steps_between: 12 };
    config.events.insert("rare".into(), Entry::new(EventOptions { enabled: true, mode }, Push { limit: 0.3 }));
    let stages = (1..40).map(|k| WeightStage { step: 5 * k, weight: k as f32 });
    let alive = RewardWeightSchedule { reward: "alive".to_owned(), stages: stages.collect() };
    let stages = (1..40).map(|k| RangeStage { step: 7 * k, range: [0.0, k as f64] });
    let range = "commands.twist.lin_vel_x".to_owned();
    let speed = RangeSchedule { range, stages: stages.collect() };
    let scaling =
        PenaltyScaling { window: 8192.0, short: 10.0, long: 12.0, shrink: 0.9, grow: 1.1, ..Default::default() };
    config.curriculum = [
        ("alive".into(), Entry::new(CurriculumOptions::every_step(), alive)),
        ("speed".into(), Entry::new(CurriculumOptions::at_resets(), speed)),
        ("penalties".into(), Entry::new(CurriculumOptions::at_resets(), scaling)),
    ]
    .into();
    config
}

fn everything(env: &Env) -> (Vec<String>, Vec<(String, u64)>, Vec<f32>) {
    let log = env.world.resource::<manege_systems::log::StepLog>();
    let log = log.iter().map(|(key, value)| (key.to_owned(), value.to_bits())).collect();
    (env.snapshots(), log, env.world.resource::<RewardManager>().weights.clone())
}

/// Both take the same steps and have the same bits after each.
fn stay_the_same(original: &mut Env, restored: &mut Env, steps: usize) {
    restored.steps = original.steps;
    assert_eq!(everything(original), everything(restored), "at once");
    let mut ended = 0;
    for step in 0..steps {
        original.step();
        restored.step();
        assert_eq!(everything(original), everything(restored), "step {step}");
        ended += (0..ROWS).filter(|&row| original.done(row)).count();
    }
    assert!(ended >= ROWS || steps < 50, "every manager has seen the end of an episode");
}

#[test]
fn a_restored_environment_continues_bit_for_bit() {
    for auto_reset in [AutoReset::SameStep, AutoReset::NextStep] {
        for (before, threads) in [(0, 1), (1, 2), (37, 1), (60, 2)] {
            let with_threads = |threads| RuntimeOptions { auto_reset, threads, ..options(ROWS) };
            let mut original = Env::started(&busy(), with_threads(1));
            (0..before).for_each(|_| original.step());
            let state = snapshot::save(&original.world);
            // Into an environment that has not started, and one that has gone another way.
            let mut fresh = Env::new(&busy(), with_threads(threads));
            let mut other = Env::started(&busy(), with_threads(threads));
            (0..23).for_each(|_| other.try_step(&[-0.7; 2 * ROWS]).expect("a step"));
            snapshot::load(&mut fresh.world, &state).expect("a state that fits");
            snapshot::load(&mut other.world, &state).expect("a state that fits");
            assert_eq!(snapshot::save(&other.world), state);
            stay_the_same(&mut original, &mut fresh, 100);
            // The original goes back, too.
            snapshot::load(&mut original.world, &state).expect("its own state");
            original.steps = before;
            stay_the_same(&mut original, &mut other, 40);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let mut env = Env::started(&busy(), options(ROWS));
    (0..10).for_each(|_| env.step());
    let before = (everything(&env), snapshot::save(&env.world));

    let fewer = snapshot::save(&Env::started(&busy(), options(ROWS - 1)).world);
    let mut config = busy();
    config.rewards.shift_remove("height");
    let other_terms = snapshot::save(&Env::started(&config, options(ROWS)).world);
    let mut config = busy();
    config.events.shift_remove("mass");
    let other_fields = snapshot::save(&Env::started(&config, options(ROWS)).world);
    for state in [&fewer, &other_terms, &other_fields] {
        let error = snapshot::load(&mut env.world, state).unwrap_err();
        assert!(matches!(error, SnapshotError::Size { .. } | SnapshotError::Backend(_)), "{error}");
        assert_eq!((everything(&env), snapshot::save(&env.world)), before);
    }
    let state = &before.1.clone();
    for cut in [1, state.len() / 3, state.len() - 1] {
        let error = snapshot::load(&mut env.world, &state[..cut]).unwrap_err();
        assert!(matches!(error, SnapshotError::Cut | SnapshotError::Part { .. }), "{error}");
    }
    assert_eq!((everything(&env), snapshot::save(&env.world)), before);
}

/// What a host keeps in the world.
#[derive(Resource, Default)]
struct Score(u64);

impl Saved for Score {
    fn save(&self, to: &mut Writer) {
        to.put(self.0);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.0 = from.take()?;
        Ok(())
    }
}

#[test]
fn what_a_host_registers_is_part_of_the_state() {
    let with_score = || {
        let mut env = Env::try_new(&config(), options(2), |world, _, _| {
            world.init_resource::<Score>();
            world.resource_mut::<SnapshotParts>().resource::<Score>("score");
        })
        .expect("a valid configuration");
        env.reset();
        env
    };
    let mut env = with_score();
    env.world.resource_mut::<Score>().0 = 77;
    let state = snapshot::save(&env.world);
    let mut twin = with_score();
    snapshot::load(&mut twin.world, &state).unwrap();
    assert_eq!(twin.world.resource::<Score>().0, 77);
    let error = snapshot::load(&mut Env::started(&config(), options(2)).world, &state).unwrap_err().to_string();
    assert!(error.contains("`score`") && error.contains("none"), "{error}");
}

#[test]
fn staggered_rows_run_out_of_time_one_after_the_other() {
    const MANY: usize = 64;
    let mut config = config();
    config.terminations.shift_remove("away");
    let staggered = || RuntimeOptions { stagger_episodes: true, ..options(MANY) };
    let mut env = Env::started(&config, staggered());
    // A second reset before the first step begins again, staggered too.
    env.reset();
    let start: Vec<u32> = (0..MANY).map(|row| env.get::<manege_components::EpisodeClock>(row).step).collect();
    // Episodes have 25 control steps. 64 even draws from 0..25 leave a quarter of the places out once in 10^8 times.
    assert!(start.iter().all(|&step| step < 25), "{start:?}");
    let mut places = start.clone();
    places.sort_unstable();
    places.dedup();
    assert!(places.len() > 18, "{places:?}");
    for step in 1..=60 {
        env.step();
        for (row, &start) in start.iter().enumerate() {
            // The first episode ends when the clock reaches 25, later ones after 25 steps.
            let ends = (step + start) % 25 == 0;
            assert_eq!(env.buffers().truncated[row], ends, "row {row}, step {step}");
        }
    }
    // The draws depend on the row and the seed, not on the number of rows.
    let few = Env::started(&config, RuntimeOptions { rows: 3, ..staggered() });
    let again = Env::started(&config, staggered());
    for row in 0..3 {
        let clock = |env: &Env| env.get::<manege_components::EpisodeClock>(row).step;
        assert_eq!(clock(&few), clock(&again));
    }
    let mut plain = Env::started(&config, options(MANY));
    (0..24).for_each(|_| plain.step());
    assert!(!plain.buffers().truncated.contains(&true));
    plain.step();
    assert!(!plain.buffers().truncated.contains(&false));
}
