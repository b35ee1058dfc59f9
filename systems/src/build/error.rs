//! Errors of building an environment.

use crate::backend::BackendError;
use crate::config::{ConfigError, hint};

/// Why an environment cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A name that does not exist.
    #[error("unknown {kind} `{name}`{}; available: {available}", hint(nearest))]
    UnknownName {
        /// What kind of thing was looked for.
        kind: &'static str,
        /// The name given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// All names that exist.
        available: String,
    },
    /// A pattern that matches nothing.
    #[error("the pattern `{pattern}` matches no {kind}{}; available: {available}", hint(nearest))]
    NoMatch {
        /// What kind of thing was looked for.
        kind: &'static str,
        /// The pattern given.
        pattern: String,
        /// The name nearest to the pattern.
        nearest: Option<String>,
        /// All names that exist.
        available: String,
    },
    /// A pattern that is no regular expression.
    #[error("the pattern `{pattern}` is no regular expression: {message}")]
    Pattern {
        /// The pattern given.
        pattern: String,
        /// What is wrong with it.
        message: String,
    },
    /// A name that no pattern gives a value to.
    #[error("no pattern gives a value for {kind} `{name}`")]
    NoValue {
        /// What kind of thing has no value.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that is used twice.
    #[error("{kind} `{name}` is registered twice")]
    Duplicate {
        /// What kind of thing.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A term needs a floating root and the model has none.
    #[error("the model has no floating root body")]
    NoFloatingRoot,
    /// A term needs joints that lie next to each other in the state.
    #[error("the model's joints do not lie next to each other in its state, which this environment needs")]
    ScatteredJoints,
    /// A joint that no actuator drives.
    #[error("joint `{joint}` is driven by no actuator, or by several")]
    NoActuator {
        /// The joint's name.
        joint: String,
    },
    /// A joint whose actuator takes something else than the term gives.
    #[error("joint `{joint}` is driven by `{actuator}`, which is a {found}, but the term needs a {needed}")]
    ActuatorKind {
        /// The joint's name.
        joint: String,
        /// The actuator's name.
        actuator: String,
        /// What the actuator is.
        found: &'static str,
        /// What the term needs.
        needed: &'static str,
    },
    /// More terms than a manager can hold.
    #[error("{manager} has {count} terms, but at most {limit} are possible")]
    TooManyTerms {
        /// The manager.
        manager: &'static str,
        /// Number of terms.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A number of rows or threads that is not possible.
    #[error("{what} must be at least 1")]
    Zero {
        /// What was zero.
        what: &'static str,
    },
    /// A curriculum that begins with numbers that make no sense.
    #[error("the environment cannot start: {0}")]
    Start(String),
    /// More rows than fit into memory.
    #[error("{rows} rows do not fit into memory")]
    Memory {
        /// Number of rows.
        rows: usize,
    },
    /// Systems whose order is undefined, or another fault of the schedule.
    #[error("the schedule cannot be built: {0}")]
    Schedule(String),
    /// Worker threads cannot be started.
    #[error("cannot start worker threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The backend cannot do what is needed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Something that a term reads when it is built, such as a file, is wrong.
    #[error(transparent)]
    Data(Box<dyn std::error::Error + Send + Sync>),
    /// One of the above, in a term.
    #[error("{manager} term `{term}`: {source}")]
    Term {
        /// The manager.
        manager: &'static str,
        /// The term's name.
        term: String,
        /// What is wrong with it.
        source: Box<BuildError>,
    },
}

impl BuildError {
    /// The same error, said of a term.
    #[must_use]
    pub fn in_term(self, manager: &'static str, term: &str) -> Self {
        Self::Term { manager, term: term.to_owned(), source: Box::new(self) }
    }
}
