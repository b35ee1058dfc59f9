//! The physics engine as the runtime sees it.
//!
//! A [`BackendBuilder`] knows a loaded model and what its engine can do. The managers ask it, while the
//! environment is built, for the [`Output`]s and [`ModelField`]s they need; [`BackendBuilder::build`] then
//! makes a [`Backend`] for a fixed number of rows that delivers exactly those.
//!
//! Nothing here knows a particular engine. Conventions that every backend keeps:
//!
//! - `qpos` is `[x y z qw qx qy qz]` of the floating root (m, unit quaternion) followed by the joints in model
//!   order (rad or m); a model without a floating root has joints only.
//! - `qvel` is the root's linear velocity in the world frame (m/s) and angular velocity in the body frame
//!   (rad/s), followed by the joint velocities.
//! - Quaternions are `wxyz`.
//! - Buffers are row-major, `f64`.

mod error;
mod info;
pub mod mujoco;

pub use error::BackendError;
pub use info::{ActuatorInfo, ActuatorKind, BodyInfo, JointInfo, Keyframe, ModelInfo, OptionValue, SensorInfo};

/// A quantity that a backend copies out after every step, for every row.
///
/// Indices are those of the lists in [`ModelInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Output {
    /// Generalised positions, `nq` values in the backend's `qpos` convention.
    Qpos,
    /// Generalised velocities, `nv` values in the backend's `qvel` convention.
    Qvel,
    /// Position of a body's frame in the world, 3 values, m.
    BodyPosition(usize),
    /// Orientation of a body's frame in the world, 4 values, `wxyz`.
    BodyOrientation(usize),
    /// Linear velocity of a body frame's origin in the world frame, 3 values, m/s.
    BodyLinearVelocity(usize),
    /// Angular velocity of a body in the world frame, 3 values, rad/s.
    BodyAngularVelocity(usize),
    /// Position of a site in the world, 3 values, m.
    SitePosition(usize),
    /// Position of a geom's centre in the world, 3 values, m.
    GeomPosition(usize),
    /// A sensor's reading, in the sensor's own units.
    Sensor(usize),
}

impl Output {
    /// How many values the output has per row.
    #[must_use]
    pub fn width(self, info: &ModelInfo) -> usize {
        match self {
            Self::Qpos => info.nq,
            Self::Qvel => info.nv,
            Self::BodyOrientation(_) => 4,
            Self::BodyPosition(_)
            | Self::BodyLinearVelocity(_)
            | Self::BodyAngularVelocity(_)
            | Self::SitePosition(_)
            | Self::GeomPosition(_) => 3,
            Self::Sensor(sensor) => info.sensors[sensor].dim,
        }
    }
}

/// A model parameter that may differ from row to row.
///
/// Values written are absolute; what they are derived from (the compiled defaults in [`ModelInfo`]) never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ModelField {
    /// Mass of each body, kg (`bodies` values).
    BodyMass,
    /// Centre of mass of each body in the body's frame, m (`bodies × 3` values).
    BodyCom,
    /// Diagonal inertia of each body about its principal axes, kg·m² (`bodies × 3` values).
    BodyInertia,
    /// Armature of each degree of freedom, kg·m² (`nv` values).
    DofArmature,
    /// Damping of each degree of freedom, N·m·s/rad (`nv` values).
    DofDamping,
    /// Friction loss of each degree of freedom, N·m (`nv` values).
    DofFrictionLoss,
    /// Sliding, torsional and rolling friction of each geom (`geoms × 3` values).
    GeomFriction,
    /// Position gain of each position actuator, N·m/rad (`nu` values).
    ActuatorKp,
    /// Velocity gain of each position actuator, N·m·s/rad (`nu` values).
    ActuatorKd,
    /// Gravity in the world frame, m/s² (3 values).
    Gravity,
}

impl ModelField {
    /// How many values the field has per row.
    #[must_use]
    pub fn width(self, info: &ModelInfo) -> usize {
        match self {
            Self::BodyMass => info.bodies.len(),
            Self::BodyCom | Self::BodyInertia => 3 * info.bodies.len(),
            Self::DofArmature | Self::DofDamping | Self::DofFrictionLoss => info.nv,
            Self::GeomFriction => 3 * info.geoms.len(),
            Self::ActuatorKp | Self::ActuatorKd => info.nu,
            Self::Gravity => 3,
        }
    }

    /// The field's values in the compiled model, `width` of them.
    #[must_use]
    pub fn compiled(self, info: &ModelInfo) -> Vec<f64> {
        match self {
            Self::BodyMass => info.bodies.iter().map(|body| body.mass).collect(),
            Self::BodyCom => info.bodies.iter().flat_map(|body| body.com).collect(),
            Self::BodyInertia => info.bodies.iter().flat_map(|body| body.inertia).collect(),
            Self::DofArmature => info.dof_armature.clone(),
            Self::DofDamping => info.dof_damping.clone(),
            Self::DofFrictionLoss => info.dof_friction_loss.clone(),
            Self::GeomFriction => info.geom_friction.clone(),
            Self::ActuatorKp => info.actuators.iter().map(|actuator| actuator.kp).collect(),
            Self::ActuatorKd => info.actuators.iter().map(|actuator| actuator.kd).collect(),
            Self::Gravity => info.gravity.to_vec(),
        }
    }
}

/// When derived quantities (body poses, sensors) are evaluated relative to `qpos` and `qvel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Freshness {
    /// After the last substep: every output describes the state that `qpos` and `qvel` describe.
    ///
    /// Acceleration-dependent sensors (accelerometers, force sensors) are the exception: they keep the value of the
    /// last substep, because a fresh one would cost a whole extra solve.
    #[default]
    Fresh,
    /// As the last substep left them: one substep older than `qpos` and `qvel`. For comparisons.
    LastSubstep,
}

/// What an environment needs of a backend, collected while its managers are built.
#[derive(Debug, Clone, Default)]
pub struct BackendRequest {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Upper bound on threads that run at once, the caller's included, at least 1.
    pub threads: usize,
    /// Quantities to copy out, in buffer order. Row `i` of the output buffer holds them back to back.
    pub outputs: Vec<Output>,
    /// Model parameters that rows will be given values of their own for.
    pub fields: Vec<ModelField>,
    /// Whether controls are recomputed from the state before every substep.
    pub substep_feedback: bool,
    /// Timing of derived outputs.
    pub freshness: Freshness,
}

/// Recomputes one row's controls from its state before a substep.
///
/// Called on the worker thread that steps the row, with no order between rows: an implementation reads what belongs
/// to `row` and nothing else that a step may change.
pub trait SubstepControl: Sync {
    /// Writes the controls for substep `substep` of `row` into `ctrl` (`nu` values, actuator order).
    ///
    /// On entry `ctrl` holds the previous substep's controls, or those of [`StepRequest::controls`] before the first.
    fn control(&self, row: usize, substep: u32, state: SubstepState<'_>, ctrl: &mut [f64]);
}

/// One row's state before a substep.
#[derive(Debug, Clone, Copy)]
pub struct SubstepState<'a> {
    /// Generalised positions, `nq` values.
    pub qpos: &'a [f64],
    /// Generalised velocities, `nv` values.
    pub qvel: &'a [f64],
}

/// One control step for a set of rows.
pub struct StepRequest<'a> {
    /// The rows to step in ascending order; `None` for all.
    pub rows: Option<&'a [u32]>,
    /// Number of substeps, at least 1.
    pub substeps: u32,
    /// Controls of *all* rows, `rows × nu`, actuator order.
    pub controls: &'a [f64],
    /// Recomputes controls before each substep, on the worker threads.
    pub feedback: Option<&'a dyn SubstepControl>,
}

/// What a state write means for the parts of the state that it does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// A new episode: time, controls, applied forces, actuator state and solver warm start are cleared.
    Reset,
    /// A change between steps (a push): everything not given is kept.
    Patch,
}

/// Values of one model parameter for the rows of a [`StateWrite`].
#[derive(Debug, Clone, Copy)]
pub struct FieldWrite<'a> {
    /// Which parameter; it must be one of [`BackendRequest::fields`].
    pub field: ModelField,
    /// `rows.len() × width` values.
    pub values: &'a [f64],
}

/// One batched write of state and model parameters, after which the outputs of those rows are refreshed.
#[derive(Debug, Clone, Copy)]
pub struct StateWrite<'a> {
    /// The rows written, ascending and unique.
    pub rows: &'a [u32],
    /// What happens to the state that is not given.
    pub kind: WriteKind,
    /// `rows.len() × nq` values.
    pub qpos: &'a [f64],
    /// `rows.len() × nv` values.
    pub qvel: &'a [f64],
    /// Model parameters to change on these rows.
    pub fields: &'a [FieldWrite<'a>],
}

/// Forces and torques that act on bodies of rows from outside, from the next physics step on.
///
/// They stay until they are written again, or until a [`WriteKind::Reset`] clears them. Outputs stay as they are.
#[derive(Debug, Clone, Copy)]
pub struct WrenchWrite<'a> {
    /// The rows written, ascending and unique.
    pub rows: &'a [u32],
    /// The bodies written, as indices into [`ModelInfo::bodies`]; what acts on others stays.
    pub bodies: &'a [usize],
    /// Force (N) and torque (N·m) in the world frame at the body's centre of mass, `rows.len() × bodies.len() × 6` values.
    pub values: &'a [f64],
}

/// Why a row's physics cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultReason {
    /// The engine raised an error while it stepped the row.
    EngineError(String),
    /// The engine met a position, velocity or acceleration that is not finite or too large, and reset the row.
    Unstable(&'static str),
    /// The row's control callback panicked.
    Panic(String),
}

impl std::fmt::Display for FaultReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::EngineError(message) => write!(f, "engine error: {message}"),
            Self::Unstable(quantity) => write!(f, "unstable {quantity}"),
            Self::Panic(message) => write!(f, "control callback panicked: {message}"),
        }
    }
}

/// A row whose last call failed. Its state and outputs mean nothing until it is reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    /// The row.
    pub row: u32,
    /// What happened to it.
    pub reason: FaultReason,
}

/// A request that an engine may be unable to honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// An output.
    Output(Output),
    /// A parameter per row.
    Field(ModelField),
    /// Controls recomputed before every substep.
    SubstepFeedback,
    /// A timing of derived outputs.
    Freshness(Freshness),
    /// External forces and torques on bodies.
    ExternalWrench,
}

/// A loaded model, before rows are made of it.
pub trait BackendBuilder: Send {
    /// The engine's name, as in `--json` (`mujoco`).
    fn engine(&self) -> &'static str;

    /// The model's names, sizes and defaults.
    fn info(&self) -> &ModelInfo;

    /// Whether the engine can do something.
    fn supports(&self, feature: Feature) -> bool;

    /// Makes the rows, each in the model's default state with outputs evaluated.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] names the first requested feature that the engine lacks; other variants say why
    /// the engine could not make the rows.
    fn build(self: Box<Self>, request: &BackendRequest) -> Result<Box<dyn Backend>, BackendError>;

    /// Writes the compiled model in the engine's own format.
    ///
    /// # Errors
    /// The file cannot be written, or the engine has no such format.
    fn save_model(&self, path: &std::path::Path) -> Result<(), BackendError>;
}

/// Rows of one model, stepped together.
pub trait Backend: Send + Sync {
    /// Number of rows.
    fn rows(&self) -> usize;

    /// Number of values that the requested outputs have per row.
    fn output_width(&self) -> usize;

    /// The outputs as the last call left them, `rows × output_width`, in the order of [`BackendRequest::outputs`].
    fn outputs(&self) -> &[f64];

    /// Steps rows by one control step in one dispatch, and refreshes their outputs.
    ///
    /// Rows that fail are listed by [`faults`](Self::faults); the others are unaffected.
    ///
    /// # Errors
    /// A buffer of the wrong size or a row that does not exist; nothing was stepped.
    fn step(&mut self, request: StepRequest<'_>) -> Result<(), BackendError>;

    /// Writes rows' state and parameters in one dispatch, and refreshes their outputs.
    ///
    /// # Errors
    /// A buffer of the wrong size, a row that does not exist, or a field that was not requested; nothing was written.
    fn write(&mut self, write: StateWrite<'_>) -> Result<(), BackendError>;

    /// Sets what acts on bodies from outside.
    ///
    /// # Errors
    /// A buffer of the wrong size, or a row or body that does not exist; nothing was written.
    fn apply_wrenches(&mut self, write: WrenchWrite<'_>) -> Result<(), BackendError>;

    /// Appends everything that determines what the rows do next, and the outputs.
    fn save_state(&self, to: &mut Vec<f64>);

    /// Puts back what [`save_state`](Self::save_state) gave, for the same model, number of rows, outputs and fields;
    /// afterwards the rows do what the saved ones would have done, bit for bit.
    ///
    /// # Errors
    /// The numbers are not those of rows like these.
    fn load_state(&mut self, from: &[f64]) -> Result<(), BackendError>;

    /// The rows that failed in the last call, in ascending order.
    fn faults(&self) -> &[RowFault];
}
