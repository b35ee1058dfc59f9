//! The physics system: one dispatch per control step, and what comes back from it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bevy_ecs::prelude::*;
use manege_components::{EpisodeClock, ResetRequested, RobotState, Row, Termination};

use crate::backend::{Backend, StepRequest, SubstepControl, SubstepState, WriteKind};
use crate::handles::StateSlice;
use crate::managers::action::ActionManager;
use crate::managers::metrics::MetricsManager;
use crate::staging::Staging;
use crate::step::{Controls, ResettingRows, RowEntities, StepCounter, StepStatus, Timing};
use crate::workers::{Pace, Workers};

/// The backend, with the rows that take part in the current step.
#[derive(Resource)]
pub struct Physics {
    backend: Box<dyn Backend>,
    /// The rows to step; `None` for all.
    pub(crate) active: Option<Vec<u32>>,
    /// Time spent in the last dispatch.
    pub(crate) elapsed: Duration,
}

impl Physics {
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        Self { backend, active: None, elapsed: Duration::ZERO }
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn backend_mut(&mut self) -> &mut dyn Backend {
        &mut *self.backend
    }

    /// The backend, and the rows to step; `None` for all.
    pub(crate) fn backend_and_active(&mut self) -> (&mut dyn Backend, Option<&[u32]>) {
        (&mut *self.backend, self.active.as_deref())
    }

    /// Copies a row's outputs, if they are finite. Returns whether they were.
    pub(crate) fn read(&self, row: Row, state: &mut RobotState) -> bool {
        let width = self.backend.output_width();
        let outputs = &self.backend.outputs()[row.index() * width..][..width];
        let finite = all_finite(outputs);
        if finite {
            state.values.copy_from_slice(outputs);
        }
        finite
    }
}

/// Whether every value is finite. Written so that it compiles to vector code: 0 × x is 0 unless x is not finite.
fn all_finite(values: &[f64]) -> bool {
    values.iter().fold(0.0, |sum, value| sum + 0.0 * value) == 0.0
}

/// Where the generalised state lies in [`RobotState`].
#[derive(Resource, Debug, Clone, Copy)]
pub struct StateLayout {
    /// Generalised positions.
    pub qpos: StateSlice,
    /// Generalised velocities.
    pub qvel: StateSlice,
}

/// Rows whose physics failed, since the environment was built.
#[derive(Resource, Debug, Default)]
pub struct Divergences {
    /// How many times a row diverged.
    pub total: u64,
}

/// What happens before every physics step of a row: metrics look at its state, and actions with feedback follow it.
struct WithinStep<'a> {
    actions: &'a ActionManager,
    metrics: &'a MetricsManager,
}

impl SubstepControl for WithinStep<'_> {
    fn control(&self, row: usize, substep: u32, state: SubstepState<'_>, ctrl: &mut [f64]) {
        self.metrics.sample(row, substep, state);
        self.actions.control(row, substep, state, ctrl);
    }
}

/// Steps the rows that take part: one dispatch, all substeps inside.
pub(crate) fn dispatch_physics(
    mut physics: ResMut<Physics>,
    controls: Res<Controls>,
    actions: Res<ActionManager>,
    metrics: Res<MetricsManager>,
    timing: Res<Timing>,
    mut status: ResMut<StepStatus>,
) {
    let started = Instant::now();
    let Physics { backend, active, elapsed } = &mut *physics;
    let within = WithinStep { actions: &actions, metrics: &metrics };
    let feedback =
        (actions.needs_substep_feedback() || metrics.needs_substeps()).then_some(&within as &dyn SubstepControl);
    let result = backend.step(StepRequest {
        rows: active.as_deref(),
        substeps: timing.substeps,
        controls: controls.values(),
        feedback,
    });
    *elapsed = started.elapsed();
    if let Err(error) = result {
        status.fail(error.into());
    }
}

/// Copies the outputs into the rows, and marks the rows that diverged, whose state stays the last finite one.
pub(crate) fn read_state(
    physics: Res<Physics>,
    workers: Res<Workers>,
    mut pace: Local<Pace>,
    entities: Res<RowEntities>,
    counter: Res<StepCounter>,
    mut divergences: ResMut<Divergences>,
    mut rows: Query<(&Row, &mut EpisodeClock, &mut RobotState, &mut Termination)>,
) {
    for fault in physics.backend.faults() {
        if let Some((_, _, _, mut termination)) =
            entities.0.get(fault.row as usize).and_then(|&entity| rows.get_mut(entity).ok())
        {
            termination.diverged = true;
            divergences.total += 1;
            tracing::warn!(row = fault.row, step = counter.steps, reason = %fault.reason, "row diverged");
        }
    }
    let all_finite = AtomicBool::new(true);
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (indices, mut clocks, mut states, mut terminations) in tables {
        for (clock, termination) in clocks.iter_mut().zip(terminations.iter()) {
            clock.step += u32::from(!termination.idle);
        }
        workers.split2(&mut pace, &mut states, &mut terminations, |start, states, terminations| {
            let rows = indices[start..].iter().zip(states).zip(terminations);
            for ((row, state), termination) in
                rows.filter(|(_, termination)| !termination.idle && !termination.diverged)
            {
                if !physics.read(*row, state) {
                    termination.diverged = true;
                    // Told apart from the backend's own faults until they have been counted, below.
                    termination.terms = u64::MAX;
                    all_finite.store(false, Ordering::Relaxed);
                }
            }
        });
    }
    if !all_finite.into_inner() {
        for &entity in &entities.0 {
            let Ok((row, _, _, mut termination)) = rows.get_mut(entity) else { continue };
            if termination.diverged && termination.terms == u64::MAX {
                termination.terms = 0;
                divergences.total += 1;
                tracing::warn!(row = row.0, step = counter.steps, reason = "state is not finite", "row diverged");
            }
        }
    }
}

/// Writes the staged state of the rows being reset, in one dispatch.
pub(crate) fn commit_resets(
    mut physics: ResMut<Physics>,
    mut staging: ResMut<Staging>,
    mut status: ResMut<StepStatus>,
    resetting: Res<ResettingRows>,
    mut rows: Query<(&Row, &mut RobotState), With<ResetRequested>>,
) {
    if let Err(error) = staging.commit(WriteKind::Reset, physics.backend_mut()) {
        return status.fail(error.into());
    }
    for &entity in &resetting.entities {
        if let Ok((row, mut state)) = rows.get_mut(entity)
            && !physics.read(*row, &mut state)
        {
            tracing::warn!(row = row.0, "the state written at a reset is not finite");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::all_finite;

    #[test]
    fn any_value_that_is_not_finite_is_found() {
        assert!(all_finite(&[]) && all_finite(&[0.0, -1e308, 1e308, f64::MIN_POSITIVE]));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for place in 0..9 {
                let mut values = [1.0; 9];
                values[place] = bad;
                assert!(!all_finite(&values), "{bad} at {place}");
            }
        }
    }
}
