//! What a model's objects are, read from the compiled model.

use std::ops::Range;

use mujoco_rs::mujoco_c::{mjtBias, mjtDyn, mjtGain, mjtJoint, mjtStage, mjtTrn};

use super::{Model, ObjectKind};

/// What a joint allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JointKind {
    /// Floating: 3 positions and a unit quaternion `wxyz`; linear velocity in the world frame, angular in the body's.
    Free,
    /// Ball: a unit quaternion `wxyz`; angular velocity in the body's frame.
    Ball,
    /// Sliding: a length in m.
    Slide,
    /// Turning: an angle in rad.
    Hinge,
}

/// A joint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joint<'a> {
    /// Its name, or an empty string.
    pub name: &'a str,
    /// What it allows.
    pub kind: JointKind,
    /// The body that it moves.
    pub body: usize,
    /// Index of its first value in `qpos`.
    pub qpos: usize,
    /// Index of its first value in `qvel`.
    pub dof: usize,
    /// Its limits in rad or m, if it has any.
    pub range: Option<[f64; 2]>,
}

/// An actuator.
#[derive(Debug, Clone, PartialEq)]
pub struct Actuator<'a> {
    /// Its name, or an empty string.
    pub name: &'a str,
    /// Its controls in `ctrl`; most actuators have one.
    pub controls: Range<usize>,
    /// The joint that it drives, if it drives one.
    pub joint: Option<usize>,
    /// Position gain (N·m/rad or N/m) and velocity gain (N·m·s/rad or N·s/m), if it is a position servo: one whose
    /// force is `kp (ctrl − position) − kd velocity`.
    pub position_gains: Option<[f64; 2]>,
    /// How its force follows from its control and the state.
    pub force_law: ForceLaw,
    /// Least and greatest force in N·m or N, if limited.
    pub force_range: Option<[f64; 2]>,
}

/// How an actuator's force follows from its control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ForceLaw {
    /// `kp (ctrl − position) − kd velocity`.
    Position,
    /// `kv (ctrl − velocity)`.
    Velocity,
    /// A constant times `ctrl`.
    Proportional,
    /// Anything else.
    Other,
}

/// A rigid body.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Body<'a> {
    /// Its name, or an empty string.
    pub name: &'a str,
    /// The body that it is attached to; the world is its own parent.
    pub parent: usize,
    /// Mass, kg.
    pub mass: f64,
    /// Centre of mass in the body's frame, m.
    pub com: [f64; 3],
    /// Diagonal inertia about the principal axes, kg·m².
    pub inertia: [f64; 3],
}

/// When in a step a value becomes known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Stage {
    /// Nothing is computed.
    None = mjtStage::mjSTAGE_NONE as i32,
    /// What depends on positions.
    Position = mjtStage::mjSTAGE_POS as i32,
    /// What depends on positions and velocities.
    Velocity = mjtStage::mjSTAGE_VEL as i32,
    /// What depends on accelerations and forces.
    Acceleration = mjtStage::mjSTAGE_ACC as i32,
}

/// A sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensor<'a> {
    /// Its name, or an empty string.
    pub name: &'a str,
    /// Its values in `sensordata`.
    pub data: Range<usize>,
    /// When it is evaluated.
    pub stage: Stage,
}

/// A named state that is part of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keyframe<'a> {
    /// Its name, or an empty string.
    pub name: &'a str,
    /// Generalised positions, `nq` values.
    pub qpos: &'a [f64],
    /// Generalised velocities, `nv` values.
    pub qvel: &'a [f64],
}

/// An array of the compiled model.
///
/// # Safety
/// `pointer` is null, or points to at least `len` values that live as long as `'a`.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    if pointer.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: not null, and long enough and alive by this function's contract.
    unsafe { std::slice::from_raw_parts(pointer, len) }
}

/// An array to write to.
///
/// # Safety
/// `pointer` is null, or points to at least `len` values that live as long as `'a` and are not accessed otherwise.
pub(crate) unsafe fn array_mut<'a, T>(pointer: *mut T, len: usize) -> &'a mut [T] {
    if pointer.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: not null, and long enough, alive and unaliased by this function's contract.
    unsafe { std::slice::from_raw_parts_mut(pointer, len) }
}

/// An index that MuJoCo keeps as `int`, with a negative value for none.
fn index(value: i32) -> Option<usize> {
    usize::try_from(value).ok()
}

impl Model {
    /// The joints in model order, free joints included.
    pub fn joints(&self) -> impl ExactSizeIterator<Item = Joint<'_>> {
        let model = self.as_mujoco_rs();
        let count = self.count(ObjectKind::Joint);
        // SAFETY: an array of the model with one `int` for each joint.
        let kinds = unsafe { array(self.raw().jnt_type, count) };
        (0..count).map(move |id| Joint {
            name: self.name(ObjectKind::Joint, id),
            kind: match kinds[id] {
                kind if kind == mjtJoint::mjJNT_FREE as i32 => JointKind::Free,
                kind if kind == mjtJoint::mjJNT_BALL as i32 => JointKind::Ball,
                kind if kind == mjtJoint::mjJNT_SLIDE as i32 => JointKind::Slide,
                _ => JointKind::Hinge,
            },
            body: index(model.jnt_bodyid()[id]).unwrap_or(0),
            qpos: index(model.jnt_qposadr()[id]).unwrap_or(0),
            dof: index(model.jnt_dofadr()[id]).unwrap_or(0),
            range: model.jnt_limited()[id].then(|| model.jnt_range()[id]),
        })
    }

    /// The actuators in model order.
    pub fn actuators(&self) -> impl ExactSizeIterator<Item = Actuator<'_>> {
        let model = self.as_mujoco_rs();
        let count = self.count(ObjectKind::Actuator);
        // SAFETY: arrays of the model with one `int` for each actuator.
        let (transmissions, gains, biases) = unsafe {
            let raw = self.raw();
            (
                array(raw.actuator_trntype, count),
                array(raw.actuator_gaintype, count),
                array(raw.actuator_biastype, count),
            )
        };
        (0..count).map(move |id| {
            let first = index(model.actuator_ctrladr()[id]).unwrap_or(0);
            let drives_joint =
                [mjtTrn::mjTRN_JOINT as i32, mjtTrn::mjTRN_JOINTINPARENT as i32].contains(&transmissions[id]);
            let (kp, bias) = (model.actuator_gainprm()[id][0], model.actuator_biasprm()[id]);
            let fixed = gains[id] == mjtGain::mjGAIN_FIXED as i32;
            let affine = biases[id] == mjtBias::mjBIAS_AFFINE as i32;
            let servo = fixed && affine && bias[0] == 0.0 && bias[1] == -kp;
            // A filter or an integrator in between makes something else of the control.
            let immediate = model.actuator_dyntype()[id] == mjtDyn::mjDYN_NONE;
            let force_law = match () {
                () if !(fixed && immediate) => ForceLaw::Other,
                () if biases[id] == mjtBias::mjBIAS_NONE as i32 => ForceLaw::Proportional,
                () if affine && bias[0] == 0.0 && bias[1] == 0.0 && bias[2] == -kp => ForceLaw::Velocity,
                () if servo => ForceLaw::Position,
                () => ForceLaw::Other,
            };
            Actuator {
                name: self.name(ObjectKind::Actuator, id),
                controls: first..first + index(model.actuator_ctrlnum()[id]).unwrap_or(0),
                joint: drives_joint.then(|| index(model.actuator_trnid()[id][0])).flatten(),
                // `0 - x` rather than `-x`: no gain is 0, not -0.
                position_gains: servo.then(|| [kp, 0.0 - bias[2]]),
                force_law,
                force_range: model.actuator_forcelimited()[id].then(|| model.actuator_forcerange()[id]),
            }
        })
    }

    /// The bodies in model order, the world first.
    pub fn bodies(&self) -> impl ExactSizeIterator<Item = Body<'_>> {
        let model = self.as_mujoco_rs();
        (0..self.count(ObjectKind::Body)).map(move |id| Body {
            name: self.name(ObjectKind::Body, id),
            parent: index(model.body_parentid()[id]).unwrap_or(0),
            mass: model.body_mass()[id],
            com: model.body_ipos()[id],
            inertia: model.body_inertia()[id],
        })
    }

    /// The sensors in model order.
    pub fn sensors(&self) -> impl ExactSizeIterator<Item = Sensor<'_>> {
        let model = self.as_mujoco_rs();
        let count = self.count(ObjectKind::Sensor);
        // SAFETY: an array of the model with one `int` for each sensor.
        let stages = unsafe { array(self.raw().sensor_needstage, count) };
        (0..count).map(move |id| {
            let first = index(model.sensor_adr()[id]).unwrap_or(0);
            Sensor {
                name: self.name(ObjectKind::Sensor, id),
                data: first..first + index(model.sensor_dim()[id]).unwrap_or(0),
                stage: match stages[id] {
                    stage if stage == Stage::None as i32 => Stage::None,
                    stage if stage == Stage::Position as i32 => Stage::Position,
                    stage if stage == Stage::Velocity as i32 => Stage::Velocity,
                    _ => Stage::Acceleration,
                },
            }
        })
    }

    /// The keyframes in model order.
    pub fn keyframes(&self) -> impl ExactSizeIterator<Item = Keyframe<'_>> {
        let (raw, count, nq, nv) = (self.raw(), self.count(ObjectKind::Keyframe), self.nq(), self.nv());
        // SAFETY: arrays of the model with `nq` and `nv` values for each keyframe.
        let (qpos, qvel) = unsafe { (array(raw.key_qpos, count * nq), array(raw.key_qvel, count * nv)) };
        (0..count).map(move |id| Keyframe {
            name: self.name(ObjectKind::Keyframe, id),
            qpos: &qpos[id * nq..][..nq],
            qvel: &qvel[id * nv..][..nv],
        })
    }

    /// The reference configuration, `nq` values.
    #[must_use]
    pub fn qpos0(&self) -> &[f64] {
        self.as_mujoco_rs().qpos0()
    }

    /// Sliding, torsional and rolling friction of each geom.
    #[must_use]
    pub fn geom_friction(&self) -> &[[f64; 3]] {
        self.as_mujoco_rs().geom_friction()
    }

    /// Armature of each degree of freedom, kg·m² or kg.
    #[must_use]
    pub fn dof_armature(&self) -> &[f64] {
        self.as_mujoco_rs().dof_armature()
    }

    /// Damping of each degree of freedom, N·m·s/rad or N·s/m.
    #[must_use]
    pub fn dof_damping(&self) -> &[f64] {
        self.as_mujoco_rs().dof_damping()
    }

    /// Friction loss of each degree of freedom, N·m or N.
    #[must_use]
    pub fn dof_friction_loss(&self) -> &[f64] {
        self.as_mujoco_rs().dof_frictionloss()
    }
}
