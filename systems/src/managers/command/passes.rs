//! The command manager's systems: in a control step, and at resets.

use bevy_ecs::prelude::*;
use manege_components::{Command, ResetRequested, TaskState, Termination};

use super::CommandManager;
use crate::log::StepLog;
use crate::row_view::BaseColumns;
use crate::staging::Staging;
use crate::step::{ResettingRows, Timing};
use crate::workers::{Pace, Workers};

/// Updates the commands of all rows. Rows whose episode just ended keep their timers.
pub(crate) fn compute_commands(
    mut manager: ResMut<CommandManager>,
    timing: Res<Timing>,
    workers: Res<Workers>,
    mut pace: Local<Pace>,
    mut rows: Query<(BaseColumns, &Termination, &mut Command, &mut TaskState)>,
) {
    for slot in manager.slots.iter_mut().filter(|slot| slot.term.watches_failures()) {
        let mut failed = rows
            .iter()
            .filter(|(_, termination, ..)| termination.terminated && !termination.idle)
            .map(|(columns, _, command, task)| columns.view().with(command, task))
            .peekable();
        if failed.peek().is_some() {
            slot.term.observe_failures(&mut failed);
        }
    }
    let manager = &*manager;
    let dt = timing.control_period;
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (columns, terminations, mut commands, mut tasks) in tables {
        workers.split2(&mut pace, &mut commands, &mut tasks, |start, commands, tasks| {
            for (i, (command, task)) in commands.iter_mut().zip(tasks).enumerate() {
                let termination = &terminations[start + i];
                if !termination.idle {
                    let elapsed = if termination.done() { 0.0 } else { dt };
                    manager.advance(columns.view(start + i), command, task, elapsed);
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
    mut rows: Query<(BaseColumns, &mut Command, &mut TaskState), With<ResetRequested>>,
) {
    for &entity in &resetting.entities {
        let Ok((columns, mut command, mut task)) = rows.get_mut(entity) else { continue };
        for (index, slot) in manager.slots.iter().enumerate().filter(|(_, slot)| !slot.metrics.is_empty()) {
            slot.term.final_metrics(&mut manager.part(index, columns.view(), &mut command, &mut task).row);
        }
    }
    for slot in &manager.slots {
        for (i, metric) in slot.metrics.clone().enumerate() {
            let values =
                resetting.entities.iter().filter_map(|&row| rows.get(row).ok()).map(|row| row.1.metrics[metric]);
            log.set_mean(slot.log + i, values);
        }
    }
    for (place, &entity) in resetting.entities.iter().enumerate() {
        let Ok((columns, mut command, mut task)) = rows.get_mut(entity) else { continue };
        command.metrics.fill(0.0);
        command.resamplings.fill(0);
        for (index, slot) in manager.slots.iter().enumerate() {
            let mut part = manager.part(index, columns.view(), &mut command, &mut task).behind_overrides();
            part.row.staged = Some(staging.row(place));
            slot.resample(&mut part);
        }
    }
}

/// Has the commands of the rows being reset follow their new state.
pub(crate) fn follow_reset_rows(
    manager: Res<CommandManager>,
    mut rows: Query<(BaseColumns, &mut Command, &mut TaskState), With<ResetRequested>>,
) {
    for (columns, mut command, mut task) in &mut rows {
        manager.follow(columns.view(), &mut command, &mut task);
    }
}
