//! Which values are copied out of a row after it has been stepped, and how.

use std::ops::Range;

use mujoco_rs::mujoco_c::{mjData, mjModel, mjtObj};

use super::refresh::Refresh;
use super::{Batch, BatchOptions};
use crate::{BatchError, Model, ObjectKind, ffi};

/// A quantity to copy into [`Batch::outputs`]. Indices are those of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Generalised positions, `nq` values.
    Qpos,
    /// Generalised velocities, `nv` values.
    Qvel,
    /// Controls, `nu` values.
    Ctrl,
    /// Position of a body's frame in the world, 3 values, m.
    BodyPosition(usize),
    /// Orientation of a body's frame in the world, 4 values, `wxyz`.
    BodyOrientation(usize),
    /// Linear velocity of a body frame's origin in the world frame, 3 values, m/s.
    BodyLinearVelocity(usize),
    /// Angular velocity of a body in the world frame, 3 values, rad/s.
    BodyAngularVelocity(usize),
    /// Position of a geom's centre in the world, 3 values, m.
    GeomPosition(usize),
    /// Position of a site in the world, 3 values, m.
    SitePosition(usize),
    /// A sensor's values.
    Sensor(usize),
}

/// When outputs that derive from `qpos` and `qvel` are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Freshness {
    /// After the last physics step of a call, so that they describe the state that `qpos` and `qvel` describe: bit for bit
    /// what `mj_forward` gives there. Only what the declared outputs need is evaluated.
    ///
    /// Sensors that depend on accelerations keep the value of the last physics step.
    ///
    /// In a [persistent](super::BatchOptions::persistent) batch every physics step ends with the whole position and
    /// velocity stages at the state that it reaches, which the next one goes on from: outputs are fresh without anything
    /// being evaluated twice.
    #[default]
    Fresh,
    /// As the last physics step left them: one physics step older than `qpos` and `qvel`.
    LastSubstep,
}

/// When sensors are evaluated while rows are stepped. Sensors do not act on the dynamics, so states have the same bits
/// either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SensorSchedule {
    /// Only those that outputs were declared for, and only in the last physics step of a call.
    #[default]
    Declared,
    /// All of them in every physics step, as `mj_step` does. For comparisons.
    EverySubstep,
}

/// An array of `mjData` that values are copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Array {
    Qpos,
    Qvel,
    Ctrl,
    BodyPosition,
    BodyOrientation,
    GeomPosition,
    SitePosition,
    Sensors,
}

impl Array {
    /// The array's first value.
    ///
    /// # Safety
    /// `data` is valid.
    unsafe fn first(self, data: *const mjData) -> *const f64 {
        // SAFETY: valid by this function's contract.
        unsafe {
            match self {
                Self::Qpos => (*data).qpos,
                Self::Qvel => (*data).qvel,
                Self::Ctrl => (*data).ctrl,
                Self::BodyPosition => (*data).xpos,
                Self::BodyOrientation => (*data).xquat,
                Self::GeomPosition => (*data).geom_xpos,
                Self::SitePosition => (*data).site_xpos,
                Self::Sensors => (*data).sensordata,
            }
        }
    }
}

/// A run of values to copy.
#[derive(Debug)]
struct Copy {
    array: Array,
    from: usize,
    to: usize,
    len: usize,
}

/// A body whose velocity is computed, and where its halves go.
#[derive(Debug)]
struct Velocity {
    body: i32,
    linear: Option<usize>,
    angular: Option<usize>,
}

/// What to evaluate at the state that a physics step reaches.
#[derive(Debug)]
pub(super) struct Rotation {
    /// After a physics step that another follows.
    pub(super) between: Refresh,
    /// After the last one of a call.
    pub(super) last: Refresh,
}

/// The declared outputs, checked against the model and turned into what a row's thread does.
#[derive(Debug)]
pub(super) struct Plan {
    ranges: Vec<Range<usize>>,
    width: usize,
    copies: Vec<Copy>,
    velocities: Vec<Velocity>,
    /// Whether sensors must be evaluated in the last physics step, because some are not after it.
    pub(super) sensors_of_last_step: bool,
    /// Whether sensors are evaluated in all physics steps, wanted or not.
    pub(super) sensors_of_every_step: bool,
    /// How physics steps end, where each goes on from the evaluated stages that the one before left.
    pub(super) rotation: Option<Rotation>,
    /// What to evaluate after the last physics step.
    pub(super) after_step: Refresh,
    /// What to evaluate after a state was written.
    pub(super) after_write: Refresh,
}

impl Plan {
    pub(super) fn new(model: &Model, options: &BatchOptions) -> Result<Self, BatchError> {
        let BatchOptions { ref outputs, freshness, sensors, persistent, .. } = *options;
        let after_write = Refresh::for_outputs(model, outputs);
        let reached = after_write.clone().with_whole_stages();
        let sensors_of_every_step = sensors == SensorSchedule::EverySubstep;
        let mut plan = Self {
            ranges: Vec::with_capacity(outputs.len()),
            width: 0,
            copies: Vec::new(),
            velocities: Vec::new(),
            sensors_of_last_step: match freshness {
                Freshness::Fresh => after_write.needs_acceleration(),
                Freshness::LastSubstep => outputs.iter().any(|source| matches!(source, Source::Sensor(_))),
            },
            sensors_of_every_step,
            rotation: (persistent && freshness == Freshness::Fresh).then(|| Rotation {
                between: if sensors_of_every_step {
                    reached.clone().with_sensors()
                } else {
                    reached.clone().without_sensors()
                },
                last: if sensors_of_every_step { reached.with_sensors() } else { reached.without_acceleration() },
            }),
            after_step: match freshness {
                Freshness::Fresh => after_write.clone().without_acceleration(),
                Freshness::LastSubstep => Refresh::default(),
            },
            after_write,
        };
        let sensors: Vec<Range<usize>> = model.sensors().map(|sensor| sensor.data).collect();
        for &source in outputs {
            if let Some((kind, index)) = source.object() {
                let count = model.count(kind);
                if index >= count {
                    return Err(BatchError::Index { kind, index, count });
                }
            }
            match source {
                Source::Qpos => plan.copy(Array::Qpos, 0, model.nq()),
                Source::Qvel => plan.copy(Array::Qvel, 0, model.nv()),
                Source::Ctrl => plan.copy(Array::Ctrl, 0, model.nu()),
                Source::BodyPosition(body) => plan.copy(Array::BodyPosition, 3 * body, 3),
                Source::BodyOrientation(body) => plan.copy(Array::BodyOrientation, 4 * body, 4),
                Source::GeomPosition(geom) => plan.copy(Array::GeomPosition, 3 * geom, 3),
                Source::SitePosition(site) => plan.copy(Array::SitePosition, 3 * site, 3),
                Source::Sensor(sensor) => {
                    let data = sensors[sensor].clone();
                    plan.copy(Array::Sensors, data.start, data.len());
                }
                Source::BodyLinearVelocity(body) => {
                    let to = plan.push(3);
                    plan.velocity(body, |velocity| &mut velocity.linear, to);
                }
                Source::BodyAngularVelocity(body) => {
                    let to = plan.push(3);
                    plan.velocity(body, |velocity| &mut velocity.angular, to);
                }
            }
        }
        Ok(plan)
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Reserves the next `len` values of a row.
    fn push(&mut self, len: usize) -> usize {
        let start = self.width;
        self.width += len;
        self.ranges.push(start..self.width);
        start
    }

    fn copy(&mut self, array: Array, from: usize, len: usize) {
        let to = self.push(len);
        if let Some(last) = self.copies.last_mut()
            && last.array == array
            && last.from + last.len == from
            && last.to + last.len == to
        {
            last.len += len;
        } else if len > 0 {
            self.copies.push(Copy { array, from, to, len });
        }
    }

    fn velocity(&mut self, body: usize, half: impl Fn(&mut Velocity) -> &mut Option<usize>, to: usize) {
        // The body exists, and MuJoCo numbers bodies with `int`.
        let body = body as i32;
        for velocity in &mut self.velocities {
            if velocity.body == body && half(velocity).is_none() {
                *half(velocity) = Some(to);
                return;
            }
        }
        let mut velocity = Velocity { body, linear: None, angular: None };
        *half(&mut velocity) = Some(to);
        self.velocities.push(velocity);
    }

    /// Copies a row's outputs.
    ///
    /// # Safety
    /// `model` is the plan's model, with or without per-row values, and `data` belongs to it; both are valid. `output` is
    /// valid for `width` values that nothing else accesses.
    pub(super) unsafe fn copy_out(&self, model: *const mjModel, data: *const mjData, output: *mut f64) {
        for &Copy { array, from, to, len } in &self.copies {
            // SAFETY: the source was checked against the model's sizes, which are those of the data's arrays, and the
            // destination lies within the row's `width` values.
            unsafe { std::ptr::copy_nonoverlapping(array.first(data).add(from), output.add(to), len) };
        }
        for velocity in &self.velocities {
            let mut halves = [0.0; 6];
            // SAFETY: the body exists, and `halves` has the six values that MuJoCo writes: angular, then linear. The
            // frame has nothing to destroy, should MuJoCo raise an error.
            unsafe {
                let object = mjtObj::mjOBJ_XBODY as i32;
                ffi::mj_objectVelocity(model, data, object, velocity.body, halves.as_mut_ptr(), 0);
            }
            for (half, to) in halves.as_chunks::<3>().0.iter().zip([velocity.angular, velocity.linear]) {
                if let Some(to) = to {
                    // SAFETY: the three values lie within the row's `width` values.
                    unsafe { std::ptr::copy_nonoverlapping(half.as_ptr(), output.add(to), 3) };
                }
            }
        }
    }
}

impl Source {
    /// The object that must exist.
    fn object(self) -> Option<(ObjectKind, usize)> {
        match self {
            Self::Qpos | Self::Qvel | Self::Ctrl => None,
            Self::BodyPosition(index)
            | Self::BodyOrientation(index)
            | Self::BodyLinearVelocity(index)
            | Self::BodyAngularVelocity(index) => Some((ObjectKind::Body, index)),
            Self::GeomPosition(index) => Some((ObjectKind::Geom, index)),
            Self::SitePosition(index) => Some((ObjectKind::Site, index)),
            Self::Sensor(index) => Some((ObjectKind::Sensor, index)),
        }
    }
}

impl Batch {
    /// The declared outputs of all rows as [`step`](Self::step) and [`refresh`](Self::refresh) last left them, row after
    /// row.
    #[must_use]
    pub fn outputs(&self) -> &[f64] {
        &self.outputs
    }

    /// Number of output values of each row.
    #[must_use]
    pub fn output_width(&self) -> usize {
        self.plan.width
    }

    /// Where the values of the `output`-th declared output are within a row; `None` if fewer were declared.
    #[must_use]
    pub fn output_range(&self, output: usize) -> Option<Range<usize>> {
        self.plan.ranges.get(output).cloned()
    }

    /// The declared outputs of one row.
    ///
    /// # Errors
    /// [`BatchError::Row`] if there is no such row.
    pub fn output_row(&self, row: usize) -> Result<&[f64], BatchError> {
        self.check_row(row)?;
        Ok(&self.outputs[row * self.plan.width..][..self.plan.width])
    }
}
