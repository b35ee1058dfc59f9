//! Commands set from outside: by a joystick, a script, a planner.
//!
//! An override hides what a term draws and stays until it is released, over resamplings and episodes. Behind it the
//! term goes on as if nothing had happened, timers and draws included, so a released row has the command that it would have
//! had. Everything that reads the command sees the override: observations, rewards and terminations from the next control
//! step on, and the term's metrics.

use bevy_ecs::prelude::*;
use manege_components::Command;

use super::CommandManager;
use crate::config::{hint, nearest};
use crate::handles::CommandSlice;
use crate::step::RowEntities;

/// Names a command term, resolved once. See [`CommandManager::handle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandHandle {
    term: usize,
    columns: CommandSlice,
}

impl CommandHandle {
    /// Number of values of the command.
    #[must_use]
    pub fn width(self) -> usize {
        self.columns.width()
    }
}

/// Which rows are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows<'a> {
    /// Every row.
    All,
    /// The rows of these indices, each given once.
    These(&'a [u32]),
}

/// Why a command cannot be set or released. Nothing was changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandOverrideError {
    /// The environment has no command of this name.
    #[error("unknown command `{name}`{}; available: {available}", hint(nearest))]
    UnknownName {
        /// The name given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// All names that exist.
        available: String,
    },
    /// The handle was made by another environment.
    #[error("the handle of command {term} with {width} values is not one of this environment's")]
    Handle {
        /// Position of the term that the handle names.
        term: usize,
        /// Its number of values.
        width: usize,
    },
    /// Too few or too many values.
    #[error(
        "{actual} values were given for command `{command}`, but {width} are needed, the same for every row, or {} for {rows} rows",
        width * rows
    )]
    Width {
        /// The command's name.
        command: String,
        /// Its number of values.
        width: usize,
        /// Number of rows that were to be set.
        rows: usize,
        /// Values given.
        actual: usize,
    },
    /// A row that does not exist, or is given twice.
    #[error("row {row} cannot be set: rows are 0..{rows}, each given once")]
    Row {
        /// The row given.
        row: u32,
        /// Number of rows.
        rows: usize,
    },
    /// A value that is not finite.
    #[error("value {index} for command `{command}` is {value}, not a finite number")]
    NotFinite {
        /// The command's name.
        command: String,
        /// Place among the values given.
        index: usize,
        /// The value there.
        value: f32,
    },
}

impl CommandManager {
    /// A command term by name.
    ///
    /// # Errors
    /// The environment has no such command.
    pub fn handle(&self, name: &str) -> Result<CommandHandle, CommandOverrideError> {
        let names = || self.terms().map(|(name, _)| name);
        let found = self.terms().enumerate().find(|(_, (known, _))| *known == name);
        found
            .map(|(term, (_, range))| CommandHandle { term, columns: CommandSlice::new(range.start, range.len()) })
            .ok_or_else(|| CommandOverrideError::UnknownName {
                name: name.to_owned(),
                nearest: nearest(name, names()),
                available: names().collect::<Vec<_>>().join(", "),
            })
    }

    /// The name of a handle's term.
    fn name_of(&self, handle: CommandHandle) -> Result<&str, CommandOverrideError> {
        match self.terms().nth(handle.term) {
            Some((name, range)) if range == handle.columns.range() => Ok(name),
            _ => Err(CommandOverrideError::Handle { term: handle.term, width: handle.width() }),
        }
    }
}

/// Sets a command of some rows, until [`release_command`].
///
/// `values` holds the command's values once, the same for all `rows`, or once for each of them, in their order. A row that
/// is overridden already gets the new values. An override survives resets, and is part of a snapshot.
///
/// The current observation buffers stay as they are: the next control step's observations are the first to show it.
///
/// # Errors
/// See [`CommandOverrideError`]; nothing was changed then.
pub fn override_command(
    world: &mut World,
    command: CommandHandle,
    rows: Rows<'_>,
    values: &[f32],
) -> Result<(), CommandOverrideError> {
    let name = world.resource::<CommandManager>().name_of(command)?;
    let entities = listed(&world.resource::<RowEntities>().0, rows)?;
    let width = command.width();
    let each = values.len() == width * entities.len();
    if !each && values.len() != width {
        let (command, actual) = (name.to_owned(), values.len());
        return Err(CommandOverrideError::Width { command, width, rows: entities.len(), actual });
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        return Err(CommandOverrideError::NotFinite { command: name.to_owned(), index, value: values[index] });
    }
    for (position, entity) in entities.into_iter().enumerate() {
        if let Some(mut row) = world.get_mut::<Command>(entity) {
            let start = if each { position * width } else { 0 };
            row.hold(command.columns.range(), &values[start..start + width]);
        }
    }
    Ok(())
}

/// Gives a command of some rows back to its term. Rows that are not overridden stay as they are.
///
/// # Errors
/// The handle is another environment's, or a row does not exist or is given twice; nothing was changed then.
pub fn release_command(world: &mut World, command: CommandHandle, rows: Rows<'_>) -> Result<(), CommandOverrideError> {
    world.resource::<CommandManager>().name_of(command)?;
    for entity in listed(&world.resource::<RowEntities>().0, rows)? {
        if let Some(mut row) = world.get_mut::<Command>(entity) {
            row.release(command.columns.range());
        }
    }
    Ok(())
}

/// The entities of the rows meant.
fn listed(entities: &[Entity], rows: Rows<'_>) -> Result<Vec<Entity>, CommandOverrideError> {
    let rows = match rows {
        Rows::All => return Ok(entities.to_vec()),
        Rows::These(rows) => rows,
    };
    let mut seen = vec![false; entities.len()];
    rows.iter()
        .map(|&row| match seen.get_mut(row as usize) {
            Some(seen) if !*seen => {
                *seen = true;
                Ok(entities[row as usize])
            }
            _ => Err(CommandOverrideError::Row { row, rows: entities.len() }),
        })
        .collect()
}
