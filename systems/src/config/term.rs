//! Terms as configuration: typed parameters that build a term, and that a file or `--set` can change by name.

use std::any::TypeId;

use serde::{Serialize, de::DeserializeOwned};

use super::ConfigError;
use crate::build::{BuildContext, BuildError};

/// Parameters that build a term of kind `T` (`dyn RewardTerm`, `dyn ObservationTerm`, ...).
///
/// Implement it on a plain struct that derives `Clone`, `Serialize` and `Deserialize` with `deny_unknown_fields`; every
/// field is then a key that configuration files can set, and that `describe` prints.
pub trait TermParams<T: ?Sized>: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Resolves names and makes the term.
    ///
    /// # Errors
    /// A name that the model or the environment does not have, or a value that makes no sense.
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<T>, BuildError>;
}

/// A term's parameters with their type erased.
pub struct Term<T: ?Sized + 'static>(Box<dyn ErasedParams<T>>);

impl<T: ?Sized + 'static> Term<T> {
    /// A term with these parameters.
    pub fn new(params: impl TermParams<T>) -> Self {
        Self(Box::new(params))
    }

    /// Name of the parameters' type, without its path: what kind of term it is.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// The parameters' type. Unlike its name without a path, no two types share it.
    pub(crate) fn params_type(&self) -> TypeId {
        self.0.params_type()
    }

    /// The parameters by name.
    ///
    /// # Errors
    /// A parameter has no TOML form.
    pub fn params(&self) -> Result<toml::Table, ConfigError> {
        self.0.params()
    }

    /// Replaces all parameters.
    ///
    /// # Errors
    /// A parameter is missing, unknown or of the wrong type; `path` is named in the message.
    pub fn set_params(&mut self, path: &str, params: toml::Table) -> Result<(), ConfigError> {
        self.0.set_params(path, params)
    }

    /// Makes the term.
    ///
    /// # Errors
    /// See [`TermParams::build`].
    pub fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<T>, BuildError> {
        self.0.build(context)
    }
}

impl<T: ?Sized + 'static> Clone for Term<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl<T: ?Sized + 'static> std::fmt::Debug for Term<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.kind(), self.params())
    }
}

trait ErasedParams<T: ?Sized>: Send + Sync {
    fn kind(&self) -> &'static str;
    fn params_type(&self) -> TypeId;
    fn params(&self) -> Result<toml::Table, ConfigError>;
    fn set_params(&mut self, path: &str, params: toml::Table) -> Result<(), ConfigError>;
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<T>, BuildError>;
    fn clone_box(&self) -> Box<dyn ErasedParams<T>>;
}

impl<T: ?Sized + 'static, P: TermParams<T>> ErasedParams<T> for P {
    fn kind(&self) -> &'static str {
        let path = std::any::type_name::<P>();
        let path = path.split_once('<').map_or(path, |(path, _parameters)| path);
        path.rsplit("::").next().unwrap_or(path)
    }

    fn params_type(&self) -> TypeId {
        TypeId::of::<P>()
    }

    fn params(&self) -> Result<toml::Table, ConfigError> {
        super::to_table(self)
    }

    fn set_params(&mut self, path: &str, params: toml::Table) -> Result<(), ConfigError> {
        *self = super::from_table(path, params)?;
        Ok(())
    }

    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<T>, BuildError> {
        TermParams::build(self, context)
    }

    fn clone_box(&self) -> Box<dyn ErasedParams<T>> {
        Box::new(self.clone())
    }
}

/// A named term of a manager: the options that the manager gives to every term, and the term's own parameters.
pub struct Entry<O, T: ?Sized + 'static> {
    /// What the manager does with the term.
    pub options: O,
    /// The term.
    pub term: Term<T>,
}

impl<O: Clone, T: ?Sized + 'static> Clone for Entry<O, T> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), term: self.term.clone() }
    }
}

impl<O: std::fmt::Debug, T: ?Sized + 'static> std::fmt::Debug for Entry<O, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("options", &self.options).field("term", &self.term).finish()
    }
}

impl<O: Serialize + DeserializeOwned, T: ?Sized + 'static> Entry<O, T> {
    /// A term with the manager's options for it.
    pub fn new(options: O, params: impl TermParams<T>) -> Self {
        Self { options, term: Term::new(params) }
    }

    /// Options and parameters as one table of keys.
    ///
    /// # Errors
    /// A value has no TOML form.
    pub fn to_table(&self) -> Result<toml::Table, ConfigError> {
        let mut table = super::to_table(&self.options)?;
        table.extend(self.term.params()?);
        Ok(table)
    }

    /// Replaces options and parameters from one table of keys.
    ///
    /// # Errors
    /// A key is missing, unknown or of the wrong type; `path` is named in the message.
    pub fn set_table(&mut self, path: &str, mut table: toml::Table) -> Result<(), ConfigError> {
        let mut options = toml::Table::new();
        for key in super::to_table(&self.options)?.keys() {
            if let Some(value) = table.remove(key) {
                options.insert(key.clone(), value);
            }
        }
        self.options = super::from_table(path, options)?;
        self.term.set_params(path, table)
    }
}
