//! Rows of a MuJoCo model.

use manege_mujoco::{Batch, BatchOptions, Control, Model, StateField, Step, Unstable};

use super::batch_error;
use super::fields::Field;
use crate::backend::{
    Backend, BackendError, FaultReason, ModelField, ModelInfo, RowFault, StateWrite, StepRequest, SubstepControl,
    SubstepState, WrenchWrite, WriteKind,
};

/// Rows of a MuJoCo model, as a [`Backend`].
pub(super) struct MujocoBackend {
    batch: Batch,
    nq: usize,
    nv: usize,
    bodies: usize,
    fields: Vec<Field>,
    faults: Vec<RowFault>,
    /// Rows of a write whose derived constants have to be computed anew.
    stale: Vec<u32>,
}

impl MujocoBackend {
    pub(super) fn new(
        model: &Model,
        info: &ModelInfo,
        options: &BatchOptions,
        fields: &[ModelField],
    ) -> Result<Self, BackendError> {
        let mut batch = Batch::new(model, options).map_err(batch_error)?;
        let mut expanded: Vec<Field> = Vec::with_capacity(fields.len());
        for &field in fields {
            if expanded.iter().all(|known| known.field != field) {
                expanded.push(Field::expand(&mut batch, field, field.width(info)).map_err(batch_error)?);
            }
        }
        let mut backend = Self {
            batch,
            nq: info.nq,
            nv: info.nv,
            bodies: info.bodies.len(),
            fields: expanded,
            faults: Vec::new(),
            stale: Vec::with_capacity(options.rows),
        };
        backend.take_faults();
        Ok(backend)
    }

    fn field(&self, field: ModelField) -> Result<&Field, BackendError> {
        self.fields.iter().find(|known| known.field == field).ok_or_else(|| BackendError::Field(format!("{field:?}")))
    }

    fn check(&self, write: &StateWrite<'_>) -> Result<(), BackendError> {
        self.batch.check_rows(write.rows).map_err(batch_error)?;
        let rows = write.rows.len();
        check_size("qpos", rows * self.nq, write.qpos)?;
        check_size("qvel", rows * self.nv, write.qvel)?;
        for given in write.fields {
            check_size("a model field", rows * self.field(given.field)?.width, given.values)?;
        }
        Ok(())
    }

    /// Adds the faults of the engine's last call to those of this call, of which a row has one at most.
    fn take_faults(&mut self) {
        if self.batch.faults().is_empty() {
            return;
        }
        let known = self.faults.len();
        for fault in self.batch.faults() {
            if self.faults[..known].binary_search_by_key(&fault.row, |known| known.row).is_err() {
                self.faults.push(RowFault { row: fault.row, reason: reason(&fault.reason) });
            }
        }
        self.faults.sort_by_key(|fault| fault.row);
    }
}

impl Backend for MujocoBackend {
    fn rows(&self) -> usize {
        self.batch.rows()
    }

    fn output_width(&self) -> usize {
        self.batch.output_width()
    }

    fn outputs(&self) -> &[f64] {
        self.batch.outputs()
    }

    fn step(&mut self, request: StepRequest<'_>) -> Result<(), BackendError> {
        let feedback = request.feedback.map(Feedback);
        let step = Step {
            rows: request.rows,
            substeps: request.substeps,
            controls: Some(request.controls),
            control: feedback.as_ref().map(|feedback| feedback as &dyn Control),
        };
        self.batch.step(&step).map_err(batch_error)?;
        self.faults.clear();
        self.take_faults();
        Ok(())
    }

    fn write(&mut self, write: StateWrite<'_>) -> Result<(), BackendError> {
        self.check(&write)?;
        if write.kind == WriteKind::Reset {
            self.batch.reset_rows(Some(write.rows)).map_err(batch_error)?;
        }
        self.stale.clear();
        for (index, &row) in write.rows.iter().enumerate() {
            let target = row as usize;
            let qpos = &write.qpos[index * self.nq..][..self.nq];
            let qvel = &write.qvel[index * self.nv..][..self.nv];
            self.batch.qpos_mut(target).map_err(batch_error)?.copy_from_slice(qpos);
            self.batch.qvel_mut(target).map_err(batch_error)?.copy_from_slice(qvel);

            let mut stale = false;
            for given in write.fields {
                let Some(field) = self.fields.iter().find(|field| field.field == given.field) else {
                    continue;
                };
                let values = &given.values[index * field.width..][..field.width];
                stale |= field.write(&mut self.batch, target, values).map_err(batch_error)?;
            }
            if stale {
                self.stale.push(row);
            }
        }

        self.faults.clear();
        if !self.stale.is_empty() {
            self.batch.set_const(Some(&self.stale)).map_err(batch_error)?;
            self.take_faults();
        }
        self.batch.refresh(Some(write.rows)).map_err(batch_error)?;
        self.take_faults();
        Ok(())
    }

    fn apply_wrenches(&mut self, write: WrenchWrite<'_>) -> Result<(), BackendError> {
        self.batch.check_rows(write.rows).map_err(batch_error)?;
        if let Some(&body) = write.bodies.iter().find(|body| **body >= self.bodies) {
            return Err(BackendError::Body { body, bodies: self.bodies });
        }
        let width = 6 * write.bodies.len();
        check_size("wrenches", write.rows.len() * width, write.values)?;
        for (index, &row) in write.rows.iter().enumerate() {
            let applied = self.batch.state_mut(StateField::XfrcApplied, row as usize).map_err(batch_error)?;
            let given = write.values[index * width..][..width].as_chunks::<6>().0;
            for (&body, given) in write.bodies.iter().zip(given) {
                applied[6 * body..][..6].copy_from_slice(given);
            }
        }
        Ok(())
    }

    fn save_state(&self, to: &mut Vec<f64>) {
        self.batch.save(to);
    }

    fn load_state(&mut self, from: &[f64]) -> Result<(), BackendError> {
        self.batch.load(from).map_err(batch_error)?;
        self.faults.clear();
        Ok(())
    }

    fn faults(&self) -> &[RowFault] {
        &self.faults
    }
}

/// A substep control as the engine calls it.
struct Feedback<'a>(&'a dyn SubstepControl);

impl Control for Feedback<'_> {
    fn control(&self, row: usize, substep: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]) {
        self.0.control(row, substep, SubstepState { qpos, qvel }, ctrl);
    }
}

fn check_size(buffer: &'static str, expected: usize, values: &[f64]) -> Result<(), BackendError> {
    if values.len() == expected {
        return Ok(());
    }
    Err(BackendError::Size { buffer, expected, actual: values.len() })
}

fn reason(reason: &manege_mujoco::FaultReason) -> FaultReason {
    match reason {
        manege_mujoco::FaultReason::Engine(message) => FaultReason::EngineError(message.clone()),
        manege_mujoco::FaultReason::Panic(message) => FaultReason::Panic(message.clone()),
        manege_mujoco::FaultReason::Unstable(quantity) => FaultReason::Unstable(Unstable::as_str(*quantity)),
        other => FaultReason::EngineError(other.to_string()),
    }
}
