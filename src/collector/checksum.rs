//! A number that tells whether two runs computed the same.

use std::fmt;

use crate::Environment;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// 64-bit FNV-1a over what an environment computed, step by step.
///
/// Every step adds, in this order and each in row order, every observation group, the rewards, the terminated and the
/// truncated flags: numbers as little-endian bytes, flags as one byte. The first observation, before any step, does
/// not count. It is written as 16 hexadecimal digits.
///
/// ```
/// use manege::collector::Checksum;
///
/// let mut checksum = Checksum::new();
/// checksum.add_flags(&[true]);
/// checksum.add_values(&[1.5]);
/// assert_eq!(checksum.to_string().len(), 16);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// The checksum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(OFFSET)
    }

    /// Adds what the environment's last step computed.
    pub fn add_step(&mut self, environment: &Environment) {
        for group in 0..environment.spec().groups.len() {
            self.add_values(environment.observation(group));
        }
        self.add_values(environment.rewards());
        self.add_flags(environment.terminated());
        self.add_flags(environment.truncated());
    }

    /// Adds numbers.
    pub fn add_values(&mut self, values: &[f32]) {
        self.0 = values.iter().flat_map(|value| value.to_le_bytes()).fold(self.0, add_byte);
    }

    /// Adds flags: 0 for false, 1 for true.
    pub fn add_flags(&mut self, flags: &[bool]) {
        self.0 = flags.iter().map(|&flag| u8::from(flag)).fold(self.0, add_byte);
    }

    /// The checksum as a number.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

fn add_byte(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(PRIME)
}

impl Default for Checksum {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a text of four characters a number.
    fn of_text(text: &str) -> String {
        let mut checksum = Checksum::new();
        let (words, rest) = text.as_bytes().as_chunks::<4>();
        assert!(rest.is_empty());
        checksum.add_values(&words.iter().map(|word| f32::from_le_bytes(*word)).collect::<Vec<_>>());
        checksum.to_string()
    }

    #[test]
    fn published_vectors_of_fnv_1a() {
        // From Landon Curt Noll's test suite for 64-bit FNV-1a.
        assert_eq!(Checksum::new().to_string(), "cbf29ce484222325");
        assert_eq!(of_text("chongo was here!"), "858e2fa32a55e61d");
        let mut flags = Checksum::new();
        flags.add_flags(&[false]);
        assert_eq!(flags.to_string(), "af63bd4c8601b7df");
    }

    #[test]
    fn numbers_and_flags_follow_each_other_byte_by_byte() {
        let mut checksum = Checksum::new();
        checksum.add_values(&[1.5, -2.0]);
        checksum.add_values(&[f32::INFINITY]);
        checksum.add_flags(&[false, true]);
        // Of the bytes that Python's struct.pack("<3f??", 1.5, -2, inf, False, True) gives.
        assert_eq!(checksum.to_string(), "6a3d4e72a52524ca");
    }
}
