//! Metrics: numbers that are gathered over an episode and reported when it ends. They act on nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{Metrics, ResetRequested, Row, Termination};
use serde::{Deserialize, Serialize};

use crate::backend::{Feature, Output, SubstepState};
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, Entry};
use crate::error::StepError;
use crate::handles::StateSlice;
use crate::log::StepLog;
use crate::row_view::{RowColumns, RowView};
use crate::step::{ResettingRows, StepStatus, Timing};
use crate::workers::{Pace, Workers};

/// Computes one number per row.
///
/// Any `Fn(&RowView<'_>) -> f32` is a term.
pub trait MetricTerm: Send + Sync {
    /// The term's value in the state after the control step.
    fn value(&self, row: &RowView<'_>) -> f32;

    /// The same number from nothing but positions and velocities, for terms that can be sampled at the physics rate.
    fn at_physics_rate(&self) -> Option<&dyn SubstepMetric> {
        None
    }
}

impl<F: Fn(&RowView<'_>) -> f32 + Send + Sync> MetricTerm for F {
    fn value(&self, row: &RowView<'_>) -> f32 {
        self(row)
    }
}

/// Computes one number from a row's state within a control step, on the thread that steps the row.
pub trait SubstepMetric: Send + Sync {
    /// The value in the state after a physics step.
    fn value(&self, state: SubstepState<'_>) -> f32;
}

/// A boxed term from a closure; says the closure's type where inference cannot.
pub fn metric(term: impl Fn(&RowView<'_>) -> f32 + Send + Sync + 'static) -> Box<dyn MetricTerm> {
    Box::new(term)
}

/// A boxed term of positions and velocities, which may be sampled at either rate.
///
/// # Errors
/// The backend does not give out positions and velocities.
pub fn state_metric(
    context: &mut BuildContext<'_>,
    value: impl Fn(SubstepState<'_>) -> f32 + Send + Sync + 'static,
) -> Result<Box<dyn MetricTerm>, BuildError> {
    struct OfState<F> {
        value: F,
        qpos: StateSlice,
        qvel: StateSlice,
    }

    impl<F: Fn(SubstepState<'_>) -> f32 + Send + Sync> MetricTerm for OfState<F> {
        fn value(&self, row: &RowView<'_>) -> f32 {
            (self.value)(SubstepState { qpos: row.state(self.qpos), qvel: row.state(self.qvel) })
        }

        fn at_physics_rate(&self) -> Option<&dyn SubstepMetric> {
            Some(self)
        }
    }

    impl<F: Fn(SubstepState<'_>) -> f32 + Send + Sync> SubstepMetric for OfState<F> {
        fn value(&self, state: SubstepState<'_>) -> f32 {
            (self.value)(state)
        }
    }

    Ok(Box::new(OfState { value, qpos: context.output(Output::Qpos)?, qvel: context.output(Output::Qvel)? }))
}

/// What becomes of an episode's samples. Reported is the mean over the rows whose episode ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reduce {
    /// Their mean.
    #[default]
    Mean,
    /// The last one.
    Last,
    /// The greatest.
    Max,
    /// Their sum.
    Sum,
}

impl Reduce {
    fn add(self, gathered: &mut f32, samples: &mut u32, value: f32) {
        *gathered = match self {
            // Unlike `f32::max`, this does not lose NaN.
            Self::Max if *samples > 0 && (gathered.is_nan() || *gathered >= value) => *gathered,
            Self::Last | Self::Max => value,
            Self::Mean | Self::Sum => *gathered + value,
        };
        *samples += 1;
    }

    /// Adds `count` samples that were gathered elsewhere.
    fn merge(self, gathered: &mut f32, samples: &mut u32, other: f32, count: u32) {
        if count > 0 {
            self.add(gathered, samples, other);
            *samples += count - 1;
        }
    }

    fn finish(self, gathered: f32, samples: u32) -> f32 {
        if self == Self::Mean { gathered / samples as f32 } else { gathered }
    }
}

/// What the manager does with a metric term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// What becomes of the samples of an episode.
    pub reduce: Reduce,
    /// Whether a sample is taken after every physics step instead of after every control step. With several physics
    /// steps in a control step, only terms of [positions and velocities](MetricTerm::at_physics_rate) can be.
    pub per_substep: bool,
}

impl MetricOptions {
    /// An enabled term, sampled after every control step.
    #[must_use]
    pub fn reduce(reduce: Reduce) -> Self {
        Self { enabled: true, reduce, per_substep: false }
    }

    /// The same, sampled after every physics step.
    #[must_use]
    pub fn per_substep(self) -> Self {
        Self { per_substep: true, ..self }
    }
}

struct Slot {
    name: String,
    term: Box<dyn MetricTerm>,
    reduce: Reduce,
    /// Place among the terms that are sampled within the control step.
    substep: Option<usize>,
}

/// The metric terms in order.
#[derive(Resource)]
pub struct MetricsManager {
    slots: Vec<Slot>,
    /// Place of the first term in the log.
    log: usize,
    /// Bits of what the terms that are sampled within the control step have gathered in it, rows × those terms. Only the
    /// thread that steps a row touches the row's.
    within: Vec<AtomicU32>,
    substep_terms: usize,
}

impl MetricsManager {
    /// Builds the enabled terms for `rows` rows, whose control steps have `substeps` physics steps.
    ///
    /// # Errors
    /// A term cannot be built, or cannot be sampled as often as it is to be.
    pub fn build(
        entries: &IndexMap<String, Entry<MetricOptions, dyn MetricTerm>>,
        context: &mut BuildContext<'_>,
        log: &mut StepLog,
        rows: usize,
        substeps: u32,
    ) -> Result<Self, BuildError> {
        let mut slots = Vec::new();
        let mut substep_terms = 0;
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            context.enter("metrics", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("metric", name))?;
            let substep = (entry.options.per_substep && substeps > 1).then_some(substep_terms);
            if substep.is_some() {
                if term.at_physics_rate().is_none() {
                    return Err(ConfigError::Impossible {
                        path: format!("metrics.{name}.per_substep"),
                        message: format!(
                            "a control step has {substeps} physics steps, and within it the term has no value: it reads \
                             more than positions and velocities"
                        ),
                    }
                    .into());
                }
                context.require(Feature::SubstepFeedback).map_err(|error| error.in_term("metric", name))?;
                substep_terms += 1;
            }
            slots.push(Slot { name: name.clone(), term, reduce: entry.options.reduce, substep });
        }
        let log = log.register(slots.iter().map(|slot| format!("Episode_Metrics/{}", slot.name)));
        let within = (0..rows * substep_terms).map(|_| AtomicU32::new(0)).collect();
        Ok(Self { slots, log, within, substep_terms })
    }

    /// Names of the terms, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    /// Whether any term is sampled within the control step.
    pub(crate) fn needs_substeps(&self) -> bool {
        self.substep_terms > 0
    }

    /// Takes the samples of a row before physics step `substep`: what the one before it led to. What the last one of the
    /// control step leads to is sampled with the terms of the control rate.
    pub(crate) fn sample(&self, row: usize, substep: u32, state: SubstepState<'_>) {
        let Some(before) = substep.checked_sub(1) else { return };
        let within = &self.within[row * self.substep_terms..][..self.substep_terms];
        for slot in &self.slots {
            let (Some(place), Some(term)) = (slot.substep, slot.term.at_physics_rate()) else { continue };
            let (mut gathered, mut samples) = (0.0, before);
            if samples > 0 {
                gathered = f32::from_bits(within[place].load(Ordering::Relaxed));
            }
            slot.reduce.add(&mut gathered, &mut samples, term.value(state));
            within[place].store(gathered.to_bits(), Ordering::Relaxed);
        }
    }

    /// Adds the samples of a control step. Returns false if one is not finite; what was gathered then stays as it was.
    fn gather(&self, view: &RowView<'_>, substeps: u32, metrics: &mut Metrics) -> bool {
        let mut finite = true;
        for (i, slot) in self.slots.iter().enumerate() {
            let (mut gathered, mut samples) = (metrics.values[i], metrics.samples[i]);
            if let Some(place) = slot.substep {
                let within = &self.within[view.row().index() * self.substep_terms + place];
                let within = f32::from_bits(within.load(Ordering::Relaxed));
                slot.reduce.merge(&mut gathered, &mut samples, within, substeps - 1);
            }
            slot.reduce.add(&mut gathered, &mut samples, slot.term.value(view));
            if gathered.is_finite() {
                (metrics.values[i], metrics.samples[i]) = (gathered, samples);
            } else {
                finite = false;
            }
        }
        finite
    }

    /// Names the first term that is not finite for some row, with the rows.
    fn blame<'a>(
        &self,
        rows: impl Iterator<Item = (RowView<'a>, &'a Metrics)> + Clone,
        substeps: u32,
    ) -> Option<StepError> {
        self.slots.iter().enumerate().find_map(|(i, slot)| {
            let bad = rows.clone().filter(|(view, metrics)| {
                let mut again = (*metrics).clone();
                self.gather(view, substeps, &mut again);
                again.samples[i] == metrics.samples[i]
            });
            let mut first: Vec<Row> = bad.map(|(view, _)| view.row()).collect();
            let count = first.len();
            first.sort_unstable();
            first.truncate(10);
            (count > 0).then(|| StepError::NotFinite { manager: "metric", term: slot.name.clone(), count, first })
        })
    }
}

/// Samples every row that took part in the step and whose physics did not fail.
pub(crate) fn compute_metrics(
    manager: Res<MetricsManager>,
    timing: Res<Timing>,
    workers: Res<Workers>,
    mut pace: Local<Pace>,
    mut status: ResMut<StepStatus>,
    mut rows: Query<(RowColumns, &Termination, &mut Metrics)>,
) {
    if manager.slots.is_empty() {
        return;
    }
    let takes_part = |termination: &Termination| !termination.idle && !termination.diverged;
    let finite = AtomicBool::new(true);
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (columns, terminations, mut metrics) in tables {
        workers.split(&mut pace, &mut metrics, |start, metrics| {
            for (i, metrics) in metrics.iter_mut().enumerate() {
                if takes_part(&terminations[start + i])
                    && !manager.gather(&columns.view(start + i), timing.substeps, metrics)
                {
                    finite.store(false, Ordering::Relaxed);
                }
            }
        });
    }
    if !finite.into_inner() {
        let views: Vec<_> = rows
            .iter()
            .filter(|(_, termination, _)| takes_part(termination))
            .map(|(columns, _, metrics)| (columns.view(), metrics))
            .collect();
        if let Some(error) = manager.blame(views.iter().copied(), timing.substeps) {
            status.fail(error);
        }
    }
}

/// Reports the episodes of the rows being reset, and forgets their samples. Rows without samples have nothing to report.
pub(crate) fn reset_metrics(
    manager: Res<MetricsManager>,
    resetting: Res<ResettingRows>,
    mut log: ResMut<StepLog>,
    mut rows: Query<&mut Metrics, With<ResetRequested>>,
) {
    if manager.slots.is_empty() {
        return;
    }
    for (i, slot) in manager.slots.iter().enumerate() {
        let ended = resetting.entities.iter().filter_map(|&row| rows.get(row).ok());
        let sampled = ended.filter(|metrics| metrics.samples[i] > 0);
        log.set_mean(manager.log + i, sampled.map(|metrics| slot.reduce.finish(metrics.values[i], metrics.samples[i])));
    }
    for mut metrics in &mut rows {
        metrics.clear();
    }
}
