//! What the runs of all cases say: as JSON, CSV, Markdown and a table.

use std::io::{self, Write};
use std::path::Path;

use comfy_table::ContentArrangement;
use manege::files::{Existing, write_whole};
use serde::Serialize;
use serde_json::{Value, json};

use super::list::Case;
use super::run::Measurement;
use super::statistics::Sample;
use crate::cli::table::table;

/// What all cases have in common.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Protocol {
    pub(super) envs: u32,
    pub(super) warmup: u64,
    pub(super) steps: u64,
    pub(super) runs: u32,
    pub(super) threads: u16,
    pub(super) seed: u64,
    pub(super) replay_capacity: u32,
    pub(super) actions: &'static str,
}

/// What became of a case.
pub(super) struct Outcome {
    pub(super) case: Case,
    /// `measured`, or what is missing for it.
    pub(super) status: &'static str,
    pub(super) direct: Vec<Measurement>,
    pub(super) managed: Vec<Measurement>,
}

/// The runs of one side.
#[derive(Debug, Clone, Serialize)]
struct Side {
    /// Median over runs of each run's environment steps per second.
    env_steps_per_s: f64,
    /// Standard deviation of that as a part of its mean, over the runs.
    spread: f64,
    /// Medians over runs of each run's mean per control step, ms.
    step_ms: f64,
    physics_ms: f64,
    update_ms: f64,
    reset_ms: f64,
    collector_ms: f64,
    resets_per_step: f64,
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Serialize)]
struct Run {
    env_steps_per_s: f64,
    step_ms: Sample,
    physics_ms: Sample,
    update_ms: Sample,
    reset_ms: Sample,
    collector_ms: Sample,
    resets: u64,
}

#[derive(Debug, Clone, Serialize)]
struct Ceiling {
    env_steps_per_s: f64,
    spread: f64,
    step_ms: f64,
}

/// Environment steps per second of a run: rows × steps / time.
fn rate(envs: u32, step_ms: &[f64]) -> f64 {
    f64::from(envs) * step_ms.len() as f64 * 1e3 / step_ms.iter().sum::<f64>()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    Sample::of(&values.collect::<Vec<_>>()).median
}

impl Side {
    fn of(runs: &[Measurement], envs: u32) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let runs: Vec<Run> = runs
            .iter()
            .map(|run| Run {
                env_steps_per_s: rate(envs, &run.step_ms),
                step_ms: Sample::of(&run.step_ms),
                physics_ms: Sample::of(&run.physics_ms),
                update_ms: Sample::of(&run.update_ms),
                reset_ms: Sample::of(&run.reset_ms),
                collector_ms: Sample::of(&run.collector_ms),
                resets: run.resets.iter().sum(),
            })
            .collect();
        let rates = Sample::of(&runs.iter().map(|run| run.env_steps_per_s).collect::<Vec<_>>());
        let over = |mean: fn(&Run) -> f64| median(runs.iter().map(mean));
        Some(Self {
            env_steps_per_s: rates.median,
            spread: rates.variation(),
            step_ms: over(|run| run.step_ms.mean),
            physics_ms: over(|run| run.physics_ms.mean),
            update_ms: over(|run| run.update_ms.mean),
            reset_ms: over(|run| run.reset_ms.mean),
            collector_ms: over(|run| run.collector_ms.mean),
            resets_per_step: over(|run| run.resets as f64 / run.step_ms.samples as f64),
            runs,
        })
    }
}

impl Ceiling {
    fn of(runs: &[Measurement], envs: u32) -> Option<Self> {
        if runs.is_empty() {
            return None;
        }
        let rates = Sample::of(&runs.iter().map(|run| rate(envs, &run.ceiling_ms)).collect::<Vec<_>>());
        Some(Self {
            env_steps_per_s: rates.median,
            spread: rates.variation(),
            step_ms: median(runs.iter().map(|run| Sample::of(&run.ceiling_ms).mean)),
        })
    }
}

/// The report on some cases.
pub(super) struct Report {
    protocol: Protocol,
    cases: Vec<CaseReport>,
}

#[derive(Debug, Clone, Serialize)]
struct CaseReport {
    case: &'static str,
    task: &'static str,
    preset: &'static str,
    backend: &'static str,
    status: &'static str,
    direct: Option<Side>,
    managed: Option<Side>,
    /// The physics engine alone.
    ceiling: Option<Ceiling>,
    managed_over_direct: Option<f64>,
    managed_over_ceiling: Option<f64>,
    /// Whether all runs of both sides reset the same number of rows in every step.
    resets_equal: Option<bool>,
}

impl CaseReport {
    fn new(outcome: &Outcome, envs: u32) -> Self {
        let Case { name, preset, task, backend } = outcome.case;
        let direct = Side::of(&outcome.direct, envs);
        let managed = Side::of(&outcome.managed, envs);
        let ceiling = Ceiling::of(&outcome.direct, envs);
        let ratio = |below: Option<f64>| Some(managed.as_ref()?.env_steps_per_s / below?);
        let mut resets = outcome.managed.iter().chain(&outcome.direct).map(|run| &run.resets);
        let both = direct.is_some() && managed.is_some();
        let first = resets.next();
        Self {
            case: name,
            task,
            preset,
            backend,
            status: outcome.status,
            managed_over_direct: ratio(direct.as_ref().map(|side| side.env_steps_per_s)),
            managed_over_ceiling: ratio(ceiling.as_ref().map(|ceiling| ceiling.env_steps_per_s)),
            resets_equal: both.then(|| resets.all(|resets| Some(resets) == first)),
            direct,
            managed,
            ceiling,
        }
    }

    /// The cells of the table, in the order of [`COLUMNS`].
    fn cells(&self) -> Vec<String> {
        let number =
            |value: Option<f64>, digits: usize| value.map_or("–".to_owned(), |value| format!("{value:.digits$}"));
        let percent = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{:.1} %", 100.0 * value));
        let (direct, managed) = (self.direct.as_ref(), self.managed.as_ref());
        if direct.is_none() && managed.is_none() {
            let mut cells = vec![self.case.to_owned(), self.status.to_owned()];
            cells.resize(COLUMNS.len(), "–".to_owned());
            return cells;
        }
        // Both sides, where they are not the same by construction.
        let pair = |of: fn(&Side) -> f64| format!("{} / {}", number(direct.map(of), 2), number(managed.map(of), 2));
        let resets = match self.resets_equal {
            Some(false) => pair(|side| side.resets_per_step) + " (differ)",
            _ => number(managed.map(|side| side.resets_per_step), 1),
        };
        let spread = |side: Option<&Side>| percent(side.map(|side| side.spread));
        vec![
            self.case.to_owned(),
            number(direct.map(|side| side.env_steps_per_s), 0),
            number(managed.map(|side| side.env_steps_per_s), 0),
            percent(self.managed_over_direct),
            percent(self.managed_over_ceiling),
            pair(|side| side.physics_ms),
            pair(|side| side.update_ms),
            pair(|side| side.reset_ms),
            resets,
            format!("{} / {}", spread(direct), spread(managed)),
        ]
    }
}

const COLUMNS: [&str; 10] = [
    "case",
    "direct",
    "managed",
    "managed/direct",
    "managed/ceiling",
    "physics ms",
    "update ms",
    "reset ms",
    "resets per step",
    "spread",
];

/// What the columns of the table mean.
const LEGEND: &str = "direct, managed: environment steps per second, median over runs
ceiling: the same steps and resets through the physics engine alone, by mj_step
ms: means per control step, direct / managed
spread: standard deviation over runs as a part of the mean, direct / managed";

impl Report {
    pub(super) fn new(protocol: Protocol, outcomes: &[Outcome]) -> Self {
        let cases = outcomes.iter().map(|outcome| CaseReport::new(outcome, protocol.envs)).collect();
        Self { protocol, cases }
    }

    /// The names of the cases whose sides did not reset the same rows.
    pub(super) fn unequal_resets(&self) -> Vec<&'static str> {
        self.cases.iter().filter(|case| case.resets_equal == Some(false)).map(|case| case.case).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "protocol": self.protocol, "cases": self.cases })
    }

    /// The table for a terminal.
    pub(super) fn to_text(&self) -> String {
        let mut table = table(COLUMNS);
        // Names that are broken over lines cannot be copied.
        table.set_content_arrangement(ContentArrangement::Disabled);
        for case in &self.cases {
            table.add_row(case.cells());
        }
        format!("{table}\n\n{LEGEND}\n{}", self.check())
    }

    /// What the comparison of resets gave.
    fn check(&self) -> String {
        let compared = self.cases.iter().filter(|case| case.resets_equal.is_some()).count();
        match (compared, self.unequal_resets().as_slice()) {
            (0, _) => "resets: nothing to compare".to_owned(),
            (compared, []) => {
                format!("resets: direct and managed reset as many rows in every step of {compared} cases")
            }
            (_, unequal) => format!("resets: direct and managed DIFFER in {}", unequal.join(", ")),
        }
    }

    fn to_markdown(&self) -> String {
        let Protocol { envs, warmup, steps, runs, threads, seed, replay_capacity, actions } = &self.protocol;
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = line(&COLUMNS.map(str::to_owned));
        text.push_str(&line(&COLUMNS.map(|column| if column == "case" { "---" } else { "---:" }.to_owned())));
        for case in &self.cases {
            text.push_str(&line(&case.cells()));
        }
        format!(
            "{text}\n{}\n- {}\n\n{envs} rows, {threads} threads, seed {seed}, {actions} actions, replay of \
             {replay_capacity} control steps; 1 + {warmup} control steps before {steps} measured ones; {runs} runs of \
             each side in turn, each in a process of its own.\n",
            LEGEND.lines().map(|line| format!("- {line}")).collect::<Vec<_>>().join("\n"),
            self.check()
        )
    }

    /// One line for each run, and for each case that could not be run.
    fn to_csv(&self) -> String {
        let mut text = String::from(
            "case,status,side,run,env_steps_per_s,step_ms,physics_ms,update_ms,reset_ms,collector_ms,resets_per_step\n",
        );
        for case in &self.cases {
            let sides = [("direct", &case.direct), ("managed", &case.managed)];
            for (side, runs) in sides.iter().filter_map(|(name, side)| Some((name, &side.as_ref()?.runs))) {
                for (number, run) in runs.iter().enumerate() {
                    let means = [&run.step_ms, &run.physics_ms, &run.update_ms, &run.reset_ms, &run.collector_ms]
                        .map(|sample| sample.mean.to_string())
                        .join(",");
                    let resets = run.resets as f64 / run.step_ms.samples as f64;
                    let (name, status, rate) = (case.case, case.status, run.env_steps_per_s);
                    text.push_str(&format!("{name},{status},{side},{},{rate},{means},{resets}\n", number + 1));
                }
            }
            if let Some(ceiling) = &case.ceiling {
                let Ceiling { env_steps_per_s, step_ms, .. } = ceiling;
                text.push_str(&format!("{},{},ceiling,,{env_steps_per_s},{step_ms},,,,,\n", case.case, case.status));
            }
            if case.direct.is_none() && case.managed.is_none() {
                text.push_str(&format!("{},{},,,,,,,,,\n", case.case, case.status));
            }
        }
        text
    }

    /// Writes `cases.json`, `cases.csv` and `cases.md` into a folder, which is made if it is not there.
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let json = serde_json::to_string_pretty(&self.to_json())? + "\n";
        for (name, text) in [("cases.json", json), ("cases.csv", self.to_csv()), ("cases.md", self.to_markdown())] {
            write_whole(&folder.join(name), Existing::Replace, |file| file.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}
