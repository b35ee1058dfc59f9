//! Changes at given numbers of control steps.

use serde::{Deserialize, Serialize};

use super::{CurriculumTerm, Progress};
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, TermParams};
use crate::handles::RewardHandle;
use crate::managers::reward::RewardManager;
use crate::tunable::TunableRange;

/// Changes a reward's weight after given numbers of control steps.
///
/// A stage holds from the reward of the control step that follows `step` completed ones. By default a curriculum runs
/// when rows are reset, so the change may come late; with
/// [`every_step`](super::CurriculumOptions::every_step) it comes at the exact step. Before the first stage, the weight is
/// the configured one. Reported is the weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardWeightSchedule {
    /// The reward term.
    pub reward: String,
    /// The stages, in ascending order of steps.
    pub stages: Vec<WeightStage>,
}

/// A weight, and when it begins to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightStage {
    /// Completed control steps of the environment.
    pub step: u64,
    /// The weight.
    pub weight: f32,
}

/// Changes a [tunable range](TunableRange), such as that of a command, after given numbers of control steps.
///
/// Stages begin as those of [`RewardWeightSchedule`]. What has been drawn is kept until it is drawn again. Reported are
/// `low` and `high`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeSchedule {
    /// The range, by section, term and key: `commands.twist.lin_vel_x`.
    pub range: String,
    /// The stages, in ascending order of steps.
    pub stages: Vec<RangeStage>,
}

/// A range, and when it begins to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeStage {
    /// Completed control steps of the environment.
    pub step: u64,
    /// Least and greatest number.
    pub range: [f64; 2],
}

struct WeightAt {
    reward: RewardHandle,
    stages: Vec<WeightStage>,
}

struct RangeAt {
    range: TunableRange,
    stages: Vec<RangeStage>,
}

impl TermParams<dyn CurriculumTerm> for RewardWeightSchedule {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CurriculumTerm>, BuildError> {
        check(self.stages.iter().map(|stage| (stage.step, stage.weight.is_finite())))?;
        Ok(Box::new(WeightAt { reward: context.reward(&self.reward)?, stages: self.stages.clone() }))
    }
}

impl CurriculumTerm for WeightAt {
    fn keys(&self) -> &[&'static str] {
        &[""]
    }

    fn start(&self, values: &mut [f64], rewards: &mut RewardManager) {
        self.set(values, 0, rewards);
    }

    fn update(&self, values: &mut [f64], progress: &Progress<'_>, rewards: &mut RewardManager) {
        self.set(values, progress.steps, rewards);
    }
}

impl WeightAt {
    fn set(&self, values: &mut [f64], steps: u64, rewards: &mut RewardManager) {
        if let Some(stage) = self.stages.iter().rfind(|stage| stage.step <= steps) {
            rewards.set_weight(self.reward, stage.weight);
        }
        values[0] = f64::from(rewards.weight(self.reward));
    }
}

impl TermParams<dyn CurriculumTerm> for RangeSchedule {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CurriculumTerm>, BuildError> {
        check(self.stages.iter().map(|stage| {
            let [low, high] = stage.range;
            (stage.step, low <= high && low.is_finite() && high.is_finite())
        }))?;
        Ok(Box::new(RangeAt { range: context.tunable(&self.range)?, stages: self.stages.clone() }))
    }
}

impl CurriculumTerm for RangeAt {
    fn keys(&self) -> &[&'static str] {
        &["low", "high"]
    }

    fn start(&self, values: &mut [f64], _: &mut RewardManager) {
        self.set(values, 0);
    }

    fn update(&self, values: &mut [f64], progress: &Progress<'_>, _: &mut RewardManager) {
        self.set(values, progress.steps);
    }
}

impl RangeAt {
    fn set(&self, values: &mut [f64], steps: u64) {
        if let Some(stage) = self.stages.iter().rfind(|stage| stage.step <= steps) {
            self.range.set(stage.range);
        }
        values.copy_from_slice(&self.range.get());
    }
}

/// Checks the stages' steps, and that what is to hold makes sense.
fn check(stages: impl Iterator<Item = (u64, bool)>) -> Result<(), BuildError> {
    let mut last = None;
    for (step, sensible) in stages {
        let message = if last.is_some_and(|last| last >= step) {
            format!("the stage at step {step} does not come after the one before it")
        } else if !sensible {
            format!("the stage at step {step} has a value that is not finite, or an empty range")
        } else {
            last = Some(step);
            continue;
        };
        return Err(ConfigError::Impossible { path: "stages".to_owned(), message }.into());
    }
    match last {
        Some(_) => Ok(()),
        None => Err(ConfigError::Impossible { path: "stages".to_owned(), message: "there are none".to_owned() }.into()),
    }
}
