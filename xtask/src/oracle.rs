//! A Python with MuJoCo's own package: the independent source that tests take their expected values from.
//!
//! It lives in a virtual environment at `target/venv`. That one is made without pip inside, and the machine's pip puts the
//! packages there: a machine whose Python comes without `ensurepip`, as Debian's does, makes it as well as any other.
//! Scripts in a virtual environment name its path, so it is built where it stays; a file written last says it is whole.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf, absolute};

use thiserror::Error;

use crate::files::{self, At, FileError};
use crate::mujoco::{RELEASE, Release};
use crate::python::{Python, PythonError};

/// The variable that names the interpreter to the tests.
pub const ORACLE_VARIABLE: &str = "MANEGE_ORACLE_PYTHON";

/// A `MANEGE_ORACLE_PYTHON` of the user's that the tests cannot use.
#[derive(Debug, Error)]
#[error(
    "{ORACLE_VARIABLE} is `{interpreter}`, which cannot serve: {source}; it needs `mujoco=={version}` and numpy (unset \
     it and a virtual environment is made)", version = RELEASE.version
)]
pub struct OracleVariableError {
    interpreter: PathBuf,
    source: OracleError,
}

/// Why an interpreter cannot serve, or could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OracleError {
    /// Python or pip is not there, or failed.
    #[error(transparent)]
    Python(#[from] PythonError),
    /// The package is there, in another version.
    #[error("its mujoco package has version {found}")]
    Version {
        /// What the package says.
        found: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The interpreter for the tests: the user's, or that of a virtual environment under the workspace's `target`.
///
/// Where the environment cannot be made, this says why in one line and returns `None`: the tests that need it are skipped.
pub fn interpreter(root: &Path, python: &Python) -> Result<Option<PathBuf>, OracleVariableError> {
    if let Some(own) = own_interpreter(env::var_os(ORACLE_VARIABLE)) {
        return match check(&own, &RELEASE) {
            Ok(()) => Ok(Some(own)),
            Err(source) => Err(OracleVariableError { interpreter: own, source }),
        };
    }
    let venv = Venv::new(root.join("target/venv"), &RELEASE);
    match venv.ensure(|venv| build(venv, python)) {
        Ok(()) => Ok(Some(venv.interpreter())),
        Err(error) => {
            eprintln!("warning: the tests against MuJoCo's Python package are skipped: {error}");
            Ok(None)
        }
    }
}

/// What the user set the variable to, if to anything; a path is made absolute, since tests run in their packages' folders.
fn own_interpreter(variable: Option<OsString>) -> Option<PathBuf> {
    let own = variable.filter(|value| !value.is_empty()).map(PathBuf::from)?;
    // A bare name is looked up in PATH.
    if own.components().count() == 1 { Some(own) } else { Some(absolute(&own).unwrap_or(own)) }
}

/// Whether an interpreter has numpy and the release's package.
fn check(interpreter: &Path, release: &Release) -> Result<(), OracleError> {
    let found = Python::at(interpreter).evaluate("import mujoco, numpy; print(mujoco.__version__)")?;
    if found == release.version { Ok(()) } else { Err(OracleError::Version { found }) }
}

/// A virtual environment, there or to be made.
#[derive(Debug)]
struct Venv {
    folder: PathBuf,
    /// What pip installs, one a line. The environment's last file holds the same text, so a change here makes it anew.
    requirements: String,
}

impl Venv {
    fn new(folder: PathBuf, release: &Release) -> Self {
        Self { folder, requirements: format!("{}\nnumpy\n", release.requirement()) }
    }

    fn interpreter(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join("requirements.txt")
    }

    /// Whether it was made to the end, for these requirements, by a Python that is still there.
    fn is_current(&self) -> bool {
        fs::read_to_string(self.stamp()).is_ok_and(|text| text == self.requirements) && self.interpreter().is_file()
    }

    /// Has it made by `build` if it is not current. After a failure nothing is left of it.
    fn ensure(&self, build: impl FnOnce(&Self) -> Result<(), OracleError>) -> Result<(), OracleError> {
        if self.is_current() {
            return Ok(());
        }
        if let Some(above) = self.folder.parent() {
            files::create_folder(above)?;
        }
        let _lock = files::lock(&self.folder.with_extension("lock"))?;
        if self.is_current() {
            return Ok(());
        }
        files::remove(&self.folder)?;
        let built = build(self).and_then(|()| {
            let stamp = self.stamp();
            Ok(fs::write(&stamp, &self.requirements).at("write", &stamp)?)
        });
        if built.is_err() {
            files::remove(&self.folder)?;
        }
        built
    }
}

/// Makes the environment with the machine's Python, fills it and tries it out.
fn build(venv: &Venv, python: &Python) -> Result<(), OracleError> {
    eprintln!("Installing MuJoCo's Python package into `{}` with pip (this once)", venv.folder.display());
    python.run_module("venv", ["--without-pip".as_ref(), venv.folder.as_os_str()])?;
    let interpreter = venv.interpreter();
    let packages = Python::at(&interpreter).evaluate("import sysconfig; print(sysconfig.get_path('purelib'))")?;
    // `--target` works for every age of pip, `--python` only from 22.3. Wheels alone: no compiler is asked for.
    let options = ["install", "--only-binary=:all:", "--no-compile", "--target", &packages];
    python.run_module("pip", options.into_iter().chain(venv.requirements.lines()).map(OsStr::new))?;
    check(&interpreter, &RELEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn venv(above: &Path) -> Venv {
        Venv::new(above.join("target/venv"), &RELEASE)
    }

    /// Does to the folder what a successful build does, without Python.
    fn fill(venv: &Venv) -> Result<(), OracleError> {
        let interpreter = venv.interpreter();
        files::create_folder(interpreter.parent().unwrap())?;
        Ok(fs::write(&interpreter, "").at("write", &interpreter)?)
    }

    fn must_not_build(_: &Venv) -> Result<(), OracleError> {
        panic!("built although it is current");
    }

    fn half_build(venv: &Venv) -> Result<(), OracleError> {
        fill(venv)?;
        Err(OracleError::Version { found: "0.1".to_owned() })
    }

    #[test]
    fn a_variable_names_a_program_or_a_path_and_empty_means_unset() {
        assert_eq!(own_interpreter(None), None);
        assert_eq!(own_interpreter(Some("".into())), None);
        assert_eq!(own_interpreter(Some("python3.12".into())), Some("python3.12".into()));
        let here = env::current_dir().unwrap();
        assert_eq!(own_interpreter(Some("venv/bin/python".into())), Some(here.join("venv/bin/python")));
    }

    #[test]
    fn an_environment_is_built_once() {
        let above = tempfile::tempdir().unwrap();
        let venv = venv(above.path());
        venv.ensure(fill).unwrap();
        assert!(venv.is_current());
        venv.ensure(must_not_build).unwrap();
    }

    #[test]
    fn a_failed_build_leaves_nothing_and_the_next_one_succeeds() {
        let above = tempfile::tempdir().unwrap();
        let venv = venv(above.path());
        venv.ensure(half_build).unwrap_err();
        assert!(!venv.folder.exists());
        venv.ensure(fill).unwrap();
        assert!(venv.is_current());
    }

    #[test]
    fn what_a_killed_build_left_is_thrown_away() {
        let above = tempfile::tempdir().unwrap();
        let venv = venv(above.path());
        fill(&venv).unwrap();
        let left = venv.folder.join("left");
        fs::write(&left, "").unwrap();
        assert!(!venv.is_current());
        venv.ensure(fill).unwrap();
        assert!(venv.is_current() && !left.exists());
    }

    #[test]
    fn other_requirements_or_a_vanished_python_make_it_stale() {
        let above = tempfile::tempdir().unwrap();
        let venv = venv(above.path());
        venv.ensure(fill).unwrap();
        let next = Release { version: "3.18.0", ..RELEASE };
        assert!(!Venv::new(venv.folder.clone(), &next).is_current());
        fs::remove_file(venv.interpreter()).unwrap();
        assert!(!venv.is_current());
    }
}
