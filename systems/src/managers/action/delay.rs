//! Actions that take effect late.

use manege_components::{StreamId, Streams};

use super::{ActionOptions, joints::impossible};
use crate::build::BuildError;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};

/// Longest delay, control steps. A delay line is kept for every row.
const MAX_CONTROL_STEPS: u32 = 1000;

/// The processed actions of a term in the last control steps, and how late each row's take effect.
///
/// All values of the term share the row's lag, which is drawn at resets. Until an episode is as old as its lag, its first
/// action is in effect.
pub(super) struct DelayLine {
    /// Least and greatest lag, control steps and physics steps; they add up.
    control_steps: [u32; 2],
    substeps: [u32; 2],
    substeps_per_step: u32,
    stream: StreamId,
    width: usize,
    /// Actions that are kept.
    depth: usize,
    /// rows × depth × width, a ring per row.
    line: Vec<f32>,
    /// Actions since the reset, by row.
    given: Vec<u32>,
    /// Physics steps, by row.
    lag: Vec<u32>,
}

impl DelayLine {
    /// The line of a term, or none if it has no delay.
    pub(super) fn new(
        options: &ActionOptions,
        name: &str,
        width: usize,
        rows: usize,
        substeps_per_step: u32,
    ) -> Result<Option<Self>, BuildError> {
        let (control_steps, substeps) = (options.delay_control_steps, options.delay_substeps);
        let limits = [
            ("delay_control_steps", control_steps, MAX_CONTROL_STEPS),
            ("delay_substeps", substeps, MAX_CONTROL_STEPS.saturating_mul(substeps_per_step)),
        ];
        for (key, [low, high], limit) in limits {
            if low > high || high > limit {
                return Err(impossible(key, format!("[{low}, {high}] is no range within 0 and {limit}")));
            }
        }
        if control_steps[1] == 0 && substeps[1] == 0 {
            return Ok(None);
        }
        let depth = (control_steps[1] + substeps[1].div_ceil(substeps_per_step)) as usize + 1;
        Ok(Some(Self {
            control_steps,
            substeps,
            substeps_per_step,
            stream: StreamId::new("action/").join(name).join("/delay"),
            width,
            depth,
            line: vec![0.0; rows * depth * width],
            given: vec![0; rows],
            lag: vec![0; rows],
        }))
    }

    /// Whether an action may take effect in the middle of a control step.
    pub(super) fn within_steps(&self) -> bool {
        self.substeps[1] > 0
    }

    /// Forgets a row's actions, and draws how late the next episode's take effect.
    pub(super) fn restart(&mut self, row: usize, streams: &Streams, randomization: bool) {
        let mut draws = streams.draws(self.stream, 0);
        if !randomization {
            draws = draws.centred();
        }
        let control_steps = draws.integer(self.control_steps[0], self.control_steps[1]);
        let substeps = draws.integer(self.substeps[0], self.substeps[1]);
        self.lag[row] = control_steps * self.substeps_per_step + substeps;
        self.given[row] = 0;
        let length = self.depth * self.width;
        self.line[row * length..][..length].fill(0.0);
    }

    /// Adds the action of a new control step.
    pub(super) fn push(&mut self, row: usize, processed: &[f32]) {
        let place = self.given[row] as usize % self.depth;
        self.line[(row * self.depth + place) * self.width..][..self.width].copy_from_slice(processed);
        self.given[row] += 1;
    }

    /// The action that is in effect in a physics step of the current control step.
    pub(super) fn in_effect(&self, row: usize, substep: u32) -> &[f32] {
        // In physics steps since the first action of the episode; wide, because episodes may be long.
        let now = u64::from(self.given[row].saturating_sub(1)) * u64::from(self.substeps_per_step) + u64::from(substep);
        let from = now.saturating_sub(u64::from(self.lag[row])) / u64::from(self.substeps_per_step);
        let place = from as usize % self.depth;
        &self.line[(row * self.depth + place) * self.width..][..self.width]
    }
}

impl Saved for DelayLine {
    fn save(&self, to: &mut Writer) {
        to.put_all(&self.line);
        to.put_all(&self.given);
        to.put_all(&self.lag);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.line)?;
        from.fill(&mut self.given)?;
        from.fill(&mut self.lag)?;
        let greatest = self.control_steps[1] * self.substeps_per_step + self.substeps[1];
        if self.lag.iter().any(|&lag| lag > greatest) {
            return Err(SnapshotError::Value {
                part: "processed actions".to_owned(),
                message: "a delay that is longer than the line",
            });
        }
        Ok(())
    }
}
