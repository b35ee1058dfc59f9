//! State writes: what rows are given at resets and pushes.

use manege_systems::backend::{Backend, FieldWrite, ModelField, ModelInfo, StateWrite, WriteKind};

use crate::DirectError;
use crate::task::Slot;

/// Values for a state write, kept so that what never varies is written once.
pub(super) struct Staged {
    rows: Vec<u32>,
    kind: WriteKind,
    nq: usize,
    nv: usize,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    fields: Vec<Vec<f64>>,
    names: Vec<ModelField>,
    field_widths: Vec<usize>,
}

impl Staged {
    /// Room for `rows` rows, all of them at `qpos` at rest, with the parameters in `fields`.
    pub(super) fn new(
        kind: WriteKind,
        rows: usize,
        info: &ModelInfo,
        qpos: &[f64],
        fields: &[(ModelField, Vec<f64>)],
    ) -> Self {
        Self {
            rows: Vec::with_capacity(rows),
            kind,
            nq: info.nq,
            nv: info.nv,
            qpos: qpos.repeat(rows),
            qvel: vec![0.0; rows * info.nv],
            fields: fields.iter().map(|(_, values)| values.repeat(rows)).collect(),
            names: fields.iter().map(|(field, _)| *field).collect(),
            field_widths: fields.iter().map(|(_, values)| values.len()).collect(),
        }
    }

    /// A write of all rows' states, without parameters, that begins from the states in this one.
    pub(super) fn for_all_rows(&self, kind: WriteKind) -> Self {
        Self {
            rows: (0..(self.qpos.len() / self.nq) as u32).collect(),
            kind,
            qpos: self.qpos.clone(),
            qvel: self.qvel.clone(),
            fields: Vec::new(),
            names: Vec::new(),
            field_widths: Vec::new(),
            ..*self
        }
    }

    /// Numbers of generalised positions and velocities.
    pub(super) fn widths(&self) -> (usize, usize) {
        (self.nq, self.nv)
    }

    /// Opens a write of these rows.
    pub(super) fn open(&mut self, rows: &[u32]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
    }

    /// Hands the write to `visit`.
    pub(super) fn write(&self, visit: impl FnOnce(StateWrite<'_>)) {
        let count = self.rows.len();
        let fields: Vec<FieldWrite<'_>> = self
            .names
            .iter()
            .zip(&self.fields)
            .zip(&self.field_widths)
            .map(|((&field, values), width)| FieldWrite { field, values: &values[..count * width] })
            .collect();
        visit(StateWrite {
            rows: &self.rows,
            kind: self.kind,
            qpos: &self.qpos[..count * self.nq],
            qvel: &self.qvel[..count * self.nv],
            fields: &fields,
        });
    }

    /// Hands the write to the backend.
    pub(super) fn commit(&self, backend: &mut dyn Backend) -> Result<(), DirectError> {
        let mut result = Ok(());
        self.write(|write| result = backend.write(write));
        Ok(result?)
    }

    /// What the row in a slot of the write is about to be given.
    pub(super) fn slot(&mut self, slot: usize) -> Slot<'_> {
        Slot {
            qpos: &mut self.qpos[slot * self.nq..][..self.nq],
            qvel: &mut self.qvel[slot * self.nv..][..self.nv],
            fields: &mut self.fields,
            widths: &self.field_widths,
            slot,
        }
    }
}
