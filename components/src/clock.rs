//! Time within an episode.

use bevy_ecs::component::Component;

/// How far a row is into its episode.
#[derive(Component, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EpisodeClock {
    /// Control steps completed since the last reset. It is 1 while the managers evaluate the first step;
    /// more if episodes are staggered and the episode is the row's first.
    pub step: u32,
    /// Number of the episode: 0 before the first reset, then counting resets of this row from 1.
    pub episode: u32,
}
