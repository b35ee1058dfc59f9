//! Friction of geoms.

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::event::EventTerm;
use serde::{Deserialize, Serialize};

use super::{Bound, Draw, Randomization, Variation, component};
use crate::terms::events::{Distribution, Operation};

/// A coefficient of friction, in the order of the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Friction {
    /// Against sliding, no unit.
    Sliding,
    /// Against turning about the contact's normal, m.
    Torsional,
    /// Against rolling, m.
    Rolling,
}

/// Varies a coefficient of friction of geoms; no less than 0.
///
/// A contact takes the greater of its two geoms' coefficients, unless one of the geoms has priority: a lower friction on the
/// feet shows only on a floor that is no rougher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeGeomFriction {
    /// Names or patterns of the geoms.
    pub geoms: Vec<String>,
    /// Which coefficient.
    pub coefficient: Friction,
    /// The coefficient, or what changes it.
    pub distribution: Distribution,
    /// How a draw changes the compiled coefficient.
    pub operation: Operation,
    /// Whether one draw goes for all geoms, instead of one each.
    pub shared: bool,
}

impl TermParams<dyn EventTerm> for RandomizeGeomFriction {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let &Self { coefficient, distribution, operation, shared, .. } = self;
        let geoms = context.geoms(&self.geoms)?;
        let draw = Draw { key: "distribution", distribution, operation, shared };
        let places = component(&geoms, coefficient as usize);
        let variation = Variation::new(context, ModelField::GeomFriction, places, Bound::AtLeast(0.0), &draw)?;
        Ok(Box::new(Randomization(vec![variation])))
    }
}
