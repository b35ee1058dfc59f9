//! Commands: what rows are asked to do, drawn again from time to time.

mod uniform_velocity;

pub use uniform_velocity::UniformVelocityCommand;

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{Command, CommandWidths, Draws, ResetRequested, StreamId, Termination};
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, Entry};
use crate::log::StepLog;
use crate::row_view::{BaseColumns, RowView, Workers};
use crate::staging::{StagedRow, Staging};
use crate::step::{ResettingRows, Timing, timer_end};

/// A row while a command term works on it.
pub struct CommandRow<'a> {
    /// What the term may read. Commands are not among it.
    pub view: RowView<'a>,
    /// The command, [`CommandTerm::width`] values.
    pub values: &'a mut [f32],
    /// What the term remembers, [`CommandTerm::scratch_width`] values.
    pub scratch: &'a mut [f32],
    /// Errors accumulated over the episode, one per [`CommandTerm::metrics`].
    pub metrics: &'a mut [f32],
    /// The state that the reset pass will write, while it runs; a term may place the row.
    pub staged: Option<StagedRow<'a>>,
}

/// Draws and updates one command.
pub trait CommandTerm: Send + Sync {
    /// Number of values of the command.
    fn width(&self) -> usize;

    /// Number of values that the term remembers per row.
    fn scratch_width(&self) -> usize {
        0
    }

    /// Names of the errors that the term accumulates over an episode.
    fn metrics(&self) -> &[&'static str] {
        &[]
    }

    /// Draws the command anew.
    fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws);

    /// Follows the robot: called for every row in every control step, after resampling.
    fn update(&self, _row: &mut CommandRow<'_>) {}

    /// Adds this step's errors, before resampling.
    fn update_metrics(&self, _row: &mut CommandRow<'_>) {}
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
            if !(resampling_time[0] > 0.0 && resampling_time[0] <= resampling_time[1]) {
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
        Ok(Self { slots, widths, control_period: context.control_period() })
    }

    /// Names of the terms with their columns in the command, in order.
    pub fn terms(&self) -> impl Iterator<Item = (&str, std::ops::Range<usize>)> {
        self.slots.iter().map(|slot| (slot.name.as_str(), slot.values.clone()))
    }

    pub(crate) fn widths(&self) -> &CommandWidths {
        &self.widths
    }

    /// One term's work on one row: errors, timer, resampling if due, update.
    fn advance(&self, view: RowView<'_>, command: &mut Command, dt: f64) {
        for (index, slot) in self.slots.iter().enumerate() {
            let Command { values, scratch, metrics, time_left, resamplings } = command;
            let mut row = CommandRow {
                view,
                values: &mut values[slot.values.clone()],
                scratch: &mut scratch[slot.scratch.clone()],
                metrics: &mut metrics[slot.metrics.clone()],
                staged: None,
            };
            slot.term.update_metrics(&mut row);
            time_left[index] -= dt;
            if time_left[index] < timer_end(self.control_period) {
                self.resample(slot, &mut row, &mut time_left[index], &mut resamplings[index]);
            }
            slot.term.update(&mut row);
        }
    }

    fn resample(&self, slot: &Slot, row: &mut CommandRow<'_>, time_left: &mut f64, resamplings: &mut u32) {
        let mut draws = row.view.streams().draws(slot.stream, u64::from(*resamplings));
        *time_left = f64::from(draws.uniform_f32(slot.resampling_time[0], slot.resampling_time[1]));
        slot.term.resample(row, &mut draws);
        *resamplings += 1;
    }
}

/// Updates the commands of all rows. Rows whose episode just ended keep their timers.
pub(crate) fn compute_commands(
    manager: Res<CommandManager>,
    timing: Res<Timing>,
    workers: Res<Workers>,
    mut rows: Query<(BaseColumns, &Termination, &mut Command)>,
) {
    let dt = timing.control_period;
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (columns, terminations, mut commands) in tables {
        workers.split(&mut commands, |start, commands| {
            for (i, command) in commands.iter_mut().enumerate() {
                let termination = &terminations[start + i];
                if !termination.idle {
                    let dt = if termination.done() { 0.0 } else { dt };
                    manager.advance(columns.view(start + i), command, dt);
                }
            }
        });
    }
}

/// Logs and clears the metrics of the rows being reset, and draws their commands anew.
pub(crate) fn reset_commands(
    manager: Res<CommandManager>,
    resetting: Res<ResettingRows>,
    mut log: ResMut<StepLog>,
    mut staging: ResMut<Staging>,
    mut rows: Query<(BaseColumns, &mut Command), With<ResetRequested>>,
) {
    for slot in &manager.slots {
        for (i, metric) in slot.metrics.clone().enumerate() {
            let values =
                resetting.entities.iter().filter_map(|&row| rows.get(row).ok()).map(|row| row.1.metrics[metric]);
            log.set_mean(slot.log + i, values);
        }
    }
    for (index, &entity) in resetting.entities.iter().enumerate() {
        let Ok((columns, mut command)) = rows.get_mut(entity) else { continue };
        let Command { values, scratch, metrics, time_left, resamplings } = &mut *command;
        metrics.fill(0.0);
        resamplings.fill(0);
        for (term, slot) in manager.slots.iter().enumerate() {
            let mut row = CommandRow {
                view: columns.view(),
                values: &mut values[slot.values.clone()],
                scratch: &mut scratch[slot.scratch.clone()],
                metrics: &mut metrics[slot.metrics.clone()],
                staged: Some(staging.row(index)),
            };
            manager.resample(slot, &mut row, &mut time_left[term], &mut resamplings[term]);
        }
    }
}

/// Updates the commands of the rows being reset, without letting time pass.
pub(crate) fn compute_reset_commands(
    manager: Res<CommandManager>,
    mut rows: Query<(BaseColumns, &mut Command), With<ResetRequested>>,
) {
    for (columns, mut command) in &mut rows {
        manager.advance(columns.view(), &mut command, 0.0);
    }
}
