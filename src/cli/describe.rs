//! `manege describe`

use std::path::PathBuf;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use manege::describe::Description;
use serde_json::Value;

use super::options::EnvironmentOptions;
use super::{Failure, print, running, usage};

/// Print every term of every manager of a task, with all parameters.
///
/// Terms are in the order in which they are evaluated, and observations in the order of their columns. What is shown is
/// what would run: after --config and --set, and without the noise that --no-corruption switches off. The keys for --set
/// are `observations.GROUP.terms.NAME.KEY`, and `SECTION.NAME.KEY` for the other sections.
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

/// A table in the style of all commands, wide cells wrapped.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(header);
    table
}

/// Columns of the terminal that tables take at most.
const WIDTH: u16 = 140;

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
    text.push_str(&format!("episodes of at most {} s\n", plain(&json["episode_length"])));
    let mut physics = table(["option", "value"]);
    for (key, value) in json["physics"].as_object().into_iter().flatten() {
        physics.add_row([key.clone(), plain(value)]);
    }
    text.push_str(&format!("\nphysics\n{physics}\n\njoints and the actuators that drive them\n{}\n", joints(json)));
    for (group, terms) in json["observations"].as_object().into_iter().flatten() {
        let table = terms_table(terms, &["dim", "columns", "noise", "clip", "scale", "delay", "history"]);
        text.push_str(&format!("\nobservations: {group}\n{table}\n"));
    }
    for (section, columns) in SECTIONS {
        if json[section].as_array().is_some_and(|terms| !terms.is_empty()) {
            text.push_str(&format!("\n{section}\n{}\n", terms_table(&json[section], columns)));
        }
    }
    text
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
    let mut table = table(["#"]);
    let header = ["#", "name", "type"].into_iter().chain(columns.iter().copied()).chain(["parameters"]);
    table.set_header(header);
    for (i, term) in terms.as_array().into_iter().flatten().enumerate() {
        let mut row = vec![i.to_string(), plain(&term["name"]), plain(&term["type"])];
        row.extend(columns.iter().map(|column| plain(&term[*column])));
        let rest = term.as_object().into_iter().flatten();
        let rest =
            rest.filter(|(key, _)| !["name", "type"].contains(&key.as_str()) && !columns.contains(&key.as_str()));
        let rest: Vec<String> = rest.map(|(key, value)| format!("{key} = {}", plain(value))).collect();
        let joined = rest.join(", ");
        // What does not fit into a line is easier to read with one parameter to a line.
        row.push(if joined.chars().count() > 60 { rest.join("\n") } else { joined });
        table.add_row(row);
    }
    table
}

/// A value as a reader would write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) if values.iter().all(Value::is_string) => {
            values.iter().map(plain).collect::<Vec<_>>().join(", ")
        }
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => match (entries.get("kind").map(plain), entries.len()) {
            (Some(kind), 1) => kind,
            (kind, _) => {
                let rest = entries.iter().filter(|(key, _)| *key != "kind");
                let rest: Vec<_> = rest.map(|(key, value)| format!("{key} {}", plain(value))).collect();
                format!("{}({})", kind.unwrap_or_default(), rest.join(", "))
            }
        },
        other => other.to_string(),
    }
}
