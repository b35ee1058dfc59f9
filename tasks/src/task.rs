//! What a task is, and the list of the built-in ones.

use manege_systems::backend::mujoco::{self, MujocoBuilder, PhysicsOptions};
use manege_systems::backend::{BackendBuilder, BackendError};
use manege_systems::config::{self, EnvironmentConfig, PhysicsConfig, nearest};

use crate::robots::ModelFiles;
use crate::{g1_motion_tracking, g1_walk_flat, go2_joystick_flat};

/// A variant of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as in `task:preset`.
    pub name: &'static str,
    /// What distinguishes it, in one line.
    pub summary: &'static str,
}

/// A task: a model, and environments over it.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in one line.
    pub summary: &'static str,
    /// Its presets; the first is the default.
    pub presets: &'static [Preset],
    /// The robot and its scene.
    pub model: ModelFiles,
    /// The environment of a preset in [`presets`](Self::presets).
    pub config: fn(preset: &str) -> EnvironmentConfig,
}

/// The document that includes a task's model without what is only there to be seen.
const STEPPED: &str = "stepped.xml";

impl Task {
    /// Loads the model into the physics engine, with the options of a configuration.
    ///
    /// # Errors
    /// The engine does not take the model or the options.
    pub fn load(&self, physics: &PhysicsConfig) -> Result<Box<dyn BackendBuilder>, BackendError> {
        let options = PhysicsOptions {
            jacobian: match physics.jacobian {
                config::Jacobian::Dense => mujoco::Jacobian::Dense,
                config::Jacobian::Sparse => mujoco::Jacobian::Sparse,
                config::Jacobian::Auto => mujoco::Jacobian::Auto,
            },
            islands: physics.islands,
            midphase: physics.midphase,
            persistent: physics.layout == config::DataLayout::Persistent,
            sensors: match physics.sensors {
                config::SensorSchedule::Declared => mujoco::SensorSchedule::Declared,
                config::SensorSchedule::EverySubstep => mujoco::SensorSchedule::EverySubstep,
            },
            timestep: physics.timestep,
        };
        if physics.visuals {
            return Ok(Box::new(MujocoBuilder::from_xml_files(self.model.main, self.model.files, &options)?));
        }
        let stepped =
            format!(r#"<mujoco><compiler discardvisual="true"/><include file="{}"/></mujoco>"#, self.model.main);
        let files = [self.model.files, &[(STEPPED, &stepped)]].concat();
        Ok(Box::new(MujocoBuilder::from_xml_files(STEPPED, &files, &options)?))
    }
}

/// A task or preset that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// No task has this name.
    #[error("unknown task `{name}`{}; tasks: {available}", hint(nearest))]
    UnknownTask {
        /// The name given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// All names that exist.
        available: String,
    },
    /// The task has no preset of this name.
    #[error("task `{task}` has no preset `{name}`{}; presets: {available}", hint(nearest))]
    UnknownPreset {
        /// The task.
        task: &'static str,
        /// The name given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
        /// All names that exist.
        available: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

static TASKS: [Task; 3] = [go2_joystick_flat::TASK, g1_walk_flat::TASK, g1_motion_tracking::TASK];

/// The built-in tasks.
#[must_use]
pub fn tasks() -> &'static [Task] {
    &TASKS
}

/// The built-in task and preset of `task` or `task:preset`.
///
/// # Errors
/// There is no such task or preset; the error names the nearest.
pub fn find(name: &str) -> Result<(Task, Preset), TaskError> {
    find_among(&TASKS, name)
}

/// The task and preset of `task` or `task:preset` among some tasks.
///
/// # Errors
/// There is no such task or preset; the error names the nearest.
pub fn find_among(tasks: &[Task], name: &str) -> Result<(Task, Preset), TaskError> {
    let (task_name, preset_name) = name.split_once(':').map_or((name, None), |(task, preset)| (task, Some(preset)));
    let names = || tasks.iter().map(|task| task.name);
    let task = *tasks.iter().find(|task| task.name == task_name).ok_or_else(|| TaskError::UnknownTask {
        name: task_name.to_owned(),
        nearest: nearest(task_name, names()),
        available: names().collect::<Vec<_>>().join(", "),
    })?;
    let preset = match preset_name {
        None => task.presets[0],
        Some(name) => {
            *task.presets.iter().find(|preset| preset.name == name).ok_or_else(|| TaskError::UnknownPreset {
                task: task.name,
                name: name.to_owned(),
                nearest: nearest(name, task.presets.iter().map(|preset| preset.name)),
                available: task.presets.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", "),
            })?
        }
    };
    Ok((task, preset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_resolve_and_wrong_ones_get_a_hint() {
        assert_eq!(find("go2_joystick_flat").unwrap().1.name, "base");
        assert_eq!(find("go2_joystick_flat:flashsac").unwrap().1.name, "flashsac");
        let error = find("go2_joystik_flat").unwrap_err().to_string();
        assert!(error.contains("did you mean `go2_joystick_flat`"), "{error}");
        let error = find("go2_joystick_flat:flash").unwrap_err().to_string();
        assert!(error.contains("did you mean `flashsac`") && error.contains("base"), "{error}");
    }
}
