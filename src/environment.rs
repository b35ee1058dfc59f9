//! An environment as one object: a world, its schedules, and the buffers that a caller reads.

mod builder;
mod commands;
mod initial;
mod snapshot;
mod spec;

#[cfg(feature = "bevy")]
pub(crate) use builder::Unplaced;
pub use builder::{EnvironmentBuilder, EnvironmentError};
pub use initial::{InitialError, InitialState};
pub use snapshot::{Snapshot, SnapshotError};
pub use spec::{GroupSpec, Spec, TermColumns};

pub use manege_systems::managers::command::{CommandHandle, CommandOverrideError, Rows};

use std::path::Path;

use bevy_ecs::prelude::*;
use manege_components::{Command, RobotState, Row};
use manege_systems::backend::{BackendError, ModelInfo};
use manege_systems::buffers::StepBuffers;
use manege_systems::config::{EnvironmentConfig, PhysicsConfig};
use manege_systems::error::StepError;
use manege_systems::log::StepLog;
use manege_systems::managers::action::ActionInput;
use manege_systems::managers::observation::{FinalObservations, ObservationBuffers};
use manege_systems::managers::recorder::{RecorderManager, RecorderTerm};
use manege_systems::physics::{Divergences, StateLayout};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::{Controls, RowEntities};
use manege_systems::timing::StepTimings;
use manege_tasks::Task;

/// Rows of one task, stepped together.
///
/// All buffers are row-major, indexed by row, and valid until the next call that takes `&mut self`.
///
/// ```
/// use manege::Environment;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut env = Environment::builder("go2_joystick_flat").rows(4).seed(7).build()?;
/// env.reset()?;
/// let actions = vec![0.0; env.rows() * env.action_width()];
/// env.step(&actions)?;
/// assert_eq!(env.rewards().len(), 4);
/// # Ok(())
/// # }
/// ```
pub struct Environment {
    world: World,
    task: String,
    preset: String,
    engine: &'static str,
    definition: Task,
    model: ModelInfo,
    options: RuntimeOptions,
    config: EnvironmentConfig,
    spec: Spec,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    commands: Vec<f32>,
}

impl Environment {
    /// Starts to build rows of a task, given as `task` or `task:preset`.
    #[must_use]
    pub fn builder(task: &str) -> EnvironmentBuilder {
        EnvironmentBuilder::new(task)
    }

    /// The task's name.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The preset's name.
    #[must_use]
    pub fn preset(&self) -> &str {
        &self.preset
    }

    /// The physics engine's name.
    #[must_use]
    pub fn engine(&self) -> &str {
        self.engine
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.world.resource::<RowEntities>().0.len()
    }

    /// Most threads that run at once.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.options.threads
    }

    /// Key of every random stream.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// Number of values in one row's action.
    #[must_use]
    pub fn action_width(&self) -> usize {
        self.spec.action_width()
    }

    /// Duration of a control step, s.
    #[must_use]
    pub fn control_period(&self) -> f64 {
        self.config.physics.control_period
    }

    /// Physics steps in a control step.
    #[must_use]
    pub fn substeps(&self) -> u32 {
        self.world.resource::<manege_systems::step::Timing>().substeps
    }

    /// The configuration, after all changes.
    #[must_use]
    pub fn config(&self) -> &EnvironmentConfig {
        &self.config
    }

    /// Names, sizes and defaults of the model that is stepped.
    #[must_use]
    pub fn model_info(&self) -> &ModelInfo {
        &self.model
    }

    /// Writes the compiled model that is stepped, before any randomisation, in the engine's own format. It has the geoms that
    /// are only there to be seen, whether or not they are [kept while stepping](PhysicsConfig::visuals).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_model(&self, path: impl AsRef<Path>) -> Result<(), BackendError> {
        self.definition.load(&PhysicsConfig { visuals: true, ..self.config.physics.clone() })?.save_model(path.as_ref())
    }

    /// Whether observations get their noise.
    #[must_use]
    pub fn corruption(&self) -> bool {
        self.options.corruption
    }

    /// Whether events vary the model and push the robot, and reset draws spread over their ranges.
    #[must_use]
    pub fn randomization(&self) -> bool {
        self.options.randomization
    }

    /// Names and widths of everything in the buffers.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Restarts every row. The observation buffers then hold the first observation of the new episodes.
    ///
    /// # Errors
    /// The physics engine refuses the state, or a term is not finite.
    pub fn reset(&mut self) -> Result<(), StepError> {
        runtime::reset_all(&mut self.world)
    }

    /// Restarts the given rows, each with the episode that an automatic reset would have given it. The others are
    /// untouched.
    ///
    /// # Errors
    /// A row does not exist or is given twice; nothing is changed then. Else as [`reset`](Self::reset).
    pub fn reset_rows(&mut self, rows: &[u32]) -> Result<(), StepError> {
        runtime::reset_rows(&mut self.world, rows)
    }

    /// Takes every row through one control step. `actions` has rows × action width values.
    ///
    /// With several threads and many rows, the systems run on one of the environment's threads instead of the caller's, so
    /// those that a host adds have no access to data that is bound to a thread (`NonSend`).
    ///
    /// # Errors
    /// Actions of the wrong shape or not finite are refused; nothing has changed then. Else see [`StepError`].
    pub fn step(&mut self, actions: &[f32]) -> Result<(), StepError> {
        let input = &mut self.world.resource_mut::<ActionInput>().into_inner().values;
        input.clear();
        input.extend_from_slice(actions);
        runtime::step(&mut self.world)
    }

    /// Observations of a group, rows × group width. Rows that were reset within the last step show their new episode.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn observation(&self, group: usize) -> &[f32] {
        self.world.resource::<ObservationBuffers>().group(group)
    }

    /// Last observations of the episodes that ended in the last step, rows × group width. The values of other rows mean
    /// nothing.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn final_observation(&self, group: usize) -> &[f32] {
        self.world.resource::<FinalObservations>().group(group)
    }

    fn buffers(&self) -> &StepBuffers {
        self.world.resource()
    }

    /// Rewards of the last step, one per row.
    #[must_use]
    pub fn rewards(&self) -> &[f32] {
        &self.buffers().rewards
    }

    /// Value × weight of every reward term in the last step, before the control period, rows × terms.
    #[must_use]
    pub fn reward_terms(&self) -> &[f32] {
        &self.buffers().reward_terms
    }

    /// Whether the last step ended the episode in a terminal state, one per row.
    #[must_use]
    pub fn terminated(&self) -> &[bool] {
        &self.buffers().terminated
    }

    /// Whether the last step cut the episode off, one per row.
    #[must_use]
    pub fn truncated(&self) -> &[bool] {
        &self.buffers().truncated
    }

    /// Whether the row's physics failed in the last step, one per row. Such rows are terminated too.
    #[must_use]
    pub fn diverged(&self) -> &[bool] {
        &self.buffers().diverged
    }

    /// Which termination terms fired in the last step, one bit each, one set per row.
    #[must_use]
    pub fn termination_terms(&self) -> &[u64] {
        &self.buffers().termination_terms
    }

    /// How many times a row's physics failed, since the environment was built.
    #[must_use]
    pub fn divergences(&self) -> u64 {
        self.world.resource::<Divergences>().total
    }

    /// Controls that the last step applied, rows × actuators.
    #[must_use]
    pub fn controls(&self) -> &[f64] {
        self.world.resource::<Controls>().values()
    }

    /// Commands of all rows, rows × command width, copied out.
    pub fn commands(&mut self) -> &[f32] {
        let width = self.spec.command_width();
        let mut rows = self.world.query::<(&Row, &Command)>();
        for (row, command) in rows.iter(&self.world) {
            self.commands[row.index() * width..][..width].copy_from_slice(&command.values);
        }
        &self.commands
    }

    /// Generalised positions of all rows, rows × `nq`, copied out.
    pub fn qpos(&mut self) -> &[f64] {
        let slice = self.world.resource::<StateLayout>().qpos;
        copy_state(&mut self.world, slice, &mut self.qpos);
        &self.qpos
    }

    /// Generalised velocities of all rows, rows × `nv`, copied out.
    pub fn qvel(&mut self) -> &[f64] {
        let slice = self.world.resource::<StateLayout>().qvel;
        copy_state(&mut self.world, slice, &mut self.qvel);
        &self.qvel
    }

    /// What the last step reported by name.
    #[must_use]
    pub fn log(&self) -> &StepLog {
        self.world.resource()
    }

    /// Where the last step's time went.
    #[must_use]
    pub fn timings(&self) -> StepTimings {
        *self.world.resource()
    }

    /// Overwrites the state of all rows; see [`InitialState`]. Meant to follow [`reset`](Self::reset).
    ///
    /// # Errors
    /// A name is unknown, a buffer has the wrong size, or a value is not finite; nothing is changed then.
    pub fn set_initial(&mut self, initial: &InitialState) -> Result<(), InitialError> {
        initial::set(&mut self.world, &self.spec, initial)
    }

    /// Has a recorder watch the environment from now on. It is closed when the environment is dropped, if not before.
    pub fn add_recorder(&mut self, recorder: impl RecorderTerm + 'static) {
        self.world.resource_mut::<RecorderManager>().add(Box::new(recorder));
    }

    /// Closes all recorders and lets go of them.
    ///
    /// # Errors
    /// A recorder cannot keep what it has left to keep.
    pub fn close_recorders(&mut self) -> Result<(), StepError> {
        self.world.resource_mut::<RecorderManager>().close()
    }

    /// The world, to read rows' components and the managers.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The world, for a host's own systems and components.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

fn copy_state(world: &mut World, slice: manege_systems::handles::StateSlice, out: &mut [f64]) {
    let mut rows = world.query::<(&Row, &RobotState)>();
    for (row, state) in rows.iter(world) {
        out[row.index() * slice.width()..][..slice.width()].copy_from_slice(&state.values[slice.range()]);
    }
}
