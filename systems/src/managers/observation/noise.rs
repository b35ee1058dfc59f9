//! Noise on observations.

use manege_components::{Draws, StreamId, Streams};
use serde::{Deserialize, Serialize};

use crate::config::ConfigError;

/// What noise does to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseOperation {
    /// It is added.
    #[default]
    Add,
    /// It multiplies the value.
    Scale,
    /// It takes the value's place.
    Abs,
}

impl NoiseOperation {
    fn apply(self, value: &mut f32, noise: f32) {
        match self {
            Self::Add => *value += noise,
            Self::Scale => *value *= noise,
            Self::Abs => *value = noise,
        }
    }
}

/// Noise on a term, drawn for every value on its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Noise {
    /// Always the same.
    Constant {
        /// The noise.
        value: f32,
        /// What it does.
        #[serde(default)]
        operation: NoiseOperation,
    },
    /// Uniform in `[min, max)`, drawn in every control step.
    Uniform {
        /// Least value.
        min: f32,
        /// Greatest value.
        max: f32,
        /// What it does.
        #[serde(default)]
        operation: NoiseOperation,
    },
    /// Normally distributed, drawn in every control step.
    Gaussian {
        /// Mean.
        mean: f32,
        /// Standard deviation.
        std: f32,
        /// What it does.
        #[serde(default)]
        operation: NoiseOperation,
    },
    /// Uniform in `[min, max)`, drawn at every reset, one value for each component, and added.
    UniformBias {
        /// Least value.
        min: f32,
        /// Greatest value.
        max: f32,
    },
    /// Normally distributed, drawn at every reset, one value for each component, and added.
    GaussianBias {
        /// Mean.
        mean: f32,
        /// Standard deviation.
        std: f32,
    },
}

impl Noise {
    /// Added, uniform in `[-limit, limit)`.
    #[must_use]
    pub const fn uniform(limit: f32) -> Self {
        Self::Uniform { min: -limit, max: limit, operation: NoiseOperation::Add }
    }

    /// Added, normal with mean 0.
    #[must_use]
    pub const fn gaussian(std: f32) -> Self {
        Self::Gaussian { mean: 0.0, std, operation: NoiseOperation::Add }
    }

    /// Whether the noise is drawn at resets and held.
    pub(super) const fn is_bias(&self) -> bool {
        matches!(self, Self::UniformBias { .. } | Self::GaussianBias { .. })
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let message = match *self {
            Self::Constant { value, .. } if !value.is_finite() => format!("{value} is not a finite number"),
            Self::Uniform { min, max, .. } | Self::UniformBias { min, max }
                if !(min <= max && min.is_finite() && max.is_finite()) =>
            {
                format!("{min} to {max} is no finite range")
            }
            Self::Gaussian { mean, std, .. } | Self::GaussianBias { mean, std }
                if !(std >= 0.0 && std.is_finite() && mean.is_finite()) =>
            {
                format!("no normal distribution has the mean {mean} and the standard deviation {std}")
            }
            _ => return Ok(()),
        };
        Err(ConfigError::Impossible { path: "noise".to_owned(), message })
    }

    /// Draws the values that are held until the next reset.
    pub(super) fn draw_bias(&self, bias: &mut [f32], mut draws: Draws) {
        for value in bias {
            *value = match *self {
                Self::UniformBias { min, max } => draws.uniform_f32(min, max),
                Self::GaussianBias { mean, std } => draws.normal(f64::from(mean), f64::from(std)) as f32,
                Self::Constant { .. } | Self::Uniform { .. } | Self::Gaussian { .. } => 0.0,
            };
        }
    }

    /// Changes the values of one frame. `bias` holds what [`draw_bias`](Self::draw_bias) drew.
    pub(super) fn apply(&self, values: &mut [f32], bias: &[f32], streams: &Streams, stream: StreamId, step: u32) {
        match *self {
            Self::Constant { value: noise, operation } => {
                values.iter_mut().for_each(|value| operation.apply(value, noise))
            }
            Self::Uniform { min, max, operation } => {
                let mut draws = streams.draws(stream, u64::from(step));
                values.iter_mut().for_each(|value| operation.apply(value, draws.uniform_f32(min, max)));
            }
            Self::Gaussian { mean, std, operation } => {
                let mut draws = streams.draws(stream, u64::from(step));
                let (mean, std) = (f64::from(mean), f64::from(std));
                values.iter_mut().for_each(|value| operation.apply(value, draws.normal(mean, std) as f32));
            }
            Self::UniformBias { .. } | Self::GaussianBias { .. } => {
                values.iter_mut().zip(bias).for_each(|(value, &bias)| *value += bias);
            }
        }
    }
}
