//! All that a batch is in the middle of, as numbers.

use super::field::{Expanded, model_fields};
use super::field_names::ElementKind;
use super::{Batch, BatchOptions};
use crate::BatchError;
use crate::model::{array, array_mut};

impl Batch {
    /// Appends everything that determines what the rows do next, and what they show now: their states, the values that
    /// they have for model fields, the derived ones included, and the outputs.
    ///
    /// The numbers mean something to batches of the same model, number of rows and outputs.
    pub fn save(&self, to: &mut Vec<f64>) {
        to.extend((0..self.rows).flat_map(|row| self.state.row(row)));
        to.extend_from_slice(&self.outputs);
        let place = to.len();
        to.push(0.0);
        let mut count = 0u32;
        for (index, name) in model_fields().enumerate() {
            if let Some(field) = self.expanded(name) {
                to.push(index as f64);
                // SAFETY: the storage of a field of this batch, which nothing writes between calls.
                unsafe { field.append(self.rows, to) };
                count += 1;
            }
        }
        to[place] = f64::from(count);
    }

    /// Puts back what [`save`](Self::save) gave, after which the batch does what the saved one would have done, bit for
    /// bit.
    ///
    /// # Errors
    /// [`BatchError::Size`] if the numbers are not those of a batch like this one; [`BatchError::UnknownField`] or
    /// [`BatchError::Make`] if MuJoCo cannot give rows values of their own for a field. Except in the latter case, nothing
    /// is changed.
    pub fn load(&mut self, from: &[f64]) -> Result<(), BatchError> {
        let wrong = |expected| BatchError::Size { buffer: "the saved batch", expected, actual: from.len() };
        let states = self.rows * self.state.width();
        let head = states + self.outputs.len();
        if from.len() <= head {
            return Err(wrong(head + 1));
        }
        let (count, mut rest) = (from[head], &from[head + 1..]);
        let mut saved = Vec::new();
        for _ in 0..count as usize {
            let name = rest.first().and_then(|index| model_fields().nth(*index as usize));
            let Some(name) = name else { return Err(wrong(from.len() + 1)) };
            let len = self.rows * self.field_width(name)?;
            if rest.len() <= len {
                return Err(wrong(from.len() + len + 1 - rest.len()));
            }
            saved.push((name, &rest[1..=len]));
            rest = &rest[1 + len..];
        }
        if !rest.is_empty() {
            return Err(wrong(from.len() - rest.len()));
        }

        for (row, state) in from[..states].chunks_exact(self.state.width().max(1)).enumerate() {
            self.state.row_mut(row).copy_from_slice(state);
        }
        self.outputs.copy_from_slice(&from[states..head]);
        self.evaluated.fill(false);
        for (name, values) in &saved {
            self.expand_any(name)?;
            if let Some(field) = self.expanded(name) {
                // SAFETY: the storage of a field of this batch, which nothing else accesses.
                unsafe { field.copy_from(self.rows, values) };
            }
        }
        let surplus = |name: &&str| saved.iter().all(|(known, _)| known != name) && self.expanded(name).is_some();
        for name in model_fields().filter(surplus).collect::<Vec<_>>() {
            let values = self.model_values(name)?.repeat(self.rows);
            if let Some(field) = self.expanded(name) {
                // SAFETY: as above.
                unsafe { field.copy_from(self.rows, &values) };
            }
        }
        self.faults.clear();
        Ok(())
    }

    /// How many values each row has for a model field.
    fn field_width(&self, name: &str) -> Result<usize, BatchError> {
        match self.expanded(name) {
            Some(field) => Ok(field.width),
            None => Ok(self.model_values(name)?.len()),
        }
    }

    /// The model's own values for a field: what a batch begins with.
    fn model_values(&self, name: &str) -> Result<Vec<f64>, BatchError> {
        let mut fresh =
            Batch::new(&self.model, &BatchOptions { persistent: self.persistent, ..BatchOptions::default() })?;
        fresh.expand_any(name)?;
        let mut values = Vec::new();
        if let Some(field) = fresh.expanded(name) {
            // SAFETY: the storage of a field of that batch, which lives until the end of this function.
            unsafe { field.append(1, &mut values) };
        }
        Ok(values)
    }
}

impl Expanded {
    /// # Safety
    /// The field is that of a living batch of `rows` rows, which nothing writes to meanwhile.
    unsafe fn append(&self, rows: usize, to: &mut Vec<f64>) {
        let len = rows * self.width;
        // SAFETY: MuJoCo keeps this many elements of this type, by this function's contract.
        unsafe {
            match self.kind {
                ElementKind::Number => to.extend_from_slice(array(self.values.cast(), len)),
                ElementKind::Integer => to.extend(array::<i32>(self.values.cast(), len).iter().map(|&v| f64::from(v))),
                ElementKind::Flag => to.extend(array::<bool>(self.values.cast(), len).iter().map(|&v| f64::from(v))),
            }
        }
    }

    /// # Safety
    /// The field is that of a living batch of `rows` rows, which nothing else accesses meanwhile.
    unsafe fn copy_from(&self, rows: usize, values: &[f64]) {
        let len = rows * self.width;
        // SAFETY: MuJoCo keeps this many elements of this type, by this function's contract.
        unsafe {
            match self.kind {
                ElementKind::Number => array_mut(self.values.cast(), len).copy_from_slice(values),
                ElementKind::Integer => {
                    let stored = array_mut::<i32>(self.values.cast(), len);
                    stored.iter_mut().zip(values).for_each(|(stored, &value)| *stored = value as i32);
                }
                ElementKind::Flag => {
                    let stored = array_mut::<bool>(self.values.cast(), len);
                    stored.iter_mut().zip(values).for_each(|(stored, &value)| *stored = value != 0.0);
                }
            }
        }
    }
}
