//! A planar velocity to follow, drawn uniformly.

use glam::DVec3;
use manege_components::Draws;
use serde::{Deserialize, Serialize};

use super::{CommandRow, CommandTerm};
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, TermParams};
use crate::handles::StateSlice;
use crate::tunable::TunableRange;

/// Draws a linear velocity (x forward, y left, m/s) and a yaw rate (rad/s) in the heading frame of the floating root.
///
/// Curricula may change the three ranges.
///
/// The metrics `error_vel_xy` and `error_vel_yaw` add each step's error against the root's velocity in its body frame,
/// divided by the longest episode's number of control steps.
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
}

struct UniformVelocity {
    ranges: [TunableRange; 3],
    dead_band: f64,
    orientation: StateSlice,
    linear: StateSlice,
    angular: StateSlice,
    /// Longest episode in control steps.
    steps: f64,
}

impl TermParams<dyn CommandTerm> for UniformVelocityCommand {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CommandTerm>, BuildError> {
        let ranges = [("lin_vel_x", self.lin_vel_x), ("lin_vel_y", self.lin_vel_y), ("ang_vel_z", self.ang_vel_z)];
        for (key, [low, high]) in ranges {
            if !(low <= high && low.is_finite() && high.is_finite()) {
                return Err(ConfigError::Impossible {
                    path: key.to_owned(),
                    message: format!("[{low}, {high}] is an empty range"),
                }
                .into());
            }
        }
        Ok(Box::new(UniformVelocity {
            ranges: [
                context.tunable_range("lin_vel_x", self.lin_vel_x)?,
                context.tunable_range("lin_vel_y", self.lin_vel_y)?,
                context.tunable_range("ang_vel_z", self.ang_vel_z)?,
            ],
            dead_band: self.dead_band,
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
    }

    fn update_metrics(&self, row: &mut CommandRow<'_>) {
        let velocity: DVec3 = row.view.rotation(self.orientation).inverse() * row.view.vec3(self.linear);
        let yaw_rate = row.view.state(self.angular)[2];
        let [x, y, yaw] = [0, 1, 2].map(|i| f64::from(row.values[i]));
        row.metrics[0] += ((x - velocity.x).hypot(y - velocity.y) / self.steps) as f32;
        row.metrics[1] += ((yaw - yaw_rate).abs() / self.steps) as f32;
    }
}
