//! One run of one side, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use manege::Environment;
use manege::collector::{Collector, Policy, PolicyError, ReplayRing, TransitionLayout};
use serde::{Deserialize, Serialize};

use crate::cli::{Failure, print, running, usage};

/// What a run is told.
#[derive(Args, Debug, Clone)]
pub(crate) struct RunArguments {
    /// Task, or task:preset
    #[arg(value_name = "TASK[:PRESET]")]
    pub(super) task: String,
    /// Number of rows
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) envs: u32,
    /// Most threads that run at once
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) threads: u16,
    /// Key of every random stream
    #[arg(long)]
    pub(super) seed: u64,
    /// Control steps before the measured ones
    #[arg(long)]
    pub(super) warmup: u64,
    /// Measured control steps
    #[arg(long)]
    pub(super) steps: u64,
    /// Control steps that the replay ring holds
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) replay_capacity: u32,
}

impl RunArguments {
    /// The words that say the same to a child process.
    fn words(&self) -> Vec<String> {
        let Self { task, envs, threads, seed, warmup, steps, replay_capacity } = self;
        let mut words = vec![task.clone()];
        let options = [
            ("--envs", envs.to_string()),
            ("--threads", threads.to_string()),
            ("--seed", seed.to_string()),
            ("--warmup", warmup.to_string()),
            ("--steps", steps.to_string()),
            ("--replay-capacity", replay_capacity.to_string()),
        ];
        words.extend(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        words
    }
}

/// What a run prints: durations of every measured control step, ms, and the rows that were reset in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measurement {
    /// All that a collector does: the environment's step, the write into the replay ring, the bookkeeping.
    pub(super) step_ms: Vec<f64>,
    /// The physics dispatch.
    pub(super) physics_ms: Vec<f64>,
    /// The environment's step without physics and resets.
    pub(super) update_ms: Vec<f64>,
    /// The resets, their physics included.
    pub(super) reset_ms: Vec<f64>,
    /// Replay and bookkeeping.
    pub(super) collector_ms: Vec<f64>,
    /// Rows reset.
    pub(super) resets: Vec<u64>,
    /// The same steps and state writes through the physics engine alone. Only the direct side measures it.
    #[serde(default)]
    pub(super) ceiling_ms: Vec<f64>,
}

/// Leaves the actions at the zeros that the collector begins with.
struct NoActions;

impl Policy for NoActions {
    fn act(&mut self, _: &[f32], _: &mut [f32]) -> Result<(), PolicyError> {
        Ok(())
    }
}

/// Measures the managed side in this process, and prints what was measured.
pub(crate) fn run_managed(arguments: &RunArguments) -> Result<(), Failure> {
    let environment = Environment::builder(&arguments.task)
        .rows(arguments.envs as usize)
        .threads(usize::from(arguments.threads))
        .seed(arguments.seed)
        .build()
        .map_err(usage)?;
    let mut ring =
        ReplayRing::new(TransitionLayout::of(&environment), arguments.replay_capacity as usize).map_err(usage)?;
    let mut collector = Collector::new(environment).map_err(running)?;
    let mut measured = Measurement::default();
    // One step never counts: it meets cold caches and the first faults of fresh memory.
    let unmeasured = 1 + arguments.warmup;
    for step in 0..unmeasured + arguments.steps {
        let episodes = collector.statistics().episodes();
        let begun = Instant::now();
        ring.push(&collector.step(&mut NoActions).map_err(running)?);
        let elapsed = begun.elapsed();
        if step >= unmeasured {
            let times = collector.environment().timings();
            measured.step_ms.push(milliseconds(elapsed));
            measured.physics_ms.push(milliseconds(times.physics));
            measured.update_ms.push(milliseconds(times.managers()));
            measured.reset_ms.push(milliseconds(times.reset));
            measured.collector_ms.push(milliseconds(elapsed.saturating_sub(times.total)));
            // Every episode that ends is followed by a reset of its row.
            measured.resets.push(collector.statistics().episodes() - episodes);
        }
    }
    print(&serde_json::to_string(&measured).map_err(running)?)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The executable that measures the direct side.
pub(super) struct DirectProgram(PathBuf);

impl DirectProgram {
    const NAME: &str = "manege-direct";

    /// The program at `path`, or the one beside this program.
    pub(super) fn find(path: Option<&Path>) -> anyhow::Result<Self> {
        let path = match path {
            Some(path) => path.to_path_buf(),
            None => {
                let own = std::env::current_exe().context("cannot tell where this program is")?;
                own.with_file_name(Self::NAME).with_extension(std::env::consts::EXE_EXTENSION)
            }
        };
        if path.is_file() {
            return Ok(Self(path));
        }
        bail!(
            "the direct side is a program of its own, and {} is not there; `cargo build --release -p {}` builds it, \
             `cargo x cases` does so by itself, and --direct names another place",
            path.display(),
            Self::NAME
        )
    }

    /// The tasks that have a direct version.
    pub(super) fn tasks(&self) -> anyhow::Result<Vec<String>> {
        let printed = output(Command::new(&self.0).arg("tasks"))?;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// Measures the direct side and the ceiling.
    pub(super) fn run(&self, arguments: &RunArguments) -> anyhow::Result<Measurement> {
        measure(Command::new(&self.0).arg("run").args(arguments.words()))
    }
}

/// Measures the managed side in a process of its own.
pub(super) fn spawn_managed(arguments: &RunArguments) -> anyhow::Result<Measurement> {
    let own = std::env::current_exe().context("cannot tell where this program is")?;
    measure(Command::new(own).arg(super::MANAGED_RUN).args(arguments.words()))
}

fn measure(command: &mut Command) -> anyhow::Result<Measurement> {
    let printed = output(command)?;
    let program = command.get_program().to_string_lossy();
    let measured: Measurement =
        serde_json::from_str(&printed).with_context(|| format!("{program} did not print a measurement"))?;
    if measured.step_ms.is_empty() {
        return Err(anyhow!("{program} measured nothing"));
    }
    Ok(measured)
}

/// What a child that succeeds prints. Its own messages go to this program's stderr.
fn output(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("what {program} printed is not text"))
}
