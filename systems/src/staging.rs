//! State writes, collected from events and commands and carried out in one dispatch.

use arrayvec::ArrayVec;
use bevy_ecs::prelude::*;
use glam::{DQuat, DVec3};
use manege_components::{Row, rotation};

use crate::backend::{Backend, BackendError, FieldWrite, ModelField, ModelInfo, StateWrite, WriteKind};
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};

/// More fields than [`ModelField`] has variants.
const MAX_FIELDS: usize = 16;

/// Per-row values of one model parameter.
struct FieldValues {
    field: ModelField,
    width: usize,
    /// The compiled model's values. Never changes: randomisation starts from it every time.
    default: Vec<f64>,
    /// What the backend holds, rows × width.
    committed: Vec<f64>,
    /// What the open write will set, slots × width.
    staged: Vec<f64>,
    touched: bool,
}

/// The open state write: which rows, and what they will hold.
#[derive(Resource)]
pub struct Staging {
    nq: usize,
    nv: usize,
    default_qpos: Vec<f64>,
    rows: Vec<u32>,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    touched: bool,
    fields: Vec<FieldValues>,
}

impl Staging {
    pub(crate) fn new(info: &ModelInfo, default_qpos: &[f64], fields: &[ModelField], rows: usize) -> Self {
        let fields = fields
            .iter()
            .map(|&field| {
                let default = field.compiled(info);
                FieldValues {
                    field,
                    width: default.len(),
                    committed: default.repeat(rows),
                    staged: default.repeat(rows),
                    default,
                    touched: false,
                }
            })
            .collect();
        Self {
            nq: info.nq,
            nv: info.nv,
            default_qpos: default_qpos.to_vec(),
            rows: Vec::with_capacity(rows),
            qpos: vec![0.0; rows * info.nq],
            qvel: vec![0.0; rows * info.nv],
            touched: false,
            fields,
        }
    }

    /// What the backend holds of a model parameter for a row; `None` if no term varies it.
    #[must_use]
    pub fn committed(&self, field: ModelField, row: Row) -> Option<&[f64]> {
        let values = self.fields.iter().find(|values| values.field == field)?;
        values.committed.get(row.index() * values.width..(row.index() + 1) * values.width)
    }

    /// Opens a write that restarts rows: each begins from the default configuration at rest.
    pub(crate) fn begin_reset(&mut self, rows: &[u32]) {
        self.begin(rows);
        for slot in 0..rows.len() {
            self.qpos[slot * self.nq..][..self.nq].copy_from_slice(&self.default_qpos);
            self.qvel[slot * self.nv..][..self.nv].fill(0.0);
        }
        self.touched = true;
    }

    /// Opens a write that changes rows between steps; [`set_current`](Self::set_current) says where each begins.
    pub(crate) fn begin(&mut self, rows: &[u32]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.touched = false;
        for field in &mut self.fields {
            field.touched = false;
            for (slot, &row) in rows.iter().enumerate() {
                let from = row as usize * field.width;
                field.staged[slot * field.width..][..field.width]
                    .copy_from_slice(&field.committed[from..from + field.width]);
            }
        }
    }

    /// Gives the state that the row of a slot begins from.
    pub(crate) fn set_current(&mut self, slot: usize, qpos: &[f64], qvel: &[f64]) {
        self.qpos[slot * self.nq..][..self.nq].copy_from_slice(qpos);
        self.qvel[slot * self.nv..][..self.nv].copy_from_slice(qvel);
    }

    /// The staged state of the row at position `slot` of the open write.
    pub(crate) fn row(&mut self, slot: usize) -> StagedRow<'_> {
        StagedRow {
            qpos: &mut self.qpos[slot * self.nq..][..self.nq],
            qvel: &mut self.qvel[slot * self.nv..][..self.nv],
            touched: &mut self.touched,
            fields: &mut self.fields,
            slot,
        }
    }

    /// Hands the open write to the backend in one dispatch, if anything was staged. Returns whether it did.
    pub(crate) fn commit(&mut self, kind: WriteKind, backend: &mut dyn Backend) -> Result<bool, BackendError> {
        let count = self.rows.len();
        if count == 0 || !(self.touched || self.fields.iter().any(|field| field.touched)) {
            return Ok(false);
        }
        let fields: ArrayVec<FieldWrite<'_>, MAX_FIELDS> = self
            .fields
            .iter()
            .filter(|field| field.touched)
            .map(|field| FieldWrite { field: field.field, values: &field.staged[..count * field.width] })
            .collect();
        backend.write(StateWrite {
            rows: &self.rows,
            kind,
            qpos: &self.qpos[..count * self.nq],
            qvel: &self.qvel[..count * self.nv],
            fields: &fields,
        })?;
        drop(fields);
        for field in self.fields.iter_mut().filter(|field| field.touched) {
            for (slot, &row) in self.rows.iter().enumerate() {
                let to = row as usize * field.width;
                field.committed[to..to + field.width]
                    .copy_from_slice(&field.staged[slot * field.width..][..field.width]);
            }
        }
        Ok(true)
    }
}

impl Saved for Staging {
    fn save(&self, to: &mut Writer) {
        self.fields.iter().for_each(|field| to.put_all(&field.committed));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.fields.iter_mut().try_for_each(|field| from.fill(&mut field.committed))
    }
}

/// One row of an open state write.
pub struct StagedRow<'a> {
    qpos: &'a mut [f64],
    qvel: &'a mut [f64],
    touched: &'a mut bool,
    fields: &'a mut [FieldValues],
    slot: usize,
}

/// Pose and velocity of the floating root.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RootState {
    /// Position in the world, m.
    pub position: DVec3,
    /// Orientation in the world.
    pub orientation: DQuat,
    /// Linear velocity in the world frame, m/s.
    pub linear_velocity: DVec3,
    /// Angular velocity in the world frame, rad/s.
    pub angular_velocity: DVec3,
}

impl StagedRow<'_> {
    /// Generalised positions, `nq` values.
    #[must_use]
    pub fn qpos(&self) -> &[f64] {
        self.qpos
    }

    /// Generalised velocities, `nv` values.
    #[must_use]
    pub fn qvel(&self) -> &[f64] {
        self.qvel
    }

    /// Generalised positions, to be changed.
    pub fn qpos_mut(&mut self) -> &mut [f64] {
        *self.touched = true;
        self.qpos
    }

    /// Generalised velocities, to be changed.
    pub fn qvel_mut(&mut self) -> &mut [f64] {
        *self.touched = true;
        self.qvel
    }

    /// The floating root's state. Meaningless for a model without one.
    #[must_use]
    pub fn root(&self) -> RootState {
        let orientation = rotation::from_wxyz(&self.qpos[3..7]);
        RootState {
            position: rotation::vec3(&self.qpos[..3]),
            orientation,
            linear_velocity: rotation::vec3(&self.qvel[..3]),
            angular_velocity: orientation * rotation::vec3(&self.qvel[3..6]),
        }
    }

    /// Places the floating root. The orientation is normalised.
    pub fn set_root(&mut self, root: RootState) {
        *self.touched = true;
        let orientation = root.orientation.normalize();
        root.position.write_to_slice(&mut self.qpos[..3]);
        self.qpos[3..7].copy_from_slice(&rotation::to_wxyz(orientation));
        root.linear_velocity.write_to_slice(&mut self.qvel[..3]);
        (orientation.inverse() * root.angular_velocity).write_to_slice(&mut self.qvel[3..6]);
    }

    /// A model parameter: the compiled model's values, and the row's, to be changed.
    ///
    /// # Panics
    /// If the field was not requested at build.
    pub fn field(&mut self, field: ModelField) -> (&[f64], &mut [f64]) {
        let slot = self.slot;
        let values = self
            .fields
            .iter_mut()
            .find(|values| values.field == field)
            .expect("a term requests the model fields it writes when it is built");
        values.touched = true;
        (&values.default, &mut values.staged[slot * values.width..][..values.width])
    }
}
