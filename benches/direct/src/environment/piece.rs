//! Consecutive rows with their parts of every buffer, to be handed to a thread.

use super::RowState;
use crate::task::FusedTask;

/// Rows that are handed to one thread at a time.
const ROWS: usize = 128;

/// Consecutive rows.
pub(super) struct Piece<'a, T: FusedTask> {
    /// Index of the first row.
    pub(super) first: usize,
    pub(super) rows: &'a mut [RowState<T::Row>],
    pub(super) observations: [&'a mut [f32]; 2],
    pub(super) finals: [&'a mut [f32]; 2],
    pub(super) reward_terms: &'a mut [f32],
    pub(super) episode_sums: &'a mut [f32],
    pub(super) rewards: &'a mut [f32],
    pub(super) terminated: &'a mut [bool],
    pub(super) truncated: &'a mut [bool],
    pub(super) fired: &'a mut [u64],
}

impl<T: FusedTask> Piece<'_, T> {
    /// Halves the rows until they are few, and has the threads of the current pool work on them.
    pub(super) fn halve(self, work: &(impl Fn(Piece<'_, T>) + Sync)) {
        if self.rows.len() <= ROWS {
            return work(self);
        }
        let middle = self.rows.len() / 2;
        let (rows, more_rows) = self.rows.split_at_mut(middle);
        let (observations, more_observations) = split_groups::<T>(self.observations, middle);
        let (finals, more_finals) = split_groups::<T>(self.finals, middle);
        let (reward_terms, more_reward_terms) = self.reward_terms.split_at_mut(middle * T::REWARDS);
        let (episode_sums, more_episode_sums) = self.episode_sums.split_at_mut(middle * T::REWARDS);
        let (rewards, more_rewards) = self.rewards.split_at_mut(middle);
        let (terminated, more_terminated) = self.terminated.split_at_mut(middle);
        let (truncated, more_truncated) = self.truncated.split_at_mut(middle);
        let (fired, more_fired) = self.fired.split_at_mut(middle);
        let first: Piece<'_, T> = Piece {
            first: self.first,
            rows,
            observations,
            finals,
            reward_terms,
            episode_sums,
            rewards,
            terminated,
            truncated,
            fired,
        };
        let second: Piece<'_, T> = Piece {
            first: self.first + middle,
            rows: more_rows,
            observations: more_observations,
            finals: more_finals,
            reward_terms: more_reward_terms,
            episode_sums: more_episode_sums,
            rewards: more_rewards,
            terminated: more_terminated,
            truncated: more_truncated,
            fired: more_fired,
        };
        rayon::join(|| first.halve(work), || second.halve(work));
    }
}

type Groups<'a> = [&'a mut [f32]; 2];

fn split_groups<T: FusedTask>([policy, critic]: Groups<'_>, rows: usize) -> (Groups<'_>, Groups<'_>) {
    let (policy, more_policy) = policy.split_at_mut(rows * T::GROUP_WIDTHS[0]);
    let (critic, more_critic) = critic.split_at_mut(rows * T::GROUP_WIDTHS[1]);
    ([policy, critic], [more_policy, more_critic])
}
