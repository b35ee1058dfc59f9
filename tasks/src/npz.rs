//! Arrays in numpy's `.npz` format: what `numpy.savez` writes and `numpy.load` reads.
//!
//! An `.npz` file is a zip archive with one `.npy` entry per array. [`NpzReader`] takes files from anywhere: it checks
//! type and shape before it reads a value, and reserves memory only as data arrives, so that a header which promises
//! more than the file holds costs nothing. [`NpzWriter`] stores arrays uncompressed and without dates: equal arrays
//! give equal files.
//!
//! ```
//! use manege_tasks::npz::{Extent, NpzReader, NpzWriter};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("actions.npz");
//! let mut writer = NpzWriter::new(std::fs::File::create(&path)?);
//! writer.write("actions", &[2, 1, 3], &[0.0_f32, 0.1, 0.2, 0.3, 0.4, 0.5])?;
//! writer.finish()?;
//!
//! let mut reader = NpzReader::open(&path)?;
//! let actions = reader.read::<f32>("actions", &[Extent::Any("T"), Extent::Any("N"), Extent::Exactly(3)])?;
//! assert_eq!(actions.shape, [2, 1, 3]);
//! # Ok(())
//! # }
//! ```

mod header;
mod reader;
mod writer;

pub use reader::{Extent, NpzError, NpzReader, Number};
pub use writer::{Element, NpzWriter};

/// An array in memory, its last dimension contiguous.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<T> {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// The values, as many as the product of the shape.
    pub values: Vec<T>,
}
