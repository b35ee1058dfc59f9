//! File operations whose errors say what was being done, and where.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// A file operation that failed.
#[derive(Debug, Error)]
#[error("cannot {action} `{path}`: {source}")]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Gives an I/O result its place.
pub trait At<T> {
    /// Names what was being done to which path; `action` completes "cannot ...".
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { action, path: path.to_path_buf(), source })
    }
}

/// Creates a folder and those above it, where they are not there.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).at("create the folder", path)
}

/// Removes whatever is at `path`: a folder with all that is in it, a file, a link, or nothing.
pub fn remove(path: &Path) -> Result<(), FileError> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.at("remove", path),
    }
}

/// Moves a file or folder within one file system.
pub fn rename(from: &Path, to: &Path) -> Result<(), FileError> {
    fs::rename(from, to).at("move into place", from)
}

/// Waits until no other process holds the lock at `path`, and takes it until the returned file is dropped.
///
/// The system lets go of it when a process ends, however it ends, so a killed run never blocks the next.
pub fn lock(path: &Path) -> Result<File, FileError> {
    let file = File::create(path).at("create the lock file", path)?;
    file.lock().at("lock", path)?;
    Ok(file)
}

/// The SHA-256 of a file, as 64 lower-case hex digits.
pub fn sha256(path: &Path) -> Result<String, FileError> {
    let content = fs::read(path).at("read", path)?;
    Ok(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_agrees_with_the_published_vectors() {
        // FIPS 180-4, the standard's own examples.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("message");
        for (message, digest) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            fs::write(&file, message).unwrap();
            assert_eq!(sha256(&file).unwrap(), digest);
        }
    }

    #[test]
    fn remove_takes_files_folders_and_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("deep")).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [&tree, &file] {
            remove(path).unwrap();
            assert!(!path.exists());
            remove(path).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn remove_takes_a_link_and_not_what_it_points_at() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("kept");
        fs::create_dir(&kept).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        remove(&link).unwrap();
        assert!(link.symlink_metadata().is_err());
        assert!(kept.is_dir());
    }

    #[test]
    fn errors_name_the_action_and_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let message = sha256(&missing).unwrap_err().to_string();
        assert!(message.starts_with(&format!("cannot read `{}`: ", missing.display())), "{message}");
    }

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock(&path).unwrap();
        let other = File::create(&path).unwrap();
        assert!(other.try_lock().is_err());
        drop(held);
        assert!(other.try_lock().is_ok());
    }
}
