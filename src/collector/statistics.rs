//! Counts and means over what was collected.

use std::time::Duration;

use crate::Environment;
use crate::environment::Spec;

/// Counts and means over the control steps that a collector took.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    rows: usize,
    steps: u64,
    terminated: u64,
    truncated: u64,
    episodes: u64,
    diverged: u64,
    finished_return: f64,
    finished_length: u64,
    /// Sum of the rewards of each row's current episode.
    returns: Vec<f64>,
    /// Control steps of each row's current episode.
    lengths: Vec<u64>,
    reward_terms: Vec<(String, f64)>,
    termination_terms: Vec<(String, u64)>,
    physics: Duration,
    managers: Duration,
    reset: Duration,
}

impl Statistics {
    pub(super) fn new(spec: &Spec, rows: usize) -> Self {
        Self {
            rows,
            steps: 0,
            terminated: 0,
            truncated: 0,
            episodes: 0,
            diverged: 0,
            finished_return: 0.0,
            finished_length: 0,
            returns: vec![0.0; rows],
            lengths: vec![0; rows],
            reward_terms: spec.reward_terms.iter().map(|name| (name.clone(), 0.0)).collect(),
            termination_terms: spec.termination_terms.iter().map(|(name, _)| (name.clone(), 0)).collect(),
            physics: Duration::ZERO,
            managers: Duration::ZERO,
            reset: Duration::ZERO,
        }
    }

    pub(super) fn add_step(&mut self, environment: &Environment) {
        self.add(&Outcome {
            rewards: environment.rewards(),
            reward_terms: environment.reward_terms(),
            terminated: environment.terminated(),
            truncated: environment.truncated(),
            termination_terms: environment.termination_terms(),
            diverged: environment.diverged(),
        });
        let timings = environment.timings();
        self.physics += timings.physics;
        self.managers += timings.managers();
        self.reset += timings.reset;
    }

    fn add(&mut self, outcome: &Outcome<'_>) {
        self.steps += 1;
        let terms = self.reward_terms.len();
        for row in 0..self.rows {
            self.returns[row] += f64::from(outcome.rewards[row]);
            self.lengths[row] += 1;
            for ((_, sum), value) in self.reward_terms.iter_mut().zip(&outcome.reward_terms[row * terms..]) {
                *sum += f64::from(*value);
            }
            let (terminated, truncated) = (outcome.terminated[row], outcome.truncated[row]);
            if !(terminated || truncated) {
                continue;
            }
            self.terminated += u64::from(terminated);
            self.truncated += u64::from(truncated);
            self.diverged += u64::from(outcome.diverged[row]);
            self.episodes += 1;
            self.finished_return += std::mem::take(&mut self.returns[row]);
            self.finished_length += std::mem::take(&mut self.lengths[row]);
            for (term, (_, count)) in self.termination_terms.iter_mut().enumerate() {
                *count += outcome.termination_terms[row] >> term & 1;
            }
        }
    }

    /// Control steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Transitions collected: control steps × rows.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.steps * self.rows as u64
    }

    /// Episodes that ended. Each was followed by a reset.
    #[must_use]
    pub fn episodes(&self) -> u64 {
        self.episodes
    }

    /// Episodes that ended in a terminal state. An episode may have been cut off in the same step.
    #[must_use]
    pub fn terminated(&self) -> u64 {
        self.terminated
    }

    /// Episodes that were cut off.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Episodes that ended because the row's physics failed.
    #[must_use]
    pub fn diverged(&self) -> u64 {
        self.diverged
    }

    /// Mean sum of rewards over the episodes that ended, if any did.
    #[must_use]
    pub fn mean_return(&self) -> Option<f64> {
        (self.episodes > 0).then(|| self.finished_return / self.episodes as f64)
    }

    /// Mean length, in control steps, of the episodes that ended, if any did.
    #[must_use]
    pub fn mean_length(&self) -> Option<f64> {
        (self.episodes > 0).then(|| self.finished_length as f64 / self.episodes as f64)
    }

    /// Mean of value × weight of every reward term over all transitions, before the control period.
    pub fn reward_terms(&self) -> impl Iterator<Item = (&str, f64)> {
        let count = self.transitions().max(1) as f64;
        self.reward_terms.iter().map(move |(name, sum)| (name.as_str(), sum / count))
    }

    /// How many episodes each termination term ended. Several terms may end the same episode.
    pub fn termination_terms(&self) -> impl Iterator<Item = (&str, u64)> {
        self.termination_terms.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Mean duration of the physics dispatch per control step.
    #[must_use]
    pub fn physics_time(&self) -> Duration {
        self.per_step(self.physics)
    }

    /// Mean duration per control step of what is neither physics nor reset.
    #[must_use]
    pub fn manager_time(&self) -> Duration {
        self.per_step(self.managers)
    }

    /// Mean duration of the reset pass per control step.
    #[must_use]
    pub fn reset_time(&self) -> Duration {
        self.per_step(self.reset)
    }

    fn per_step(&self, total: Duration) -> Duration {
        if self.steps == 0 { Duration::ZERO } else { total.div_f64(self.steps as f64) }
    }
}

/// What a step did to every row.
struct Outcome<'a> {
    rewards: &'a [f32],
    reward_terms: &'a [f32],
    terminated: &'a [bool],
    truncated: &'a [bool],
    termination_terms: &'a [u64],
    diverged: &'a [bool],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(rows: usize) -> Statistics {
        let spec = Spec {
            groups: vec![],
            actions: vec![],
            commands: vec![],
            task_state: vec![],
            reward_terms: vec!["alive".to_owned(), "effort".to_owned()],
            termination_terms: vec![("time_out".to_owned(), true), ("fell".to_owned(), false)],
            joints: vec![],
            actuators: vec![],
            joint_actuators: vec![],
            nq: 0,
            nv: 0,
            nu: 0,
        };
        Statistics::new(&spec, rows)
    }

    #[test]
    fn episodes_are_counted_where_they_end() {
        let mut statistics = statistics(2);
        assert_eq!(statistics.mean_return(), None);
        // Row 0 falls in the second step, row 1 falls and times out in the third.
        let steps = [
            ([1.0, 2.0], [false, false], [false, false], [0, 0]),
            ([1.0, 2.0], [true, false], [false, false], [0b10, 0]),
            ([5.0, 2.0], [false, true], [false, true], [0, 0b11]),
        ];
        for (rewards, terminated, truncated, termination_terms) in &steps {
            statistics.add(&Outcome {
                rewards,
                reward_terms: &[1.0, -0.5, 3.0, -1.5],
                terminated,
                truncated,
                termination_terms,
                diverged: &[false, false],
            });
        }
        assert_eq!((statistics.steps(), statistics.transitions()), (3, 6));
        assert_eq!((statistics.episodes(), statistics.terminated(), statistics.truncated()), (2, 2, 1));
        assert_eq!(statistics.diverged(), 0);
        // Returns 2 and 6, lengths 2 and 3; row 0's new episode has not ended.
        assert_eq!((statistics.mean_return(), statistics.mean_length()), (Some(4.0), Some(2.5)));
        assert_eq!(statistics.reward_terms().collect::<Vec<_>>(), [("alive", 2.0), ("effort", -1.0)]);
        assert_eq!(statistics.termination_terms().collect::<Vec<_>>(), [("time_out", 1), ("fell", 2)]);
    }
}
