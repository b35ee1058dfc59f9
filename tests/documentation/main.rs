//! The pages keep up with the code.

mod managers_page;
mod tasks_page;

use std::path::{Path, PathBuf};

/// The path of a page.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}
