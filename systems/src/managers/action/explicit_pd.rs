//! A position servo of our own.

use serde::{Deserialize, Serialize};

use super::ActionTerm;
use super::joints::{JointTargets, Parameters, impossible};
use crate::backend::{ActuatorKind, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::{PerName, TermParams, none_or};

/// Sets motors to the torque of a proportional-derivative law, computed anew from the state before every physics step:
/// `τ = clamp(stiffness (target - q) - damping q̇, ±effort_limit)` with `target = clip(action × scale + offset)`.
///
/// The action has one value per selected joint, in model order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplicitPdAction {
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
    /// Torque per difference of position, N·m/rad (or N/m). Every joint needs one.
    pub stiffness: PerName<f64>,
    /// Torque per velocity, N·m·s/rad (or N·s/m). Every joint needs one.
    pub damping: PerName<f64>,
    /// Greatest torque in either direction, N·m (or N). Every joint needs one; `inf` for no limit.
    pub effort_limit: PerName<f64>,
}

impl ExplicitPdAction {
    /// Targets around the default pose for all joints, `scale` rad per unit of action, with the same gains (N·m/rad and
    /// N·m·s/rad) and effort limit (N·m).
    #[must_use]
    pub fn around_default_pose(scale: f32, stiffness: f64, damping: f64, effort_limit: f64) -> Self {
        Self {
            joints: vec![".*".to_owned()],
            scale: PerName::All(scale),
            offset: PerName::All(0.0),
            use_default_offset: true,
            clip: None,
            stiffness: PerName::All(stiffness),
            damping: PerName::All(damping),
            effort_limit: PerName::All(effort_limit),
        }
    }
}

struct ExplicitPd {
    targets: JointTargets,
    gains: Vec<Gains>,
}

struct Gains {
    stiffness: f64,
    damping: f64,
    effort_limit: f64,
}

impl TermParams<dyn ActionTerm> for ExplicitPdAction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        let parameters = Parameters {
            joints: &self.joints,
            scale: &self.scale,
            offset: &self.offset,
            use_default_offset: self.use_default_offset,
            clip: self.clip.as_ref(),
        };
        let targets = JointTargets::resolve(context, &parameters, ActuatorKind::Motor)?;
        let joints = context.joints(&self.joints)?;
        let values = |key: &str, values: &PerName<f64>, infinite: bool| {
            let values = context.per_joint(&joints, values, None)?;
            match values.iter().find(|value| !(**value >= 0.0 && (infinite || value.is_finite()))) {
                None => Ok(values),
                Some(bad) => Err(impossible(key, format!("{bad} is negative, or no number"))),
            }
        };
        let stiffness = values("stiffness", &self.stiffness, false)?;
        let damping = values("damping", &self.damping, false)?;
        let limits = values("effort_limit", &self.effort_limit, true)?;
        let gains = stiffness.into_iter().zip(damping).zip(limits);
        let gains = gains.map(|((stiffness, damping), effort_limit)| Gains { stiffness, damping, effort_limit });
        Ok(Box::new(ExplicitPd { targets, gains: gains.collect() }))
    }
}

impl ActionTerm for ExplicitPd {
    fn width(&self) -> usize {
        self.targets.len()
    }

    fn process(&self, raw: &[f32], _state: SubstepState<'_>, processed: &mut [f32]) {
        self.targets.process(raw, processed);
    }

    fn write_controls(&self, processed: &[f32], state: SubstepState<'_>, ctrl: &mut [f64]) {
        let joints = self.targets.states(state).zip(&self.gains).zip(processed);
        for (((control, position, velocity), gains), &target) in joints {
            let torque = gains.stiffness * (f64::from(target) - position) - gains.damping * velocity;
            ctrl[control] = torque.clamp(-gains.effort_limit, gains.effort_limit);
        }
    }

    fn needs_substep_feedback(&self) -> bool {
        true
    }
}
