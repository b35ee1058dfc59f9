//! Reward terms.
//!
//! `v` and `ω` are the floating root's linear and angular velocity in its body frame, `q` the joint positions, `a` the
//! raw action.

use glam::DVec3;
use manege_systems::backend::Output;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{PerName, TermParams};
use manege_systems::handles::StateSlice;
use manege_systems::managers::reward::{RewardTerm, reward};
use manege_systems::row_view::RowView;
use serde::{Deserialize, Serialize};

use super::{resolve, tracking};

/// The floating root's velocity in its body frame.
#[derive(Clone, Copy)]
struct BodyVelocity {
    orientation: StateSlice,
    linear: StateSlice,
}

impl BodyVelocity {
    fn resolve(context: &mut BuildContext<'_>) -> Result<Self, BuildError> {
        Ok(Self { orientation: context.root_orientation()?, linear: context.root_linear_velocity()? })
    }

    fn linear(self, row: &RowView<'_>) -> DVec3 {
        row.rotation(self.orientation).inverse() * row.vec3(self.linear)
    }
}

/// `exp(-|c_xy - v_xy|² / std²)`: how well the planar velocity follows the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackLinearVelocity {
    /// Name of the velocity command.
    pub command: String,
    /// Error at which the reward is 1/e, m/s.
    pub std: f64,
}

impl TermParams<dyn RewardTerm> for TrackLinearVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let velocity = BodyVelocity::resolve(context)?;
        tracking::linear(context, &self.command, self.std, move |row| velocity.linear(row))
    }
}

/// `exp(-(c_z - ω_z)² / std²)`: how well the yaw rate follows the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackAngularVelocity {
    /// Name of the velocity command.
    pub command: String,
    /// Error at which the reward is 1/e, rad/s.
    pub std: f64,
}

impl TermParams<dyn RewardTerm> for TrackAngularVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let angular = context.root_angular_velocity()?;
        tracking::angular(context, &self.command, self.std, move |row| row.vec3(angular))
    }
}

/// `v_z²`: the root bobbing, m²/s².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearVelocityZ {}

impl TermParams<dyn RewardTerm> for LinearVelocityZ {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let velocity = BodyVelocity::resolve(context)?;
        Ok(reward(move |row| velocity.linear(row).z.powi(2) as f32))
    }
}

/// `ω_x² + ω_y²`: the root rolling and pitching, rad²/s².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AngularVelocityXy {}

impl TermParams<dyn RewardTerm> for AngularVelocityXy {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let angular = context.root_angular_velocity()?;
        Ok(reward(move |row| row.vec3(angular).truncate().length_squared() as f32))
    }
}

/// `(z - height)²`: the root's height in the world off its target, m².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseHeight {
    /// Height to keep, m.
    pub height: f64,
}

impl TermParams<dyn RewardTerm> for BaseHeight {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let position = context.root_position()?;
        let height = self.height;
        Ok(reward(move |row| (row.vec3(position).z - height).powi(2) as f32))
    }
}

/// `Σ (a_t - a_{t-1})²`: the action changing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRate {}

impl TermParams<dyn RewardTerm> for ActionRate {
    fn build(&self, _context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        Ok(reward(|row| {
            row.action().iter().zip(row.previous_action()).map(|(now, before)| (now - before).powi(2)).sum()
        }))
    }
}

/// `Σ |q - q_default|`: the joints off the default pose, rad.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultPoseDeviation {}

impl TermParams<dyn RewardTerm> for DefaultPoseDeviation {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let positions = context.joint_positions()?;
        let default = context.default_joint_positions();
        Ok(reward(move |row| {
            row.state(positions).iter().zip(&default).map(|(q, default)| (q - default).abs()).sum::<f64>() as f32
        }))
    }
}

/// `Σ w_i (q_i - q_default,i)²`: the joints off the default pose, some counting more than others, rad².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedPoseDeviation {
    /// Factor for all joints, or for those that a pattern matches; every joint needs one.
    pub weights: PerName<f64>,
}

impl TermParams<dyn RewardTerm> for WeightedPoseDeviation {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let positions = context.joint_positions()?;
        let joints: Vec<usize> = (0..context.info().joints.len()).collect();
        let weights = context.per_joint(&joints, &self.weights, None)?;
        if let Some(bad) = weights.iter().find(|weight| !weight.is_finite()) {
            return Err(resolve::impossible("weights", format!("{bad} is not a finite number")));
        }
        let joints: Vec<(f64, f64)> = context.default_joint_positions().into_iter().zip(weights).collect();
        Ok(reward(move |row| {
            let squares = row.state(positions).iter().zip(&joints).map(|(q, (default, w))| w * (q - default).powi(2));
            squares.sum::<f64>() as f32
        }))
    }
}

/// 1, in every control step that the episode lasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alive {}

impl TermParams<dyn RewardTerm> for Alive {
    fn build(&self, _context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        Ok(reward(|_| 1.0))
    }
}

/// `Σ (max(lo - q, 0) + max(q - hi, 0))²`: how far the joints are beyond their ranges, rad². Joints without a range do not count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointLimitExcess {}

impl TermParams<dyn RewardTerm> for JointLimitExcess {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let positions = context.joint_positions()?;
        let unlimited = [f64::NEG_INFINITY, f64::INFINITY];
        let ranges: Vec<_> = context.info().joints.iter().map(|joint| joint.range.unwrap_or(unlimited)).collect();
        Ok(reward(move |row| {
            let excess = |(q, [low, high]): (&f64, &[f64; 2])| ((low - q).max(0.0) + (q - high).max(0.0)).powi(2);
            row.state(positions).iter().zip(&ranges).map(excess).sum::<f64>() as f32
        }))
    }
}

/// How many of some bodies have their origin lower than a height in the world. It stands in for contacts with the ground.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodiesBelowHeight {
    /// Names or patterns of the bodies.
    pub bodies: Vec<String>,
    /// The height, m.
    pub height: f64,
}

impl TermParams<dyn RewardTerm> for BodiesBelowHeight {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        if !self.height.is_finite() {
            return Err(resolve::impossible("height", format!("{} m is no height", self.height)));
        }
        let bodies = context.bodies(&self.bodies)?;
        let positions = bodies.into_iter().map(|body| context.output(Output::BodyPosition(body)));
        let positions = positions.collect::<Result<Vec<_>, _>>()?;
        let height = self.height;
        Ok(reward(move |row| positions.iter().filter(|&&position| row.vec3(position).z < height).count() as f32))
    }
}
