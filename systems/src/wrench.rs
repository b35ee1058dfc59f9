//! External forces and torques that events hold on bodies for whole control steps.
//!
//! Every term that applies one is a source of its own; what acts on a body is the sum over sources. The backend is told when
//! a row's sum changes, and keeps it through all physics steps until it changes again.

use bevy_ecs::prelude::*;
use glam::DVec3;

use crate::backend::{Backend, BackendError, WrenchWrite};
use crate::physics::Physics;
use crate::snapshot::{Reader, Saved, SnapshotError, Writer};
use crate::step::StepStatus;

/// Values of a wrench: force, then torque.
const WIDTH: usize = 6;

/// A force and a torque in the world frame, acting at a body's centre of mass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wrench {
    /// Force, N.
    pub force: DVec3,
    /// Torque, N·m.
    pub torque: DVec3,
}

impl Wrench {
    fn to_array(self) -> [f64; WIDTH] {
        let Self { force, torque } = self;
        [force.x, force.y, force.z, torque.x, torque.y, torque.z]
    }

    fn from_slice(values: &[f64]) -> Self {
        Self { force: DVec3::from_slice(&values[..3]), torque: DVec3::from_slice(&values[3..]) }
    }
}

/// One term's wrench on one body; [`BuildContext::wrench`](crate::build::BuildContext::wrench) gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WrenchHandle(pub(crate) usize);

/// What acts on the rows' bodies from outside, and for how long yet.
#[derive(Resource, Debug)]
pub struct ExternalWrenches {
    /// The bodies that anything may act on, each once.
    bodies: Vec<usize>,
    /// Place in `bodies` of what each source acts on.
    targets: Vec<usize>,
    /// Rows × sources × [`WIDTH`].
    values: Vec<f64>,
    /// Control steps left, rows × sources.
    steps_left: Vec<u32>,
    /// Whether the backend applies something else to a row than the sum of its `values`.
    changed: Vec<bool>,
    /// The rows of the write at hand, and what is written; kept to avoid allocation.
    written: Vec<u32>,
    sums: Vec<f64>,
}

impl ExternalWrenches {
    /// Nothing acts yet. Each source acts on the body given for it.
    pub(crate) fn new(sources: &[usize], rows: usize) -> Self {
        let mut bodies: Vec<usize> = Vec::new();
        let targets = sources
            .iter()
            .map(|body| {
                bodies.iter().position(|known| known == body).unwrap_or_else(|| {
                    bodies.push(*body);
                    bodies.len() - 1
                })
            })
            .collect();
        Self {
            values: vec![0.0; rows * sources.len() * WIDTH],
            steps_left: vec![0; rows * sources.len()],
            changed: vec![false; rows],
            written: Vec::with_capacity(rows),
            sums: Vec::with_capacity(rows * bodies.len() * WIDTH),
            bodies,
            targets,
        }
    }

    /// One row's wrenches, to be changed.
    pub(crate) fn row(&mut self, row: usize) -> RowWrenches<'_> {
        let sources = self.targets.len();
        RowWrenches {
            values: &mut self.values[row * sources * WIDTH..][..sources * WIDTH],
            steps_left: &mut self.steps_left[row * sources..][..sources],
            changed: &mut self.changed[row],
        }
    }

    /// Lets nothing act on some rows any more.
    pub(crate) fn clear(&mut self, rows: &[u32]) {
        if self.targets.is_empty() {
            return;
        }
        for &row in rows {
            let row = self.row(row as usize);
            if row.values.iter().any(|value| *value != 0.0) {
                row.values.fill(0.0);
                *row.changed = true;
            }
            row.steps_left.fill(0);
        }
    }

    /// Takes `rows`, or all, into their next control step, and tells the backend what acts on them in it.
    fn advance(&mut self, rows: Option<&[u32]>, backend: &mut dyn Backend) -> Result<(), BackendError> {
        if self.targets.is_empty() {
            return Ok(());
        }
        self.written.clear();
        self.sums.clear();
        match rows {
            Some(rows) => rows.iter().for_each(|&row| self.advance_row(row)),
            None => (0..self.changed.len() as u32).for_each(|row| self.advance_row(row)),
        }
        if self.written.is_empty() {
            return Ok(());
        }
        backend.apply_wrenches(WrenchWrite { rows: &self.written, bodies: &self.bodies, values: &self.sums })
    }

    fn advance_row(&mut self, row: u32) {
        let RowWrenches { values, steps_left, changed } = self.row(row as usize);
        for (value, steps_left) in values.chunks_exact_mut(WIDTH).zip(steps_left) {
            if *steps_left == 0 && value.iter().any(|value| *value != 0.0) {
                value.fill(0.0);
                *changed = true;
            }
            *steps_left = steps_left.saturating_sub(1);
        }
        if !std::mem::take(changed) {
            return;
        }
        self.written.push(row);
        let start = self.sums.len();
        self.sums.resize(start + self.bodies.len() * WIDTH, 0.0);
        let values = &self.values[row as usize * self.targets.len() * WIDTH..];
        for (target, values) in self.targets.iter().zip(values.chunks_exact(WIDTH)) {
            let sum = &mut self.sums[start + target * WIDTH..][..WIDTH];
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
}

impl Saved for ExternalWrenches {
    fn save(&self, to: &mut Writer) {
        to.put_all(&self.values);
        to.put_all(&self.steps_left);
        to.put_all(&self.changed);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        from.fill(&mut self.values)?;
        from.fill(&mut self.steps_left)?;
        from.fill(&mut self.changed)
    }
}

/// What acts on one row's bodies from outside.
pub struct RowWrenches<'a> {
    values: &'a mut [f64],
    steps_left: &'a mut [u32],
    changed: &'a mut bool,
}

impl RowWrenches<'_> {
    /// Lets a wrench act in the next `steps` control steps, all their physics steps included, in place of what the source
    /// applied before. It ends early if the row is reset.
    pub fn hold(&mut self, source: WrenchHandle, wrench: Wrench, steps: u32) {
        let wrench = if steps == 0 { Wrench::default() } else { wrench };
        self.values[source.0 * WIDTH..][..WIDTH].copy_from_slice(&wrench.to_array());
        self.steps_left[source.0] = steps;
        *self.changed = true;
    }

    /// What the source applies, and in how many control steps yet; in none, it is about to be taken away.
    #[must_use]
    pub fn held(&self, source: WrenchHandle) -> (Wrench, u32) {
        (Wrench::from_slice(&self.values[source.0 * WIDTH..][..WIDTH]), self.steps_left[source.0])
    }
}

/// Tells the backend what acts on the rows in this control step.
pub(crate) fn apply_wrenches(
    mut wrenches: ResMut<ExternalWrenches>,
    mut physics: ResMut<Physics>,
    mut status: ResMut<StepStatus>,
) {
    let (backend, active) = physics.backend_and_active();
    if let Err(error) = wrenches.advance(active, backend) {
        status.fail(error.into());
    }
}
