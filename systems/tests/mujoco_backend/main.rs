//! The MuJoCo backend against MuJoCo's Python package and closed formulas.

#[path = "../../mujoco/tests/common/oracle.rs"]
mod oracle;

mod fields;
mod model;
mod requests;
mod rollout;
mod wrenches;

use manege_systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege_systems::backend::{Backend, BackendBuilder, BackendRequest, Output, StepRequest};

/// A floating trunk on two legs over the ground.
const BIPED: &str = r#"<mujoco>
  <compiler angle="radian"/>
  <default><geom friction="0.8 0.01 0.001"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1"/>
    <body name="trunk" pos="0 0 0.5">
      <freejoint name="root"/>
      <inertial pos="0.01 0 0.02" mass="4" diaginertia="0.04 0.03 0.05"/>
      <geom name="trunk" type="box" size="0.1 0.15 0.1"/>
      <site name="imu" pos="0.02 0 0.05"/>
      <body name="left" pos="0 0.1 -0.1">
        <joint name="left" axis="0 1 0" range="-1 1" limited="true" damping="0.1" armature="0.01" frictionloss="0.05"/>
        <geom name="left" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.6"/>
      </body>
      <body name="right" pos="0 -0.1 -0.1">
        <joint name="right" axis="0 1 0" damping="0.1" armature="0.01"/>
        <geom name="right" type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.6"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="right" joint="right" kp="20" kv="0.5" forcerange="-9 9"/>
    <position name="left" joint="left" kp="25" kv="0.6"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <accelerometer name="accelerometer" site="imu"/>
    <contact name="foot" geom1="left" geom2="floor" data="found"/>
  </sensor>
  <keyframe><key name="home" qpos="0 0 0.48 1 0 0 0 0.1 -0.1"/></keyframe>
</mujoco>"#;

fn builder(xml: &str, timestep: f64) -> Box<MujocoBuilder> {
    Box::new(MujocoBuilder::from_xml(xml, &PhysicsOptions::new(timestep)).expect("a valid model"))
}

fn rows(xml: &str, timestep: f64, request: BackendRequest) -> Box<dyn Backend> {
    builder(xml, timestep).build(&request).expect("a valid request")
}

fn request(rows: usize, outputs: Vec<Output>) -> BackendRequest {
    BackendRequest { rows, threads: 2, outputs, ..BackendRequest::default() }
}

/// Steps all rows.
fn step(backend: &mut dyn Backend, substeps: u32, controls: &[f64]) {
    backend.step(StepRequest { rows: None, substeps, controls, feedback: None }).expect("a valid request");
    assert_eq!(backend.faults(), []);
}

/// Controls that differ from step to step and from row to row.
fn controls(step: usize, count: usize) -> Vec<f64> {
    (0..count).map(|index| 0.6 * (0.7 * step as f64 + 1.3 * index as f64).sin()).collect()
}

fn close(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() <= 1e-9 * (1.0 + expected.abs())
}

/// A block on a rail with a servo, and a wheel that gravity turns.
const MACHINE: &str = r#"<mujoco>
  <option><flag contact="disable"/></option>
  <worldbody>
    <body name="block">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
    </body>
    <body name="wheel" simple="false">
      <joint name="axle" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="3" diaginertia="1 0.5 1"/>
      <geom name="rim" size="0.1"/>
    </body>
  </worldbody>
  <actuator><position name="servo" joint="rail" kp="10" kv="0"/></actuator>
</mujoco>"#;
