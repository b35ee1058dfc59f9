//! Numbers gathered over an episode.

use bevy_ecs::component::Component;

/// What the metric terms have gathered of a row since its last reset.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Metrics {
    /// Each term's samples so far: their sum, their greatest or the last, as the term is configured.
    pub values: Box<[f32]>,
    /// Number of samples of each term.
    pub samples: Box<[u32]>,
}

impl Metrics {
    /// Nothing gathered of `terms` metric terms.
    #[must_use]
    pub fn zeros(terms: usize) -> Self {
        Self { values: vec![0.0; terms].into(), samples: vec![0; terms].into() }
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.values.fill(0.0);
        self.samples.fill(0);
    }
}
