//! Events that vary the model: what they draw, from what they start, and that the physics follows.

#[path = "../../systems/mujoco/tests/common/oracle.rs"]
mod oracle;

mod distributions;
mod errors;
mod physics;
mod values;

use bevy_ecs::prelude::World;
use manege::components::{RobotState, Row};
use manege::systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege::systems::backend::{BackendBuilder, ModelField, ModelInfo};
use manege::systems::build::BuildError;
use manege::systems::config::{Entry, EnvironmentConfig, PhysicsConfig, TermParams};
use manege::systems::managers::event::{EventOptions, EventTerm};
use manege::systems::physics::StateLayout;
use manege::systems::runtime::{self, RuntimeOptions};
use manege::systems::staging::Staging;
use manege::systems::step::RowEntities;
use manege::tasks::terms::events::*;

/// A floating trunk that stands on two legs, with numbers of its own everywhere.
const BIPED: &str = r#"<mujoco>
  <compiler angle="radian"/>
  <default><geom friction="0.8 0.01 0.001"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <inertial pos="0.01 0.02 0.03" mass="4" diaginertia="0.04 0.03 0.05"/>
      <geom name="trunk" type="box" size="0.1 0.15 0.1"/>
      <body name="left_leg" pos="0 0.1 -0.1">
        <inertial pos="0.01 0 -0.15" mass="0.6" diaginertia="0.004 0.005 0.001"/>
        <joint name="left" axis="0 1 0" damping="0.1" armature="0.01" frictionloss="0.05"/>
        <geom name="left_foot" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
        <body name="flag"/>
      </body>
      <body name="right_leg" pos="0 -0.1 -0.1">
        <inertial pos="-0.01 0 -0.15" mass="0.7" diaginertia="0.005 0.006 0.001"/>
        <joint name="right" axis="0 1 0" damping="0.2" armature="0.02"/>
        <geom name="right_foot" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="right_servo" joint="right" kp="20" kv="0.5"/>
    <position name="left_servo" joint="left" kp="25" kv="0.6"/>
  </actuator>
  <keyframe><key name="home" qpos="0 0 0.48 1 0 0 0 0.3 -0.2" qvel="0 0 0 0 0 0 0 0"/></keyframe>
</mujoco>"#;

/// Where trunk and legs, joints, geoms and servos are in the model.
const TRUNK: usize = 1;
const LEGS: [usize; 2] = [2, 4];
const FLAG: usize = 3;
const LEFT_DOF: usize = 6;

type Event = Entry<EventOptions, dyn EventTerm>;

/// An environment in which nothing happens but events.
struct Env {
    world: World,
    info: ModelInfo,
}

fn builder(config: &EnvironmentConfig) -> MujocoBuilder {
    MujocoBuilder::from_xml(BIPED, &PhysicsOptions::new(config.physics.timestep)).expect("a valid model")
}

fn config(events: impl IntoIterator<Item = Event>) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, 0.02), 1000.0);
    config.keyframe = "home".to_owned();
    config.events = events.into_iter().enumerate().map(|(i, event)| (format!("event_{i}"), event)).collect();
    config
}

impl Env {
    fn try_new(events: impl IntoIterator<Item = Event>, options: RuntimeOptions) -> Result<Self, BuildError> {
        let config = config(events);
        let builder = builder(&config);
        let info = builder.info().clone();
        let mut world = World::new();
        runtime::install(&mut world, &config, Box::new(builder), options, |_, _, _| {})?;
        Ok(Self { world, info })
    }

    /// After the first reset.
    fn new(events: impl IntoIterator<Item = Event>, rows: usize) -> Self {
        let options = RuntimeOptions { seed: 5, ..RuntimeOptions::new(rows) };
        let mut env = Self::try_new(events, options).expect("valid events");
        env.reset();
        env
    }

    fn reset(&mut self) {
        runtime::reset_all(&mut self.world).expect("a reset");
    }

    fn step(&mut self) {
        runtime::step(&mut self.world).expect("a step");
    }

    /// What a row has of a field; the compiled values where nothing varies it.
    fn field(&self, field: ModelField, row: u32) -> Vec<f64> {
        let staging = self.world.resource::<Staging>();
        staging.committed(field, Row(row)).map_or_else(|| field.compiled(&self.info), <[f64]>::to_vec)
    }

    /// Positions, then velocities.
    fn state(&self, row: usize) -> (Vec<f64>, Vec<f64>) {
        let layout = self.world.resource::<StateLayout>();
        let state = self.world.get::<RobotState>(self.world.resource::<RowEntities>().0[row]).expect("a row");
        (state.values[layout.qpos.range()].to_vec(), state.values[layout.qvel.range()].to_vec())
    }
}

fn at_reset(term: impl TermParams<dyn EventTerm>) -> Event {
    Entry::new(EventOptions::reset(), term)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// A term for each quantity, which changes the compiled values by the same distribution and operation, and the places of the
/// values that it changes.
fn every_quantity(distribution: Distribution, operation: Operation) -> Vec<(ModelField, Vec<usize>, Event)> {
    let (legs, joints, shared) = (names(&["left_leg", "right_leg"]), names(&["left"]), false);
    let some = Some(distribution);
    vec![
        (
            ModelField::BodyMass,
            LEGS.to_vec(),
            at_reset(RandomizeBodyMass { bodies: legs.clone(), distribution, operation, shared, scale_inertia: false }),
        ),
        (
            ModelField::BodyCom,
            vec![3, 5],
            at_reset(RandomizeBodyCom { bodies: names(&["trunk"]), x: some, y: None, z: some, operation, shared }),
        ),
        (
            ModelField::BodyInertia,
            LEGS.iter().flat_map(|leg| 3 * leg..3 * leg + 3).collect(),
            at_reset(RandomizeBodyInertia { bodies: legs, distribution, operation, shared }),
        ),
        (
            ModelField::GeomFriction,
            vec![0, 6, 9],
            at_reset(RandomizeGeomFriction {
                geoms: names(&["floor", ".*_foot"]),
                coefficient: Friction::Sliding,
                distribution,
                operation,
                shared,
            }),
        ),
        (
            ModelField::DofArmature,
            vec![LEFT_DOF, LEFT_DOF + 1],
            at_reset(RandomizeJointArmature { joints: names(&[".*"]), distribution, operation, shared }),
        ),
        (
            ModelField::DofDamping,
            vec![LEFT_DOF],
            at_reset(RandomizeJointDamping { joints: joints.clone(), distribution, operation, shared }),
        ),
        (
            ModelField::DofFrictionLoss,
            vec![LEFT_DOF],
            at_reset(RandomizeJointFrictionLoss { joints, distribution, operation, shared }),
        ),
        // Actuators are not in the order of joints: the left servo is the second.
        (
            ModelField::ActuatorKp,
            vec![1],
            at_reset(RandomizeGains { actuators: names(&["left.*"]), kp: some, kd: None, operation, shared }),
        ),
        (
            ModelField::ActuatorKd,
            vec![0, 1],
            at_reset(RandomizeGains { actuators: names(&[".*"]), kp: None, kd: some, operation, shared }),
        ),
        (ModelField::Gravity, vec![2], at_reset(RandomizeGravity { x: None, y: None, z: some, operation })),
    ]
}
