//! The header of a `.npy` entry: a Python dictionary literal with three keys.
//!
//! Only what numpy writes for plain arrays is understood. The parser is of our own because headers are untrusted: it
//! does not recurse, and its cost is linear in a text of bounded length.

use std::fmt;
use std::io::{self, Read};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header text that is read; numpy's own limit is 10,000.
const MAX_HEADER: usize = 10_000;

/// Most dimensions that numpy has.
const MAX_DIMENSIONS: usize = 64;

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The type of the values in numpy's notation, such as `<f4`.
    pub(super) descr: String,
    /// Whether the first dimension, not the last, is contiguous.
    pub(super) fortran_order: bool,
    /// Length of each dimension.
    pub(super) shape: Vec<usize>,
}

impl Header {
    /// Reads a header and leaves `source` at the first value.
    pub(super) fn read(source: &mut impl Read) -> Result<Self, String> {
        let mut start = [0; 8];
        fill(source, &mut start)?;
        if &start[..6] != MAGIC {
            return Err("it does not start like a .npy array".to_owned());
        }
        let length = match start[6] {
            1 => {
                let mut length = [0; 2];
                fill(source, &mut length)?;
                usize::from(u16::from_le_bytes(length))
            }
            2 | 3 => {
                let mut length = [0; 4];
                fill(source, &mut length)?;
                u32::from_le_bytes(length) as usize
            }
            version => return Err(format!("version {version} of the .npy format is unknown")),
        };
        if length > MAX_HEADER {
            return Err(format!("a header of {length} bytes is longer than any plain array's"));
        }
        let mut text = vec![0; length];
        fill(source, &mut text)?;
        let text = String::from_utf8(text).map_err(|_| "the header is no text".to_owned())?;
        text.parse()
    }

    /// The bytes that come before the values.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = self.to_string();
        // The values start at a multiple of 64 bytes, the header ends with a new line.
        let before_text = MAGIC.len() + 4;
        let padded = (before_text + text.len() + 1).next_multiple_of(64) - before_text;
        text.extend(std::iter::repeat_n(' ', padded - text.len() - 1));
        text.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        // At most 64 dimensions of 20 digits: far below the limit of 65,535.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fortran_order = if self.fortran_order { "True" } else { "False" };
        write!(f, "{{'descr': '{}', 'fortran_order': {fortran_order}, 'shape': (", self.descr)?;
        for length in &self.shape {
            write!(f, "{length}, ")?;
        }
        write!(f, "), }}")
    }
}

fn fill(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), String> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the header is cut off".to_owned(),
        _ => error.to_string(),
    })
}

impl std::str::FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cursor = Cursor { rest: text };
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        cursor.expect('{')?;
        while !cursor.take('}') {
            let key = cursor.quoted()?;
            cursor.expect(':')?;
            match key {
                "descr" => descr = Some(cursor.descr()?.to_owned()),
                "fortran_order" => fortran_order = Some(cursor.boolean()?),
                "shape" => shape = Some(cursor.shape()?),
                other => return Err(format!("the header has an unknown key `{other}`")),
            }
            if !cursor.take(',') {
                cursor.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| format!("the header has no `{key}`");
        Ok(Self {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// What has not been parsed yet.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("`{wanted}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.rest.chars().next() {
            Some(found) => format!("the header has `{}` where {wanted} belongs", found.escape_default()),
            None => format!("the header ends where {wanted} belongs"),
        }
    }

    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.take('\'') {
            '\''
        } else if self.take('"') {
            '"'
        } else {
            return Err(self.unexpected("a quoted word"));
        };
        let (word, rest) = self.rest.split_once(quote).ok_or("the header has a word without an end")?;
        self.rest = rest;
        Ok(word)
    }

    fn descr(&mut self) -> Result<&'a str, String> {
        if self.rest.trim_start().starts_with('[') {
            return Err("it is a structured array; save one array per field instead".to_owned());
        }
        self.quoted()
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(self.unexpected("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let mut shape = Vec::new();
        self.expect('(')?;
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let digits = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (number, rest) = self.rest.split_at(digits);
            if number.is_empty() {
                return Err(self.unexpected("the length of a dimension"));
            }
            shape.push(number.parse().map_err(|_| format!("a dimension of length {number} is too long"))?);
            if shape.len() > MAX_DIMENSIONS {
                return Err(format!("the array has more than {MAX_DIMENSIONS} dimensions"));
            }
            self.rest = rest;
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(descr: &str, fortran_order: bool, shape: &[usize]) -> Header {
        Header { descr: descr.to_owned(), fortran_order, shape: shape.to_vec() }
    }

    #[test]
    fn headers_as_numpy_writes_them_are_understood() {
        // Copied from files that numpy 2.4 wrote.
        let cases = [
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 12), }      \n",
                header("<f4", false, &[3, 4, 12]),
            ),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }\n", header("<f8", true, &[3, 4])),
            ("{'descr': '|b1', 'fortran_order': False, 'shape': (7,), }\n", header("|b1", false, &[7])),
            ("{'descr': '<U5', 'fortran_order': False, 'shape': (), }\n", header("<U5", false, &[])),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Header>().unwrap(), expected);
        }
    }

    #[test]
    fn a_written_header_reads_back_and_is_aligned() {
        for shape in [&[][..], &[5], &[1000, 8192, 289]] {
            let header = header("<f4", false, shape);
            let bytes = header.to_bytes();
            assert_eq!(bytes.len() % 64, 0);
            assert_eq!(bytes.last(), Some(&b'\n'));
            assert_eq!(Header::read(&mut bytes.as_slice()).unwrap(), header);
        }
    }

    #[test]
    fn hostile_headers_are_refused() {
        let cases = [
            ("", "ends where `{`"),
            ("{'descr': '<f4', 'fortran_order': False", "ends where `}`"),
            ("{'descr': '<f4', 'fortran_order': False, }", "no `shape`"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "True or False"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "length of a dimension"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "too long"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structured"),
            ("{'descr': '<f4, 'fortran_order': False, 'shape': (1,), }", "belongs"),
            ("{'what': 1}", "unknown key `what`"),
            ("{'descr", "without an end"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Header>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let many = format!("{{'shape': ({})}}", "1,".repeat(100));
        assert!(many.parse::<Header>().unwrap_err().contains("more than 64"));
        let nested = "(".repeat(9_000);
        assert!(format!("{{'shape': {nested}").parse::<Header>().is_err());
    }

    #[test]
    fn a_header_that_promises_too_much_is_refused_before_memory_is_reserved() {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([2, 0]);
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(Header::read(&mut bytes.as_slice()).unwrap_err().contains("4294967295 bytes"));
        assert!(Header::read(&mut &b"\x93NUMPY\x01\x00\x76\x00{'descr'"[..]).unwrap_err().contains("cut off"));
        assert!(Header::read(&mut &b"PK\x03\x04....."[..]).unwrap_err().contains("does not start"));
        assert!(Header::read(&mut &b"\x93NUMPY\x09\x00\x76\x00"[..]).unwrap_err().contains("version 9"));
    }
}
