//! How term code reads a row.

use bevy_ecs::query::QueryData;
use glam::{DQuat, DVec3};
use manege_components::{Action, Command, EpisodeClock, RobotState, Row, Streams, TaskState, rotation};

use crate::handles::{CommandSlice, StateSlice, TaskSlice};

/// The columns that every term may read, aside from those that commands write.
#[derive(QueryData)]
#[query_data(contiguous(all))]
pub struct BaseColumns {
    row: &'static Row,
    clock: &'static EpisodeClock,
    streams: &'static Streams,
    state: &'static RobotState,
    action: &'static Action,
}

/// The columns that every term may read. A manager's pass adds the columns that it writes.
#[derive(QueryData)]
#[query_data(contiguous(all))]
pub struct RowColumns {
    base: BaseColumns,
    command: &'static Command,
    task: &'static TaskState,
}

impl<'w> BaseColumnsItem<'w, '_> {
    /// The row as command terms see it: without commands and task state, which they write.
    #[must_use]
    pub fn view(&self) -> RowView<'w> {
        RowView {
            row: *self.row,
            clock: self.clock,
            streams: self.streams,
            state: &self.state.values,
            action: self.action,
            command: &[],
            task: &[],
        }
    }
}

impl<'w> RowColumnsItem<'w, '_> {
    /// The row as terms see it.
    #[must_use]
    pub fn view(&self) -> RowView<'w> {
        RowView { command: &self.command.values, task: &self.task.values, ..self.base.view() }
    }
}

impl<'w> BaseColumnsContiguousItem<'w, '_> {
    /// The row at position `i` of this table, without commands and task state.
    pub(crate) fn view(&self, i: usize) -> RowView<'w> {
        RowView {
            row: self.row[i],
            clock: &self.clock[i],
            streams: &self.streams[i],
            state: &self.state[i].values,
            action: &self.action[i],
            command: &[],
            task: &[],
        }
    }
}

impl<'w> RowColumnsContiguousItem<'w, '_> {
    /// The row at position `i` of this table.
    pub(crate) fn view(&self, i: usize) -> RowView<'w> {
        RowView { command: &self.command[i].values, task: &self.task[i].values, ..self.base.view(i) }
    }
}

/// One row, as terms read it.
///
/// Handles ([`StateSlice`], [`CommandSlice`], [`TaskSlice`]) are resolved by name when the environment is built; reading
/// through them is an index computation.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    row: Row,
    clock: &'a EpisodeClock,
    streams: &'a Streams,
    state: &'a [f64],
    action: &'a Action,
    command: &'a [f32],
    task: &'a [f32],
}

impl<'a> RowView<'a> {
    /// A view over a row's parts, for tests of terms and for hosts that keep rows elsewhere.
    #[must_use]
    pub fn new(
        row: Row,
        clock: &'a EpisodeClock,
        streams: &'a Streams,
        state: &'a RobotState,
        action: &'a Action,
        command: &'a Command,
        task: &'a TaskState,
    ) -> Self {
        Self { row, clock, streams, state: &state.values, action, command: &command.values, task: &task.values }
    }

    /// The same view, with commands and task state.
    pub(crate) fn with(self, command: &'a Command, task: &'a TaskState) -> Self {
        Self { command: &command.values, task: &task.values, ..self }
    }

    /// The row's index.
    #[must_use]
    #[inline]
    pub fn row(&self) -> Row {
        self.row
    }

    /// Time within the episode.
    #[must_use]
    #[inline]
    pub fn clock(&self) -> EpisodeClock {
        *self.clock
    }

    /// The row's random streams in this episode.
    #[must_use]
    #[inline]
    pub fn streams(&self) -> Streams {
        *self.streams
    }

    /// The raw action being executed, `A` values.
    #[must_use]
    #[inline]
    pub fn action(&self) -> &'a [f32] {
        self.action.current()
    }

    /// The raw action of the control step before, `A` values.
    #[must_use]
    #[inline]
    pub fn previous_action(&self) -> &'a [f32] {
        self.action.previous()
    }

    /// The raw action two control steps before, `A` values.
    #[must_use]
    #[inline]
    pub fn before_previous_action(&self) -> &'a [f32] {
        self.action.before_previous()
    }

    /// Values of a command term.
    #[must_use]
    #[inline]
    pub fn command(&self, slice: CommandSlice) -> &'a [f32] {
        &self.command[slice.range()]
    }

    /// Values that the task keeps per row.
    #[must_use]
    #[inline]
    pub fn task(&self, slice: TaskSlice) -> &'a [f32] {
        &self.task[slice.range()]
    }

    /// A physics output.
    #[must_use]
    #[inline]
    pub fn state(&self, slice: StateSlice) -> &'a [f64] {
        &self.state[slice.range()]
    }

    /// The first value of a physics output.
    #[must_use]
    #[inline]
    pub fn scalar(&self, slice: StateSlice) -> f64 {
        self.state[slice.range().start]
    }

    /// A physics output of three values as a vector.
    #[must_use]
    #[inline]
    pub fn vec3(&self, slice: StateSlice) -> DVec3 {
        rotation::vec3(self.state(slice))
    }

    /// A physics output of four values, `wxyz`, as a rotation.
    #[must_use]
    #[inline]
    pub fn rotation(&self, slice: StateSlice) -> DQuat {
        rotation::from_wxyz(self.state(slice))
    }
}
