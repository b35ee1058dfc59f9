//! What the physics engine and the task say about a row.

use bevy_ecs::component::Component;

/// The physics outputs that the managers asked for, of one row.
///
/// Term code reads it through handles that were resolved by name when the environment was built.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct RobotState {
    /// Outputs back to back, in the order in which they were requested.
    pub values: Box<[f64]>,
}

impl RobotState {
    /// Zeros for `width` output values.
    #[must_use]
    pub fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; width].into() }
    }
}

/// Numbers that a task keeps for one row, such as a gait phase. Their names are registered at build.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Named values back to back, in the order of registration.
    pub values: Box<[f32]>,
}

impl TaskState {
    /// Zeros for `width` values.
    #[must_use]
    pub fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; width].into() }
    }
}
