//! Names to handles, with the width that a term needs: what has too few values is refused while the environment is built.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::ConfigError;
use manege_systems::handles::{CommandSlice, StateSlice};

/// A sensor that reads exactly `width` values. `key` is the parameter that names it.
pub(super) fn sensor(
    context: &mut BuildContext<'_>,
    key: &str,
    name: &str,
    width: usize,
) -> Result<StateSlice, BuildError> {
    let reading = context.sensor(name)?;
    if reading.width() == width {
        return Ok(reading);
    }
    Err(impossible(key, format!("`{name}` reads {} values, but {width} are needed", reading.width())))
}

/// A command of planar velocity and yaw rate: three values.
pub(super) fn velocity_command(context: &BuildContext<'_>, name: &str) -> Result<CommandSlice, BuildError> {
    let command = context.command(name)?;
    if command.width() == 3 {
        return Ok(command);
    }
    Err(impossible("command", format!("`{name}` has {} values, but a velocity command has 3", command.width())))
}

/// A number that has to be above 0.
pub(super) fn positive(key: &str, value: f64) -> Result<f64, BuildError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(impossible(key, format!("{value} is not a positive number")))
}

pub(super) fn impossible(key: &str, message: String) -> BuildError {
    ConfigError::Impossible { path: key.to_owned(), message }.into()
}
