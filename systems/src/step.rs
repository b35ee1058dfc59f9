//! What the systems of a control step share: buffers, clocks, and whether the step may go on.

use bevy_ecs::prelude::*;
use manege_components::Row;

use crate::error::StepError;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};

/// When rows whose episode ended start the next one.
#[derive(Resource, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoReset {
    /// Within the same control step: the observation after the step is the new episode's first.
    #[default]
    SameStep,
    /// In the next control step, which ignores the row's action and gives reward 0.
    NextStep,
    /// Never: the caller resets rows before the next step.
    Disabled,
}

/// Whether the current step may go on, and why not.
#[derive(Resource, Debug, Default)]
pub struct StepStatus {
    error: Option<StepError>,
}

impl StepStatus {
    /// Ends the step with an error; the first one is kept.
    pub fn fail(&mut self, error: StepError) {
        self.error.get_or_insert(error);
    }

    /// Whether nothing has failed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// Takes the error, which makes the next step possible.
    ///
    /// # Errors
    /// What ended the step.
    pub fn take(&mut self) -> Result<(), StepError> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// Run condition: the step has not failed.
pub fn step_is_ok(status: Res<StepStatus>) -> bool {
    status.is_ok()
}

/// Controls of all rows, rows × `nu`, actuator order: what the last step applied.
#[derive(Resource, Debug)]
pub struct Controls {
    values: Vec<f64>,
    width: usize,
}

impl Controls {
    pub(crate) fn new(rows: usize, width: usize) -> Self {
        Self { values: vec![0.0; rows * width], width }
    }

    /// All values, row-major.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// One row's values.
    pub(crate) fn row_mut(&mut self, row: Row) -> &mut [f64] {
        &mut self.values[row.index() * self.width..][..self.width]
    }
}

impl Saved for Controls {
    fn save(&self, to: &mut Writer) {
        to.put_all(&self.values);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.values)
    }
}

/// Counts control steps of the whole environment.
#[derive(Resource, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounter {
    /// Control steps begun since the environment was built; 1 during the first.
    pub steps: u64,
}

/// The seed and what may be drawn.
#[derive(Resource, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Randomness {
    /// Key of every stream.
    pub seed: u64,
    /// False for runs without randomisation: draws give the centre of their range.
    pub enabled: bool,
}

/// Whether rows begin at different places of their first episode.
#[derive(Resource, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stagger(pub(crate) bool);

/// Fixed facts of the environment that systems need.
#[derive(Resource, Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Duration of a control step, s.
    pub control_period: f64,
    /// Physics steps in a control step.
    pub substeps: u32,
    /// Longest duration of an episode, s.
    pub episode_length: f64,
    /// Longest duration of an episode, control steps.
    pub max_episode_steps: u32,
}

/// Timers run out when less than this is left, s. They count whole control steps, so what single precision makes of a
/// duration such as 0.1 s must not add one.
pub(crate) fn timer_end(control_period: f64) -> f64 {
    0.01 * control_period
}

/// The entity of each row, by row.
#[derive(Resource, Debug, Default)]
pub struct RowEntities(pub Vec<Entity>);

/// The rows that the running reset pass restarts, in ascending order.
#[derive(Resource, Debug, Default)]
pub struct ResettingRows {
    /// Row indices.
    pub rows: Vec<u32>,
    /// Their entities.
    pub entities: Vec<Entity>,
}
