//! Actions: from the policy's output to controls.

mod delay;
mod explicit_pd;
mod joint_direct;
mod joint_position;
mod joints;

pub use explicit_pd::ExplicitPdAction;
pub use joint_direct::{JointEffortAction, JointVelocityAction};
pub use joint_position::{JointPositionAction, RelativeJointPositionAction};

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{Action, ResetRequested, RobotState, Row, Streams, Termination};
use serde::{Deserialize, Serialize};

use crate::backend::{Feature, Output, SubstepControl, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::Entry;
use crate::error::StepError;
use crate::handles::StateSlice;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};
use crate::step::{AutoReset, Controls, Randomness, StepStatus};

use delay::DelayLine;

/// Where the trace says when controls are computed: an event per control step and term, or a span per physics step, row and
/// term.
const TRACE_TARGET: &str = "manege::action";

/// Turns a part of the policy's output into controls.
pub trait ActionTerm: Send + Sync {
    /// Number of values that the term takes from the action.
    fn width(&self) -> usize;

    /// Scales, offsets and clips: `raw` and `processed` have [`width`](Self::width) values. Once per control step, with the
    /// state before it.
    fn process(&self, raw: &[f32], state: SubstepState<'_>, processed: &mut [f32]);

    /// Writes the term's controls into `ctrl` (`nu` values, actuator order).
    ///
    /// Called once per control step with the state before it; if the term
    /// [needs feedback](Self::needs_substep_feedback), instead before every substep with that substep's state, on the
    /// thread that steps the row.
    fn write_controls(&self, processed: &[f32], state: SubstepState<'_>, ctrl: &mut [f64]);

    /// Whether the controls depend on the state within the control step.
    fn needs_substep_feedback(&self) -> bool {
        false
    }
}

/// What the manager does with an action term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// Least and greatest number of control steps by which actions take effect late, drawn for a row at resets.
    pub delay_control_steps: [u32; 2],
    /// Least and greatest number of physics steps by which actions take effect late, drawn for a row at resets; added to the
    /// control steps.
    pub delay_substeps: [u32; 2],
}

impl ActionOptions {
    /// Actions that take effect `least` to `greatest` control steps late.
    #[must_use]
    pub fn delayed_by_control_steps(least: u32, greatest: u32) -> Self {
        Self { delay_control_steps: [least, greatest], ..Self::default() }
    }

    /// Actions that take effect `least` to `greatest` physics steps late.
    #[must_use]
    pub fn delayed_by_substeps(least: u32, greatest: u32) -> Self {
        Self { delay_substeps: [least, greatest], ..Self::default() }
    }
}

impl Default for ActionOptions {
    fn default() -> Self {
        Self { enabled: true, delay_control_steps: [0; 2], delay_substeps: [0; 2] }
    }
}

struct Slot {
    term: Box<dyn ActionTerm>,
    columns: std::ops::Range<usize>,
    delay: Option<DelayLine>,
    /// Whether controls are computed before every physics step.
    feedback: bool,
}

/// The action terms in order, and what they made of the current actions.
#[derive(Resource)]
pub struct ActionManager {
    names: Vec<String>,
    slots: Vec<Slot>,
    width: usize,
    /// Processed actions of all rows, rows × width.
    processed: Vec<f32>,
    feedback: bool,
    qpos: StateSlice,
    qvel: StateSlice,
}

impl ActionManager {
    /// Builds the enabled terms for `rows` rows.
    ///
    /// # Errors
    /// A term cannot be built, or needs feedback that the backend cannot give.
    pub fn build(
        entries: &IndexMap<String, Entry<ActionOptions, dyn ActionTerm>>,
        context: &mut BuildContext<'_>,
        rows: usize,
    ) -> Result<Self, BuildError> {
        let mut names = Vec::new();
        let mut slots = Vec::new();
        let substeps = (context.control_period() / context.info().timestep).round().max(1.0) as u32;
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            context.enter("actions", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("action", name))?;
            let delay = DelayLine::new(&entry.options, name, term.width(), rows, substeps)
                .map_err(|error| error.in_term("action", name))?;
            let feedback = term.needs_substep_feedback() || delay.as_ref().is_some_and(DelayLine::within_steps);
            if feedback {
                context.require(Feature::SubstepFeedback).map_err(|error| error.in_term("action", name))?;
            }
            let columns = context.register_action(name, term.width());
            names.push(name.clone());
            slots.push(Slot { term, columns, delay, feedback });
        }
        let width = context.action_width();
        Ok(Self {
            feedback: slots.iter().any(|slot| slot.feedback),
            names,
            slots,
            width,
            processed: vec![0.0; rows * width],
            qpos: context.output(Output::Qpos)?,
            qvel: context.output(Output::Qvel)?,
        })
    }

    /// Names of the terms with their columns in the action, in order.
    pub fn terms(&self) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
        self.names.iter().map(String::as_str).zip(self.slots.iter().map(|slot| slot.columns.clone()))
    }

    /// Number of values in an action.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether any term recomputes its controls before every substep.
    #[must_use]
    pub fn needs_substep_feedback(&self) -> bool {
        self.feedback
    }

    /// Processes a row's action, and writes the controls of the terms that need no feedback.
    fn process(&mut self, row: Row, raw: &[f32], state: &RobotState, ctrl: &mut [f64]) {
        let processed = &mut self.processed[row.index() * self.width..][..self.width];
        let state = SubstepState { qpos: &state.values[self.qpos.range()], qvel: &state.values[self.qvel.range()] };
        for slot in &mut self.slots {
            let processed = &mut processed[slot.columns.clone()];
            slot.term.process(&raw[slot.columns.clone()], state, processed);
            if let Some(delay) = &mut slot.delay {
                delay.push(row.index(), processed);
                processed.copy_from_slice(delay.in_effect(row.index(), 0));
            }
            if !slot.feedback {
                slot.term.write_controls(processed, state, ctrl);
            }
        }
    }

    /// Says in the trace which terms have written their controls for the whole control step.
    fn trace(&self) {
        for (name, _) in self.names.iter().zip(&self.slots).filter(|(_, slot)| !slot.feedback) {
            tracing::trace!(target: TRACE_TARGET, term = name.as_str(), "controls written for the control step");
        }
    }
}

impl SubstepControl for ActionManager {
    fn control(&self, row: usize, substep: u32, state: SubstepState<'_>, ctrl: &mut [f64]) {
        let processed = &self.processed[row * self.width..][..self.width];
        for (name, slot) in self.names.iter().zip(&self.slots).filter(|(_, slot)| slot.feedback) {
            let _span =
                tracing::trace_span!(target: TRACE_TARGET, "controls of a substep", term = name.as_str()).entered();
            let processed = match &slot.delay {
                Some(delay) => delay.in_effect(row, substep),
                None => &processed[slot.columns.clone()],
            };
            slot.term.write_controls(processed, state, ctrl);
        }
    }
}

impl Saved for ActionManager {
    fn save(&self, to: &mut Writer) {
        to.put_all(&self.processed);
        self.slots.iter().filter_map(|slot| slot.delay.as_ref()).for_each(|delay| delay.save(to));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.processed)?;
        self.slots.iter_mut().filter_map(|slot| slot.delay.as_mut()).try_for_each(|delay| delay.load(from))
    }
}

/// The actions for the next control step, as the policy gave them: rows × width, row-major.
#[derive(Resource, Debug, Default)]
pub struct ActionInput {
    /// The values.
    pub values: Vec<f32>,
}

/// Checks the actions before anything is changed.
pub(crate) fn check_actions(
    input: Res<ActionInput>,
    manager: Res<ActionManager>,
    auto_reset: Res<AutoReset>,
    mut status: ResMut<StepStatus>,
    rows: Query<&Row>,
    awaiting: Query<&Row, With<manege_components::AwaitingReset>>,
) {
    let count = rows.iter().len();
    if *auto_reset == AutoReset::Disabled && !awaiting.is_empty() {
        let mut first: Vec<u32> = awaiting.iter().map(|row| row.0).collect();
        first.sort_unstable();
        let count = first.len();
        first.truncate(10);
        return status.fail(StepError::AwaitingReset { count, first });
    }
    if input.values.len() != count * manager.width {
        return status.fail(StepError::ActionShape { rows: count, width: manager.width, actual: input.values.len() });
    }
    if let Some(bad) = input.values.iter().position(|value| !value.is_finite()) {
        status.fail(StepError::ActionNotFinite {
            row: (bad / manager.width) as u32,
            column: bad % manager.width,
            value: input.values[bad],
        });
    }
}

/// Shifts the action histories, processes the actions and writes the controls that need no feedback.
pub(crate) fn process_actions(
    input: Res<ActionInput>,
    mut manager: ResMut<ActionManager>,
    mut controls: ResMut<Controls>,
    mut rows: Query<(&Row, &Termination, &RobotState, &mut Action)>,
) {
    let width = manager.width;
    for (row, termination, state, mut action) in &mut rows {
        if termination.idle {
            continue;
        }
        let raw = &input.values[row.index() * width..][..width];
        action.push(raw);
        manager.process(*row, raw, state, controls.row_mut(*row));
    }
    manager.trace();
}

/// Clears the rows' action histories and delay lines.
pub(crate) fn reset_actions(
    mut manager: ResMut<ActionManager>,
    randomness: Res<Randomness>,
    mut rows: Query<(&Row, &Streams, &mut Action), With<ResetRequested>>,
) {
    for (row, streams, mut action) in &mut rows {
        action.clear();
        for delay in manager.slots.iter_mut().filter_map(|slot| slot.delay.as_mut()) {
            delay.restart(row.index(), streams, randomness.enabled);
        }
    }
}
