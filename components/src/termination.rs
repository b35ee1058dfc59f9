//! The end of an episode.

use bevy_ecs::component::Component;

/// The greatest number of termination terms that an environment may have.
pub const MAX_TERMINATION_TERMS: usize = 64;

/// Whether, and why, a row's episode ended in the current step.
///
/// The values of the step in which the episode ended stay until the row takes its next step.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Termination {
    /// The episode ended in a terminal state: a termination term that is no time-out fired, or the row diverged.
    pub terminated: bool,
    /// The episode was cut off: a time-out term fired. Both flags may be set.
    pub truncated: bool,
    /// The row's physics failed or was not finite; its [`RobotState`](crate::RobotState) is the last finite one.
    pub diverged: bool,
    /// The row waits to be reset and took no part in this step.
    pub idle: bool,
    /// Which terms fired, one bit each in the order of the terms. In an idle row, those that ended the episode.
    pub terms: u64,
}

impl Termination {
    /// Whether the episode ended, for whatever reason.
    #[must_use]
    pub const fn done(&self) -> bool {
        self.terminated || self.truncated
    }

    /// Whether the term at position `term` fired.
    #[must_use]
    pub const fn fired(&self, term: usize) -> bool {
        term < MAX_TERMINATION_TERMS && self.terms >> term & 1 == 1
    }
}
