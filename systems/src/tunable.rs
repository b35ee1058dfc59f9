//! Ranges that a curriculum may change while the environment runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bevy_ecs::prelude::Resource;
use indexmap::IndexMap;

/// A range of numbers that a term draws from and a curriculum may change. Clones share the range.
///
/// A term asks for one by name when it is built
/// ([`BuildContext::tunable_range`](crate::build::BuildContext::tunable_range)), and reads it whenever it draws. Curricula
/// write it between control steps' stages, never while terms draw, so results do not depend on the number of threads.
#[derive(Debug, Clone)]
pub struct TunableRange(Arc<[AtomicU64; 2]>);

impl TunableRange {
    /// A range that nobody else knows.
    #[must_use]
    pub fn new(range: [f64; 2]) -> Self {
        Self(Arc::new(range.map(|bound| AtomicU64::new(bound.to_bits()))))
    }

    /// Least and greatest number.
    #[must_use]
    pub fn get(&self) -> [f64; 2] {
        [0, 1].map(|bound| f64::from_bits(self.0[bound].load(Ordering::Relaxed)))
    }

    /// Changes the range, from the next draw on. The caller makes sure that `low <= high` and that both are finite.
    pub fn set(&self, [low, high]: [f64; 2]) {
        debug_assert!(low <= high && low.is_finite() && high.is_finite(), "[{low}, {high}] is an empty range");
        self.0[0].store(low.to_bits(), Ordering::Relaxed);
        self.0[1].store(high.to_bits(), Ordering::Relaxed);
    }
}

/// All ranges that terms have made tunable, by `section.term.name`, such as `commands.twist.lin_vel_x`.
#[derive(Resource, Debug, Clone, Default)]
pub struct Tunables(pub(crate) IndexMap<String, TunableRange>);

impl Tunables {
    /// The ranges with their names, in the order in which they were made.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &TunableRange)> {
        self.0.iter().map(|(name, range)| (name.as_str(), range))
    }

    /// A range by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&TunableRange> {
        self.0.get(name)
    }
}
