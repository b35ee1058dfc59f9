//! Placing rows by hand.

use bevy_ecs::prelude::*;
use manege_components::{ResetRequested, RobotState, Row};

use crate::backend::WriteKind;
use crate::error::StepError;
use crate::managers::command::follow_reset_rows;
use crate::managers::observation::{compute_reset_observations, reset_observation_history};
use crate::managers::recorder::after_reset;
use crate::physics::{Physics, StateLayout};
use crate::staging::Staging;
use crate::step::{RowEntities, StepStatus};
use crate::wrench::ExternalWrenches;

/// Gives all rows the state in `qpos` (rows × `nq`) and `qvel` (rows × `nv`), as at a reset, brings their commands up to
/// date and makes their first observation again. What is `None` stays as it is. Commands and task state are not drawn
/// anew.
///
/// # Errors
/// See [`StepError`].
///
/// # Panics
/// If a buffer does not have the size that the rows need.
pub fn place_rows(world: &mut World, qpos: Option<&[f64]>, qvel: Option<&[f64]>) -> Result<(), StepError> {
    write_states(world, qpos, qvel)?;
    let entities = world.resource::<RowEntities>().0.clone();
    let rows: Vec<u32> = (0..entities.len() as u32).collect();
    world.resource_mut::<ExternalWrenches>().clear(&rows);
    for &entity in &entities {
        world.entity_mut(entity).insert(ResetRequested);
    }
    let observed = world
        .run_system_cached(follow_reset_rows)
        .and(world.run_system_cached(reset_observation_history))
        .and(world.run_system_cached(compute_reset_observations));
    for &entity in &entities {
        world.entity_mut(entity).remove::<ResetRequested>();
    }
    world.clear_trackers();
    debug_assert!(observed.is_ok(), "observing needs no more than the world has");
    after_reset(world, &rows);
    world.resource_mut::<StepStatus>().take()
}

/// Gives all rows the state in `qpos` (rows × `nq`) and `qvel` (rows × `nv`) and reads it back into
/// [`RobotState`]; nothing else changes. What is `None` stays as it is.
///
/// A host's exclusive system may call it within a control step, for instance in
/// [`StepSystems::Task`](crate::schedule::StepSystems::Task), to put robots where the terms after it shall see them.
///
/// # Errors
/// The backend refuses the state.
///
/// # Panics
/// If a buffer does not have the size that the rows need.
pub fn write_states(world: &mut World, qpos: Option<&[f64]>, qvel: Option<&[f64]>) -> Result<(), StepError> {
    let entities = world.resource::<RowEntities>().0.clone();
    let layout = *world.resource::<StateLayout>();
    let rows: Vec<u32> = (0..entities.len() as u32).collect();
    world.resource_scope(|world, mut staging: Mut<Staging>| {
        staging.begin_reset(&rows);
        for (slot, &entity) in entities.iter().enumerate() {
            let Some(state) = world.get::<RobotState>(entity) else { continue };
            let (nq, nv) = (layout.qpos.width(), layout.qvel.width());
            let qpos = qpos.map_or(&state.values[layout.qpos.range()], |qpos| &qpos[slot * nq..][..nq]);
            let qvel = qvel.map_or(&state.values[layout.qvel.range()], |qvel| &qvel[slot * nv..][..nv]);
            staging.set_current(slot, qpos, qvel);
        }
        world.resource_scope(|world, mut physics: Mut<Physics>| {
            staging.commit(WriteKind::Reset, physics.backend_mut())?;
            for (row, &entity) in rows.iter().zip(&entities) {
                if let Some(mut state) = world.get_mut::<RobotState>(entity) {
                    physics.read(Row(*row), &mut state);
                }
            }
            Ok(())
        })
    })
}
