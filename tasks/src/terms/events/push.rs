//! Pushes.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::event::{EventRow, EventTerm};
use serde::{Deserialize, Serialize};

use super::ranges::{SixRanges, SixTunable};

/// Pushes the robot by adding to the floating root's velocity, linear and angular in the world frame. Curricula may change
/// the ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushBySettingVelocity {
    /// What is added, m/s and rad/s.
    pub velocity: SixRanges,
}

struct Push {
    velocity: SixTunable,
}

impl TermParams<dyn EventTerm> for PushBySettingVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        context.root_body()?;
        Ok(Box::new(Push { velocity: self.velocity.tunable("velocity", context)? }))
    }
}

impl EventTerm for Push {
    fn apply(&self, row: &mut EventRow<'_>) {
        let (linear, angular) = self.velocity.draw(&mut row.draws);
        let mut root = row.staged.root();
        root.linear_velocity += linear;
        root.angular_velocity += angular;
        row.staged.set_root(root);
    }

    fn randomizes(&self) -> bool {
        true
    }
}
