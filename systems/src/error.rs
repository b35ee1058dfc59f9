//! Errors of a control step.

use manege_components::Row;

use crate::backend::BackendError;

/// Why a control step or a reset could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The action buffer does not have one value per row and column. Nothing was changed.
    #[error("the action buffer has {actual} values, but {rows} rows × {width} columns = {} are needed", rows * width)]
    ActionShape {
        /// Number of rows.
        rows: usize,
        /// Values in an action.
        width: usize,
        /// Values given.
        actual: usize,
    },
    /// An action that is not finite. Nothing was changed.
    #[error("the action of row {row}, column {column} is {value}, not a finite number")]
    ActionNotFinite {
        /// The row.
        row: u32,
        /// The column.
        column: usize,
        /// The value given.
        value: f32,
    },
    /// Rows whose episode ended have not been reset, and automatic resetting is off. Nothing was changed.
    #[error("{count} rows must be reset before the next step, the first of them {first:?}")]
    AwaitingReset {
        /// How many rows.
        count: usize,
        /// Up to 10 of them.
        first: Vec<u32>,
    },
    /// A row to reset does not exist, or is given twice.
    #[error("row {row} cannot be reset: rows are 0..{rows}, each given once")]
    Row {
        /// The row given.
        row: u32,
        /// Number of rows.
        rows: usize,
    },
    /// A term computed something that is not finite from a finite state.
    #[error("{manager} term `{term}` is not finite in {count} rows, the first of them {first:?}")]
    NotFinite {
        /// The manager.
        manager: &'static str,
        /// The term's name.
        term: String,
        /// How many rows.
        count: usize,
        /// Up to 10 of them.
        first: Vec<Row>,
    },
    /// A curriculum term set a reward weight, or a number that it keeps, to something that is not finite.
    #[error("curriculum term `{term}` made {} {value}, not a finite number", if what.is_empty() { "its value" } else { what })]
    Curriculum {
        /// The term's name.
        term: String,
        /// What is not finite: the number's or the reward's name.
        what: String,
        /// What it became.
        value: f64,
    },
    /// A recorder could not keep what it was to keep. The step itself is complete.
    #[error("a recorder failed: {0}")]
    Recorder(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The physics engine refused the step.
    #[error(transparent)]
    Backend(#[from] BackendError),
}
