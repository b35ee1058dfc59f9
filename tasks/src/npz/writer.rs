//! Writing `.npz` files.

use std::io::{self, Seek, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::header::Header;

/// A type of values that can be stored.
pub trait Element: Copy + private::Sealed {
    /// The type in numpy's notation.
    const DESCR: &'static str;

    /// Appends the value's little-endian bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for bool {}
}

impl Element for f32 {
    const DESCR: &'static str = "<f4";

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl Element for f64 {
    const DESCR: &'static str = "<f8";

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl Element for bool {
    const DESCR: &'static str = "|b1";

    fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }
}

/// Values that are converted to bytes at a time.
const CHUNK: usize = 1 << 14;

/// Writes arrays one after the other into an `.npz` file.
pub struct NpzWriter<W: Write + Seek> {
    archive: ZipWriter<W>,
    bytes: Vec<u8>,
}

impl<W: Write + Seek> NpzWriter<W> {
    /// Starts a file.
    pub fn new(file: W) -> Self {
        Self { archive: ZipWriter::new(file), bytes: Vec::with_capacity(8 * CHUNK) }
    }

    /// Adds an array.
    ///
    /// # Errors
    /// The file cannot be written, has an array of this name, or `values` are not as many as the shape says.
    pub fn write<T: Element>(&mut self, name: &str, shape: &[usize], values: &[T]) -> io::Result<()> {
        if shape.iter().product::<usize>() != values.len() {
            let message = format!("`{name}` has {} values, which do not fill the shape {shape:?}", values.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.start(name, T::DESCR, shape, size_of_val(values))?;
        for chunk in values.chunks(CHUNK) {
            self.bytes.clear();
            chunk.iter().for_each(|value| value.append_to(&mut self.bytes));
            self.archive.write_all(&self.bytes)?;
        }
        Ok(())
    }

    /// Adds a text, which numpy reads as a string array without dimensions: `str(file["name"])`.
    ///
    /// # Errors
    /// The file cannot be written, or has an array of this name.
    pub fn write_text(&mut self, name: &str, text: &str) -> io::Result<()> {
        // A string in numpy has four bytes per character, and at least one character.
        let characters = text.chars().count().max(1);
        self.start(name, &format!("<U{characters}"), &[], 4 * characters)?;
        self.bytes.clear();
        text.chars().for_each(|character| self.bytes.extend(u32::from(character).to_le_bytes()));
        self.bytes.resize(4 * characters, 0);
        self.archive.write_all(&self.bytes)
    }

    fn start(&mut self, name: &str, descr: &str, shape: &[usize], bytes: usize) -> io::Result<()> {
        let header = Header { descr: descr.to_owned(), fortran_order: false, shape: shape.to_vec() }.to_bytes();
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file((bytes + header.len()) as u64 >= u64::from(u32::MAX));
        self.archive.start_file(format!("{name}.npy"), options)?;
        self.archive.write_all(&header)
    }

    /// Completes the file. Without this, it has no table of contents.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> io::Result<W> {
        Ok(self.archive.finish()?)
    }
}
