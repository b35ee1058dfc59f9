//! The observation systems, and the buffers that the caller reads.

use std::sync::atomic::{AtomicBool, Ordering};

use bevy_ecs::prelude::*;
use manege_components::{Observation, ObservationHistory, ResetRequested, Row, Streams, Termination};

use super::{Group, ObservationManager};
use crate::row_view::RowColumns;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};
use crate::step::{StepCounter, StepStatus};
use crate::workers::{Pace, Workers};

/// One contiguous buffer per group, rows × columns.
#[derive(Debug, Clone, Default)]
struct GroupBuffers(Vec<Vec<f32>>);

impl GroupBuffers {
    fn new(manager: &ObservationManager, rows: usize) -> Self {
        Self(manager.groups().map(|group| vec![0.0; rows * group.width()]).collect())
    }

    fn copy(&mut self, groups: &[Group], row: Row, observation: &Observation) {
        for (buffer, group) in self.0.iter_mut().zip(groups) {
            buffer[row.index() * group.width()..][..group.width()]
                .copy_from_slice(&observation.values[group.columns.clone()]);
        }
    }

    /// Copies the observations of `rows`, split over threads if these are all rows in order, as they are unless the host has
    /// moved some to another table.
    fn copy_all(
        &mut self,
        groups: &[Group],
        rows: &[Row],
        observations: &[Observation],
        (workers, pace): (&Workers, &mut [Pace]),
    ) {
        let in_order = rows.iter().enumerate().all(|(i, row)| row.index() == i);
        for ((buffer, group), pace) in self.0.iter_mut().zip(groups).zip(pace) {
            let width = group.width();
            if in_order && buffer.len() == rows.len() * width {
                workers.split_wide(pace, buffer, width, |start, piece| {
                    for (to, observation) in piece.chunks_exact_mut(width).zip(&observations[start..]) {
                        to.copy_from_slice(&observation.values[group.columns.clone()]);
                    }
                });
            } else {
                for (row, observation) in rows.iter().zip(observations) {
                    buffer[row.index() * width..][..width].copy_from_slice(&observation.values[group.columns.clone()]);
                }
            }
        }
    }
}

/// Observations of all rows, one contiguous buffer per group.
#[derive(Resource, Debug, Clone, Default)]
pub struct ObservationBuffers(GroupBuffers);

/// Last observations of the episodes that ended in the last control step. The values of other rows mean nothing.
#[derive(Resource, Debug, Clone, Default)]
pub struct FinalObservations(GroupBuffers);

impl Saved for GroupBuffers {
    fn save(&self, to: &mut Writer) {
        self.0.iter().for_each(|group| to.put_all(group));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.0.iter_mut().try_for_each(|group| from.fill(group))
    }
}

impl Saved for ObservationBuffers {
    fn save(&self, to: &mut Writer) {
        self.0.save(to);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.0.load(from)
    }
}

impl Saved for FinalObservations {
    fn save(&self, to: &mut Writer) {
        self.0.save(to);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.0.load(from)
    }
}

impl ObservationBuffers {
    pub(crate) fn new(manager: &ObservationManager, rows: usize) -> Self {
        Self(GroupBuffers::new(manager, rows))
    }

    /// A group's observations, rows × columns.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn group(&self, group: usize) -> &[f32] {
        &self.0.0[group]
    }
}

impl FinalObservations {
    pub(crate) fn new(manager: &ObservationManager, rows: usize) -> Self {
        Self(GroupBuffers::new(manager, rows))
    }

    /// A group's final observations, rows × columns.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn group(&self, group: usize) -> &[f32] {
        &self.0.0[group]
    }
}

/// Observes every row that took part in the step, and keeps what rows whose episode is over saw last.
pub(crate) fn compute_observations(
    manager: Res<ObservationManager>,
    workers: Res<Workers>,
    mut observing: Local<Pace>,
    mut copying: Local<Vec<Pace>>,
    counter: Res<StepCounter>,
    mut status: ResMut<StepStatus>,
    mut buffers: ResMut<ObservationBuffers>,
    mut finals: ResMut<FinalObservations>,
    mut rows: Query<(RowColumns, &Row, &Termination, &mut Observation, &mut ObservationHistory)>,
) {
    let fit = AtomicBool::new(true);
    let Ok(tables) = rows.contiguous_iter_mut() else { return };
    copying.resize(manager.groups.len(), Pace::default());
    for (columns, _, terminations, mut observations, mut memories) in tables {
        workers.split2(&mut observing, &mut observations, &mut memories, |start, observations, memories| {
            for (i, (observation, memory)) in observations.iter_mut().zip(memories).enumerate() {
                if !terminations[start + i].idle
                    && !manager.observe(&columns.view(start + i), observation, memory, counter.steps)
                {
                    fit.store(false, Ordering::Relaxed);
                }
            }
        });
    }
    if !fit.into_inner() {
        let took_part = rows.iter().filter(|(_, _, termination, ..)| !termination.idle);
        let observed: Vec<_> =
            took_part.map(|(columns, _, _, observation, memory)| (columns.view(), observation, memory)).collect();
        if let Err(error) = manager.report(observed.iter().copied()) {
            return status.fail(error);
        }
    }
    let Ok(tables) = rows.contiguous_iter() else { return };
    for (_, indices, _, observations, _) in tables {
        buffers.0.copy_all(&manager.groups, indices, observations, (&workers, &mut copying));
    }
    for (_, row, _, observation, _) in rows.iter().filter(|(_, _, termination, ..)| termination.done()) {
        finals.0.copy(&manager.groups, *row, observation);
    }
}

/// Forgets what the rows being reset remember.
pub(crate) fn reset_observation_history(
    manager: Res<ObservationManager>,
    mut rows: Query<(&Streams, &mut ObservationHistory), With<ResetRequested>>,
) {
    for (streams, mut memory) in &mut rows {
        manager.restart(streams, &mut memory);
    }
}

/// Makes the first observation of the rows being reset.
pub(crate) fn compute_reset_observations(
    manager: Res<ObservationManager>,
    counter: Res<StepCounter>,
    mut status: ResMut<StepStatus>,
    mut buffers: ResMut<ObservationBuffers>,
    mut rows: Query<(RowColumns, &Row, &mut Observation, &mut ObservationHistory), With<ResetRequested>>,
) {
    let mut fit = true;
    for (columns, row, mut observation, mut memory) in &mut rows {
        fit &= manager.observe(&columns.view(), &mut observation, &mut memory, counter.steps);
        buffers.0.copy(&manager.groups, *row, &observation);
    }
    if !fit {
        let observed: Vec<_> =
            rows.iter().map(|(columns, _, observation, memory)| (columns.view(), observation, memory)).collect();
        if let Err(error) = manager.report(observed.iter().copied()) {
            status.fail(error);
        }
    }
}
