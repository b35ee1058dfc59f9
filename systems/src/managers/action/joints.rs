//! What the joint action terms share: which joints, and what becomes of an action on its way to each.

use crate::backend::{ActuatorKind, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, PerName};

/// The parameters that all joint action terms have.
pub(super) struct Parameters<'a> {
    pub(super) joints: &'a [String],
    pub(super) scale: &'a PerName<f32>,
    pub(super) offset: &'a PerName<f32>,
    pub(super) use_default_offset: bool,
    pub(super) clip: Option<&'a PerName<[f32; 2]>>,
}

/// A joint, and its actuator.
#[derive(Debug, Clone, Copy)]
struct Joint {
    control: usize,
    qpos: usize,
    dof: usize,
}

/// The joints of a term in model order, with `clip(action × scale + offset)` for each.
pub(super) struct JointTargets {
    joints: Vec<Joint>,
    /// Scale and offset.
    affine: Vec<(f32, f32)>,
    clip: Option<Vec<[f32; 2]>>,
}

impl JointTargets {
    /// Resolves the joints; each must have one actuator of its own, and not one that is known to be of another kind than
    /// `kind`.
    pub(super) fn resolve(
        context: &BuildContext<'_>,
        parameters: &Parameters<'_>,
        kind: ActuatorKind,
    ) -> Result<Self, BuildError> {
        let joints = context.joints(parameters.joints)?;
        let scale = context.per_joint(&joints, parameters.scale, Some(1.0))?;
        let mut offset = context.per_joint(&joints, parameters.offset, Some(0.0))?;
        if let Some(bad) = scale.iter().chain(&offset).find(|value| !value.is_finite()) {
            return Err(impossible("scale and offset", format!("{bad} is not a finite number")));
        }
        if parameters.use_default_offset {
            if offset.iter().any(|&offset| offset != 0.0) {
                return Err(impossible("offset", "it must be 0 where use_default_offset is true".to_owned()));
            }
            let default = context.default_joint_positions();
            offset = joints.iter().map(|&joint| default[joint] as f32).collect();
        }
        let clip = match parameters.clip {
            None => None,
            Some(clip) => {
                let clip = context.per_joint(&joints, clip, Some([f32::NEG_INFINITY, f32::INFINITY]))?;
                if let Some([low, high]) = clip.iter().find(|[low, high]| !(low <= high)) {
                    return Err(impossible("clip", format!("[{low}, {high}] is an empty range")));
                }
                Some(clip)
            }
        };
        let resolve = |&joint: &usize| {
            let info = &context.info().joints[joint];
            let control = info.actuator.ok_or_else(|| BuildError::NoActuator { joint: info.name.clone() })?;
            let actuator = &context.info().actuators[control];
            if actuator.kind != kind && actuator.kind != ActuatorKind::Other {
                return Err(BuildError::ActuatorKind {
                    joint: info.name.clone(),
                    actuator: actuator.name.clone(),
                    found: actuator.kind.name(),
                    needed: kind.name(),
                });
            }
            Ok(Joint { control, qpos: info.qpos, dof: info.dof })
        };
        Ok(Self {
            joints: joints.iter().map(resolve).collect::<Result<_, _>>()?,
            affine: scale.into_iter().zip(offset).collect(),
            clip,
        })
    }

    /// Number of joints.
    pub(super) fn len(&self) -> usize {
        self.joints.len()
    }

    /// `clip(raw × scale + offset)` for each joint.
    pub(super) fn process(&self, raw: &[f32], processed: &mut [f32]) {
        for ((target, &raw), &(scale, offset)) in processed.iter_mut().zip(raw).zip(&self.affine) {
            *target = raw * scale + offset;
        }
        if let Some(clip) = &self.clip {
            for (target, &[low, high]) in processed.iter_mut().zip(clip) {
                *target = target.clamp(low, high);
            }
        }
    }

    /// Gives each joint's actuator its value.
    pub(super) fn write(&self, processed: &[f32], ctrl: &mut [f64]) {
        for (&target, joint) in processed.iter().zip(&self.joints) {
            ctrl[joint.control] = f64::from(target);
        }
    }

    /// For each joint its control, position and velocity.
    pub(super) fn states<'a>(&'a self, state: SubstepState<'a>) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
        self.joints.iter().map(move |joint| (joint.control, state.qpos[joint.qpos], state.qvel[joint.dof]))
    }
}

pub(super) fn impossible(key: &str, message: String) -> BuildError {
    ConfigError::Impossible { path: key.to_owned(), message }.into()
}
