//! The command line: what can be asked, and how failures leave.

mod cases;
mod collect;
mod describe;
mod interrupt;
mod motion;
mod options;
mod replay;
mod table;
mod tasks;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use interrupt::Signal;

/// Manager-based robot environments over batched MuJoCo: collects transitions from thousands of rows.
///
/// Results go to stdout, everything else to stderr. With --json, stdout is one JSON object and nothing else.
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

Exit status:
  0    success
  1    failure while running
  2    bad usage or configuration
  130  stopped by Ctrl-C (143: by SIGTERM), with everything written that there was";

#[derive(Subcommand)]
enum Command {
    Tasks(tasks::Arguments),
    Describe(describe::Arguments),
    Collect(collect::Arguments),
    Replay(replay::Arguments),
    Cases(cases::Arguments),
    #[command(name = cases::MANAGED_RUN, hide = true)]
    CasesRun(cases::RunArguments),
    /// Check, convert, fetch and make reference motions
    Motion(motion::Arguments),
}

/// Why a command ended without success.
pub(crate) enum Failure {
    /// Bad usage or configuration: nothing was run.
    Usage(anyhow::Error),
    /// Something failed while running.
    Running(anyhow::Error),
    /// A signal cut it short. What there was has been written, and the user has been told.
    Interrupted(Signal),
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
        Command::Cases(arguments) => cases::run(&arguments),
        Command::CasesRun(arguments) => cases::run_managed(&arguments),
        Command::Motion(arguments) => motion::run(&arguments),
    };
    let (error, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Interrupted(signal)) => return ExitCode::from(signal.exit_status()),
        Err(Failure::Usage(error)) => (error, 2),
        Err(Failure::Running(error)) => (error, 1),
    };
    eprintln!("error: {}", with_causes(&error));
    ExitCode::from(code)
}

/// An error's message and those of its causes, without the ones that a message before them repeats.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(cause.trim_end());
        }
        text
    })
}

/// Prints a command's result. A reader that has seen enough and closed the pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    // Cells of a table are padded to the right.
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    match writeln!(std::io::stdout(), "{}", lines.join("\n")) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(running(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("no such file").context("cannot read a.npz: no such file").context("step 3");
        assert_eq!(with_causes(&error), "step 3: cannot read a.npz: no such file");
    }
}
