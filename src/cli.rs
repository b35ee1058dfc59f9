//! The command line: what can be asked, and how failures leave.

mod collect;
mod describe;
mod interrupt;
mod options;
mod replay;
mod tasks;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Manager-based robot environments over batched MuJoCo: collects transitions from thousands of rows.
#[derive(Parser)]
#[command(name = "manege", version, about, disable_help_subcommand = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  manege tasks
  manege describe go2_joystick_flat
  manege collect go2_joystick_flat:flashsac --envs 1024 --steps 200 --out data

Exit status: 0 success, 1 failure while running, 2 bad usage or configuration.";

#[derive(Subcommand)]
enum Command {
    /// List tasks and presets with their sizes
    Tasks(tasks::Arguments),
    /// Print every term of every manager of a task, with all parameters
    Describe(describe::Arguments),
    /// Step rows under a policy and collect the transitions
    Collect(collect::Arguments),
    /// Drive rows with given actions and write everything that was computed
    Replay(replay::Arguments),
}

/// Why a command ended without success.
pub(crate) enum Failure {
    /// Bad usage or configuration: nothing was run.
    Usage(anyhow::Error),
    /// Something failed while running.
    Running(anyhow::Error),
}

/// Marks an error as one of usage or configuration.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Usage(error.into())
}

/// Marks an error as one that came while running.
pub(crate) fn running(error: impl Into<anyhow::Error>) -> Failure {
    Failure::Running(error.into())
}

/// Runs the command that the arguments ask for.
pub(crate) fn run() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Tasks(arguments) => tasks::run(&arguments),
        Command::Describe(arguments) => describe::run(&arguments),
        Command::Collect(arguments) => collect::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
    };
    let (error, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => (error, 2),
        Err(Failure::Running(error)) => (error, 1),
    };
    eprintln!("error: {error:#}");
    ExitCode::from(code)
}

/// Prints a command's result. A reader that has seen enough and closed the pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{}", text.trim_end()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(running(error)),
        _ => Ok(()),
    }
}
