//! Timers of interval events.

use bevy_ecs::component::Component;

/// Time until each interval event with a timer per row fires for this row.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct EventTimers {
    /// Time left, s, in the order of the events.
    pub time_left: Box<[f64]>,
    /// How often each event fired in this episode.
    pub fired: Box<[u32]>,
}

impl EventTimers {
    /// Zeros for `events` timers.
    #[must_use]
    pub fn zeros(events: usize) -> Self {
        Self { time_left: vec![0.0; events].into(), fired: vec![0; events].into() }
    }
}
