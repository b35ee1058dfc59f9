//! The order of sets, and what a host's own systems in it may do.

use bevy_ecs::prelude::*;
use manege_components::{EpisodeClock, ResetRequested, Reward, Row};
use manege_systems::build::BuildError;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::error::StepError;
use manege_systems::managers::reward::RewardOptions;
use manege_systems::schedule::{ResetSystems, StepSystems};
use manege_systems::step::{StepCounter, StepStatus};

use crate::env::{END, Env, options};
use crate::terms::{config, config_without_accidents, nothing, reward_of};

/// Sets in the order in which host systems in them ran.
#[derive(Resource, Default)]
struct Ran(Vec<String>);

fn note<S: SystemSet + Copy>(schedule: &mut Schedule, sets: &[S]) {
    for set in sets {
        let name = format!("{set:?}");
        schedule.add_systems((move |mut ran: ResMut<Ran>| ran.0.push(name.clone())).in_set(*set));
    }
}

/// An environment whose host notes the order of all sets.
fn noted(rows: usize) -> Env {
    noted_with(&config_without_accidents(), rows)
}

fn noted_with(config: &EnvironmentConfig, rows: usize) -> Env {
    use StepSystems::*;
    Env::try_new(config, options(rows), |world, step, reset| {
        world.init_resource::<Ran>();
        note(step, &[Recorder, Observation, Command, Event, Metrics, Reward]);
        note(step, &[Check, Action, Physics, State, Task, Termination]);
        // The reset pass needs the whole world, so nothing can be beside it.
        step.add_systems(
            (|mut ran: ResMut<Ran>| ran.0.push("before Reset".to_owned())).before(Reset).after(Observation),
        );
        step.add_systems((|mut ran: ResMut<Ran>| ran.0.push("after Reset".to_owned())).after(Reset).before(Recorder));
        use ResetSystems as R;
        note(reset, &[R::Begin, R::Finish, R::Curriculum, R::Observation, R::Event]);
        note(reset, &[R::Command, R::Commit, R::Managers, R::Task]);
    })
    .expect("a schedule without ambiguities")
}

const BEFORE: [&str; 12] = [
    "Check",
    "Action",
    "Physics",
    "State",
    "Task",
    "Termination",
    "Reward",
    "Metrics",
    "Event",
    "Command",
    "Observation",
    "before Reset",
];
const RESET: [&str; 9] =
    ["Begin", "Curriculum", "Event", "Command", "Commit", "Managers", "Task", "Observation", "Finish"];
const AFTER: [&str; 2] = ["after Reset", "Recorder"];

fn ran(env: &mut Env) -> Vec<String> {
    std::mem::take(&mut env.world.resource_mut::<Ran>().0)
}

#[test]
fn host_systems_run_in_the_order_of_their_sets() {
    let mut env = noted(3);
    env.reset();
    assert_eq!(ran(&mut env), RESET);
    env.step();
    assert_eq!(ran(&mut env), [&BEFORE[..], &AFTER].concat());
    env.step_ending(&[1]);
    assert_eq!(ran(&mut env), [&BEFORE[..], &RESET, &AFTER].concat());
}

#[test]
fn no_set_runs_after_the_check_of_a_bad_action() {
    let mut env = noted(2);
    env.reset();
    ran(&mut env);
    env.try_step(&[0.0, 0.0, f32::NAN, 0.0]).unwrap_err();
    assert_eq!(ran_in_sets(&mut env), ["Check"]);
}

/// What ran in a set; systems between the sets are on their own, as the documentation of the sets says.
fn ran_in_sets(env: &mut Env) -> Vec<String> {
    ran(env).into_iter().filter(|name| !name.contains(' ')).collect()
}

#[test]
fn no_set_runs_after_one_that_failed_and_the_next_step_is_whole() {
    // Infinite when the clock says 2, in row 1, whose episode ends in that step.
    let sick =
        reward_of(nothing, |row, ()| if (row.row(), row.clock().step) == (Row(1), 2) { f32::INFINITY } else { 1.0 });
    let mut config = config_without_accidents();
    config.rewards.insert("sick".into(), Entry::new(RewardOptions::weight(1.0), sick));
    let mut env = noted_with(&config, 3);
    env.reset();
    env.step();
    let shown = (env.observation(0, 0), env.buffers().rewards.clone());
    ran(&mut env);

    let end_row_1 = [0.0, 0.0, END, 0.0, 0.0, 0.0];
    let error = env.try_step(&end_row_1).unwrap_err();
    assert!(matches!(error, StepError::NotFinite { manager: "reward", .. }), "{error}");
    assert_eq!(ran_in_sets(&mut env), BEFORE[..7], "Reward is the last");
    assert_eq!((env.observation(0, 0), env.buffers().rewards.clone()), shown, "nothing was published");
    assert_eq!(env.get::<EpisodeClock>(1).episode, 1);

    // The row is still due for its reset, which the next step makes.
    env.step();
    assert_eq!(ran(&mut env), [&BEFORE[..], &RESET, &AFTER].concat());
    let clocks: Vec<_> =
        (0..3).map(|row| (env.get::<EpisodeClock>(row).episode, env.get::<EpisodeClock>(row).step)).collect();
    assert_eq!(clocks, [(1, 3), (2, 0), (1, 3)]);
}

#[test]
fn a_host_that_fails_the_step_stops_it_too() {
    fn refuse(mut status: ResMut<StepStatus>, counter: Res<StepCounter>) {
        if counter.steps == 1 {
            status.fail(StepError::Row { row: 9, rows: 2 });
        }
    }
    let extend = |_: &mut World, step: &mut Schedule, _: &mut Schedule| {
        step.add_systems(refuse.after(StepSystems::Action).before(StepSystems::Physics));
    };
    let mut env = Env::try_new(&config_without_accidents(), options(2), extend).unwrap();
    env.reset();
    let before = (env.qpos(0).to_vec(), *env.get::<EpisodeClock>(0));
    assert!(matches!(env.try_step(&[0.5; 4]), Err(StepError::Row { row: 9, .. })));
    assert_eq!((env.qpos(0).to_vec(), *env.get::<EpisodeClock>(0)), before, "physics did not run");
    env.step();
    assert_ne!(env.qpos(0), before.0);
}

fn build(extend: impl FnOnce(&mut World, &mut Schedule, &mut Schedule)) -> Result<Env, BuildError> {
    Env::try_new(&config(), options(2), extend)
}

#[test]
fn a_host_system_without_an_order_does_not_build() {
    // Reports: Bevy 1551 and 442.
    fn double(mut rows: Query<&mut Reward>) {
        rows.iter_mut().for_each(|mut reward| reward.total *= 2.0);
    }
    let Err(error) = build(|_, step, _| {
        step.add_systems(double);
    }) else {
        panic!("an undefined order was built")
    };
    assert!(matches!(error, BuildError::Schedule(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("double") && text.contains("compute_rewards"), "{text}");
    assert!(
        build(|_, step, _| {
            step.add_systems(double.after(StepSystems::Reward).before(StepSystems::Metrics));
        })
        .is_ok()
    );
    let Err(error) = build(|_, _, reset| {
        reset.add_systems(double.before(ResetSystems::Observation));
    }) else {
        panic!("an undefined order was built")
    };
    assert!(matches!(error, BuildError::Schedule(_)), "{error}");
}

#[test]
fn a_cycle_does_not_build() {
    fn idle() {}
    let Err(error) = build(|_, step, _| {
        step.add_systems(idle.after(StepSystems::Reward).before(StepSystems::Physics));
    }) else {
        panic!("a cycle was built")
    };
    assert!(matches!(error, BuildError::Schedule(_)), "{error}");
}

#[test]
fn what_a_host_changes_between_two_sets_is_what_the_second_sees() {
    fn double(mut rows: Query<&mut Reward>) {
        rows.iter_mut().for_each(|mut reward| reward.total *= 2.0);
    }
    let extend = |_: &mut World, step: &mut Schedule, _: &mut Schedule| {
        step.add_systems(double.after(StepSystems::Reward).before(StepSystems::Metrics));
    };
    let mut doubled = Env::try_new(&config(), options(3), extend).unwrap();
    let mut plain = Env::new(&config(), options(3));
    for env in [&mut doubled, &mut plain] {
        env.reset();
        env.step();
    }
    for row in 0..3 {
        assert_eq!(doubled.buffers().rewards[row], 2.0 * plain.buffers().rewards[row]);
    }
}

#[test]
fn a_reset_that_a_host_asks_for_in_termination_happens_in_the_same_step() {
    // Report: Bevy 17828 (deferred commands were left out).
    fn ask(mut commands: Commands, rows: Query<(Entity, &Row, &EpisodeClock)>) {
        for (entity, ..) in rows.iter().filter(|(_, row, clock)| row.0 == 2 && clock.step == 3) {
            commands.entity(entity).insert(ResetRequested);
        }
    }
    let extend = |_: &mut World, step: &mut Schedule, _: &mut Schedule| {
        step.add_systems(ask.in_set(StepSystems::Termination));
    };
    let config = config_without_accidents();
    let mut env = Env::try_new(&config, options(4), extend).unwrap();
    let mut twin = Env::new(&config, options(4));
    env.reset();
    twin.reset();
    for step in 1..=9 {
        env.step();
        twin.step();
        assert_eq!(*env.get::<EpisodeClock>(2), EpisodeClock { step: step % 3, episode: 1 + step / 3 });
        assert!(!env.done(2), "the host's reset is no end of an episode");
        assert_eq!(env.world.query::<&ResetRequested>().iter(&env.world).count(), 0);
        for row in [0, 1, 3] {
            assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}, step {step}");
        }
        twin.reset_rows(if step % 3 == 0 { &[2] } else { &[] });
        assert_eq!(env.episode_start(2), twin.episode_start(2), "step {step}");
    }
}

#[test]
fn a_reset_asked_for_between_steps_happens_in_the_next_one() {
    let mut env = Env::started(&config_without_accidents(), options(3));
    env.step();
    let entity = env.entity(1);
    env.world.entity_mut(entity).insert(ResetRequested);
    env.step();
    let episodes: Vec<u32> = (0..3).map(|row| env.get::<EpisodeClock>(row).episode).collect();
    assert_eq!(episodes, [1, 2, 1]);
    assert_eq!(env.get::<EpisodeClock>(1).step, 0);
}

#[test]
fn what_was_removed_is_not_remembered_for_ever() {
    // Reports: Bevy 6417, PR 6878 and PR 13762: a bare world must clear its trackers.
    let mut env = Env::started(&config_without_accidents(), options(4));
    for _ in 0..50 {
        env.step_ending(&[0, 1, 2, 3]);
        let remembered = env.world.removed::<ResetRequested>().count();
        assert!(remembered <= 8, "{remembered} removals are remembered");
    }
    for _ in 0..50 {
        env.reset_rows(&[0, 1, 2, 3]);
    }
    let remembered = env.world.removed::<ResetRequested>().count();
    assert!(remembered <= 8, "{remembered} removals are remembered");
}
