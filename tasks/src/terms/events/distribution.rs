//! What numbers are drawn from, and what they do to those of the compiled model.

use manege_components::Draws;
use manege_systems::build::BuildError;
use serde::{Deserialize, Serialize};

use crate::terms::resolve::impossible;

/// What a number is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Uniform in `[min, max)`.
    Uniform {
        /// Least number.
        min: f64,
        /// Greatest number.
        max: f64,
    },
    /// The logarithm is uniform in `[ln min, ln max)`, so that the median is `√(min·max)`: for factors, where half should be
    /// as likely as twice.
    LogUniform {
        /// Least number, above 0.
        min: f64,
        /// Greatest number.
        max: f64,
    },
    /// Normal. It has no bounds; quantities that cannot be negative are cut off where they say so.
    Gaussian {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
}

impl Distribution {
    /// Uniform in `[min, max)`.
    #[must_use]
    pub const fn uniform(min: f64, max: f64) -> Self {
        Self::Uniform { min, max }
    }

    /// Uniform in its logarithm.
    #[must_use]
    pub const fn log_uniform(min: f64, max: f64) -> Self {
        Self::LogUniform { min, max }
    }

    /// Normal.
    #[must_use]
    pub const fn gaussian(mean: f64, std: f64) -> Self {
        Self::Gaussian { mean, std }
    }

    /// Draws a number.
    pub fn draw(&self, draws: &mut Draws) -> f64 {
        match *self {
            Self::Uniform { min, max } => draws.uniform(min, max),
            // Rounding in the exponential must not lead beyond the bounds.
            Self::LogUniform { min, max } => draws.uniform(min.ln(), max.ln()).exp().clamp(min, max),
            Self::Gaussian { mean, std } => draws.normal(mean, std),
        }
    }

    /// Checks that there is such a distribution. `key` is the parameter that gives it.
    pub(super) fn check(&self, key: &str) -> Result<(), BuildError> {
        let message = match *self {
            Self::Uniform { min, max } if !(min <= max && min.is_finite() && max.is_finite()) => {
                format!("[{min}, {max}] is an empty range")
            }
            Self::LogUniform { min, max } if !(0.0 < min && min <= max && max.is_finite()) => {
                format!("[{min}, {max}] is no range of positive numbers, which a logarithm needs")
            }
            Self::Gaussian { mean, std } if !(std >= 0.0 && std.is_finite() && mean.is_finite()) => {
                format!("no normal distribution has the mean {mean} and the standard deviation {std}")
            }
            _ => return Ok(()),
        };
        Err(impossible(key, message))
    }

    /// The least number, or for a normal distribution, which has none, the mean.
    pub(super) fn low(&self) -> f64 {
        match *self {
            Self::Uniform { min, .. } | Self::LogUniform { min, .. } => min,
            Self::Gaussian { mean, .. } => mean,
        }
    }
}

/// How a drawn number changes a compiled one. It always starts from the compiled one, so nothing adds up over draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It takes its place.
    #[serde(alias = "abs")]
    Set,
    /// It is added to it.
    Add,
    /// It multiplies it.
    Scale,
}

impl Operation {
    /// What becomes of the compiled value.
    #[must_use]
    pub fn apply(self, compiled: f64, drawn: f64) -> f64 {
        match self {
            Self::Set => drawn,
            Self::Add => compiled + drawn,
            Self::Scale => compiled * drawn,
        }
    }
}
