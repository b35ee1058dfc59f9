//! Commands that a row is asked to follow.

use std::ops::Range;

use bevy_ecs::component::Component;

/// Sizes of a [`Command`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandWidths {
    /// Number of command terms.
    pub terms: usize,
    /// Values of all terms together.
    pub values: usize,
    /// Private values of all terms together.
    pub scratch: usize,
    /// Metrics of all terms together.
    pub metrics: usize,
}

/// A row's commands: the values of every command term back to back, with their timers and metrics.
#[derive(Component, Debug, Clone, PartialEq)]
pub struct Command {
    /// What policies and rewards see, term after term.
    pub values: Box<[f32]>,
    /// What a term remembers between resamplings (a heading target, a standing flag), term after term.
    pub scratch: Box<[f32]>,
    /// Errors accumulated over the episode, term after term.
    pub metrics: Box<[f32]>,
    /// Time until each term is drawn again, s.
    pub time_left: Box<[f64]>,
    /// How often each term was drawn in this episode.
    pub resamplings: Box<[u32]>,
    /// Which values are set from outside, and what these hide. Most rows have none.
    pub overridden: Option<Box<CommandOverride>>,
}

/// Values of a row's commands that are set from outside, in place of what the terms have drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOverride {
    /// Which of [`Command::values`] are set from outside.
    pub held: Box<[bool]>,
    /// What the terms would have there, one for each of [`Command::values`]; 0 for values that are not held.
    pub hidden: Box<[f32]>,
}

impl Command {
    /// Zeros of the given sizes.
    #[must_use]
    pub fn zeros(widths: &CommandWidths) -> Self {
        Self {
            values: vec![0.0; widths.values].into(),
            scratch: vec![0.0; widths.scratch].into(),
            metrics: vec![0.0; widths.metrics].into(),
            time_left: vec![0.0; widths.terms].into(),
            resamplings: vec![0; widths.terms].into(),
            overridden: None,
        }
    }

    /// Sets the values of a term from outside, until [`release`](Self::release).
    ///
    /// # Panics
    /// If there are no such columns, or not one value for each.
    pub fn hold(&mut self, columns: Range<usize>, values: &[f32]) {
        let width = self.values.len();
        let overridden = self.overridden.get_or_insert_with(|| {
            Box::new(CommandOverride { held: vec![false; width].into(), hidden: vec![0.0; width].into() })
        });
        for column in columns.clone() {
            if !overridden.held[column] {
                overridden.held[column] = true;
                overridden.hidden[column] = self.values[column];
            }
        }
        self.values[columns].copy_from_slice(values);
    }

    /// Gives the values of a term back to it, if they were set from outside.
    ///
    /// # Panics
    /// If there are no such columns.
    pub fn release(&mut self, columns: Range<usize>) {
        let Some(overridden) = &mut self.overridden else { return };
        for column in columns {
            if overridden.held[column] {
                overridden.held[column] = false;
                self.values[column] = std::mem::take(&mut overridden.hidden[column]);
            }
        }
        if !overridden.held.contains(&true) {
            self.overridden = None;
        }
    }
}

impl CommandOverride {
    /// What a term goes on with behind the values that are shown, if these are set from outside.
    pub fn hidden_mut(&mut self, columns: Range<usize>) -> Option<&mut [f32]> {
        self.held[columns.clone()].contains(&true).then(|| &mut self.hidden[columns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_values_hide_what_a_release_shows_again() {
        let mut command = Command::zeros(&CommandWidths { terms: 2, values: 3, scratch: 0, metrics: 0 });
        command.values.copy_from_slice(&[1.0, 2.0, 3.0]);
        let drawn = command.clone();
        command.hold(1..3, &[8.0, 9.0]);
        command.hold(1..3, &[6.0, 7.0]);
        assert_eq!(*command.values, [1.0, 6.0, 7.0]);
        let overridden = command.overridden.as_deref_mut().unwrap();
        assert_eq!(overridden.hidden_mut(0..1), None);
        assert_eq!(overridden.hidden_mut(1..3), Some(&mut [2.0, 3.0][..]));
        command.hold(0..1, &[5.0]);
        command.release(1..3);
        assert_eq!(*command.values, [5.0, 2.0, 3.0]);
        command.release(1..3);
        assert_eq!(*command.values, [5.0, 2.0, 3.0], "released already");
        command.release(0..1);
        assert_eq!(command, drawn);
    }
}
