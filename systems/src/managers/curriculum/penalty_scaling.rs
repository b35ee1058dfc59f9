//! Penalties that grow as episodes get longer.

use serde::{Deserialize, Serialize};

use super::{CurriculumTerm, Progress};
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, TermParams};
use crate::handles::RewardHandle;
use crate::managers::reward::RewardManager;

/// Multiplies every reward weight that is configured below 0 by a common factor, which follows the length of episodes.
///
/// Each reset with episodes that ended moves the average length towards their mean by the share `min(ended / W, 1)`, where
/// `W = max(1, ⌊window · rows / window_rows⌋)`. If the average is then below `short`, the factor is multiplied by
/// `shrink`; if it is above `long`, by `grow`; and it is kept within `range`. Reported are `average_episode_length`
/// (control steps, from 0) and `penalty_scale`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PenaltyScaling {
    /// The factor at first.
    pub initial: f64,
    /// Least and greatest factor.
    pub range: [f64; 2],
    /// Episodes that the average is over, if there are `window_rows` rows.
    pub window: f64,
    /// Number of rows that `window` is meant for; it grows and shrinks with the number of rows.
    pub window_rows: f64,
    /// Average length below which penalties shrink, control steps.
    pub short: f64,
    /// Average length above which penalties grow, control steps.
    pub long: f64,
    /// Factor on the factor when episodes are short.
    pub shrink: f64,
    /// Factor on the factor when episodes are long.
    pub grow: f64,
}

impl Default for PenaltyScaling {
    fn default() -> Self {
        Self {
            initial: 0.125,
            range: [0.125, 0.25],
            window: 1000.0,
            window_rows: 4096.0,
            short: 150.0,
            long: 750.0,
            shrink: 0.999,
            grow: 1.001,
        }
    }
}

struct Scaling {
    params: PenaltyScaling,
    penalties: Vec<RewardHandle>,
}

impl TermParams<dyn CurriculumTerm> for PenaltyScaling {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CurriculumTerm>, BuildError> {
        let impossible = |path: &str, message: String| {
            Err(BuildError::from(ConfigError::Impossible { path: path.to_owned(), message }))
        };
        let &Self { initial, range: [low, high], window, window_rows, short, long, shrink, grow } = self;
        if !(0.0 <= low && low <= initial && initial <= high && high.is_finite()) {
            return impossible("range", format!("[{low}, {high}] is no range of factors around {initial}"));
        }
        for (path, value) in [("window", window), ("window_rows", window_rows), ("shrink", shrink), ("grow", grow)] {
            if !(value.is_finite() && value > 0.0) {
                return impossible(path, format!("{value} is not a positive number"));
            }
        }
        if !(short <= long) {
            return impossible("long", format!("{long} is less than `short`, {short}"));
        }
        let penalties = context.rewards().filter(|(_, weight)| *weight < 0.0).map(|(handle, _)| handle).collect();
        Ok(Box::new(Scaling { params: self.clone(), penalties }))
    }
}

impl CurriculumTerm for Scaling {
    fn keys(&self) -> &[&'static str] {
        &["average_episode_length", "penalty_scale"]
    }

    fn start(&self, values: &mut [f64], rewards: &mut RewardManager) {
        values.copy_from_slice(&[0.0, self.params.initial]);
        self.scale(self.params.initial, rewards);
    }

    fn update(&self, values: &mut [f64], progress: &Progress<'_>, rewards: &mut RewardManager) {
        let ended = progress.episodes().filter(|episode| episode.ended);
        let (count, steps) = ended
            .fold((0u32, 0u64), |(count, steps), episode| (count + 1, steps + u64::from(episode.view.clock().step)));
        if count == 0 {
            return;
        }
        let PenaltyScaling { range: [low, high], window, window_rows, short, long, shrink, grow, .. } = self.params;
        let [average, scale] = values else { return };
        let window = (window * progress.rows as f64 / window_rows).floor().max(1.0);
        let share = (f64::from(count) / window).min(1.0);
        *average = (1.0 - share) * *average + share * (steps as f64 / f64::from(count));
        if *average < short {
            *scale *= shrink;
        } else if *average > long {
            *scale *= grow;
        }
        *scale = scale.clamp(low, high);
        self.scale(*scale, rewards);
    }
}

impl Scaling {
    fn scale(&self, scale: f64, rewards: &mut RewardManager) {
        for &penalty in &self.penalties {
            let weight = f64::from(rewards.configured_weight(penalty)) * scale;
            rewards.set_weight(penalty, weight as f32);
        }
    }
}
