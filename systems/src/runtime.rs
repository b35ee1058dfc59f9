//! Puts an environment into a world.

use bevy_ecs::prelude::*;
use manege_components::{ResetRequested, Row, RowBundle, RowWidths, Termination};

use crate::backend::{BackendBuilder, BackendRequest, Feature, Freshness};
use crate::buffers::StepBuffers;
use crate::build::{BuildContext, BuildError, max_episode_steps};
use crate::config::{ConfigError, EnvironmentConfig};
use crate::error::StepError;
use crate::log::StepLog;
use crate::managers::action::{ActionInput, ActionManager};
use crate::managers::command::CommandManager;
use crate::managers::curriculum::CurriculumManager;
use crate::managers::event::{EventManager, startup_events};
use crate::managers::metrics::MetricsManager;
use crate::managers::observation::{FinalObservations, ObservationBuffers, ObservationManager};
use crate::managers::recorder::RecorderManager;
use crate::managers::reward::RewardManager;
use crate::managers::task;
use crate::managers::termination::TerminationManager;
use crate::physics::{Divergences, Physics, StateLayout};
use crate::reset::ResetLog;
use crate::schedule::{ResetSchedule, StepSchedule, reset_schedule, step_schedule};
use crate::snapshot::{self, SnapshotParts};
use crate::staging::Staging;
use crate::step::{
    AutoReset, Controls, Randomness, ResettingRows, RowEntities, Stagger, StepCounter, StepStatus, Timing,
};
use crate::timing::StepTimings;
use crate::workers::Workers;
use crate::wrench::ExternalWrenches;

/// What an application chooses about an environment, apart from its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimeOptions {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Most threads that run at once, at least 1.
    pub threads: usize,
    /// Key of every random stream.
    pub seed: u64,
    /// When rows whose episode ended start the next one.
    pub auto_reset: AutoReset,
    /// Whether observations get their noise.
    pub corruption: bool,
    /// Whether events vary the model and push the robot, and reset draws spread over their ranges.
    pub randomization: bool,
    /// Whether rows begin at different places of their first episode, so that they do not all run out of time at once.
    pub stagger_episodes: bool,
}

impl RuntimeOptions {
    /// `rows` rows on one thread with seed 0, automatic resets and all randomness.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self {
            rows,
            threads: 1,
            seed: 0,
            auto_reset: AutoReset::SameStep,
            corruption: true,
            randomization: true,
            stagger_episodes: false,
        }
    }
}

/// What a row takes at the least, bytes: its components and buffers, and its state in the engine.
const LEAST_ROW_BYTES: usize = 4096;

/// Spawns the rows into `world`, inserts the managers and buffers as resources, and adds both schedules.
///
/// Afterwards the world is ready for [`reset_all`]; then for [`step`], once per control step. `extend` gets the two
/// schedules before they are built, to add systems of its own ordered against
/// [`StepSystems`](crate::schedule::StepSystems) and [`ResetSystems`](crate::schedule::ResetSystems).
///
/// # Errors
/// The configuration makes no sense, a term cannot be built, the backend lacks something, or the order of the systems
/// in a schedule is not defined.
pub fn install(
    world: &mut World,
    config: &EnvironmentConfig,
    model: Box<dyn BackendBuilder>,
    options: RuntimeOptions,
    extend: impl FnOnce(&mut World, &mut Schedule, &mut Schedule),
) -> Result<(), BuildError> {
    let prepared = prepare(config, model, options)?;
    let (mut step, mut reset) = (step_schedule(), reset_schedule());
    prepared.install_into(world, &mut step, &mut reset);
    extend(world, &mut step, &mut reset);
    for schedule in [&mut step, &mut reset] {
        schedule.initialize(world).map_err(|error| BuildError::Schedule(error.to_string(schedule.graph(), world)))?;
    }
    world.add_schedule(step);
    world.add_schedule(reset);
    match world.resource_mut::<StepStatus>().take() {
        Ok(()) => Ok(()),
        Err(StepError::Backend(error)) => Err(error.into()),
        Err(error) => Err(BuildError::Schedule(error.to_string())),
    }
}

/// An environment whose terms and backend are built, so that nothing about its configuration can be wrong any more, and
/// which only has to be put into a world.
#[must_use]
pub struct Prepared {
    insert: Box<dyn FnOnce(&mut World) + Send>,
    tasks: Vec<Box<dyn task::TaskSystems>>,
}

impl Prepared {
    /// Spawns the rows into `world`, inserts the managers and buffers as resources, and lets startup events happen.
    ///
    /// `step` is a schedule with the sets and systems of a control step: [`step_schedule`], or one of the host's after
    /// [`add_step`](crate::schedule::add_step). `reset` is the [`reset_schedule`]; the world must have it, as
    /// [`ResetSchedule`], before the first step. A startup event that the engine refuses is an error of the first step, in
    /// [`StepStatus`].
    pub fn install_into(self, world: &mut World, step: &mut Schedule, reset: &mut Schedule) {
        (self.insert)(world);
        for task in self.tasks {
            task.install(world, step, reset);
        }
        let happened = world.run_system_cached(startup_events);
        debug_assert!(happened.is_ok(), "startup events need no more than the world has");
    }
}

/// Does everything about an environment that can fail and needs no world. [`install`] goes on from here; a host with a
/// schedule of its own does so itself.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use bevy_ecs::schedule::ScheduleLabel;
/// use manege_systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
/// use manege_systems::config::{EnvironmentConfig, PhysicsConfig};
/// use manege_systems::managers::action::ActionInput;
/// use manege_systems::runtime::{self, RuntimeOptions};
/// use manege_systems::schedule::{StepSystems, add_step, reset_schedule};
/// use manege_systems::step::{StepCounter, StepStatus};
///
/// #[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
/// struct Tick;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = EnvironmentConfig::new(PhysicsConfig::new(0.002, 0.02), 1.0);
/// let xml = "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>";
/// let model = MujocoBuilder::from_xml(xml, &PhysicsOptions::new(0.002))?;
/// let prepared = runtime::prepare(&config, Box::new(model), RuntimeOptions::new(2))?;
///
/// let mut world = World::new();
/// let (mut tick, mut reset) = (Schedule::new(Tick), reset_schedule());
/// add_step(&mut tick);
/// tick.add_systems((|_: Res<ActionInput>| { /* write the next actions */ }).before(StepSystems::Check));
/// prepared.install_into(&mut world, &mut tick, &mut reset);
/// world.add_schedule(reset);
///
/// runtime::reset_all(&mut world)?;
/// for _ in 0..3 {
///     tick.run(&mut world);
///     // A bare world remembers removed components until it is told to forget them.
///     world.clear_trackers();
///     world.resource_mut::<StepStatus>().take()?;
/// }
/// assert_eq!(world.resource::<StepCounter>().steps, 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The configuration makes no sense, a term cannot be built, or the backend lacks something.
pub fn prepare(
    config: &EnvironmentConfig,
    model: Box<dyn BackendBuilder>,
    options: RuntimeOptions,
) -> Result<Prepared, BuildError> {
    for (what, count) in [("the number of rows", options.rows), ("the number of threads", options.threads)] {
        if count == 0 || u32::try_from(count).is_err() {
            return Err(BuildError::Zero { what });
        }
    }
    // Asked for here, a size that the machine does not have is an error; later it would end the process.
    let memory = options.rows.checked_mul(LEAST_ROW_BYTES).map(|bytes| Vec::<u8>::new().try_reserve_exact(bytes));
    if !matches!(memory, Some(Ok(()))) {
        return Err(BuildError::Memory { rows: options.rows });
    }
    config.validate()?;
    let substeps = config.physics.substeps()?;
    if (model.info().timestep - config.physics.timestep).abs() > 1e-12 {
        return Err(ConfigError::Impossible {
            path: "physics.timestep".to_owned(),
            message: format!("the model was loaded with a timestep of {} s", model.info().timestep),
        }
        .into());
    }
    let randomness = Randomness { seed: options.seed, enabled: options.randomization };
    let control_period = config.physics.control_period;
    let timing = Timing {
        control_period,
        substeps,
        episode_length: config.episode_length,
        max_episode_steps: max_episode_steps(config.episode_length, control_period),
    };
    let keyframe = (!config.keyframe.is_empty()).then_some(config.keyframe.as_str());

    let mut log = StepLog::default();
    let mut context = BuildContext::new(&*model, keyframe, control_period, config.episode_length)?;
    context.set_randomization(options.randomization);
    let tasks = task::build(&config.task, &mut context)?;
    // In the order of the contract: later managers may refer to earlier ones.
    let events = EventManager::build(&config.events, &mut context, options.rows, randomness)?;
    let commands = CommandManager::build(&config.commands, &mut context, &mut log)?;
    let actions = ActionManager::build(&config.actions, &mut context, options.rows)?;
    let observations = ObservationManager::build(&config.observations, &mut context, options.corruption, options.seed)?;
    let terminations = TerminationManager::build(&config.terminations, &mut context)?;
    let step_factor = if config.scale_rewards_by_dt { control_period } else { 1.0 };
    let mut rewards = RewardManager::build(&config.rewards, &mut context, step_factor)?;
    let curriculum = CurriculumManager::build(&config.curriculum, &mut context, &mut log, &mut rewards)?;
    let metrics = MetricsManager::build(&config.metrics, &mut context, &mut log, options.rows, substeps)?;
    let layout = StateLayout {
        qpos: context.output(crate::backend::Output::Qpos)?,
        qvel: context.output(crate::backend::Output::Qvel)?,
    };

    let widths = RowWidths {
        robot_state: context.output_width(),
        action: actions.width(),
        command: commands.widths().clone(),
        task_state: context.task_state_width(),
        observation: observations.width(),
        raw_observation: observations.raw_width(),
        history: observations.history_widths(),
        reward_terms: rewards.names().len(),
        metric_terms: metrics.names().len(),
        event_timers: events.row_timers(),
    };
    let freshness = if config.physics.fresh { Freshness::Fresh } else { Freshness::LastSubstep };
    context.require(Feature::Freshness(freshness))?;
    let request = BackendRequest {
        rows: options.rows,
        threads: options.threads,
        outputs: context.outputs(),
        fields: context.fields().to_vec(),
        substep_feedback: actions.needs_substep_feedback() || metrics.needs_substeps(),
        freshness,
    };
    let staging = Staging::new(context.info(), context.default_qpos(), context.fields(), options.rows);
    let wrenches = ExternalWrenches::new(context.wrenches(), options.rows);
    let controls = Controls::new(options.rows, context.info().nu);
    let tunables = context.tunables();
    let task_names = context.task_state_names();
    let backend = model.build(&request)?;
    let physics = Physics::new(backend);
    let workers = Workers::new(options.threads, options.rows)?;

    let insert = move |world: &mut World| {
        let bundles = (0..options.rows as u32).map(|row| RowBundle::new(Row(row), options.seed, &widths));
        let bundles = bundles.map(|mut bundle| {
            // Startup events change the state that the engine begins with, so rows have to show it.
            physics.read(bundle.row, &mut bundle.robot_state);
            bundle
        });
        let entities: Vec<Entity> = world.spawn_batch(bundles.collect::<Vec<_>>()).collect();
        world.insert_resource(RowEntities(entities));
        world.insert_resource(ObservationBuffers::new(&observations, options.rows));
        world.insert_resource(FinalObservations::new(&observations, options.rows));
        world.insert_resource(StepBuffers::new(options.rows, &rewards, &mut log));
        world.insert_resource(ResetLog::new(&rewards, &terminations, &mut log));
        world.insert_resource(log);
        world.insert_resource(events);
        world.insert_resource(commands);
        world.insert_resource(actions);
        world.insert_resource(observations);
        world.insert_resource(terminations);
        world.insert_resource(rewards);
        world.insert_resource(curriculum);
        world.insert_resource(metrics);
        world.insert_resource(tunables);
        world.insert_resource(ActionInput { values: vec![0.0; options.rows * widths.action] });
        world.insert_resource(controls);
        world.insert_resource(staging);
        world.insert_resource(wrenches);
        world.insert_resource(physics);
        world.insert_resource(layout);
        world.insert_resource(task_names);
        world.insert_resource(timing);
        world.insert_resource(randomness);
        world.insert_resource(options.auto_reset);
        world.insert_resource(Stagger(options.stagger_episodes));
        world.insert_resource(workers);
        world.init_resource::<RecorderManager>();
        world.init_resource::<ResettingRows>();
        world.init_resource::<StepStatus>();
        world.init_resource::<StepCounter>();
        world.init_resource::<StepTimings>();
        world.init_resource::<Divergences>();

        let mut parts = SnapshotParts::default();
        snapshot::register(&mut parts);
        world.insert_resource(parts);
    };
    Ok(Prepared { insert: Box::new(insert), tasks })
}

/// Takes every row through one control step with the actions in [`ActionInput`].
///
/// The schedule runs on the caller's thread or on one of the [`Workers`], whichever is faster: systems in it have no access
/// to data that is bound to a thread (`NonSend`).
///
/// # Errors
/// See [`StepError`]. After an error about the actions, nothing has changed and the next step may follow.
pub fn step(world: &mut World) -> Result<(), StepError> {
    let workers = world.resource::<Workers>().clone();
    workers.enter(|| world.run_schedule(StepSchedule));
    // Without this, removed tags would be remembered for ever.
    world.clear_trackers();
    world.resource_mut::<StepStatus>().take()
}

/// Restarts every row by hand.
///
/// # Errors
/// See [`StepError`].
pub fn reset_all(world: &mut World) -> Result<(), StepError> {
    let rows: Vec<Entity> = world.resource::<RowEntities>().0.clone();
    reset_entities(world, &rows)
}

/// Restarts the given rows by hand; the others are untouched.
///
/// The rows get the same new episode that an automatic reset would have given them; their flags are cleared.
///
/// # Errors
/// A row does not exist or is given twice; nothing was changed then. Else see [`StepError`].
pub fn reset_rows(world: &mut World, rows: &[u32]) -> Result<(), StepError> {
    let entities = &world.resource::<RowEntities>().0;
    let mut seen = vec![false; entities.len()];
    for &row in rows {
        match seen.get_mut(row as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(StepError::Row { row, rows: entities.len() }),
        }
    }
    let entities: Vec<Entity> = rows.iter().map(|&row| entities[row as usize]).collect();
    reset_entities(world, &entities)
}

fn reset_entities(world: &mut World, entities: &[Entity]) -> Result<(), StepError> {
    restart(world, entities);
    world.clear_trackers();
    world.resource_mut::<StepStatus>().take()
}

/// Restarts the given rows' entities by hand, from within a schedule: as [`reset_rows`], but the world's change trackers
/// are left to whoever runs the schedule, and so is a failure, in [`StepStatus`].
pub fn restart(world: &mut World, entities: &[Entity]) {
    if entities.is_empty() {
        return;
    }
    for &entity in entities {
        world.entity_mut(entity).insert(ResetRequested);
    }
    world.resource_mut::<StepLog>().clear();
    world.run_schedule(ResetSchedule);
    // The reset pass reported the flags of the episodes that ended; nothing of them is the outcome of a step.
    world.resource_scope(|world, mut buffers: Mut<StepBuffers>| {
        for &entity in &world.resource::<ResettingRows>().entities.clone() {
            if let Ok((row, mut termination)) = world.query::<(&Row, &mut Termination)>().get_mut(world, entity) {
                *termination = Termination::default();
                buffers.set_flags(*row, &termination);
            }
        }
    });
}
