//! Placing rows by hand.

use bevy_ecs::prelude::*;
use manege_components::{Command, Row, TaskState};
use manege_systems::build::TaskStateNames;
use manege_systems::error::StepError;
use manege_systems::place;

use super::{Spec, TermColumns};

/// States to give to all rows. What is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InitialState {
    /// Generalised positions, rows × `nq`.
    pub qpos: Option<Vec<f64>>,
    /// Generalised velocities, rows × `nv`.
    pub qvel: Option<Vec<f64>>,
    /// Commands by name, rows × width.
    pub commands: Vec<(String, Vec<f32>)>,
    /// Per-row task state by name, rows × width.
    pub task_state: Vec<(String, Vec<f32>)>,
}

/// Why rows cannot be placed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitialError {
    /// A command or task state that the environment does not have.
    #[error("unknown {kind} `{name}`; available: {available}")]
    UnknownName {
        /// `command` or `task state`.
        kind: &'static str,
        /// The name given.
        name: String,
        /// All names that exist.
        available: String,
    },
    /// A buffer of the wrong size.
    #[error("`{name}` has {actual} values, but {rows} rows × {width} columns are needed")]
    Shape {
        /// The buffer's name.
        name: String,
        /// Number of rows.
        rows: usize,
        /// Values per row.
        width: usize,
        /// Values given.
        actual: usize,
    },
    /// A value that is not finite.
    #[error("`{name}` of row {row}, column {column} is not a finite number")]
    NotFinite {
        /// The buffer's name.
        name: String,
        /// The row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// A quaternion that is not of unit length.
    #[error("the root orientation in `qpos` of row {row} has length {length}, not 1")]
    Quaternion {
        /// The row.
        row: usize,
        /// Its length.
        length: f64,
    },
    /// A value that its row's state cannot have.
    #[error("`{name}` of row {row} is {value}; it lies between {least} and {greatest}")]
    Range {
        /// The buffer's name.
        name: String,
        /// The row.
        row: usize,
        /// The value given.
        value: f32,
        /// The least possible.
        least: f32,
        /// The greatest possible.
        greatest: f32,
    },
    /// The observations of the new state cannot be made.
    #[error(transparent)]
    Step(#[from] StepError),
}

pub(super) fn set(world: &mut World, spec: &Spec, initial: &InitialState) -> Result<(), InitialError> {
    let rows = world.resource::<manege_systems::step::RowEntities>().0.len();
    if let Some(qpos) = &initial.qpos {
        check("qpos", rows, spec.nq, qpos.iter().copied())?;
        if spec.nq == spec.nv + 1 {
            for (row, values) in qpos.chunks_exact(spec.nq).enumerate() {
                let length = values[3..7].iter().map(|value| value * value).sum::<f64>().sqrt();
                if (length - 1.0).abs() > 1e-5 {
                    return Err(InitialError::Quaternion { row, length });
                }
            }
        }
    }
    if let Some(qvel) = &initial.qvel {
        check("qvel", rows, spec.nv, qvel.iter().copied())?;
    }
    let commands = resolve("command", &spec.commands, rows, &initial.commands)?;
    let task_state = resolve("task state", &spec.task_state, rows, &initial.task_state)?;

    let ranges = &world.resource::<TaskStateNames>().ranges;
    for (columns, values) in &task_state {
        let Some(&[least, greatest]) = ranges.get(&columns.name) else { continue };
        if let Some(i) = values.iter().position(|value| !(least..=greatest).contains(value)) {
            let (name, row) = (columns.name.clone(), i / columns.columns.len());
            return Err(InitialError::Range { name, row, value: values[i], least, greatest });
        }
    }

    let mut query = world.query::<(&Row, &mut Command, &mut TaskState)>();
    for (row, mut command, mut state) in query.iter_mut(world) {
        let Command { values: shown, overridden, .. } = &mut *command;
        for (columns, values) in &commands {
            let width = columns.columns.len();
            // An override stays until it is released; what it hides is overwritten.
            let hidden = overridden.as_deref_mut().and_then(|hidden| hidden.hidden_mut(columns.columns.clone()));
            let command = hidden.unwrap_or(&mut shown[columns.columns.clone()]);
            command.copy_from_slice(&values[row.index() * width..][..width]);
        }
        for (columns, values) in &task_state {
            let width = columns.columns.len();
            state.values[columns.columns.clone()].copy_from_slice(&values[row.index() * width..][..width]);
        }
    }
    place::place_rows(world, initial.qpos.as_deref(), initial.qvel.as_deref())?;
    Ok(())
}

fn check(
    name: &str,
    rows: usize,
    width: usize,
    values: impl ExactSizeIterator<Item = f64>,
) -> Result<(), InitialError> {
    if values.len() != rows * width {
        return Err(InitialError::Shape { name: name.to_owned(), rows, width, actual: values.len() });
    }
    match values.enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((i, _)) => Err(InitialError::NotFinite { name: name.to_owned(), row: i / width, column: i % width }),
    }
}

fn resolve<'a>(
    kind: &'static str,
    known: &'a [TermColumns],
    rows: usize,
    given: &'a [(String, Vec<f32>)],
) -> Result<Vec<(&'a TermColumns, &'a [f32])>, InitialError> {
    given
        .iter()
        .map(|(name, values)| {
            let columns =
                known.iter().find(|columns| columns.name == *name).ok_or_else(|| InitialError::UnknownName {
                    kind,
                    name: name.clone(),
                    available: known.iter().map(|columns| columns.name.as_str()).collect::<Vec<_>>().join(", "),
                })?;
            check(name, rows, columns.columns.len(), values.iter().map(|&value| f64::from(value)))?;
            Ok((columns, values.as_slice()))
        })
        .collect()
}
