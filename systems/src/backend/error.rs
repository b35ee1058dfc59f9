//! Errors of a physics backend.

/// Why a backend could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The model could not be loaded.
    #[error("cannot load the model: {0}")]
    Model(String),
    /// The engine lacks something that the environment needs.
    #[error("the {engine} backend has no {feature}")]
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// What it lacks.
        feature: String,
    },
    /// A buffer does not have the size that rows and model give.
    #[error("{buffer} has {actual} values, but {expected} are needed")]
    Size {
        /// The buffer's name.
        buffer: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        actual: usize,
    },
    /// A row index is out of range, or rows are not in ascending order without repeats.
    #[error("row {row} is not a valid row here: rows are 0..{rows}, given in ascending order without repeats")]
    Row {
        /// The offending index.
        row: u32,
        /// Number of rows.
        rows: usize,
    },
    /// A body index is out of range.
    #[error("there is no body {body}: the model has {bodies}")]
    Body {
        /// The offending index.
        body: usize,
        /// Number of bodies.
        bodies: usize,
    },
    /// A parameter was written that was not requested at build.
    #[error("model field {0} was not requested when the environment was built")]
    Field(String),
    /// The engine failed in a way that is no row's fault.
    #[error("{0}")]
    Engine(String),
}
