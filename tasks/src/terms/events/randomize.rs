//! Variation of the model's parameters from row to row.
//!
//! Whatever is drawn is applied to the value of the compiled model, never to the one drawn before, so nothing adds up over
//! resets. Where two terms vary the same value, the last one in order decides it. A startup event's values stay for good.

mod body;
mod friction;
mod gains;
mod gravity;
mod joint;

use std::ops::Range;

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::managers::event::{EventRow, EventTerm};

pub use body::{RandomizeBodyCom, RandomizeBodyInertia, RandomizeBodyMass};
pub use friction::{Friction, RandomizeGeomFriction};
pub use gains::RandomizeGains;
pub use gravity::RandomizeGravity;
pub use joint::{RandomizeJointArmature, RandomizeJointDamping, RandomizeJointFrictionLoss};

use super::{Distribution, Operation};
use crate::terms::resolve::impossible;

/// What is drawn, and what is done with it.
struct Draw<'a> {
    /// The parameter that gives the distribution.
    key: &'a str,
    distribution: Distribution,
    operation: Operation,
    /// Whether all selected objects get the same number, instead of one each.
    shared: bool,
}

/// Values that a quantity may have.
#[derive(Clone, Copy)]
enum Bound {
    /// Any.
    None,
    /// No less than this, or than the compiled value where that is less.
    AtLeast(f64),
}

/// Variation of one quantity of some objects.
struct Variation {
    field: ModelField,
    /// Places of the values in the field, those of one draw after those of another.
    places: Vec<usize>,
    /// How many places share a draw.
    per_draw: usize,
    distribution: Distribution,
    operation: Operation,
    bound: Bound,
}

impl Variation {
    /// `objects` are the places in the field of each selected object's values, equally many for each, and at least one.
    fn new(
        context: &mut BuildContext<'_>,
        field: ModelField,
        objects: impl IntoIterator<Item = Range<usize>>,
        bound: Bound,
        draw: &Draw<'_>,
    ) -> Result<Self, BuildError> {
        let &Draw { key, distribution, operation, shared } = draw;
        distribution.check(key)?;
        if let (Bound::AtLeast(_), Operation::Set | Operation::Scale) = (bound, operation)
            && distribution.low() < 0.0
        {
            return Err(impossible(key, format!("{} is below 0, which the quantity cannot be", distribution.low())));
        }
        let field = context.field(field)?;
        let mut width = 0;
        let places: Vec<usize> = objects.into_iter().inspect(|object| width = object.len()).flatten().collect();
        if places.is_empty() {
            return Err(impossible(key, "nothing is selected to be varied".to_owned()));
        }
        let compiled = field.compiled(context.info());
        if operation == Operation::Scale && places.iter().all(|&place| compiled[place] == 0.0) {
            return Err(impossible(key, "all selected values are 0 in the model, which no factor changes".to_owned()));
        }
        let per_draw = if shared { places.len() } else { width };
        Ok(Self { field, places, per_draw, distribution, operation, bound })
    }

    fn apply(&self, row: &mut EventRow<'_>) {
        let (compiled, values) = row.staged.field(self.field);
        for places in self.places.chunks_exact(self.per_draw) {
            let drawn = self.distribution.draw(&mut row.draws);
            for &place in places {
                let value = self.operation.apply(compiled[place], drawn);
                values[place] = match self.bound {
                    Bound::None => value,
                    Bound::AtLeast(least) => value.max(least.min(compiled[place])),
                };
            }
        }
    }
}

/// A term that varies quantities one after the other.
struct Randomization(Vec<Variation>);

impl EventTerm for Randomization {
    fn apply(&self, row: &mut EventRow<'_>) {
        self.0.iter().for_each(|variation| variation.apply(row));
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// The places of one value for each object.
fn single(objects: &[usize]) -> impl Iterator<Item = Range<usize>> {
    objects.iter().map(|&object| object..object + 1)
}

/// The places of one of each object's three values.
fn component(objects: &[usize], component: usize) -> impl Iterator<Item = Range<usize>> {
    objects.iter().map(move |&object| 3 * object + component..3 * object + component + 1)
}
