//! The row's identity, its tags, and the bundle of everything a row carries.

use bevy_ecs::prelude::*;

use crate::{
    Action, Command, CommandWidths, EpisodeClock, EventTimers, HistoryWidths, Metrics, Observation, ObservationHistory,
    Reward, RobotState, Streams, TaskState, Termination,
};

/// Index of an environment row, `0..rows`. Every buffer that leaves the world is indexed by it.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[component(immutable)]
pub struct Row(pub u32);

impl Row {
    /// The row as an index into buffers.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Marks a row that the next reset pass will restart.
///
/// The runtime inserts it on rows whose episode ended; a host may insert it on any row at any time. Only rows that
/// carry it are drawn, written, evaluated and observed by the reset pass, which removes it.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[component(storage = "SparseSet")]
pub struct ResetRequested;

/// Marks a row whose episode ended and which has not been reset, when the reset does not happen in the same step.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[component(storage = "SparseSet")]
pub struct AwaitingReset;

/// How many values each of a row's components holds. The same for every row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowWidths {
    /// Physics outputs.
    pub robot_state: usize,
    /// Values of the action.
    pub action: usize,
    /// Commands.
    pub command: CommandWidths,
    /// Named task values.
    pub task_state: usize,
    /// Observation values, all groups together.
    pub observation: usize,
    /// Values shared between observation groups, before noise.
    pub raw_observation: usize,
    /// History and delay lines.
    pub history: HistoryWidths,
    /// Reward terms.
    pub reward_terms: usize,
    /// Metric terms.
    pub metric_terms: usize,
    /// Interval events with a timer per row.
    pub event_timers: usize,
}

/// Everything a row entity carries.
#[derive(Bundle, Debug, Clone)]
pub struct RowBundle {
    /// The row's index.
    pub row: Row,
    /// Time since the last reset.
    pub clock: EpisodeClock,
    /// Random streams of this episode.
    pub streams: Streams,
    /// Physics outputs.
    pub robot_state: RobotState,
    /// Action history.
    pub action: Action,
    /// Commands.
    pub command: Command,
    /// Named task values.
    pub task_state: TaskState,
    /// Observations.
    pub observation: Observation,
    /// Observation history.
    pub history: ObservationHistory,
    /// Rewards.
    pub reward: Reward,
    /// Metrics.
    pub metrics: Metrics,
    /// End of the episode.
    pub termination: Termination,
    /// Interval timers.
    pub timers: EventTimers,
}

impl RowBundle {
    /// A row before its first reset: everything zero, episode 0.
    #[must_use]
    pub fn new(row: Row, seed: u64, widths: &RowWidths) -> Self {
        Self {
            row,
            clock: EpisodeClock::default(),
            streams: Streams::for_row(seed, row, 0),
            robot_state: RobotState::zeros(widths.robot_state),
            action: Action::zeros(widths.action),
            command: Command::zeros(&widths.command),
            task_state: TaskState::zeros(widths.task_state),
            observation: Observation::zeros(widths.observation, widths.raw_observation),
            history: ObservationHistory::zeros(&widths.history),
            reward: Reward::zeros(widths.reward_terms),
            metrics: Metrics::zeros(widths.metric_terms),
            termination: Termination::default(),
            timers: EventTimers::zeros(widths.event_timers),
        }
    }
}
