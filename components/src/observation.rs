//! Observations, and the memory of the terms that look back.

use bevy_ecs::component::Component;

/// A row's observation: all groups back to back, each group its terms back to back.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Observation {
    /// What the policy sees.
    pub values: Box<[f32]>,
    /// What the terms computed, before noise, clip and scale; groups that use the same term share it.
    pub raw: Box<[f32]>,
}

impl Observation {
    /// Zeros of the given sizes.
    #[must_use]
    pub fn zeros(width: usize, raw_width: usize) -> Self {
        Self { values: vec![0.0; width].into(), raw: vec![0.0; raw_width].into() }
    }
}

/// Sizes of an [`ObservationHistory`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryWidths {
    /// Terms with a delay or a history.
    pub terms: usize,
    /// Values of all delay lines together.
    pub delay: usize,
    /// Values of all histories together.
    pub history: usize,
    /// Values of all per-episode biases together.
    pub bias: usize,
}

/// What the terms that look back remember of one row.
///
/// Delay lines are rings; histories run from the oldest frame to the newest. The observation manager knows where each
/// term's line begins and how long it is.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct ObservationHistory {
    /// Delay lines.
    pub delay: Box<[f32]>,
    /// Histories.
    pub history: Box<[f32]>,
    /// Noise that is drawn once per episode.
    pub bias: Box<[f32]>,
    /// Frames that each term has appended since the reset.
    pub frames: Box<[u32]>,
    /// The lag of each delayed term, frames.
    pub lag: Box<[u32]>,
    /// Offset of each delayed term's update period, frames.
    pub phase: Box<[u32]>,
}

impl ObservationHistory {
    /// Empty lines of the given sizes.
    #[must_use]
    pub fn zeros(widths: &HistoryWidths) -> Self {
        Self {
            delay: vec![0.0; widths.delay].into(),
            history: vec![0.0; widths.history].into(),
            bias: vec![0.0; widths.bias].into(),
            frames: vec![0; widths.terms].into(),
            lag: vec![0; widths.terms].into(),
            phase: vec![0; widths.terms].into(),
        }
    }

    /// Forgets every frame.
    pub fn clear(&mut self) {
        self.delay.fill(0.0);
        self.history.fill(0.0);
        self.frames.fill(0);
        self.lag.fill(0);
    }
}
