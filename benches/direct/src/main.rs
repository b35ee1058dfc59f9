//! `manege-direct`: measures a task's baseline and its bare physics. `manege cases` runs it.

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use manege_direct::{DirectError, Options, RunOptions, measure, task_names};

/// The benchmark's baseline: tasks as fused loops over rows. Made to be run by `manege cases`.
#[derive(Parser)]
#[command(name = "manege-direct", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the tasks that have a direct version, one a line
    Tasks,
    /// Measure a task under zero actions, and print one JSON object: ms of every control step
    Run {
        /// Task, or task:preset
        #[arg(value_name = "TASK[:PRESET]")]
        task: String,
        /// Number of rows
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        envs: u32,
        /// Most threads that run at once
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        threads: u16,
        /// Key of every random stream
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Control steps before the measured ones
        #[arg(long)]
        warmup: u64,
        /// Measured control steps
        #[arg(long)]
        steps: u64,
        /// Control steps that the replay ring holds
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        replay_capacity: u32,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let usage = matches!(
                error.downcast_ref(),
                Some(DirectError::Task(_) | DirectError::NotWritten { .. } | DirectError::Config(_))
            );
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    match command {
        Command::Tasks => Ok(writeln!(stdout, "{}", task_names().join("\n"))?),
        Command::Run { task, envs, threads, seed, warmup, steps, replay_capacity } => {
            let environment = Options { rows: envs as usize, threads: usize::from(threads), seed };
            let options = RunOptions { environment, warmup, steps, replay_capacity: replay_capacity as usize };
            let measurement = measure(&task, options)?;
            Ok(writeln!(stdout, "{}", serde_json::to_string(&measurement)?)?)
        }
    }
}
