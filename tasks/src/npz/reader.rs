//! Reading `.npz` files.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use manege_systems::config::nearest;
use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::Array;
use super::header::Header;

/// Why an array cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpzError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no zip archive.
    #[error("{} is no .npz file ({message}); numpy.savez writes one", path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The file has no such array.
    #[error("{} has no array `{name}`{}; it has: {available}", path.display(), hint(nearest.as_deref()))]
    Missing {
        /// The file.
        path: PathBuf,
        /// The array looked for.
        name: String,
        /// The nearest name in the file.
        nearest: Option<String>,
        /// All names in the file.
        available: String,
    },
    /// The entry is damaged, or no plain array.
    #[error("array `{name}` of {} cannot be read: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The values are of a type that is not asked for.
    #[error("array `{name}` of {} holds values of type `{found}`, not numbers of 4 or 8 bytes", path.display())]
    Type {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The type found, in numpy's notation.
        found: String,
    },
    /// The array has another shape than the one asked for.
    #[error("array `{name}` of {} has shape {found}, not {expected}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The shape asked for.
        expected: String,
        /// The shape found.
        found: String,
    },
    /// A value that is not finite in the precision asked for.
    #[error("array `{name}` of {}: the value at {index:?} is {value:?}, not a finite number", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Where in the array.
        index: Vec<usize>,
        /// The value in the file.
        value: f64,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The length of a dimension that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Any length; the name stands for it in messages.
    Any(&'static str),
    /// This length.
    Exactly(usize),
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(name) => f.write_str(name),
            Self::Exactly(length) => length.fmt(f),
        }
    }
}

/// A type that arrays of numbers can be read as, whatever type they are stored as.
pub trait Number: Copy + private::Sealed {
    /// The nearest value of this type.
    fn from_stored(value: f64) -> Self;

    /// Whether the value is neither infinite nor undefined.
    fn is_finite(self) -> bool;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Number for f32 {
    fn from_stored(value: f64) -> Self {
        value as f32
    }

    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Number for f64 {
    fn from_stored(value: f64) -> Self {
        value
    }

    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

/// How a value is stored.
#[derive(Clone, Copy)]
struct Stored {
    bytes: usize,
    integer: bool,
    big_endian: bool,
}

impl Stored {
    fn parse(descr: &str) -> Option<Self> {
        let (order, kind) = descr.split_at_checked(1)?;
        let big_endian = match order {
            "<" => false,
            ">" => true,
            "=" => cfg!(target_endian = "big"),
            _ => return None,
        };
        let (bytes, integer) = match kind {
            "f4" => (4, false),
            "f8" => (8, false),
            "i4" => (4, true),
            "i8" => (8, true),
            _ => return None,
        };
        Some(Self { bytes, integer, big_endian })
    }

    /// The value in `bytes`, of which there are as many as [`bytes`](Self::bytes).
    fn value(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..self.bytes].copy_from_slice(bytes);
        if self.big_endian {
            word[..self.bytes].reverse();
        }
        let word = u64::from_le_bytes(word);
        match (self.bytes, self.integer) {
            (4, false) => f64::from(f32::from_bits(word as u32)),
            (_, false) => f64::from_bits(word),
            (4, true) => f64::from(word as u32 as i32),
            (_, true) => word as i64 as f64,
        }
    }
}

/// Reads arrays of an `.npz` file by name.
#[derive(Debug)]
pub struct NpzReader {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    names: Vec<String>,
}

impl NpzReader {
    /// Opens a file and reads its table of contents.
    ///
    /// # Errors
    /// [`NpzError::File`] or [`NpzError::NotAnArchive`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NpzError> {
        let path = path.as_ref().to_owned();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(source) => return Err(NpzError::File { path, source }),
        };
        match ZipArchive::new(BufReader::new(file)) {
            Ok(archive) => {
                // Entries whose names are no text cannot be asked for.
                let entries = archive.file_names().flatten();
                let names = entries.filter_map(|name| Some(name.strip_suffix(".npy")?.to_owned())).collect();
                Ok(Self { path, archive, names })
            }
            Err(ZipError::Io(source)) if source.kind() != io::ErrorKind::UnexpectedEof => {
                Err(NpzError::File { path, source })
            }
            Err(error) => Err(NpzError::NotAnArchive { path, message: error.to_string() }),
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of the arrays, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether the file has an array.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The shape of an array, from its header alone.
    ///
    /// # Errors
    /// The array is missing, or its header damaged.
    pub fn shape(&mut self, name: &str) -> Result<Vec<usize>, NpzError> {
        Ok(self.entry(name)?.2.shape)
    }

    /// The shape of an array, from its header alone, if it is as asked for.
    ///
    /// # Errors
    /// As [`shape`](Self::shape), and [`NpzError::Shape`].
    pub fn checked_shape(&mut self, name: &str, wanted: &[Extent]) -> Result<Vec<usize>, NpzError> {
        let (path, _, header) = self.entry(name)?;
        check_shape(path, name, wanted, &header.shape)?;
        Ok(header.shape)
    }

    /// Reads an array of floating-point numbers of either precision, or of integers of 4 or 8 bytes.
    ///
    /// Values that are not finite are read as they are; see [`read_finite`](Self::read_finite).
    ///
    /// # Errors
    /// The array is missing, damaged, of another type or of another shape.
    pub fn read<T: Number>(&mut self, name: &str, shape: &[Extent]) -> Result<Array<T>, NpzError> {
        self.read_checked(name, shape, |_, _| Ok(()))
    }

    /// As [`read`](Self::read), and every value must be finite in the precision asked for.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`NpzError::NotFinite`] names the first value that is not finite.
    pub fn read_finite<T: Number>(&mut self, name: &str, shape: &[Extent]) -> Result<Array<T>, NpzError> {
        self.read_checked(name, shape, |value, converted: T| if converted.is_finite() { Ok(()) } else { Err(value) })
    }

    fn read_checked<T: Number>(
        &mut self,
        name: &str,
        wanted: &[Extent],
        check: impl Fn(f64, T) -> Result<(), f64>,
    ) -> Result<Array<T>, NpzError> {
        let (path, mut entry, header) = self.entry(name)?;
        let damaged = |message: String| NpzError::Damaged { path: path.clone(), name: name.to_owned(), message };
        check_shape(path, name, wanted, &header.shape)?;
        let stored = Stored::parse(&header.descr).ok_or_else(|| NpzError::Type {
            path: path.clone(),
            name: name.to_owned(),
            found: header.descr.clone(),
        })?;
        let count = header.shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
        let count = count.ok_or_else(|| damaged(format!("the shape {} is too large", tuple(&header.shape))))?;

        let mut values = Vec::new();
        let mut chunk = vec![0; stored.bytes << 13];
        while values.len() < count {
            let wanted = (count - values.len()).min(1 << 13) * stored.bytes;
            entry.read_exact(&mut chunk[..wanted]).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    damaged(format!("it ends before the {count} values that its shape {} has", tuple(&header.shape)))
                }
                _ => damaged(error.to_string()),
            })?;
            for bytes in chunk[..wanted].chunks_exact(stored.bytes) {
                let value = stored.value(bytes);
                let converted = T::from_stored(value);
                check(value, converted).map_err(|value| NpzError::NotFinite {
                    path: path.clone(),
                    name: name.to_owned(),
                    index: index_of(values.len(), &header),
                    value,
                })?;
                values.push(converted);
            }
        }
        // Reading to the end is also what makes the archive compare checksums.
        if entry.read(&mut chunk[..1]).map_err(|error| damaged(error.to_string()))? > 0 {
            return Err(damaged(format!("it goes on after the {count} values of its shape {}", tuple(&header.shape))));
        }
        if header.fortran_order {
            values = last_dimension_contiguous(&values, &header.shape);
        }
        Ok(Array { shape: header.shape, values })
    }

    /// An entry, positioned at its first value, and its header.
    fn entry(&mut self, name: &str) -> Result<(&PathBuf, ZipFile<'_, BufReader<File>>, Header), NpzError> {
        let Self { path, archive, names } = self;
        let damaged = |message: String| NpzError::Damaged { path: path.clone(), name: name.to_owned(), message };
        if !names.iter().any(|known| known == name) {
            return Err(NpzError::Missing {
                nearest: nearest(name, names.iter().map(String::as_str)),
                available: if names.is_empty() { "no arrays".to_owned() } else { names.join(", ") },
                path: path.clone(),
                name: name.to_owned(),
            });
        }
        let mut entry = archive.by_name(&format!("{name}.npy")).map_err(|error| damaged(error.to_string()))?;
        let header = Header::read(&mut entry).map_err(damaged)?;
        Ok((path, entry, header))
    }
}

fn check_shape(path: &Path, name: &str, wanted: &[Extent], found: &[usize]) -> Result<(), NpzError> {
    let fits = |(wanted, &found): (&Extent, &usize)| match wanted {
        Extent::Any(_) => true,
        Extent::Exactly(length) => *length == found,
    };
    if found.len() == wanted.len() && wanted.iter().zip(found).all(fits) {
        return Ok(());
    }
    Err(NpzError::Shape { path: path.to_owned(), name: name.to_owned(), expected: tuple(wanted), found: tuple(found) })
}

/// A shape as Python writes it.
fn tuple(lengths: &[impl fmt::Display]) -> String {
    match lengths {
        [length] => format!("({length},)"),
        lengths => format!("({})", lengths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Index in the array of the value at `position` in the file.
fn index_of(mut position: usize, header: &Header) -> Vec<usize> {
    let mut index = vec![0; header.shape.len()];
    let mut place = |dimension: usize| {
        index[dimension] = position % header.shape[dimension];
        position /= header.shape[dimension];
    };
    if header.fortran_order {
        (0..header.shape.len()).for_each(&mut place);
    } else {
        (0..header.shape.len()).rev().for_each(&mut place);
    }
    index
}

/// Reorders values whose first dimension is contiguous.
fn last_dimension_contiguous<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut index = vec![0; shape.len()];
    let mut reordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        let position = index.iter().zip(shape).rev().fold(0, |position, (i, length)| position * length + i);
        reordered.push(values[position]);
        for (i, length) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *length {
                break;
            }
            *i = 0;
        }
    }
    reordered
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;

    use super::super::NpzWriter;
    use super::*;

    /// A file with the given entries, as raw bytes.
    fn archive(entries: &[(&str, &[u8])]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = zip::ZipWriter::new(file.reopen().unwrap());
        for (name, bytes) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap();
        file
    }

    /// A `.npy` entry with a header of the given text.
    fn npy(header: &str, values: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(values);
        bytes
    }

    fn le_f64(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn error<T: Number>(file: &tempfile::NamedTempFile, name: &str, shape: &[Extent]) -> String {
        NpzReader::open(file.path()).unwrap().read_finite::<T>(name, shape).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_written_reads_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = NpzWriter::new(file.reopen().unwrap());
        let long: Vec<f32> = (0..40_000).map(|i| i as f32 * 0.5).collect();
        writer.write("obs/policy", &[100, 400], &long).unwrap();
        writer.write("qpos", &[2], &[1.0_f64, f64::NAN]).unwrap();
        writer.write("done", &[2], &[true, false]).unwrap();
        writer.write_text("names", "{\"é\": 1}").unwrap();
        writer.finish().unwrap();

        let mut reader = NpzReader::open(file.path()).unwrap();
        assert_eq!(reader.names().collect::<Vec<_>>(), ["obs/policy", "qpos", "done", "names"]);
        let read = reader.read::<f32>("obs/policy", &[Extent::Any("T"), Extent::Exactly(400)]).unwrap();
        assert_eq!(read, Array { shape: vec![100, 400], values: long });
        assert!(reader.read::<f64>("qpos", &[Extent::Any("n")]).unwrap().values[1].is_nan());
    }

    #[test]
    fn integers_are_read_as_numbers() {
        let short: Vec<u8> = [-2_i32, 50].iter().flat_map(|value| value.to_be_bytes()).collect();
        let file = archive(&[
            ("fps.npy", &npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", &50_i64.to_le_bytes())),
            ("short.npy", &npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n", &short)),
        ]);
        let mut reader = NpzReader::open(file.path()).unwrap();
        assert_eq!(reader.shape("fps").unwrap(), []);
        assert_eq!(reader.shape("short").unwrap(), [2]);
        assert_eq!(reader.read::<f64>("fps", &[]).unwrap().values, [50.0]);
        assert_eq!(reader.read::<f32>("short", &[Extent::Any("n")]).unwrap().values, [-2.0, 50.0]);
    }

    #[test]
    fn both_precisions_orders_and_endiannesses_are_read() {
        // The array [[1, 2, 3], [4, 5, 6]] in three layouts.
        let rows: Vec<u8> = [1_f32, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let columns = le_f64(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let big: Vec<u8> = [1_f64, 2.0, 3.0, 4.0, 5.0, 6.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        let file = archive(&[
            ("rows.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", &rows)),
            ("columns.npy", &npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", &columns)),
            ("big.npy", &npy("{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }\n", &big)),
        ]);
        let mut reader = NpzReader::open(file.path()).unwrap();
        for name in ["rows", "columns", "big"] {
            let single = reader.read::<f32>(name, &[Extent::Any("N"), Extent::Exactly(3)]).unwrap();
            assert_eq!(single.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{name}");
            let double = reader.read::<f64>(name, &[Extent::Any("N"), Extent::Exactly(3)]).unwrap();
            assert_eq!(double.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{name}");
        }
    }

    #[test]
    fn errors_say_what_is_there() {
        let file = archive(&[
            (
                "actions.npy",
                &npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }\n", &le_f64(&[0.0, 1.0])),
            ),
            ("mask.npy", &npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }\n", &[1])),
            ("readme.txt", b"hello"),
        ]);
        let missing = error::<f32>(&file, "action", &[]);
        assert!(missing.contains("no array `action`; did you mean `actions`?"), "{missing}");
        assert!(missing.contains("it has: actions, mask"), "{missing}");
        let shape = error::<f32>(&file, "actions", &[Extent::Any("T"), Extent::Any("N"), Extent::Exactly(12)]);
        assert!(shape.contains("has shape (1, 2), not (T, N, 12)"), "{shape}");
        let kind = error::<f32>(&file, "mask", &[Extent::Exactly(1)]);
        assert!(kind.contains("`|b1`"), "{kind}");
        let no_archive = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(no_archive.path(), "1,2,3\n").unwrap();
        let text = NpzReader::open(no_archive.path()).unwrap_err().to_string();
        assert!(text.contains("is no .npz file"), "{text}");
        let text = NpzReader::open(no_archive.path().with_extension("gone")).unwrap_err().to_string();
        assert!(text.contains("cannot read") && text.contains(".gone"), "{text}");
    }

    #[test]
    fn values_that_are_not_finite_are_located() {
        let header = |fortran: &str| format!("{{'descr': '<f8', 'fortran_order': {fortran}, 'shape': (2, 3), }}\n");
        let values = le_f64(&[0.0, 0.0, 0.0, 0.0, f64::INFINITY, 0.0]);
        let large = le_f64(&[0.0, 0.0, 1e300, 0.0, 0.0, 0.0]);
        let file = archive(&[
            ("rows.npy", &npy(&header("False"), &values)),
            ("columns.npy", &npy(&header("True"), &values)),
            ("large.npy", &npy(&header("False"), &large)),
        ]);
        let shape = [Extent::Exactly(2), Extent::Exactly(3)];
        assert!(error::<f64>(&file, "rows", &shape).contains("the value at [1, 1] is inf"));
        assert!(error::<f64>(&file, "columns", &shape).contains("the value at [0, 2] is inf"));
        // Finite in the file, but not in single precision.
        assert!(error::<f32>(&file, "large", &shape).contains("the value at [0, 2] is 1e300"));
        assert!(NpzReader::open(file.path()).unwrap().read_finite::<f64>("large", &shape).is_ok());
    }

    #[test]
    fn changed_bytes_are_noticed() {
        let values = le_f64(&[1.0; 64]);
        let file = archive(&[("a.npy", &npy("{'descr': '<f8', 'fortran_order': False, 'shape': (64,), }\n", &values))]);
        let mut writer = NpzWriter::new(file.reopen().unwrap());
        writer.write("a", &[64], &[1.0_f64; 64]).unwrap();
        writer.finish().unwrap();
        let mut bytes = std::fs::read(file.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file.path(), bytes).unwrap();
        assert!(error::<f64>(&file, "a", &[Extent::Any("n")]).contains("hecksum"));
    }

    #[test]
    fn promises_that_the_data_does_not_keep_are_refused() {
        let endless = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}\n", u64::MAX / 16);
        let overflowing = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({0}, {0}), }}\n", u64::MAX / 16);
        let file = archive(&[
            ("endless.npy", &npy(&endless, &le_f64(&[1.0]))),
            ("overflowing.npy", &npy(&overflowing, &le_f64(&[1.0]))),
            ("surplus.npy", &npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n", &le_f64(&[1.0, 2.0]))),
            ("empty.npy", b""),
        ]);
        assert!(error::<f64>(&file, "endless", &[Extent::Any("n")]).contains("ends before"));
        assert!(error::<f64>(&file, "overflowing", &[Extent::Any("n"), Extent::Any("m")]).contains("too large"));
        assert!(error::<f64>(&file, "surplus", &[Extent::Any("n")]).contains("goes on after the 1 values"));
        assert!(error::<f64>(&file, "empty", &[Extent::Any("n")]).contains("cut off"));
    }
}
