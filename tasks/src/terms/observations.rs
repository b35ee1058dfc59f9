//! Observation terms.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::observation::{ObservationTerm, observation};
use serde::{Deserialize, Serialize};

/// A sensor's reading, in the sensor's own units and frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensorReading {
    /// Name of the sensor.
    pub sensor: String,
}

impl TermParams<dyn ObservationTerm> for SensorReading {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let reading = context.sensor(&self.sensor)?;
        Ok(observation(reading.width(), move |row, out| {
            for (out, &value) in out.iter_mut().zip(row.state(reading)) {
                *out = value as f32;
            }
        }))
    }
}

/// Minus the upward axis of a site in the *world* frame, from a `framezaxis` sensor (3 values, unit length).
///
/// It is often called projected gravity, but only its z component equals that of gravity in the body frame; see
/// [`GravityInBody`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NegatedUpAxis {
    /// Name of the sensor.
    pub sensor: String,
}

impl TermParams<dyn ObservationTerm> for NegatedUpAxis {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let axis = context.sensor(&self.sensor)?;
        Ok(observation(axis.width(), move |row, out| {
            for (out, &value) in out.iter_mut().zip(row.state(axis)) {
                *out = -value as f32;
            }
        }))
    }
}

/// The direction of gravity in the frame of the floating root (3 values, unit length): R^T (0, 0, -1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GravityInBody {}

impl TermParams<dyn ObservationTerm> for GravityInBody {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let orientation = context.root_orientation()?;
        Ok(observation(3, move |row, out| {
            let gravity = row.rotation(orientation).inverse() * glam::DVec3::NEG_Z;
            out.copy_from_slice(&gravity.as_vec3().to_array());
        }))
    }
}

/// Joint positions relative to the default pose, rad, in joint order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointPositionRelative {}

impl TermParams<dyn ObservationTerm> for JointPositionRelative {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let positions = context.joint_positions()?;
        let default = context.default_joint_positions();
        Ok(observation(positions.width(), move |row, out| {
            for ((out, &position), &default) in out.iter_mut().zip(row.state(positions)).zip(&default) {
                *out = (position - default) as f32;
            }
        }))
    }
}

/// Joint velocities, rad/s, in joint order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointVelocity {}

impl TermParams<dyn ObservationTerm> for JointVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let velocities = context.joint_velocities()?;
        Ok(observation(velocities.width(), move |row, out| {
            for (out, &velocity) in out.iter_mut().zip(row.state(velocities)) {
                *out = velocity as f32;
            }
        }))
    }
}

/// The raw action that was just executed; zero after a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastAction {}

impl TermParams<dyn ObservationTerm> for LastAction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        Ok(observation(context.action_width(), move |row, out| out.copy_from_slice(row.action())))
    }
}

/// The values of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandValues {
    /// Name of the command.
    pub command: String,
}

impl TermParams<dyn ObservationTerm> for CommandValues {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let command = context.command(&self.command)?;
        Ok(observation(command.width(), move |row, out| out.copy_from_slice(row.command(command))))
    }
}
