//! What the caller reads after a step: one contiguous buffer per quantity, in row order.

use bevy_ecs::prelude::*;
use manege_components::{Reward, Row, Termination};

use crate::log::StepLog;
use crate::managers::reward::RewardManager;

/// Rewards and flags of the last control step, indexed by row.
#[derive(Resource, Debug, Default)]
pub struct StepBuffers {
    /// Reward, one per row.
    pub rewards: Vec<f32>,
    /// Value × weight of every reward term, before the control period, rows × terms.
    pub reward_terms: Vec<f32>,
    /// Whether the episode ended in a terminal state, one per row.
    pub terminated: Vec<bool>,
    /// Whether the episode was cut off, one per row.
    pub truncated: Vec<bool>,
    /// Whether the row's physics failed, one per row. Such rows are terminated too.
    pub diverged: Vec<bool>,
    /// Which termination terms fired, one bit each, one set per row.
    pub termination_terms: Vec<u64>,
    /// Sums of the reward terms over rows.
    sums: Vec<f64>,
    /// Place of the first reward term in the log.
    log: usize,
}

impl StepBuffers {
    pub(crate) fn new(rows: usize, rewards: &RewardManager, log: &mut StepLog) -> Self {
        Self {
            rewards: vec![0.0; rows],
            reward_terms: vec![0.0; rows * rewards.names().len()],
            terminated: vec![false; rows],
            truncated: vec![false; rows],
            diverged: vec![false; rows],
            termination_terms: vec![0; rows],
            sums: vec![0.0; rewards.names().len()],
            log: log.register(rewards.names().iter().map(|name| format!("reward/{name}"))),
        }
    }

    pub(crate) fn set_flags(&mut self, row: Row, termination: &Termination) {
        let row = row.index();
        self.terminated[row] = termination.terminated;
        self.truncated[row] = termination.truncated;
        self.diverged[row] = termination.diverged;
        self.termination_terms[row] = if termination.idle { 0 } else { termination.terms };
    }
}

/// Copies rewards and flags into the caller's buffers, and logs the mean of every reward term.
pub(crate) fn publish_step(
    manager: Res<RewardManager>,
    mut buffers: ResMut<StepBuffers>,
    mut log: ResMut<StepLog>,
    rows: Query<(&Row, &Reward, &Termination)>,
) {
    let terms = manager.names().len();
    let buffers = &mut *buffers;
    buffers.sums.fill(0.0);
    for (row, reward, termination) in &rows {
        let index = row.index();
        buffers.rewards[index] = reward.total;
        buffers.reward_terms[index * terms..][..terms].copy_from_slice(&reward.terms);
        buffers.set_flags(*row, termination);
    }
    // In the order of rows, not in that of their table.
    for values in buffers.reward_terms.chunks_exact(terms.max(1)) {
        buffers.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let rows = buffers.rewards.len();
    for (term, sum) in buffers.sums.iter().enumerate() {
        log.set(buffers.log + term, sum / rows as f64);
    }
}
