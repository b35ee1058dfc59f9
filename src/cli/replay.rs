//! `manege replay`

mod input;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use manege::replay::Dump;
use manege_systems::step::AutoReset;

use super::interrupt::Interrupt;
use super::options::EnvironmentOptions;
use super::{Failure, print, running, usage};

/// Drive rows with given actions and write everything that was computed.
#[derive(Args)]
#[command(
    after_help = "The actions file holds `actions` (T, N, A). The initial file may hold `qpos` (N, nq), `qvel` (N, nv),
commands by name, as `twist` (N, 3), and per-row task state by name, as `gait_phase` (N, k).

Example:
  manege replay go2_joystick_flat --actions actions.npz --initial start.npz --dump out.npz --no-randomization"
)]
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
    let mut dump = Dump::new(&mut environment);
    let per_step = rows * environment.action_width();
    let steps = actions.len() / per_step.max(1);
    let mut failure = None;
    for step in 0..steps {
        if interrupt.is_asked() {
            eprintln!("interrupted after {step} of {steps} control steps; what was computed is kept");
            break;
        }
        if let Err(error) = environment.step(&actions[step * per_step..][..per_step]) {
            failure = Some(anyhow!(error).context(format!("control step {step} of {steps}")));
            break;
        }
        dump.add_step(&mut environment);
    }
    let done = dump.steps();
    if let Some(path) = &arguments.dump {
        dump.write(path).with_context(|| format!("cannot write {}", path.display())).map_err(running)?;
    }
    match failure {
        Some(error) => Err(running(error.context(format!("replay ended after {done} control steps, which are kept")))),
        None => print(&format!("replayed {done} control steps of {rows} rows")),
    }
}
