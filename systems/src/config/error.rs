//! Errors of a configuration.

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A key that nothing reads.
    #[error("unknown key `{path}`{}; keys here: {available}", hint(nearest))]
    UnknownKey {
        /// Where the key is.
        path: String,
        /// The nearest key that exists.
        nearest: Option<String>,
        /// All keys that exist there.
        available: String,
    },
    /// A value of the wrong type, or with parts missing.
    #[error("wrong value for `{path}`: {message}")]
    Value {
        /// Where the value is.
        path: String,
        /// What was expected.
        message: String,
    },
    /// A value of the right type that makes no sense.
    #[error("impossible value for `{path}`: {message}")]
    Impossible {
        /// Where the value is.
        path: String,
        /// What would be right.
        message: String,
    },
    /// Text that is no TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
}

/// `; did you mean ...` for the nearest name, if there is one.
pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The name nearest to `wanted`, if any is near enough to be meant.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}
