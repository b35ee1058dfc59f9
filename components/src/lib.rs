//! The data of the Manège runtime: one entity per environment row, and the components it carries.
//!
//! A row entity is spawned once, in row order, and never despawned. It carries [`Row`] and one component per
//! concern; [`RowBundle`] is the whole set. Buffers outside the world are indexed by [`Row`], never by query order,
//! because a host that adds components of its own moves rows between tables.
//!
//! | component | holds |
//! |---|---|
//! | [`Row`] | the row's index |
//! | [`EpisodeClock`] | control steps since the last reset, number of the episode |
//! | [`Streams`] | the key of the row's random streams in this episode |
//! | [`RobotState`] | the physics outputs that the managers asked for |
//! | [`Action`] | the policy's current action and the two before it |
//! | [`Command`] | commands, their timers and metrics |
//! | [`TaskState`] | numbers that a task keeps per row, by name (a gait phase, a motion frame) |
//! | [`Observation`] | the observation of every group, and the values shared between groups |
//! | [`ObservationHistory`] | history and delay lines of the observation terms that have them |
//! | [`Reward`] | reward of the step, in total and per term, and episode sums |
//! | [`Termination`] | why the episode ended, if it did |
//! | [`Metrics`] | numbers gathered over the episode |
//! | [`EventTimers`] | time until each interval event fires for this row |
//!
//! Two tags select rows: [`ResetRequested`] and [`AwaitingReset`]. Both use sparse-set storage, so that inserting and
//! removing them every step leaves the tables, and with them the order of rows, untouched.
//!
//! This crate knows no physics engine and no robot.

mod action;
mod clock;
mod command;
mod event;
mod metrics;
mod observation;
mod reward;
pub mod rotation;
mod row;
mod state;
mod stream;
mod termination;

pub use action::Action;
pub use clock::EpisodeClock;
pub use command::{Command, CommandOverride, CommandWidths};
pub use event::EventTimers;
pub use metrics::Metrics;
pub use observation::{HistoryWidths, Observation, ObservationHistory};
pub use reward::Reward;
pub use row::{AwaitingReset, ResetRequested, Row, RowBundle, RowWidths};
pub use state::{RobotState, TaskState};
pub use stream::{Draws, StreamId, Streams};
pub use termination::{MAX_TERMINATION_TERMS, Termination};
