//! Managers of a manager-based environment as ordered ECS system sets.
//!
//! [`runtime::install`] puts an environment into a [`World`](bevy_ecs::world::World): one entity per row with the
//! components of [`manege_components`], the managers as resources, and two schedules,
//! [`StepSchedule`](schedule::StepSchedule) and [`ResetSchedule`](schedule::ResetSchedule), whose system sets a host
//! application can order its own systems against. [`runtime::step`] runs one control step.
//!
//! | module | holds |
//! |---|---|
//! | [`managers`] | the action, command, curriculum, event, metrics, observation, recorder, reward and termination managers |
//! | [`schedule`] | the two schedules and their system sets |
//! | [`config`] | the typed configuration, and how files and `--set` change it |
//! | [`build`](mod@build) | what terms see while they are built: names become handles |
//! | [`row_view`] | what terms see while they run |
//! | [`staging`] | state writes, collected and carried out in one dispatch |
//! | [`place`] | placing rows by hand |
//! | [`snapshot`] | the whole state as bytes |
//! | [`tunable`] | ranges that curricula may change |
//! | [`wrench`] | external forces and torques on bodies |
//! | [`backend`] | the physics engine, as the runtime sees it |

pub mod backend;
pub mod buffers;
pub mod build;
pub mod config;
pub mod error;
pub mod handles;
pub mod log;
pub mod managers;
pub mod physics;
pub mod place;
mod reset;
pub mod row_view;
pub mod runtime;
pub mod schedule;
pub mod snapshot;
pub mod staging;
pub mod step;
pub mod timing;
pub mod tunable;
pub mod workers;
pub mod wrench;
