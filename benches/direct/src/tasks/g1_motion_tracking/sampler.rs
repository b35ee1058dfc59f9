//! Where in the motion episodes begin: more often where they fail.

use manege_components::Draws;

/// Weight of the uniform part.
const UNIFORM_RATIO: f64 = 0.1;

/// How fast failures are learnt.
const ALPHA: f64 = 0.001;

/// Draws frames, bin by bin of about a second.
pub(super) struct Sampler {
    frames: usize,
    /// Running mean of failures per bin.
    failures: Vec<f64>,
    counts: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Sampler {
    pub(super) fn new(frames: usize, bins: usize) -> Self {
        let mut sampler =
            Self { frames, failures: vec![0.0; bins], counts: vec![0; bins], probabilities: vec![0.0; bins] };
        sampler.weigh();
        sampler
    }

    /// Draws the first frame of an episode.
    pub(super) fn draw(&self, draws: &mut Draws) -> usize {
        let mut left = draws.uniform(0.0, 1.0);
        let bins = self.probabilities.len();
        let bin = self.probabilities.iter().position(|probability| {
            left -= probability;
            left < 0.0
        });
        let place = (bin.unwrap_or(bins - 1) as f64 + draws.uniform(0.0, 1.0)) / bins as f64;
        (place * (self.frames - 1) as f64) as usize
    }

    /// Learns from the frames at which rows failed in this control step; nothing if none did.
    pub(super) fn learn(&mut self, failed: impl Iterator<Item = usize>) {
        let bins = self.failures.len();
        self.counts.fill(0);
        let mut any = false;
        for frame in failed {
            any = true;
            self.counts[(frame * bins / self.frames).min(bins - 1)] += 1;
        }
        if any {
            for (mean, &count) in self.failures.iter_mut().zip(&self.counts) {
                *mean = ALPHA * f64::from(count) + (1.0 - ALPHA) * *mean;
            }
            self.weigh();
        }
    }

    fn weigh(&mut self) {
        let flat = UNIFORM_RATIO / self.failures.len() as f64;
        for (probability, failures) in self.probabilities.iter_mut().zip(&self.failures) {
            *probability = failures + flat;
        }
        let sum: f64 = self.probabilities.iter().sum();
        self.probabilities.iter_mut().for_each(|probability| *probability /= sum);
    }

    /// Entropy as a part of the greatest possible, probability of the likeliest bin, and that bin as a part of all.
    pub(super) fn statistics(&self) -> [f32; 3] {
        let bins = self.probabilities.len() as f64;
        let entropy: f64 = self.probabilities.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        let (mut likeliest, mut best) = (0, 0.0);
        for (bin, &probability) in self.probabilities.iter().enumerate() {
            if probability > best {
                (likeliest, best) = (bin, probability);
            }
        }
        let entropy = if bins > 1.0 { entropy / bins.ln() } else { 1.0 };
        [entropy, best, likeliest as f64 / bins].map(|value| value as f32)
    }
}
