//! What a loaded model contains, in engine-neutral terms.

/// A joint with one degree of freedom. The floating root is not among them.
#[derive(Debug, Clone, PartialEq)]
pub struct JointInfo {
    /// The joint's name.
    pub name: String,
    /// Index into `qpos`.
    pub qpos: usize,
    /// Index into `qvel`.
    pub dof: usize,
    /// Lower and upper limit, rad or m, if the joint is limited.
    pub range: Option<[f64; 2]>,
    /// Index of the actuator that drives the joint, if exactly one does.
    pub actuator: Option<usize>,
}

/// What an actuator makes of its control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActuatorKind {
    /// A position servo: its force is `kp (control - position) - kd velocity`.
    Position,
    /// A velocity servo: its force is `kd (control - velocity)`.
    Velocity,
    /// A motor: its force is in proportion to its control.
    Motor,
    /// Something else, or not known.
    Other,
}

impl ActuatorKind {
    /// What it is called in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Position => "position servo",
            Self::Velocity => "velocity servo",
            Self::Motor => "motor",
            Self::Other => "actuator of another kind",
        }
    }
}

/// An actuator, in control order.
#[derive(Debug, Clone, PartialEq)]
pub struct ActuatorInfo {
    /// The actuator's name.
    pub name: String,
    /// Index into [`ModelInfo::joints`] of the joint it drives, if it drives a joint.
    pub joint: Option<usize>,
    /// What it makes of its control.
    pub kind: ActuatorKind,
    /// Position gain, N·m/rad.
    pub kp: f64,
    /// Velocity gain, N·m·s/rad.
    pub kd: f64,
    /// Least and greatest force, N·m, if limited.
    pub force_range: Option<[f64; 2]>,
}

/// A body, the world (index 0) included.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyInfo {
    /// The body's name.
    pub name: String,
    /// Mass, kg.
    pub mass: f64,
    /// Centre of mass in the body's frame, m.
    pub com: [f64; 3],
    /// Diagonal inertia about the principal axes, kg·m².
    pub inertia: [f64; 3],
}

/// A sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct SensorInfo {
    /// The sensor's name.
    pub name: String,
    /// Number of values.
    pub dim: usize,
}

/// A named state stored in the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyframe {
    /// The keyframe's name.
    pub name: String,
    /// Generalised positions, `nq` values.
    pub qpos: Vec<f64>,
    /// Generalised velocities, `nv` values.
    pub qvel: Vec<f64>,
}

/// The value of an engine option, for display.
#[derive(Debug, Clone, PartialEq)]
pub enum OptionValue {
    /// A whole number or a set of flags.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Several numbers.
    Numbers(Vec<f64>),
    /// A choice by name.
    Text(String),
}

/// Names, sizes and defaults of a loaded model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelInfo {
    /// Length of `qpos`.
    pub nq: usize,
    /// Length of `qvel`.
    pub nv: usize,
    /// Number of actuators.
    pub nu: usize,
    /// Physics step, s.
    pub timestep: f64,
    /// Index of the body that carries the floating root, if the model has one.
    pub floating_root: Option<usize>,
    /// Joints with one degree of freedom, in model order.
    pub joints: Vec<JointInfo>,
    /// Actuators, in control order.
    pub actuators: Vec<ActuatorInfo>,
    /// Bodies, the world first.
    pub bodies: Vec<BodyInfo>,
    /// Geom names; unnamed geoms have an empty name.
    pub geoms: Vec<String>,
    /// Default sliding, torsional and rolling friction of each geom, `geoms × 3`.
    pub geom_friction: Vec<f64>,
    /// Default armature of each degree of freedom, kg·m², `nv` values.
    pub dof_armature: Vec<f64>,
    /// Default damping of each degree of freedom, N·m·s/rad, `nv` values.
    pub dof_damping: Vec<f64>,
    /// Default friction loss of each degree of freedom, N·m, `nv` values.
    pub dof_friction_loss: Vec<f64>,
    /// Default gravity in the world frame, m/s².
    pub gravity: [f64; 3],
    /// Site names.
    pub sites: Vec<String>,
    /// Sensors.
    pub sensors: Vec<SensorInfo>,
    /// The model's reference configuration, `nq` values.
    pub default_qpos: Vec<f64>,
    /// Named states.
    pub keyframes: Vec<Keyframe>,
    /// Every effective solver option by the engine's own name, in the engine's order.
    pub options: Vec<(String, OptionValue)>,
}
