//! The transitions of the last control steps, in memory.

use super::{TransitionLayout, Transitions};

/// Why a ring cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// A ring for nothing.
    #[error("a replay ring needs a capacity of at least 1 control step")]
    NoCapacity,
    /// There is not enough memory.
    #[error(
        "a replay ring of {steps} control steps needs {} MiB, more than there is; one step takes {bytes_per_step} bytes",
        (*steps as u128 * *bytes_per_step as u128) >> 20
    )]
    Memory {
        /// Capacity asked for, control steps.
        steps: usize,
        /// Size of one control step.
        bytes_per_step: usize,
    },
}

/// The transitions of the last control steps. When it is full, every new step takes the place of the oldest.
///
/// All memory is reserved when the ring is made, one contiguous buffer per quantity.
#[derive(Debug, Clone)]
pub struct ReplayRing {
    layout: TransitionLayout,
    capacity: usize,
    /// Slot of the oldest step.
    first: usize,
    steps: usize,
    /// Per group, capacity × rows × width.
    observations: Vec<Vec<f32>>,
    next_observations: Vec<Vec<f32>>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl ReplayRing {
    /// An empty ring for `capacity` control steps.
    ///
    /// # Errors
    /// The capacity is 0, or there is not enough memory for it.
    pub fn new(layout: TransitionLayout, capacity: usize) -> Result<Self, RingError> {
        if capacity == 0 {
            return Err(RingError::NoCapacity);
        }
        let too_large = || RingError::Memory { steps: capacity, bytes_per_step: layout.bytes_per_step() };
        let rows = capacity.checked_mul(layout.rows).ok_or_else(too_large)?;
        let numbers = |width: usize| reserve(rows, width, 0.0_f32).ok_or_else(too_large);
        let flags = || reserve(rows, 1, false).ok_or_else(too_large);
        let groups = || layout.groups.iter().map(|(_, width)| numbers(*width)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            capacity,
            first: 0,
            steps: 0,
            observations: groups()?,
            next_observations: groups()?,
            actions: numbers(layout.action_width)?,
            rewards: numbers(1)?,
            terminated: flags()?,
            truncated: flags()?,
            layout,
        })
    }

    /// Copies the transitions of a control step in.
    ///
    /// # Panics
    /// If they are not of the ring's layout.
    pub fn push(&mut self, transitions: &Transitions<'_>) {
        assert_eq!(transitions.observations.len(), self.observations.len(), "number of observation groups");
        let slot = (self.first + self.steps) % self.capacity;
        if self.steps == self.capacity {
            self.first = (self.first + 1) % self.capacity;
        } else {
            self.steps += 1;
        }
        let pairs = self.observations.iter_mut().zip(transitions.observations);
        let next = self.next_observations.iter_mut().zip(transitions.next_observations);
        for (buffer, values) in pairs.chain(next) {
            put(buffer, slot, self.capacity, values);
        }
        put(&mut self.actions, slot, self.capacity, transitions.actions);
        put(&mut self.rewards, slot, self.capacity, transitions.rewards);
        put(&mut self.terminated, slot, self.capacity, transitions.terminated);
        put(&mut self.truncated, slot, self.capacity, transitions.truncated);
    }

    /// Forgets everything; the memory stays reserved.
    pub fn clear(&mut self) {
        self.first = 0;
        self.steps = 0;
    }

    /// Sizes of what a step holds.
    #[must_use]
    pub fn layout(&self) -> &TransitionLayout {
        &self.layout
    }

    /// Most control steps that the ring holds.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Control steps that the ring holds now.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Transitions that the ring holds now: control steps × rows.
    #[must_use]
    pub fn transitions(&self) -> usize {
        self.steps * self.layout.rows
    }

    /// What an observation group showed before a step, rows × width; step 0 is the oldest.
    ///
    /// # Panics
    /// If there is no such step or group.
    #[must_use]
    pub fn observation(&self, step: usize, group: usize) -> &[f32] {
        self.part(&self.observations[group], step)
    }

    /// What an observation group showed after a step, rows × width; where an episode ended, its last observation.
    ///
    /// # Panics
    /// If there is no such step or group.
    #[must_use]
    pub fn next_observation(&self, step: usize, group: usize) -> &[f32] {
        self.part(&self.next_observations[group], step)
    }

    /// The actions of a step, rows × action width.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn actions(&self, step: usize) -> &[f32] {
        self.part(&self.actions, step)
    }

    /// The rewards of a step, one per row.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn rewards(&self, step: usize) -> &[f32] {
        self.part(&self.rewards, step)
    }

    /// Whether each row's episode ended in a terminal state in a step.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn terminated(&self, step: usize) -> &[bool] {
        self.part(&self.terminated, step)
    }

    /// Whether each row's episode was cut off in a step.
    ///
    /// # Panics
    /// If there is no such step.
    #[must_use]
    pub fn truncated(&self, step: usize) -> &[bool] {
        self.part(&self.truncated, step)
    }

    /// One row's transition in a step; step 0 is the oldest.
    ///
    /// # Panics
    /// If there is no such step or row.
    #[must_use]
    pub fn get(&self, step: usize, row: usize) -> Transition<'_> {
        assert!(row < self.layout.rows, "row {row} of {}", self.layout.rows);
        Transition { ring: self, place: self.slot(step) * self.layout.rows + row }
    }

    /// A transition by index, below [`transitions`](Self::transitions): row by row within a step, oldest step first.
    /// Indices drawn uniformly sample the ring uniformly.
    ///
    /// # Panics
    /// If there is no such transition.
    #[must_use]
    pub fn transition(&self, index: usize) -> Transition<'_> {
        self.get(index / self.layout.rows, index % self.layout.rows)
    }

    /// Copies the transitions of the given indices into a batch, in that order.
    ///
    /// # Panics
    /// If there is no such transition, there are more indices than the batch holds, or the batch has another layout.
    pub fn gather(&self, indices: &[usize], batch: &mut Batch) {
        let Batch(target) = batch;
        assert!(indices.len() <= target.capacity, "{} indices for a batch of {}", indices.len(), target.capacity);
        assert_eq!(target.layout.groups, self.layout.groups, "observation groups");
        target.clear();
        target.steps = indices.len();
        for (slot, &index) in indices.iter().enumerate() {
            let transition = self.transition(index);
            let capacity = target.capacity;
            for group in 0..self.observations.len() {
                put(&mut target.observations[group], slot, capacity, transition.observation(group));
                put(&mut target.next_observations[group], slot, capacity, transition.next_observation(group));
            }
            put(&mut target.actions, slot, capacity, transition.action());
            target.rewards[slot] = transition.reward();
            target.terminated[slot] = transition.terminated();
            target.truncated[slot] = transition.truncated();
        }
    }

    fn slot(&self, step: usize) -> usize {
        assert!(step < self.steps, "step {step} of {}", self.steps);
        (self.first + step) % self.capacity
    }

    fn part<'a, T>(&self, buffer: &'a [T], step: usize) -> &'a [T] {
        let size = buffer.len() / self.capacity;
        &buffer[self.slot(step) * size..][..size]
    }
}

/// The values of the slots that are in use, of a ring that was never full or has just been filled for the first time.
pub(super) struct Filled<'a> {
    pub(super) observations: Vec<&'a [f32]>,
    pub(super) next_observations: Vec<&'a [f32]>,
    pub(super) actions: &'a [f32],
    pub(super) rewards: &'a [f32],
    pub(super) terminated: &'a [bool],
    pub(super) truncated: &'a [bool],
}

impl ReplayRing {
    /// Everything in the ring as one array per quantity, steps × rows × width, if no step has been overwritten.
    pub(super) fn filled(&self) -> Option<Filled<'_>> {
        fn head<'a, T>(ring: &ReplayRing, buffer: &'a [T]) -> &'a [T] {
            &buffer[..buffer.len() / ring.capacity * ring.steps]
        }
        (self.first == 0).then(|| Filled {
            observations: self.observations.iter().map(|buffer| head(self, buffer)).collect(),
            next_observations: self.next_observations.iter().map(|buffer| head(self, buffer)).collect(),
            actions: head(self, &self.actions),
            rewards: head(self, &self.rewards),
            terminated: head(self, &self.terminated),
            truncated: head(self, &self.truncated),
        })
    }
}

fn reserve<T: Clone>(rows: usize, width: usize, value: T) -> Option<Vec<T>> {
    let count = rows.checked_mul(width)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(count).ok()?;
    buffer.resize(count, value);
    Some(buffer)
}

fn put<T: Copy>(buffer: &mut [T], slot: usize, slots: usize, values: &[T]) {
    let size = buffer.len() / slots;
    buffer[slot * size..][..size].copy_from_slice(values);
}

/// One transition in a ring.
#[derive(Debug, Clone, Copy)]
pub struct Transition<'a> {
    ring: &'a ReplayRing,
    place: usize,
}

impl<'a> Transition<'a> {
    fn columns(&self, buffer: &'a [f32], width: usize) -> &'a [f32] {
        &buffer[self.place * width..][..width]
    }

    /// What an observation group showed before the step.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn observation(&self, group: usize) -> &'a [f32] {
        self.columns(&self.ring.observations[group], self.ring.layout.groups[group].1)
    }

    /// What an observation group showed after the step; if the episode ended, its last observation.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn next_observation(&self, group: usize) -> &'a [f32] {
        self.columns(&self.ring.next_observations[group], self.ring.layout.groups[group].1)
    }

    /// What the policy did.
    #[must_use]
    pub fn action(&self) -> &'a [f32] {
        self.columns(&self.ring.actions, self.ring.layout.action_width)
    }

    /// The reward.
    #[must_use]
    pub fn reward(&self) -> f32 {
        self.ring.rewards[self.place]
    }

    /// Whether the episode ended in a terminal state.
    #[must_use]
    pub fn terminated(&self) -> bool {
        self.ring.terminated[self.place]
    }

    /// Whether the episode was cut off.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.ring.truncated[self.place]
    }
}

/// Transitions copied out of a ring, one contiguous buffer per quantity.
#[derive(Debug, Clone)]
pub struct Batch(ReplayRing);

impl Batch {
    /// Room for `size` transitions of a ring with the given layout.
    ///
    /// # Errors
    /// The size is 0, or there is not enough memory for it.
    pub fn new(layout: &TransitionLayout, size: usize) -> Result<Self, RingError> {
        // A ring with one row, whose steps are the transitions.
        ReplayRing::new(TransitionLayout { rows: 1, ..layout.clone() }, size).map(Self)
    }

    /// Number of transitions in the batch.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.steps
    }

    /// Whether nothing was gathered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.steps == 0
    }

    /// What an observation group showed before the steps, transitions × width.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn observation(&self, group: usize) -> &[f32] {
        &self.0.observations[group][..self.len() * self.0.layout.groups[group].1]
    }

    /// What an observation group showed after the steps, transitions × width.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn next_observation(&self, group: usize) -> &[f32] {
        &self.0.next_observations[group][..self.len() * self.0.layout.groups[group].1]
    }

    /// What the policy did, transitions × action width.
    #[must_use]
    pub fn actions(&self) -> &[f32] {
        &self.0.actions[..self.len() * self.0.layout.action_width]
    }

    /// The rewards.
    #[must_use]
    pub fn rewards(&self) -> &[f32] {
        &self.0.rewards[..self.len()]
    }

    /// Whether each episode ended in a terminal state.
    #[must_use]
    pub fn terminated(&self) -> &[bool] {
        &self.0.terminated[..self.len()]
    }

    /// Whether each episode was cut off.
    #[must_use]
    pub fn truncated(&self) -> &[bool] {
        &self.0.truncated[..self.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> TransitionLayout {
        TransitionLayout { rows: 2, groups: vec![("policy".to_owned(), 3), ("critic".to_owned(), 1)], action_width: 2 }
    }

    /// Pushes a step whose values tell the step, the row and the quantity.
    fn push(ring: &mut ReplayRing, step: usize) {
        let value = |kind: usize, row: usize, column: usize| (1000 * step + 100 * kind + 10 * row + column) as f32;
        let buffer = |kind: usize, width: usize| -> Vec<f32> {
            (0..2).flat_map(|row| (0..width).map(move |column| value(kind, row, column))).collect()
        };
        ring.push(&Transitions {
            observations: &[buffer(0, 3), buffer(1, 1)],
            actions: &buffer(2, 2),
            rewards: &buffer(3, 1),
            next_observations: &[buffer(4, 3), buffer(5, 1)],
            terminated: &[step == 3, false],
            truncated: &[false, step == 4],
        });
    }

    #[test]
    fn a_full_ring_keeps_the_last_steps_in_order() {
        let mut ring = ReplayRing::new(layout(), 3).unwrap();
        assert_eq!(ring.transitions(), 0);
        for step in 0..5 {
            push(&mut ring, step);
            assert_eq!(ring.steps(), (step + 1).min(3));
        }
        // Steps 2, 3 and 4 are left.
        assert_eq!(ring.observation(0, 0), [2000.0, 2001.0, 2002.0, 2010.0, 2011.0, 2012.0]);
        assert_eq!(ring.next_observation(2, 1), [4500.0, 4510.0]);
        assert_eq!(ring.actions(1), [3200.0, 3201.0, 3210.0, 3211.0]);
        assert_eq!((ring.terminated(1), ring.truncated(2)), (&[true, false][..], &[false, true][..]));
        let transition = ring.get(1, 1);
        assert_eq!(transition.observation(0), [3010.0, 3011.0, 3012.0]);
        assert_eq!(transition.next_observation(0), [3410.0, 3411.0, 3412.0]);
        assert_eq!(transition.observation(1), [3110.0]);
        assert_eq!(transition.action(), [3210.0, 3211.0]);
        assert_eq!((transition.reward(), transition.terminated(), transition.truncated()), (3310.0, false, false));
        assert_eq!(ring.transition(3).reward(), 3310.0);
        ring.clear();
        push(&mut ring, 9);
        assert_eq!((ring.steps(), ring.rewards(0)), (1, &[9300.0, 9310.0][..]));
    }

    #[test]
    fn batches_follow_their_indices() {
        let mut ring = ReplayRing::new(layout(), 4).unwrap();
        (0..6).for_each(|step| push(&mut ring, step));
        let mut batch = Batch::new(ring.layout(), 3).unwrap();
        assert!(batch.is_empty());
        ring.gather(&[7, 0, 2], &mut batch);
        // Steps 2 to 5 are left: index 7 is row 1 of step 5, index 0 row 0 of step 2, index 2 row 0 of step 3.
        assert_eq!(batch.rewards(), [5310.0, 2300.0, 3300.0]);
        assert_eq!(batch.terminated(), [false, false, true]);
        assert_eq!(batch.observation(0)[3..6], [2000.0, 2001.0, 2002.0]);
        assert_eq!(batch.next_observation(1), [5510.0, 2500.0, 3500.0]);
        assert_eq!(batch.actions(), [5210.0, 5211.0, 2200.0, 2201.0, 3200.0, 3201.0]);
        ring.gather(&[1], &mut batch);
        assert_eq!((batch.len(), batch.rewards()), (1, &[2310.0][..]));
    }

    #[test]
    fn impossible_capacities_are_errors() {
        assert_eq!(ReplayRing::new(layout(), 0).unwrap_err(), RingError::NoCapacity);
        for capacity in [usize::MAX, usize::MAX / 8] {
            let error = ReplayRing::new(layout(), capacity).unwrap_err().to_string();
            assert!(error.contains("more than there is; one step takes 92 bytes"), "{error}");
        }
    }
}
