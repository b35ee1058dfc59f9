//! Values given once for all, or by name pattern.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// One value for every name, or a value per pattern.
///
/// A pattern is a regular expression that must match the whole name. The first pattern that matches a name gives its
/// value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerName<V> {
    /// The same value for every name.
    All(V),
    /// Pattern → value.
    Patterns(IndexMap<String, V>),
}

/// One number for every column, or a number per column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerColumn {
    /// The same number for every column.
    All(f32),
    /// A number for each column.
    Each(Vec<f32>),
}

impl PerColumn {
    /// Whether every number is finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        match self {
            Self::All(value) => value.is_finite(),
            Self::Each(values) => values.iter().all(|value| value.is_finite()),
        }
    }
}
