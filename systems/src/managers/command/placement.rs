//! Commands that place their row when they are drawn, within an episode.

use std::sync::atomic::Ordering;

use bevy_ecs::prelude::*;
use manege_components::{Command, RobotState, Row, TaskState};

use super::CommandManager;
use crate::backend::WriteKind;
use crate::physics::Physics;
use crate::row_view::BaseColumns;
use crate::staging::Staging;
use crate::step::{RowEntities, StepStatus, timer_end};

/// The rows whose command is drawn anew, kept between steps to save the allocation.
#[derive(Default)]
pub(crate) struct Due {
    rows: Vec<u32>,
}

/// Draws the commands that are due of terms that place rows, writes the new states in one dispatch, and updates the commands
/// of those rows from what came of it. Does nothing if there are none.
pub(crate) fn redraw_placing_commands(
    mut due: Local<Due>,
    manager: Res<CommandManager>,
    entities: Res<RowEntities>,
    mut physics: ResMut<Physics>,
    mut staging: ResMut<Staging>,
    mut status: ResMut<StepStatus>,
    mut set: ParamSet<(Query<(BaseColumns, &mut Command, &mut TaskState)>, Query<(&Row, &mut RobotState)>)>,
) {
    if !manager.placement_due.swap(false, Ordering::Relaxed) {
        return;
    }
    let expired = |command: &Command| {
        let mut slots = manager.slots.iter().zip(&command.time_left);
        slots.any(|(slot, &left)| slot.places_rows && left < timer_end(manager.control_period))
    };
    let mut rows = set.p0();
    due.rows.clear();
    for (row, &entity) in (0u32..).zip(&entities.0) {
        if rows.get(entity).is_ok_and(|(_, command, _)| expired(command)) {
            due.rows.push(row);
        }
    }
    staging.begin_reset(&due.rows);
    for (place, &row) in due.rows.iter().enumerate() {
        let Ok((columns, mut command, mut task)) = rows.get_mut(entities.0[row as usize]) else { continue };
        for (index, slot) in manager.slots.iter().enumerate().filter(|(_, slot)| slot.places_rows) {
            let mut part = manager.part(index, columns.view(), &mut command, &mut task).behind_overrides();
            if *part.time_left < timer_end(manager.control_period) {
                part.row.staged = Some(staging.row(place));
                slot.resample(&mut part);
            }
        }
    }
    if let Err(error) = staging.commit(WriteKind::Reset, physics.backend_mut()) {
        return status.fail(error.into());
    }
    let mut states = set.p1();
    for &row in &due.rows {
        if let Ok((row, mut state)) = states.get_mut(entities.0[row as usize])
            && !physics.read(*row, &mut state)
        {
            tracing::warn!(row = row.0, "the state that a command placed the row in is not finite");
        }
    }
    let mut rows = set.p0();
    for &row in &due.rows {
        if let Ok((columns, mut command, mut task)) = rows.get_mut(entities.0[row as usize]) {
            manager.follow(columns.view(), &mut command, &mut task);
        }
    }
}
