//! `manege describe`

use std::path::PathBuf;

use clap::Args;
use comfy_table::Table;
use manege::describe::Description;
use serde_json::Value;

use super::options::EnvironmentOptions;
use super::table::{keep_words, plain, table};
use super::{Failure, print, running, usage};

/// Print every term of every manager of a task, with all parameters.
///
/// Terms are in the order in which they are evaluated, and observations in the order of their columns. What is shown is
/// what would run: after --config and --set, without the noise that --no-corruption switches off, and without the events
/// that --no-randomization leaves out. The keys for --set are `observations.GROUP.terms.NAME.KEY`,
/// `observations.GROUP.KEY`, and `SECTION.NAME.KEY` for the other sections.
#[derive(Args)]
#[command(after_help = "Examples:
  manege describe go2_joystick_flat
  manege describe go2_joystick_flat:flashsac --json
  manege describe go2_joystick_flat --save-model go2.mjb")]
pub(crate) struct Arguments {
    #[command(flatten)]
    environment: EnvironmentOptions,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Write the compiled model that the task steps, for MuJoCo's own tools of the same version
    #[arg(long, value_name = "FILE.mjb")]
    save_model: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let environment = arguments.environment.builder()?.threads(1).build().map_err(usage)?;
    let description = Description::of(&environment).map_err(running)?;
    if let Some(path) = &arguments.save_model {
        environment.save_model(path).map_err(running)?;
    }
    let json = description.to_json();
    if arguments.json {
        return print(&serde_json::to_string(&json).map_err(running)?);
    }
    print(&tables(&json))
}

/// The sections that are lists of terms, with the keys that get columns of their own.
const SECTIONS: [(&str, &[&str]); 8] = [
    ("actions", &["dim", "columns"]),
    ("commands", &["dim", "columns", "resampling_time"]),
    ("rewards", &["weight"]),
    ("terminations", &["time_out"]),
    ("events", &["mode"]),
    ("curriculum", &[]),
    ("metrics", &["reduce", "per_substep"]),
    ("task_state", &[]),
];

/// All sections, each a title and a table.
fn tables(json: &Value) -> String {
    let mut text = format!("{}:{}\n", plain(&json["task"]), plain(&json["preset"]));
    for line in summary(json) {
        text.push_str(&format!("{line}\n"));
    }
    let mut physics = table(["option", "value"]);
    for (key, value) in json["physics"].as_object().into_iter().flatten() {
        physics.add_row([key.clone(), plain(value)]);
    }
    text.push_str(&format!("\nphysics\n{physics}\n\njoints and the actuators that drive them\n{}\n", joints(json)));
    for (group, terms) in json["observations"].as_object().into_iter().flatten() {
        let table = terms_table(terms, &["dim", "columns", "noise", "clip", "scale", "delay", "history"]);
        let options = json["observation_groups"][group].as_object().into_iter().flatten();
        let options: Vec<_> = options.map(|(key, value)| format!("{key} = {}", plain(value))).collect();
        text.push_str(&format!("\nobservations: {group} ({})\n{table}\n", options.join(", ")));
    }
    for (section, columns) in SECTIONS {
        if json[section].as_array().is_some_and(|terms| !terms.is_empty()) {
            text.push_str(&format!("\n{section}\n{}\n", terms_table(&json[section], columns)));
        }
    }
    let values = json["task_state_values"].as_array().into_iter().flatten();
    let rows: Vec<_> = values.map(|value| ["name", "dim", "columns", "range"].map(|key| plain(&value[key]))).collect();
    if !rows.is_empty() {
        let mut table = table(["name", "dim", "columns", "range"]);
        table.add_rows(rows);
        text.push_str(&format!("\nvalues that rows keep for the task and its commands\n{table}\n"));
    }
    text
}

/// What concerns the environment as a whole, a sentence to a line.
fn summary(json: &Value) -> Vec<String> {
    let mut lines = vec![
        format!(
            "episodes of at most {} s, {} control steps",
            plain(&json["episode_length"]),
            json["max_episode_steps"]
        ),
        match json["keyframe"].as_str() {
            Some(name) => format!("episodes start from the keyframe `{name}`"),
            None => "episodes start from the model's reference configuration".to_owned(),
        },
    ];
    let factor = if json["scale_rewards_by_dt"] == true { " × control period" } else { "" };
    lines.push(format!("reward: the sum of value × weight{factor}"));
    if json["corruption"] == false {
        lines.push("without corruption: no observation has noise".to_owned());
    }
    if json["randomization"] == false {
        let left = "no event varies the model or pushes, and resets draw the centre of their ranges";
        lines.push(format!("without randomization: {left}"));
    }
    lines
}

/// Joints in the order of observations and actions, with the place of their actuators in the controls.
fn joints(json: &Value) -> Table {
    let mut table = table(["#", "joint", "control", "actuator"]);
    for (i, joint) in json["joints"].as_array().into_iter().flatten().enumerate() {
        let control = &json["joint_to_actuator"][i];
        let actuator = control.as_u64().map_or(&Value::Null, |control| &json["actuators"][control as usize]);
        table.add_row([i.to_string(), plain(joint), plain(control), plain(actuator)]);
    }
    table
}

/// A row per term: its name, some of its keys, and the rest as `key = value`.
fn terms_table(terms: &Value, columns: &[&str]) -> Table {
    let columns: Vec<&str> = ["name", "type"].iter().chain(columns).copied().collect();
    let mut table = table(["#"]);
    table.set_header(["#"].iter().chain(&columns).chain(&["parameters"]));
    for (i, term) in terms.as_array().into_iter().flatten().enumerate() {
        let mut row = vec![i.to_string()];
        row.extend(columns.iter().map(|column| plain(&term[*column])));
        let rest = term.as_object().into_iter().flatten().filter(|(key, _)| !columns.contains(&key.as_str()));
        let rest: Vec<String> = rest.map(|(key, value)| format!("{key} = {}", plain(value))).collect();
        let joined = rest.join(", ");
        // What does not fit into a line is easier to read with one parameter to a line.
        row.push(if joined.chars().count() > 60 { rest.join("\n") } else { joined });
        table.add_row(row);
    }
    keep_words(&mut table);
    table
}
