//! Where the time of a control step goes.

use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;

use crate::physics::Physics;
use crate::step::StepCounter;

/// Durations of the last control step.
#[derive(Resource, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTimings {
    /// The whole step.
    pub total: Duration,
    /// The physics dispatch.
    pub physics: Duration,
    /// The reset pass, its physics included.
    pub reset: Duration,
    begun: Option<Instant>,
}

impl StepTimings {
    /// Everything that is neither physics nor reset.
    #[must_use]
    pub fn managers(&self) -> Duration {
        self.total.saturating_sub(self.physics + self.reset)
    }
}

pub(crate) fn begin_step(mut timings: ResMut<StepTimings>, mut counter: ResMut<StepCounter>) {
    counter.steps += 1;
    *timings = StepTimings { begun: Some(Instant::now()), ..StepTimings::default() };
}

pub(crate) fn end_step(mut timings: ResMut<StepTimings>, physics: Res<Physics>) {
    timings.physics = physics.elapsed;
    timings.total = timings.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    // The profiler's frame; the field name is what tracing-tracy looks for.
    tracing::trace!(target: "manege::frame", { tracy.frame_mark = true }, "control step");
}
