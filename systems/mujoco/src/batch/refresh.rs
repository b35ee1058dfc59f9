//! The least that has to be evaluated for outputs to describe a state.

use std::sync::Arc;

use mujoco_rs::mujoco_c::{mjData, mjModel, mjtObj, mjtSensor};

use super::output::Source;
use super::watched::Watched;
use crate::model::array;
use crate::{Model, ObjectKind, Stage, ffi};

/// Stages of MuJoCo's forward dynamics to evaluate.
///
/// What MuJoCo computes in a stage depends only on the stages before it that feed it, so leaving out the others changes
/// nothing: body poses need no mass matrix, and contacts no constraint Jacobian. Where that is not certain (sensors of
/// rarer kinds, deformable bodies), the whole position or velocity stage is run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Refresh {
    position: Position,
    velocity: Velocity,
    position_sensors: bool,
    velocity_sensors: bool,
    /// Everything, accelerations included. Only after a state was written.
    acceleration: bool,
    /// What the sensors look at, if not all of them are evaluated.
    watched: Option<Arc<Watched>>,
}

/// How much of the position stage; each contains those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Position {
    #[default]
    None,
    /// Poses of bodies, geoms and sites.
    Poses,
    /// Centres of mass.
    Masses,
    /// Contacts.
    Contacts,
    /// All of it.
    Whole,
}

/// How much of the velocity stage; each contains those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Velocity {
    #[default]
    None,
    /// Velocities of bodies.
    Bodies,
    /// All of it.
    Whole,
}

impl Refresh {
    /// What the outputs need to be those of a state that was written.
    pub(super) fn for_outputs(model: &Model, sources: &[Source]) -> Self {
        let mut refresh = Self::default();
        for source in sources {
            match *source {
                Source::Qpos | Source::Qvel | Source::Ctrl => {}
                Source::BodyPosition(_)
                | Source::BodyOrientation(_)
                | Source::GeomPosition(_)
                | Source::SitePosition(_) => refresh.need(Position::Poses, Velocity::None),
                Source::BodyLinearVelocity(_) | Source::BodyAngularVelocity(_) => {
                    refresh.need(Position::Masses, Velocity::Bodies);
                }
                Source::Sensor(sensor) => refresh.need_sensor(model, sensor),
            }
        }
        // Deformable bodies have stages of their own, which the cheaper levels leave out.
        if model.raw().nflex > 0 && refresh.position >= Position::Contacts {
            refresh.position = Position::Whole;
        }
        refresh.watched = Watched::new(model, sources).map(Arc::new);
        refresh
    }

    /// What is left to evaluate when acceleration-dependent values may stay those of the last physics step.
    pub(super) fn without_acceleration(self) -> Self {
        Self { acceleration: false, ..self }
    }

    /// As this, with the whole position and velocity stages.
    pub(super) fn with_whole_stages(self) -> Self {
        Self { position: Position::Whole, velocity: Velocity::Whole, ..self }
    }

    /// As this, with all position and velocity sensors.
    pub(super) fn with_sensors(self) -> Self {
        Self { position_sensors: true, velocity_sensors: true, acceleration: false, watched: None, ..self }
    }

    /// As this, without sensors.
    pub(super) fn without_sensors(self) -> Self {
        Self { position_sensors: false, velocity_sensors: false, acceleration: false, ..self }
    }

    /// Whether some outputs depend on accelerations.
    pub(super) fn needs_acceleration(&self) -> bool {
        self.acceleration
    }

    fn need(&mut self, position: Position, velocity: Velocity) {
        self.position = self.position.max(position);
        self.velocity = self.velocity.max(velocity);
    }

    fn need_sensor(&mut self, model: &Model, sensor: usize) {
        // The plan reports a sensor that does not exist.
        let Some(stage) = model.sensors().nth(sensor).map(|sensor| sensor.stage) else {
            return;
        };
        match stage {
            Stage::Position => {
                self.position_sensors = true;
                self.need(position_of(model, sensor), Velocity::None);
            }
            Stage::Velocity => {
                self.velocity_sensors = true;
                let velocity = velocity_of(model, sensor);
                let position = match velocity {
                    Velocity::None => Position::None,
                    Velocity::Bodies => Position::Masses,
                    Velocity::Whole => Position::Whole,
                };
                self.need(position, velocity);
            }
            Stage::None | Stage::Acceleration => self.acceleration = true,
        }
    }

    /// Evaluates a row.
    ///
    /// # Safety
    /// `model` and `data` are valid and belong together. The call is made in a batch's row callback, by frames that have
    /// nothing to destroy.
    pub(super) unsafe fn run(&self, model: *const mjModel, data: *mut mjData) {
        // SAFETY: valid by this function's contract. MuJoCo leaves by `longjmp` when it raises an error; neither this
        // frame nor, by contract, those above it hold anything that would have to be destroyed.
        unsafe {
            forget_evaluated(data);
            if self.acceleration {
                ffi::mj_forward(model, data);
                return;
            }
            let narrowed;
            let (whole, model) = match &self.watched {
                Some(watched)
                    if self.position >= Position::Contacts || self.position_sensors || self.velocity_sensors =>
                {
                    narrowed = watched.narrow(model);
                    (model, &raw const narrowed)
                }
                _ => (model, model),
            };
            if self.position == Position::Whole {
                ffi::mj_fwdPosition(whole, data);
            } else {
                if self.position >= Position::Poses {
                    ffi::mj_kinematics(model, data);
                }
                if self.position >= Position::Masses {
                    ffi::mj_comPos(model, data);
                }
                if self.position >= Position::Contacts {
                    ffi::mj_collision(model, data);
                }
            }
            if self.position_sensors {
                ffi::mj_sensorPos(model, data);
            }
            match self.velocity {
                Velocity::None => {}
                Velocity::Bodies => ffi::mj_comVel(model, data),
                Velocity::Whole => ffi::mj_fwdVelocity(whole, data),
            }
            if self.velocity_sensors {
                ffi::mj_sensorVel(model, data);
            }
        }
    }
}

/// Makes MuJoCo evaluate what it evaluates on demand, once for a state, anew: energies, velocities and momenta of
/// subtrees, and forces between bodies. What the data holds of them may be another row's, or an older state's.
///
/// # Safety
/// `data` is valid, and nothing else accesses it.
pub(super) unsafe fn forget_evaluated(data: *mut mjData) {
    // SAFETY: valid by this function's contract.
    unsafe {
        (*data).flg_energypos = false;
        (*data).flg_energyvel = false;
        (*data).flg_subtreevel = false;
        (*data).flg_rnepost = false;
    }
}

/// What a position sensor reads.
fn position_of(model: &Model, sensor: usize) -> Position {
    let kind = Kind::of(model, sensor);
    if kind.is_in(READ_POSES) && !kind.camera {
        Position::Poses
    } else if kind.is_in(&[mjtSensor::mjSENS_SUBTREECOM]) {
        Position::Masses
    } else if kind.is_in(&[mjtSensor::mjSENS_CONTACT]) {
        Position::Contacts
    } else if kind.is_in(&[mjtSensor::mjSENS_JOINTPOS, mjtSensor::mjSENS_BALLQUAT, mjtSensor::mjSENS_CLOCK]) {
        Position::None
    } else {
        Position::Whole
    }
}

/// What a velocity sensor reads.
fn velocity_of(model: &Model, sensor: usize) -> Velocity {
    let kind = Kind::of(model, sensor);
    if kind.is_in(READ_BODIES) && !kind.camera {
        Velocity::Bodies
    } else if kind.is_in(&[mjtSensor::mjSENS_JOINTVEL, mjtSensor::mjSENS_BALLANGVEL]) {
        Velocity::None
    } else {
        Velocity::Whole
    }
}

/// Position sensors that read the poses of bodies, geoms and sites.
const READ_POSES: &[mjtSensor] = &[
    mjtSensor::mjSENS_MAGNETOMETER,
    mjtSensor::mjSENS_FRAMEPOS,
    mjtSensor::mjSENS_FRAMEQUAT,
    mjtSensor::mjSENS_FRAMEXAXIS,
    mjtSensor::mjSENS_FRAMEYAXIS,
    mjtSensor::mjSENS_FRAMEZAXIS,
];

/// Velocity sensors that read the velocities of bodies.
const READ_BODIES: &[mjtSensor] = &[
    mjtSensor::mjSENS_VELOCIMETER,
    mjtSensor::mjSENS_GYRO,
    mjtSensor::mjSENS_FRAMELINVEL,
    mjtSensor::mjSENS_FRAMEANGVEL,
];

/// What a sensor measures.
struct Kind {
    sensor: i32,
    /// Whether a camera's pose is read, which is not among the poses of bodies, geoms and sites.
    camera: bool,
}

impl Kind {
    fn of(model: &Model, sensor: usize) -> Self {
        let (raw, count) = (model.raw(), model.count(ObjectKind::Sensor));
        // SAFETY: arrays of the model with one `int` for each sensor.
        let (kinds, objects, references) = unsafe {
            (array(raw.sensor_type, count), array(raw.sensor_objtype, count), array(raw.sensor_reftype, count))
        };
        let camera = mjtObj::mjOBJ_CAMERA as i32;
        Self { sensor: kinds[sensor], camera: objects[sensor] == camera || references[sensor] == camera }
    }

    fn is_in(&self, sensors: &[mjtSensor]) -> bool {
        sensors.iter().any(|&sensor| sensor as i32 == self.sensor)
    }
}
