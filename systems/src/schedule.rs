//! The two schedules and their system sets, in the order in which they run.

use bevy_ecs::prelude::*;
use bevy_ecs::schedule::{LogLevel, ScheduleBuildSettings, ScheduleLabel};

use crate::buffers::publish_step;
use crate::managers::{action, command, curriculum, event, metrics, observation, recorder, reward, termination};
use crate::physics::{commit_resets, dispatch_physics, read_state};
use crate::step::step_is_ok;
use crate::{reset, timing, wrench};

/// Label of the schedule that takes every row through one control step.
#[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepSchedule;

/// Label of the schedule that restarts the rows that carry [`ResetRequested`](manege_components::ResetRequested).
#[derive(ScheduleLabel, Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResetSchedule;

/// What happens in a control step. The sets run in this order, each after the one before it; after a failure, no later
/// set runs.
///
/// A host orders its own systems against them, in [`StepSchedule`]:
/// `my_system.after(StepSystems::Physics).before(StepSystems::Termination)`. A system that is in none of the sets also runs
/// in a step that was refused; `.run_if(step_is_ok)` ([`step_is_ok`]) spares it that.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepSystems {
    /// Actions are checked. A bad action ends the step here, with nothing changed.
    Check,
    /// Curricula that run every step do so. Actions are shifted into their history, scaled, offset and clipped; controls are written.
    Action,
    /// What acts on the rows from outside is set; then one physics dispatch, all substeps inside.
    Physics,
    /// The new state is read once into the rows; diverged rows are marked.
    State,
    /// Per-row state that tasks keep (clocks, phases) advances. The runtime has no systems here.
    Task,
    /// Terminations are evaluated, and rows that are over are marked for reset.
    Termination,
    /// Rewards are evaluated.
    Reward,
    /// Metrics are gathered, and rewards and flags are copied to the caller's buffers.
    Metrics,
    /// Step events, then interval events.
    Event,
    /// Commands follow their timers; rows that are over keep theirs.
    Command,
    /// Observations of all rows; those of rows that are over are kept as final observations.
    Observation,
    /// The [`ResetSchedule`] runs if any row asks for it, and recorders look at the step.
    Reset,
    /// The step is complete.
    Recorder,
}

impl StepSystems {
    /// All sets, in order.
    pub const ALL: [Self; 13] = [
        Self::Check,
        Self::Action,
        Self::Physics,
        Self::State,
        Self::Task,
        Self::Termination,
        Self::Reward,
        Self::Metrics,
        Self::Event,
        Self::Command,
        Self::Observation,
        Self::Reset,
        Self::Recorder,
    ];
}

/// What happens in a reset pass. The sets run in this order, each after the one before it.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResetSystems {
    /// The rows are listed, and recorders look at those whose episode has ended. The rows' components still describe the
    /// end of the last episode.
    Begin,
    /// Curricula look at the episodes that ended.
    Curriculum,
    /// The next episode begins to exist: random streams change, and reset events stage the new state.
    Event,
    /// Commands are logged and drawn anew.
    Command,
    /// The staged state is written, in one dispatch.
    Commit,
    /// Managers forget the last episode: histories, sums, timers.
    Managers,
    /// Per-row state that tasks keep restarts. The runtime has no systems here.
    Task,
    /// Commands are updated without letting time pass.
    Update,
    /// The first observation is made.
    Observation,
    /// Recorders look at the rows, whose new episode has begun, and the tags are removed.
    Finish,
}

impl ResetSystems {
    /// All sets, in order.
    pub const ALL: [Self; 10] = [
        Self::Begin,
        Self::Curriculum,
        Self::Event,
        Self::Command,
        Self::Commit,
        Self::Managers,
        Self::Task,
        Self::Update,
        Self::Observation,
        Self::Finish,
    ];
}

/// Recorders see the whole world, so nothing can be beside them: they have places of their own between the public sets.
#[derive(SystemSet, Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RecorderHooks {
    PreReset,
    PostReset,
}

fn strict(schedule: &mut Schedule) {
    // One thread, because the systems are parallel inside; and an undefined order must not build.
    schedule.set_executor(bevy_ecs::schedule::SingleThreadedExecutor::new());
    schedule.set_build_settings(ScheduleBuildSettings {
        ambiguity_detection: LogLevel::Error,
        hierarchy_detection: LogLevel::Error,
        ..ScheduleBuildSettings::default()
    });
}

/// The step schedule with the runtime's own systems.
#[must_use]
pub fn step_schedule() -> Schedule {
    let mut schedule = Schedule::new(StepSchedule);
    strict(&mut schedule);
    add_step(&mut schedule);
    schedule
}

/// Adds the sets of a control step, in their order, and the runtime's own systems to a schedule of the host's.
///
/// Nothing is said about executor and ambiguity detection, which are the host's to choose.
pub fn add_step(schedule: &mut Schedule) {
    // Every set asks for itself: a condition on all of them together would be asked once, before the first.
    let after_check = (
        StepSystems::Action,
        StepSystems::Physics,
        StepSystems::State,
        StepSystems::Task,
        StepSystems::Termination,
        StepSystems::Reward,
        StepSystems::Metrics,
        StepSystems::Event,
        StepSystems::Command,
        StepSystems::Observation,
        StepSystems::Reset,
        StepSystems::Recorder,
    );
    schedule.configure_sets((StepSystems::Check, after_check.chain().distributive_run_if(step_is_ok)).chain());
    for set in StepSystems::ALL {
        add_step_systems(schedule, set);
    }
}

/// Adds the runtime's own systems of one set to a schedule, to run or to measure that part of the step alone.
pub fn add_step_systems(schedule: &mut Schedule, set: StepSystems) {
    match set {
        StepSystems::Check => schedule.add_systems(action::check_actions.in_set(set)),
        StepSystems::Action => schedule.add_systems(
            (timing::begin_step, reset::begin_step, curriculum::update_every_step, action::process_actions)
                .chain()
                .in_set(set),
        ),
        StepSystems::Physics => schedule.add_systems((wrench::apply_wrenches, dispatch_physics).chain().in_set(set)),
        StepSystems::State => schedule.add_systems(read_state.in_set(set)),
        StepSystems::Termination => {
            schedule.add_systems((termination::compute_terminations, reset::request_resets).chain().in_set(set))
        }
        StepSystems::Reward => schedule.add_systems(reward::compute_rewards.in_set(set)),
        StepSystems::Metrics => schedule.add_systems((metrics::compute_metrics, publish_step).chain().in_set(set)),
        StepSystems::Event => schedule.add_systems(event::step_and_interval_events.in_set(set)),
        StepSystems::Command => {
            schedule.add_systems((command::compute_commands, command::redraw_placing_commands).chain().in_set(set))
        }
        StepSystems::Observation => schedule.add_systems(observation::compute_observations.in_set(set)),
        StepSystems::Reset => schedule.add_systems((reset::run_resets, recorder::record_post_step).chain().in_set(set)),
        StepSystems::Recorder => schedule.add_systems(timing::end_step.in_set(set)),
        StepSystems::Task => schedule,
    };
}

/// The reset schedule with the runtime's own systems.
#[must_use]
pub fn reset_schedule() -> Schedule {
    let mut schedule = Schedule::new(ResetSchedule);
    strict(&mut schedule);
    schedule.configure_sets(
        (
            ResetSystems::Begin,
            RecorderHooks::PreReset,
            ResetSystems::Curriculum,
            ResetSystems::Event,
            ResetSystems::Command,
            ResetSystems::Commit,
            ResetSystems::Managers,
            ResetSystems::Task,
            ResetSystems::Update,
            ResetSystems::Observation,
            RecorderHooks::PostReset,
            ResetSystems::Finish,
        )
            .chain(),
    );
    schedule.add_systems((
        recorder::record_pre_reset.in_set(RecorderHooks::PreReset),
        recorder::record_post_reset.in_set(RecorderHooks::PostReset),
    ));
    for set in ResetSystems::ALL {
        add_reset_systems(&mut schedule, set);
    }
    schedule
}

/// Adds the runtime's own systems of one set of the reset pass to a schedule, to run or to measure that part alone.
pub fn add_reset_systems(schedule: &mut Schedule, set: ResetSystems) {
    match set {
        ResetSystems::Begin => schedule.add_systems(reset::begin_reset.in_set(set)),
        ResetSystems::Curriculum => schedule.add_systems(curriculum::update_at_reset.in_set(set)),
        ResetSystems::Event => schedule.add_systems((reset::begin_episodes, event::reset_events).chain().in_set(set)),
        ResetSystems::Command => schedule.add_systems(command::reset_commands.in_set(set)),
        ResetSystems::Commit => schedule.add_systems(commit_resets.in_set(set)),
        ResetSystems::Managers => schedule.add_systems(
            (
                action::reset_actions,
                reset::reset_rewards,
                metrics::reset_metrics,
                observation::reset_observation_history,
                event::reset_event_timers,
                reset::reset_clocks,
            )
                .chain()
                .in_set(set),
        ),
        ResetSystems::Task => schedule,
        ResetSystems::Update => schedule.add_systems(command::follow_reset_rows.in_set(set)),
        ResetSystems::Observation => schedule.add_systems(observation::compute_reset_observations.in_set(set)),
        ResetSystems::Finish => schedule.add_systems(reset::finish_reset.in_set(set)),
    };
}
