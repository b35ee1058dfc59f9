//! Reward terms of what sensors read.
//!
//! Each is in the frame of its sensor's site, which need not be that of the floating root: on a humanoid, a gyro in the
//! torso and a velocimeter in the pelvis.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::handles::StateSlice;
use manege_systems::managers::reward::{RewardTerm, reward};
use serde::{Deserialize, Serialize};

use super::{resolve, tracking};

/// `exp(-|c_xy - v_xy|² / std²)`: how well the planar velocity `v` that a velocimeter reads follows the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSensedLinearVelocity {
    /// Name of the velocity command.
    pub command: String,
    /// Name of the velocimeter.
    pub sensor: String,
    /// Error at which the reward is 1/e, m/s.
    pub std: f64,
}

impl TermParams<dyn RewardTerm> for TrackSensedLinearVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let velocity = resolve::sensor(context, "sensor", &self.sensor, 3)?;
        tracking::linear(context, &self.command, self.std, move |row| row.vec3(velocity))
    }
}

/// `exp(-(c_z - ω_z)² / std²)`: how well the rate `ω_z` that a gyro reads about its z axis follows the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSensedAngularVelocity {
    /// Name of the velocity command.
    pub command: String,
    /// Name of the gyro.
    pub sensor: String,
    /// Error at which the reward is 1/e, rad/s.
    pub std: f64,
}

impl TermParams<dyn RewardTerm> for TrackSensedAngularVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let angular = resolve::sensor(context, "sensor", &self.sensor, 3)?;
        tracking::angular(context, &self.command, self.std, move |row| row.vec3(angular))
    }
}

/// `ω_x² + ω_y²` of the angular velocity that a gyro reads, rad²/s².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SensedAngularVelocityXy {
    /// Name of the gyro.
    pub sensor: String,
}

impl TermParams<dyn RewardTerm> for SensedAngularVelocityXy {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let angular = resolve::sensor(context, "sensor", &self.sensor, 3)?;
        Ok(reward(move |row| row.vec3(angular).truncate().length_squared() as f32))
    }
}

/// `u_x² + u_y²` of the upward axis `u` of a site in the *world* frame, from a `framezaxis` sensor: the squared sine of the
/// site's tilt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpAxisXy {
    /// Name of the sensor.
    pub sensor: String,
}

impl TermParams<dyn RewardTerm> for UpAxisXy {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let axis = resolve::sensor(context, "sensor", &self.sensor, 3)?;
        Ok(reward(move |row| row.vec3(axis).truncate().length_squared() as f32))
    }
}

/// `Σ_i q_x² + q_y²` of sites' orientations `q_i` in the world, from `framequat` sensors: for each, the squared sine of half
/// its tilt, whatever its heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuaternionXy {
    /// Names of the sensors.
    pub sensors: Vec<String>,
}

impl TermParams<dyn RewardTerm> for QuaternionXy {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let orientations: Vec<StateSlice> =
            self.sensors.iter().map(|name| resolve::sensor(context, "sensors", name, 4)).collect::<Result<_, _>>()?;
        Ok(reward(move |row| {
            let tilt = |&orientation: &StateSlice| {
                let wxyz = row.state(orientation);
                wxyz[1].powi(2) + wxyz[2].powi(2)
            };
            orientations.iter().map(tilt).sum::<f64>() as f32
        }))
    }
}
