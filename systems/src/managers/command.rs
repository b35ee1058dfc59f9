//! Commands: what rows are asked to do, drawn again from time to time.

mod overrides;
mod passes;
mod placement;
mod uniform_pose;
mod uniform_velocity;

pub use overrides::{CommandHandle, CommandOverrideError, Rows, override_command, release_command};
pub(crate) use passes::{compute_commands, follow_reset_rows, reset_commands};
pub(crate) use placement::redraw_placing_commands;
pub use uniform_pose::UniformPoseCommand;
pub use uniform_velocity::UniformVelocityCommand;

use std::sync::atomic::{AtomicBool, Ordering};

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{Command, CommandWidths, Draws, StreamId, TaskState};
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, Entry};
use crate::log::StepLog;
use crate::row_view::RowView;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};
use crate::staging::StagedRow;
use crate::step::timer_end;

/// A row while a command term works on it.
pub struct CommandRow<'a> {
    /// What the term may read. Commands and task state are not among it.
    pub view: RowView<'a>,
    /// The command, [`CommandTerm::width`] values.
    pub values: &'a mut [f32],
    /// What the term remembers, [`CommandTerm::scratch_width`] values.
    pub scratch: &'a mut [f32],
    /// The row's whole task state; a term writes what it registered there
    /// ([`BuildContext::register_task_state`]) for other terms to read.
    pub task: &'a mut [f32],
    /// Errors of the episode, one per [`CommandTerm::metrics`].
    pub metrics: &'a mut [f32],
    /// The state that will be written, while a term may place the row: at resets, and for terms that
    /// [place rows](CommandTerm::places_rows).
    pub staged: Option<StagedRow<'a>>,
    /// Time since the last update, s: the control period, or 0 at resets and for rows whose episode just ended.
    pub elapsed: f64,
}

/// Draws and updates one command.
pub trait CommandTerm: Send + Sync {
    /// Number of values of the command.
    fn width(&self) -> usize;

    /// Number of values that the term remembers per row.
    fn scratch_width(&self) -> usize {
        0
    }

    /// Names of the errors that the term reports at the end of an episode.
    fn metrics(&self) -> &[&'static str] {
        &[]
    }

    /// Draws the command anew.
    fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws);

    /// Follows the robot: called for every row in every control step, after resampling, and for the rows being reset once
    /// their new state has been written.
    fn update(&self, _row: &mut CommandRow<'_>) {}

    /// Adds this control step's errors, once for every row in every control step, before resampling. Here and in
    /// [`final_metrics`](Self::final_metrics) alone the row's values are those that it was asked to follow, whether drawn or
    /// [set from outside](override_command).
    fn update_metrics(&self, _row: &mut CommandRow<'_>) {}

    /// Completes the metrics of an episode that is over, before they are reported: for errors that only its last state
    /// decides, or that are not worth computing in every step.
    fn final_metrics(&self, _row: &mut CommandRow<'_>) {}

    /// Whether [`resample`](Self::resample) places the row, so that it needs [`CommandRow::staged`] within an episode too.
    /// Such rows get the rest of a new state as at a reset.
    fn places_rows(&self) -> bool {
        false
    }

    /// Whether the command has come to its end and must be drawn anew, though its time is not up. Asked after each update,
    /// of terms that [place rows](Self::places_rows).
    fn is_over(&self, _row: &CommandRow<'_>) -> bool {
        false
    }

    /// Whether the term wants to [see failures](Self::observe_failures).
    fn watches_failures(&self) -> bool {
        false
    }

    /// Sees the rows that terminated in this control step (time-outs aside), before commands are updated. Not called if there
    /// are none. The order of the rows is not defined.
    fn observe_failures(&mut self, _rows: &mut dyn Iterator<Item = RowView<'_>>) {}

    /// Appends what the term keeps for all rows together to a snapshot.
    fn save(&self, _to: &mut Writer) {}

    /// Takes back what [`save`](Self::save) appended.
    ///
    /// # Errors
    /// The snapshot does not fit.
    fn load(&mut self, _from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        Ok(())
    }
}

/// What the manager does with a command term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// Least and greatest time between resamplings, s.
    pub resampling_time: [f32; 2],
}

impl CommandOptions {
    /// A command that is drawn again every `seconds`.
    #[must_use]
    pub fn every(seconds: f32) -> Self {
        Self { enabled: true, resampling_time: [seconds, seconds] }
    }
}

struct Slot {
    name: String,
    term: Box<dyn CommandTerm>,
    resampling_time: [f32; 2],
    stream: StreamId,
    places_rows: bool,
    values: std::ops::Range<usize>,
    scratch: std::ops::Range<usize>,
    metrics: std::ops::Range<usize>,
    /// Place of the first metric in the log.
    log: usize,
}

/// The command terms in order.
#[derive(Resource)]
pub struct CommandManager {
    slots: Vec<Slot>,
    widths: CommandWidths,
    control_period: f64,
    /// Whether a row's command has to be drawn anew by a term that places the row.
    placement_due: AtomicBool,
}

impl CommandManager {
    /// Builds the enabled terms.
    ///
    /// # Errors
    /// A term cannot be built, or its resampling time is an empty range.
    pub fn build(
        entries: &IndexMap<String, Entry<CommandOptions, dyn CommandTerm>>,
        context: &mut BuildContext<'_>,
        log: &mut StepLog,
    ) -> Result<Self, BuildError> {
        let mut widths = CommandWidths::default();
        let mut slots = Vec::new();
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            let resampling_time = entry.options.resampling_time;
            let [least, greatest] = resampling_time;
            if !(least > 0.0 && least <= greatest && greatest.is_finite()) {
                return Err(ConfigError::Impossible {
                    path: format!("commands.{name}.resampling_time"),
                    message: format!("{resampling_time:?} s is no range of positive times"),
                }
                .into());
            }
            context.enter("commands", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("command", name))?;
            let values = context.register_command(name, term.width()).range();
            let log = log.register(term.metrics().iter().map(|metric| format!("Metrics/{name}/{metric}")));
            slots.push(Slot {
                name: name.clone(),
                resampling_time,
                stream: StreamId::new("command/").join(name),
                places_rows: term.places_rows(),
                scratch: widths.scratch..widths.scratch + term.scratch_width(),
                metrics: widths.metrics..widths.metrics + term.metrics().len(),
                values,
                log,
                term,
            });
            if let Some(slot) = slots.last() {
                widths = CommandWidths {
                    terms: slots.len(),
                    values: slot.values.end,
                    scratch: slot.scratch.end,
                    metrics: slot.metrics.end,
                };
            }
        }
        Ok(Self { slots, widths, control_period: context.control_period(), placement_due: AtomicBool::new(false) })
    }

    /// Names of the terms with their columns in the command, in order.
    pub fn terms(&self) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
        self.slots.iter().map(|slot| (slot.name.as_str(), slot.values.clone()))
    }

    /// Names of the errors that each term reports at the end of an episode, in the order of [`terms`](Self::terms).
    pub fn metrics(&self) -> impl Iterator<Item = &[&'static str]> {
        self.slots.iter().map(|slot| slot.term.metrics())
    }

    pub(crate) fn widths(&self) -> &CommandWidths {
        &self.widths
    }

    /// The parts of one term in a row.
    fn part<'a>(
        &self,
        index: usize,
        view: RowView<'a>,
        command: &'a mut Command,
        task: &'a mut TaskState,
    ) -> TermPart<'a> {
        let slot = &self.slots[index];
        let Command { values, scratch, metrics, time_left, resamplings, overridden } = command;
        TermPart {
            row: CommandRow {
                view,
                values: &mut values[slot.values.clone()],
                scratch: &mut scratch[slot.scratch.clone()],
                task: &mut task.values,
                metrics: &mut metrics[slot.metrics.clone()],
                staged: None,
                elapsed: 0.0,
            },
            hidden: overridden.as_deref_mut().and_then(|overridden| overridden.hidden_mut(slot.values.clone())),
            time_left: &mut time_left[index],
            resamplings: &mut resamplings[index],
        }
    }

    /// All terms' work on one row in a control step: errors, timer, resampling if due, update.
    fn advance(&self, view: RowView<'_>, command: &mut Command, task: &mut TaskState, elapsed: f64) {
        for (index, slot) in self.slots.iter().enumerate() {
            let mut part = self.part(index, view, command, task);
            part.row.elapsed = elapsed;
            slot.term.update_metrics(&mut part.row);
            let mut part = part.behind_overrides();
            *part.time_left -= elapsed;
            let due = *part.time_left < timer_end(self.control_period);
            if due && !slot.places_rows {
                slot.resample(&mut part);
            }
            slot.term.update(&mut part.row);
            if slot.places_rows && elapsed > 0.0 && (due || slot.term.is_over(&part.row)) {
                *part.time_left = 0.0;
                self.placement_due.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Has the terms follow the state that a row starts an episode with. No control step is over: there are no errors to
    /// add, and no time passes.
    fn follow(&self, view: RowView<'_>, command: &mut Command, task: &mut TaskState) {
        for (index, slot) in self.slots.iter().enumerate() {
            slot.term.update(&mut self.part(index, view, command, task).behind_overrides().row);
        }
    }
}

/// What a row keeps for one term.
struct TermPart<'a> {
    row: CommandRow<'a>,
    /// What the term goes on with behind values that are set from outside, if they are.
    hidden: Option<&'a mut [f32]>,
    time_left: &'a mut f64,
    resamplings: &'a mut u32,
}

impl TermPart<'_> {
    /// The same, with the values that the term has drawn, which an override may hide.
    fn behind_overrides(mut self) -> Self {
        if let Some(hidden) = self.hidden.take() {
            self.row.values = hidden;
        }
        self
    }
}

impl Slot {
    /// Draws the time until the next draw, then the command.
    fn resample(&self, part: &mut TermPart<'_>) {
        let mut draws = part.row.view.streams().draws(self.stream, u64::from(*part.resamplings));
        *part.time_left = f64::from(draws.uniform_f32(self.resampling_time[0], self.resampling_time[1]));
        self.term.resample(&mut part.row, &mut draws);
        *part.resamplings += 1;
    }
}

/// A range of numbers to draw from, if it is one.
fn checked_range(key: &str, [low, high]: [f64; 2]) -> Result<[f64; 2], ConfigError> {
    if low <= high && low.is_finite() && high.is_finite() {
        return Ok([low, high]);
    }
    Err(ConfigError::Impossible { path: key.to_owned(), message: format!("[{low}, {high}] is an empty range") })
}

impl Saved for CommandManager {
    fn save(&self, to: &mut Writer) {
        self.slots.iter().for_each(|slot| slot.term.save(to));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.slots.iter_mut().try_for_each(|slot| slot.term.load(from))
    }
}
