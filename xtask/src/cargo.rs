//! The cargo commands that `cargo x` hands over to.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use thiserror::Error;

use crate::mujoco::LINK_DIR_VARIABLE;
use crate::oracle::ORACLE_VARIABLE;

/// Makes cargo commands for one workspace and one MuJoCo.
#[derive(Debug)]
pub struct Cargo {
    program: OsString,
    manifest: PathBuf,
    mujoco: PathBuf,
    features: Option<OsString>,
}

/// The feature without which a part of the tests could not be built.
const TESTED_FEATURE: &str = "manege/bevy";

/// Cargo could not be started.
#[derive(Debug, Error)]
#[error("cannot start `{program}`: {source}")]
pub struct HandOverError {
    program: String,
    source: io::Error,
}

impl Cargo {
    /// Commands for the workspace at `root` that link MuJoCo from the folder `mujoco` and build with these features.
    pub fn new(root: &Path, mujoco: &Path, features: Option<OsString>) -> Self {
        Self {
            // Cargo names itself to what it runs, which keeps the toolchain the same.
            program: env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            manifest: root.join("Cargo.toml"),
            mujoco: mujoco.to_path_buf(),
            features,
        }
    }

    /// `cargo test` over the workspace, or over the packages that `arguments` name; `oracle` is a Python with the mujoco
    /// package.
    pub fn test(&self, arguments: &[OsString], oracle: Option<&Path>) -> Command {
        let mut command = self.command("test");
        if !has_option(arguments, &["--package", "-p", "--workspace", "--all"]) {
            command.arg("--workspace");
        }
        if !has_option(arguments, &["--release", "-r", "--profile"]) {
            command.arg("--release");
        }
        let packages = packages(arguments);
        if packages.is_empty() || packages.iter().any(|package| package == "manege") {
            command.args(["--features", TESTED_FEATURE]);
        }
        command.args(arguments);
        match oracle {
            Some(interpreter) => command.env(ORACLE_VARIABLE, interpreter),
            None => command.env_remove(ORACLE_VARIABLE),
        };
        command
    }

    /// `cargo bench`.
    pub fn bench(&self, arguments: &[OsString]) -> Command {
        let mut command = self.command("bench");
        command.args(arguments);
        command
    }

    /// The `manege` command. Its build shows progress where somebody looks on, and errors always.
    pub fn manege(&self, arguments: &[OsString]) -> Command {
        let mut command = self.command("run");
        command.args(["--release", "--package", "manege", "--bin", "manege"]);
        if !io::stderr().is_terminal() {
            command.arg("--quiet");
        }
        command.arg("--").args(arguments);
        command
    }

    /// Builds `manege-direct`, which lands beside `manege`.
    pub fn build_direct(&self) -> Command {
        let mut command = self.command("build");
        command.args(["--release", "--package", "manege-direct", "--bin", "manege-direct"]);
        if !io::stderr().is_terminal() {
            command.arg("--quiet");
        }
        command
    }

    /// `manege cases`.
    pub fn cases(&self, arguments: &[OsString]) -> Command {
        let words: Vec<_> = std::iter::once("cases".into()).chain(arguments.iter().cloned()).collect();
        self.manege(&words)
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(subcommand).arg("--manifest-path").arg(&self.manifest).env(LINK_DIR_VARIABLE, &self.mujoco);
        if let Some(features) = &self.features {
            command.arg("--features").arg(features);
        }
        command
    }
}

/// The packages that the arguments for cargo itself name.
fn packages(arguments: &[OsString]) -> Vec<String> {
    let mut words = arguments.iter().map(|argument| argument.to_string_lossy()).take_while(|argument| argument != "--");
    let mut packages = Vec::new();
    while let Some(word) = words.next() {
        let Some(rest) = word.strip_prefix("--package").or_else(|| word.strip_prefix("-p")) else { continue };
        let name = match rest.strip_prefix('=').unwrap_or(rest) {
            "" => words.next().unwrap_or_default().into_owned(),
            name => name.to_owned(),
        };
        packages.push(name);
    }
    packages
}

/// Whether one of `names` is among the arguments for cargo itself, those before `--`; `--name=value` and `-nvalue` count.
fn has_option(arguments: &[OsString], names: &[&str]) -> bool {
    arguments.iter().map(|argument| argument.to_string_lossy()).take_while(|argument| argument != "--").any(
        |argument| {
            names.iter().any(|name| match argument.strip_prefix(name) {
                Some(rest) if name.starts_with("--") => rest.is_empty() || rest.starts_with('='),
                Some(_) => true,
                None => false,
            })
        },
    )
}

/// Runs `command` to its end.
pub fn run(mut command: Command) -> Result<ExitStatus, HandOverError> {
    let program = program_of(&command);
    command.status().map_err(|source| HandOverError { program, source })
}

/// A process's exit code as this program's.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Becomes `command`: signals reach it alone, and its exit code is this program's. Returns only if it did not start.
#[cfg(unix)]
pub fn hand_over(mut command: Command) -> Result<ExitCode, HandOverError> {
    use std::os::unix::process::CommandExt;
    let source = command.exec();
    Err(HandOverError { program: program_of(&command), source })
}

/// Runs `command` and returns its exit code.
#[cfg(not(unix))]
pub fn hand_over(command: Command) -> Result<ExitCode, HandOverError> {
    run(command).map(exit_code)
}

fn program_of(command: &Command) -> String {
    OsStr::to_string_lossy(command.get_program()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    /// The arguments behind `--manifest-path FILE`, as one line.
    fn line(command: &Command) -> String {
        let words: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        assert_eq!(words[1..3], ["--manifest-path", "/w/Cargo.toml"]);
        words[3..].join(" ")
    }

    fn variable(command: &Command, name: &str) -> Option<Option<OsString>> {
        command.get_envs().find(|(key, _)| *key == name).map(|(_, value)| value.map(OsStr::to_os_string))
    }

    fn cargo() -> Cargo {
        Cargo { program: "cargo".into(), manifest: "/w/Cargo.toml".into(), mujoco: "/w/lib".into(), features: None }
    }

    #[test]
    fn tests_cover_the_workspace_unless_packages_are_named() {
        for (given, expected) in [
            ("", "--workspace --release --features manege/bevy"),
            ("reward -- --nocapture", "--workspace --release --features manege/bevy reward -- --nocapture"),
            ("-p xtask", "--release -p xtask"),
            ("-pxtask", "--release -pxtask"),
            ("--package=xtask", "--release --package=xtask"),
            ("-p manege --test signals", "--release --features manege/bevy -p manege --test signals"),
            ("--package=manege -p xtask", "--release --features manege/bevy --package=manege -p xtask"),
            ("--workspace --release", "--features manege/bevy --workspace --release"),
            ("--profile dev", "--workspace --features manege/bevy --profile dev"),
            // Behind `--` and in longer names they mean something else.
            ("-- --release -p", "--workspace --release --features manege/bevy -- --release -p"),
            ("--profiles", "--workspace --release --features manege/bevy --profiles"),
        ] {
            assert_eq!(line(&cargo().test(&words(given), None)), expected);
        }
    }

    #[test]
    fn features_reach_every_build() {
        let cargo = Cargo { features: Some("onnx,tracy".into()), ..cargo() };
        assert_eq!(line(&cargo.bench(&[])), "--features onnx,tracy");
        let manege = line(&cargo.manege(&words("tasks")));
        assert!(manege.starts_with("--features onnx,tracy --release --package manege"), "{manege}");
        let tests = "--features onnx,tracy --workspace --release --features manege/bevy";
        assert_eq!(line(&cargo.test(&[], None)), tests);
    }

    #[test]
    fn tests_are_told_the_oracle_or_that_there_is_none() {
        let oracle = Path::new("/venv/bin/python");
        assert_eq!(variable(&cargo().test(&[], Some(oracle)), ORACLE_VARIABLE), Some(Some(oracle.into())));
        assert_eq!(variable(&cargo().test(&[], None), ORACLE_VARIABLE), Some(None));
    }

    #[test]
    fn every_command_links_the_chosen_mujoco() {
        for command in [cargo().test(&[], None), cargo().bench(&[]), cargo().build_direct(), cargo().manege(&[])] {
            assert_eq!(variable(&command, LINK_DIR_VARIABLE), Some(Some("/w/lib".into())));
        }
    }

    #[test]
    fn manege_receives_its_words_unchanged() {
        let given = words("collect go2_joystick_flat --envs 8 --json -- --quiet");
        let line = line(&cargo().manege(&given));
        assert!(line.starts_with("--release --package manege --bin manege"), "{line}");
        assert!(line.ends_with(" -- collect go2_joystick_flat --envs 8 --json -- --quiet"), "{line}");
    }

    #[test]
    fn cases_are_run_by_manege_beside_the_direct_side() {
        assert!(line(&cargo().build_direct()).starts_with("--release --package manege-direct --bin manege-direct"));
        assert!(line(&cargo().cases(&words("--envs 8"))).ends_with(" -- cases --envs 8"));
    }

    #[cfg(unix)]
    #[test]
    fn a_cargo_that_cannot_be_started_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("cargo");
        let error = hand_over(Command::new(&program)).unwrap_err().to_string();
        assert!(error.contains(&program.display().to_string()), "{error}");
    }
}
