//! An environment described: every term of every manager, with all parameters, as data.

use indexmap::IndexMap;
use manege_systems::backend::{ModelInfo, OptionValue};
use manege_systems::build::TaskStateNames;
use manege_systems::config::{ConfigError, Entry};
use manege_systems::managers::command::CommandManager;
use manege_systems::managers::event::EventManager;
use manege_systems::step::Timing;
use serde_json::{Map, Value, json};

use crate::Environment;
use crate::environment::TermColumns;

/// Everything that defines an environment, in the order in which it is evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Description(Value);

impl Description {
    /// Describes an environment, with the configuration as it was after all changes.
    ///
    /// # Errors
    /// A parameter has no textual form.
    pub fn of(environment: &Environment) -> Result<Self, ConfigError> {
        let sections = environment.config();
        let config = json_table(sections.to_table()?);
        let spec = environment.spec();
        let world = environment.world();
        let keyframe = Some(&sections.keyframe).filter(|name| !name.is_empty());
        Ok(Self(json!({
            "task": environment.task(),
            "preset": environment.preset(),
            "corruption": environment.corruption(),
            "randomization": environment.randomization(),
            "physics": physics(environment, &config["physics"]),
            "joints": spec.joints,
            "actuators": spec.actuators,
            "joint_to_actuator": spec.joint_actuators,
            "observation_groups": groups(environment, &config["observations"]),
            "observations": observations(environment, &config["observations"]),
            "actions": with_columns(terms(&config["actions"], &sections.actions), &spec.actions),
            "rewards": terms(&config["rewards"], &sections.rewards),
            "terminations": terms(&config["terminations"], &sections.terminations),
            "commands": commands(world.resource(), terms(&config["commands"], &sections.commands), &spec.commands),
            "events": events(world.resource(), terms(&config["events"], &sections.events)),
            "curriculum": terms(&config["curriculum"], &sections.curriculum),
            "metrics": terms(&config["metrics"], &sections.metrics),
            "task_state": terms(&config["task"], &sections.task),
            "task_state_values": task_state(world.resource(), &spec.task_state),
            "keyframe": keyframe,
            "episode_length": config["episode_length"],
            "max_episode_steps": world.resource::<Timing>().max_episode_steps,
            "scale_rewards_by_dt": config["scale_rewards_by_dt"],
        })))
    }

    /// The description as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.clone()
    }
}

/// TOML as JSON; the word `none` becomes null.
fn json_table(table: toml::Table) -> Value {
    Value::Object(table.into_iter().map(|(key, value)| (key, json_value(value))).collect())
}

fn json_value(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) if text == "none" => Value::Null,
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => shortest(number),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json_value).collect(),
        toml::Value::Table(table) => json_table(table),
    }
}

/// A number as it was written: parameters of single precision are shown with the digits that they have.
fn shortest(number: f64) -> Value {
    let single = number as f32;
    if f64::from(single) == number
        && let Ok(short) = single.to_string().parse::<f64>()
    {
        return short.into();
    }
    number.into()
}

fn physics(environment: &Environment, config: &Value) -> Value {
    let info: &ModelInfo = environment.model_info();
    let mut options = Map::new();
    options.insert("timestep".to_owned(), info.timestep.into());
    options.insert("substeps".to_owned(), environment.substeps().into());
    options.insert("control_period".to_owned(), environment.control_period().into());
    for key in ["fresh", "sensors", "layout", "visuals"] {
        options.insert(key.to_owned(), config[key].clone());
    }
    for (name, value) in &info.options {
        let value = match value {
            OptionValue::Integer(number) => json!(number),
            OptionValue::Number(number) => json!(number),
            OptionValue::Numbers(numbers) => json!(numbers),
            OptionValue::Text(text) => json!(text),
        };
        options.entry(name.clone()).or_insert(value);
    }
    options.into()
}

/// The enabled terms of a section as a list, each with its name and the type of its parameters first.
fn terms<O, T: ?Sized + 'static>(section: &Value, entries: &IndexMap<String, Entry<O, T>>) -> Vec<Map<String, Value>> {
    let described = entries.iter().filter_map(|(name, entry)| {
        let mut term = section[name].as_object()?.clone();
        if term.shift_remove("enabled") == Some(Value::Bool(false)) {
            return None;
        }
        let mut named = Map::new();
        named.insert("name".to_owned(), name.clone().into());
        named.insert("type".to_owned(), entry.term.kind().into());
        named.extend(term);
        Some(named)
    });
    described.collect()
}

fn with_columns(mut terms: Vec<Map<String, Value>>, columns: &[TermColumns]) -> Vec<Map<String, Value>> {
    for (term, columns) in terms.iter_mut().zip(columns) {
        term.insert("dim".to_owned(), columns.columns.len().into());
        term.insert("columns".to_owned(), json!([columns.columns.start, columns.columns.end]));
    }
    terms
}

/// Command terms, with the names of the errors that they report.
fn commands(
    manager: &CommandManager,
    terms: Vec<Map<String, Value>>,
    columns: &[TermColumns],
) -> Vec<Map<String, Value>> {
    let mut terms = with_columns(terms, columns);
    for (term, metrics) in terms.iter_mut().zip(manager.metrics()) {
        term.insert("metrics".to_owned(), json!(metrics));
    }
    terms
}

/// The events that happen: without randomisation, the manager leaves some out.
fn events(manager: &EventManager, mut terms: Vec<Map<String, Value>>) -> Vec<Map<String, Value>> {
    terms.retain(|term| manager.names().any(|name| term["name"] == name));
    terms
}

/// What rows keep for the task and its commands, with the ranges of the values that are limited.
fn task_state(names: &TaskStateNames, columns: &[TermColumns]) -> Vec<Map<String, Value>> {
    let named = columns.iter().map(|values| {
        let mut described = Map::new();
        described.insert("name".to_owned(), values.name.clone().into());
        described.insert("range".to_owned(), names.ranges.get(&values.name).map_or(Value::Null, |range| json!(range)));
        described
    });
    with_columns(named.collect(), columns)
}

/// Width and options of every observation group, by its name.
fn groups(environment: &Environment, config: &Value) -> Map<String, Value> {
    let described = environment.spec().groups.iter().map(|group| {
        let config = &config[&group.name];
        let options = json!({
            "dim": group.width,
            "corruption": config["corruption"] == true && environment.corruption(),
            "history_length": config["history_length"],
            "nan_policy": config["nan_policy"],
        });
        (group.name.clone(), options)
    });
    described.collect()
}

fn observations(environment: &Environment, config: &Value) -> Value {
    let mut groups = Map::new();
    for group in &environment.spec().groups {
        let config = &config[&group.name];
        let noisy = config["corruption"] == true && environment.corruption();
        let Some(entries) = environment.config().observations.get(&group.name) else { continue };
        let mut terms = with_columns(terms(&config["terms"], &entries.terms), &group.terms);
        for term in &mut terms {
            if !noisy {
                term.insert("noise".to_owned(), Value::Null);
            }
            let own = term.shift_remove("history_length").unwrap_or_default();
            let history = Some(&config["history_length"]).filter(|length| !length.is_null()).cloned();
            term.insert("history".to_owned(), history.unwrap_or(own));
        }
        groups.insert(group.name.clone(), json!(terms));
    }
    groups.into()
}
