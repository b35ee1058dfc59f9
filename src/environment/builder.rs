//! Building an environment step by step.

use bevy_ecs::prelude::*;
use manege_systems::backend::BackendError;
use manege_systems::build::BuildError;
use manege_systems::config::{ConfigError, EnvironmentConfig};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::AutoReset;
use manege_tasks::{Preset, Task, TaskError};

use super::{Environment, Spec};

/// Why an environment cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There is no such task or preset.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The physics engine does not take the model.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A term cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

type Extension = Box<dyn FnOnce(&mut World, &mut Schedule, &mut Schedule) + Send>;

/// An environment that is built, but in no world yet.
#[cfg(feature = "bevy")]
pub(crate) struct Unplaced {
    pub(crate) prepared: runtime::Prepared,
    pub(crate) info: manege_systems::backend::ModelInfo,
    pub(crate) extension: Extension,
}

/// Builds an [`Environment`].
pub struct EnvironmentBuilder {
    task: String,
    tasks: Vec<Task>,
    options: RuntimeOptions,
    changes: Vec<toml::Table>,
    extension: Extension,
}

impl EnvironmentBuilder {
    pub(super) fn new(task: &str) -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            task: task.to_owned(),
            tasks: manege_tasks::tasks().to_vec(),
            options: RuntimeOptions { threads, ..RuntimeOptions::new(1) },
            changes: Vec::new(),
            extension: Box::new(|_, _, _| {}),
        }
    }

    /// Makes an application's own task known by its name, beside the built-in ones. Of two tasks with the same name the
    /// one registered last is meant.
    #[must_use]
    pub fn register(mut self, task: Task) -> Self {
        self.tasks.insert(0, task);
        self
    }

    /// Number of rows; 1 unless said otherwise.
    #[must_use]
    pub fn rows(mut self, rows: usize) -> Self {
        self.options.rows = rows;
        self
    }

    /// Key of every random stream; 0 unless said otherwise.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Most threads that run at once; one per core unless said otherwise. Results do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Changes to the preset's configuration, with the keys that
    /// [`EnvironmentConfig::to_table`] shows. May be repeated; later changes win.
    #[must_use]
    pub fn config(mut self, changes: toml::Table) -> Self {
        self.changes.push(changes);
        self
    }

    /// When rows whose episode ended start the next one.
    #[must_use]
    pub fn auto_reset(mut self, auto_reset: AutoReset) -> Self {
        self.options.auto_reset = auto_reset;
        self
    }

    /// Whether observations get their noise.
    #[must_use]
    pub fn corruption(mut self, corruption: bool) -> Self {
        self.options.corruption = corruption;
        self
    }

    /// Whether events vary the model and push the robot, and reset draws spread over their ranges.
    #[must_use]
    pub fn randomization(mut self, randomization: bool) -> Self {
        self.options.randomization = randomization;
        self
    }

    /// Whether rows begin at different places of their first episode, so that they do not all run out of time at once. Off
    /// unless said otherwise.
    #[must_use]
    pub fn stagger_episodes(mut self, stagger: bool) -> Self {
        self.options.stagger_episodes = stagger;
        self
    }

    /// Gives the step and the reset schedule to `extend` before they are built, to add systems of the application's
    /// own, ordered against [`StepSystems`](manege_systems::schedule::StepSystems) and
    /// [`ResetSystems`](manege_systems::schedule::ResetSystems).
    #[must_use]
    pub fn extend(mut self, extend: impl FnOnce(&mut World, &mut Schedule, &mut Schedule) + Send + 'static) -> Self {
        let earlier = self.extension;
        self.extension = Box::new(move |world, step, reset| {
            earlier(world, step, reset);
            extend(world, step, reset);
        });
        self
    }

    /// The task's configuration with all changes.
    ///
    /// # Errors
    /// There is no such task or preset, or a change is wrong.
    pub fn resolved_config(&self) -> Result<EnvironmentConfig, EnvironmentError> {
        Ok(self.resolve()?.2)
    }

    fn resolve(&self) -> Result<(Task, Preset, EnvironmentConfig), EnvironmentError> {
        let (task, preset) = manege_tasks::find_among(&self.tasks, &self.task)?;
        let mut config = (task.config)(preset.name);
        for changes in &self.changes {
            config.apply(changes)?;
        }
        config.validate()?;
        Ok((task, preset, config))
    }

    /// Does everything that can fail.
    #[cfg(feature = "bevy")]
    pub(crate) fn prepare(self) -> Result<Unplaced, EnvironmentError> {
        let (task, _, config) = self.resolve()?;
        let model = task.load(&config.physics)?;
        let info = model.info().clone();
        let prepared = runtime::prepare(&config, model, self.options)?;
        Ok(Unplaced { prepared, info, extension: self.extension })
    }

    /// Makes the environment. Its rows are in their default state until [`Environment::reset`].
    ///
    /// # Errors
    /// See [`EnvironmentError`].
    pub fn build(self) -> Result<Environment, EnvironmentError> {
        let (task, preset, config) = self.resolve()?;
        let model = task.load(&config.physics)?;
        let info = model.info().clone();
        let engine = model.engine();
        let mut world = World::new();
        runtime::install(&mut world, &config, model, self.options, self.extension)?;
        let spec = Spec::new(&world, &info);
        let rows = self.options.rows;
        Ok(Environment {
            task: task.name.to_owned(),
            preset: preset.name.to_owned(),
            engine,
            definition: task,
            model: info,
            options: self.options,
            config,
            qpos: vec![0.0; rows * spec.nq],
            qvel: vec![0.0; rows * spec.nv],
            commands: vec![0.0; rows * spec.command_width()],
            spec,
            world,
        })
    }
}
