//! `manege describe`

use std::path::PathBuf;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use manege::describe::Description;
use serde_json::{Map, Value};

use super::options::EnvironmentOptions;
use super::{Failure, print, running, usage};

/// Print every term of every manager of a task, with all parameters.
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

/// A table in the style of all commands.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    table
}

/// All sections, each a title and a table.
fn tables(json: &Value) -> String {
    let mut text = format!("{}:{}\n", plain(&json["task"]), plain(&json["preset"]));
    for section in ["physics", "joints", "actuators"] {
        text.push_str(&format!("\n{section}\n"));
        match &json[section] {
            Value::Object(entries) => {
                let mut table = table(["option", "value"]);
                for (key, value) in entries {
                    table.add_row([key.clone(), plain(value)]);
                }
                text.push_str(&format!("{table}\n"));
            }
            names => text.push_str(&format!("  {}\n", plain(names))),
        }
    }
    text.push_str(&format!("\njoint → actuator\n  {}\n", plain(&json["joint_to_actuator"])));
    if let Value::Object(groups) = &json["observations"] {
        for (group, terms) in groups {
            text.push_str(&format!("\nobservations: {group}\n{}\n", terms_table(terms)));
        }
    }
    for section in ["actions", "commands", "rewards", "terminations", "events", "curriculum", "metrics", "task_state"] {
        if let Some(terms) = json[section].as_array()
            && !terms.is_empty()
        {
            text.push_str(&format!("\n{section}\n{}\n", terms_table(&json[section])));
        }
    }
    text
}

/// A row per term: its name, its common columns, and the rest as `key = value`.
fn terms_table(terms: &Value) -> Table {
    const COLUMNS: [&str; 11] =
        ["dim", "columns", "weight", "time_out", "mode", "noise", "clip", "scale", "delay", "history", "kind"];
    let empty = Vec::new();
    let terms = terms.as_array().unwrap_or(&empty);
    let columns: Vec<&str> =
        COLUMNS.into_iter().filter(|column| terms.iter().any(|term| term.get(column).is_some())).collect();
    let mut table = table(["#", "name"]);
    let mut header = vec!["#", "name"];
    header.extend(&columns);
    header.push("parameters");
    table.set_header(header);
    for (i, term) in terms.iter().enumerate() {
        let none = Map::new();
        let term = term.as_object().unwrap_or(&none);
        let mut row = vec![(i + 1).to_string(), term.get("name").map(plain).unwrap_or_default()];
        row.extend(columns.iter().map(|column| term.get(*column).map(plain).unwrap_or_default()));
        let rest: Vec<String> = term
            .iter()
            .filter(|(key, _)| *key != "name" && !columns.contains(&key.as_str()))
            .map(|(key, value)| format!("{key} = {}", plain(value)))
            .collect();
        row.push(rest.join(", "));
        table.add_row(row);
    }
    table
}

/// A value as a reader would write it.
fn plain(value: &Value) -> String {
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
