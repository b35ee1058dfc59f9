//! What the runtime itself keeps.

use bevy_ecs::prelude::*;
use manege_components::{
    Action, AwaitingReset, Command, CommandOverride, EpisodeClock, EventTimers, Metrics, Observation,
    ObservationHistory, ResetRequested, Reward, RobotState, Streams, TaskState, Termination,
};

use super::{Reader, Saved, SnapshotError, SnapshotParts, Writer};
use crate::buffers::StepBuffers;
use crate::log::StepLog;
use crate::managers::action::ActionManager;
use crate::managers::command::CommandManager;
use crate::managers::curriculum::CurriculumManager;
use crate::managers::event::EventManager;
use crate::managers::observation::{FinalObservations, ObservationBuffers};
use crate::managers::reward::RewardManager;
use crate::physics::{Divergences, Physics};
use crate::staging::Staging;
use crate::step::{Controls, RowEntities, StepCounter};
use crate::tunable::Tunables;
use crate::wrench::ExternalWrenches;

/// Registers the runtime's parts, before those of tasks and hosts.
pub(crate) fn register(parts: &mut SnapshotParts) {
    parts
        .component::<EpisodeClock>("clock")
        .component::<Streams>("streams")
        .component::<RobotState>("robot state")
        .component::<Action>("actions")
        .component::<Command>("commands")
        .component::<TaskState>("task state")
        .component::<Observation>("observations")
        .component::<ObservationHistory>("observation history")
        .component::<Reward>("rewards")
        .component::<Termination>("terminations")
        .component::<Metrics>("metrics")
        .component::<EventTimers>("event timers")
        .part("tags", save_tags, load_tags)
        .resource::<StepCounter>("step counter")
        .resource::<Divergences>("divergences")
        .resource::<Controls>("controls")
        .resource::<ActionManager>("processed actions")
        .resource::<CommandManager>("command terms")
        .resource::<EventManager>("events")
        .resource::<RewardManager>("reward weights")
        .resource::<Tunables>("tunable ranges")
        .resource::<CurriculumManager>("curriculum")
        .resource::<Staging>("model fields")
        .resource::<ExternalWrenches>("external wrenches")
        .resource::<Physics>("physics")
        .resource::<StepBuffers>("step buffers")
        .resource::<ObservationBuffers>("observation buffers")
        .resource::<FinalObservations>("final observations")
        .resource::<StepLog>("log");
}

/// Saves fields that are numbers, then fields that are slices of numbers.
macro_rules! saved {
    ($($type:ty { $($one:ident)* ; $($many:ident)* })*) => {$(
        impl Saved for $type {
            fn save(&self, to: &mut Writer) {
                $(to.put(self.$one);)*
                $(to.put_all(&self.$many);)*
            }

            fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
                $(self.$one = from.take()?;)*
                $(from.fill(&mut self.$many)?;)*
                Ok(())
            }
        }
    )*};
}
saved! {
    EpisodeClock { step episode; }
    RobotState { ; values }
    TaskState { ; values }
    Observation { ; values raw }
    ObservationHistory { ; delay history bias frames lag phase }
    Reward { total; terms episode_sums }
    Termination { terminated truncated diverged idle terms; }
    Metrics { ; values samples }
    EventTimers { ; time_left fired }
    StepCounter { steps; }
    Divergences { total; }
    RewardManager { ; weights }
    StepBuffers { ; rewards reward_terms terminated truncated diverged termination_terms }
}

impl Saved for Streams {
    fn save(&self, to: &mut Writer) {
        to.put(self.key());
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        *self = Self::from_key(from.take()?);
        Ok(())
    }
}

impl Saved for Action {
    fn save(&self, to: &mut Writer) {
        to.put_all(self.values());
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(self.values_mut())
    }
}

impl Saved for Command {
    fn save(&self, to: &mut Writer) {
        to.put_all(&self.values);
        to.put_all(&self.scratch);
        to.put_all(&self.metrics);
        to.put_all(&self.time_left);
        to.put_all(&self.resamplings);
        // As much with overrides as without, so that what differs in size is what does not fit.
        let overridden = self.overridden.as_deref();
        (0..self.values.len()).for_each(|i| to.put(overridden.is_some_and(|overridden| overridden.held[i])));
        (0..self.values.len()).for_each(|i| to.put(overridden.map_or(0.0, |overridden| overridden.hidden[i])));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.values)?;
        from.fill(&mut self.scratch)?;
        from.fill(&mut self.metrics)?;
        from.fill(&mut self.time_left)?;
        from.fill(&mut self.resamplings)?;
        let (mut held, mut hidden) = (vec![false; self.values.len()], vec![0.0; self.values.len()]);
        from.fill(&mut held)?;
        from.fill(&mut hidden)?;
        self.overridden = None;
        if held.contains(&true) {
            self.overridden = Some(Box::new(CommandOverride { held: held.into(), hidden: hidden.into() }));
        }
        Ok(())
    }
}

impl Saved for Tunables {
    fn save(&self, to: &mut Writer) {
        self.iter().for_each(|(_, range)| to.put_all(&range.get()));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.iter().try_for_each(|(_, range)| {
            range.set([from.take()?, from.take()?]);
            Ok(())
        })
    }
}

impl Saved for CurriculumManager {
    fn save(&self, to: &mut Writer) {
        self.terms().for_each(|(_, values)| to.put_all(values));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.values_mut().try_for_each(|value| {
            *value = from.take()?;
            Ok(())
        })
    }
}

impl Saved for Physics {
    fn save(&self, to: &mut Writer) {
        let mut state = Vec::new();
        self.backend().save_state(&mut state);
        to.put_all(&state);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        Ok(self.backend_mut().load_state(&from.rest()?)?)
    }
}

fn save_tags(world: &World, to: &mut Writer) {
    for &entity in &world.resource::<RowEntities>().0 {
        let row = world.entity(entity);
        to.put(row.contains::<ResetRequested>());
        to.put(row.contains::<AwaitingReset>());
    }
}

fn load_tags(world: &mut World, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
    for entity in world.resource::<RowEntities>().0.clone() {
        let mut row = world.entity_mut(entity);
        row.remove::<(ResetRequested, AwaitingReset)>();
        if from.take()? {
            row.insert(ResetRequested);
        }
        if from.take()? {
            row.insert(AwaitingReset);
        }
    }
    world.clear_trackers();
    Ok(())
}
