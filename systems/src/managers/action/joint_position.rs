//! Joint position targets.

use serde::{Deserialize, Serialize};

use super::ActionTerm;
use super::joints::{JointTargets, Parameters, impossible};
use crate::backend::{ActuatorKind, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::{PerName, TermParams, none_or};

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

struct JointPosition(JointTargets);

impl TermParams<dyn ActionTerm> for JointPositionAction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        let parameters = Parameters {
            joints: &self.joints,
            scale: &self.scale,
            offset: &self.offset,
            use_default_offset: self.use_default_offset,
            clip: self.clip.as_ref(),
        };
        Ok(Box::new(JointPosition(JointTargets::resolve(context, &parameters, ActuatorKind::Position)?)))
    }
}

impl ActionTerm for JointPosition {
    fn width(&self) -> usize {
        self.0.len()
    }

    fn process(&self, raw: &[f32], _state: SubstepState<'_>, processed: &mut [f32]) {
        self.0.process(raw, processed);
    }

    fn write_controls(&self, processed: &[f32], _state: SubstepState<'_>, ctrl: &mut [f64]) {
        self.0.write(processed, ctrl);
    }
}

/// Sets position actuators to `q + clip(action × scale)`, with `q` the joint's position when the action is given: the
/// target stays the same through all physics steps of the control step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelativeJointPositionAction {
    /// Names or patterns of the joints.
    pub joints: Vec<String>,
    /// Factor on the action, rad (or m) per unit.
    pub scale: PerName<f32>,
    /// Must be 0: the joint's position takes its place.
    pub offset: PerName<f32>,
    /// Least and greatest difference between target and position, rad or m.
    #[serde(with = "none_or")]
    pub clip: Option<PerName<[f32; 2]>>,
}

impl RelativeJointPositionAction {
    /// Targets around where all joints are, `scale` rad per unit of action.
    #[must_use]
    pub fn scaled(scale: f32) -> Self {
        let joints = vec![".*".to_owned()];
        Self { joints, scale: PerName::All(scale), offset: PerName::All(0.0), clip: None }
    }
}

struct RelativeJointPosition(JointTargets);

impl TermParams<dyn ActionTerm> for RelativeJointPositionAction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        let nonzero = match &self.offset {
            PerName::All(offset) => *offset != 0.0,
            PerName::Patterns(offsets) => offsets.values().any(|offset| *offset != 0.0),
        };
        if nonzero {
            let message = "it must be 0, because the joint's position takes its place".to_owned();
            return Err(impossible("offset", message));
        }
        let parameters = Parameters {
            joints: &self.joints,
            scale: &self.scale,
            offset: &self.offset,
            use_default_offset: false,
            clip: self.clip.as_ref(),
        };
        Ok(Box::new(RelativeJointPosition(JointTargets::resolve(context, &parameters, ActuatorKind::Position)?)))
    }
}

impl ActionTerm for RelativeJointPosition {
    fn width(&self) -> usize {
        self.0.len()
    }

    fn process(&self, raw: &[f32], state: SubstepState<'_>, processed: &mut [f32]) {
        self.0.process(raw, processed);
        for (target, (_, position, _)) in processed.iter_mut().zip(self.0.states(state)) {
            *target += position as f32;
        }
    }

    fn write_controls(&self, processed: &[f32], _state: SubstepState<'_>, ctrl: &mut [f64]) {
        self.0.write(processed, ctrl);
    }
}
