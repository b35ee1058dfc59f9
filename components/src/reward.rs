//! Rewards.

use bevy_ecs::component::Component;

/// A row's reward in the current step and over the episode.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Reward {
    /// Reward of this control step: the sum over terms of value × weight × control period.
    pub total: f32,
    /// Each term's value × weight in this control step, before the control period.
    pub terms: Box<[f32]>,
    /// Each term's value × weight × control period, summed since the last reset.
    pub episode_sums: Box<[f32]>,
}

impl Reward {
    /// Zeros for `terms` reward terms.
    #[must_use]
    pub fn zeros(terms: usize) -> Self {
        Self { total: 0.0, terms: vec![0.0; terms].into(), episode_sums: vec![0.0; terms].into() }
    }
}
