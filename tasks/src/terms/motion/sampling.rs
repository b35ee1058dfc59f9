//! Where in a motion episodes begin.

use manege_components::Draws;
use manege_systems::build::BuildError;
use manege_systems::snapshot::{Reader, SnapshotError, Writer};
use serde::{Deserialize, Serialize};

use super::super::resolve;
use crate::motion::MotionClips;

/// How the first frame of an episode is drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sampling {
    /// More often where episodes fail.
    ///
    /// The frames are divided into bins of about a second. A bin is drawn with a probability proportional to its failures
    /// (a running mean over control steps, the same for all rows) plus `uniform_ratio` / bins, then a frame within it
    /// uniformly. This is the sampling of `BeyondMimic` (Liao et al. 2025). Because rows learn from each other's failures, a
    /// row's episodes depend on the other rows once one has failed.
    Adaptive {
        /// Weight of the uniform part.
        #[serde(default = "uniform_ratio")]
        uniform_ratio: f64,
        /// How fast failures are learnt: after each control step with failures, `F ← alpha·count + (1 - alpha)·F`.
        #[serde(default = "alpha")]
        alpha: f64,
        /// Number of bins over which a failure counts for the ones before it; 1 for none.
        #[serde(default = "kernel_size")]
        kernel_size: usize,
        /// Factor on a failure for each bin before it.
        #[serde(default = "kernel_lambda")]
        kernel_lambda: f64,
    },
    /// Every frame is equally likely.
    Uniform {},
    /// At the first frame of all.
    Start {},
    /// At the first frame of a clip, each equally likely.
    ClipStart {},
    /// At the first frame of all with a probability, else uniformly.
    Mixed {
        /// That probability.
        #[serde(default = "start_ratio")]
        start_ratio: f64,
    },
}

const fn uniform_ratio() -> f64 {
    0.1
}

const fn alpha() -> f64 {
    0.001
}

const fn kernel_size() -> usize {
    1
}

const fn kernel_lambda() -> f64 {
    0.8
}

const fn start_ratio() -> f64 {
    0.5
}

impl Default for Sampling {
    /// Adaptive, as the task has it: what a configuration leaves out has these values, too.
    fn default() -> Self {
        Self::Adaptive {
            uniform_ratio: uniform_ratio(),
            alpha: alpha(),
            kernel_size: kernel_size(),
            kernel_lambda: kernel_lambda(),
        }
    }
}

impl Sampling {
    fn check(&self) -> Result<(), BuildError> {
        let ratio = |key: &str, value: f64| {
            if (0.0..=1.0).contains(&value) {
                return Ok(());
            }
            Err(resolve::impossible(&format!("sampling.{key}"), format!("{value} is not between 0 and 1")))
        };
        match *self {
            Self::Adaptive { uniform_ratio, alpha, kernel_size, kernel_lambda } => {
                resolve::positive("sampling.uniform_ratio", uniform_ratio)?;
                ratio("alpha", alpha)?;
                ratio("kernel_lambda", kernel_lambda)?;
                if !(1..=1000).contains(&kernel_size) {
                    let message = format!("{kernel_size} is not between 1 and 1000 bins");
                    return Err(resolve::impossible("sampling.kernel_size", message));
                }
                Ok(())
            }
            Self::Mixed { start_ratio } => ratio("start_ratio", start_ratio),
            Self::Uniform {} | Self::Start {} | Self::ClipStart {} => Ok(()),
        }
    }
}

/// Draws frames of a library of clips, and learns from failures.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    frames: usize,
    clip_starts: Vec<u32>,
    /// Running mean of failures per bin.
    failures: Vec<f64>,
    /// Failures of this control step per bin.
    counts: Vec<u32>,
    probabilities: Vec<f64>,
}

impl Sampler {
    pub(super) fn new(sampling: &Sampling, clips: &MotionClips) -> Result<Self, BuildError> {
        sampling.check()?;
        let bins = clips.frames() / clips.rate() as usize + 1;
        let mut sampler = Self {
            sampling: sampling.clone(),
            frames: clips.frames(),
            clip_starts: clips.clips().iter().map(|clip| clip.frames.start as u32).collect(),
            failures: vec![0.0; bins],
            counts: vec![0; bins],
            probabilities: vec![0.0; bins],
        };
        sampler.weigh();
        Ok(sampler)
    }

    /// Whether failures change what is drawn.
    pub(super) fn learns(&self) -> bool {
        matches!(self.sampling, Sampling::Adaptive { .. })
    }

    /// Draws the first frame of an episode.
    pub(super) fn draw(&self, draws: &mut Draws) -> u32 {
        let last = (self.frames - 1) as u32;
        match self.sampling {
            Sampling::Start {} => 0,
            Sampling::Uniform {} => draws.integer(0, last),
            Sampling::ClipStart {} => self.clip_starts[draws.integer(0, self.clip_starts.len() as u32 - 1) as usize],
            Sampling::Mixed { start_ratio } => {
                if draws.chance(start_ratio) {
                    0
                } else {
                    draws.integer(0, last)
                }
            }
            Sampling::Adaptive { .. } => {
                let mut left = draws.uniform(0.0, 1.0);
                let bins = self.probabilities.len();
                let bin = self.probabilities.iter().position(|probability| {
                    left -= probability;
                    left < 0.0
                });
                // Rounding may leave a crumb beyond the last bin.
                let place = (bin.unwrap_or(bins - 1) as f64 + draws.uniform(0.0, 1.0)) / bins as f64;
                (place * f64::from(last)) as u32
            }
        }
    }

    /// Learns from the frames at which rows failed in this control step.
    pub(super) fn learn(&mut self, failed: impl Iterator<Item = usize>) {
        let Sampling::Adaptive { alpha, .. } = self.sampling else { return };
        let bins = self.failures.len();
        self.counts.fill(0);
        for frame in failed {
            self.counts[(frame * bins / self.frames).min(bins - 1)] += 1;
        }
        for (mean, &count) in self.failures.iter_mut().zip(&self.counts) {
            *mean = alpha * f64::from(count) + (1.0 - alpha) * *mean;
        }
        self.weigh();
    }

    /// Makes the probabilities from the failures.
    fn weigh(&mut self) {
        let Sampling::Adaptive { uniform_ratio, kernel_size, kernel_lambda, .. } = self.sampling else {
            let bins = self.probabilities.len() as f64;
            return self.probabilities.fill(1.0 / bins);
        };
        let bins = self.failures.len();
        let weight = |bin: usize| self.failures[bin.min(bins - 1)] + uniform_ratio / bins as f64;
        for (bin, probability) in self.probabilities.iter_mut().enumerate() {
            let mut factor = 1.0;
            *probability = 0.0;
            for ahead in 0..kernel_size {
                *probability += factor * weight(bin + ahead);
                factor *= kernel_lambda;
            }
        }
        let sum: f64 = self.probabilities.iter().sum();
        self.probabilities.iter_mut().for_each(|probability| *probability /= sum);
    }

    /// Entropy of the bins' probabilities as a part of the greatest possible, probability of the likeliest bin, and that bin
    /// as a part of all.
    pub(super) fn statistics(&self) -> [f32; 3] {
        let bins = self.probabilities.len() as f64;
        let information = |p: &f64| if *p > 0.0 { -p * p.ln() } else { 0.0 };
        let entropy: f64 = self.probabilities.iter().map(information).sum();
        let likeliest =
            self.probabilities.iter().enumerate().fold((0, 0.0), |best, (bin, &probability)| {
                if probability > best.1 { (bin, probability) } else { best }
            });
        let entropy = if bins > 1.0 { entropy / bins.ln() } else { 1.0 };
        [entropy, likeliest.1, likeliest.0 as f64 / bins].map(|value| value as f32)
    }

    pub(super) fn save(&self, to: &mut Writer) {
        to.put_all(&self.failures);
    }

    pub(super) fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.failures)?;
        self.weigh();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::{ClipOptions, Kinematics, synthesize_g1};
    use manege_components::{Row, StreamId, Streams};

    /// Two clips of 401 frames: 802 frames in 17 bins.
    fn sampler(sampling: &Sampling) -> Sampler {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        let options = ClipOptions { rate: 50.0, resample: false, bodies: vec!["pelvis".to_owned()] };
        Sampler::new(sampling, &MotionClips::new([&motion, &motion], &mut robot, &options).unwrap()).unwrap()
    }

    fn drawn(sampler: &Sampler, count: u32) -> Vec<u32> {
        let draw = |i| sampler.draw(&mut Streams::for_row(7, Row(i), 1).draws(StreamId::new("test"), 0));
        (0..count).map(draw).collect()
    }

    #[test]
    fn without_failures_adaptive_sampling_is_uniform() {
        let sampler = sampler(&Sampling::default());
        assert_eq!(sampler.probabilities.len(), 17);
        for probability in &sampler.probabilities {
            assert!((probability - 1.0 / 17.0).abs() < 1e-15);
        }
        let [entropy, likeliest, _] = sampler.statistics();
        assert!((entropy - 1.0).abs() < 1e-6 && (likeliest - 1.0 / 17.0).abs() < 1e-6);
        let frames = drawn(&sampler, 8020);
        assert!(frames.iter().all(|&frame| frame < 801), "frame = int((bin + U) / K × (T - 1))");
        // A bin holds 471.8 on average, with a deviation of 21.
        for bin in 0..17 {
            let count = frames
                .iter()
                .filter(|&&frame| (f64::from(frame) + 0.5) * 17.0 / 801.0 / 1.0 >= f64::from(bin))
                .filter(|&&frame| (f64::from(frame) + 0.5) * 17.0 / 801.0 < f64::from(bin + 1))
                .count();
            assert!((360..=590).contains(&count), "bin {bin}: {count}");
        }
    }

    #[test]
    fn failures_are_learnt_as_a_running_mean_and_raise_their_bin() {
        let mut sampler = sampler(&Sampling::default());
        sampler.learn([100, 101, 801].into_iter());
        sampler.learn([100].into_iter());
        // 100 × 17 // 802 = 2; the last frame is in the last bin.
        let expected = |bin: usize| match bin {
            2 => 0.001 * 1.0 + 0.999 * (0.001 * 2.0),
            16 => 0.999 * 0.001,
            _ => 0.0,
        };
        let weights: Vec<f64> = (0..17).map(|bin| expected(bin) + 0.1 / 17.0).collect();
        let sum: f64 = weights.iter().sum();
        for (bin, (found, weight)) in sampler.probabilities.iter().zip(&weights).enumerate() {
            assert!((found - weight / sum).abs() < 1e-15, "bin {bin}");
        }
        let [_, likeliest, place] = sampler.statistics();
        assert!((f64::from(likeliest) - weights[2] / sum).abs() < 1e-6 && (place - 2.0 / 17.0).abs() < 1e-6);
    }

    #[test]
    fn a_kernel_spreads_failures_to_the_bins_before_them() {
        let sampling = Sampling::Adaptive { uniform_ratio: 0.1, alpha: 0.5, kernel_size: 3, kernel_lambda: 0.8 };
        let mut sampler = sampler(&sampling);
        sampler.learn([100].into_iter());
        let flat = 0.1 / 17.0 * (1.0 + 0.8 + 0.64);
        let weights: Vec<f64> = (0..17)
            .map(|bin| {
                flat + 0.5
                    * match bin {
                        0 => 0.64,
                        1 => 0.8,
                        2 => 1.0,
                        _ => 0.0,
                    }
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        for (bin, (found, weight)) in sampler.probabilities.iter().zip(&weights).enumerate() {
            assert!((found - weight / sum).abs() < 1e-15, "bin {bin}");
        }
    }

    #[test]
    fn the_other_ways_begin_where_they_say() {
        assert!(drawn(&sampler(&Sampling::Start {}), 50).iter().all(|&frame| frame == 0));
        let starts = drawn(&sampler(&Sampling::ClipStart {}), 400);
        assert!(starts.iter().all(|&frame| frame == 0 || frame == 401));
        let first = starts.iter().filter(|&&frame| frame == 0).count();
        assert!((150..=250).contains(&first), "{first} of 400");
        let uniform = drawn(&sampler(&Sampling::Uniform {}), 8020);
        assert!(uniform.iter().all(|&frame| frame < 802) && uniform.iter().any(|&frame| frame > 790));
        let mean = uniform.iter().map(|&frame| f64::from(frame)).sum::<f64>() / 8020.0;
        assert!((mean - 400.5).abs() < 4.0 * 231.5 / 8020f64.sqrt(), "{mean}");
        let mixed = drawn(&sampler(&Sampling::Mixed { start_ratio: 0.75 }), 4000);
        let first = mixed.iter().filter(|&&frame| frame == 0).count();
        assert!((2880..=3120).contains(&first), "{first} of 4000");
    }

    #[test]
    fn impossible_parameters_are_refused_by_key() {
        for (sampling, key) in [
            (Sampling::Mixed { start_ratio: 1.5 }, "sampling.start_ratio"),
            (
                Sampling::Adaptive { uniform_ratio: 0.0, alpha: 0.1, kernel_size: 1, kernel_lambda: 0.8 },
                "uniform_ratio",
            ),
            (Sampling::Adaptive { uniform_ratio: 0.1, alpha: f64::NAN, kernel_size: 1, kernel_lambda: 0.8 }, "alpha"),
            (Sampling::Adaptive { uniform_ratio: 0.1, alpha: 0.1, kernel_size: 0, kernel_lambda: 0.8 }, "kernel_size"),
        ] {
            let error = sampling.check().unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
