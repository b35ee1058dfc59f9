//! Events: what happens to rows at startup, at resets, at intervals and in every step.
//!
//! An event term works on one row at a time and never writes the backend: it changes a [`StagedRow`], and all rows that
//! a trigger touches are written in one dispatch.

use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use indexmap::IndexMap;
use manege_components::{Draws, EventTimers, ResetRequested, RobotState, Row, StreamId, Streams, Termination};
use serde::{Deserialize, Serialize};

use crate::backend::WriteKind;
use crate::build::{BuildContext, BuildError};
use crate::config::{ConfigError, Entry};
use crate::physics::{Physics, StateLayout};
use crate::row_view::{RowColumns, RowView};
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};
use crate::staging::{StagedRow, Staging};
use crate::step::{Randomness, ResettingRows, RowEntities, StepCounter, StepStatus, Timing, timer_end};
use crate::wrench::{ExternalWrenches, RowWrenches};

/// A row while an event happens to it.
pub struct EventRow<'a> {
    /// The row before the event.
    pub view: RowView<'a>,
    /// The state that will be written.
    pub staged: StagedRow<'a>,
    /// What acts on the row's bodies from outside.
    pub wrenches: RowWrenches<'a>,
    /// Random numbers for this event and row.
    pub draws: Draws,
}

/// Something that happens to a row.
pub trait EventTerm: Send + Sync {
    /// Changes the row's staged state or model fields, or what acts on its bodies.
    fn apply(&self, row: &mut EventRow<'_>);

    /// Whether the event varies the model or pushes the robot. Such events do not happen in runs without
    /// randomisation; the others then draw the centre of their ranges.
    fn randomizes(&self) -> bool {
        false
    }
}

/// When an event happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventMode {
    /// Once, when the environment is built.
    Startup,
    /// At resets, before commands are drawn.
    Reset {
        /// Least number of control steps of the environment between two triggers for the same row.
        min_steps_between: u64,
    },
    /// Every control step.
    Step,
    /// Whenever a timer runs out.
    Interval {
        /// Least and greatest time between triggers, s.
        seconds: [f32; 2],
        /// One timer for all rows, which resets do not restart, instead of one per row.
        global: bool,
        /// Whether resets leave the rows' own timers alone, too: an event may then happen early in an episode, and in
        /// episodes that are shorter than the interval.
        #[serde(default)]
        keep_over_resets: bool,
    },
}

/// What the manager does with an event term.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventOptions {
    /// Whether the environment has the term at all.
    pub enabled: bool,
    /// When the event happens.
    pub mode: EventMode,
}

impl EventOptions {
    /// An event at every reset.
    #[must_use]
    pub fn reset() -> Self {
        Self { enabled: true, mode: EventMode::Reset { min_steps_between: 0 } }
    }

    /// An event when the environment is built.
    #[must_use]
    pub fn startup() -> Self {
        Self { enabled: true, mode: EventMode::Startup }
    }

    /// An event in every control step.
    #[must_use]
    pub fn step() -> Self {
        Self { enabled: true, mode: EventMode::Step }
    }

    /// An event for all rows at once, every `low` to `high` seconds.
    #[must_use]
    pub fn global_interval(low: f32, high: f32) -> Self {
        Self { enabled: true, mode: EventMode::Interval { seconds: [low, high], global: true, keep_over_resets: true } }
    }

    /// An event for each row on its own, every `low` to `high` seconds.
    #[must_use]
    pub fn interval(low: f32, high: f32) -> Self {
        Self {
            enabled: true,
            mode: EventMode::Interval { seconds: [low, high], global: false, keep_over_resets: false },
        }
    }
}

enum Trigger {
    Startup,
    Reset { min_steps_between: u64, last: Vec<Option<u64>> },
    Step,
    RowTimer { seconds: [f32; 2], timer: usize, keep_over_resets: bool },
    GlobalTimer { seconds: [f32; 2], time_left: f64, fired: u64 },
}

struct Slot {
    name: String,
    term: Box<dyn EventTerm>,
    trigger: Trigger,
    stream: StreamId,
}

/// The event terms in order, with their global timers.
#[derive(Resource)]
pub struct EventManager {
    slots: Vec<Slot>,
    row_timers: usize,
    /// Rows that the event at hand happens to; kept to avoid allocation.
    triggered: Vec<u32>,
}

impl EventManager {
    /// Builds the enabled terms for `rows` rows. Without randomisation, terms that randomise are left out.
    ///
    /// # Errors
    /// A term cannot be built, or an interval is an empty range.
    pub fn build(
        entries: &IndexMap<String, Entry<EventOptions, dyn EventTerm>>,
        context: &mut BuildContext<'_>,
        rows: usize,
        randomness: Randomness,
    ) -> Result<Self, BuildError> {
        let mut manager = Self { slots: Vec::new(), row_timers: 0, triggered: Vec::with_capacity(rows) };
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.options.enabled) {
            context.enter("events", name);
            let term = entry.term.build(context).map_err(|error| error.in_term("event", name))?;
            if term.randomizes() && !randomness.enabled {
                continue;
            }
            let stream = StreamId::new("event/").join(name);
            let trigger = match entry.options.mode {
                EventMode::Startup => Trigger::Startup,
                EventMode::Reset { min_steps_between } => {
                    Trigger::Reset { min_steps_between, last: vec![None; if min_steps_between > 0 { rows } else { 0 }] }
                }
                EventMode::Step => Trigger::Step,
                EventMode::Interval { seconds, global, keep_over_resets } => {
                    if !(seconds[0] > 0.0 && seconds[0] <= seconds[1]) {
                        return Err(ConfigError::Impossible {
                            path: format!("events.{name}.mode.seconds"),
                            message: format!("{seconds:?} s is no range of positive times"),
                        }
                        .into());
                    }
                    if global {
                        let time_left = timer(Streams::global(randomness.seed), stream, 0, seconds);
                        Trigger::GlobalTimer { seconds, time_left, fired: 0 }
                    } else {
                        manager.row_timers += 1;
                        Trigger::RowTimer { seconds, timer: manager.row_timers - 1, keep_over_resets }
                    }
                }
            };
            manager.slots.push(Slot { name: name.clone(), term, trigger, stream });
        }
        Ok(manager)
    }

    /// Names of the terms, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.name.as_str())
    }

    /// Number of interval events with a timer per row.
    pub(crate) fn row_timers(&self) -> usize {
        self.row_timers
    }

    /// Draws the row's interval timers, for the episode that `streams` belongs to; those that resets leave alone only if they
    /// have not been drawn yet.
    fn restart_timers(&self, streams: &Streams, timers: &mut EventTimers) {
        for slot in &self.slots {
            if let Trigger::RowTimer { seconds, timer: index, keep_over_resets } = slot.trigger {
                // A timer that runs has time left, or has fired.
                if keep_over_resets && (timers.time_left[index] > 0.0 || timers.fired[index] > 0) {
                    continue;
                }
                timers.time_left[index] = timer(*streams, slot.stream, 0, seconds);
                timers.fired[index] = 0;
            }
        }
    }
}

impl Saved for EventManager {
    fn save(&self, to: &mut Writer) {
        for slot in &self.slots {
            match &slot.trigger {
                Trigger::Reset { last, .. } => last.iter().for_each(|last| {
                    to.put(last.is_some());
                    to.put(last.unwrap_or_default());
                }),
                Trigger::GlobalTimer { time_left, fired, .. } => {
                    to.put(*time_left);
                    to.put(*fired);
                }
                Trigger::Startup | Trigger::Step | Trigger::RowTimer { .. } => {}
            }
        }
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for slot in &mut self.slots {
            match &mut slot.trigger {
                Trigger::Reset { last, .. } => {
                    for last in last {
                        let triggered: bool = from.take()?;
                        *last = triggered.then_some(from.take()?);
                    }
                }
                Trigger::GlobalTimer { time_left, fired, .. } => {
                    *time_left = from.take()?;
                    *fired = from.take()?;
                }
                Trigger::Startup | Trigger::Step | Trigger::RowTimer { .. } => {}
            }
        }
        Ok(())
    }
}

/// Draws the time until an interval event's next trigger, s.
fn timer(streams: Streams, event: StreamId, fired: u64, seconds: [f32; 2]) -> f64 {
    f64::from(streams.draws(event.join("/timer"), fired).uniform_f32(seconds[0], seconds[1]))
}

impl Slot {
    /// Lets the event happen to one row.
    fn apply(
        &self,
        view: RowView<'_>,
        staged: StagedRow<'_>,
        wrenches: RowWrenches<'_>,
        counter: u64,
        randomize: bool,
    ) {
        let mut draws = view.streams().draws(self.stream, counter);
        if !randomize {
            draws = draws.centred();
        }
        self.term.apply(&mut EventRow { view, staged, wrenches, draws });
    }
}

/// What an event between resets reads and writes.
#[derive(SystemParam)]
pub(crate) struct EventWorld<'w, 's> {
    staging: ResMut<'w, Staging>,
    wrenches: ResMut<'w, ExternalWrenches>,
    physics: ResMut<'w, Physics>,
    status: ResMut<'w, StepStatus>,
    layout: Res<'w, StateLayout>,
    randomness: Res<'w, Randomness>,
    entities: Res<'w, RowEntities>,
    rows: ParamSet<'w, 's, (Query<'w, 's, RowColumns>, Query<'w, 's, &'static mut RobotState>)>,
}

impl EventWorld<'_, '_> {
    /// Lets one event happen to some rows: stage, write in one dispatch, read the rows' new state.
    fn happen(&mut self, slot: &Slot, triggered: &[u32]) {
        self.staging.begin(triggered);
        let rows = self.rows.p0();
        for (place, &row) in triggered.iter().enumerate() {
            let Ok(columns) = rows.get(self.entities.0[row as usize]) else { continue };
            let view = columns.view();
            self.staging.set_current(place, view.state(self.layout.qpos), view.state(self.layout.qvel));
            // Counted from the reset: an episode's draws must not depend on how long the ones before it were.
            let counter = u64::from(view.clock().step);
            let (staged, wrenches) = (self.staging.row(place), self.wrenches.row(row as usize));
            slot.apply(view, staged, wrenches, counter, self.randomness.enabled);
        }
        match self.staging.commit(WriteKind::Patch, self.physics.backend_mut()) {
            Ok(false) => {}
            Ok(true) => {
                let mut states = self.rows.p1();
                for &row in triggered {
                    if let Ok(mut state) = states.get_mut(self.entities.0[row as usize]) {
                        self.physics.read(Row(row), &mut state);
                    }
                }
            }
            Err(error) => self.status.fail(error.into()),
        }
    }
}

/// Events at startup: once, for all rows.
pub(crate) fn startup_events(mut manager: ResMut<EventManager>, mut world: EventWorld) {
    let EventManager { slots, triggered, .. } = &mut *manager;
    triggered.clear();
    triggered.extend(0..world.entities.0.len() as u32);
    for slot in slots.iter().filter(|slot| matches!(slot.trigger, Trigger::Startup)) {
        world.happen(slot, triggered);
    }
}

/// Step events, then interval events whose timer ran out.
pub(crate) fn step_and_interval_events(
    mut manager: ResMut<EventManager>,
    timing: Res<Timing>,
    mut world: EventWorld,
    mut timers: Query<(&Row, &Streams, &Termination, &mut EventTimers)>,
) {
    let dt = timing.control_period;
    let end = timer_end(dt);
    let rows = world.entities.0.len() as u32;
    let EventManager { slots, triggered, .. } = &mut *manager;
    for slot in slots.iter().filter(|slot| matches!(slot.trigger, Trigger::Step)) {
        triggered.clear();
        triggered.extend(0..rows);
        world.happen(slot, triggered);
    }
    for slot in slots {
        triggered.clear();
        match &mut slot.trigger {
            Trigger::GlobalTimer { seconds, time_left, fired } => {
                *time_left -= dt;
                if *time_left < end {
                    *fired += 1;
                    *time_left = timer(Streams::global(world.randomness.seed), slot.stream, *fired, *seconds);
                    triggered.extend(0..rows);
                }
            }
            Trigger::RowTimer { seconds, timer: index, .. } => {
                for (row, streams, termination, mut timers) in &mut timers {
                    if termination.idle {
                        continue;
                    }
                    timers.time_left[*index] -= dt;
                    if timers.time_left[*index] < end {
                        timers.fired[*index] += 1;
                        let fired = u64::from(timers.fired[*index]);
                        timers.time_left[*index] = timer(*streams, slot.stream, fired, *seconds);
                        triggered.push(row.0);
                    }
                }
                triggered.sort_unstable();
            }
            _ => {}
        }
        if !triggered.is_empty() {
            world.happen(slot, triggered);
        }
    }
}

/// Stages the reset events for the rows being reset.
pub(crate) fn reset_events(
    mut manager: ResMut<EventManager>,
    mut staging: ResMut<Staging>,
    mut wrenches: ResMut<ExternalWrenches>,
    resetting: Res<ResettingRows>,
    randomness: Res<Randomness>,
    counter: Res<StepCounter>,
    rows: Query<RowColumns>,
) {
    for slot in &mut manager.slots {
        let due = |last: &mut [Option<u64>], least: u64, row: u32| {
            let Some(last) = last.get_mut(row as usize) else { return true };
            let due = last.is_none_or(|last| counter.steps - last >= least);
            if due {
                *last = Some(counter.steps);
            }
            due
        };
        for (place, (&row, &entity)) in resetting.rows.iter().zip(&resetting.entities).enumerate() {
            let Trigger::Reset { min_steps_between, last } = &mut slot.trigger else { break };
            if due(last, *min_steps_between, row)
                && let Ok(columns) = rows.get(entity)
            {
                let (staged, wrenches) = (staging.row(place), wrenches.row(row as usize));
                slot.apply(columns.view(), staged, wrenches, 0, randomness.enabled);
            }
        }
    }
}

/// Draws the interval timers of the rows being reset.
pub(crate) fn reset_event_timers(
    manager: Res<EventManager>,
    mut rows: Query<(&Streams, &mut EventTimers), With<ResetRequested>>,
) {
    for (streams, mut timers) in &mut rows {
        manager.restart_timers(streams, &mut timers);
    }
}
