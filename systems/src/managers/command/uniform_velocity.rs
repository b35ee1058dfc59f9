//! A planar velocity to follow, drawn uniformly.

mod modes;

use std::f64::consts::PI;

use glam::DVec3;
use manege_components::{Draws, rotation};
use serde::{Deserialize, Serialize};

use super::{CommandRow, CommandTerm, checked_range};
use crate::build::{BuildContext, BuildError};
use crate::config::TermParams;
use crate::handles::StateSlice;
use crate::tunable::TunableRange;

use modes::Modes;

/// Draws a linear velocity (x forward, y left, m/s) and a yaw rate (rad/s) in the heading frame of the floating root.
///
/// Curricula may change the three ranges.
///
/// Whenever a command is drawn, each of four modes falls to the row with a probability of its own, whatever the others do:
///
/// | mode | the row is asked |
/// |---|---|
/// | standing | to stand still: the command is 0 |
/// | forward | to walk straight on: vx becomes max(\|vx\|, 0.3 m/s), the rest 0 |
/// | world | to keep its direction in the world: the linear velocity is rotated by −yaw in every control step |
/// | heading | to face a direction in the world: the yaw rate is `heading_stiffness` × heading error, within its range |
///
/// Standing goes before the others, and forward before world and heading; a row may be in world and heading at once. Yaw
/// is that of the root. By default no mode falls to any row.
///
/// The metrics `error_vel_xy` (m/s) and `error_vel_yaw` (rad/s) add each control step's error against the root's velocity in
/// its body frame, divided by the longest episode's number of control steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformVelocityCommand {
    /// Range of the forward velocity, m/s.
    pub lin_vel_x: [f64; 2],
    /// Range of the leftward velocity, m/s.
    pub lin_vel_y: [f64; 2],
    /// Range of the yaw rate, rad/s.
    pub ang_vel_z: [f64; 2],
    /// Planar speed up to which the drawn linear velocity becomes zero, m/s. The yaw rate is kept.
    pub dead_band: f64,
    /// Probability that a row faces a heading, `0..=1`.
    pub rel_heading: f64,
    /// Range of the heading to face, rad.
    pub heading: [f64; 2],
    /// Yaw rate per heading error, 1/s.
    pub heading_stiffness: f64,
    /// Probability that a row stands still, `0..=1`.
    pub rel_standing: f64,
    /// Probability that a row keeps its direction in the world, `0..=1`.
    pub rel_world: f64,
    /// Probability that a row walks straight on, `0..=1`.
    pub rel_forward: f64,
}

impl Default for UniformVelocityCommand {
    /// The command 0, in no mode; headings would be any, with a stiffness of 1/s.
    fn default() -> Self {
        Self {
            lin_vel_x: [0.0; 2],
            lin_vel_y: [0.0; 2],
            ang_vel_z: [0.0; 2],
            dead_band: 0.0,
            rel_heading: 0.0,
            heading: [-PI, PI],
            heading_stiffness: 1.0,
            rel_standing: 0.0,
            rel_world: 0.0,
            rel_forward: 0.0,
        }
    }
}

struct UniformVelocity {
    ranges: [TunableRange; 3],
    dead_band: f64,
    /// `None` if every row follows the command as it was drawn.
    modes: Option<Modes>,
    orientation: StateSlice,
    linear: StateSlice,
    angular: StateSlice,
    /// Longest episode in control steps.
    steps: f64,
}

impl TermParams<dyn CommandTerm> for UniformVelocityCommand {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CommandTerm>, BuildError> {
        let mut range = |key, range| context.tunable_range(key, checked_range(key, range)?);
        let ranges = [
            range("lin_vel_x", self.lin_vel_x)?,
            range("lin_vel_y", self.lin_vel_y)?,
            range("ang_vel_z", self.ang_vel_z)?,
        ];
        Ok(Box::new(UniformVelocity {
            ranges,
            dead_band: self.dead_band,
            modes: Modes::build(self)?,
            orientation: context.root_orientation()?,
            linear: context.root_linear_velocity()?,
            angular: context.root_angular_velocity()?,
            steps: context.episode_length() / context.control_period(),
        }))
    }
}

impl CommandTerm for UniformVelocity {
    fn width(&self) -> usize {
        3
    }

    fn scratch_width(&self) -> usize {
        if self.modes.is_some() { Modes::SCRATCH_WIDTH } else { 0 }
    }

    fn metrics(&self) -> &[&'static str] {
        &["error_vel_xy", "error_vel_yaw"]
    }

    fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws) {
        for (value, range) in row.values.iter_mut().zip(&self.ranges) {
            let [low, high] = range.get();
            *value = draws.uniform(low, high) as f32;
        }
        if f64::from(row.values[0].hypot(row.values[1])) <= self.dead_band {
            row.values[..2].fill(0.0);
        }
        if let Some(modes) = &self.modes {
            modes.resample(row, draws);
        }
    }

    fn update(&self, row: &mut CommandRow<'_>) {
        if let Some(modes) = &self.modes {
            let view = row.view;
            modes.update(row, || rotation::yaw(view.rotation(self.orientation)), self.ranges[2].get());
        }
    }

    fn update_metrics(&self, row: &mut CommandRow<'_>) {
        let velocity: DVec3 = row.view.rotation(self.orientation).inverse() * row.view.vec3(self.linear);
        let yaw_rate = row.view.state(self.angular)[2];
        let [x, y, yaw] = [0, 1, 2].map(|i| f64::from(row.values[i]));
        row.metrics[0] += ((x - velocity.x).hypot(y - velocity.y) / self.steps) as f32;
        row.metrics[1] += ((yaw - yaw_rate).abs() / self.steps) as f32;
    }
}
