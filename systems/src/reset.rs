//! Which rows restart, and what they forget when they do.

use std::time::Instant;

use bevy_ecs::prelude::*;
use manege_components::{AwaitingReset, EpisodeClock, ResetRequested, Reward, Row, StreamId, Streams, Termination};

use crate::log::StepLog;
use crate::managers::reward::RewardManager;
use crate::managers::termination::TerminationManager;
use crate::physics::Physics;
use crate::schedule::ResetSchedule;
use crate::staging::Staging;
use crate::step::{AutoReset, Randomness, ResettingRows, RowEntities, Stagger, StepCounter, Timing};
use crate::timing::StepTimings;
use crate::wrench::ExternalWrenches;

/// Places in the log of what is reported at resets.
#[derive(Resource, Debug, Clone, Copy)]
pub(crate) struct ResetLog {
    rewards: usize,
    terminations: usize,
}

impl ResetLog {
    pub(crate) fn new(rewards: &RewardManager, terminations: &TerminationManager, log: &mut StepLog) -> Self {
        Self {
            rewards: log.register(rewards.names().iter().map(|name| format!("Episode_Reward/{name}"))),
            terminations: log.register(terminations.names().iter().map(|name| format!("Episode_Termination/{name}"))),
        }
    }
}

/// Whether the episode of a row that is about to be reset has come to its end.
///
/// The flags stay until the row takes a step, so they say nothing of an episode that has none.
pub(crate) fn has_ended(clock: EpisodeClock, termination: &Termination, awaiting: bool) -> bool {
    clock.step > 0 && (termination.done() || awaiting)
}

/// Clears the step's log and flags. In next-step mode, rows that ended in the step before sit this one out.
pub(crate) fn begin_step(
    mut commands: Commands,
    auto_reset: Res<AutoReset>,
    mut log: ResMut<StepLog>,
    mut physics: ResMut<Physics>,
    mut rows: Query<(Entity, &Row, &mut Termination, Has<AwaitingReset>)>,
) {
    log.clear();
    for (entity, _, mut termination, awaiting) in &mut rows {
        termination.diverged = false;
        termination.idle = awaiting;
        if awaiting {
            commands.entity(entity).insert(ResetRequested);
        }
    }
    if *auto_reset == AutoReset::NextStep {
        let active = physics.active.get_or_insert_default();
        active.clear();
        active.extend(rows.iter().filter(|row| !row.3).map(|row| row.1.0));
        active.sort_unstable();
    } else {
        physics.active = None;
    }
}

/// Marks the rows whose episode ended in this step.
pub(crate) fn request_resets(mut commands: Commands, auto_reset: Res<AutoReset>, rows: Query<(Entity, &Termination)>) {
    for (entity, _) in rows.iter().filter(|(_, termination)| termination.done()) {
        match *auto_reset {
            AutoReset::SameStep => commands.entity(entity).insert(ResetRequested),
            AutoReset::NextStep | AutoReset::Disabled => commands.entity(entity).insert(AwaitingReset),
        };
    }
}

/// Runs the reset schedule if any row asks for it.
pub(crate) fn run_resets(world: &mut World, tagged: &mut QueryState<(), With<ResetRequested>>) {
    if tagged.query(world).is_empty() {
        return;
    }
    let started = Instant::now();
    world.run_schedule(ResetSchedule);
    world.resource_mut::<StepTimings>().reset = started.elapsed();
}

/// Lists the rows to reset in ascending order, and reports the episodes that ended.
pub(crate) fn begin_reset(
    mut resetting: ResMut<ResettingRows>,
    entities: Res<RowEntities>,
    rewards: Res<RewardManager>,
    terminations: Res<TerminationManager>,
    timing: Res<Timing>,
    places: Res<ResetLog>,
    mut log: ResMut<StepLog>,
    tagged: Query<(&Row, &Reward, &Termination), With<ResetRequested>>,
) {
    let ResettingRows { rows, entities: listed } = &mut *resetting;
    rows.clear();
    rows.extend(tagged.iter().map(|(row, ..)| row.0));
    rows.sort_unstable();
    listed.clear();
    listed.extend(rows.iter().map(|&row| entities.0[row as usize]));

    let ended = || listed.iter().filter_map(|&entity| tagged.get(entity).ok());
    for term in 0..rewards.names().len() {
        let per_second = |(_, reward, _): (&Row, &Reward, &Termination)| {
            (f64::from(reward.episode_sums[term]) / timing.episode_length) as f32
        };
        log.set_mean(places.rewards + term, ended().map(per_second));
    }
    for term in 0..terminations.names().len() {
        let count = ended().filter(|(_, _, termination)| termination.fired(term)).count();
        log.set(places.terminations + term, count as f64);
    }
}

/// Gives the rows the random streams of their next episode, and opens the state write, in which nothing acts on them.
pub(crate) fn begin_episodes(
    randomness: Res<Randomness>,
    resetting: Res<ResettingRows>,
    mut staging: ResMut<Staging>,
    mut wrenches: ResMut<ExternalWrenches>,
    mut rows: Query<(&Row, &mut EpisodeClock, &mut Streams), With<ResetRequested>>,
) {
    for (row, mut clock, mut streams) in &mut rows {
        clock.episode = clock.episode.wrapping_add(1);
        *streams = Streams::for_row(randomness.seed, *row, clock.episode);
    }
    staging.begin_reset(&resetting.rows);
    wrenches.clear(&resetting.rows);
}

pub(crate) fn reset_rewards(mut rows: Query<&mut Reward, With<ResetRequested>>) {
    for mut reward in &mut rows {
        reward.episode_sums.fill(0.0);
    }
}

/// Clocks start at 0; before the first control step, where rows are to be out of step with each other, anywhere in the
/// episode.
pub(crate) fn reset_clocks(
    stagger: Res<Stagger>,
    counter: Res<StepCounter>,
    timing: Res<Timing>,
    mut rows: Query<(&Streams, &mut EpisodeClock), With<ResetRequested>>,
) {
    let stagger = stagger.0 && counter.steps == 0;
    for (streams, mut clock) in &mut rows {
        clock.step = 0;
        if stagger {
            let last = timing.max_episode_steps.saturating_sub(1);
            clock.step = streams.draws(StreamId::new("reset/stagger"), 0).integer(0, last);
        }
    }
}

pub(crate) fn finish_reset(mut commands: Commands, rows: Query<Entity, With<ResetRequested>>) {
    for entity in &rows {
        commands.entity(entity).remove::<(ResetRequested, AwaitingReset)>();
    }
}
