//! What a collector does with a step: transitions into a ring, and sums over episodes.

use crate::Environment;

/// The transitions of the last control steps. When it is full, every new step takes the place of the oldest.
pub struct ReplayRing {
    capacity: usize,
    steps: usize,
    widths: [usize; 2],
    /// What the policy and the critic saw before the step that comes next.
    before: [Vec<f32>; 2],
    observations: [Vec<f32>; 2],
    next_observations: [Vec<f32>; 2],
    actions: Vec<f32>,
    rewards: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl ReplayRing {
    /// A ring of `capacity` control steps for an environment that has been reset.
    #[must_use]
    pub fn new(environment: &dyn Environment, capacity: usize) -> Self {
        let rows = environment.rows();
        let widths = environment.group_widths();
        let groups = || widths.map(|width| touched(capacity * rows * width, 0.0));
        Self {
            capacity,
            steps: 0,
            widths,
            before: [0, 1].map(|group| environment.observation(group).to_vec()),
            observations: groups(),
            next_observations: groups(),
            actions: touched(capacity * rows * environment.action_width(), 0.0),
            rewards: touched(capacity * rows, 0.0),
            terminated: touched(capacity * rows, false),
            truncated: touched(capacity * rows, false),
        }
    }

    /// Copies in what the environment's last step gave; where an episode ended, with its last observation.
    pub fn push(&mut self, environment: &dyn Environment, actions: &[f32]) {
        let slot = self.steps % self.capacity;
        self.steps += 1;
        for (group, width) in self.widths.into_iter().enumerate() {
            let before = &mut self.before[group];
            let now = environment.observation(group);
            part(&mut self.observations[group], slot, before.len()).copy_from_slice(before);
            before.copy_from_slice(now);
            let next = part(&mut self.next_observations[group], slot, now.len());
            next.copy_from_slice(now);
            for &row in environment.reset_rows() {
                let columns = row as usize * width..(row as usize + 1) * width;
                next[columns.clone()].copy_from_slice(&environment.final_observation(group)[columns]);
            }
        }
        let rewards = environment.rewards();
        part(&mut self.actions, slot, actions.len()).copy_from_slice(actions);
        part(&mut self.rewards, slot, rewards.len()).copy_from_slice(rewards);
        part(&mut self.terminated, slot, rewards.len()).copy_from_slice(environment.terminated());
        part(&mut self.truncated, slot, rewards.len()).copy_from_slice(environment.truncated());
    }
}

/// A buffer whose memory is there: `vec![0; n]` would leave that to the first write, which is measured.
fn touched<V: Clone>(size: usize, value: V) -> Vec<V> {
    let mut buffer = Vec::with_capacity(size);
    buffer.resize(size, value);
    buffer
}

fn part<V>(buffer: &mut [V], slot: usize, size: usize) -> &mut [V] {
    &mut buffer[slot * size..][..size]
}

/// Sums over steps and episodes.
pub struct Bookkeeping {
    returns: Vec<f64>,
    lengths: Vec<u64>,
    /// Sum of value × weight of each reward term over all transitions.
    pub reward_terms: Vec<f64>,
    /// Episodes that ended.
    pub episodes: u64,
    /// Sum of the returns of the episodes that ended.
    pub finished_return: f64,
    /// Sum of the lengths of the episodes that ended, control steps.
    pub finished_length: u64,
}

impl Bookkeeping {
    /// Nothing so far.
    #[must_use]
    pub fn new(environment: &dyn Environment) -> Self {
        Self {
            returns: vec![0.0; environment.rows()],
            lengths: vec![0; environment.rows()],
            reward_terms: vec![0.0; environment.reward_count()],
            episodes: 0,
            finished_return: 0.0,
            finished_length: 0,
        }
    }

    /// Takes in the environment's last step.
    pub fn add(&mut self, environment: &dyn Environment) {
        for ((sum, length), reward) in self.returns.iter_mut().zip(&mut self.lengths).zip(environment.rewards()) {
            *sum += f64::from(*reward);
            *length += 1;
        }
        for terms in environment.reward_terms().chunks_exact(self.reward_terms.len()) {
            for (sum, value) in self.reward_terms.iter_mut().zip(terms) {
                *sum += f64::from(*value);
            }
        }
        for &row in environment.reset_rows() {
            self.episodes += 1;
            self.finished_return += std::mem::take(&mut self.returns[row as usize]);
            self.finished_length += std::mem::take(&mut self.lengths[row as usize]);
        }
    }
}
