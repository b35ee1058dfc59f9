//! Numbers that a control step reports by name.

use bevy_ecs::prelude::*;

use crate::snapshot::{Reader, Saved, SnapshotError, Writer};

/// What the last control step reported: means over rows, and means over the rows whose episode ended.
///
/// | key | when | value |
/// |---|---|---|
/// | `reward/<term>` | every step | mean over rows of value × weight, before the control period |
/// | `Episode_Reward/<term>` | resets | mean over the reset rows of the episode's sum, per second of the longest episode |
/// | `Episode_Termination/<term>` | resets | number of reset rows for which the term fired |
/// | `Episode_Metrics/<term>` | resets | mean over the reset rows that took a step of what the term's samples are reduced to |
/// | `Curriculum/<term>[/<number>]` | resets, or every step | what the curriculum term keeps |
/// | `Metrics/<command>/<metric>` | resets | mean over the reset rows |
#[derive(Resource, Debug, Clone, Default)]
pub struct StepLog {
    names: Vec<String>,
    values: Vec<Option<f64>>,
}

impl Saved for StepLog {
    fn save(&self, to: &mut Writer) {
        for value in &self.values {
            to.put(value.is_some());
            to.put(value.unwrap_or_default());
        }
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for value in &mut self.values {
            let reported: bool = from.take()?;
            *value = reported.then_some(from.take()?);
        }
        Ok(())
    }
}

impl StepLog {
    /// Adds keys and returns the place of the first.
    pub fn register(&mut self, names: impl IntoIterator<Item = String>) -> usize {
        let first = self.names.len();
        self.names.extend(names);
        self.values.resize(self.names.len(), None);
        first
    }

    /// Reports a value.
    ///
    /// # Panics
    /// If `place` was not registered.
    pub fn set(&mut self, place: usize, value: f64) {
        self.values[place] = Some(value);
    }

    /// Reports the mean of some values; nothing if there are none.
    pub fn set_mean(&mut self, place: usize, values: impl Iterator<Item = f32>) {
        let (mut sum, mut count) = (0.0, 0u32);
        for value in values {
            sum += f64::from(value);
            count += 1;
        }
        if count > 0 {
            self.set(place, sum / f64::from(count));
        }
    }

    /// Forgets all values; keys stay.
    pub fn clear(&mut self) {
        self.values.fill(None);
    }

    /// The reported values with their keys, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.names.iter().zip(&self.values).filter_map(|(name, value)| value.map(|value| (name.as_str(), value)))
    }

    /// The value of a key, if it was reported.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}
