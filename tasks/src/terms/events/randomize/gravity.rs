//! Gravity.

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{TermParams, none_or};
use manege_systems::managers::event::EventTerm;
use serde::{Deserialize, Serialize};

use super::{Bound, Draw, Randomization, Variation, component};
use crate::terms::events::{Distribution, Operation};

/// Varies gravity in the world frame, m/s².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeGravity {
    /// Component along x, m/s², or what changes it; `none` leaves it alone.
    #[serde(with = "none_or")]
    pub x: Option<Distribution>,
    /// As `x`, along y.
    #[serde(with = "none_or")]
    pub y: Option<Distribution>,
    /// As `x`, along z.
    #[serde(with = "none_or")]
    pub z: Option<Distribution>,
    /// How a draw changes the compiled component.
    pub operation: Operation,
}

impl TermParams<dyn EventTerm> for RandomizeGravity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let mut variations = Vec::new();
        for (axis, (key, distribution)) in [("x", self.x), ("y", self.y), ("z", self.z)].into_iter().enumerate() {
            let Some(distribution) = distribution else { continue };
            let draw = Draw { key, distribution, operation: self.operation, shared: false };
            let places = component(&[0], axis);
            variations.push(Variation::new(context, ModelField::Gravity, places, Bound::None, &draw)?);
        }
        Ok(Box::new(Randomization(variations)))
    }
}
