//! Where episodes begin.

use manege_components::rotation;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::event::{EventRow, EventTerm};
use serde::{Deserialize, Serialize};

use super::ranges::{SixRanges, SixTunable};

/// Puts the whole robot into its default configuration, at rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetSceneToDefault {}

struct SceneToDefault {
    qpos: Vec<f64>,
}

impl TermParams<dyn EventTerm> for ResetSceneToDefault {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(SceneToDefault { qpos: context.default_qpos().to_vec() }))
    }
}

impl EventTerm for SceneToDefault {
    fn apply(&self, row: &mut EventRow<'_>) {
        row.staged.qpos_mut().copy_from_slice(&self.qpos);
        row.staged.qvel_mut().fill(0.0);
    }
}

/// Moves the floating root from its default pose: position += (x, y, z); orientation = default · Rz·Ry·Rx; and gives it a
/// velocity, linear and angular in the world frame. Curricula may change the ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRootUniform {
    /// Displacement, m and rad.
    pub pose: SixRanges,
    /// Velocity, m/s and rad/s.
    pub velocity: SixRanges,
}

struct ResetRoot {
    pose: SixTunable,
    velocity: SixTunable,
}

impl TermParams<dyn EventTerm> for ResetRootUniform {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        context.root_body()?;
        let pose = self.pose.tunable("pose", context)?;
        let velocity = self.velocity.tunable("velocity", context)?;
        Ok(Box::new(ResetRoot { pose, velocity }))
    }
}

impl EventTerm for ResetRoot {
    fn apply(&self, row: &mut EventRow<'_>) {
        let (shift, turn) = self.pose.draw(&mut row.draws);
        let (linear, angular) = self.velocity.draw(&mut row.draws);
        let mut root = row.staged.root();
        root.position += shift;
        root.orientation *= rotation::from_roll_pitch_yaw(turn.x, turn.y, turn.z);
        root.linear_velocity = linear;
        root.angular_velocity = angular;
        row.staged.set_root(root);
    }
}
