//! The policy's output, three control steps deep.

use bevy_ecs::component::Component;

/// A row's raw actions as the policy gave them: the current one and the two before it.
///
/// All three are zero after a reset.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Action {
    /// Three blocks of `width` values: current, previous, the one before.
    values: Box<[f32]>,
    width: usize,
}

impl Action {
    /// Zeros for an action of `width` values.
    #[must_use]
    pub fn zeros(width: usize) -> Self {
        Self { values: vec![0.0; 3 * width].into(), width }
    }

    /// The action being executed.
    #[must_use]
    #[inline]
    pub fn current(&self) -> &[f32] {
        &self.values[..self.width]
    }

    /// The action of the control step before.
    #[must_use]
    #[inline]
    pub fn previous(&self) -> &[f32] {
        &self.values[self.width..2 * self.width]
    }

    /// The action two control steps before.
    #[must_use]
    #[inline]
    pub fn before_previous(&self) -> &[f32] {
        &self.values[2 * self.width..]
    }

    /// All three, the current one first.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All three, the current one first, to be written.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Makes `action` the current one and moves the others back by one step.
    ///
    /// # Panics
    /// If `action` does not have the width that this component was made with.
    pub fn push(&mut self, action: &[f32]) {
        self.values.copy_within(..2 * self.width, self.width);
        self.values[..self.width].copy_from_slice(action);
    }

    /// Zeroes all three.
    pub fn clear(&mut self) {
        self.values.fill(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_three_deep_and_ordered() {
        let mut action = Action::zeros(2);
        for k in 1..=4u8 {
            action.push(&[f32::from(k), -f32::from(k)]);
        }
        assert_eq!(action.current(), [4.0, -4.0]);
        assert_eq!(action.previous(), [3.0, -3.0]);
        assert_eq!(action.before_previous(), [2.0, -2.0]);
        action.clear();
        assert_eq!(action, Action::zeros(2));
    }
}
