//! Terms that follow a reference motion.
//!
//! [`MotionCommand`](command::MotionCommand) steps through the motion and starts episodes on it. It keeps two values of task
//! state per row: the frame that the robot is to match, and how the motion is laid over the robot. All other terms name the
//! command and read the same [`MotionReference`].
//!
//! The robot is compared with the motion in two ways. The anchor body (on a humanoid, the torso) is compared in the world.
//! The other bodies are compared with *relative* targets, which forgive where the robot has drifted to: the motion moved along
//! the floor and turned about the vertical until its anchor lies over the robot's. With `p`, `q` the position and orientation
//! of body `b` in the motion, `A` the anchor, `Δ` the heading of `q_robot,A · q_motion,A⁻¹`:
//!
//! - `p* = Δ (p_b - p_A) + (x_robot,A, y_robot,A, z_A)`
//! - `q* = Δ q_b`
//!
//! The frame and `Δ` are brought up to date once in a control step, with commands. So rewards and terminations of a step compare
//! the robot's new state with the frame that the last observation showed, laid over the robot as it was then.

pub mod command;
pub mod observations;
pub mod rewards;
mod sampling;
pub mod terminations;

use std::sync::Arc;

use glam::{DQuat, DVec3};
use manege_components::rotation;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::handles::{StateSlice, TaskSlice};
use manege_systems::row_view::RowView;

use crate::motion::MotionClips;

pub use sampling::Sampling;

/// Task state: the frame of the motion that a row is to match, counted through all clips.
pub const FRAME: &str = "motion_frame";

/// Task state: how the motion is laid over the robot, 4 values: `w` and `z` of the turn about the vertical, and where the
/// robot's anchor was, x and y in the world, m.
pub const ALIGNMENT: &str = "motion_alignment";

/// Where the physics puts what it tells of a body.
#[derive(Debug, Clone, Copy)]
struct BodyOutputs {
    position: StateSlice,
    orientation: StateSlice,
    linear_velocity: StateSlice,
    angular_velocity: StateSlice,
}

/// A motion, and the robot that is to follow it.
#[derive(Debug)]
pub struct MotionReference {
    clips: MotionClips,
    frame: TaskSlice,
    alignment: TaskSlice,
    /// Index of the anchor among the tracked bodies.
    anchor: usize,
    bodies: Vec<BodyOutputs>,
    joint_positions: StateSlice,
    joint_velocities: StateSlice,
}

impl MotionReference {
    /// What the motion command of the given name follows.
    fn of(context: &BuildContext<'_>, command: &str) -> Result<Arc<Self>, BuildError> {
        context.shared_by_command("motion command", command)
    }

    /// The motion.
    #[must_use]
    #[inline]
    pub fn clips(&self) -> &MotionClips {
        &self.clips
    }

    /// Number of tracked bodies.
    #[must_use]
    #[inline]
    pub fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// A row beside the frame that it is to match.
    #[inline]
    fn pursuit<'a>(&'a self, row: &RowView<'a>) -> Pursuit<'a> {
        self.pursuit_of(*row, row.task(self.frame)[0], row.task(self.alignment))
    }

    #[inline]
    fn pursuit_of<'a>(&'a self, row: RowView<'a>, frame: f32, alignment: &[f32]) -> Pursuit<'a> {
        let [w, z, x, y] = [0, 1, 2, 3].map(|i| f64::from(alignment[i]));
        Pursuit { reference: self, row, frame: self.frame_index(frame), turn: DQuat::from_xyzw(0.0, 0.0, z, w), x, y }
    }

    /// A frame from task state, which a replay may have set.
    #[inline]
    fn frame_index(&self, frame: f32) -> usize {
        (frame.max(0.0) as usize).min(self.clips.frames() - 1)
    }
}

/// A row beside the frame that it is to match. All quantities are in the world frame unless said otherwise.
struct Pursuit<'a> {
    reference: &'a MotionReference,
    row: RowView<'a>,
    frame: usize,
    /// `Δ`.
    turn: DQuat,
    /// Where the robot's anchor was.
    x: f64,
    y: f64,
}

#[inline]
fn vec3([x, y, z]: [f32; 3]) -> DVec3 {
    DVec3::new(f64::from(x), f64::from(y), f64::from(z))
}

impl<'a> Pursuit<'a> {
    #[inline]
    fn clips(&self) -> &'a MotionClips {
        &self.reference.clips
    }

    #[inline]
    fn bodies(&self) -> std::ops::Range<usize> {
        0..self.reference.bodies.len()
    }

    #[inline]
    fn anchor(&self) -> usize {
        self.reference.anchor
    }

    #[inline]
    fn position(&self, body: usize) -> DVec3 {
        self.row.vec3(self.reference.bodies[body].position)
    }

    #[inline]
    fn orientation(&self, body: usize) -> DQuat {
        self.row.rotation(self.reference.bodies[body].orientation)
    }

    #[inline]
    fn linear_velocity(&self, body: usize) -> DVec3 {
        self.row.vec3(self.reference.bodies[body].linear_velocity)
    }

    #[inline]
    fn angular_velocity(&self, body: usize) -> DVec3 {
        self.row.vec3(self.reference.bodies[body].angular_velocity)
    }

    #[inline]
    fn motion_position(&self, body: usize) -> DVec3 {
        vec3(self.clips().body_pos(self.frame)[body])
    }

    #[inline]
    fn motion_orientation(&self, body: usize) -> DQuat {
        rotation::from_wxyz_f32(self.clips().body_quat(self.frame)[body])
    }

    #[inline]
    fn motion_linear_velocity(&self, body: usize) -> DVec3 {
        vec3(self.clips().body_lin_vel(self.frame)[body])
    }

    #[inline]
    fn motion_angular_velocity(&self, body: usize) -> DVec3 {
        vec3(self.clips().body_ang_vel(self.frame)[body])
    }

    /// `p*`.
    #[inline]
    fn relative_position(&self, body: usize) -> DVec3 {
        let anchor = self.motion_position(self.anchor());
        self.turn * (self.motion_position(body) - anchor) + DVec3::new(self.x, self.y, anchor.z)
    }

    /// `q*`.
    #[inline]
    fn relative_orientation(&self, body: usize) -> DQuat {
        self.turn * self.motion_orientation(body)
    }

    /// How the motion has to be laid over the robot now: the values of [`ALIGNMENT`].
    fn new_alignment(&self) -> [f32; 4] {
        let anchor = self.anchor();
        let turn = rotation::heading(self.orientation(anchor) * self.motion_orientation(anchor).conjugate());
        let position = self.position(anchor);
        [turn.w, turn.z, position.x, position.y].map(|value| value as f32)
    }

    /// Joints of the robot and of the motion: positions, rad.
    #[inline]
    fn joint_positions(&self) -> impl Iterator<Item = (f64, f64)> {
        pairs(self.row.state(self.reference.joint_positions), self.clips().joint_pos(self.frame))
    }

    /// Joints of the robot and of the motion: velocities, rad/s.
    #[inline]
    fn joint_velocities(&self) -> impl Iterator<Item = (f64, f64)> {
        pairs(self.row.state(self.reference.joint_velocities), self.clips().joint_vel(self.frame))
    }
}

#[inline]
fn pairs<'a>(robot: &'a [f64], motion: &'a [f32]) -> impl Iterator<Item = (f64, f64)> + 'a {
    robot.iter().zip(motion).map(|(&robot, &motion)| (robot, f64::from(motion)))
}
