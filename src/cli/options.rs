//! Options that several commands share.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use manege::Environment;
use manege::environment::EnvironmentBuilder;
use manege_systems::config::{EnvironmentConfig, parse_assignment};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{Failure, usage};

/// What defines an environment.
#[derive(Args)]
pub(crate) struct EnvironmentOptions {
    /// Task, or task:preset; `manege tasks` lists them
    #[arg(value_name = "TASK[:PRESET]")]
    pub(crate) task: String,

    /// Key of every random stream: equal seeds give equal runs, at any number of threads
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Most threads that run at once [default: one per core]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Change the configuration by a TOML file with the keys of `manege describe`; may be repeated
    #[arg(long, value_name = "FILE.toml")]
    config: Vec<PathBuf>,

    /// Change one key of the configuration, after all files; may be repeated, and the last one wins
    #[arg(long, value_name = "path.to.key=value")]
    set: Vec<String>,

    /// Motion files to follow, in place of the task's own motion
    #[arg(long, value_name = "FILE.npz", num_args = 1..)]
    motion: Vec<PathBuf>,

    /// Switch observation noise off
    #[arg(long)]
    no_corruption: bool,

    /// Switch off events that vary the model or push, and draw resets at the centre of their ranges; commands are drawn as ever
    #[arg(long)]
    no_randomization: bool,

    /// Messages to show on stderr: error, warn, info, debug, trace, or a filter such as `manege_systems=debug`
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
}

impl EnvironmentOptions {
    /// Starts logging, and applies the options to a builder.
    pub(crate) fn builder(&self) -> Result<EnvironmentBuilder, Failure> {
        start_logging(&self.log_level)?;
        let mut builder = Environment::builder(&self.task)
            .seed(self.seed)
            .corruption(!self.no_corruption)
            .randomization(!self.no_randomization);
        builder.resolved_config().map_err(usage)?;
        if let Some(threads) = self.threads {
            builder = builder.threads(usize::from(threads));
        }
        for path in &self.config {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the configuration {}", path.display()))
                .map_err(usage)?;
            let changes = text
                .parse::<toml::Table>()
                .with_context(|| format!("the configuration {} is not TOML", path.display()))
                .map_err(usage)?;
            // Checked one by one, so that an error can name the change that is wrong.
            builder = builder.config(changes);
            builder.resolved_config().with_context(|| path.display().to_string()).map_err(usage)?;
        }
        for assignment in &self.set {
            let changes = parse_assignment(assignment).with_context(|| format!("--set {assignment}")).map_err(usage)?;
            builder = builder.config(changes);
            builder.resolved_config().with_context(|| format!("--set {assignment}")).map_err(usage)?;
        }
        if !self.motion.is_empty() {
            let config = builder.resolved_config().map_err(usage)?;
            builder = builder.config(follow(&config, &self.motion).map_err(usage)?);
        }
        Ok(builder)
    }
}

/// The change that makes every motion command follow `files`.
fn follow(config: &EnvironmentConfig, files: &[PathBuf]) -> anyhow::Result<toml::Table> {
    let files: Vec<toml::Value> = files
        .iter()
        .map(|path| path.to_str().map(toml::Value::from).with_context(|| format!("{} is not UTF-8", path.display())))
        .collect::<anyhow::Result<_>>()?;
    let table = config.to_table()?;
    let commands = table.get("commands").and_then(toml::Value::as_table).into_iter().flatten();
    let followed: toml::Table = commands
        .filter(|(_, term)| term.get("files").is_some())
        .map(|(name, _)| (name.clone(), toml::Table::from_iter([("files".to_owned(), files.clone().into())]).into()))
        .collect();
    anyhow::ensure!(!followed.is_empty(), "`--motion` is for tasks with a motion command, and this one has none");
    Ok(toml::Table::from_iter([("commands".to_owned(), followed.into())]))
}

/// Sends messages to stderr, and zones to a profiler where the program was built for one.
fn start_logging(level: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(level).with_context(|| format!("`--log-level {level}`")).map_err(usage)?;
    let messages = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let messages = tracing_subscriber::Layer::with_filter(messages, filter);
    let registry = tracing_subscriber::registry().with(messages);
    #[cfg(feature = "tracy")]
    let registry = registry.with(tracing_tracy::TracyLayer::default());
    // A second command in one process (in tests) keeps the first one's.
    let _ = registry.try_init();
    Ok(())
}
