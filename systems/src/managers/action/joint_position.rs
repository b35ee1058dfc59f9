//! Joint position targets.

use serde::{Deserialize, Serialize};

use super::ActionTerm;
use crate::backend::SubstepState;
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, PerName, TermParams, none_or};

/// Sets position actuators to `clip(action × scale + offset)`.
///
/// The action has one value per selected joint, in model order; each goes to the actuator that drives that joint,
/// whatever the order of actuators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JointPositionAction {
    /// Names or patterns of the joints.
    pub joints: Vec<String>,
    /// Factor on the action, rad (or m) per unit.
    pub scale: PerName<f32>,
    /// Added after scaling, rad or m. Must be 0 where the default pose is the offset.
    pub offset: PerName<f32>,
    /// Whether the offset is the joint's position in the default pose.
    pub use_default_offset: bool,
    /// Least and greatest target, rad or m.
    #[serde(with = "none_or")]
    pub clip: Option<PerName<[f32; 2]>>,
}

impl JointPositionAction {
    /// Targets around the default pose for all joints, `scale` rad per unit of action.
    #[must_use]
    pub fn around_default_pose(scale: f32) -> Self {
        Self {
            joints: vec![".*".to_owned()],
            scale: PerName::All(scale),
            offset: PerName::All(0.0),
            use_default_offset: true,
            clip: None,
        }
    }
}

struct JointPosition {
    /// Per joint: control index, scale, offset.
    joints: Vec<(usize, f32, f32)>,
    clip: Option<Vec<[f32; 2]>>,
}

impl TermParams<dyn ActionTerm> for JointPositionAction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        let joints = context.joints(&self.joints)?;
        let scale = context.per_joint(&joints, &self.scale, Some(1.0))?;
        let mut offset = context.per_joint(&joints, &self.offset, Some(0.0))?;
        if let Some(bad) = scale.iter().chain(&offset).find(|value| !value.is_finite()) {
            return Err(impossible("scale and offset", format!("{bad} is not a finite number")));
        }
        if self.use_default_offset {
            if offset.iter().any(|&offset| offset != 0.0) {
                return Err(impossible("offset", "it must be 0 where use_default_offset is true".to_owned()));
            }
            let default = context.default_joint_positions();
            offset = joints.iter().map(|&joint| default[joint] as f32).collect();
        }
        let clip = match &self.clip {
            None => None,
            Some(clip) => {
                let clip = context.per_joint(&joints, clip, Some([f32::NEG_INFINITY, f32::INFINITY]))?;
                if let Some([low, high]) = clip.iter().find(|[low, high]| !(low <= high)) {
                    return Err(impossible("clip", format!("[{low}, {high}] is an empty range")));
                }
                Some(clip)
            }
        };
        let actuators = joints
            .iter()
            .map(|&joint| {
                let joint = &context.info().joints[joint];
                joint.actuator.ok_or_else(|| BuildError::NoActuator { joint: joint.name.clone() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let joints = actuators.into_iter().zip(scale).zip(offset).map(|((a, s), o)| (a, s, o)).collect();
        Ok(Box::new(JointPosition { joints, clip }))
    }
}

fn impossible(key: &str, message: String) -> BuildError {
    ConfigError::Impossible { path: key.to_owned(), message }.into()
}

impl ActionTerm for JointPosition {
    fn width(&self) -> usize {
        self.joints.len()
    }

    fn process(&self, raw: &[f32], processed: &mut [f32]) {
        for ((target, &raw), &(_, scale, offset)) in processed.iter_mut().zip(raw).zip(&self.joints) {
            *target = raw * scale + offset;
        }
        if let Some(clip) = &self.clip {
            for (target, &[low, high]) in processed.iter_mut().zip(clip) {
                *target = target.clamp(low, high);
            }
        }
    }

    fn write_controls(&self, processed: &[f32], _state: SubstepState<'_>, ctrl: &mut [f64]) {
        for (&target, &(actuator, ..)) in processed.iter().zip(&self.joints) {
            ctrl[actuator] = f64::from(target);
        }
    }
}
