//! A gait of two feet in antiphase, and the terms that follow it.

use std::f32::consts::{PI, TAU};

use bevy_ecs::prelude::*;
use manege_components::{ResetRequested, StreamId, Streams, TaskState};
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::handles::TaskSlice;
use manege_systems::managers::observation::{ObservationTerm, observation};
use manege_systems::managers::reward::{RewardTerm, reward};
use manege_systems::managers::task::TaskSystems;
use manege_systems::schedule::{ResetSystems, StepSystems};
use manege_systems::step::Randomness;
use serde::{Deserialize, Serialize};

use super::gait::PHASE;
use super::resolve;

/// Phases of a left and a right foot per row, which advance by 2π × `frequency` × control period in every control step.
///
/// At a reset the left one is drawn from `[0, 2π)` (it is π without randomisation) and the right one is half a turn
/// ahead. The state is named `gait_phase` (2 values, left and right, rad in `[0, 2π)`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedGaitClock {
    /// Gait cycles per second, Hz.
    pub frequency: f64,
}

#[derive(Resource, Clone, Copy)]
struct Clock {
    phases: TaskSlice,
    /// Advance per control step, rad.
    advance: f32,
}

impl TermParams<dyn TaskSystems> for PairedGaitClock {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TaskSystems>, BuildError> {
        if !(self.frequency.is_finite() && self.frequency >= 0.0) {
            return Err(resolve::impossible("frequency", format!("{} Hz is no frequency", self.frequency)));
        }
        let advance = (std::f64::consts::TAU * self.frequency * context.control_period()) as f32;
        Ok(Box::new(Clock { phases: context.register_task_state(PHASE, 2)?, advance }))
    }
}

impl TaskSystems for Clock {
    fn install(self: Box<Self>, world: &mut World, step: &mut Schedule, reset: &mut Schedule) {
        world.insert_resource(*self);
        step.add_systems(advance_phases.in_set(StepSystems::Task));
        reset.add_systems(draw_phases.in_set(ResetSystems::Task));
    }
}

fn advance_phases(clock: Res<Clock>, mut rows: Query<&mut TaskState>) {
    for mut state in &mut rows {
        for phase in &mut state.values[clock.phases.range()] {
            *phase = (*phase + clock.advance) % TAU;
        }
    }
}

fn draw_phases(
    clock: Res<Clock>,
    randomness: Res<Randomness>,
    mut rows: Query<(&Streams, &mut TaskState), With<ResetRequested>>,
) {
    const STREAM: StreamId = StreamId::new("task/gait_phase");
    for (streams, mut state) in &mut rows {
        let draws = streams.draws(STREAM, 0);
        let mut draws = if randomness.enabled { draws } else { draws.centred() };
        let left = draws.uniform_f32(0.0, TAU);
        state.values[clock.phases.range()].copy_from_slice(&[left, (left + PI) % TAU]);
    }
}

/// Where the two phases are.
fn phases(context: &BuildContext<'_>) -> Result<TaskSlice, BuildError> {
    let phases = context.task_state(PHASE)?;
    if phases.width() == 2 {
        return Ok(phases);
    }
    Err(resolve::impossible("task", format!("`{PHASE}` is kept by a clock that is not for a pair of feet")))
}

/// The phases of the left and the right foot, rad in `[0, 2π)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedPhases {}

impl TermParams<dyn ObservationTerm> for PairedPhases {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let phases = phases(context)?;
        Ok(observation(2, move |row, out| out.copy_from_slice(row.task(phases))))
    }
}

/// How well two feet keep to the heights of their phases: `exp(-((z_l - h(φ_l))² + (z_r - h(φ_r))²) / scale)`, with `z` a
/// foot's height in the world and [`swing_height`] for `h`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedFootHeight {
    /// Sensor of the left foot's position in the world.
    pub left: String,
    /// Sensor of the right foot's position in the world.
    pub right: String,
    /// Height of a foot in the middle of its swing, m.
    pub swing_height: f64,
    /// Width of the reward, m².
    pub scale: f64,
}

impl TermParams<dyn RewardTerm> for PairedFootHeight {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let phases = phases(context)?;
        let left = resolve::sensor(context, "left", &self.left, 3)?;
        let right = resolve::sensor(context, "right", &self.right, 3)?;
        let height = self.swing_height;
        if !height.is_finite() {
            return Err(resolve::impossible("swing_height", format!("{height} m is no height")));
        }
        let scale = resolve::positive("scale", self.scale)?;
        Ok(reward(move |row| {
            let feet = row.task(phases).iter().zip([left, right]);
            let errors = feet.map(|(&phase, foot)| row.vec3(foot).z - height * swing_height(f64::from(phase)));
            (-errors.map(|error| error * error).sum::<f64>() / scale).exp() as f32
        }))
    }
}

/// Height of a foot at a phase (rad), as a part of its greatest height.
///
/// It is 0 at π, where the foot is on the ground, and 1 at 0, in the middle of the swing; between the two it follows the
/// cubic `3t² - 2t³`, so it is level at both ends.
#[must_use]
pub fn swing_height(phase: f64) -> f64 {
    let cycle = (phase / std::f64::consts::TAU + 0.5).rem_euclid(1.0);
    let t = 1.0 - (2.0 * cycle - 1.0).abs();
    t * t * (3.0 - 2.0 * t)
}
