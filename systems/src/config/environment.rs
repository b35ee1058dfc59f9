//! Everything that defines an environment, apart from its model and its code.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{ConfigError, Entry, from_table, merge, to_table};
use crate::managers::action::{ActionOptions, ActionTerm};
use crate::managers::command::{CommandOptions, CommandTerm};
use crate::managers::curriculum::{CurriculumOptions, CurriculumTerm};
use crate::managers::event::{EventOptions, EventTerm};
use crate::managers::metrics::{MetricOptions, MetricTerm};
use crate::managers::observation::{ObservationOptions, ObservationTerm};
use crate::managers::reward::{RewardOptions, RewardTerm};
use crate::managers::task::{TaskOptions, TaskSystems};
use crate::managers::termination::{TerminationOptions, TerminationTerm};

pub use crate::managers::observation::GroupConfig;

/// An action term as configured.
pub type ActionEntry = Entry<ActionOptions, dyn ActionTerm>;
/// A command term as configured.
pub type CommandEntry = Entry<CommandOptions, dyn CommandTerm>;
/// A curriculum term as configured.
pub type CurriculumEntry = Entry<CurriculumOptions, dyn CurriculumTerm>;
/// An event term as configured.
pub type EventEntry = Entry<EventOptions, dyn EventTerm>;
/// A metric term as configured.
pub type MetricEntry = Entry<MetricOptions, dyn MetricTerm>;
/// An observation term as configured.
pub type ObservationEntry = Entry<ObservationOptions, dyn ObservationTerm>;
/// A reward term as configured.
pub type RewardEntry = Entry<RewardOptions, dyn RewardTerm>;
/// A part of a task as configured.
pub type TaskEntry = Entry<TaskOptions, dyn TaskSystems>;
/// A termination term as configured.
pub type TerminationEntry = Entry<TerminationOptions, dyn TerminationTerm>;

/// The form of the constraint Jacobian. All give the same solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Jacobian {
    /// Dense matrices.
    Dense,
    /// Sparse matrices.
    Sparse,
    /// Dense for small models, as the engine chooses.
    Auto,
}

/// What keeps the physics engine's working data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataLayout {
    /// Each thread, for all rows that it steps; a row keeps its state alone, of a few kilobytes.
    Shared,
    /// Each row, hundreds of kilobytes. With [`fresh`](PhysicsConfig::fresh), a physics step goes on from what the one before
    /// evaluated.
    Persistent,
}

/// When sensors are evaluated. The states that are reached have the same bits either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorSchedule {
    /// Only those that a term reads, and only in the last physics step of a control step.
    Declared,
    /// All of them in every physics step, as plain stepping does. For comparisons.
    EverySubstep,
}

/// Physics steps in a control step beyond which a typing error is more likely than an intention.
const MAX_SUBSTEPS: f64 = 1e6;

/// How physics is stepped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhysicsConfig {
    /// Physics step, s.
    pub timestep: f64,
    /// Control step, s: a whole multiple of the physics step.
    pub control_period: f64,
    /// The form of the constraint Jacobian.
    pub jacobian: Jacobian,
    /// Whether constraints are solved per island. Useless for a single robot.
    pub islands: bool,
    /// Whether collisions within a body pair are looked for through bounding volumes.
    pub midphase: bool,
    /// Whether body poses and sensors are those of the state after the step (true) or one physics step older.
    pub fresh: bool,
    /// When sensors are evaluated.
    pub sensors: SensorSchedule,
    /// What keeps the engine's working data.
    pub layout: DataLayout,
    /// Whether the model keeps the geoms that are only there to be seen. They touch nothing, and their poses cost time.
    pub visuals: bool,
}

impl PhysicsConfig {
    /// The given periods, in s, with the options that are fastest at equal results.
    #[must_use]
    pub fn new(timestep: f64, control_period: f64) -> Self {
        Self {
            timestep,
            control_period,
            jacobian: Jacobian::Sparse,
            islands: false,
            midphase: false,
            fresh: true,
            sensors: SensorSchedule::Declared,
            layout: DataLayout::Shared,
            visuals: false,
        }
    }

    /// Physics steps in a control step.
    ///
    /// # Errors
    /// A period is not positive, or the control period is no whole multiple of the physics step.
    pub fn substeps(&self) -> Result<u32, ConfigError> {
        let impossible =
            |path: &str, message: String| Err(ConfigError::Impossible { path: format!("physics.{path}"), message });
        for (path, value) in [("timestep", self.timestep), ("control_period", self.control_period)] {
            if !(value.is_finite() && value > 0.0) {
                return impossible(path, format!("{value} s is not a positive time"));
            }
        }
        let ratio = self.control_period / self.timestep;
        if ratio > MAX_SUBSTEPS {
            return impossible(
                "timestep",
                format!(
                    "a control step of {} s would take more than {MAX_SUBSTEPS} physics steps",
                    self.control_period
                ),
            );
        }
        if (ratio - ratio.round()).abs() > 1e-9 * ratio.max(1.0) || ratio.round() < 1.0 {
            let whole = ratio.round().max(1.0);
            return impossible(
                "control_period",
                format!(
                    "{} s is no whole multiple of the timestep {} s; {} s would be",
                    self.control_period,
                    self.timestep,
                    whole * self.timestep
                ),
            );
        }
        Ok(ratio.round() as u32)
    }
}

/// The managers' terms and the numbers that concern them all.
#[derive(Debug, Clone)]
pub struct EnvironmentConfig {
    /// How physics is stepped.
    pub physics: PhysicsConfig,
    /// Longest duration of an episode, s.
    pub episode_length: f64,
    /// The keyframe that every episode starts from; empty for the model's reference configuration.
    pub keyframe: String,
    /// Whether rewards are multiplied by the control period.
    pub scale_rewards_by_dt: bool,
    /// State that the task keeps per row, with the systems that keep it.
    pub task: IndexMap<String, TaskEntry>,
    /// Action terms; the action is their values back to back.
    pub actions: IndexMap<String, ActionEntry>,
    /// Command terms.
    pub commands: IndexMap<String, CommandEntry>,
    /// Observation groups.
    pub observations: IndexMap<String, GroupConfig>,
    /// Reward terms.
    pub rewards: IndexMap<String, RewardEntry>,
    /// Termination terms.
    pub terminations: IndexMap<String, TerminationEntry>,
    /// Event terms.
    pub events: IndexMap<String, EventEntry>,
    /// Curriculum terms.
    pub curriculum: IndexMap<String, CurriculumEntry>,
    /// Metric terms.
    pub metrics: IndexMap<String, MetricEntry>,
}

impl EnvironmentConfig {
    /// An environment with nothing in it.
    #[must_use]
    pub fn new(physics: PhysicsConfig, episode_length: f64) -> Self {
        Self {
            physics,
            episode_length,
            keyframe: String::new(),
            scale_rewards_by_dt: true,
            task: IndexMap::new(),
            actions: IndexMap::new(),
            commands: IndexMap::new(),
            observations: IndexMap::new(),
            rewards: IndexMap::new(),
            terminations: IndexMap::new(),
            events: IndexMap::new(),
            curriculum: IndexMap::new(),
            metrics: IndexMap::new(),
        }
    }

    /// Every key with its value, in order.
    ///
    /// # Errors
    /// A value has no TOML form.
    pub fn to_table(&self) -> Result<toml::Table, ConfigError> {
        let mut table = toml::Table::new();
        table.insert("episode_length".to_owned(), self.episode_length.into());
        table.insert("keyframe".to_owned(), self.keyframe.clone().into());
        table.insert("scale_rewards_by_dt".to_owned(), self.scale_rewards_by_dt.into());
        table.insert("physics".to_owned(), to_table(&self.physics)?.into());
        table.insert("task".to_owned(), entries_to_table(&self.task)?.into());
        table.insert("actions".to_owned(), entries_to_table(&self.actions)?.into());
        table.insert("commands".to_owned(), entries_to_table(&self.commands)?.into());
        let mut groups = toml::Table::new();
        for (name, group) in &self.observations {
            let mut options = to_table(&group.options)?;
            options.insert("terms".to_owned(), entries_to_table(&group.terms)?.into());
            groups.insert(name.clone(), options.into());
        }
        table.insert("observations".to_owned(), groups.into());
        table.insert("rewards".to_owned(), entries_to_table(&self.rewards)?.into());
        table.insert("terminations".to_owned(), entries_to_table(&self.terminations)?.into());
        table.insert("events".to_owned(), entries_to_table(&self.events)?.into());
        table.insert("curriculum".to_owned(), entries_to_table(&self.curriculum)?.into());
        table.insert("metrics".to_owned(), entries_to_table(&self.metrics)?.into());
        Ok(table)
    }

    /// Makes changes, given as a table with the keys of [`to_table`](Self::to_table).
    ///
    /// # Errors
    /// An unknown key or a value of the wrong type; nothing is changed then.
    pub fn apply(&mut self, changes: &toml::Table) -> Result<(), ConfigError> {
        let mut table = self.to_table()?;
        merge("", &mut table, changes)?;
        let mut changed = self.clone();
        changed.physics = from_table("physics", take_table(&mut table, "physics", "")?)?;
        set_entries("task", &mut changed.task, &mut table)?;
        set_entries("actions", &mut changed.actions, &mut table)?;
        set_entries("commands", &mut changed.commands, &mut table)?;
        set_entries("rewards", &mut changed.rewards, &mut table)?;
        set_entries("terminations", &mut changed.terminations, &mut table)?;
        set_entries("events", &mut changed.events, &mut table)?;
        set_entries("curriculum", &mut changed.curriculum, &mut table)?;
        set_entries("metrics", &mut changed.metrics, &mut table)?;
        let mut groups = take_table(&mut table, "observations", "")?;
        for (name, group) in &mut changed.observations {
            let mut options = take_table(&mut groups, name, "observations.")?;
            let path = format!("observations.{name}");
            let mut terms = take_table(&mut options, "terms", &format!("{path}."))?;
            group.options = from_table(&path, options)?;
            for (term, entry) in &mut group.terms {
                let path = format!("{path}.terms.");
                entry.set_table(&format!("{path}{term}"), take_table(&mut terms, term, &path)?)?;
            }
        }
        let Plain { episode_length, keyframe, scale_rewards_by_dt } = from_table("the top level", table)?;
        changed.episode_length = episode_length;
        changed.keyframe = keyframe;
        changed.scale_rewards_by_dt = scale_rewards_by_dt;
        *self = changed;
        Ok(())
    }

    /// Checks what no single term can check.
    ///
    /// # Errors
    /// The first value that makes no sense.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.physics.substeps()?;
        if !(self.episode_length.is_finite() && self.episode_length > 0.0) {
            return Err(ConfigError::Impossible {
                path: "episode_length".to_owned(),
                message: format!("{} s is not a positive time", self.episode_length),
            });
        }
        Ok(())
    }
}

/// The keys at the top level that are no tables.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    episode_length: f64,
    keyframe: String,
    scale_rewards_by_dt: bool,
}

fn entries_to_table<O: Serialize + serde::de::DeserializeOwned, T: ?Sized + 'static>(
    entries: &IndexMap<String, Entry<O, T>>,
) -> Result<toml::Table, ConfigError> {
    entries.iter().map(|(name, entry)| Ok((name.clone(), entry.to_table()?.into()))).collect()
}

fn set_entries<O: Serialize + serde::de::DeserializeOwned, T: ?Sized + 'static>(
    section: &str,
    entries: &mut IndexMap<String, Entry<O, T>>,
    table: &mut toml::Table,
) -> Result<(), ConfigError> {
    let mut tables = take_table(table, section, "")?;
    let path = format!("{section}.");
    for (name, entry) in entries {
        entry.set_table(&format!("{path}{name}"), take_table(&mut tables, name, &path)?)?;
    }
    Ok(())
}

fn take_table(table: &mut toml::Table, key: &str, prefix: &str) -> Result<toml::Table, ConfigError> {
    match table.remove(key) {
        Some(toml::Value::Table(table)) => Ok(table),
        other => Err(ConfigError::Value {
            path: format!("{prefix}{key}"),
            message: format!("expected a table, not {}", other.map_or("nothing", |value| value.type_str())),
        }),
    }
}
