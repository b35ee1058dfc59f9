//! Gains of position actuators.

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{TermParams, none_or};
use manege_systems::managers::event::EventTerm;
use serde::{Deserialize, Serialize};

use super::{Bound, Draw, Randomization, Variation, single};
use crate::terms::events::{Distribution, Operation};

/// Varies the gains of position actuators; neither is less than 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeGains {
    /// Names or patterns of the actuators.
    pub actuators: Vec<String>,
    /// Position gain, N·m/rad, or what changes it; `none` leaves it alone.
    #[serde(with = "none_or")]
    pub kp: Option<Distribution>,
    /// Velocity gain, N·m·s/rad, or what changes it; `none` leaves it alone.
    #[serde(with = "none_or")]
    pub kd: Option<Distribution>,
    /// How the draws change the compiled gains.
    pub operation: Operation,
    /// Whether one draw for each gain goes for all actuators, instead of one each.
    pub shared: bool,
}

impl TermParams<dyn EventTerm> for RandomizeGains {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let &Self { operation, shared, .. } = self;
        let actuators = context.actuators(&self.actuators)?;
        let mut variations = Vec::new();
        for (key, field, distribution) in
            [("kp", ModelField::ActuatorKp, self.kp), ("kd", ModelField::ActuatorKd, self.kd)]
        {
            let Some(distribution) = distribution else { continue };
            let draw = Draw { key, distribution, operation, shared };
            variations.push(Variation::new(context, field, single(&actuators), Bound::AtLeast(0.0), &draw)?);
        }
        Ok(Box::new(Randomization(variations)))
    }
}
