//! Observations: groups of terms, each through the same pipeline.
//!
//! Every term goes through compute → noise → clip → scale → finiteness → delay → history → concatenation, in this order;
//! noise is added to the unscaled value. Only the schedules advance delay lines and histories: reading an observation
//! any number of times changes nothing.

mod buffers;
mod lines;
mod noise;
mod options;

pub use buffers::{FinalObservations, ObservationBuffers};
pub(crate) use buffers::{compute_observations, compute_reset_observations, reset_observation_history};
pub use noise::{Noise, NoiseOperation};
pub use options::{Delay, GroupOptions, NanPolicy, ObservationOptions};

use std::any::TypeId;
use std::ops::Range;

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use lines::Lines;
use manege_components::{HistoryWidths, Observation, ObservationHistory, StreamId, Streams};

use crate::build::{BuildContext, BuildError};
use crate::config::{Entry, PerColumn};
use crate::error::StepError;
use crate::row_view::RowView;

/// Computes a part of what the policy sees.
pub trait ObservationTerm: Send + Sync {
    /// Number of values.
    fn width(&self) -> usize;

    /// Writes the values of one row into `out`.
    fn compute(&self, row: &RowView<'_>, out: &mut [f32]);
}

/// A boxed term of `width` values from a closure.
pub fn observation(
    width: usize,
    compute: impl Fn(&RowView<'_>, &mut [f32]) + Send + Sync + 'static,
) -> Box<dyn ObservationTerm> {
    struct FromClosure<F>(usize, F);

    impl<F: Fn(&RowView<'_>, &mut [f32]) + Send + Sync> ObservationTerm for FromClosure<F> {
        fn width(&self) -> usize {
            self.0
        }

        fn compute(&self, row: &RowView<'_>, out: &mut [f32]) {
            (self.1)(row, out);
        }
    }

    Box::new(FromClosure(width, compute))
}

/// A group as configured.
#[derive(Debug, Clone)]
pub struct GroupConfig {
    /// What concerns all terms.
    pub options: GroupOptions,
    /// The terms, in order.
    pub terms: IndexMap<String, Entry<ObservationOptions, dyn ObservationTerm>>,
}

/// A term that one or more groups use.
struct Source {
    kind: TypeId,
    params: toml::Table,
    term: Box<dyn ObservationTerm>,
    raw: Range<usize>,
}

/// A term of a group.
pub struct GroupTerm {
    name: String,
    /// Columns in the group.
    columns: Range<usize>,
    /// What the source computed, in [`Observation::raw`].
    raw: Range<usize>,
    noise: Option<Noise>,
    bias: Range<usize>,
    stream: StreamId,
    clip: Option<[f32; 2]>,
    scale: PerColumn,
    lines: Option<Lines>,
}

impl GroupTerm {
    /// The term's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The term's columns in the group.
    #[must_use]
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Noise, clip and scale on a frame.
    fn frame(&self, raw: &[f32], out: &mut [f32], view: &RowView<'_>, bias: &[f32]) {
        out.copy_from_slice(&raw[self.raw.clone()]);
        if let Some(noise) = &self.noise {
            noise.apply(out, &bias[self.bias.clone()], &view.streams(), self.stream, view.clock().step);
        }
        if let Some([low, high]) = self.clip {
            // `clamp` keeps NaN, which the finiteness scan must see.
            out.iter_mut().for_each(|value| *value = value.clamp(low, high));
        }
        match &self.scale {
            PerColumn::All(1.0) => {}
            PerColumn::All(scale) => out.iter_mut().for_each(|value| *value *= scale),
            PerColumn::Each(scales) => out.iter_mut().zip(scales).for_each(|(value, scale)| *value *= scale),
        }
    }
}

/// A group of terms.
pub struct Group {
    name: String,
    /// Columns in [`Observation::values`].
    columns: Range<usize>,
    terms: Vec<GroupTerm>,
    policy: NanPolicy,
    /// Whether any term looks back; then each frame is scanned before it is remembered.
    looks_back: bool,
}

impl Group {
    /// The group's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group's columns in [`Observation::values`].
    #[must_use]
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Number of columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The terms, in order.
    pub fn terms(&self) -> impl Iterator<Item = &GroupTerm> {
        self.terms.iter()
    }
}

/// The observation groups in order.
#[derive(Resource)]
pub struct ObservationManager {
    groups: Vec<Group>,
    sources: Vec<Source>,
    widths: HistoryWidths,
    seed: u64,
}

impl ObservationManager {
    /// Builds the enabled terms of every group. Without `corruption` no group gets noise. `seed` keys the lags that rows
    /// share.
    ///
    /// # Errors
    /// A term cannot be built, or its options make no sense.
    pub fn build(
        groups: &IndexMap<String, GroupConfig>,
        context: &mut BuildContext<'_>,
        corruption: bool,
        seed: u64,
    ) -> Result<Self, BuildError> {
        let mut manager = Self { groups: Vec::new(), sources: Vec::new(), widths: HistoryWidths::default(), seed };
        for (name, config) in groups {
            config.options.validate(name)?;
            let start = manager.width();
            let mut group = Group {
                name: name.clone(),
                columns: start..start,
                terms: Vec::new(),
                policy: config.options.nan_policy,
                looks_back: false,
            };
            for (term, entry) in config.terms.iter().filter(|(_, entry)| entry.options.enabled) {
                context.enter(&format!("observations.{name}.terms"), term);
                let noisy = corruption && config.options.corruption;
                let built = manager
                    .build_term(&group, &config.options, term, entry, noisy, context)
                    .map_err(|error| error.in_term("observation", &format!("{name}/{term}")))?;
                group.looks_back |= built.lines.is_some();
                group.columns.end += built.columns.len();
                group.terms.push(built);
            }
            manager.groups.push(group);
        }
        Ok(manager)
    }

    fn build_term(
        &mut self,
        group: &Group,
        group_options: &GroupOptions,
        name: &str,
        entry: &Entry<ObservationOptions, dyn ObservationTerm>,
        noisy: bool,
        context: &mut BuildContext<'_>,
    ) -> Result<GroupTerm, BuildError> {
        let raw = self.source(entry, context)?;
        let width = raw.len();
        let options = &entry.options;
        options.validate(width)?;
        let stream = StreamId::new("observation/").join(&group.name).join("/").join(name);
        let noise = options.noise.clone().filter(|_| noisy);
        let bias_width = if noise.as_ref().is_some_and(Noise::is_bias) { width } else { 0 };
        let bias = self.widths.bias..self.widths.bias + bias_width;
        self.widths.bias = bias.end;

        let history_length = group_options.history_length.unwrap_or(options.history_length) as usize;
        let lines = (history_length > 0 || options.delay.is_some()).then(|| {
            let delay = options.delay.clone().map(|delay| {
                let start = self.widths.delay;
                self.widths.delay += (delay.max_lag as usize + 1) * width;
                (delay, start..self.widths.delay)
            });
            let history = self.widths.history..self.widths.history + history_length * width;
            self.widths.history = history.end;
            self.widths.terms += 1;
            Lines { index: self.widths.terms - 1, delay, history, stream: stream.join("/lag") }
        });
        let start = group.width();
        Ok(GroupTerm {
            name: name.to_owned(),
            columns: start..start + width * history_length.max(1),
            raw,
            noise,
            bias,
            stream,
            clip: options.clip,
            scale: options.scale.clone(),
            lines,
        })
    }

    /// Where the term's values are computed: once for all groups that use the same term with the same parameters.
    fn source(
        &mut self,
        entry: &Entry<ObservationOptions, dyn ObservationTerm>,
        context: &mut BuildContext<'_>,
    ) -> Result<Range<usize>, BuildError> {
        let (kind, params) = (entry.term.params_type(), entry.term.params()?);
        if let Some(known) = self.sources.iter().find(|source| source.kind == kind && source.params == params) {
            return Ok(known.raw.clone());
        }
        let term = entry.term.build(context)?;
        let start = self.raw_width();
        let raw = start..start + term.width();
        self.sources.push(Source { kind, params, term, raw: raw.clone() });
        Ok(raw)
    }

    /// The groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// Columns of all groups together.
    #[must_use]
    pub fn width(&self) -> usize {
        self.groups.last().map_or(0, |group| group.columns.end)
    }

    /// Values that the terms compute, each counted once.
    #[must_use]
    pub fn raw_width(&self) -> usize {
        self.sources.last().map_or(0, |source| source.raw.end)
    }

    pub(crate) fn history_widths(&self) -> HistoryWidths {
        self.widths.clone()
    }

    /// Forgets what a row remembers, and draws what is held over the episode that begins.
    fn restart(&self, streams: &Streams, memory: &mut ObservationHistory) {
        memory.clear();
        for term in self.groups.iter().flat_map(|group| &group.terms) {
            if let Some(noise) = &term.noise {
                let draws = streams.draws(term.stream.join("/bias"), 0);
                noise.draw_bias(&mut memory.bias[term.bias.clone()], draws);
            }
            if let Some(lines) = &term.lines {
                lines.restart(streams, memory);
            }
        }
    }

    /// Makes one row's observation and remembers it. Returns false if there is something to [`report`](Self::report).
    fn observe(
        &self,
        view: &RowView<'_>,
        observation: &mut Observation,
        memory: &mut ObservationHistory,
        global_step: u64,
    ) -> bool {
        let Observation { values, raw } = observation;
        for source in &self.sources {
            source.term.compute(view, &mut raw[source.raw.clone()]);
        }
        let mut fit = true;
        for group in &self.groups {
            let out = &mut values[group.columns.clone()];
            for term in &group.terms {
                let out = &mut out[term.columns.clone()];
                let width = term.raw.len();
                term.frame(raw, &mut out[..width], view, &memory.bias);
                if group.looks_back && !group.policy.admit(&mut out[..width]) {
                    // Even if this step fails: the steps that would look back on it must not.
                    sanitize(&mut out[..width]);
                    fit = false;
                }
                if let Some(lines) = &term.lines {
                    let (row, global) = (view.streams(), Streams::global(self.seed));
                    let shared = lines.delay.as_ref().is_some_and(|(delay, _)| !delay.per_row);
                    let lags = if shared { (&global, global_step) } else { (&row, u64::from(view.clock().step)) };
                    lines.advance(width, out, memory, lags);
                }
            }
            if !group.looks_back {
                fit &= group.policy.admit(out);
            }
        }
        fit
    }

    /// Names the terms that are not finite in any of the rows, by making the frame of every term again: the first one in
    /// an error if its group wants one, else all of them in warnings.
    fn report<'a>(
        &self,
        rows: impl Iterator<Item = (RowView<'a>, &'a Observation, &'a ObservationHistory)> + Clone,
    ) -> Result<(), StepError> {
        let mut frame = vec![0.0; self.raw_width()];
        let reported = |group: &&Group| matches!(group.policy, NanPolicy::Error | NanPolicy::Warn);
        for group in self.groups.iter().filter(reported) {
            for term in &group.terms {
                let frame = &mut frame[..term.raw.len()];
                let mut bad = Vec::new();
                for (view, observation, memory) in rows.clone() {
                    term.frame(&observation.raw, frame, &view, &memory.bias);
                    if !all_finite(frame) {
                        bad.push(view.row());
                    }
                }
                if bad.is_empty() {
                    continue;
                }
                bad.sort_unstable();
                let count = bad.len();
                bad.truncate(10);
                let term = format!("{}/{}", group.name, term.name);
                if group.policy == NanPolicy::Error {
                    return Err(StepError::NotFinite { manager: "observation", term, count, first: bad });
                }
                tracing::warn!(term, rows = count, first = ?bad, "an observation is not finite and becomes 0");
            }
        }
        Ok(())
    }
}

impl NanPolicy {
    /// Deals with values that are not finite. Returns false if there were any to report.
    fn admit(self, values: &mut [f32]) -> bool {
        if self == Self::Off || all_finite(values) {
            return true;
        }
        if self != Self::Error {
            sanitize(values);
        }
        self == Self::Sanitize
    }
}

/// Makes 0 of what is not finite.
fn sanitize(values: &mut [f32]) {
    values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
}

/// Whether every value is finite. Written so that it compiles to vector code: 0 × x is 0 unless x is not finite.
fn all_finite(values: &[f32]) -> bool {
    let mut lanes = [0.0f32; 8];
    let mut chunks = values.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += 0.0 * value;
        }
    }
    let rest = chunks.remainder().iter().fold(0.0, |sum, value| sum + 0.0 * value);
    lanes.iter().sum::<f32>() + rest == 0.0
}
