//! The plugin in small applications without a window: the same trajectory as `Environment`, and the host's own systems.

use bevy_app::prelude::*;
use bevy_ecs::message::MessageCursor;
use bevy_ecs::schedule::ScheduleLabel;
use manege::collector::{Policy, RandomPolicy};
use manege::environment::{EnvironmentBuilder, EnvironmentError, Spec};
use manege::plugin::{EpisodeEnded, StepFailed};
use manege::prelude::*;
use manege::systems::buffers::StepBuffers;
use manege::systems::error::StepError;
use manege::systems::managers::action::ActionInput;
use manege::systems::managers::observation::{FinalObservations, ObservationBuffers};
use manege::systems::physics::StateLayout;
use manege::systems::schedule::ResetSchedule;
use manege::systems::step::{RowEntities, StepCounter};

#[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
struct Tick;

const ROWS: usize = 5;
const ACTIONS: usize = 12;

/// Episodes of 8 control steps at most.
fn environment() -> EnvironmentBuilder {
    let changes = "episode_length = 0.16".parse().expect("TOML");
    Environment::builder("go2_joystick_flat").rows(ROWS).seed(9).threads(2).config(changes)
}

/// An application whose policy draws actions.
fn app(schedule: impl ScheduleLabel + Clone) -> App {
    let mut app = App::new();
    app.add_plugins(ManegePlugin::new(environment(), schedule.clone()).expect("an environment"));
    let mut policy = RandomPolicy::normal(3, ACTIONS);
    let act = move |seen: Res<ObservationBuffers>, mut actions: ResMut<ActionInput>| {
        policy.act(seen.group(0), &mut actions.values).expect("actions");
    };
    app.add_systems(schedule, act.in_set(PluginSystems::Policy));
    app
}

/// What was sent since the last call.
fn read<M: Message + Clone>(app: &App, cursor: &mut MessageCursor<M>) -> Vec<M> {
    cursor.read(app.world().resource::<Messages<M>>()).cloned().collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Runs an application beside an `Environment` with the same actions, and holds everything against it.
fn equals_environment(schedule: impl ScheduleLabel + Clone, run: impl Fn(&mut App)) {
    let mut app = app(schedule);
    let mut env = environment().build().expect("an environment");
    env.reset().expect("a reset");
    let mut policy = RandomPolicy::normal(3, ACTIONS);
    let mut actions = vec![0.0; ROWS * ACTIONS];
    let mut ended = MessageCursor::<EpisodeEnded>::default();
    let (mut returns, mut lengths, mut episodes) = ([0.0; ROWS], [0; ROWS], [1; ROWS]);
    let mut ends = 0;
    for step in 0..30 {
        policy.act(env.observation(0), &mut actions).expect("actions");
        env.step(&actions).expect("a step");
        run(&mut app);

        let world = app.world();
        let (seen, last) = (world.resource::<ObservationBuffers>(), world.resource::<FinalObservations>());
        for group in 0..env.spec().groups.len() {
            assert_eq!(bits(seen.group(group)), bits(env.observation(group)), "step {step}");
            assert_eq!(bits(last.group(group)), bits(env.final_observation(group)), "step {step}");
        }
        let buffers = world.resource::<StepBuffers>();
        assert_eq!(bits(&buffers.rewards), bits(env.rewards()));
        assert_eq!((&buffers.terminated[..], &buffers.truncated[..]), (env.terminated(), env.truncated()));

        let mut messages = read(&app, &mut ended).into_iter();
        for row in 0..ROWS {
            returns[row] += env.rewards()[row];
            lengths[row] += 1;
            if !(env.terminated()[row] || env.truncated()[row]) {
                continue;
            }
            let message = messages.next().expect("a message for every end");
            assert_eq!(message.row, Row(row as u32));
            assert_eq!(message.entity, world.resource::<RowEntities>().0[row]);
            assert_eq!((message.length, message.episode), (lengths[row], episodes[row]));
            assert_eq!((message.terminated, message.truncated), (env.terminated()[row], env.truncated()[row]));
            assert!(!message.diverged);
            assert!((message.total_reward - returns[row]).abs() < 1e-4, "{message:?}, not {}", returns[row]);
            (returns[row], lengths[row]) = (0.0, 0);
            episodes[row] += 1;
            ends += 1;
        }
        assert_eq!(messages.next(), None);
    }
    assert!(ends >= 3 * ROWS, "{ends} episodes ended");
}

#[test]
fn update_takes_the_environments_steps_bit_for_bit() {
    equals_environment(Update, App::update);
}

#[test]
fn so_do_the_fixed_schedule_and_one_of_the_hosts() {
    equals_environment(FixedUpdate, |app| {
        app.world_mut().run_schedule(FixedUpdate);
        app.world_mut().clear_trackers();
    });
    equals_environment(Tick, |app| {
        app.world_mut().run_schedule(Tick);
        app.world_mut().clear_trackers();
    });
}

/// What a host's system saw of every row: position of the root, reward.
#[derive(Resource, Default)]
struct Seen {
    state: Vec<[f64; 3]>,
    rewards: Vec<f32>,
}

#[test]
fn the_hosts_systems_see_what_the_set_before_them_has_made() {
    fn note_state(mut seen: ResMut<Seen>, layout: Res<StateLayout>, rows: Query<(&Row, &RobotState)>) {
        for (row, state) in &rows {
            let position = &state.values[layout.qpos.part(0, 3).range()];
            seen.state[row.index()] = [position[0], position[1], position[2]];
        }
    }
    fn double(mut seen: ResMut<Seen>, mut rows: Query<(&Row, &mut Reward)>) {
        for (row, mut reward) in &mut rows {
            seen.rewards[row.index()] = reward.total;
            reward.total *= 2.0;
        }
    }
    let mut app = app(Update);
    app.insert_resource(Seen { state: vec![[0.0; 3]; ROWS], rewards: vec![0.0; ROWS] }).add_systems(
        Update,
        (
            note_state.after(StepSystems::State).before(StepSystems::Termination),
            double.after(StepSystems::Reward).before(StepSystems::Metrics),
        ),
    );
    let mut env = environment().build().expect("an environment");
    env.reset().expect("a reset");
    let mut policy = RandomPolicy::normal(3, ACTIONS);
    let mut actions = vec![0.0; ROWS * ACTIONS];
    for _ in 0..5 {
        policy.act(&[], &mut actions).expect("actions");
        env.step(&actions).expect("a step");
        app.update();
        let seen = app.world().resource::<Seen>();
        assert_eq!(bits(&seen.rewards), bits(env.rewards()));
        let doubled: Vec<f32> = env.rewards().iter().map(|reward| 2.0 * reward).collect();
        assert_eq!(app.world().resource::<StepBuffers>().rewards, doubled);
        assert!(!env.truncated().contains(&true), "rows that are reset show another state afterwards");
        for (row, qpos) in env.qpos().chunks(19).enumerate() {
            assert_eq!(seen.state[row], qpos[..3], "row {row}");
        }
    }
}

#[test]
fn a_bad_action_is_a_message_and_the_next_step_follows() {
    #[derive(Resource, Default)]
    struct Sick(bool);
    fn spoil(sick: Res<Sick>, mut actions: ResMut<ActionInput>) {
        actions.values.fill(if sick.0 { f32::NAN } else { 0.0 });
    }
    let mut app = App::new();
    app.add_plugins(ManegePlugin::new(environment(), Update).expect("an environment"))
        .init_resource::<Sick>()
        .add_systems(Update, spoil.in_set(PluginSystems::Policy));
    let failures = |app: &mut App| app.world_mut().resource_mut::<Messages<StepFailed>>().drain().collect::<Vec<_>>();
    app.update();
    assert!(failures(&mut app).is_empty());
    let before = bits(app.world().resource::<ObservationBuffers>().group(0));
    app.world_mut().resource_mut::<Sick>().0 = true;
    app.update();
    let failed = failures(&mut app);
    assert!(matches!(failed[..], [StepFailed(StepError::ActionNotFinite { row: 0, column: 0, .. })]), "{failed:?}");
    assert_eq!(bits(app.world().resource::<ObservationBuffers>().group(0)), before);
    app.world_mut().resource_mut::<Sick>().0 = false;
    app.update();
    assert!(failures(&mut app).is_empty());
    assert_eq!(app.world().resource::<StepCounter>().steps, 2);
}

#[test]
fn a_host_pauses_restarts_rows_and_follows_resets() {
    #[derive(Resource, Default)]
    struct Paused(bool);
    #[derive(Resource, Default)]
    struct Restarted(Vec<Row>);
    fn note(mut restarted: ResMut<Restarted>, rows: Query<&Row, With<ResetRequested>>) {
        restarted.0.extend(&rows);
    }
    let mut app = app(Update);
    app.init_resource::<Paused>()
        .init_resource::<Restarted>()
        .configure_sets(Update, PluginSystems::Step.run_if(|paused: Res<Paused>| !paused.0))
        .add_systems(ResetSchedule, note.in_set(ResetSystems::Task));
    let clock = |app: &App, row: usize| {
        let entity = app.world().resource::<RowEntities>().0[row];
        *app.world().get::<EpisodeClock>(entity).expect("every row has one")
    };
    app.update();
    assert_eq!(app.world().resource::<Restarted>().0, (0..ROWS as u32).map(Row).collect::<Vec<_>>());
    app.world_mut().resource_mut::<Restarted>().0.clear();

    app.world_mut().resource_mut::<Paused>().0 = true;
    app.update();
    assert_eq!(clock(&app, 2), EpisodeClock { step: 1, episode: 1 });
    app.world_mut().resource_mut::<Paused>().0 = false;

    let entity = app.world().resource::<RowEntities>().0[2];
    app.world_mut().entity_mut(entity).insert(ResetRequested);
    app.update();
    assert_eq!(app.world().resource::<Restarted>().0, [Row(2)]);
    assert_eq!(clock(&app, 2), EpisodeClock { step: 0, episode: 2 });
    assert_eq!(clock(&app, 1), EpisodeClock { step: 2, episode: 1 });
    let ended = read(&app, &mut MessageCursor::<EpisodeEnded>::default());
    assert_eq!(ended, [], "a restart by the host is no end");
}

#[test]
fn what_cannot_be_built_is_an_error_before_the_plugin_is_added() {
    let error = |builder: EnvironmentBuilder| ManegePlugin::new(builder, Update).err().expect("an error");
    let unknown = error(Environment::builder("go2_joystik_flat"));
    assert!(matches!(unknown, EnvironmentError::Task(_)) && unknown.to_string().contains("go2_joystick_flat"));
    assert!(matches!(error(environment().rows(0)), EnvironmentError::Build(_)));
    let changes = "physics.control_period = 0.003".parse().expect("TOML");
    assert!(matches!(error(environment().config(changes)), EnvironmentError::Config(_)));
}

#[test]
fn the_spec_is_a_resource_and_extensions_reach_the_hosts_schedule() {
    #[derive(Resource, Default)]
    struct Rewarded(usize);
    let builder = environment().extend(|world, step, _| {
        world.init_resource::<Rewarded>();
        step.add_systems((|mut rewarded: ResMut<Rewarded>| rewarded.0 += 1).in_set(StepSystems::Reward));
    });
    let mut app = App::new();
    app.add_plugins(ManegePlugin::new(builder, Tick).expect("an environment"));
    let spec = environment().build().expect("an environment").spec().clone();
    assert_eq!(*app.world().resource::<Spec>(), spec);
    app.world_mut().run_schedule(Tick);
    assert_eq!(app.world().resource::<Rewarded>().0, 1);
}
