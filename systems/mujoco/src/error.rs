//! What can go wrong, before a batch runs and in single rows while it does.

use std::fmt;
use std::path::PathBuf;

use crate::ObjectKind;

/// Why a model could not be loaded, adjusted, saved or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The library that was loaded is not the one that the bindings describe.
    #[error("the loaded MuJoCo library has version {found}, but {expected} is needed")]
    Version {
        /// The version that the bindings describe, as in `mjVERSION_HEADER`.
        expected: u32,
        /// The version of the loaded library.
        found: u32,
    },
    /// A path that MuJoCo cannot be given.
    #[error("{path:?} cannot be passed to MuJoCo: a path must be UTF-8 without NUL characters")]
    Path {
        /// The path.
        path: PathBuf,
    },
    /// A model could not be loaded.
    #[error("cannot load {origin}: {message}")]
    Load {
        /// The file, or what else the model came from.
        origin: String,
        /// MuJoCo's own message.
        message: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path:?}: {source}")]
    File {
        /// What was attempted (`read`, `write`).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A model option has a value that the engine does not accept.
    #[error("{option} must be {requirement}, not {value}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What it must be.
        requirement: &'static str,
        /// The value given.
        value: f64,
    },
    /// A name that the model does not contain.
    #[error("the model has no {kind} named `{name}`{}", suggestion(.nearest))]
    UnknownName {
        /// What was looked up.
        kind: ObjectKind,
        /// The name.
        name: String,
        /// The most similar names that the model contains, best first; empty if nothing is similar.
        nearest: Vec<String>,
    },
}

/// Why a batch could not be made, or a call on one was refused. Nothing has been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// MuJoCo could not make the batch.
    #[error("cannot make a batch: {0}")]
    Make(String),
    /// A count that is zero or too large.
    #[error("{what} must be from 1 to {}, not {value}", i32::MAX)]
    Count {
        /// What is counted.
        what: &'static str,
        /// The value given.
        value: usize,
    },
    /// A row index is out of range, or rows are not in ascending order without repeats.
    #[error("row {row} is not valid here: rows are 0..{rows}, given in ascending order without repeats")]
    Row {
        /// The offending index.
        row: u32,
        /// Number of rows.
        rows: usize,
    },
    /// A buffer does not have the size that it must have.
    #[error("{buffer} has {actual} values, but {expected} are needed")]
    Size {
        /// The buffer's name.
        buffer: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        actual: usize,
    },
    /// An output refers to something that the model does not contain.
    #[error("the model has {count} {kind} objects, so there is no {kind} {index} to output")]
    Index {
        /// What was referred to.
        kind: ObjectKind,
        /// The index.
        index: usize,
        /// How many the model has.
        count: usize,
    },
    /// A field that the batch cannot give rows values of, under this name and element type.
    #[error("MuJoCo's {structure} has no field `{name}` of {element} values that a batch can handle{}", suggestion(.nearest))]
    UnknownField {
        /// `mjModel` or `mjData`.
        structure: &'static str,
        /// The name.
        name: String,
        /// The element type asked for.
        element: &'static str,
        /// The most similar names of that element type, best first; empty if nothing is similar.
        nearest: Vec<String>,
    },
    /// A field that this model does not allow to differ between rows.
    #[error("field `{name}` cannot differ between rows of this model: {reason}")]
    SharedField {
        /// The field's name.
        name: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A field handle that another batch gave out.
    #[error("field `{name}` was obtained from another batch")]
    ForeignField {
        /// The field's name.
        name: &'static str,
    },
}

/// A quantity whose values made MuJoCo give up on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unstable {
    /// A generalised position is not finite, or too large.
    Position,
    /// A generalised velocity is not finite, or too large.
    Velocity,
    /// A generalised acceleration is not finite, or too large.
    Acceleration,
    /// A control is not finite, or too large.
    Control,
}

impl Unstable {
    /// The quantity in plain words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Position => "position",
            Self::Velocity => "velocity",
            Self::Acceleration => "acceleration",
            Self::Control => "control",
        }
    }
}

/// Why a row's last call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultReason {
    /// MuJoCo raised an error. The row keeps the state and outputs that it had before the call.
    Engine(String),
    /// MuJoCo met a value that is not finite or too large. Except for a control, which it replaces by zero, it has
    /// reset the row to the model's default state, and the outputs describe that.
    Unstable(Unstable),
    /// The row's control callback panicked. The row keeps the state and outputs that it had before the call.
    Panic(String),
}

impl fmt::Display for FaultReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(message) => write!(f, "engine error: {message}"),
            Self::Unstable(quantity) => write!(f, "unstable {}", quantity.as_str()),
            Self::Panic(message) => write!(f, "control callback panicked: {message}"),
        }
    }
}

/// A row whose last call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The row.
    pub row: u32,
    /// What happened to it.
    pub reason: FaultReason,
}

/// The candidates most similar to `name`, best first, at most three, each similar enough to be a likely slip.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    /// Below this Jaro-Winkler similarity, a suggestion misleads more than it helps.
    const SIMILAR: f64 = 0.75;
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty())
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score >= SIMILAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; the nearest are `{}`", nearest.join("`, `")) }
}
