//! Running a Python interpreter, and saying what went wrong with it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use thiserror::Error;

/// A Python interpreter to run things with.
#[derive(Debug)]
pub struct Python {
    program: OsString,
}

/// A Python call that did not work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PythonError {
    /// There is no such interpreter.
    #[error("there is no `{program}` in PATH; install Python 3 with pip (Debian, Ubuntu: `apt install python3-pip`)")]
    Missing {
        /// What was to be run.
        program: String,
    },
    /// There is an interpreter, without a module of its standard distribution.
    #[error("`{program}` has no module `{module}`; install it (Debian, Ubuntu: `apt install python3-{module}`)")]
    NoModule {
        /// The interpreter.
        program: String,
        /// `pip` or `venv`.
        module: String,
    },
    /// The interpreter could not be started.
    #[error("cannot start `{program}`: {source}")]
    Start {
        /// What was to be run.
        program: String,
        /// Why it did not start.
        source: io::Error,
    },
    /// The call ended with a failure.
    #[error("`{command}` failed ({status}): {complaint}")]
    Failed {
        /// The whole command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it last said on standard error, on one line.
        complaint: String,
    },
}

impl Python {
    /// The machine's own: `python3` from PATH.
    pub fn system() -> Self {
        Self { program: "python3".into() }
    }

    /// The interpreter at a path.
    pub fn at(path: &Path) -> Self {
        Self { program: path.into() }
    }

    /// Runs a module (`python3 -m ...`). Its output shows progress: on standard error, and only if that is a terminal.
    pub fn run_module<A: AsRef<OsStr>>(
        &self,
        module: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<(), PythonError> {
        let mut command = Command::new(&self.program);
        command.arg("-m").arg(module).args(arguments);
        if module == "pip" {
            // Settings that a user made to keep pip out of the machine's own packages; nothing here goes there.
            command.envs([("PIP_REQUIRE_VIRTUALENV", "0"), ("PIP_USER", "0"), ("PIP_DISABLE_PIP_VERSION_CHECK", "1")]);
        }
        let stderr = io::stderr();
        let progress = if stderr.is_terminal() { Stdio::from(stderr) } else { Stdio::null() };
        self.execute(command.stdout(progress)).map(drop)
    }

    /// Runs a piece of code and returns what it printed, without the line's end.
    pub fn evaluate(&self, code: &str) -> Result<String, PythonError> {
        let mut command = Command::new(&self.program);
        let printed = self.execute(command.arg("-c").arg(code).stdout(Stdio::piped()))?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    fn execute(&self, command: &mut Command) -> Result<Vec<u8>, PythonError> {
        let program = || self.program.to_string_lossy().into_owned();
        let output = command.stderr(Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output).map_err(
            |source| match source.kind() {
                // A path that leads nowhere is another mistake than a Python that is not installed.
                io::ErrorKind::NotFound if Path::new(&self.program).components().count() == 1 => {
                    PythonError::Missing { program: program() }
                }
                _ => PythonError::Start { program: program(), source },
            },
        )?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        if let Some(module) = missing_module(&stderr) {
            return Err(PythonError::NoModule { program: program(), module: module.to_owned() });
        }
        Err(PythonError::Failed {
            command: command_line(command),
            status: output.status,
            complaint: complaint(&stderr),
        })
    }
}

/// The module that `python3 -m` did not find, among those that distributions leave out of Python.
fn missing_module(stderr: &str) -> Option<&str> {
    let (_, module) = stderr.trim_end().rsplit_once("No module named ")?;
    ["pip", "venv"].into_iter().find(|known| module.trim_matches('\'') == *known)
}

/// What went wrong, on one line: the last error that pip names, or else the last line, as tracebacks end with the cause.
///
/// Without a network pip's last word is that there is no such package; the warning before it has the reason.
fn complaint(stderr: &str) -> String {
    let lines = || {
        let lines = stderr.lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).rev()
    };
    let last = lines()
        .find(|line| line.starts_with("ERROR:"))
        .or_else(|| lines().next())
        .unwrap_or("it said nothing on standard error");
    let broken = "connection broken by ";
    match lines().find_map(|line| line.find(broken).map(|start| &line[start..])) {
        Some(cause) => format!("{last} ({cause})"),
        None => last.to_owned(),
    }
}

fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named_with_what_to_install() {
        let error = Python::at(Path::new("python3-of-no-machine")).evaluate("1").unwrap_err();
        assert!(matches!(error, PythonError::Missing { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("python3-of-no-machine") && message.contains("install"), "{message}");
    }

    #[test]
    fn a_path_that_leads_nowhere_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("python3");
        let error = Python::at(&program).evaluate("1").unwrap_err();
        assert!(matches!(error, PythonError::Start { .. }), "{error:?}");
        assert!(error.to_string().contains(&program.display().to_string()), "{error}");
    }

    #[test]
    fn modules_that_distributions_leave_out_are_recognised() {
        // As printed by CPython 3.11 for `python3 -m pip` and for `python3 -c 'import venv'`.
        assert_eq!(missing_module("python3: No module named pip\n"), Some("pip"));
        let import = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'venv'\n";
        assert_eq!(missing_module(import), Some("venv"));
        assert_eq!(missing_module("ModuleNotFoundError: No module named 'mujoco'\n"), None);
        assert_eq!(missing_module("ERROR: No matching distribution found for mujoco==3.17.0\n"), None);
    }

    #[test]
    fn the_complaint_is_the_last_error_on_one_line() {
        let pip =
            "WARNING: Retrying\nERROR: Could not find a version\nERROR: No matching distribution\n\n[notice] new\n";
        assert_eq!(complaint(pip), "ERROR: No matching distribution");
        assert_eq!(complaint("Traceback:\n  File\nImportError: no\n"), "ImportError: no");
        let offline = "WARNING: Retrying (total=0) after connection broken by 'Name or service not known': /simple/\n\
                       ERROR: No matching distribution\n";
        assert_eq!(
            complaint(offline),
            "ERROR: No matching distribution (connection broken by 'Name or service not known': /simple/)"
        );
        assert_eq!(complaint(" \n"), "it said nothing on standard error");
    }
}
