#![doc = include_str!("../README.md")]

pub mod collector;
pub mod describe;
pub mod environment;
#[doc(hidden)]
pub mod files;
pub mod motion;
#[cfg(feature = "bevy")]
pub mod plugin;
pub mod recorder;
pub mod replay;

pub use environment::Environment;
pub use manege_components as components;
pub use manege_systems as systems;
pub use manege_tasks as tasks;
pub use manege_tasks::npz;

/// What most programs that build or extend environments need.
pub mod prelude {
    pub use bevy_ecs::prelude::*;
    pub use manege_components::{
        Action, AwaitingReset, Command, EpisodeClock, Observation, ResetRequested, Reward, RobotState, Row, Termination,
    };
    pub use manege_systems::build::{BuildContext, BuildError};
    pub use manege_systems::config::{Entry, EnvironmentConfig, GroupConfig, PhysicsConfig, TermParams};
    pub use manege_systems::row_view::RowView;
    pub use manege_systems::schedule::{ResetSystems, StepSystems};
    pub use manege_systems::step::AutoReset;
    pub use manege_tasks::{ModelFiles, Preset, Task};

    pub use crate::Environment;
    #[cfg(feature = "bevy")]
    pub use crate::plugin::{ManegePlugin, PluginSystems};
}
