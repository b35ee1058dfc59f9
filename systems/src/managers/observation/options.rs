//! What the manager does with an observation term, and with a group.

use serde::{Deserialize, Serialize};

use super::noise::Noise;
use crate::config::{ConfigError, PerColumn, none_or};

/// How old an observation is when it is seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Least lag, control steps.
    pub min_lag: u32,
    /// Greatest lag, control steps.
    pub max_lag: u32,
    /// Whether every row draws a lag of its own. If not, all rows have the same lag in every control step.
    #[serde(default = "yes")]
    pub per_row: bool,
    /// Probability that a lag due to be drawn again is kept.
    #[serde(default)]
    pub hold_probability: f64,
    /// Control steps between draws of the lag: of the row's episode, or of the environment if the lag is shared.
    #[serde(default = "one")]
    pub update_period: u32,
    /// Whether rows draw their lags at different control steps of the period. Only for lags that are not shared.
    #[serde(default)]
    pub per_row_phase: bool,
}

const fn yes() -> bool {
    true
}

const fn one() -> u32 {
    1
}

impl Delay {
    /// A lag of `min` to `max` control steps, drawn for every row in every control step.
    #[must_use]
    pub fn steps(min: u32, max: u32) -> Self {
        Self {
            min_lag: min,
            max_lag: max,
            per_row: true,
            hold_probability: 0.0,
            update_period: 1,
            per_row_phase: false,
        }
    }
}

/// What the manager does with an observation term, in this order: noise, clip, scale, delay, history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservationOptions {
    /// Whether the group has the term at all.
    pub enabled: bool,
    /// Noise on the unscaled value.
    #[serde(with = "none_or")]
    pub noise: Option<Noise>,
    /// Least and greatest value, before scaling.
    #[serde(with = "none_or")]
    pub clip: Option<[f32; 2]>,
    /// Factor on every value, or one per value.
    pub scale: PerColumn,
    /// How old the term is when it is seen.
    #[serde(with = "none_or")]
    pub delay: Option<Delay>,
    /// Frames that the policy sees, oldest first; 0 for the current one alone.
    pub history_length: u32,
}

impl Default for ObservationOptions {
    fn default() -> Self {
        Self { enabled: true, noise: None, clip: None, scale: PerColumn::All(1.0), delay: None, history_length: 0 }
    }
}

impl ObservationOptions {
    /// With noise on the unscaled value.
    #[must_use]
    pub fn noise(mut self, noise: Noise) -> Self {
        self.noise = Some(noise);
        self
    }

    /// With values clipped before scaling.
    #[must_use]
    pub fn clip(mut self, low: f32, high: f32) -> Self {
        self.clip = Some([low, high]);
        self
    }

    /// With every value multiplied by `scale`.
    #[must_use]
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = PerColumn::All(scale);
        self
    }

    /// With a delay.
    #[must_use]
    pub fn delay(mut self, delay: Delay) -> Self {
        self.delay = Some(delay);
        self
    }

    /// With the last `frames` frames, oldest first.
    #[must_use]
    pub fn history(mut self, frames: u32) -> Self {
        self.history_length = frames;
        self
    }

    /// Checks the options of a term of `width` values.
    pub(super) fn validate(&self, width: usize) -> Result<(), ConfigError> {
        let fail = |key: &str, message: String| Err(ConfigError::Impossible { path: key.to_owned(), message });
        if let Some(noise) = &self.noise {
            noise.validate()?;
        }
        if let Some([low, high]) = self.clip
            && !(low <= high)
        {
            return fail("clip", format!("[{low}, {high}] is an empty range"));
        }
        match &self.scale {
            PerColumn::Each(scales) if scales.len() != width => {
                return fail("scale", format!("{} factors for {width} values", scales.len()));
            }
            scale if !scale.is_finite() => return fail("scale", "a factor is not a finite number".to_owned()),
            _ => {}
        }
        if let Some(delay) = &self.delay {
            if delay.min_lag > delay.max_lag || delay.max_lag > MAX_FRAMES {
                return fail(
                    "delay",
                    format!("lags {} to {} are no range up to {MAX_FRAMES}", delay.min_lag, delay.max_lag),
                );
            }
            if !(0.0..=1.0).contains(&delay.hold_probability) {
                return fail("delay.hold_probability", format!("{} is no probability", delay.hold_probability));
            }
            if delay.update_period == 0 {
                return fail("delay.update_period", "it must be at least 1".to_owned());
            }
            if delay.per_row_phase && !delay.per_row {
                return fail("delay.per_row_phase", "rows that share a lag draw it at the same time".to_owned());
            }
        }
        if self.history_length > MAX_FRAMES {
            return fail("history_length", format!("{} is more than {MAX_FRAMES}", self.history_length));
        }
        Ok(())
    }
}

/// Frames that a delay line or a history may hold. A typing error must not ask for all the memory.
const MAX_FRAMES: u32 = 4096;

/// What happens to values that are not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NanPolicy {
    /// The step fails with an error that names the term and the rows.
    Error,
    /// They become 0, with a warning.
    Warn,
    /// They become 0.
    Sanitize,
    /// Nothing is looked for.
    Off,
}

/// What the manager does with a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupOptions {
    /// Whether terms get their noise.
    pub corruption: bool,
    /// History length of every term, in place of its own.
    #[serde(with = "none_or")]
    pub history_length: Option<u32>,
    /// What happens to values that are not finite.
    pub nan_policy: NanPolicy,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self { corruption: false, history_length: None, nan_policy: NanPolicy::Error }
    }
}

impl GroupOptions {
    /// Checks the options of the group of this name.
    pub(super) fn validate(&self, name: &str) -> Result<(), ConfigError> {
        match self.history_length {
            Some(length) if length > MAX_FRAMES => Err(ConfigError::Impossible {
                path: format!("observations.{name}.history_length"),
                message: format!("{length} is more than {MAX_FRAMES}"),
            }),
            _ => Ok(()),
        }
    }
}
