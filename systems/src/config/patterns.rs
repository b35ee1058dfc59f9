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
