//! Rewards: the weighted sum of terms, per control step and over the episode.

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{Reward, Row, Termination};
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::Entry;
use crate::error::StepError;
use crate::handles::RewardHandle;
use crate::row_view::{RowColumns, RowView};
use crate::step::StepStatus;
use crate::workers::{Pace, Workers};

/// Computes one number per row, which the manager weighs and adds to the reward.
///
/// Any `Fn(&RowView<'_>) -> f32` is a term.
pub trait RewardTerm: Send + Sync {
    /// The value of the term in the state after the control step, before its weight.
    fn value(&self, row: &RowView<'_>) -> f32;
}

impl<F: Fn(&RowView<'_>) -> f32 + Send + Sync> RewardTerm for F {
    fn value(&self, row: &RowView<'_>) -> f32 {
        self(row)
    }
}

/// A boxed term from a closure; says the closure's type where inference cannot.
pub fn reward(term: impl Fn(&RowView<'_>) -> f32 + Send + Sync + 'static) -> Box<dyn RewardTerm> {
    Box::new(term)
}

/// What the manager does with a reward term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// Factor on the term's value. A term with weight 0 is not evaluated.
    pub weight: f32,
}

impl RewardOptions {
    /// An enabled term with this weight.
    #[must_use]
    pub fn weight(weight: f32) -> Self {
        Self { enabled: true, weight }
    }
}

/// The reward terms in order, with weights that may be changed while the environment runs.
#[derive(Resource)]
pub struct RewardManager {
    names: Vec<String>,
    terms: Vec<Box<dyn RewardTerm>>,
    /// Factor on each term's value. Changes take effect at the next control step.
    pub weights: Vec<f32>,
    /// The weights that the configuration gives.
    configured: Vec<f32>,
    /// Factor on value × weight in the total and in episode sums: the control period in s, or 1.
    step_factor: f32,
}

impl RewardManager {
    /// Builds the enabled terms. `step_factor` multiplies every weighted value.
    ///
    /// # Errors
    /// A term cannot be built, or its weight is not finite.
    pub fn build(
        entries: &IndexMap<String, Entry<RewardOptions, dyn RewardTerm>>,
        context: &mut BuildContext<'_>,
        step_factor: f64,
    ) -> Result<Self, BuildError> {
        let mut manager = Self {
            names: Vec::new(),
            terms: Vec::new(),
            weights: Vec::new(),
            configured: Vec::new(),
            step_factor: step_factor as f32,
        };
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            context.enter("rewards", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("reward", name))?;
            if !entry.options.weight.is_finite() {
                return Err(crate::config::ConfigError::Impossible {
                    path: format!("rewards.{name}.weight"),
                    message: format!("{} is not a finite number", entry.options.weight),
                }
                .into());
            }
            context.register_reward(name, entry.options.weight);
            manager.names.push(name.clone());
            manager.terms.push(term);
            manager.weights.push(entry.options.weight);
        }
        manager.configured.clone_from(&manager.weights);
        Ok(manager)
    }

    /// Names of the terms, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Factor on a term's value.
    #[must_use]
    pub fn weight(&self, term: RewardHandle) -> f32 {
        self.weights[term.0]
    }

    /// Factor on a term's value that the configuration gives.
    #[must_use]
    pub fn configured_weight(&self, term: RewardHandle) -> f32 {
        self.configured[term.0]
    }

    /// Changes the factor on a term's value, from the next control step on.
    pub fn set_weight(&mut self, term: RewardHandle, weight: f32) {
        self.weights[term.0] = weight;
    }

    /// Computes a row's reward for this step and adds it to the episode's.
    ///
    /// Returns false if a term is not finite; its value then counts as 0.
    fn evaluate(&self, view: &RowView<'_>, reward: &mut Reward) -> bool {
        let mut total = 0.0;
        let mut finite = true;
        for (i, (term, &weight)) in self.terms.iter().zip(&self.weights).enumerate() {
            let mut weighted = 0.0;
            if weight != 0.0 {
                weighted = term.value(view) * weight;
                if !weighted.is_finite() {
                    weighted = 0.0;
                    finite = false;
                }
            }
            let scaled = weighted * self.step_factor;
            total += scaled;
            reward.terms[i] = weighted;
            reward.episode_sums[i] += scaled;
        }
        reward.total = total;
        finite
    }

    /// Names the first term that is not finite for some row, with the rows.
    fn blame<'a>(&self, views: impl Iterator<Item = RowView<'a>> + Clone) -> Option<StepError> {
        let active = self.terms.iter().zip(&self.weights).zip(&self.names).filter(|((_, weight), _)| **weight != 0.0);
        for ((term, weight), name) in active {
            let mut rows: Vec<Row> =
                views.clone().filter(|view| !(term.value(view) * weight).is_finite()).map(|view| view.row()).collect();
            if !rows.is_empty() {
                rows.sort_unstable();
                let count = rows.len();
                rows.truncate(10);
                return Some(StepError::NotFinite { manager: "reward", term: name.clone(), count, first: rows });
            }
        }
        None
    }
}

/// Evaluates the reward of every row that took part in the step. What is not finite is an error, except in rows that have
/// diverged: whatever drove them there may well be too much for a reward, which then counts as 0.
pub(crate) fn compute_rewards(
    manager: Res<RewardManager>,
    workers: Res<Workers>,
    mut pace: Local<Pace>,
    mut status: ResMut<StepStatus>,
    mut rows: Query<(RowColumns, &Termination, &mut Reward)>,
) {
    use std::sync::atomic::{AtomicBool, Ordering};
    let finite = AtomicBool::new(true);
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (columns, terminations, mut rewards) in tables {
        workers.split(&mut pace, &mut rewards, |start, rewards| {
            for (i, reward) in rewards.iter_mut().enumerate() {
                if terminations[start + i].idle {
                    reward.total = 0.0;
                    reward.terms.fill(0.0);
                } else if !manager.evaluate(&columns.view(start + i), reward) && !terminations[start + i].diverged {
                    finite.store(false, Ordering::Relaxed);
                }
            }
        });
    }
    if !finite.into_inner() {
        let views: Vec<_> =
            rows.iter().filter(|(_, end, _)| !end.idle && !end.diverged).map(|row| row.0.view()).collect();
        if let Some(error) = manager.blame(views.iter().copied()) {
            status.fail(error);
        }
    }
}
