//! Collecting transitions: an environment, stepped under a policy.
//!
//! A [`Collector`] owns the environment and takes one control step at a time. What a step gives is a [`Transitions`]:
//! plain slices, to be copied into a [`ReplayRing`] in memory, written by a [`ShardWriter`] to disk, or read in place.
//!
//! ```
//! use manege::Environment;
//! use manege::collector::{Collector, RandomPolicy, ReplayRing, TransitionLayout};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::builder("go2_joystick_flat").rows(4).seed(7).build()?;
//! let layout = TransitionLayout::of(&environment);
//! let mut ring = ReplayRing::new(layout.clone(), 64)?;
//! let mut policy = RandomPolicy::uniform(environment.seed(), layout.action_width);
//! let mut collector = Collector::new(environment)?;
//! for _ in 0..10 {
//!     let transitions = collector.step(&mut policy)?;
//!     ring.push(&transitions);
//! }
//! assert_eq!(ring.transitions(), 40);
//! assert_eq!(collector.statistics().transitions(), 40);
//! # Ok(())
//! # }
//! ```

mod checksum;
mod policy;
mod replay_ring;
mod shards;
mod statistics;

pub use checksum::Checksum;
#[cfg(feature = "onnx")]
pub use policy::OnnxPolicy;
pub use policy::{Policy, PolicyError, RandomPolicy, ZeroPolicy};
pub use replay_ring::{Batch, ReplayRing, RingError, Transition};
pub use shards::{META_FILE, ShardDescription, ShardError, ShardSummary, ShardWriter};
pub use statistics::Statistics;

use manege_systems::error::StepError;
use manege_systems::step::AutoReset;

use crate::Environment;

/// Why a control step could not be collected. What was collected before it is not touched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The environment does not reset rows within the step, so that a step may be no transition.
    #[error("transitions can be collected from an environment with same-step automatic resets only, not {0:?}")]
    AutoReset(AutoReset),
    /// The environment has no observations for a policy to act on.
    #[error("the environment has no observation group")]
    NoObservations,
    /// The policy has no action.
    #[error("the policy failed in step {step}: {source}")]
    Policy {
        /// The control step, from 0.
        step: u64,
        /// What went wrong.
        source: PolicyError,
    },
    /// The environment refused the reset.
    #[error("the environment cannot be reset: {0}")]
    Reset(#[source] StepError),
    /// The environment refused the step.
    #[error("step {step} failed: {source}")]
    Step {
        /// The control step, from 0.
        step: u64,
        /// What went wrong.
        source: StepError,
    },
}

/// Sizes of what a step of an environment gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionLayout {
    /// Number of rows.
    pub rows: usize,
    /// Names and widths of the observation groups. Policies act on the first; the others are for critics.
    pub groups: Vec<(String, usize)>,
    /// Number of values in an action.
    pub action_width: usize,
}

impl TransitionLayout {
    /// The sizes of an environment.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        let groups = environment.spec().groups.iter().map(|group| (group.name.clone(), group.width)).collect();
        Self { rows: environment.rows(), groups, action_width: environment.action_width() }
    }

    /// Bytes that the transitions of one control step take.
    #[must_use]
    pub fn bytes_per_step(&self) -> usize {
        let observations: usize = self.groups.iter().map(|(_, width)| width).sum();
        let numbers = 2 * observations + self.action_width + 1;
        self.rows * (numbers * size_of::<f32>() + 2 * size_of::<bool>())
    }
}

/// The transitions of one control step, one per row. All buffers are row-major.
#[derive(Debug, Clone, Copy)]
pub struct Transitions<'a> {
    /// What each observation group showed before the step, rows × width each.
    pub observations: &'a [Vec<f32>],
    /// What the policy did, rows × action width.
    pub actions: &'a [f32],
    /// The rewards, one per row.
    pub rewards: &'a [f32],
    /// What each observation group showed after the step, rows × width each. Where the episode ended this is its last
    /// observation, not the first one of the next.
    pub next_observations: &'a [Vec<f32>],
    /// Whether the episode ended in a terminal state, one per row.
    pub terminated: &'a [bool],
    /// Whether the episode was cut off, one per row.
    pub truncated: &'a [bool],
}

/// Steps an environment under a policy.
pub struct Collector {
    environment: Environment,
    actions: Vec<f32>,
    observations: Vec<Vec<f32>>,
    next_observations: Vec<Vec<f32>>,
    /// Whether `next_observations` are those of the environment's last step, which `observations` are to follow.
    stepped: bool,
    statistics: Statistics,
}

impl Collector {
    /// Takes an environment and starts an episode in every row.
    ///
    /// # Errors
    /// The environment resets rows in another way than within the step, has no observations, or cannot be reset.
    pub fn new(mut environment: Environment) -> Result<Self, CollectError> {
        let auto_reset = *environment.world().resource::<AutoReset>();
        if auto_reset != AutoReset::SameStep {
            return Err(CollectError::AutoReset(auto_reset));
        }
        let groups = environment.spec().groups.len();
        if groups == 0 {
            return Err(CollectError::NoObservations);
        }
        environment.reset().map_err(CollectError::Reset)?;
        let observations: Vec<_> = (0..groups).map(|group| environment.observation(group).to_vec()).collect();
        Ok(Self {
            actions: vec![0.0; environment.rows() * environment.action_width()],
            next_observations: observations.clone(),
            observations,
            stepped: false,
            statistics: Statistics::new(environment.spec(), environment.rows()),
            environment,
        })
    }

    /// Takes one control step with the actions that the policy chooses for the first observation group.
    ///
    /// # Errors
    /// The policy fails, or the environment refuses the step; if it refuses the actions, the step may be tried again.
    pub fn step(&mut self, policy: &mut dyn Policy) -> Result<Transitions<'_>, CollectError> {
        if self.stepped {
            self.stepped = false;
            std::mem::swap(&mut self.observations, &mut self.next_observations);
            replace_ended(&self.environment, &mut self.observations, Environment::observation);
        }
        let step = self.statistics.steps();
        policy.act(&self.observations[0], &mut self.actions).map_err(|source| CollectError::Policy { step, source })?;
        self.environment.step(&self.actions).map_err(|source| CollectError::Step { step, source })?;
        for (group, next) in self.next_observations.iter_mut().enumerate() {
            next.copy_from_slice(self.environment.observation(group));
        }
        replace_ended(&self.environment, &mut self.next_observations, Environment::final_observation);
        self.stepped = true;
        self.statistics.add_step(&self.environment);
        Ok(Transitions {
            observations: &self.observations,
            actions: &self.actions,
            rewards: self.environment.rewards(),
            next_observations: &self.next_observations,
            terminated: self.environment.terminated(),
            truncated: self.environment.truncated(),
        })
    }

    /// The environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Counts and means over everything collected so far.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Gives the environment back.
    #[must_use]
    pub fn into_environment(self) -> Environment {
        self.environment
    }
}

/// Overwrites the observations of the rows whose episode ended in the last step with those that `from` gives.
fn replace_ended(environment: &Environment, observations: &mut [Vec<f32>], from: fn(&Environment, usize) -> &[f32]) {
    let flags = environment.terminated().iter().zip(environment.truncated());
    for (row, _) in flags.enumerate().filter(|(_, (terminated, truncated))| **terminated || **truncated) {
        for (group, values) in observations.iter_mut().enumerate() {
            let width = environment.spec().groups[group].width;
            let range = row * width..(row + 1) * width;
            values[range.clone()].copy_from_slice(&from(environment, group)[range]);
        }
    }
}
