//! `manege cases`

mod list;
mod report;
mod run;
mod statistics;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::interrupt::Interrupt;
use super::{Failure, print, running, usage};
use list::Case;
use report::{Outcome, Protocol, Report};
use run::{DirectProgram, Measurement};

pub(crate) use run::{RunArguments, run_managed};

/// Name of the hidden command that measures the managed side in a process of its own.
pub(crate) const MANAGED_RUN: &str = "cases-run";

/// Measure the seven benchmark cases: managed against direct, and against the physics engine alone.
///
/// A case is a task under zero actions, as a collector runs it: the environment's step, the write into a replay ring,
/// and the bookkeeping of returns. `direct` is the same task as one fused loop without ECS and managers, which computes the
/// same numbers; it is a program of its own, manege-direct. The ceiling is the physics engine alone, with the same steps,
/// controls and resets.
///
/// Every run is a process of its own, one after the other, direct and managed in turn. Reported are medians over runs. A
/// case that this program cannot run is reported with what it lacks.
///
/// With --out, the results go to cases.json (every run, with statistics of every phase), cases.csv (a line for every run)
/// and cases.md (the table).
#[derive(Args)]
#[command(after_help = "Examples:
  cargo x cases --out cases
  cargo x cases --only sac/g1_walk_flat/mujoco --envs 1024 --steps 50
  manege cases --threads 8 --json")]
pub(crate) struct Arguments {
    /// Number of rows
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    envs: u32,

    /// Control steps before the measured ones, after a first one that never counts
    #[arg(long, value_name = "W", default_value_t = 10)]
    warmup: u64,

    /// Measured control steps
    #[arg(long, value_name = "T", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,

    /// Runs of each side
    #[arg(long, value_name = "R", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Most threads that run at once [default: one per core]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Key of every random stream
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Control steps that the replay ring holds
    #[arg(long, value_name = "STEPS", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    replay_capacity: u32,

    /// Run these cases only, by the names in the table
    #[arg(long, value_name = "CASE", num_args = 1..)]
    only: Vec<String>,

    /// Write cases.json, cases.csv and cases.md into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// The manege-direct program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    direct: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cases = list::select(&arguments.only)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = arguments.threads.unwrap_or(u16::try_from(cores).unwrap_or(u16::MAX));
    let runnable = cases.iter().any(|case| case.lacks().is_none());
    let direct = runnable.then(|| DirectProgram::find(arguments.direct.as_deref())).transpose().map_err(usage)?;
    let written = direct.as_ref().map(DirectProgram::tasks).transpose().map_err(usage)?.unwrap_or_default();
    let interrupt = Interrupt::listen().map_err(running)?;

    let mut outcomes = Vec::new();
    let mut failure = None;
    for case in cases {
        let direct = direct.as_ref().filter(|_| written.iter().any(|task| task == case.task));
        let (outcome, error) = measure(case, direct, arguments, threads, &interrupt);
        outcomes.push(outcome);
        failure = error;
        if failure.is_some() || interrupt.signal().is_some() {
            break;
        }
    }
    let protocol = Protocol {
        envs: arguments.envs,
        warmup: arguments.warmup,
        steps: arguments.steps,
        runs: arguments.runs,
        threads,
        seed: arguments.seed,
        replay_capacity: arguments.replay_capacity,
        actions: "zero",
    };
    let report = Report::new(protocol, &outcomes);
    if let Some(folder) = &arguments.out {
        let failed = |error| running(anyhow::anyhow!("cannot write to {}: {error}", folder.display()));
        report.write(folder).map_err(failed)?;
    }
    if arguments.json {
        print(&serde_json::to_string(&report.to_json()).map_err(running)?)?;
    } else {
        print(&report.to_text())?;
    }
    if let Some(signal) = interrupt.signal() {
        eprintln!("interrupted; the runs that were complete are reported");
        return Err(Failure::Interrupted(signal));
    }
    match (failure, report.unequal_resets().as_slice()) {
        (Some(error), _) => Err(running(error)),
        (None, []) => Ok(()),
        (None, unequal) => {
            Err(running(anyhow::anyhow!("direct and managed did not reset the same rows in {}", unequal.join(", "))))
        }
    }
}

/// Runs a case as often as asked, both sides in turn; up to the first failure, or a signal.
fn measure(
    case: Case,
    direct: Option<&DirectProgram>,
    arguments: &Arguments,
    threads: u16,
    interrupt: &Interrupt,
) -> (Outcome, Option<anyhow::Error>) {
    let status = match (case.lacks(), direct) {
        (Some(lack), _) => lack,
        (None, None) => "direct version not built",
        (None, Some(_)) => "measured",
    };
    let mut outcome = Outcome { case, status, direct: Vec::new(), managed: Vec::new() };
    if case.lacks().is_some() {
        return (outcome, None);
    }
    let child = RunArguments {
        task: case.environment(),
        envs: arguments.envs,
        threads,
        seed: arguments.seed,
        warmup: arguments.warmup,
        steps: arguments.steps,
        replay_capacity: arguments.replay_capacity,
    };
    for round in 1..=arguments.runs {
        let take = |name: &str, run: &dyn Fn() -> anyhow::Result<Measurement>, to: &mut Vec<Measurement>| {
            if interrupt.signal().is_some() {
                return Ok(());
            }
            if std::io::stderr().is_terminal() {
                eprintln!("{}: {name}, run {round} of {}", case.name, arguments.runs);
            }
            match run() {
                Ok(measured) => to.push(measured),
                // The signal went to the child as well.
                Err(_) if interrupt.signal().is_some() => {}
                Err(error) => return Err(error.context(format!("{}: {name}, run {round}", case.name))),
            }
            Ok(())
        };
        let sides = direct
            .map_or(Ok(()), |direct| take("direct", &|| direct.run(&child), &mut outcome.direct))
            .and_then(|()| take("managed", &|| run::spawn_managed(&child), &mut outcome.managed));
        if let Err(error) = sides {
            outcome.status = "failed";
            return (outcome, Some(error));
        }
        if interrupt.signal().is_some() {
            outcome.status = "interrupted";
            break;
        }
    }
    (outcome, None)
}
