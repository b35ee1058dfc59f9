//! Which MuJoCo the workspace links, where it lies, and whether it is whole.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf, absolute};

use thiserror::Error;

use crate::files::{self, FileError};

/// The variable that names the folder to link MuJoCo from, read by build scripts.
pub const LINK_DIR_VARIABLE: &str = "MUJOCO_DYNAMIC_LINK_DIR";

/// Where the fetched library lies, from the workspace's root; `.cargo/config.toml` gives the variable this value.
pub const DEFAULT_LINK_DIR: &str = "third_party/mujoco";

/// The name that the linker looks for.
pub const LINK_NAME: &str = if cfg!(target_os = "macos") { "libmujoco.dylib" } else { "libmujoco.so" };

/// Stands for the headers when looking whether they are there.
pub const HEADER: &str = "include/mujoco/mujoco.h";

/// Stands for the licence texts when looking whether they are there.
pub const LICENCE: &str = "licenses/LICENSE";

/// One published build of MuJoCo.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The version of the `mujoco` wheel.
    pub version: &'static str,
    /// The library's file name in the wheel.
    pub library: &'static str,
    /// The library's SHA-256, in lower-case hex.
    pub sha256: &'static str,
}

/// The build that this project is made for and tested with: x86-64 Linux, glibc 2.28 or later.
pub const RELEASE: Release = Release {
    version: "3.17.0",
    library: "libmujoco.so.3.17.0",
    sha256: "23496b023ee80fb61ab71167e94bc649f9941710fde96b18bb8204fb332523ad",
};

impl Release {
    /// The wheel, in pip's words.
    pub fn requirement(&self) -> String {
        format!("mujoco=={}", self.version)
    }
}

/// The folder that MuJoCo is linked from.
#[derive(Debug, PartialEq, Eq)]
pub enum MujocoDir {
    /// The project's own place, filled on first use.
    Fetched(PathBuf),
    /// A folder of the user's, which is used as it is.
    Own(PathBuf),
}

/// A `MUJOCO_DYNAMIC_LINK_DIR` that nothing can be linked from.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkDirError {
    /// Build scripts run elsewhere, so a relative path means nothing to them.
    #[error("{LINK_DIR_VARIABLE} must be an absolute path, and is `{given}`; set it to `{meant}`")]
    Relative {
        /// The value.
        given: PathBuf,
        /// The same folder, seen from the current one.
        meant: PathBuf,
    },
    /// The library is not there.
    #[error(
        "{LINK_DIR_VARIABLE} is `{0}`, which holds no `{LINK_NAME}`; point it at the folder that does, or unset it and \
         MuJoCo is fetched"
    )]
    NoLibrary(PathBuf),
}

impl MujocoDir {
    /// Decides from the value of [`LINK_DIR_VARIABLE`].
    ///
    /// Cargo sets the variable for everything that it runs, this program included, unless the user has: a value that
    /// names the project's own place is therefore no wish of the user's.
    pub fn choose(variable: Option<OsString>, root: &Path) -> Result<Self, LinkDirError> {
        let Some(value) = variable.filter(|value| !value.is_empty()).map(PathBuf::from) else {
            return Ok(Self::Fetched(root.join(DEFAULT_LINK_DIR)));
        };
        if is_default(&value, root) {
            return Ok(Self::Fetched(value));
        }
        if value.is_relative() {
            let meant = absolute(&value).unwrap_or_else(|_| value.clone());
            return Err(LinkDirError::Relative { given: value, meant });
        }
        if !value.join(LINK_NAME).is_file() {
            return Err(LinkDirError::NoLibrary(value));
        }
        Ok(Self::Own(value))
    }

    /// The folder, as an absolute path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Fetched(path) | Self::Own(path) => path,
        }
    }
}

/// Whether `value` is the project's own place, reached through symbolic links or not. The place need not exist yet.
fn is_default(value: &Path, root: &Path) -> bool {
    if value.is_relative() || !value.ends_with(DEFAULT_LINK_DIR) {
        return false;
    }
    let Some(above) = value.ancestors().nth(Path::new(DEFAULT_LINK_DIR).components().count()) else {
        return false;
    };
    above == root || matches!((above.canonicalize(), root.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// What is found at the project's own place.
#[derive(Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Absent,
    /// The release, complete.
    Whole,
    /// Something else; the text says what is wrong with it.
    Damaged(String),
}

/// Looks whether `folder` holds `release`.
///
/// The library is hashed each time: a few milliseconds for 7 MB, for which no half-written or exchanged file can pass.
pub fn inspect(folder: &Path, release: &Release) -> Result<State, FileError> {
    if folder.symlink_metadata().is_err() {
        return Ok(State::Absent);
    }
    let library = folder.join(release.library);
    if !library.is_file() {
        return Ok(State::Damaged(format!("it has no `{}`", release.library)));
    }
    let found = files::sha256(&library)?;
    if found != release.sha256 {
        return Ok(State::Damaged(format!("`{}` has the SHA-256 {found}", release.library)));
    }
    if !fs::read_link(folder.join(LINK_NAME)).is_ok_and(|target| target == Path::new(release.library)) {
        return Ok(State::Damaged(format!("`{LINK_NAME}` is no link to `{}`", release.library)));
    }
    for part in [HEADER, LICENCE] {
        if !folder.join(part).is_file() {
            return Ok(State::Damaged(format!("it has no `{part}`")));
        }
    }
    Ok(State::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(value: impl Into<OsString>, root: &Path) -> Result<MujocoDir, LinkDirError> {
        MujocoDir::choose(Some(value.into()), root)
    }

    #[test]
    fn cargo_is_configured_with_the_same_default() {
        let configuration = include_str!("../../.cargo/config.toml");
        let setting = format!("{LINK_DIR_VARIABLE} = {{ value = \"{DEFAULT_LINK_DIR}\", relative = true }}");
        assert!(configuration.contains(&setting), "{setting}");
    }

    #[test]
    fn unset_empty_and_default_values_mean_the_projects_own_place() {
        let root = tempfile::tempdir().unwrap();
        let default = root.path().join("third_party/mujoco");
        let own_place = MujocoDir::Fetched(default.clone());
        // The place does not exist here, as before the first fetch.
        assert_eq!(MujocoDir::choose(None, root.path()).unwrap(), own_place);
        assert_eq!(choose("", root.path()).unwrap(), own_place);
        assert_eq!(choose(&default, root.path()).unwrap(), own_place);
    }

    #[cfg(unix)]
    #[test]
    fn the_default_is_recognised_through_a_symbolic_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("checkout");
        fs::create_dir(&root).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&root, &link).unwrap();
        let value = link.join("third_party/mujoco");
        assert_eq!(choose(&value, &root).unwrap(), MujocoDir::Fetched(value));
    }

    #[test]
    fn a_users_own_folder_wins() {
        let root = tempfile::tempdir().unwrap();
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join(LINK_NAME), "library").unwrap();
        assert_eq!(choose(own.path(), root.path()).unwrap(), MujocoDir::Own(own.path().to_path_buf()));
    }

    #[test]
    fn another_checkouts_folder_is_not_the_default() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let folder = other.path().join("third_party/mujoco");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(choose(&folder, root.path()), Err(LinkDirError::NoLibrary(folder.clone())));
        fs::write(folder.join(LINK_NAME), "library").unwrap();
        assert_eq!(choose(&folder, root.path()), Ok(MujocoDir::Own(folder)));
    }

    #[test]
    fn a_folder_without_the_library_is_an_error_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        let own = tempfile::tempdir().unwrap();
        let error = choose(own.path(), root.path()).unwrap_err();
        assert_eq!(error, LinkDirError::NoLibrary(own.path().to_path_buf()));
        let message = error.to_string();
        assert!(message.contains(LINK_DIR_VARIABLE) && message.contains(LINK_NAME), "{message}");
    }

    #[test]
    fn a_relative_folder_is_an_error_that_gives_the_absolute_one() {
        let root = tempfile::tempdir().unwrap();
        let meant = std::env::current_dir().unwrap().join("third_party/mujoco");
        let error = choose("third_party/mujoco", root.path()).unwrap_err();
        assert_eq!(error, LinkDirError::Relative { given: DEFAULT_LINK_DIR.into(), meant });
    }
}
