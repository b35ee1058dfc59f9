//! What chooses actions.

#[cfg(feature = "onnx")]
mod onnx;

use manege_components::{Row, StreamId, Streams};

#[cfg(feature = "onnx")]
pub use onnx::OnnxPolicy;

/// Why a policy cannot be used, or has no action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file is no model that can be run.
    #[error("cannot load the policy {path}: {message}")]
    Load {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The model does not fit the environment.
    #[error("the policy {path} {what}, but the environment has {expected}")]
    Mismatch {
        /// The file.
        path: String,
        /// What the model takes or gives.
        what: String,
        /// What would be right.
        expected: String,
    },
    /// The model failed while it ran.
    #[error("{0}")]
    Run(String),
}

/// Chooses actions from observations.
pub trait Policy {
    /// Chooses the actions of all rows for the next control step.
    ///
    /// `observations` is rows × width of the first observation group, `actions` is rows × action width; both are
    /// row-major. `actions` holds those of the step before.
    ///
    /// # Errors
    /// The policy has no action.
    fn act(&mut self, observations: &[f32], actions: &mut [f32]) -> Result<(), PolicyError>;
}

/// Does nothing: all actions are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ZeroPolicy;

impl Policy for ZeroPolicy {
    fn act(&mut self, _: &[f32], actions: &mut [f32]) -> Result<(), PolicyError> {
        actions.fill(0.0);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Uniform,
    Normal,
}

/// Draws actions at random, whatever it sees.
///
/// What a row does in its k-th step depends on the seed, the row and k alone, not on how many rows or threads there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomPolicy {
    distribution: Distribution,
    stream: StreamId,
    seed: u64,
    action_width: usize,
    steps: u64,
}

impl RandomPolicy {
    /// Every value is uniform in [−1, 1).
    #[must_use]
    pub fn uniform(seed: u64, action_width: usize) -> Self {
        let stream = StreamId::new("policy/uniform");
        Self { distribution: Distribution::Uniform, stream, seed, action_width, steps: 0 }
    }

    /// Every value is normal with mean 0 and standard deviation 1.
    #[must_use]
    pub fn normal(seed: u64, action_width: usize) -> Self {
        let stream = StreamId::new("policy/normal");
        Self { distribution: Distribution::Normal, stream, seed, action_width, steps: 0 }
    }
}

impl Policy for RandomPolicy {
    fn act(&mut self, _: &[f32], actions: &mut [f32]) -> Result<(), PolicyError> {
        for (row, values) in actions.chunks_exact_mut(self.action_width.max(1)).enumerate() {
            let mut draws = Streams::for_row(self.seed, Row(row as u32), 0).draws(self.stream, self.steps);
            match self.distribution {
                Distribution::Uniform => values.fill_with(|| draws.uniform_f32(-1.0, 1.0)),
                Distribution::Normal => values.fill_with(|| draws.normal(0.0, 1.0) as f32),
            }
        }
        self.steps += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(policy: &mut dyn Policy, rows: usize, width: usize) -> Vec<f32> {
        let mut actions = vec![f32::NAN; rows * width];
        policy.act(&[], &mut actions).unwrap();
        actions
    }

    #[test]
    fn zeros_are_zeros() {
        assert_eq!(sample(&mut ZeroPolicy, 3, 2), [0.0; 6]);
    }

    #[test]
    fn a_row_does_the_same_among_any_number_of_rows() {
        for make in [RandomPolicy::uniform, RandomPolicy::normal] {
            let (mut few, mut many) = (make(5, 12), make(5, 12));
            for _ in 0..3 {
                let (few, many) = (sample(&mut few, 2, 12), sample(&mut many, 50, 12));
                assert_eq!(few, many[..24]);
                assert_ne!(many[..12], many[12..24]);
            }
        }
    }

    #[test]
    fn steps_and_seeds_differ() {
        let mut policy = RandomPolicy::uniform(5, 12);
        let first = sample(&mut policy, 4, 12);
        assert_ne!(first, sample(&mut policy, 4, 12));
        assert_ne!(first, sample(&mut RandomPolicy::uniform(6, 12), 4, 12));
    }

    #[test]
    fn distributions_have_their_moments() {
        // 48,000 values; standard errors of the mean are 0.0026 and 0.0046.
        let moments = |actions: &[f32]| {
            let mean = actions.iter().map(|&a| f64::from(a)).sum::<f64>() / actions.len() as f64;
            let variance = actions.iter().map(|&a| (f64::from(a) - mean).powi(2)).sum::<f64>() / actions.len() as f64;
            (mean, variance)
        };
        let uniform = sample(&mut RandomPolicy::uniform(1, 12), 4000, 12);
        assert!(uniform.iter().all(|action| (-1.0..1.0).contains(action)));
        let (mean, variance) = moments(&uniform);
        assert!(mean.abs() < 0.013 && (variance - 1.0 / 3.0).abs() < 0.007, "{mean} {variance}");
        let (mean, variance) = moments(&sample(&mut RandomPolicy::normal(1, 12), 4000, 12));
        assert!(mean.abs() < 0.023 && (variance - 1.0).abs() < 0.033, "{mean} {variance}");
    }
}
