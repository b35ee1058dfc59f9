//! Putting MuJoCo in place: one wheel, fetched by pip, of which the library, the headers and the licences are kept.
//!
//! The work is done in a folder beside the final place and moved there in one step, so what stands at the final place is
//! whole. A run that was killed leaves only that folder, and the next run removes it.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::files::{self, At, FileError};
use crate::mujoco::{HEADER, LICENCE, LINK_DIR_VARIABLE, LINK_NAME, RELEASE, Release, State, inspect};
use crate::python::{Python, PythonError};

/// What kept MuJoCo from being put in place.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// There is no wheel to take the library from.
    #[error(
        "MuJoCo is fetched for x86_64 Linux with glibc alone, and this is {machine}; set {LINK_DIR_VARIABLE} to the \
         absolute path of a folder that holds `{LINK_NAME}` of MuJoCo {version}"
    )]
    Platform {
        /// Architecture and system.
        machine: String,
        /// The version that is needed.
        version: &'static str,
    },
    /// Python or pip is not there, or failed.
    #[error(
        "cannot fetch MuJoCo {version}: {source}\n\
         Without Python or a network, set {LINK_DIR_VARIABLE} to the absolute path of a folder that holds \
         `{LINK_NAME}` of MuJoCo {version}."
    )]
    Python {
        /// The version that was asked for.
        version: &'static str,
        /// What went wrong.
        source: PythonError,
    },
    /// The wheel lacks something.
    #[error("the wheel `mujoco=={version}` that pip fetched has no `{part}`; a mirror may serve another one")]
    Part {
        /// The version that was asked for.
        version: &'static str,
        /// The path in the wheel.
        part: String,
    },
    /// The library is not the published one.
    #[error(
        "the wheel `mujoco=={version}` that pip fetched holds a `{library}` with the SHA-256\n  {found}, where\n  \
         {expected} is right; nothing of it was kept.\n\
         A cache or mirror may serve another file: try `python3 -m pip cache remove mujoco`, or another index."
    )]
    Hash {
        /// The version that was asked for.
        version: &'static str,
        /// The library's file name.
        library: &'static str,
        /// What the file has.
        found: String,
        /// What the published one has.
        expected: &'static str,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Sees to it that `folder` holds the release of MuJoCo that this project needs. If it does, nothing is done.
pub fn ensure(folder: &Path, python: &Python) -> Result<(), FetchError> {
    install(folder, &RELEASE, |content| {
        check_platform(std::env::consts::ARCH, std::env::consts::OS, cfg!(target_env = "gnu"))?;
        eprintln!("Fetching MuJoCo {} with pip (26 MB, this once)", RELEASE.version);
        unpack_wheel(content, python).map_err(|source| FetchError::Python { version: RELEASE.version, source })
    })
}

/// Whether the library that the wheel carries runs here.
fn check_platform(arch: &str, system: &str, glibc: bool) -> Result<(), FetchError> {
    if (arch, system, glibc) == ("x86_64", "linux", true) {
        return Ok(());
    }
    let libc = if system == "linux" && !glibc { " without glibc" } else { "" };
    Err(FetchError::Platform { machine: format!("{arch} {system}{libc}"), version: RELEASE.version })
}

/// Lets pip fetch the wheel and unpack it to `content`.
///
/// The wheel is chosen by name and not by the machine's Python, and its need of a recent one is ignored: nothing of it
/// runs in Python here, and the library is the same in every wheel.
fn unpack_wheel(content: &Path, python: &Python) -> Result<(), PythonError> {
    let requirement = RELEASE.requirement();
    let options = "install --no-deps --no-compile --only-binary=:all: --implementation=cp --python-version=3.11 \
                   --platform=manylinux_2_28_x86_64 --ignore-requires-python --target";
    let arguments = options.split_whitespace().map(OsStr::new).chain([content.as_os_str(), requirement.as_ref()]);
    python.run_module("pip", arguments)
}

/// Makes `folder` hold `release`, whose wheel `unpack` puts into the folder it is given (and has to create).
///
/// Only one process at a time gets to work; the others wait, and then find the work done.
fn install(
    folder: &Path,
    release: &Release,
    unpack: impl FnOnce(&Path) -> Result<(), FetchError>,
) -> Result<(), FetchError> {
    let work = folder.with_extension("partial");
    let is_clean = || work.symlink_metadata().is_err();
    if is_clean() && inspect(folder, release)? == State::Whole {
        return Ok(());
    }

    if let Some(above) = folder.parent() {
        files::create_folder(above)?;
    }
    let _lock = files::lock(&folder.with_extension("lock"))?;
    files::remove(&work)?;
    match inspect(folder, release)? {
        State::Whole => return Ok(()),
        State::Absent => {}
        State::Damaged(reason) => {
            eprintln!("`{}` is not MuJoCo {} as published, {reason}: replacing it", folder.display(), release.version);
        }
    }

    files::create_folder(&work)?;
    let done = assemble(&work, folder, release, unpack);
    let removed = files::remove(&work);
    done?;
    Ok(removed?)
}

/// Unpacks the wheel in `work`, checks it, picks the parts to keep and moves them to `folder`.
fn assemble(
    work: &Path,
    folder: &Path,
    release: &Release,
    unpack: impl FnOnce(&Path) -> Result<(), FetchError>,
) -> Result<(), FetchError> {
    let content = work.join("wheel");
    unpack(&content)?;

    let whole = work.join("whole");
    files::create_folder(&whole)?;
    let information = format!("mujoco-{}.dist-info", release.version);
    for (parent, kept, witness) in [
        ("mujoco", release.library, release.library),
        ("mujoco", "include", HEADER),
        (&information, "licenses", LICENCE),
    ] {
        if !content.join(parent).join(witness).is_file() {
            return Err(FetchError::Part { version: release.version, part: format!("{parent}/{witness}") });
        }
        files::rename(&content.join(parent).join(kept), &whole.join(kept))?;
    }
    let found = files::sha256(&whole.join(release.library))?;
    if found != release.sha256 {
        return Err(FetchError::Hash {
            version: release.version,
            library: release.library,
            found,
            expected: release.sha256,
        });
    }
    let link = whole.join(LINK_NAME);
    symbolic_link(release.library, &link).at("create the link", &link)?;

    // A folder that holds anything cannot be renamed over; what stood there goes with the rest of the work.
    if folder.symlink_metadata().is_ok() {
        files::rename(folder, &work.join("replaced"))?;
    }
    Ok(files::rename(&whole, folder)?)
}

#[cfg(unix)]
fn symbolic_link(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Never reached: nothing is fetched for such a platform.
#[cfg(not(unix))]
fn symbolic_link(_target: &str, _link: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    /// A release whose library holds "abc"; the digest is the example of FIPS 180-4.
    const SMALL: Release = Release {
        version: "1.0",
        library: "libmujoco.so.1.0",
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };

    /// Writes what the wheel of [`SMALL`] unpacks to, with `library` as the library's content.
    fn write_wheel(content: &Path, library: &str) {
        for (path, text) in [
            ("mujoco/libmujoco.so.1.0", library),
            ("mujoco/include/mujoco/mujoco.h", "header"),
            ("mujoco/include/mujoco/mjbatch.h", "another header"),
            ("mujoco/__init__.py", "not kept"),
            ("mujoco-1.0.dist-info/licenses/LICENSE", "licence"),
        ] {
            let path = content.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn unpack_right(content: &Path) -> Result<(), FetchError> {
        write_wheel(content, "abc");
        Ok(())
    }

    fn must_not_fetch(_: &Path) -> Result<(), FetchError> {
        panic!("fetched although the library is whole");
    }

    fn no_network(content: &Path) -> Result<(), FetchError> {
        // As pip does it: some of the files are there when the connection breaks.
        fs::create_dir_all(content.join("mujoco")).unwrap();
        fs::write(content.join("mujoco/libmujoco.so.1.0"), "ab").unwrap();
        Err(FetchError::Python {
            version: SMALL.version,
            source: PythonError::Missing { program: "python3".to_owned() },
        })
    }

    /// A place to install to, and the folder above it.
    fn place() -> (TempDir, PathBuf) {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("third_party/mujoco");
        (above, folder)
    }

    /// What lies beside the final place, the lock file aside.
    fn names_beside(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mujoco.lock")
            .collect();
        names.sort();
        names
    }

    #[test]
    fn installs_library_link_headers_and_licences_and_nothing_else() {
        let (_above, folder) = place();
        install(&folder, &SMALL, unpack_right).unwrap();
        assert_eq!(fs::read_to_string(folder.join(LINK_NAME)).unwrap(), "abc");
        assert_eq!(fs::read_link(folder.join(LINK_NAME)).unwrap(), Path::new("libmujoco.so.1.0"));
        assert_eq!(fs::read_to_string(folder.join("include/mujoco/mjbatch.h")).unwrap(), "another header");
        assert_eq!(fs::read_to_string(folder.join("licenses/LICENSE")).unwrap(), "licence");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        assert_eq!(names_beside(&folder), ["mujoco"]);
    }

    #[test]
    fn a_whole_library_is_not_fetched_again() {
        let (_above, folder) = place();
        install(&folder, &SMALL, unpack_right).unwrap();
        install(&folder, &SMALL, must_not_fetch).unwrap();
    }

    #[test]
    fn a_failed_fetch_leaves_nothing_and_the_next_one_succeeds() {
        let (_above, folder) = place();
        let error = install(&folder, &SMALL, no_network).unwrap_err();
        assert!(error.to_string().contains(LINK_DIR_VARIABLE), "{error}");
        assert!(names_beside(&folder).is_empty());
        install(&folder, &SMALL, unpack_right).unwrap();
        assert_eq!(inspect(&folder, &SMALL).unwrap(), State::Whole);
    }

    #[test]
    fn a_library_with_another_hash_is_refused_and_nothing_is_left() {
        let (_above, folder) = place();
        let unpack = |content: &Path| {
            write_wheel(content, "abd");
            Ok(())
        };
        let error = install(&folder, &SMALL, unpack).unwrap_err();
        // Computed by `printf abd | sha256sum`.
        let found = "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9";
        let message = error.to_string();
        assert!(message.contains(found) && message.contains(SMALL.sha256), "{message}");
        assert!(names_beside(&folder).is_empty());
    }

    #[test]
    fn a_wheel_without_headers_or_licence_is_refused_and_nothing_is_left() {
        for part in ["mujoco/include/mujoco/mujoco.h", "mujoco-1.0.dist-info/licenses/LICENSE"] {
            let (_above, folder) = place();
            let unpack = |content: &Path| {
                write_wheel(content, "abc");
                fs::remove_file(content.join(part)).unwrap();
                Ok(())
            };
            let error = install(&folder, &SMALL, unpack).unwrap_err();
            assert!(matches!(&error, FetchError::Part { part: named, .. } if named == part), "{error}");
            assert!(names_beside(&folder).is_empty());
        }
    }

    #[test]
    fn what_a_killed_run_left_is_never_used_and_is_cleaned_away() {
        let (_above, folder) = place();
        let work = folder.with_extension("partial");
        write_wheel(&work.join("wheel"), "ab");
        install(&folder, &SMALL, unpack_right).unwrap();
        assert_eq!(fs::read_to_string(folder.join(LINK_NAME)).unwrap(), "abc");
        assert_eq!(names_beside(&folder), ["mujoco"]);

        // Killed after the move, before the cleaning.
        write_wheel(&work.join("wheel"), "abc");
        install(&folder, &SMALL, must_not_fetch).unwrap();
        assert_eq!(names_beside(&folder), ["mujoco"]);
    }

    #[test]
    fn a_damaged_installation_is_replaced() {
        let damages: [fn(&Path); 6] = [
            |folder| fs::write(folder.join("libmujoco.so.1.0"), "ab").unwrap(),
            |folder| fs::remove_file(folder.join("libmujoco.so.1.0")).unwrap(),
            |folder| fs::remove_file(folder.join(LINK_NAME)).unwrap(),
            |folder| fs::remove_dir_all(folder.join("include")).unwrap(),
            |folder| fs::remove_dir_all(folder.join("licenses")).unwrap(),
            |folder| {
                fs::remove_dir_all(folder).unwrap();
                fs::write(folder, "a file").unwrap();
            },
        ];
        let (_above, folder) = place();
        install(&folder, &SMALL, unpack_right).unwrap();
        for damage in damages {
            damage(&folder);
            assert!(matches!(inspect(&folder, &SMALL).unwrap(), State::Damaged(_)));
            install(&folder, &SMALL, unpack_right).unwrap();
            assert_eq!(inspect(&folder, &SMALL).unwrap(), State::Whole);
            assert_eq!(names_beside(&folder), ["mujoco"]);
        }
    }

    #[test]
    fn a_damaged_installation_stays_when_it_cannot_be_replaced() {
        let (_above, folder) = place();
        install(&folder, &SMALL, unpack_right).unwrap();
        fs::remove_dir_all(folder.join("include")).unwrap();
        install(&folder, &SMALL, no_network).unwrap_err();
        assert_eq!(names_beside(&folder), ["mujoco"]);
        assert!(matches!(inspect(&folder, &SMALL).unwrap(), State::Damaged(_)));
    }

    #[test]
    fn runs_at_the_same_time_fetch_once() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (_above, folder) = place();
        let fetches = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    install(&folder, &SMALL, |content| {
                        fetches.fetch_add(1, Ordering::Relaxed);
                        unpack_right(content)
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(fetches.into_inner(), 1);
        assert_eq!(inspect(&folder, &SMALL).unwrap(), State::Whole);
    }

    #[test]
    fn only_x86_64_linux_with_glibc_is_fetched_for() {
        assert!(check_platform("x86_64", "linux", true).is_ok());
        for (arch, system, glibc) in [
            ("aarch64", "linux", true),
            ("x86_64", "linux", false),
            ("x86_64", "windows", false),
            ("aarch64", "macos", false),
        ] {
            let message = check_platform(arch, system, glibc).unwrap_err().to_string();
            assert!(message.contains(&format!("{arch} {system}")) && message.contains(LINK_DIR_VARIABLE), "{message}");
        }
    }
}
