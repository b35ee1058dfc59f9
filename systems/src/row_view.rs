//! How term code reads a row, and how row loops are split over threads.

use bevy_ecs::prelude::Resource;
use bevy_ecs::query::QueryData;
use glam::{DQuat, DVec3};
use manege_components::{Action, Command, EpisodeClock, RobotState, Row, Streams, TaskState, rotation};
use rayon::prelude::*;

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
    pub fn row(&self) -> Row {
        self.row
    }

    /// Time within the episode.
    #[must_use]
    pub fn clock(&self) -> EpisodeClock {
        *self.clock
    }

    /// The row's random streams in this episode.
    #[must_use]
    pub fn streams(&self) -> Streams {
        *self.streams
    }

    /// The raw action being executed, `A` values.
    #[must_use]
    pub fn action(&self) -> &'a [f32] {
        self.action.current()
    }

    /// The raw action of the control step before, `A` values.
    #[must_use]
    pub fn previous_action(&self) -> &'a [f32] {
        self.action.previous()
    }

    /// The raw action two control steps before, `A` values.
    #[must_use]
    pub fn before_previous_action(&self) -> &'a [f32] {
        self.action.before_previous()
    }

    /// Values of a command term.
    #[must_use]
    pub fn command(&self, slice: CommandSlice) -> &'a [f32] {
        &self.command[slice.range()]
    }

    /// Values that the task keeps per row.
    #[must_use]
    pub fn task(&self, slice: TaskSlice) -> &'a [f32] {
        &self.task[slice.range()]
    }

    /// A physics output.
    #[must_use]
    pub fn state(&self, slice: StateSlice) -> &'a [f64] {
        &self.state[slice.range()]
    }

    /// The first value of a physics output.
    #[must_use]
    pub fn scalar(&self, slice: StateSlice) -> f64 {
        self.state[slice.range().start]
    }

    /// A physics output of three values as a vector.
    #[must_use]
    pub fn vec3(&self, slice: StateSlice) -> DVec3 {
        rotation::vec3(self.state(slice))
    }

    /// A physics output of four values, `wxyz`, as a rotation.
    #[must_use]
    pub fn rotation(&self, slice: StateSlice) -> DQuat {
        rotation::from_wxyz(self.state(slice))
    }
}

/// Rows that are handed to one worker at a time. A multiple of nothing in particular: small enough to balance, large
/// enough that handing over costs little.
const CHUNK: usize = 64;

/// Rows from which a loop pays for waking other threads and for moving the rows to their cores. Measured on two cores:
/// below some 2,000 rows a loop is slower on two threads than on one.
const PARALLEL_ROWS: usize = 32 * CHUNK;

/// Threads that row loops may use.
///
/// At most one dispatch runs at a time, so the physics threads are idle while these work and the number of threads that
/// run at once never exceeds the number asked for.
#[derive(Resource)]
pub struct Workers {
    pool: Option<rayon::ThreadPool>,
}

impl Workers {
    /// Loops over `rows` rows on at most `threads` threads. With one, or with few rows, everything runs on the caller's.
    ///
    /// # Errors
    /// The operating system refuses to start a thread.
    pub fn new(threads: usize, rows: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = if threads > 1 && rows >= PARALLEL_ROWS {
            Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(|i| format!("manege-rows-{i}"))
                    .build()?,
            )
        } else {
            None
        };
        Ok(Self { pool })
    }

    /// Calls `work` on consecutive pieces of a column, with the index of each piece's first element.
    ///
    /// The pieces, and so every result, are the same for any number of threads.
    pub(crate) fn split<A: Send>(&self, column: &mut [A], work: impl Fn(usize, &mut [A]) + Sync + Send) {
        match self.pool_for(column.len()) {
            Some(pool) => pool.install(|| {
                column.par_chunks_mut(CHUNK).enumerate().for_each(|(i, piece)| work(i * CHUNK, piece));
            }),
            None => {
                for (i, piece) in column.chunks_mut(CHUNK).enumerate() {
                    work(i * CHUNK, piece);
                }
            }
        }
    }

    /// As [`split`](Self::split), for two columns of equal length.
    pub(crate) fn split2<A: Send, B: Send>(
        &self,
        first: &mut [A],
        second: &mut [B],
        work: impl Fn(usize, &mut [A], &mut [B]) + Sync + Send,
    ) {
        match self.pool_for(first.len()) {
            Some(pool) => pool.install(|| {
                first
                    .par_chunks_mut(CHUNK)
                    .zip(second.par_chunks_mut(CHUNK))
                    .enumerate()
                    .for_each(|(i, (a, b))| work(i * CHUNK, a, b));
            }),
            None => {
                for (i, (a, b)) in first.chunks_mut(CHUNK).zip(second.chunks_mut(CHUNK)).enumerate() {
                    work(i * CHUNK, a, b);
                }
            }
        }
    }

    /// The pool, if a loop over `rows` is long enough to pay for it.
    fn pool_for(&self, rows: usize) -> Option<&rayon::ThreadPool> {
        self.pool.as_ref().filter(|_| rows >= PARALLEL_ROWS)
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads);
        f.debug_struct("Workers").field("threads", &threads).finish()
    }
}
