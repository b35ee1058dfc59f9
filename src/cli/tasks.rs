//! `manege tasks`

use clap::Args;
use manege::Environment;
use serde_json::json;

use super::{Failure, print, running, usage};

/// List tasks and presets with their sizes.
#[derive(Args)]
#[command(after_help = "Example:\n  manege tasks")]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut table = super::table::table(["task", "preset", "observations", "action", "about"]);
    let mut tasks = Vec::new();
    for task in manege_tasks::tasks() {
        let mut presets = Vec::new();
        for (i, preset) in task.presets.iter().enumerate() {
            let name = format!("{}:{}", task.name, preset.name);
            let environment = Environment::builder(&name).threads(1).build().map_err(usage)?;
            let groups = &environment.spec().groups;
            let dims: serde_json::Map<_, _> =
                groups.iter().map(|group| (group.name.clone(), group.width.into())).collect();
            let shown: Vec<_> = groups.iter().map(|group| format!("{} {}", group.name, group.width)).collect();
            let default = if i == 0 { " (default)" } else { "" };
            table.add_row([
                task.name.to_owned(),
                format!("{}{default}", preset.name),
                shown.join(", "),
                environment.action_width().to_string(),
                format!("{}: {}", task.summary, preset.summary),
            ]);
            presets.push(json!({
                "name": preset.name,
                "summary": preset.summary,
                "default": i == 0,
                "observation_dims": dims,
                "action_dim": environment.action_width(),
            }));
        }
        tasks.push(json!({ "name": task.name, "summary": task.summary, "presets": presets }));
    }
    if arguments.json {
        return print(&serde_json::to_string(&json!({ "tasks": tasks })).map_err(running)?);
    }
    print(&table.to_string())
}
