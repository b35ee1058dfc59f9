//! Curricula: what changes as training goes on.
//!
//! A term looks at the episodes that a reset ends and at the number of control steps taken, and changes reward weights
//! and [tunable ranges](TunableRange). It runs when rows are reset, before anything of them is; only if its
//! [`every_step`](CurriculumOptions::every_step) is set, also at the beginning of every control step, whether or not rows
//! were reset.

mod penalty_scaling;
mod schedule;

pub use penalty_scaling::PenaltyScaling;
pub use schedule::{RangeSchedule, RangeStage, RewardWeightSchedule, WeightStage};

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{AwaitingReset, ResetRequested, Reward, Termination};
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::Entry;
use crate::error::StepError;
use crate::log::StepLog;
use crate::managers::reward::RewardManager;
use crate::reset::has_ended;
use crate::row_view::{RowColumns, RowView};
use crate::step::{ResettingRows, RowEntities, StepCounter, StepStatus};
#[cfg(doc)]
use crate::tunable::TunableRange;

/// Changes reward weights and ranges as training goes on.
///
/// A term has no state but the numbers that it reports, so a snapshot of an environment holds all of it.
pub trait CurriculumTerm: Send + Sync {
    /// Names of the numbers that the term keeps, reported as `Curriculum/<term>/<name>`; as `Curriculum/<term>` if the
    /// name is empty.
    fn keys(&self) -> &[&'static str];

    /// Gives the numbers their first values, and makes what changes are due before the first step. Called once, when the
    /// environment is built.
    fn start(&self, values: &mut [f64], rewards: &mut RewardManager);

    /// Makes the changes that are due. They take effect at the next control step; at this one, if it is just beginning.
    fn update(&self, values: &mut [f64], progress: &Progress<'_>, rewards: &mut RewardManager);
}

/// An episode, at the reset that ends it.
#[derive(Debug, Clone, Copy)]
pub struct Episode<'a> {
    /// The row in its last state. Its clock tells the length of the episode.
    pub view: RowView<'a>,
    /// Whether the episode came to an end. It did not if the row had none yet, or is reset by hand in the middle of one.
    pub ended: bool,
    /// Why the episode ended. In [next-step mode](crate::step::AutoReset::NextStep) the reasons are no longer known.
    pub termination: Termination,
    /// Each reward term's value × weight × control period, summed over the episode.
    pub reward_sums: &'a [f32],
}

/// How far training has come.
pub struct Progress<'a> {
    /// Control steps completed since the environment was built.
    pub steps: u64,
    /// Number of rows of the environment.
    pub rows: usize,
    resetting: Option<(&'a [Entity], &'a Episodes<'a, 'a>)>,
}

type Episodes<'w, 's> =
    Query<'w, 's, (RowColumns, &'static Termination, &'static Reward, Has<AwaitingReset>), With<ResetRequested>>;

impl Progress<'_> {
    /// The episodes of the rows being reset, in ascending order of rows. None at the beginning of a control step.
    pub fn episodes(&self) -> impl Iterator<Item = Episode<'_>> {
        self.resetting.into_iter().flat_map(|(entities, query)| {
            entities.iter().filter_map(|&entity| query.get(entity).ok()).map(
                |(columns, termination, reward, awaiting)| {
                    let view = columns.view();
                    Episode {
                        view,
                        ended: has_ended(view.clock(), termination, awaiting),
                        termination: *termination,
                        reward_sums: &reward.episode_sums,
                    }
                },
            )
        })
    }
}

/// What the manager does with a curriculum term.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurriculumOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// Whether the term runs at the beginning of every control step too, and not only when rows are reset.
    pub every_step: bool,
}

impl CurriculumOptions {
    /// A term that runs when rows are reset.
    #[must_use]
    pub fn at_resets() -> Self {
        Self { enabled: true, every_step: false }
    }

    /// A term that runs in every control step.
    #[must_use]
    pub fn every_step() -> Self {
        Self { enabled: true, every_step: true }
    }
}

struct Slot {
    name: String,
    term: Box<dyn CurriculumTerm>,
    every_step: bool,
    values: Vec<f64>,
    /// Place of the first value in the log.
    log: usize,
}

/// The curriculum terms in order, with the numbers that they keep.
#[derive(Resource)]
pub struct CurriculumManager {
    slots: Vec<Slot>,
}

impl CurriculumManager {
    /// Builds the enabled terms, and has them start.
    ///
    /// # Errors
    /// A term cannot be built, or starts with a number that is not finite.
    pub fn build(
        entries: &IndexMap<String, Entry<CurriculumOptions, dyn CurriculumTerm>>,
        context: &mut BuildContext<'_>,
        log: &mut StepLog,
        rewards: &mut RewardManager,
    ) -> Result<Self, BuildError> {
        let mut slots = Vec::new();
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            context.enter("curriculum", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("curriculum", name))?;
            let keys = term.keys().iter().map(|key| match *key {
                "" => format!("Curriculum/{name}"),
                key => format!("Curriculum/{name}/{key}"),
            });
            let log = log.register(keys);
            let values = vec![0.0; term.keys().len()];
            let mut slot = Slot { name: name.clone(), term, every_step: entry.options.every_step, values, log };
            slot.term.start(&mut slot.values, rewards);
            slot.check(rewards).map_err(|error| BuildError::Start(error.to_string()))?;
            slots.push(slot);
        }
        Ok(Self { slots })
    }

    /// Names of the terms with the numbers that they keep, in order.
    pub fn terms(&self) -> impl Iterator<Item = (&str, &[f64])> {
        self.slots.iter().map(|slot| (slot.name.as_str(), slot.values.as_slice()))
    }

    /// The numbers that all terms keep.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.slots.iter_mut().flat_map(|slot| &mut slot.values)
    }
}

impl Slot {
    fn run(
        &mut self,
        progress: &Progress<'_>,
        rewards: &mut RewardManager,
        log: &mut StepLog,
    ) -> Result<(), StepError> {
        self.term.update(&mut self.values, progress, rewards);
        for (i, value) in self.values.iter().enumerate() {
            log.set(self.log + i, *value);
        }
        self.check(rewards)
    }

    /// Everything that a term may have changed has to be a number.
    fn check(&self, rewards: &RewardManager) -> Result<(), StepError> {
        let values = self.term.keys().iter().zip(&self.values).map(|(key, value)| (*key, *value));
        let weights =
            rewards.names().iter().zip(&rewards.weights).map(|(name, weight)| (name.as_str(), f64::from(*weight)));
        match values.chain(weights).find(|(_, value)| !value.is_finite()) {
            None => Ok(()),
            Some((what, value)) => Err(StepError::Curriculum { term: self.name.clone(), what: what.to_owned(), value }),
        }
    }
}

/// Runs all terms on the rows being reset.
pub(crate) fn update_at_reset(
    mut manager: ResMut<CurriculumManager>,
    mut rewards: ResMut<RewardManager>,
    mut log: ResMut<StepLog>,
    mut status: ResMut<StepStatus>,
    counter: Res<StepCounter>,
    entities: Res<RowEntities>,
    resetting: Res<ResettingRows>,
    rows: Episodes,
) {
    let progress =
        Progress { steps: counter.steps, rows: entities.0.len(), resetting: Some((&resetting.entities, &rows)) };
    for slot in &mut manager.slots {
        if let Err(error) = slot.run(&progress, &mut rewards, &mut log) {
            status.fail(error);
        }
    }
}

/// Runs the terms that ask for it at the beginning of a control step.
pub(crate) fn update_every_step(
    mut manager: ResMut<CurriculumManager>,
    mut rewards: ResMut<RewardManager>,
    mut log: ResMut<StepLog>,
    mut status: ResMut<StepStatus>,
    counter: Res<StepCounter>,
    entities: Res<RowEntities>,
) {
    // The step that is beginning has been counted.
    let progress = Progress { steps: counter.steps.saturating_sub(1), rows: entities.0.len(), resetting: None };
    for slot in manager.slots.iter_mut().filter(|slot| slot.every_step) {
        if let Err(error) = slot.run(&progress, &mut rewards, &mut log) {
            status.fail(error);
        }
    }
}
