//! The bare physics of a run: the same steps by `mj_step` and the same state writes, with nothing around them.

use std::time::{Duration, Instant};

use manege_systems::backend::{
    Backend, BackendRequest, FieldWrite, Freshness, ModelField, Output, StateWrite, StepRequest, WriteKind,
};

use manege_systems::config::{PhysicsConfig, SensorSchedule};

use crate::{DirectError, Environment, Options};

/// What a run asked of the physics backend.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The writes before the first step.
    first: Vec<Write>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    /// The controls, if they are not those of the step before.
    controls: Option<Vec<f64>>,
    /// The writes after the step.
    writes: Vec<Write>,
}

#[derive(Debug, Clone)]
struct Write {
    rows: Vec<u32>,
    kind: WriteKind,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    fields: Vec<(ModelField, Vec<f64>)>,
}

impl Write {
    fn of(write: StateWrite<'_>) -> Self {
        Self {
            rows: write.rows.to_vec(),
            kind: write.kind,
            qpos: write.qpos.to_vec(),
            qvel: write.qvel.to_vec(),
            fields: write.fields.iter().map(|field| (field.field, field.values.to_vec())).collect(),
        }
    }

    fn commit(&self, backend: &mut dyn Backend) -> Result<(), DirectError> {
        let fields: Vec<_> = self.fields.iter().map(|(field, values)| FieldWrite { field: *field, values }).collect();
        let Self { rows, kind, qpos, qvel, .. } = self;
        Ok(backend.write(StateWrite { rows, kind: *kind, qpos, qvel, fields: &fields })?)
    }
}

impl Recording {
    /// Begins with an environment that has just been reset for the first time.
    #[must_use]
    pub fn start(environment: &dyn Environment) -> Self {
        Self { first: writes(environment), steps: Vec::new() }
    }

    /// Adds the environment's last step.
    pub fn add_step(&mut self, environment: &dyn Environment) {
        let controls = environment.controls();
        let same = self.steps.iter().rev().find_map(|step| step.controls.as_deref()) == Some(controls);
        self.steps.push(Step { controls: (!same).then(|| controls.to_vec()), writes: writes(environment) });
    }

    /// Does it all again on rows of their own, which deliver `outputs` and nothing else. Gives the duration of each step
    /// with the writes that follow it, and the rows as the last step left them.
    ///
    /// # Errors
    /// The task does not exist, or the engine refuses what it did not refuse before.
    pub fn replay(
        &self,
        name: &str,
        options: Options,
        outputs: Vec<Output>,
    ) -> Result<(Vec<Duration>, Box<dyn Backend>), DirectError> {
        let (task, preset) = manege_tasks::find(name)?;
        // As `mj_step` does: the step that leaves out sensors is a part of what is measured against this.
        let physics = PhysicsConfig { sensors: SensorSchedule::EverySubstep, ..(task.config)(preset.name).physics };
        let substeps = physics.substeps()?;
        let fields = self.first.iter().flat_map(|write| &write.fields).map(|(field, _)| *field).collect();
        let mut backend = task.load(&physics)?.build(&BackendRequest {
            rows: options.rows,
            threads: options.threads,
            outputs,
            fields,
            substep_feedback: false,
            // What the engine evaluates within its steps anyway, and nothing after them.
            freshness: Freshness::LastSubstep,
        })?;
        self.first.iter().try_for_each(|write| write.commit(&mut *backend))?;
        let mut controls: &[f64] = &[];
        let mut times = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            controls = step.controls.as_deref().unwrap_or(controls);
            let begun = Instant::now();
            backend.step(StepRequest { rows: None, substeps, controls, feedback: None })?;
            step.writes.iter().try_for_each(|write| write.commit(&mut *backend))?;
            times.push(begun.elapsed());
        }
        Ok((times, backend))
    }
}

fn writes(environment: &dyn Environment) -> Vec<Write> {
    let mut writes = Vec::new();
    environment.writes(&mut |write| writes.push(Write::of(write)));
    writes
}
