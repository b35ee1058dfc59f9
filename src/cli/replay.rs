//! `manege replay`

mod input;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use manege::Environment;
use manege::collector::Checksum;
use manege::replay::Dump;
use manege_systems::error::StepError;
use manege_systems::step::AutoReset;
use serde_json::{Value, json};

use super::collect::progress_bar;
use super::interrupt::Interrupt;
use super::options::EnvironmentOptions;
use super::table::{plain, table};
use super::{Failure, print, running, usage};

/// Drive rows with given actions and write everything that was computed.
///
/// The actions file holds `actions` (T, N, A): T control steps of N rows. The initial file may hold `qpos` (N, nq),
/// `qvel` (N, nv), commands by name, as `twist` (N, 3), and per-row task state by name, as `gait_phase` (N, k); what it
/// does not hold is as a reset leaves it.
///
/// The dump holds, for the state before the first step and after every step, qpos, qvel, obs/GROUP and command/NAME
/// (T + 1, N, columns); for every step ctrl, reward, reward/TERM (value × weight, before the control period),
/// terminated, truncated, termination/TERM and `final_obs/GROUP` (zero where no episode ended); and names, a JSON text
/// that tells which columns are whose.
///
/// If a step fails, for instance by an action that is not a finite number, the dump holds the steps before it.
#[derive(Args)]
#[command(after_help = "Examples:
  manege replay go2_joystick_flat --actions actions.npz --dump dump.npz
  manege replay go2_joystick_flat --actions actions.npz --initial start.npz --dump dump.npz --no-randomization

In Python: numpy.load('dump.npz')['obs/policy'] has shape (T + 1, N, columns).")]
pub(crate) struct Arguments {
    #[command(flatten)]
    environment: EnvironmentOptions,

    /// Actions of every control step and row
    #[arg(long, value_name = "FILE.npz")]
    actions: PathBuf,

    /// State of every row before the first step [default: that of a reset]
    #[arg(long, value_name = "FILE.npz")]
    initial: Option<PathBuf>,

    /// Where to write what was computed
    #[arg(long, value_name = "FILE.npz")]
    dump: Option<PathBuf>,

    /// Number of rows; it is that of the actions, and another one is an error
    #[arg(long, value_name = "N")]
    envs: Option<usize>,

    /// When rows whose episode ended start the next one
    #[arg(long, value_name = "MODE", default_value = "same-step")]
    autoreset: AutoResetMode,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AutoResetMode {
    /// Within the same control step
    SameStep,
    /// In the next control step, which ignores the row's action
    NextStep,
    /// Never: the replay ends when an episode does
    Disabled,
}

impl From<AutoResetMode> for AutoReset {
    fn from(mode: AutoResetMode) -> Self {
        match mode {
            AutoResetMode::SameStep => Self::SameStep,
            AutoResetMode::NextStep => Self::NextStep,
            AutoResetMode::Disabled => Self::Disabled,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut file = input::open(&arguments.actions)?;
    let rows = input::rows(&mut file)?;
    if let Some(envs) = arguments.envs.filter(|&envs| envs != rows) {
        let path = arguments.actions.display();
        return Err(usage(anyhow!("`--envs {envs}` contradicts {path}, whose actions are for {rows} rows")));
    }
    let builder = arguments.environment.builder()?.rows(rows).auto_reset(arguments.autoreset.into());
    let mut environment = builder.build().map_err(usage)?;
    let actions = input::actions(&mut file, &environment)?;
    let initial = arguments.initial.as_ref().map(|path| input::initial(path, environment.spec(), rows)).transpose()?;
    let interrupt = Interrupt::listen().map_err(running)?;

    environment.reset().map_err(running)?;
    if let Some(initial) = initial {
        environment.set_initial(&initial).map_err(usage)?;
    }
    let mut dump = arguments.dump.as_ref().map(|_| Dump::new(&mut environment));
    let mut counts = Counts::default();
    let per_step = rows * environment.action_width();
    let steps = actions.len() / per_step.max(1);
    let progress = progress_bar(steps as u64);
    let mut failure = None;
    while counts.steps < steps && interrupt.signal().is_none() {
        let step = counts.steps;
        if let Err(error) = environment.step(&actions[step * per_step..][..per_step]) {
            let mut place = format!("control step {step} of {steps}");
            if let StepError::AwaitingReset { .. } = error {
                place.push_str(", for which `--autoreset disabled` leaves nobody to reset rows");
            }
            failure = Some(anyhow!(error).context(place));
            break;
        }
        counts.add_step(&environment);
        if let Some(dump) = &mut dump {
            dump.add_step(&mut environment);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();

    let mut kept = "which were not written".to_owned();
    if let (Some(path), Some(dump)) = (&arguments.dump, &dump) {
        dump.write(path).with_context(|| format!("cannot write {}", path.display())).map_err(running)?;
        kept = format!("which are in {}", path.display());
    }
    let done = counts.steps;
    if let Some(error) = failure {
        return Err(running(error.context(format!("replay ended after {done} control steps, {kept}"))));
    }
    let interrupted = interrupt.signal().filter(|_| done < steps);
    if interrupted.is_some() {
        eprintln!("interrupted after {done} of {steps} control steps, {kept}");
    }
    let json = counts.to_json(&environment);
    if arguments.json {
        print(&serde_json::to_string(&json).map_err(running)?)?;
    } else {
        let mut table = table(["replayed", ""]);
        for (key, value) in json.as_object().into_iter().flatten() {
            table.add_row([key.clone(), plain(value)]);
        }
        print(&table.to_string())?;
    }
    interrupted.map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
}

/// What a replay came to.
#[derive(Default)]
struct Counts {
    steps: usize,
    terminated: usize,
    truncated: usize,
    diverged: usize,
    checksum: Checksum,
}

impl Counts {
    fn add_step(&mut self, environment: &Environment) {
        let count = |flags: &[bool]| flags.iter().filter(|flag| **flag).count();
        self.steps += 1;
        self.terminated += count(environment.terminated());
        self.truncated += count(environment.truncated());
        self.diverged += count(environment.diverged());
        self.checksum.add_step(environment);
    }

    fn to_json(&self, environment: &Environment) -> Value {
        json!({
            "task": environment.task(),
            "preset": environment.preset(),
            "backend": environment.engine(),
            "envs": environment.rows(),
            "steps": self.steps,
            "threads": environment.threads(),
            "seed": environment.seed(),
            "terminated": self.terminated,
            "truncated": self.truncated,
            "diverged_rows": self.diverged,
            "checksum": self.checksum.to_string(),
        })
    }
}
