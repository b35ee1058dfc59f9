//! Reference motions for tracking, and their files.

use std::io;
use std::path::Path;

pub use manege_tasks::motion::*;

use crate::files::{Existing, write_whole};

/// Writes a motion's file in one go: whatever happens, `path` is the old file, or nothing, or the whole new file.
///
/// # Errors
/// The file cannot be written.
pub fn save(motion: &Motion, path: impl AsRef<Path>) -> io::Result<()> {
    write_whole(path.as_ref(), Existing::Replace, |file| motion.write(file))
}
