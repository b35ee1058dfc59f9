//! What a task has to say so that its loop can be fused.

use manege_components::{Row, StreamId, Streams};
use manege_systems::backend::{ModelField, ModelInfo, Output};

use crate::DirectError;

/// A row's place in time, and its random streams.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The row.
    pub row: Row,
    /// Control steps of the current episode, the one at hand included.
    pub step: u32,
    /// Number of the episode, counted from 1.
    pub episode: u32,
    /// Random streams of the episode.
    pub streams: Streams,
}

/// Sizes, and what the physics backend has to deliver.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Quantities in the order in which the task reads them; `Qpos` and `Qvel` come first.
    pub outputs: Vec<Output>,
    /// Model parameters that resets vary, with the values that rows have if the task does not say otherwise.
    pub fields: Vec<(ModelField, Vec<f64>)>,
    /// Where episodes begin unless the task says otherwise, `nq` values. Velocities begin at 0.
    pub qpos: Vec<f64>,
}

/// The state that a row is about to be given.
///
/// It holds what the slot was given the last time: a task overwrites whatever it varies, and leaves alone what it never
/// does, which stays at the values of the [`Plan`].
pub struct Slot<'a> {
    /// Generalised positions, `nq` values.
    pub qpos: &'a mut [f64],
    /// Generalised velocities, `nv` values.
    pub qvel: &'a mut [f64],
    pub(crate) fields: &'a mut [Vec<f64>],
    pub(crate) widths: &'a [usize],
    pub(crate) slot: usize,
}

impl Slot<'_> {
    /// The row's values of a model parameter, by its position in [`Plan::fields`].
    pub fn field(&mut self, field: usize) -> &mut [f64] {
        let width = self.widths[field];
        &mut self.fields[field][self.slot * width..][..width]
    }
}

/// An episode that came to its end in the control step at hand.
pub struct Ended<'a, R> {
    /// When it did.
    pub clock: &'a Clock,
    /// What the task keeps of the row.
    pub row: &'a R,
    /// The row's last state, in the order of [`Plan::outputs`].
    pub state: &'a [f64],
    /// Which terminations fired, one bit each.
    pub fired: u64,
    /// Whether it ended in a terminal state, be it that the physics failed.
    pub terminated: bool,
}

/// A task, written out as what happens to one row.
///
/// The functions are called in the order of this trait. `state` is one row's physics outputs, in the
/// order of [`Plan::outputs`].
pub trait FusedTask: Send + Sync + Sized {
    /// What the task keeps per row.
    type Row: Clone + Send + Sync;

    /// Number of values in an action.
    const ACTION_WIDTH: usize;

    /// Widths of the two observation groups.
    const GROUP_WIDTHS: [usize; 2];

    /// Number of reward terms.
    const REWARDS: usize;

    /// Names of the errors that the command reports: command, slash, error.
    const ERRORS: &'static [&'static str];

    /// One bit for each termination that cuts an episode off, in the bits that [`evaluate`](Self::evaluate) gives.
    const TIME_OUTS: u64;

    /// The task for a preset, and what it needs.
    ///
    /// # Errors
    /// The model lacks something that the task is about.
    fn new(preset: &str, info: &ModelInfo, rows: usize) -> Result<(Self, Plan), DirectError>;

    /// A row before its first episode.
    fn row(&self) -> Self::Row;

    /// Takes in a row's action, and writes its controls.
    fn act(&self, row: &mut Self::Row, action: &[f32], ctrl: &mut [f64]);

    /// Once per control step, after physics: moves what all rows share.
    fn advance(&mut self) {}

    /// Gives one bit per termination that fires, and writes each reward term's value × weight.
    fn evaluate(&self, clock: &Clock, row: &mut Self::Row, state: &[f64], rewards: &mut [f32]) -> u64;

    /// Once per control step: whether all rows are pushed in this one.
    fn push_is_due(&mut self) -> bool {
        false
    }

    /// Changes a row's state between steps, if [`push_is_due`](Self::push_is_due).
    fn push(&self, _clock: &Clock, _qpos: &mut [f64], _qvel: &mut [f64]) {}

    /// Moves a row's command on by `dt` s, which is 0 where the episode has just ended.
    fn command(&self, clock: &Clock, row: &mut Self::Row, state: &[f64], dt: f64);

    /// Writes a row's observations.
    fn observe(&self, clock: &Clock, row: &Self::Row, state: &[f64], policy: &mut [f32], critic: &mut [f32]);

    /// Takes note of the episodes that ended in this control step, in ascending order of rows.
    fn episodes_ended<'a>(&mut self, _ended: impl Iterator<Item = Ended<'a, Self::Row>>)
    where
        Self::Row: 'a,
    {
    }

    /// Errors that the row's command reports at the end of an episode, in the order of [`ERRORS`](Self::ERRORS).
    fn errors(&self, ended: &Ended<'_, Self::Row>, errors: &mut [f32]);

    /// Begins an episode: forgets the last one, draws the new one, and says where it starts.
    fn begin(&self, clock: &Clock, row: &mut Self::Row, slot: Slot<'_>);

    /// Has a row's command follow the state that its episode starts with.
    fn follow(&self, _row: &mut Self::Row, _state: &[f64]) {}
}

/// Three or more consecutive values of a row's state.
pub(crate) fn at<const N: usize>(state: &[f64], start: usize) -> &[f64; N] {
    state[start..].first_chunk().expect("the outputs are those of the plan")
}

/// The position of a name in a list of names.
pub(crate) fn index_of<'a>(
    kind: &'static str,
    name: &'static str,
    mut names: impl Iterator<Item = &'a str>,
) -> Result<usize, DirectError> {
    names.position(|known| known == name).ok_or(DirectError::Missing { kind, name })
}

/// The generalised state, and then the readings of sensors.
pub(crate) fn outputs(info: &ModelInfo, sensors: &[&'static str]) -> Result<Vec<Output>, DirectError> {
    let names = || info.sensors.iter().map(|sensor| sensor.name.as_str());
    let sensors = sensors.iter().map(|name| index_of("sensor", name, names()).map(Output::Sensor));
    [Ok(Output::Qpos), Ok(Output::Qvel)].into_iter().chain(sensors).collect()
}

/// The control index of the actuator that drives each of the model's `N` joints.
pub(crate) fn actuators<const N: usize>(info: &ModelInfo) -> Result<[usize; N], DirectError> {
    let driven: Option<Vec<usize>> = info.joints.iter().map(|joint| joint.actuator).collect();
    driven.and_then(|driven| driven.try_into().ok()).ok_or(DirectError::Joints { expected: N })
}

/// The generalised positions of a keyframe.
pub(crate) fn keyframe(info: &ModelInfo, name: &'static str) -> Result<Vec<f64>, DirectError> {
    let index = index_of("keyframe", name, info.keyframes.iter().map(|keyframe| keyframe.name.as_str()))?;
    Ok(info.keyframes[index].qpos.clone())
}

/// Writes `values` with noise that is uniform within `limit`, drawn for this step.
pub(crate) fn noisy(clock: &Clock, stream: StreamId, limit: f32, values: impl Iterator<Item = f32>, out: &mut [f32]) {
    let mut draws = clock.streams.draws(stream, u64::from(clock.step));
    for (out, value) in out.iter_mut().zip(values) {
        *out = value + draws.uniform_f32(-limit, limit);
    }
}
