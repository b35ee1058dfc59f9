//! What a task adds to the runtime: per-row state of its own, and the systems that keep it.

use bevy_ecs::prelude::*;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::build::{BuildContext, BuildError};
use crate::config::Entry;

/// Systems that keep a part of [`TaskState`](manege_components::TaskState).
///
/// The parameters' `build` registers the state by name
/// ([`BuildContext::register_task_state`]), before any other term is built.
pub trait TaskSystems: Send + Sync {
    /// Adds systems to the two schedules, usually in [`StepSystems::Task`](crate::schedule::StepSystems::Task) and
    /// [`ResetSystems::Task`](crate::schedule::ResetSystems::Task), and resources to the world.
    fn install(self: Box<Self>, world: &mut World, step: &mut Schedule, reset: &mut Schedule);
}

/// What the runtime does with a part of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskOptions {
    /// Whether the environment has it at all.
    pub enabled: bool,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self { enabled: true }
    }
}

pub(crate) fn build(
    entries: &IndexMap<String, Entry<TaskOptions, dyn TaskSystems>>,
    context: &mut BuildContext<'_>,
) -> Result<Vec<Box<dyn TaskSystems>>, BuildError> {
    entries
        .iter()
        .filter(|(_, entry)| entry.options.enabled)
        .map(|(name, entry)| {
            context.enter("task", name);
            entry.term.build(context).map_err(|error| error.in_term("task", name))
        })
        .collect()
}
