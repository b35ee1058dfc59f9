//! The action terms, on a chain of three joints whose actuators are in the opposite order.

mod delays;
mod explicit_pd;
mod joints;
mod trace;

use bevy_ecs::prelude::World;
use manege_systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege_systems::build::BuildError;
use manege_systems::config::{Entry, EnvironmentConfig, PerName, PhysicsConfig, TermParams};
use manege_systems::managers::action::{ActionInput, ActionOptions, ActionTerm};
use manege_systems::physics::{Physics, StateLayout};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::step::{Controls, RowEntities};

/// Physics steps in a control step.
const SUBSTEPS: u32 = 4;
const TIMESTEP: f64 = 0.005;
/// Joints, in model order.
const JOINTS: [&str; 3] = ["shoulder", "elbow", "wrist"];

/// A chain of three joints with one kind of actuator, such as `motor` or `position kp="3"`.
fn chain(actuator: &str) -> String {
    format!(
        r#"<mujoco model="chain">
  <compiler angle="radian"/>
  <option timestep="{TIMESTEP}"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.3" armature="0.02"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="1.5" contype="0" conaffinity="0"/>
      <body name="lower" pos="0 0 -0.3">
        <joint name="elbow" axis="0 1 0" range="-2 2" limited="true" damping="0.2" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.8" contype="0" conaffinity="0"/>
        <body name="hand" pos="0 0 -0.3">
          <joint name="wrist" axis="1 0 0" damping="0.1" armature="0.01" frictionloss="0.02"/>
          <geom type="box" size="0.05 0.02 0.05" mass="0.3" contype="0" conaffinity="0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <{actuator} name="wrist" joint="wrist"/>
    <{actuator} name="elbow" joint="elbow"/>
    <{actuator} name="shoulder" joint="shoulder"/>
  </actuator>
  <keyframe><key name="bent" qpos="0.4 -0.7 0.2"/></keyframe>
</mujoco>"#
    )
}

/// A configuration with one action term, called `arm`.
fn config(options: ActionOptions, term: impl TermParams<dyn ActionTerm>) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(TIMESTEP, TIMESTEP * f64::from(SUBSTEPS)), 100.0);
    config.keyframe = "bent".to_owned();
    config.actions = [("arm".to_owned(), Entry::new(options, term))].into();
    config
}

struct Env {
    world: World,
    rows: usize,
}

impl Env {
    fn try_new(xml: &str, config: &EnvironmentConfig, options: RuntimeOptions) -> Result<Self, BuildError> {
        let model = MujocoBuilder::from_xml(xml, &PhysicsOptions::new(config.physics.timestep))?;
        let mut world = World::new();
        runtime::install(&mut world, config, Box::new(model), options, |_, _, _| {})?;
        runtime::reset_all(&mut world).expect("a reset");
        Ok(Self { world, rows: options.rows })
    }

    fn new(xml: &str, config: &EnvironmentConfig, options: RuntimeOptions) -> Self {
        Self::try_new(xml, config, options).expect("a valid configuration")
    }

    fn step(&mut self, actions: &[f32]) {
        self.world.resource_mut::<ActionInput>().values = actions.to_vec();
        runtime::step(&mut self.world).expect("a step");
    }

    /// Positions of a row's joints, then their velocities.
    fn state(&self, row: usize) -> Vec<f64> {
        let layout = *self.world.resource::<StateLayout>();
        let entity = self.world.resource::<RowEntities>().0[row];
        let state = self.world.get::<manege_components::RobotState>(entity).expect("every row has one");
        [&state.values[layout.qpos.range()], &state.values[layout.qvel.range()]].concat()
    }

    /// Controls of a row in *joint* order.
    fn controls(&self, row: usize) -> [f64; 3] {
        let values = self.world.resource::<Controls>().values();
        let width = values.len() / self.rows;
        // The chain's actuators are in the opposite order.
        [2, 1, 0].map(|control| values[row * width + control])
    }

    fn faults(&self) -> usize {
        self.world.resource::<Physics>().backend().faults().len()
    }
}

/// Actions in `[-1, 1)` that look random and depend on `step` and `column` alone.
fn action(step: usize, columns: usize) -> Vec<f32> {
    (0..columns)
        .map(|i| ((((100 * step + i) as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) - 1.0) as f32)
        .collect()
}

fn per_joint<V: Copy>(values: [V; 3]) -> PerName<V> {
    PerName::Patterns(JOINTS.iter().map(|&name| name.to_owned()).zip(values).collect())
}
