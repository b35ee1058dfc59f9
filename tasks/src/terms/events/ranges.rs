//! Ranges along and about axes, which curricula may change.

use glam::DVec3;
use manege_components::Draws;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::tunable::TunableRange;
use serde::{Deserialize, Serialize};

use crate::terms::resolve::impossible;

/// Least and greatest value of a uniform draw.
pub type Range = [f64; 2];

/// Three ranges, along or about the axes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxisRanges {
    /// x.
    pub x: Range,
    /// y.
    pub y: Range,
    /// z.
    pub z: Range,
}

impl AxisRanges {
    /// Always zero.
    pub const ZERO: Self = Self::symmetric(0.0);

    /// All three vary by up to `limit` in either direction.
    #[must_use]
    pub const fn symmetric(limit: f64) -> Self {
        let range = [-limit, limit];
        Self { x: range, y: range, z: range }
    }

    /// Checks the ranges, and makes each tunable under `key` and its own name.
    pub(super) fn tunable(&self, key: &str, context: &mut BuildContext<'_>) -> Result<AxisTunable, BuildError> {
        let Self { x, y, z } = *self;
        let mut tunable = |name: &str, range| tunable(&format!("{key}.{name}"), range, context);
        Ok(AxisTunable([tunable("x", x)?, tunable("y", y)?, tunable("z", z)?]))
    }
}

/// Three ranges that curricula may change.
pub(super) struct AxisTunable([TunableRange; 3]);

impl AxisTunable {
    pub(super) fn draw(&self, draws: &mut Draws) -> DVec3 {
        self.0.each_ref().map(|range| draw(range, draws)).into()
    }
}

/// Six ranges: along the axes (m or m/s) and about them (rad or rad/s).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SixRanges {
    /// Along x.
    pub x: Range,
    /// Along y.
    pub y: Range,
    /// Along z.
    pub z: Range,
    /// About x.
    pub roll: Range,
    /// About y.
    pub pitch: Range,
    /// About z.
    pub yaw: Range,
}

impl SixRanges {
    /// Nothing varies.
    pub const ZERO: Self =
        Self { x: [0.0; 2], y: [0.0; 2], z: [0.0; 2], roll: [0.0; 2], pitch: [0.0; 2], yaw: [0.0; 2] };

    /// All six vary by up to `limit` in either direction.
    #[must_use]
    pub const fn symmetric(limit: f64) -> Self {
        let range = [-limit, limit];
        Self { x: range, y: range, z: range, roll: range, pitch: range, yaw: range }
    }

    /// Checks the ranges, and makes each tunable under `key` and its own name.
    pub(crate) fn tunable(&self, key: &str, context: &mut BuildContext<'_>) -> Result<SixTunable, BuildError> {
        let Self { x, y, z, roll, pitch, yaw } = *self;
        let mut tunable = |name: &str, range| tunable(&format!("{key}.{name}"), range, context);
        Ok(SixTunable([
            tunable("x", x)?,
            tunable("y", y)?,
            tunable("z", z)?,
            tunable("roll", roll)?,
            tunable("pitch", pitch)?,
            tunable("yaw", yaw)?,
        ]))
    }
}

/// Six ranges that curricula may change.
pub(crate) struct SixTunable([TunableRange; 6]);

impl SixTunable {
    /// Draws the values along the axes, then those about them.
    pub(crate) fn draw(&self, draws: &mut Draws) -> (DVec3, DVec3) {
        let [x, y, z, roll, pitch, yaw] = self.0.each_ref().map(|range| draw(range, draws));
        (DVec3::new(x, y, z), DVec3::new(roll, pitch, yaw))
    }
}

/// Checks that a range has something in it.
fn check(key: &str, [low, high]: Range) -> Result<(), BuildError> {
    if low <= high && low.is_finite() && high.is_finite() {
        return Ok(());
    }
    Err(impossible(key, format!("[{low}, {high}] is an empty range")))
}

/// Checks a range and makes it tunable.
pub(super) fn tunable(key: &str, range: Range, context: &mut BuildContext<'_>) -> Result<TunableRange, BuildError> {
    check(key, range)?;
    context.tunable_range(key, range)
}

fn draw(range: &TunableRange, draws: &mut Draws) -> f64 {
    let [low, high] = range.get();
    draws.uniform(low, high)
}
