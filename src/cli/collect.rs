//! `manege collect`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use manege::Environment;
use manege::collector::{
    Checksum, CollectError, Collector, Policy, RandomPolicy, ReplayRing, ShardDescription, ShardWriter, Statistics,
    TransitionLayout, ZeroPolicy,
};
use manege_systems::config::nearest;
use serde_json::{Map, Value, json};

use super::interrupt::Interrupt;
use super::options::EnvironmentOptions;
use super::table::table;
use super::{Failure, print, running, usage};

/// Step rows under a policy and collect the transitions.
///
/// A row whose episode ends starts the next one in the same control step; its transition ends in the last observation of
/// the old episode.
///
/// With --out, transitions go to a folder as shards of up to 64 MiB: transitions-00000.npz, ... with the arrays
/// `obs/GROUP`, `next_obs/GROUP`, actions, rewards, terminated and truncated, control steps first, then rows. A shard is
/// whole from the moment it has its name. meta.json says what the shards are and which there are.
///
/// Times are means per control step: physics, the managers around it, the resets, and the collector, which is all else
/// (the policy, and what becomes of the transitions). The checksum proves that two runs computed the same: it is 64-bit
/// FNV-1a over the bytes of all observations, rewards and flags after every step. Its time is not counted.
///
/// Ctrl-C finishes the control step, writes what was collected and reports it; a second one ends at once.
#[derive(Args)]
#[command(after_help = "Examples:
  manege collect go2_joystick_flat --envs 1024 --steps 200
  manege collect go2_joystick_flat:flashsac --policy normal --out data --seed 3
  manege collect go2_joystick_flat --set rewards.action_rate.weight=-0.01 --json

In Python: numpy.load('data/transitions-00000.npz')['obs/policy'] has shape (steps, rows, columns).")]
pub(crate) struct Arguments {
    #[command(flatten)]
    environment: EnvironmentOptions,

    /// Number of rows
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    envs: u32,

    /// Number of control steps
    #[arg(long, value_name = "T", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,

    /// What acts: zeros, uniform (in [-1, 1)), normal (mean 0, deviation 1), or an ONNX file
    #[arg(long, value_name = "zeros|uniform|normal|FILE.onnx", default_value = "zeros")]
    policy: String,

    /// Write the transitions into this folder, as shards that numpy loads
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Keep the transitions of the last control steps in memory, as a learner in the same process would
    #[arg(long, value_name = "STEPS", value_parser = clap::value_parser!(u32).range(1..))]
    replay_capacity: Option<u32>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What a run gave.
struct Report {
    checksum: Checksum,
    elapsed: Duration,
    /// Time outside the environment's steps: policy, replay, shards.
    collecting: Duration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let environment = arguments.environment.builder()?.rows(arguments.envs as usize).build().map_err(usage)?;
    let layout = TransitionLayout::of(&environment);
    let mut policy = policy(&arguments.policy, &environment)?;
    let mut ring = arguments
        .replay_capacity
        .map(|steps| ReplayRing::new(layout.clone(), steps as usize))
        .transpose()
        .map_err(usage)?;
    let interrupt = Interrupt::listen().map_err(running)?;
    // Last, so that a command that cannot run leaves no folder behind.
    let description = ShardDescription::of(&environment, &arguments.policy);
    let mut shards = arguments
        .out
        .as_ref()
        .map(|folder| ShardWriter::create(folder, description, layout))
        .transpose()
        .map_err(usage)?;
    let mut collector = Collector::new(environment).map_err(running)?;
    let progress = progress_bar(arguments.steps);
    let mut checksum = Checksum::new();
    let (mut stepping, mut hashing) = (Duration::ZERO, Duration::ZERO);
    let started = Instant::now();
    let mut failure = None;
    for _ in 0..arguments.steps {
        if interrupt.signal().is_some() {
            break;
        }
        if let Err(error) = step(&mut collector, &mut *policy, ring.as_mut(), shards.as_mut()) {
            failure = Some(error);
            break;
        }
        let environment = collector.environment();
        stepping += environment.timings().total;
        // Reading every buffer once more is the run's proof, not its work.
        let pause = Instant::now();
        checksum.add_step(environment);
        hashing += pause.elapsed();
        progress.inc(1);
    }
    let written = shards.map(ShardWriter::finish).transpose();
    // What the checksum took does not count.
    let elapsed = started.elapsed().saturating_sub(hashing);
    let report = Report { checksum, elapsed, collecting: elapsed.saturating_sub(stepping) };
    progress.finish_and_clear();

    let (done, asked) = (collector.statistics().steps(), arguments.steps);
    let kept = match (&written, &arguments.out) {
        (Ok(Some(written)), Some(folder)) if written.steps == done => format!("they are in {}", folder.display()),
        (Ok(Some(written)), Some(folder)) => format!("{} of them are in {}", written.steps, folder.display()),
        _ => "they were not written".to_owned(),
    };
    if let Some(error) = failure {
        return Err(running(error.context(format!("stopped after {done} of {asked} control steps; {kept}"))));
    }
    let written = written.map_err(running)?;
    let interrupted = interrupt.signal().filter(|_| done < asked);
    if interrupted.is_some() {
        eprintln!("interrupted after {done} of {asked} control steps; {kept}");
    }
    let json = to_json(&collector, &report, &arguments.policy);
    if arguments.json {
        print(&serde_json::to_string(&json).map_err(running)?)?;
    } else {
        let mut text = summary(&json);
        if let (Some(folder), Some(written)) = (&arguments.out, written) {
            text.push_str(&format!("\nwritten: {} shards to {}", written.shards, folder.display()));
        }
        if let Some(ring) = ring {
            text.push_str(&format!("\nreplay: {} transitions in memory", ring.transitions()));
        }
        print(&text)?;
    }
    interrupted.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// One control step, and what happens with its transitions.
fn step(
    collector: &mut Collector,
    policy: &mut dyn Policy,
    ring: Option<&mut ReplayRing>,
    shards: Option<&mut ShardWriter>,
) -> Result<(), anyhow::Error> {
    let transitions = collector.step(policy).map_err(|error: CollectError| anyhow!(error))?;
    if let Some(ring) = ring {
        ring.push(&transitions);
    }
    if let Some(shards) = shards {
        shards.write(&transitions)?;
    }
    Ok(())
}

fn policy(name: &str, environment: &Environment) -> Result<Box<dyn Policy>, Failure> {
    let (seed, width) = (environment.seed(), environment.action_width());
    match name {
        "zeros" => Ok(Box::new(ZeroPolicy)),
        "uniform" => Ok(Box::new(RandomPolicy::uniform(seed, width))),
        "normal" => Ok(Box::new(RandomPolicy::normal(seed, width))),
        file if Path::new(file).extension().is_some_and(|extension| extension == "onnx") => onnx(file, environment),
        other => {
            let hint = nearest(other, ["zeros", "uniform", "normal"]);
            let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            Err(usage(anyhow!("unknown policy `{other}`{hint}; policies: zeros, uniform, normal, or a file FILE.onnx")))
        }
    }
}

#[cfg(feature = "onnx")]
fn onnx(file: &str, environment: &Environment) -> Result<Box<dyn Policy>, Failure> {
    let width = environment.spec().groups.first().map_or(0, |group| group.width);
    let policy = manege::collector::OnnxPolicy::load(file, environment.rows(), width, environment.action_width())
        .map_err(usage)?;
    Ok(Box::new(policy))
}

#[cfg(not(feature = "onnx"))]
fn onnx(file: &str, _: &Environment) -> Result<Box<dyn Policy>, Failure> {
    Err(usage(anyhow!(
        "cannot run {file}: this program was built without ONNX; build it with `--features onnx`, or run `cargo x --features onnx collect`"
    )))
}

/// A bar on stderr, if a person looks at it.
pub(super) fn progress_bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} control steps, {per_sec}, {eta} left");
    let (true, Ok(style)) = (std::io::stderr().is_terminal(), style) else {
        return ProgressBar::hidden();
    };
    // It draws when it is told of progress, at most 20 times a second, without a thread of its own.
    ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr()).with_style(style)
}

fn to_json(collector: &Collector, report: &Report, policy: &str) -> Value {
    let (environment, statistics): (&Environment, &Statistics) = (collector.environment(), collector.statistics());
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let collecting = report.collecting.as_secs_f64() * 1e3 / statistics.steps().max(1) as f64;
    let seconds = report.elapsed.as_secs_f64();
    let rate = if seconds > 0.0 { statistics.transitions() as f64 / seconds } else { 0.0 };
    let dims: Map<_, _> =
        environment.spec().groups.iter().map(|group| (group.name.clone(), group.width.into())).collect();
    let rewards: Map<_, _> = statistics.reward_terms().map(|(name, mean)| (name.to_owned(), mean.into())).collect();
    let terminations: Map<_, _> =
        statistics.termination_terms().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "task": environment.task(),
        "preset": environment.preset(),
        "backend": environment.engine(),
        "envs": environment.rows(),
        "steps": statistics.steps(),
        "threads": environment.threads(),
        "seed": environment.seed(),
        "policy": policy,
        "transitions": statistics.transitions(),
        "elapsed_s": seconds,
        "env_steps_per_s": rate,
        "physics_ms": milliseconds(statistics.physics_time()),
        "manager_ms": milliseconds(statistics.manager_time()),
        "reset_ms": milliseconds(statistics.reset_time()),
        "collector_ms": collecting,
        "episodes": statistics.episodes(),
        "terminated": statistics.terminated(),
        "truncated": statistics.truncated(),
        "mean_return": statistics.mean_return(),
        "mean_length": statistics.mean_length(),
        // Every episode that ends is followed by a reset of its row; the first reset, of all rows, is not counted.
        "resets": statistics.episodes(),
        "diverged_rows": statistics.diverged(),
        "observation_dims": dims,
        "action_dim": environment.action_width(),
        "reward_terms": rewards,
        "termination_terms": terminations,
        "checksum": report.checksum.to_string(),
    })
}

/// The report as a table for people.
fn summary(json: &Value) -> String {
    let number = |key: &str, digits: usize| match json[key].as_f64() {
        Some(value) => format!("{value:.digits$}"),
        None => "–".to_owned(),
    };
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let mut rows = table(["collected", ""]);
    rows.add_row(["task".to_owned(), format!("{}:{} on {}", text("task"), text("preset"), text("backend"))]);
    rows.add_row(["rows × control steps".to_owned(), format!("{} × {}", json["envs"], json["steps"])]);
    rows.add_row([
        "policy, seed, threads".to_owned(),
        format!("{}, {}, {}", text("policy"), json["seed"], json["threads"]),
    ]);
    rows.add_row(["transitions".to_owned(), json["transitions"].to_string()]);
    rows.add_row([
        "env steps per second".to_owned(),
        format!("{} (in {} s)", number("env_steps_per_s", 0), number("elapsed_s", 2)),
    ]);
    rows.add_row([
        "ms per control step".to_owned(),
        format!(
            "physics {}, managers {}, resets {}, collector {}",
            number("physics_ms", 2),
            number("manager_ms", 2),
            number("reset_ms", 2),
            number("collector_ms", 2)
        ),
    ]);
    rows.add_row([
        "episodes".to_owned(),
        format!("{} ({} terminated, {} truncated)", json["episodes"], json["terminated"], json["truncated"]),
    ]);
    rows.add_row([
        "mean return, length".to_owned(),
        format!("{}, {} control steps", number("mean_return", 4), number("mean_length", 1)),
    ]);
    rows.add_row(["diverged rows".to_owned(), json["diverged_rows"].to_string()]);
    rows.add_row(["checksum".to_owned(), text("checksum")]);

    let mut rewards = table(["reward term", "mean of value × weight"]);
    for (name, value) in json["reward_terms"].as_object().into_iter().flatten() {
        rewards.add_row([name.clone(), format!("{:.5}", value.as_f64().unwrap_or_default())]);
    }
    let mut terminations = table(["termination term", "count"]);
    for (name, count) in json["termination_terms"].as_object().into_iter().flatten() {
        terminations.add_row([name.clone(), count.to_string()]);
    }
    format!("{rows}\n\n{rewards}\n\n{terminations}\n")
}
