//! Recorders: what watches the environment and keeps what it sees.

use bevy_ecs::prelude::*;
use manege_components::{AwaitingReset, EpisodeClock, ResetRequested, Termination};

use crate::buffers::StepBuffers;
use crate::error::StepError;
use crate::managers::observation::{FinalObservations, ObservationBuffers, ObservationManager};
use crate::reset::has_ended;
use crate::step::{ResettingRows, RowEntities, StepCounter, StepStatus};

/// What a recorder may fail with.
pub type RecorderError = Box<dyn std::error::Error + Send + Sync>;

/// Watches an environment at four points. Each hook does nothing unless it is written.
///
/// A failure is reported by the step or reset in which it happened, which is complete all the same.
pub trait RecorderTerm: Send + Sync {
    /// Before anything of a reset happens: `rows` are the rows, of those that will be reset, whose episode has ended, in
    /// ascending order. Not called if there are none.
    ///
    /// Everything still describes the end of the episode. In the mode that resets within the step, these rows are over when
    /// [`post_step`](Self::post_step) is called.
    ///
    /// # Errors
    /// What the recorder fails with.
    fn pre_reset(&mut self, _view: &RecorderView<'_>, _rows: &[u32]) -> Result<(), RecorderError> {
        Ok(())
    }

    /// After a reset: `rows` have the first observation of their new episode. They are ascending, and contain rows
    /// that were reset in the middle of an episode.
    ///
    /// # Errors
    /// What the recorder fails with.
    fn post_reset(&mut self, _view: &RecorderView<'_>, _rows: &[u32]) -> Result<(), RecorderError> {
        Ok(())
    }

    /// At the end of every control step.
    ///
    /// # Errors
    /// What the recorder fails with.
    fn post_step(&mut self, _view: &RecorderView<'_>) -> Result<(), RecorderError> {
        Ok(())
    }

    /// Once, when recording ends: whatever is not on disk yet should be afterwards.
    ///
    /// # Errors
    /// What the recorder fails with.
    fn close(&mut self) -> Result<(), RecorderError> {
        Ok(())
    }
}

/// What recorders see: the whole world, and the rows' parts by row.
#[derive(Clone, Copy)]
pub struct RecorderView<'w> {
    world: &'w World,
}

impl<'w> RecorderView<'w> {
    /// The world, with the managers as resources.
    #[must_use]
    pub fn world(&self) -> &'w World {
        self.world
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.world.resource::<RowEntities>().0.len()
    }

    /// Control steps begun since the environment was built.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.world.resource::<StepCounter>().steps
    }

    /// A row's component; `None` if the row does not exist or carries no such component.
    #[must_use]
    pub fn get<C: Component>(&self, row: u32) -> Option<&'w C> {
        self.world.get(*self.world.resource::<RowEntities>().0.get(row as usize)?)
    }

    /// The observation groups' names and widths, in order.
    pub fn groups(&self) -> impl Iterator<Item = (&'w str, usize)> {
        self.world.resource::<ObservationManager>().groups().map(|group| (group.name(), group.width()))
    }

    /// What a row sees of a group.
    ///
    /// # Panics
    /// If there is no such group or row.
    #[must_use]
    pub fn observation(&self, group: usize, row: u32) -> &'w [f32] {
        let buffer = self.world.resource::<ObservationBuffers>().group(group);
        self.row_of(buffer, row)
    }

    /// What a row saw last of a group in the episode that has just ended. Means nothing for other rows.
    ///
    /// # Panics
    /// If there is no such group or row.
    #[must_use]
    pub fn final_observation(&self, group: usize, row: u32) -> &'w [f32] {
        let buffer = self.world.resource::<FinalObservations>().group(group);
        self.row_of(buffer, row)
    }

    /// Rewards and flags of the last control step.
    #[must_use]
    pub fn buffers(&self) -> &'w StepBuffers {
        self.world.resource()
    }

    /// How far a row is into its episode.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn clock(&self, row: u32) -> EpisodeClock {
        *self.get(row).expect("every row has a clock")
    }

    fn row_of(&self, buffer: &'w [f32], row: u32) -> &'w [f32] {
        let width = buffer.len() / self.rows();
        &buffer[row as usize * width..][..width]
    }
}

/// The recorders in the order in which they were added.
///
/// They are closed when the manager is dropped, if not before; failures are then only logged.
#[derive(Resource, Default)]
pub struct RecorderManager {
    terms: Vec<Box<dyn RecorderTerm>>,
}

impl RecorderManager {
    /// Adds a recorder. It sees what happens from now on.
    pub fn add(&mut self, term: Box<dyn RecorderTerm>) {
        self.terms.push(term);
    }

    /// Number of recorders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there are no recorders.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Closes all recorders and lets go of them.
    ///
    /// # Errors
    /// What the first of the recorders that fail fails with; the others are closed all the same.
    pub fn close(&mut self) -> Result<(), StepError> {
        let mut result = Ok(());
        for mut term in self.terms.drain(..) {
            if let Err(error) = term.close() {
                if result.is_ok() {
                    result = Err(StepError::Recorder(error));
                } else {
                    tracing::error!(error, "a recorder failed to close");
                }
            }
        }
        result
    }
}

impl Drop for RecorderManager {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(error = &error as &dyn std::error::Error, "a recorder failed to close");
        }
    }
}

/// Calls a hook of every recorder.
fn each(
    world: &mut World,
    mut hook: impl FnMut(&mut dyn RecorderTerm, &RecorderView<'_>) -> Result<(), RecorderError>,
) {
    world.resource_scope(|world, mut manager: Mut<RecorderManager>| {
        for term in &mut manager.terms {
            if let Err(error) = hook(&mut **term, &RecorderView { world }) {
                world.resource_mut::<StepStatus>().fail(StepError::Recorder(error));
            }
        }
    });
}

/// Calls the recorders before a reset.
pub(crate) fn record_pre_reset(
    world: &mut World,
    tagged: &mut QueryState<(&EpisodeClock, &Termination, Has<AwaitingReset>), With<ResetRequested>>,
) {
    if world.resource::<RecorderManager>().is_empty() {
        return;
    }
    let query = tagged.query(world);
    let over = |entity| query.get(entity).is_ok_and(|(clock, flags, awaiting)| has_ended(*clock, flags, awaiting));
    let ResettingRows { rows, entities } = world.resource();
    let ended: Vec<u32> = rows.iter().zip(entities).filter(|(_, entity)| over(**entity)).map(|(&row, _)| row).collect();
    if !ended.is_empty() {
        each(world, |term, view| term.pre_reset(view, &ended));
    }
}

/// Calls the recorders after a reset.
pub(crate) fn record_post_reset(world: &mut World) {
    if !world.resource::<RecorderManager>().is_empty() {
        let rows = world.resource::<ResettingRows>().rows.clone();
        after_reset(world, &rows);
    }
}

/// Tells the recorders that rows have begun anew.
pub(crate) fn after_reset(world: &mut World, rows: &[u32]) {
    each(world, |term, view| term.post_reset(view, rows));
}

/// Calls the recorders at the end of a control step.
pub(crate) fn record_post_step(world: &mut World) {
    if !world.resource::<RecorderManager>().is_empty() {
        each(world, |term, view| term.post_step(view));
    }
}
