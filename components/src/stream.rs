//! Random streams that depend on nothing but their key.
//!
//! Every draw comes from an xoshiro256++ generator whose seed is a hash of (seed, row, episode, stream, counter). So a
//! row's k-th episode is the same for any number of rows and threads and whatever happened before it, and a term
//! added to an environment does not shift the draws of the others.

use bevy_ecs::component::Component;
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Row;

/// Names one stream of a row: an event, a command term, an observation term's noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId(u64);

impl StreamId {
    /// The stream of the given name, `manager/term` by convention.
    ///
    /// The identifier is the 64-bit FNV-1a hash of the name, so it does not depend on which other terms exist.
    #[must_use]
    pub const fn new(name: &str) -> Self {
        Self(0xcbf2_9ce4_8422_2325).join(name)
    }

    /// The stream named by this name followed by `name`.
    #[must_use]
    pub const fn join(self, name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = self.0;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Self(hash)
    }
}

/// The key of a row's random streams in its current episode.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    key: u64,
}

impl Streams {
    /// The streams of `row` in its `episode`.
    #[must_use]
    pub const fn for_row(seed: u64, row: Row, episode: u32) -> Self {
        Self { key: mix(mix(seed) ^ ((row.0 as u64) << 32 | episode as u64)) }
    }

    /// Streams that belong to no row: global timers, startup draws.
    #[must_use]
    pub const fn global(seed: u64) -> Self {
        // No row has this mixed key by construction: rows start from `mix(seed)`, this from its complement.
        Self { key: mix(!mix(seed)) }
    }

    /// The streams' key, to be kept.
    #[must_use]
    pub const fn key(self) -> u64 {
        self.key
    }

    /// The streams of a key that was kept.
    #[must_use]
    pub const fn from_key(key: u64) -> Self {
        Self { key }
    }

    /// The generator for the `counter`-th use of `stream`.
    #[must_use]
    #[inline]
    pub fn draws(&self, stream: StreamId, counter: u64) -> Draws {
        Draws {
            rng: Xoshiro256PlusPlus::seed_from_u64(mix(self.key ^ stream.0).wrapping_add(mix(counter))),
            centre: false,
        }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea and Flood 2014) with its increment: a bijection that spreads nearby inputs.
const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator of numbers for one use of one stream.
#[derive(Debug, Clone)]
pub struct Draws {
    rng: Xoshiro256PlusPlus,
    centre: bool,
}

impl Draws {
    /// Draws that always give the centre of the range or distribution asked for, for runs without randomisation.
    #[must_use]
    #[inline]
    pub fn centred(mut self) -> Self {
        self.centre = true;
        self
    }

    /// A number in `[low, high)`; `low` if the range is empty.
    #[inline]
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        if self.centre {
            return 0.5 * (low + high);
        }
        // 53 random bits: every multiple of 2^-53 in [0, 1) is equally likely.
        let unit = (self.rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64);
        low + unit * (high - low)
    }

    /// A number in `[low, high)`, single precision; `low` if the range is empty.
    #[inline]
    pub fn uniform_f32(&mut self, low: f32, high: f32) -> f32 {
        if self.centre {
            return 0.5 * (low + high);
        }
        let unit = (self.rng.next_u64() >> 40) as f32 * (1.0 / (1u32 << 24) as f32);
        low + unit * (high - low)
    }

    /// A normally distributed number.
    #[inline]
    pub fn normal(&mut self, mean: f64, standard_deviation: f64) -> f64 {
        if self.centre {
            return mean;
        }
        let unit: f64 = StandardNormal.sample(&mut self.rng);
        mean + standard_deviation * unit
    }

    /// A whole number in `low..=high`.
    ///
    /// # Panics
    /// If `high < low`.
    #[inline]
    pub fn integer(&mut self, low: u32, high: u32) -> u32 {
        assert!(low <= high, "an integer range needs low <= high");
        let span = u64::from(high - low) + 1;
        if self.centre {
            return low + (span / 2) as u32;
        }
        // Multiply-shift: the bias is below 2^-31 for any 32-bit span.
        let scaled = (u128::from(self.rng.next_u64()) * u128::from(span)) >> 64;
        low + scaled as u32
    }

    /// True with the given probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        if self.centre {
            return probability > 0.5;
        }
        self.uniform(0.0, 1.0) < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamId = StreamId::new("test/stream");

    fn first(streams: Streams, stream: StreamId, counter: u64) -> u64 {
        streams.draws(stream, counter).rng.next_u64()
    }

    #[test]
    fn every_part_of_the_key_matters() {
        let base = first(Streams::for_row(1, Row(2), 3), STREAM, 4);
        assert_eq!(base, first(Streams::for_row(1, Row(2), 3), STREAM, 4));
        assert_ne!(base, first(Streams::for_row(9, Row(2), 3), STREAM, 4));
        assert_ne!(base, first(Streams::for_row(1, Row(9), 3), STREAM, 4));
        assert_ne!(base, first(Streams::for_row(1, Row(2), 9), STREAM, 4));
        assert_ne!(base, first(Streams::for_row(1, Row(2), 3), StreamId::new("other"), 4));
        assert_ne!(base, first(Streams::for_row(1, Row(2), 3), STREAM, 9));
        assert_ne!(base, first(Streams::global(1), STREAM, 4));
    }

    #[test]
    fn stream_names_hash_as_fnv_1a() {
        // Published test vectors of 64-bit FNV-1a.
        assert_eq!(StreamId::new(""), StreamId(0xcbf2_9ce4_8422_2325));
        assert_eq!(StreamId::new("a"), StreamId(0xaf63_dc4c_8601_ec8c));
        assert_eq!(StreamId::new("foobar"), StreamId(0x8594_4171_f739_67e8));
        assert_eq!(StreamId::new("foo").join("bar"), StreamId::new("foobar"));
    }

    #[test]
    fn neighbouring_keys_give_independent_uniform_numbers() {
        // Means over rows, episodes and counters, each of 40,000 numbers with standard error 0.0015.
        let mean = |f: &dyn Fn(u32) -> Draws| (0..40_000).map(|k| f(k).uniform(0.0, 1.0)).sum::<f64>() / 40_000.0;
        let over_rows = mean(&|k| Streams::for_row(0, Row(k), 0).draws(STREAM, 0));
        let over_episodes = mean(&|k| Streams::for_row(0, Row(0), k).draws(STREAM, 0));
        let over_counters = mean(&|k| Streams::for_row(0, Row(0), 0).draws(STREAM, u64::from(k)));
        for m in [over_rows, over_episodes, over_counters] {
            assert!((m - 0.5).abs() < 0.008, "mean {m}");
        }
    }

    #[test]
    fn ranges_are_half_open_and_centred_draws_are_the_middle() {
        let mut draws = Streams::global(7).draws(STREAM, 0);
        for _ in 0..10_000 {
            let x = draws.uniform_f32(-0.1, 0.1);
            assert!((-0.1..0.1).contains(&x));
            assert!((2..=5).contains(&draws.integer(2, 5)));
        }
        assert_eq!(draws.uniform(3.0, 3.0), 3.0);
        let mut draws = draws.centred();
        assert_eq!(draws.uniform(-1.0, 3.0), 1.0);
        assert_eq!(draws.normal(0.25, 9.0), 0.25);
    }

    #[test]
    fn normal_numbers_have_the_asked_mean_and_deviation() {
        let mut draws = Streams::global(3).draws(STREAM, 0);
        let sample: Vec<f64> = (0..40_000).map(|_| draws.normal(2.0, 0.5)).collect();
        let mean = sample.iter().sum::<f64>() / 4e4;
        let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4e4;
        assert!((mean - 2.0).abs() < 0.0125 && (variance - 0.25).abs() < 0.01, "{mean} {variance}");
    }
}
