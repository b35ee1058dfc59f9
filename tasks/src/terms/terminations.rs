//! Termination terms.

use glam::DVec3;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::termination::{TerminationTerm, termination};
use serde::{Deserialize, Serialize};

use super::resolve;

/// The episode has lasted as long as it may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeOut {}

impl TermParams<dyn TerminationTerm> for TimeOut {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let steps = context.max_episode_steps();
        Ok(termination(move |row| row.clock().step >= steps))
    }
}

/// The floating root is tilted by more than an angle: `acos(-g_z) > limit` with g the direction of gravity in its frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadOrientation {
    /// Greatest tilt, rad.
    pub limit: f64,
}

impl TermParams<dyn TerminationTerm> for BadOrientation {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let orientation = context.root_orientation()?;
        let limit = self.limit;
        Ok(termination(move |row| {
            let gravity = row.rotation(orientation).inverse() * DVec3::NEG_Z;
            (-gravity.z).clamp(-1.0, 1.0).acos() > limit
        }))
    }
}

/// A site is tilted by more than an angle: `acos(u_z) > limit` with `u` its upward axis in the world frame, from a
/// `framezaxis` sensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TiltedUpAxis {
    /// Name of the sensor.
    pub sensor: String,
    /// Greatest tilt, rad.
    pub limit: f64,
}

impl TermParams<dyn TerminationTerm> for TiltedUpAxis {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let axis = resolve::sensor(context, "sensor", &self.sensor, 3)?;
        let limit = self.limit;
        Ok(termination(move |row| row.vec3(axis).z.clamp(-1.0, 1.0).acos() > limit))
    }
}

/// The floating root is lower than a height in the world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootBelowHeight {
    /// Least height, m.
    pub height: f64,
}

impl TermParams<dyn TerminationTerm> for RootBelowHeight {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let position = context.root_position()?;
        let height = self.height;
        Ok(termination(move |row| row.vec3(position).z < height))
    }
}
