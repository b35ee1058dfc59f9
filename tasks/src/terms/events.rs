//! Event terms: what happens to a row at startup, at resets, at intervals or in every step. None knows a robot.

mod distribution;
mod push;
mod randomize;
mod ranges;
mod reset;
mod wrench;

pub use distribution::{Distribution, Operation};
pub use push::PushBySettingVelocity;
pub use randomize::{
    Friction, RandomizeBodyCom, RandomizeBodyInertia, RandomizeBodyMass, RandomizeGains, RandomizeGeomFriction,
    RandomizeGravity, RandomizeJointArmature, RandomizeJointDamping, RandomizeJointFrictionLoss,
};
pub(crate) use ranges::SixTunable;
pub use ranges::{AxisRanges, Range, SixRanges};
pub use reset::{ResetRootUniform, ResetSceneToDefault};
pub use wrench::ApplyExternalWrench;
