//! `docs/tasks.md` is generated from what `describe` knows of the tasks, and compared here.

use indexmap::{IndexMap, IndexSet};
use manege::Environment;
use manege::describe::Description;
use manege_tasks::{Task, tasks};
use serde_json::Value;

const INTRODUCTION: &str = "\
# The built-in tasks

This page is generated from the tasks' configurations. [The managers' page](managers.md) says what the terms do;
`manege describe TASK[:PRESET]` prints every value of one preset, with the solver's options and the order of the joints.

Not shown is what is off: `none`, `false`, 0, and ranges from 0 to 0. Where presets differ, a value is followed by the
presets that have it. Columns are half-open: `0..3` are the first three.
";

const REGENERATE: &str = "\
    docs/tasks.md is not what the tasks are; `MANEGE_UPDATE_DOCS=1 cargo x test -p manege --test documentation` writes it \
    anew";

#[test]
fn the_tasks_page_is_what_the_tasks_are() {
    let page = super::page("tasks.md");
    let expected = tasks().iter().fold(INTRODUCTION.to_owned(), |text, task| text + "\n" + &section(task));
    if std::env::var_os("MANEGE_UPDATE_DOCS").is_some() {
        std::fs::write(&page, &expected).expect("the page can be written");
    }
    let written = std::fs::read_to_string(page).unwrap_or_default().replace("\r\n", "\n");
    let mut lines = written.lines().map(Some).chain(std::iter::repeat(None)).zip(expected.lines());
    if let Some((written, expected)) = lines.find(|(written, expected)| *written != Some(*expected)) {
        panic!("{REGENERATE}\n  it says:    {}\n  should say: {expected}", written.unwrap_or("nothing more"));
    }
    assert_eq!(written.lines().count(), expected.lines().count(), "{REGENERATE}");
}

/// Something of each preset that has it.
type Each<'a> = Vec<(&'static str, &'a Value)>;

fn section(task: &Task) -> String {
    let described: Vec<(&'static str, Value)> =
        task.presets.iter().map(|preset| (preset.name, describe(task, preset.name))).collect();
    let presets: Each<'_> = described.iter().map(|(name, preset)| (*name, preset)).collect();
    let mut text = format!("## `{}`\n\n{}.\n\n", task.name, capitalised(task.summary));
    for (i, preset) in task.presets.iter().enumerate() {
        let default = if i == 0 { " (default)" } else { "" };
        text += &format!("* `{}`{default}: {}\n", preset.name, preset.summary);
    }
    let value = |pointer: &str| merged(&part(&presets, pointer));
    text += &format!(
        "\nA control step of {} s is {} physics steps of {} s. Episodes start from the keyframe {} and last at most {} s,\n\
         {} control steps.\n",
        value("/physics/control_period"),
        value("/physics/substeps"),
        value("/physics/timestep"),
        value("/keyframe"),
        value("/episode_length"),
        value("/max_episode_steps"),
    );
    for group in described[0].1["observations"].as_object().expect("groups").keys() {
        let title = format!("Observations: `{group}`, {} values", value(&format!("/observation_groups/{group}/dim")));
        text += &table(&title, &["columns", "noise", "scale"], &part(&presets, &format!("/observations/{group}")));
    }
    let sections: [(&str, &[&str]); 7] = [
        ("actions", &["columns"]),
        ("commands", &["columns"]),
        ("rewards", &["weight"]),
        ("terminations", &["time_out"]),
        ("events", &["mode"]),
        ("curriculum", &[]),
        ("task_state", &[]),
    ];
    for (section, columns) in sections {
        let title = capitalised(&section.replace('_', " "));
        text += &table(&title, columns, &part(&presets, &format!("/{section}")));
    }
    text
}

fn describe(task: &Task, preset: &str) -> Value {
    let environment = Environment::builder(&format!("{}:{preset}", task.name)).build().expect("a built-in task");
    Description::of(&environment).expect("every parameter has a text").to_json()
}

/// A title, and a row for each term of lists of terms. `columns` are the keys that have a column of their own. Nothing if
/// there are no terms.
fn table(title: &str, columns: &[&str], lists: &Each<'_>) -> String {
    let mut terms: IndexMap<&str, Each<'_>> = IndexMap::new();
    for (preset, list) in lists {
        for term in list.as_array().expect("a list") {
            terms.entry(term["name"].as_str().expect("a name")).or_default().push((preset, term));
        }
    }
    if terms.is_empty() {
        return String::new();
    }
    let columns = [&["type"], columns].concat();
    let header = [&["term"], &columns[..], &["parameters"]].concat();
    let mut text = format!("\n### {title}\n\n{}{}", row(&header), row(&vec!["---"; header.len()]));
    for (name, term) in &terms {
        let mut cells = vec![format!("`{name}`")];
        if term.len() < lists.len() {
            cells[0] += &format!(" ({})", names(term));
        }
        cells.extend(columns.iter().map(|key| match *key {
            "columns" => merged(&part(term, "/columns")).replace(", ", "..").replace(['[', ']'], ""),
            key => merged(&part(term, &format!("/{key}"))),
        }));
        let apart = [&["name", "dim", "columns"], &columns[..]].concat();
        let keys: IndexSet<&String> =
            term.iter().flat_map(|(_, term)| term.as_object().expect("a table").keys()).collect();
        let parameters = keys.into_iter().filter(|key| !apart.contains(&key.as_str()));
        let parameters = parameters.map(|key| (key, part(term, &format!("/{key}"))));
        let parameters = parameters.filter(|(_, values)| !values.iter().all(|(_, value)| is_off(value)));
        let parameters: Vec<_> = parameters.map(|(key, values)| format!("{key} = {}", merged(&values))).collect();
        cells.push(parameters.join(", "));
        text += &row(&cells);
    }
    text
}

/// A part of each, by its JSON pointer.
fn part<'a>(of: &Each<'a>, pointer: &str) -> Each<'a> {
    of.iter().map(|(preset, value)| (*preset, value.pointer(pointer).unwrap_or(&Value::Null))).collect()
}

fn names(of: &Each<'_>) -> String {
    of.iter().map(|(preset, _)| *preset).collect::<Vec<_>>().join(", ")
}

/// The value that all have, or each value with the presets that have it.
fn merged(values: &Each<'_>) -> String {
    let mut texts: IndexMap<String, Each<'_>> = IndexMap::new();
    for (preset, value) in values {
        texts.entry(plain(value)).or_default().push((preset, value));
    }
    if texts.len() == 1 {
        return texts.swap_remove_index(0).map_or_else(String::new, |(text, _)| text);
    }
    let differing = texts.iter().filter(|(text, _)| !text.is_empty());
    differing.map(|(text, of)| format!("{text} ({})", names(of))).collect::<Vec<_>>().join("; ")
}

/// A value as short as it can be read; empty for what is not there.
fn plain(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), rounded),
        Value::String(text) => format!("`{text}`"),
        Value::Array(values) if values.iter().all(Value::is_string) => list(values, " "),
        Value::Array(values) => format!("[{}]", list(values, ", ")),
        Value::Object(entries) => {
            let rest = entries.iter().filter(|(key, value)| {
                let shown = ["kind", "min", "max"].contains(&key.as_str()) || (*key == "operation" && *value == "add");
                !shown && !is_off(value)
            });
            let rest: Vec<_> = rest.map(|(key, value)| format!("{} {}", quoted(key), plain(value))).collect();
            let bounds = entries.get("min").zip(entries.get("max"));
            let bounds = bounds.map(|(min, max)| format!("[{}, {}]", plain(min), plain(max)));
            let rest = (!rest.is_empty()).then(|| format!("({})", rest.join(", ")));
            let kind = entries.get("kind").and_then(Value::as_str).map(str::to_owned);
            [kind, bounds, rest].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
    }
}

fn list(values: &[Value], separator: &str) -> String {
    values.iter().map(plain).collect::<Vec<_>>().join(separator)
}

/// Patterns as code, so that their stars are not taken for emphasis.
fn quoted(key: &str) -> String {
    let word = key.chars().all(|character| character.is_alphanumeric() || character == '_');
    if word { key.to_owned() } else { format!("`{key}`") }
}

/// At most five digits after the point, unless that would leave nothing.
fn rounded(number: f64) -> String {
    if number.abs() < 1e-4 {
        return number.to_string();
    }
    let text = format!("{number:.5}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Whether a value says that something is off.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(values) => values.iter().all(is_off),
        _ => false,
    }
}

fn row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| cell.as_ref().replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
