//! How throughput and memory grow with threads and rows.
//!
//! `cargo x scaling` sweeps both for every task, with zero actions, and prints a table: environment steps per second, efficiency
//! against one thread, and memory per row. Each measurement is a process of its own, so that memory is that of one environment.

use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use manege::Environment;
use serde::{Deserialize, Serialize};

/// Measures how throughput and memory grow with threads and rows.
#[derive(Parser)]
#[command(
    name = "cargo x scaling",
    after_help = "Example: cargo x scaling --task g1_walk_flat --rows 256,4096 --threads 1,2 --json scaling.json"
)]
struct Arguments {
    /// Tasks, or task:preset
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "go2_joystick_flat:flashsac,g1_walk_flat:sac,g1_motion_tracking:sac"
    )]
    task: Vec<String>,

    /// Numbers of rows
    #[arg(long, value_delimiter = ',', default_value = "256,1024,4096", value_parser = clap::value_parser!(u32).range(1..))]
    rows: Vec<u32>,

    /// Numbers of threads [default: 1, 2, 4, … and all cores]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    threads: Vec<u16>,

    /// Control steps of 1024 rows that are measured; other numbers of rows take as many environment steps
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,

    /// Write the figures into this file
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,

    /// Measure the first of everything in this process, and print it as JSON
    #[arg(long, hide = true)]
    one: bool,

    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

/// One measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Figure {
    task: String,
    rows: u32,
    threads: u16,
    env_steps_per_s: f64,
    /// Memory that the process has resident after its steps, bytes; 0 where the system does not tell.
    resident: u64,
}

fn all_threads() -> Vec<u16> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u16;
    let mut threads: Vec<u16> = (0..16).map(|power| 1 << power).take_while(|&threads| threads < cores).collect();
    threads.push(cores);
    threads
}

fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.map_or(0, |pages| pages * 4096)
}

fn measure(task: &str, rows: u32, threads: u16, steps: u32) -> anyhow::Result<Figure> {
    let mut env = Environment::builder(task).rows(rows as usize).threads(threads.into()).build()?;
    env.reset()?;
    let actions = vec![0.0; env.rows() * env.action_width()];
    let steps = (u64::from(steps) * 1024).div_ceil(rows.into()).max(5);
    for _ in 0..steps.div_ceil(4) {
        env.step(&actions)?;
    }
    let begun = Instant::now();
    for _ in 0..steps {
        env.step(&actions)?;
    }
    let env_steps_per_s = (steps * u64::from(rows)) as f64 / begun.elapsed().as_secs_f64();
    Ok(Figure { task: task.to_owned(), rows, threads, env_steps_per_s, resident: resident() })
}

/// As [`measure`], in a process of its own.
fn measure_apart(task: &str, rows: u32, threads: u16, steps: u32) -> anyhow::Result<Figure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--one", "--task", task])
        .args(["--rows", &rows.to_string(), "--threads", &threads.to_string(), "--steps", &steps.to_string()])
        .output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let threads = if arguments.threads.is_empty() { all_threads() } else { arguments.threads.clone() };
    if arguments.one {
        let (task, rows) = (&arguments.task[0], arguments.rows[0]);
        println!("{}", serde_json::to_string(&measure(task, rows, threads[0], arguments.steps)?)?);
        return Ok(());
    }
    let mut figures: Vec<Figure> = Vec::new();
    for task in &arguments.task {
        println!("{task}, zero actions");
        println!("| rows | threads | environment steps/s | of one thread's, per thread | KiB per row |");
        println!("|---:|---:|---:|---:|---:|");
        for &rows in &arguments.rows {
            for &threads in &threads {
                let figure = measure_apart(task, rows, threads, arguments.steps)?;
                let of = |rows: u32, threads: u16| {
                    figures
                        .iter()
                        .find(move |other| other.task == *task && other.rows == rows && other.threads == threads)
                };
                let efficiency = of(rows, 1).or((threads == 1).then_some(&figure)).map(|one| {
                    format!("{:.0} %", 100.0 * figure.env_steps_per_s / one.env_steps_per_s / f64::from(threads))
                });
                // What rows beyond those of the smallest environment take: the rest is the same for any number.
                let least = arguments.rows[0];
                let per_row = of(least, threads).filter(|other| other.rows < rows && other.resident > 0).map(|other| {
                    let more = figure.resident.saturating_sub(other.resident) as f64;
                    format!("{:.1}", more / 1024.0 / f64::from(rows - other.rows))
                });
                println!(
                    "| {rows} | {threads} | {:.0} | {} | {} |",
                    figure.env_steps_per_s,
                    efficiency.unwrap_or_default(),
                    per_row.unwrap_or_default()
                );
                figures.push(figure);
            }
        }
        println!();
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&figures)?)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
