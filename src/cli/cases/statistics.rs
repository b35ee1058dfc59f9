//! Statistics over steps and over runs.

use serde::Serialize;

/// Statistics of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Sample {
    pub(super) samples: usize,
    pub(super) mean: f64,
    pub(super) median: f64,
    /// Standard deviation of the values themselves, not an estimate for a population that they were drawn from.
    pub(super) std: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Sample {
    /// Statistics of at least one value.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
        let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
        Self {
            samples: values.len(),
            mean,
            median: 0.5 * (at(low) + at(high)),
            std: variance.sqrt(),
            min: at(0),
            max: at(sorted.len().saturating_sub(1)),
        }
    }

    /// Standard deviation as a part of the mean.
    pub(super) fn variation(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { self.std / self.mean }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_textbook() {
        let sample = Sample::of(&[4.0, 2.0, 9.0, 5.0]);
        assert_eq!((sample.samples, sample.mean, sample.median), (4, 5.0, 4.5));
        assert_eq!((sample.min, sample.max), (2.0, 9.0));
        // Deviations from the mean: -1, -3, 4, 0; their squares add up to 26.
        assert!((sample.std - 6.5f64.sqrt()).abs() < 1e-15);
        assert!((sample.variation() - 6.5f64.sqrt() / 5.0).abs() < 1e-15);
        assert_eq!(Sample::of(&[3.0, 1.0, 8.0]).median, 3.0);
    }
}
