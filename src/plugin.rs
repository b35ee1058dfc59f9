//! An environment as a plugin of a `bevy_app` application, in a schedule of the application's choice.
//!
//! The rows are entities of the application's world, the managers its resources, and a control step is a part of one of
//! its schedules, so that its own systems can be ordered against every [`StepSystems`] set:
//!
//! ```
//! use bevy_app::prelude::*;
//! use manege::plugin::{EpisodeEnded, ManegePlugin, PluginSystems};
//! use manege::prelude::*;
//! use manege::systems::managers::action::ActionInput;
//! use manege::systems::managers::observation::ObservationBuffers;
//! use manege::systems::step::StepCounter;
//!
//! fn policy(observations: Res<ObservationBuffers>, mut actions: ResMut<ActionInput>) {
//!     let seen = observations.group(0); // rows × width
//!     actions.values.fill(0.1 * seen[0]);
//! }
//!
//! fn applaud(mut ended: MessageReader<EpisodeEnded>) {
//!     for end in ended.read() {
//!         println!("row {} got {} in {} steps", end.row.0, end.total_reward, end.length);
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::builder("go2_joystick_flat").rows(4).seed(7);
//! let mut app = App::new();
//! app.add_plugins(ManegePlugin::new(environment, Update)?)
//!     .add_systems(Update, (policy.in_set(PluginSystems::Policy), applaud.after(PluginSystems::Step)));
//! app.update();
//! app.update();
//! assert_eq!(app.world().resource::<StepCounter>().steps, 2);
//! # Ok(())
//! # }
//! ```
//!
//! A run of the schedule is one control step of [`PhysicsConfig::control_period`] seconds: in `FixedUpdate`, the fixed time
//! step is to be the same. Systems of the reset pass go into [`ResetSchedule`](manege_systems::schedule::ResetSchedule).
//! Without `bevy_app`, see [`manege_systems::runtime::prepare`].
//!
//! [`PhysicsConfig::control_period`]: manege_systems::config::PhysicsConfig::control_period

use std::sync::{Mutex, PoisonError};

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{InternedScheduleLabel, ScheduleLabel};
use manege_components::{EpisodeClock, Reward, Row, Termination};
use manege_systems::error::StepError;
use manege_systems::runtime;
use manege_systems::schedule::{StepSystems, add_step, reset_schedule};
use manege_systems::step::{RowEntities, StepStatus, step_is_ok};

use crate::environment::{EnvironmentBuilder, EnvironmentError, Spec, Unplaced};

/// Adds the rows of an environment to an application, and their control step to one of its schedules.
///
/// What the builder's [`extend`](EnvironmentBuilder::extend) was given sees that schedule as the step schedule. The
/// environment's [`Spec`] becomes a resource.
pub struct ManegePlugin {
    schedule: InternedScheduleLabel,
    /// Taken when the plugin is added.
    environment: Mutex<Option<Unplaced>>,
}

impl ManegePlugin {
    /// Builds the environment, whose control step is to be taken whenever `schedule` runs.
    ///
    /// # Errors
    /// See [`EnvironmentError`]. Adding the plugin cannot fail any more.
    pub fn new(environment: EnvironmentBuilder, schedule: impl ScheduleLabel) -> Result<Self, EnvironmentError> {
        Ok(Self { schedule: schedule.intern(), environment: Mutex::new(Some(environment.prepare()?)) })
    }
}

impl Plugin for ManegePlugin {
    fn build(&self, app: &mut App) {
        let Some(environment) = self.environment.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        app.add_message::<EpisodeEnded>().add_message::<StepFailed>().init_schedule(self.schedule);
        app.world_mut().schedule_scope(self.schedule, |world, step| {
            let mut reset = reset_schedule();
            add_step(step);
            add_plugin_systems(step);
            let info = environment.info;
            environment.prepared.install_into(world, step, &mut reset);
            (environment.extension)(world, step, &mut reset);
            world.add_schedule(reset);
            world.insert_resource(Spec::new(world, &info));
            let well = world.resource::<StepStatus>().is_ok();
            world.insert_resource(if well { Stage::Built } else { Stage::Broken });
        });
    }
}

/// The plugin's places in the schedule, in order, around the sets of the control step.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginSystems {
    /// When the schedule runs for the first time, every row starts its first episode.
    Start,
    /// For the application's policy, which reads
    /// [`ObservationBuffers`](manege_systems::managers::observation::ObservationBuffers) and writes
    /// [`ActionInput`](manege_systems::managers::action::ActionInput). Actions that nobody writes stay what they were, 0 at
    /// the start.
    Policy,
    /// The control step; it has all [`StepSystems`] in it. A run condition on this set pauses the environment.
    Step,
    /// A step that failed is reported.
    Report,
}

fn add_plugin_systems(schedule: &mut Schedule) {
    let step = PluginSystems::Step.run_if(|stage: Res<Stage>| *stage == Stage::Started);
    schedule.configure_sets((PluginSystems::Start, PluginSystems::Policy, step, PluginSystems::Report).chain());
    for set in StepSystems::ALL {
        schedule.configure_sets(set.in_set(PluginSystems::Step));
    }
    // After the last set that can fail, and before clocks and sums restart.
    let ends = report_ends.in_set(PluginSystems::Step).after(StepSystems::Observation).before(StepSystems::Reset);
    schedule.add_systems((
        start.in_set(PluginSystems::Start),
        ends.run_if(step_is_ok),
        report_failure.in_set(PluginSystems::Report),
    ));
}

/// How far the environment has come.
#[derive(Resource, Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The rows have no episode yet.
    Built,
    /// The rows are in their episodes.
    Started,
    /// A startup event failed, so that the rows are not what the configuration says. No step is ever taken.
    Broken,
}

fn start(world: &mut World) {
    if *world.resource::<Stage>() != Stage::Built {
        return;
    }
    let rows = world.resource::<RowEntities>().0.clone();
    runtime::restart(world, &rows);
    if world.resource::<StepStatus>().is_ok() {
        *world.resource_mut::<Stage>() = Stage::Started;
    }
}

/// A row's episode has ended in this control step. It is written before the row's reset.
#[derive(Message, Debug, Clone, Copy, PartialEq)]
pub struct EpisodeEnded {
    /// The row's entity.
    pub entity: Entity,
    /// The row.
    pub row: Row,
    /// Number of the row's episode, from 1.
    pub episode: u32,
    /// Control steps of the episode.
    pub length: u32,
    /// Sum of the episode's rewards: its return.
    pub total_reward: f32,
    /// Whether it ended in a terminal state.
    pub terminated: bool,
    /// Whether it was cut off.
    pub truncated: bool,
    /// Whether it ended because the row's physics failed.
    pub diverged: bool,
}

fn report_ends(
    mut ended: MessageWriter<EpisodeEnded>,
    entities: Res<RowEntities>,
    rows: Query<(&Row, &EpisodeClock, &Reward, &Termination)>,
) {
    // In the order of rows, whatever tables they are in.
    for &entity in &entities.0 {
        let Ok((&row, clock, reward, termination)) = rows.get(entity) else { continue };
        if termination.done() && !termination.idle {
            ended.write(EpisodeEnded {
                entity,
                row,
                episode: clock.episode,
                length: clock.step,
                total_reward: reward.episode_sums.iter().sum(),
                terminated: termination.terminated,
                truncated: termination.truncated,
                diverged: termination.diverged,
            });
        }
    }
}

/// A control step failed. After an error about the actions, nothing has changed and the next step may follow.
#[derive(Message, Debug)]
pub struct StepFailed(pub StepError);

fn report_failure(mut status: ResMut<StepStatus>, mut failed: MessageWriter<StepFailed>) {
    if let Err(error) = status.take() {
        tracing::error!(%error, "a control step failed");
        failed.write(StepFailed(error));
    }
}
