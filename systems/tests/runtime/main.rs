//! Behaviour of the runtime through its public API: a floating box with two arms, and terms written as a host would.

mod env;
mod terms;

mod actions;
mod autoreset;
mod commands;
mod commands_override;
mod commands_pose;
mod config;
mod configurations;
mod curriculum;
mod determinism;
mod events;
mod layout;
mod metrics;
mod observations;
mod order;
mod quarantine;
mod recorder;
mod resets;
mod rewards;
mod snapshots;

/// A floating box with two arms over the ground. The actuators are in the opposite order of the joints.
pub const BOX: &str = r#"<mujoco model="box">
  <compiler angle="radian"/>
  <option timestep="0.005" cone="elliptic" impratio="10"/>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 0.1" friction="0.8 0.01 0.001"/>
    <body name="trunk" pos="0 0 0.3">
      <freejoint name="root"/>
      <inertial pos="0.01 0 0" mass="3" diaginertia="0.02 0.03 0.04"/>
      <geom name="trunk" type="box" size="0.15 0.1 0.05"/>
      <site name="imu"/>
      <body name="left" pos="0.05 0.13 0">
        <joint name="left" axis="0 1 0" range="-2 2" limited="true" damping="0.2" armature="0.01" frictionloss="0.05"/>
        <geom name="left" type="capsule" fromto="0 0 0 0 0 -0.25" size="0.02" mass="0.4"/>
        <site name="left_tip" pos="0 0 -0.25"/>
      </body>
      <body name="right" pos="0.05 -0.13 0">
        <joint name="right" axis="0 1 0" damping="0.2" armature="0.01"/>
        <geom name="right" type="capsule" fromto="0 0 0 0 0 -0.25" size="0.02" mass="0.4"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="right" joint="right" kp="15" kv="0.4" forcerange="-8 8"/>
    <position name="left" joint="left" kp="15" kv="0.4" forcerange="-8 8"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu"/>
    <framezaxis name="up" objtype="site" objname="imu"/>
    <framepos name="left_tip" objtype="site" objname="left_tip"/>
    <contact name="ground" subtree1="trunk" geom2="floor" num="1" data="found"/>
  </sensor>
  <keyframe><key name="home" qpos="0 0 0.32 1 0 0 0 0.4 -0.3"/></keyframe>
</mujoco>"#;
