//! Mass, centre of mass and inertia of bodies.

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{TermParams, none_or};
use manege_systems::managers::event::{EventRow, EventTerm};
use serde::{Deserialize, Serialize};

use super::{Bound, Draw, Randomization, Variation, component, single};
use crate::terms::events::{Distribution, Operation};

/// Least mass that a body may be given, kg.
const MIN_MASS: f64 = 1e-6;

/// Least principal moment of inertia that a body may be given, kg·m².
const MIN_INERTIA: f64 = 1e-9;

/// Varies the mass of bodies, kg; no less than 1e-6 kg.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeBodyMass {
    /// Names or patterns of the bodies.
    pub bodies: Vec<String>,
    /// Mass, kg, or what changes it.
    pub distribution: Distribution,
    /// How a draw changes the compiled mass.
    pub operation: Operation,
    /// Whether one draw goes for all bodies, instead of one each.
    pub shared: bool,
    /// Whether the inertia changes in proportion, as that of a body whose density changes; otherwise it stays.
    pub scale_inertia: bool,
}

struct BodyMass {
    mass: Variation,
    scale_inertia: bool,
}

impl TermParams<dyn EventTerm> for RandomizeBodyMass {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let &Self { distribution, operation, shared, scale_inertia, .. } = self;
        let bodies = context.bodies(&self.bodies)?;
        let draw = Draw { key: "distribution", distribution, operation, shared };
        let mass = Variation::new(context, ModelField::BodyMass, single(&bodies), Bound::AtLeast(MIN_MASS), &draw)?;
        if scale_inertia {
            context.field(ModelField::BodyInertia)?;
        }
        Ok(Box::new(BodyMass { mass, scale_inertia }))
    }
}

impl EventTerm for BodyMass {
    fn apply(&self, row: &mut EventRow<'_>) {
        self.mass.apply(row);
        if !self.scale_inertia {
            return;
        }
        for &body in &self.mass.places {
            let (compiled, masses) = row.staged.field(ModelField::BodyMass);
            // A body without mass has no inertia either.
            let factor = if compiled[body] > 0.0 { masses[body] / compiled[body] } else { 1.0 };
            let (compiled, inertias) = row.staged.field(ModelField::BodyInertia);
            for place in 3 * body..3 * body + 3 {
                inertias[place] = compiled[place] * factor;
            }
        }
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Varies the centre of mass of bodies, in the body's frame, m.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeBodyCom {
    /// Names or patterns of the bodies.
    pub bodies: Vec<String>,
    /// Coordinate along x, m, or what changes it; `none` leaves it alone.
    #[serde(with = "none_or")]
    pub x: Option<Distribution>,
    /// As `x`, along y.
    #[serde(with = "none_or")]
    pub y: Option<Distribution>,
    /// As `x`, along z.
    #[serde(with = "none_or")]
    pub z: Option<Distribution>,
    /// How a draw changes the compiled coordinate.
    pub operation: Operation,
    /// Whether one draw for each axis goes for all bodies, instead of one each.
    pub shared: bool,
}

impl TermParams<dyn EventTerm> for RandomizeBodyCom {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let &Self { operation, shared, .. } = self;
        let bodies = context.bodies(&self.bodies)?;
        let mut variations = Vec::new();
        for (axis, (key, distribution)) in [("x", self.x), ("y", self.y), ("z", self.z)].into_iter().enumerate() {
            let Some(distribution) = distribution else { continue };
            let draw = Draw { key, distribution, operation, shared };
            let places = component(&bodies, axis);
            variations.push(Variation::new(context, ModelField::BodyCom, places, Bound::None, &draw)?);
        }
        Ok(Box::new(Randomization(variations)))
    }
}

/// Varies the inertia of bodies: the same draw for all three principal moments, kg·m², so that they stay possible together;
/// none less than 1e-9 kg·m². The mass stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeBodyInertia {
    /// Names or patterns of the bodies.
    pub bodies: Vec<String>,
    /// Principal moment of inertia, kg·m², or what changes it.
    pub distribution: Distribution,
    /// How a draw changes the compiled moments.
    pub operation: Operation,
    /// Whether one draw goes for all bodies, instead of one each.
    pub shared: bool,
}

impl TermParams<dyn EventTerm> for RandomizeBodyInertia {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        let &Self { distribution, operation, shared, .. } = self;
        let bodies = context.bodies(&self.bodies)?;
        let draw = Draw { key: "distribution", distribution, operation, shared };
        let moments = bodies.iter().map(|body| 3 * body..3 * body + 3);
        let bound = Bound::AtLeast(MIN_INERTIA);
        let variation = Variation::new(context, ModelField::BodyInertia, moments, bound, &draw)?;
        Ok(Box::new(Randomization(vec![variation])))
    }
}
