//! `manege motion`

mod check;
mod fetch;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use manege::motion::{self, Kinematics, Motion, SYNTHETIC_RATE, Trajectory};

use super::{Failure, print, running, usage};

/// Check, convert, fetch and make reference motions of the G1.
#[derive(Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:
  manege motion synthesize wave.npz
  manege motion check wave.npz
  manege motion convert dance1_subject2.csv dance.npz"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what motion files hold, and whether they fit the robot
    Check(check::Arguments),
    /// Make a motion file from another: LAFAN1 retargeted to the G1 (.csv), or a motion of another frame rate (.npz)
    Convert(Convert),
    /// Download the clips of a published package into the cache
    Fetch(fetch::Arguments),
    /// Write a motion made by formulas: standing, a squat, swinging arms and a turn
    Synthesize(Synthesize),
}

#[derive(Args)]
struct Convert {
    /// Motion to read
    #[arg(value_name = "IN.csv|IN.npz")]
    input: PathBuf,

    /// Motion file to write; an existing one is replaced
    #[arg(value_name = "OUT.npz")]
    output: PathBuf,

    /// Frames per second of a .csv file, which does not say [default: 30, as LAFAN1]
    #[arg(long, value_name = "HZ")]
    fps: Option<f64>,

    /// Frames per second to write: one for each control step
    #[arg(long, value_name = "HZ", default_value_t = SYNTHETIC_RATE)]
    rate: f64,
}

#[derive(Args)]
struct Synthesize {
    /// Motion file to write; an existing one is replaced
    #[arg(value_name = "OUT.npz", default_value = "g1_synthetic.npz")]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Convert(arguments) => convert(arguments),
        Command::Fetch(arguments) => fetch::run(arguments),
        Command::Synthesize(arguments) => synthesize(arguments),
    }
}

fn convert(arguments: &Convert) -> Result<(), Failure> {
    let mut robot = Kinematics::g1().map_err(running)?;
    let trajectory = read(arguments, &mut robot)?;
    let motion = trajectory.resampled(arguments.rate).and_then(|trajectory| trajectory.to_motion(&mut robot));
    let motion = motion.map_err(usage)?;
    let fit = motion::verify(&motion, &mut robot).map_err(running)?;
    for violation in &fit.range_violations {
        eprintln!("warning: {}", check::describe(violation, motion.frames()));
    }
    save(&motion, &arguments.output)?;
    print(&format!(
        "{}: {} frames at {} Hz from {} frames at {} Hz",
        arguments.output.display(),
        motion.frames(),
        motion.rate(),
        trajectory.frames(),
        trajectory.rate()
    ))
}

/// Root and joints of the input, whichever kind of file it is.
fn read(arguments: &Convert, robot: &mut Kinematics) -> Result<Trajectory, Failure> {
    let path = &arguments.input;
    let extension = path.extension().unwrap_or_default();
    if extension.eq_ignore_ascii_case("csv") {
        return motion::read_lafan_csv(path, arguments.fps, robot).map_err(usage);
    }
    if !extension.eq_ignore_ascii_case("npz") {
        return Err(usage(anyhow!("{} is neither .csv nor .npz", path.display())));
    }
    if arguments.fps.is_some() {
        return Err(usage(anyhow!("`--fps` is for .csv files; {} states its frame rate", path.display())));
    }
    let motion = Motion::read(path, robot).map_err(usage)?;
    motion::verify(&motion, robot).map_err(usage)?;
    motion.trajectory().map_err(usage)
}

fn synthesize(arguments: &Synthesize) -> Result<(), Failure> {
    let mut robot = Kinematics::g1().map_err(running)?;
    let motion = motion::synthesize_g1(&mut robot).map_err(running)?;
    save(&motion, &arguments.output)?;
    print(&format!("{}: {} frames at {} Hz", arguments.output.display(), motion.frames(), motion.rate()))
}

fn save(motion: &Motion, path: &Path) -> Result<(), Failure> {
    motion::save(motion, path).with_context(|| format!("cannot write {}", path.display())).map_err(running)
}
