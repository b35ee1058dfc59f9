//! Terminations: why an episode ends, as a failure or as a time-out.

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use manege_components::{MAX_TERMINATION_TERMS, Termination};
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::Entry;
use crate::row_view::{RowColumns, RowView};
use crate::workers::{Pace, Workers};

/// Decides whether a row's episode is over.
///
/// Any `Fn(&RowView<'_>) -> bool` is a term.
pub trait TerminationTerm: Send + Sync {
    /// Whether the term fires in the state after the control step.
    fn fires(&self, row: &RowView<'_>) -> bool;
}

impl<F: Fn(&RowView<'_>) -> bool + Send + Sync> TerminationTerm for F {
    fn fires(&self, row: &RowView<'_>) -> bool {
        self(row)
    }
}

/// A boxed term from a closure; says the closure's type where inference cannot.
pub fn termination(term: impl Fn(&RowView<'_>) -> bool + Send + Sync + 'static) -> Box<dyn TerminationTerm> {
    Box::new(term)
}

/// What the manager does with a termination term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminationOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// Whether the term cuts the episode off (`truncated`) instead of ending it in a terminal state (`terminated`).
    pub time_out: bool,
}

impl TerminationOptions {
    /// A term that ends the episode in a terminal state.
    #[must_use]
    pub fn failure() -> Self {
        Self { enabled: true, time_out: false }
    }

    /// A term that cuts the episode off.
    #[must_use]
    pub fn time_out() -> Self {
        Self { enabled: true, time_out: true }
    }
}

/// The termination terms in order.
#[derive(Resource)]
pub struct TerminationManager {
    names: Vec<String>,
    terms: Vec<Box<dyn TerminationTerm>>,
    /// One bit per term that is a time-out.
    time_outs: u64,
}

impl TerminationManager {
    /// Builds the enabled terms.
    ///
    /// # Errors
    /// A term cannot be built, or there are more than [`MAX_TERMINATION_TERMS`].
    pub fn build(
        entries: &IndexMap<String, Entry<TerminationOptions, dyn TerminationTerm>>,
        context: &mut BuildContext<'_>,
    ) -> Result<Self, BuildError> {
        let mut manager = Self { names: Vec::new(), terms: Vec::new(), time_outs: 0 };
        let enabled = entries.iter().filter(|(_, entry)| entry.options.enabled);
        let count = enabled.clone().count();
        if count > MAX_TERMINATION_TERMS {
            return Err(BuildError::TooManyTerms {
                manager: "the termination manager",
                count,
                limit: MAX_TERMINATION_TERMS,
            });
        }
        for (i, (name, entry)) in enabled.enumerate() {
            context.enter("terminations", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("termination", name))?;
            manager.names.push(name.clone());
            manager.terms.push(term);
            manager.time_outs |= u64::from(entry.options.time_out) << i;
            if name == "time_out" && !entry.options.time_out {
                tracing::warn!("termination `time_out` counts as a failure; set terminations.time_out.time_out = true");
            }
        }
        Ok(manager)
    }

    /// Names of the terms, in order.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the term at position `term` is a time-out.
    #[must_use]
    pub fn is_time_out(&self, term: usize) -> bool {
        self.time_outs >> term & 1 == 1
    }

    fn evaluate(&self, view: &RowView<'_>, termination: &mut Termination) {
        let fired = self.terms.iter().enumerate().fold(0, |bits, (i, term)| bits | u64::from(term.fires(view)) << i);
        termination.terms = fired;
        termination.truncated = fired & self.time_outs != 0;
        termination.terminated = fired & !self.time_outs != 0 || termination.diverged;
    }
}

/// Evaluates the terminations of every row that took part in the step.
pub(crate) fn compute_terminations(
    manager: Res<TerminationManager>,
    workers: Res<Workers>,
    mut pace: Local<Pace>,
    mut rows: Query<(RowColumns, &mut Termination)>,
) {
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    for (columns, mut terminations) in tables {
        workers.split(&mut pace, &mut terminations, |start, terminations| {
            for (i, termination) in terminations.iter_mut().enumerate() {
                if termination.idle {
                    // Which terms fired stays: the reset that follows reports it.
                    let terms = termination.terms;
                    *termination = Termination { idle: true, terms, ..Termination::default() };
                } else {
                    manager.evaluate(&columns.view(start + i), termination);
                }
            }
        });
    }
}
