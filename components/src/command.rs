//! Commands that a row is asked to follow.

use bevy_ecs::component::Component;

/// Sizes of a [`Command`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandWidths {
    /// Number of command terms.
    pub terms: usize,
    /// Values of all terms together.
    pub values: usize,
    /// Private values of all terms together.
    pub scratch: usize,
    /// Metrics of all terms together.
    pub metrics: usize,
}

/// A row's commands: the values of every command term back to back, with their timers and metrics.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Command {
    /// What policies and rewards see, term after term.
    pub values: Box<[f32]>,
    /// What a term remembers between resamplings (a heading target, a standing flag), term after term.
    pub scratch: Box<[f32]>,
    /// Errors accumulated over the episode, term after term.
    pub metrics: Box<[f32]>,
    /// Time until each term is drawn again, s.
    pub time_left: Box<[f64]>,
    /// How often each term was drawn in this episode.
    pub resamplings: Box<[u32]>,
}

impl Command {
    /// Zeros of the given sizes.
    #[must_use]
    pub fn zeros(widths: &CommandWidths) -> Self {
        Self {
            values: vec![0.0; widths.values].into(),
            scratch: vec![0.0; widths.scratch].into(),
            metrics: vec![0.0; widths.metrics].into(),
            time_left: vec![0.0; widths.terms].into(),
            resamplings: vec![0; widths.terms].into(),
        }
    }
}
