//! `cargo x`: what has to happen before cargo can build Manège, and then the command itself.
//!
//! Manège links `libmujoco.so`, which cargo cannot fetch. Every command here first puts the library in place under
//! `third_party/mujoco` (or takes the folder that `MUJOCO_DYNAMIC_LINK_DIR` names) and then hands over to cargo: to
//! `cargo test`, to `cargo bench`, or to the `manege` command with the rest of the line unchanged.
//!
//! Standard output belongs to the command that is handed over to; what this program has to say goes to standard error.

mod cargo;
mod fetch;
mod files;
mod mujoco;
mod oracle;
mod python;
mod request;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cargo::{Cargo, HandOverError};
use fetch::FetchError;
use mujoco::{LinkDirError, MujocoDir};
use oracle::OracleVariableError;
use python::Python;
use request::{CommandLine, Request, UsageError};
use thiserror::Error;

/// Everything that stops `cargo x` before it has handed over.
#[derive(Debug, Error)]
#[non_exhaustive]
enum Error {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    LinkDir(#[from] LinkDirError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    OracleVariable(#[from] OracleVariableError),
    #[error(transparent)]
    HandOver(#[from] HandOverError),
}

impl Error {
    /// 2 for bad usage or a bad setting, 1 for what failed while running; as in the `manege` command.
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::LinkDir(_) | Self::OracleVariable(_) => ExitCode::from(2),
            Self::Fetch(_) | Self::HandOver(_) => ExitCode::FAILURE,
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

/// Returns only where nothing was handed over to cargo, or where the platform cannot replace a process.
fn run() -> Result<ExitCode, Error> {
    let CommandLine { features, request } = CommandLine::parse(env::args_os().skip(1))?;
    let root = workspace_root();
    let python = Python::system();
    let cargo = || set_up(&root, &python).map(|mujoco| Cargo::new(&root, mujoco.path(), features.clone()));

    let command = match request {
        Request::Help(topic) => return Ok(say(topic.text())),
        Request::Setup => {
            let mujoco = set_up(&root, &python)?;
            return Ok(say(&format!("MuJoCo is in place: {}\n", mujoco.path().display())));
        }
        Request::Test(arguments) => {
            let cargo = cargo()?;
            let oracle = oracle::interpreter(&root, &python)?;
            cargo.test(&arguments, oracle.as_deref())
        }
        Request::Bench(arguments) => cargo()?.bench(&arguments),
        Request::Cases(arguments) => {
            let cargo = cargo()?;
            let built = cargo::run(cargo.build_direct())?;
            if !built.success() {
                return Ok(cargo::exit_code(built));
            }
            cargo.cases(&arguments)
        }
        Request::Manege(arguments) => cargo()?.manege(&arguments),
    };
    Ok(cargo::hand_over(command)?)
}

/// Writes to standard output. A reader that has had enough, as in `cargo x | head`, is no failure.
fn say(text: &str) -> ExitCode {
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Puts MuJoCo in place, from the network only if it is neither there nor pointed at.
fn set_up(root: &Path, python: &Python) -> Result<MujocoDir, Error> {
    let mujoco = MujocoDir::choose(env::var_os(mujoco::LINK_DIR_VARIABLE), root)?;
    if let MujocoDir::Fetched(folder) = &mujoco {
        fetch::ensure(folder, python)?;
    }
    Ok(mujoco)
}

/// The folder of the workspace's `Cargo.toml`.
///
/// `cargo run` tells where this package lies now; the place it had when it was compiled serves a direct call.
fn workspace_root() -> PathBuf {
    let package =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or(package.clone(), Path::to_path_buf)
}
