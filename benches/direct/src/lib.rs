//! The baseline that the benchmark holds the managers against.
//!
//! Each task is written a second time, as one loop over rows that does everything a row needs while it is in the cache:
//! no ECS, no managers, no terms that could be exchanged. The physics backend, the random streams and every number that
//! comes out are those of the managed environment; a test of this package compares them bit by bit. Nothing but the
//! benchmark uses it: the product has one way to run a task, and this is not it.
//!
//! One difference remains. A row whose physics failed gets no reward and repeats its last observation as its final one,
//! where the managed environment makes both from the last finite state.
//!
//! To add a task, implement [`FusedTask`] in a file of its own below `tasks`, and add it to the list that [`build`] reads.

mod ceiling;
mod environment;
mod replay;
mod root;
mod run;
mod task;
mod tasks;
mod velocity;

pub use ceiling::Recording;
pub use environment::{Direct, Options, Report, Times};
pub use replay::{Bookkeeping, ReplayRing};
pub use run::{Measurement, RunOptions, measure};
pub use task::{Clock, Ended, FusedTask, Plan, Slot};

use manege_systems::backend::{BackendError, StateWrite};
use manege_systems::config::ConfigError;
use manege_tasks::motion::MotionError;
use manege_tasks::{Task, TaskError};
use tasks::g1_motion_tracking::G1MotionTracking;
use tasks::g1_walk_flat::G1WalkFlat;
use tasks::go2_joystick_flat::Go2JoystickFlat;

/// Why the baseline cannot be built or stepped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectError {
    /// There is no such task or preset.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The task exists, but has not been written a second time.
    #[error("task `{task}` has no direct version; the tasks that have one: {}", task_names().join(", "))]
    NotWritten {
        /// The task.
        task: String,
    },
    /// The model lacks something by name that the task is written around.
    #[error("the model has no {kind} `{name}`")]
    Missing {
        /// What kind of thing.
        kind: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// The model is not the robot that the task is written around.
    #[error("the model does not have {expected} joints, each with an actuator")]
    Joints {
        /// Number of joints.
        expected: usize,
    },
    /// The task's periods do not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The physics engine refused the model, a step or a write.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The motion cannot be made.
    #[error(transparent)]
    Motion(#[from] MotionError),
    /// The operating system refuses to start a thread.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The actions have the wrong shape.
    #[error("{actual} action values for {rows} rows of {width}")]
    ActionShape {
        /// Number of rows.
        rows: usize,
        /// Values in a row's action.
        width: usize,
        /// Values given.
        actual: usize,
    },
    /// An action is not finite.
    #[error("action {value} in row {row}, column {column} is not finite")]
    ActionNotFinite {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// The value.
        value: f32,
    },
    /// A reward or an observation is not finite.
    #[error("a reward or an observation is not finite in step {step}")]
    NotFinite {
        /// Control step, from 1; 0 for the first reset.
        step: u64,
    },
}

/// A task's baseline, whichever task it is. All buffers are row-major, indexed by row.
pub trait Environment: Send {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of values in one row's action.
    fn action_width(&self) -> usize;

    /// Widths of the observation groups: the policy's and the critic's.
    fn group_widths(&self) -> [usize; 2];

    /// Number of reward terms.
    fn reward_count(&self) -> usize;

    /// Names of the errors that the command reports, in the order of [`Report::errors`].
    fn error_names(&self) -> &'static [&'static str];

    /// Restarts every row. To be called once, before the first step.
    ///
    /// # Errors
    /// See [`DirectError`].
    fn reset(&mut self) -> Result<(), DirectError>;

    /// Takes every row through one control step; rows whose episode ends begin the next one.
    ///
    /// # Errors
    /// Actions of the wrong shape or not finite change nothing. Else see [`DirectError`].
    fn step(&mut self, actions: &[f32]) -> Result<(), DirectError>;

    /// Observations of a group, rows × width; rows that were just reset show their new episode.
    fn observation(&self, group: usize) -> &[f32];

    /// Last observations of the episodes that ended in the last step, rows × width. Other rows mean nothing.
    fn final_observation(&self, group: usize) -> &[f32];

    /// Rewards of the last step, one per row.
    fn rewards(&self) -> &[f32];

    /// Value × weight of every reward term in the last step, before the control period, rows × terms.
    fn reward_terms(&self) -> &[f32];

    /// Whether the last step ended the episode in a terminal state, one per row.
    fn terminated(&self) -> &[bool];

    /// Whether the last step cut the episode off, one per row.
    fn truncated(&self) -> &[bool];

    /// The rows that the last step reset, in ascending order.
    fn reset_rows(&self) -> &[u32];

    /// What is reported about the episodes that the last step ended.
    fn report(&self) -> &Report;

    /// Where the last step's time went.
    fn times(&self) -> Times;

    /// The controls that the last step applied, rows × actuators.
    fn controls(&self) -> &[f64];

    /// Calls `visit` with every state write of the last step, in order.
    fn writes(&self, visit: &mut dyn FnMut(StateWrite<'_>));
}

type Build = fn(Task, &str, Options) -> Result<Box<dyn Environment>, DirectError>;

/// The tasks that have a direct version.
const TASKS: [(&str, Build); 3] = [
    ("go2_joystick_flat", direct::<Go2JoystickFlat>),
    ("g1_walk_flat", direct::<G1WalkFlat>),
    ("g1_motion_tracking", direct::<G1MotionTracking>),
];

fn direct<T: FusedTask + 'static>(
    task: Task,
    preset: &str,
    options: Options,
) -> Result<Box<dyn Environment>, DirectError> {
    Ok(Box::new(Direct::<T>::new(task, preset, options)?))
}

/// The names of the tasks that have a direct version.
#[must_use]
pub fn task_names() -> Vec<&'static str> {
    TASKS.iter().map(|(name, _)| *name).collect()
}

/// The baseline of `task` or `task:preset`.
///
/// # Errors
/// See [`DirectError`].
pub fn build(name: &str, options: Options) -> Result<Box<dyn Environment>, DirectError> {
    let (task, preset) = manege_tasks::find(name)?;
    let (_, build) = TASKS
        .iter()
        .find(|(name, _)| *name == task.name)
        .ok_or_else(|| DirectError::NotWritten { task: task.name.to_owned() })?;
    build(task, preset.name, options)
}
