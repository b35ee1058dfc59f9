//! Files that are whole or not there.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What happens to a file that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced, in one go.
    Replace,
    /// It is kept, and writing fails.
    Keep,
}

/// Writes a file under a hidden temporary name in the same folder, waits until it is on the disk, and renames it.
///
/// Whatever happens meanwhile, `path` names the old file, or nothing, or the whole new file.
///
/// # Errors
/// The file cannot be written, or is there and to be kept.
pub fn write_whole(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".manege-").suffix(".tmp");
    // Temporary files are private unless told otherwise; this one is to be a file like any other.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = builder.tempfile_in(folder)?;

    let mut writer = BufWriter::with_capacity(1 << 16, file.as_file());
    write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    file.as_file().sync_all()?;
    match existing {
        Existing::Replace => file.persist(path),
        Existing::Keep => file.persist_noclobber(path),
    }
    .map_err(|error| error.error)?;
    // The new name is on the disk when the folder is.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_write_that_fails_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, Existing::Replace, |file| {
            file.write_all(b"half of the n")?;
            file.flush()?;
            Err(io::Error::other("the power went"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn existing_files_are_replaced_or_kept_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_whole(&path, Existing::Keep, |file| file.write_all(b"1")).unwrap();
        let kept = write_whole(&path, Existing::Keep, |file| file.write_all(b"2")).unwrap_err();
        assert_eq!(kept.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"1");
        write_whole(&path, Existing::Replace, |file| file.write_all(b"3")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"3");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_as_readable_as_any_other() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("a"), folder.path().join("b"));
        write_whole(&ours, Existing::Keep, |file| file.write_all(b"1")).unwrap();
        std::fs::write(&plain, "1").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
