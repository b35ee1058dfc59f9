//! Numbers as little-endian bytes.

use super::SnapshotError;

/// A number that can be part of a state.
pub trait Value: Copy + private::Sealed {
    #[doc(hidden)]
    const WIDTH: usize;
    #[doc(hidden)]
    fn append(self, bytes: &mut Vec<u8>);
    #[doc(hidden)]
    fn parse(bytes: &[u8]) -> Result<Self, &'static str>;
}

mod private {
    pub trait Sealed {}
}

macro_rules! value {
    ($($number:ty)*) => {$(
        impl private::Sealed for $number {}
        impl Value for $number {
            const WIDTH: usize = size_of::<$number>();

            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
                bytes.try_into().map(Self::from_le_bytes).map_err(|_| "a number that is cut off")
            }
        }
    )*};
}
value! { u32 u64 f32 f64 }

impl private::Sealed for bool {}
impl Value for bool {
    const WIDTH: usize = 1;

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err("a flag that is neither set nor clear"),
        }
    }
}

/// Collects a state.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a number.
    pub fn put(&mut self, value: impl Value) {
        value.append(&mut self.bytes);
    }

    /// Appends numbers, without their count: who reads them knows it.
    pub fn put_all<V: Value>(&mut self, values: &[V]) {
        self.bytes.reserve(values.len() * V::WIDTH);
        values.iter().for_each(|value| value.append(&mut self.bytes));
    }

    /// Begins a part: its name, and its size, which [`end`](Self::end) fills in.
    pub(super) fn begin(&mut self, name: &str) -> usize {
        self.put(name.len() as u32);
        self.bytes.extend_from_slice(name.as_bytes());
        self.put(0u64);
        self.bytes.len()
    }

    pub(super) fn end(&mut self, start: usize) {
        let size = (self.bytes.len() - start) as u64;
        self.bytes[start - 8..start].copy_from_slice(&size.to_le_bytes());
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Gives a state's part back, piece by piece.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    part: &'a str,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { part: "", bytes }
    }

    /// Whether all has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes a number.
    ///
    /// # Errors
    /// There is none left, or it cannot be.
    pub fn take<V: Value>(&mut self) -> Result<V, SnapshotError> {
        let bytes = self.bytes(V::WIDTH).ok_or_else(|| SnapshotError::Size { part: self.part.to_owned() })?;
        V::parse(bytes).map_err(|message| SnapshotError::Value { part: self.part.to_owned(), message })
    }

    /// Takes as many numbers as `values` has.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    pub fn fill<V: Value>(&mut self, values: &mut [V]) -> Result<(), SnapshotError> {
        values.iter_mut().try_for_each(|value| {
            *value = self.take()?;
            Ok(())
        })
    }

    /// Takes all that is left.
    ///
    /// # Errors
    /// It is no whole number of numbers, or one of them cannot be.
    pub fn rest<V: Value>(&mut self) -> Result<Vec<V>, SnapshotError> {
        let mut values = Vec::with_capacity(self.bytes.len() / V::WIDTH);
        while !self.bytes.is_empty() {
            values.push(self.take()?);
        }
        Ok(values)
    }

    /// Takes a part with its name.
    pub(super) fn part(&mut self) -> Result<(&'a str, Reader<'a>), SnapshotError> {
        let mut part = || {
            let length = u32::parse(self.bytes(4)?).ok()? as usize;
            let name = std::str::from_utf8(self.bytes(length)?).ok()?;
            let size = usize::try_from(u64::parse(self.bytes(8)?).ok()?).ok()?;
            Some((name, Reader { part: name, bytes: self.bytes(size)? }))
        };
        part().ok_or(SnapshotError::Cut)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }
}
