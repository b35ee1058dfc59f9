//! The typed configuration of an environment, and how files and `--set` change it.
//!
//! A task writes its defaults as an [`EnvironmentConfig`]. It turns into a table in which every key that exists is
//! present, and changes are merged into that table: so an unknown key is found before anything starts, and the error
//! can name the nearest right one.

mod environment;
mod error;
mod merge;
mod patterns;
mod term;

pub use environment::{
    ActionEntry, CommandEntry, CurriculumEntry, DataLayout, EnvironmentConfig, EventEntry, GroupConfig, Jacobian,
    MetricEntry, ObservationEntry, PhysicsConfig, RewardEntry, SensorSchedule, TaskEntry, TerminationEntry,
};
pub(crate) use error::hint;
pub use error::{ConfigError, nearest};
pub use merge::{merge, parse_assignment};
pub use patterns::{PerColumn, PerName};
pub use term::{Entry, Term, TermParams};

use serde::{Serialize, de::DeserializeOwned};

/// A value as a table of keys.
pub(crate) fn to_table(value: &impl Serialize) -> Result<toml::Table, ConfigError> {
    toml::Table::try_from(value).map_err(|error| ConfigError::Syntax(error.to_string()))
}

/// A typed value from a table of keys.
pub(crate) fn from_table<T: DeserializeOwned>(path: &str, table: toml::Table) -> Result<T, ConfigError> {
    // Field by field the message would name no key, so the key that fails is looked for by name in the message's path.
    table.try_into().map_err(|error: toml::de::Error| ConfigError::Value {
        path: path.to_owned(),
        message: error.to_string().trim().replace('\n', " "),
    })
}

/// `Option` as a configuration value that is always present: the word `none`, or the value.
pub mod none_or {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        None,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum NoneOr<T> {
        Word(Word),
        Value(T),
    }

    /// Writes the value, or `none`.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<T: Serialize, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(serializer),
            None => Word::None.serialize(serializer),
        }
    }

    /// Reads a value, or `none`.
    ///
    /// # Errors
    /// It is neither.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(match NoneOr::<T>::deserialize(deserializer)? {
            NoneOr::Word(_) => None,
            NoneOr::Value(value) => Some(value),
        })
    }
}
