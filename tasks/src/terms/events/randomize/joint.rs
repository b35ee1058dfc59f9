//! Armature, damping and friction loss of joints.

use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::event::EventTerm;
use serde::{Deserialize, Serialize};

use super::{Bound, Draw, Randomization, Variation, single};
use crate::terms::events::{Distribution, Operation};

/// A term for each quantity: the parameters are the same, and the type's name says what varies.
macro_rules! randomize_joint {
    ($($(#[$doc:meta])* $name:ident($field:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Names or patterns of the joints.
            pub joints: Vec<String>,
            /// The quantity, or what changes it.
            pub distribution: Distribution,
            /// How a draw changes the compiled value.
            pub operation: Operation,
            /// Whether one draw goes for all joints, instead of one each.
            pub shared: bool,
        }

        impl TermParams<dyn EventTerm> for $name {
            fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
                let &Self { distribution, operation, shared, .. } = self;
                let draw = Draw { key: "distribution", distribution, operation, shared };
                randomize(context, ModelField::$field, &self.joints, &draw)
            }
        }
    )*};
}
randomize_joint! {
    /// Varies the armature of joints, kg·m² (kg for sliding joints): the inertia of the rotors; no less than 0.
    RandomizeJointArmature(DofArmature);
    /// Varies the viscous damping of joints, N·m·s/rad (N·s/m for sliding joints); no less than 0.
    RandomizeJointDamping(DofDamping);
    /// Varies the dry friction of joints, N·m (N for sliding joints); no less than 0.
    RandomizeJointFrictionLoss(DofFrictionLoss);
}

fn randomize(
    context: &mut BuildContext<'_>,
    field: ModelField,
    joints: &[String],
    draw: &Draw<'_>,
) -> Result<Box<dyn EventTerm>, BuildError> {
    let dofs: Vec<usize> = context.joints(joints)?.into_iter().map(|joint| context.info().joints[joint].dof).collect();
    let variation = Variation::new(context, field, single(&dofs), Bound::AtLeast(0.0), draw)?;
    Ok(Box::new(Randomization(vec![variation])))
}
