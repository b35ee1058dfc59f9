//! Joint velocities and efforts, handed to actuators as they are.

use serde::{Deserialize, Serialize};

use super::ActionTerm;
use super::joints::{JointTargets, Parameters};
use crate::backend::{ActuatorKind, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::{PerName, TermParams, none_or};

macro_rules! direct_action {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $unit:literal) => {
        $(#[$doc])*
        ///
        /// The action has one value per selected joint, in model order.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Names or patterns of the joints.
            pub joints: Vec<String>,
            #[doc = concat!("Factor on the action, ", $unit, " per unit.")]
            pub scale: PerName<f32>,
            #[doc = concat!("Added after scaling, ", $unit, ".")]
            pub offset: PerName<f32>,
            #[doc = concat!("Least and greatest value, ", $unit, ".")]
            #[serde(with = "none_or")]
            pub clip: Option<PerName<[f32; 2]>>,
        }

        impl $name {
            #[doc = concat!("All joints, `scale` ", $unit, " per unit of action.")]
            #[must_use]
            pub fn scaled(scale: f32) -> Self {
                let joints = vec![".*".to_owned()];
                Self { joints, scale: PerName::All(scale), offset: PerName::All(0.0), clip: None }
            }
        }

        impl TermParams<dyn ActionTerm> for $name {
            fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
                let parameters = Parameters {
                    joints: &self.joints,
                    scale: &self.scale,
                    offset: &self.offset,
                    use_default_offset: false,
                    clip: self.clip.as_ref(),
                };
                Ok(Box::new(Direct(JointTargets::resolve(context, &parameters, ActuatorKind::$kind)?)))
            }
        }
    };
}

direct_action! {
    /// Sets velocity actuators to `clip(action × scale + offset)`.
    JointVelocityAction, Velocity, "rad/s (or m/s)"
}
direct_action! {
    /// Sets motors to the torque (or force) `clip(action × scale + offset)`.
    JointEffortAction, Motor, "N·m (or N)"
}

struct Direct(JointTargets);

impl ActionTerm for Direct {
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
