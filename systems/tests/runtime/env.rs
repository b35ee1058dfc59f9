//! An environment in a bare world, and a picture of everything that belongs to one row.

use std::fmt::Write;

use bevy_ecs::prelude::{Component, Entity, Schedule, World};
use manege_components::*;
use manege_systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege_systems::buffers::StepBuffers;
use manege_systems::build::BuildError;
use manege_systems::config::EnvironmentConfig;
use manege_systems::error::StepError;
use manege_systems::log::StepLog;
use manege_systems::managers::action::ActionInput;
use manege_systems::managers::observation::{FinalObservations, ObservationBuffers, ObservationManager};
use manege_systems::physics::{Physics, StateLayout};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::{Controls, RowEntities};

/// Values in an action of the box.
pub const ACTIONS: usize = 2;

/// An action that ends the episode where [`ends_when_told`](crate::terms::ends_when_told) is a term.
pub const END: f32 = 9.0;

/// An environment of boxes.
pub struct Env {
    pub world: World,
    pub rows: usize,
    pub steps: u64,
}

/// Options with a seed that is not the default one.
pub fn options(rows: usize) -> RuntimeOptions {
    RuntimeOptions { seed: 11, ..RuntimeOptions::new(rows) }
}

impl Env {
    pub fn try_new(
        config: &EnvironmentConfig,
        options: RuntimeOptions,
        extend: impl FnOnce(&mut World, &mut Schedule, &mut Schedule),
    ) -> Result<Self, BuildError> {
        Self::in_world(World::new(), config, options, extend)
    }

    /// As [`try_new`](Self::try_new), in a world in which there is something already.
    pub fn in_world(
        mut world: World,
        config: &EnvironmentConfig,
        options: RuntimeOptions,
        extend: impl FnOnce(&mut World, &mut Schedule, &mut Schedule),
    ) -> Result<Self, BuildError> {
        let physics = PhysicsOptions::new(config.physics.timestep);
        let model = Box::new(MujocoBuilder::from_xml(crate::BOX, &physics)?);
        runtime::install(&mut world, config, model, options, extend)?;
        Ok(Self { world, rows: options.rows, steps: 0 })
    }

    pub fn new(config: &EnvironmentConfig, options: RuntimeOptions) -> Self {
        Self::try_new(config, options, |_, _, _| {}).expect("a valid configuration")
    }

    /// As [`new`](Self::new), after the first reset.
    pub fn started(config: &EnvironmentConfig, options: RuntimeOptions) -> Self {
        let mut env = Self::new(config, options);
        env.reset();
        env
    }

    pub fn reset(&mut self) {
        runtime::reset_all(&mut self.world).expect("a reset");
    }

    pub fn reset_rows(&mut self, rows: &[u32]) {
        runtime::reset_rows(&mut self.world, rows).expect("rows to reset");
    }

    pub fn try_step(&mut self, actions: &[f32]) -> Result<(), StepError> {
        self.world.resource_mut::<ActionInput>().values = actions.to_vec();
        runtime::step(&mut self.world)
    }

    /// A step with actions that differ from row to row and step to step, but not with the number of rows.
    pub fn step(&mut self) {
        let actions: Vec<f32> = (0..self.rows).flat_map(|row| action(row, self.steps)).collect();
        self.steps += 1;
        self.try_step(&actions).expect("a step");
    }

    /// As [`step`](Self::step), with actions that end the episodes of some rows where [`ends_when_told`] is a term.
    ///
    /// [`ends_when_told`]: crate::terms::ends_when_told
    pub fn step_ending(&mut self, rows: &[usize]) {
        let mut actions: Vec<f32> = (0..self.rows).flat_map(|row| action(row, self.steps)).collect();
        self.steps += 1;
        for row in rows {
            actions[row * ACTIONS] = END;
        }
        self.try_step(&actions).expect("a step");
    }

    pub fn entity(&self, row: usize) -> Entity {
        self.world.resource::<RowEntities>().0[row]
    }

    pub fn get<C: Component>(&self, row: usize) -> &C {
        self.world.get(self.entity(row)).expect("every row carries it")
    }

    pub fn qpos(&self, row: usize) -> &[f64] {
        &self.get::<RobotState>(row).values[self.world.resource::<StateLayout>().qpos.range()]
    }

    pub fn qvel(&self, row: usize) -> &[f64] {
        &self.get::<RobotState>(row).values[self.world.resource::<StateLayout>().qvel.range()]
    }

    pub fn buffers(&self) -> &StepBuffers {
        self.world.resource()
    }

    pub fn done(&self, row: usize) -> bool {
        self.buffers().terminated[row] || self.buffers().truncated[row]
    }

    pub fn log(&self, key: &str) -> Option<f64> {
        self.world.resource::<StepLog>().get(key)
    }

    fn group_row(&self, buffer: &[f32], group: usize, row: usize) -> Vec<f32> {
        let manager = self.world.resource::<ObservationManager>();
        let width = manager.groups().nth(group).expect("a group").width();
        buffer[row * width..][..width].to_vec()
    }

    /// One row of a group's buffer.
    pub fn observation(&self, group: usize, row: usize) -> Vec<f32> {
        self.group_row(self.world.resource::<ObservationBuffers>().group(group), group, row)
    }

    /// One row of a group's final observations.
    pub fn final_observation(&self, group: usize, row: usize) -> Vec<f32> {
        self.group_row(self.world.resource::<FinalObservations>().group(group), group, row)
    }

    /// The columns of one term of a group in a row's observation.
    pub fn term(&self, group: usize, row: usize, name: &str) -> Vec<f32> {
        let manager = self.world.resource::<ObservationManager>();
        let group_terms = manager.groups().nth(group).expect("a group");
        let columns = group_terms.terms().find(|term| term.name() == name).expect("a term").columns();
        self.observation(group, row)[columns].to_vec()
    }

    /// What a new episode of a row begins with, as text from which every bit can be told: state, command, observations.
    pub fn episode_start(&self, row: usize) -> String {
        let mut text = format!("{:?}", (self.qpos(row), self.qvel(row), self.get::<Command>(row)));
        self.write_observations(&mut text, row);
        text
    }

    fn write_observations(&self, text: &mut String, row: usize) {
        for group in 0..self.world.resource::<ObservationManager>().groups().count() {
            write!(text, "\n{:?}", self.observation(group, row)).expect("text");
        }
    }

    /// Everything that belongs to a row, as text from which every bit can be told: components, buffers, and what the
    /// backend holds.
    pub fn snapshot(&self, row: usize) -> String {
        let mut text = self.components(row);
        self.write_observations(&mut text, row);
        for group in 0..self.world.resource::<ObservationManager>().groups().count() {
            write!(text, "\n{:?}", self.final_observation(group, row)).expect("text");
        }
        let buffers = self.buffers();
        let terms = buffers.reward_terms.len() / self.rows;
        let outputs = self.world.resource::<Physics>().backend();
        let (width, controls) = (outputs.output_width(), self.world.resource::<Controls>().values());
        write!(
            text,
            "\n{:?}\n{:?}",
            (
                buffers.rewards[row],
                &buffers.reward_terms[row * terms..][..terms],
                buffers.terminated[row],
                buffers.truncated[row],
                buffers.diverged[row],
                buffers.termination_terms[row],
            ),
            (&outputs.outputs()[row * width..][..width], &controls[row * ACTIONS..][..ACTIONS])
        )
        .expect("text");
        text
    }

    fn components(&self, row: usize) -> String {
        let tags = (
            self.world.entity(self.entity(row)).contains::<ResetRequested>(),
            self.world.entity(self.entity(row)).contains::<AwaitingReset>(),
        );
        format!(
            "{tags:?} {:?} {:?} {:?} {:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
            self.get::<Row>(row),
            self.get::<EpisodeClock>(row),
            self.get::<Streams>(row),
            self.get::<Termination>(row),
            self.get::<RobotState>(row),
            self.get::<Action>(row),
            self.get::<Command>(row),
            self.get::<TaskState>(row),
            self.get::<Observation>(row),
            self.get::<ObservationHistory>(row),
            self.get::<Reward>(row),
            self.get::<EventTimers>(row),
        )
    }

    pub fn snapshots(&self) -> Vec<String> {
        (0..self.rows).map(|row| self.snapshot(row)).collect()
    }
}

/// The action of a row in a step: different for each, the same for any number of rows.
pub fn action(row: usize, step: u64) -> [f32; ACTIONS] {
    [0.31, 1.7].map(|phase| 1.2 * (0.9 * step as f32 + 2.3 * row as f32 + phase).sin())
}
