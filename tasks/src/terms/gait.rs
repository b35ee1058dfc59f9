//! A gait clock, and the terms that follow it.

use bevy_ecs::prelude::*;
use manege_components::TaskState;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::handles::{StateSlice, TaskSlice};
use manege_systems::managers::observation::{ObservationTerm, observation};
use manege_systems::managers::reward::{RewardTerm, reward};
use manege_systems::managers::task::TaskSystems;
use manege_systems::row_view::RowView;
use manege_systems::schedule::StepSystems;
use serde::{Deserialize, Serialize};

use super::resolve;

/// Name of the per-row state that holds a gait's phase or phases.
pub(super) const PHASE: &str = "gait_phase";

/// A phase in `[0, 1)` per row that advances by `frequency` × control period in every control step.
///
/// It starts at 0 when the environment is built and is never reset, so all rows share it. The state is named
/// `gait_phase` (1 value, cycles).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedGaitClock {
    /// Gait cycles per second, Hz.
    pub frequency: f64,
}

struct Clock {
    phase: TaskSlice,
    /// Advance per control step, cycles.
    advance: f32,
}

#[derive(Resource)]
struct SharedGaitClockState {
    phase: TaskSlice,
    advance: f32,
}

impl TermParams<dyn TaskSystems> for SharedGaitClock {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TaskSystems>, BuildError> {
        if !(self.frequency.is_finite() && self.frequency >= 0.0) {
            return Err(resolve::impossible("frequency", format!("{} Hz is no frequency", self.frequency)));
        }
        let advance = (self.frequency * context.control_period()) as f32;
        Ok(Box::new(Clock { phase: context.register_task_state(PHASE, 1)?, advance }))
    }
}

impl TaskSystems for Clock {
    fn install(self: Box<Self>, world: &mut World, step: &mut Schedule, _reset: &mut Schedule) {
        world.insert_resource(SharedGaitClockState { phase: self.phase, advance: self.advance });
        step.add_systems(advance_phase.in_set(StepSystems::Task));
    }
}

fn advance_phase(clock: Res<SharedGaitClockState>, mut rows: Query<&mut TaskState>) {
    for mut state in &mut rows {
        for phase in &mut state.values[clock.phase.range()] {
            *phase = (*phase + clock.advance) % 1.0;
        }
    }
}

/// Phase of a foot that lags the row's phase by `offset` cycles, in `[0, 1)`.
fn foot_phase(row: &RowView<'_>, phase: TaskSlice, offset: f32) -> f32 {
    (row.task(phase)[0] + offset) % 1.0
}

/// The phase of each foot, cycles in `[0, 1)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FootPhases {
    /// Offset of each foot from the row's phase, cycles.
    pub offsets: Vec<f32>,
}

impl TermParams<dyn ObservationTerm> for FootPhases {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let phase = context.task_state(PHASE)?;
        let offsets = self.offsets.clone();
        Ok(observation(offsets.len(), move |row, out| {
            for (out, &offset) in out.iter_mut().zip(&offsets) {
                *out = foot_phase(row, phase, offset);
            }
        }))
    }
}

/// Share of feet whose contact agrees with the gait: `mean_i [(found_i > threshold) == (phase_i < stance)]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FootContact {
    /// Contact sensors, one per foot, that count contacts.
    pub sensors: Vec<String>,
    /// Offset of each foot from the row's phase, cycles.
    pub offsets: Vec<f32>,
    /// Phase at which a foot should leave the ground, cycles.
    pub stance: f32,
    /// Number of contacts above which a foot is on the ground.
    pub threshold: f64,
}

/// How well the feet in swing keep a height: `mean_i exp(-(z_i - height)² / scale) · 1[phase_i >= stance]`, with `z_i`
/// the foot's height in the world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwingFootHeight {
    /// Position sensors, one per foot.
    pub sensors: Vec<String>,
    /// Offset of each foot from the row's phase, cycles.
    pub offsets: Vec<f32>,
    /// Phase at which a foot leaves the ground, cycles.
    pub stance: f32,
    /// Height to keep, m.
    pub height: f64,
    /// Width of the reward, m².
    pub scale: f64,
}

/// Sensors, of `width` values each, and offsets of the feet, paired.
fn feet(
    context: &mut BuildContext<'_>,
    sensors: &[String],
    width: usize,
    offsets: &[f32],
) -> Result<Vec<(StateSlice, f32)>, BuildError> {
    if sensors.is_empty() || sensors.len() != offsets.len() {
        let message = format!("{} sensors need as many offsets, not {}", sensors.len(), offsets.len());
        return Err(resolve::impossible("offsets", message));
    }
    let foot = |(name, &offset): (&String, &f32)| Ok((resolve::sensor(context, "sensors", name, width)?, offset));
    sensors.iter().zip(offsets).map(foot).collect()
}

impl TermParams<dyn RewardTerm> for FootContact {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let phase = context.task_state(PHASE)?;
        let feet = feet(context, &self.sensors, 1, &self.offsets)?;
        let Self { stance, threshold, .. } = *self;
        Ok(reward(move |row| {
            let agreeing = feet
                .iter()
                .filter(|&&(found, offset)| {
                    (row.scalar(found) > threshold) == (foot_phase(row, phase, offset) < stance)
                })
                .count();
            agreeing as f32 / feet.len() as f32
        }))
    }
}

impl TermParams<dyn RewardTerm> for SwingFootHeight {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let phase = context.task_state(PHASE)?;
        let feet = feet(context, &self.sensors, 3, &self.offsets)?;
        let Self { stance, height, .. } = *self;
        let scale = resolve::positive("scale", self.scale)?;
        Ok(reward(move |row| {
            let sum: f64 = feet
                .iter()
                .filter(|&&(_, offset)| foot_phase(row, phase, offset) >= stance)
                .map(|&(position, _)| (-(row.vec3(position).z - height).powi(2) / scale).exp())
                .sum();
            (sum / feet.len() as f64) as f32
        }))
    }
}
