//! MuJoCo as a physics backend.

mod describe;
mod fields;
mod rows;

use std::path::Path;

use manege_mujoco::{BatchOptions, Model, ModelOptions, ObjectKind, Source};

use super::{Backend, BackendBuilder, BackendError, BackendRequest, Feature, Freshness, ModelField, ModelInfo, Output};

pub use manege_mujoco::{Jacobian, SensorSchedule};

/// The engine's name.
const ENGINE: &str = "mujoco";

/// How MuJoCo steps the model. What is not here is as the model's file has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhysicsOptions {
    /// Physics step, s.
    pub timestep: f64,
    /// Storage of the constraint Jacobian. All solve the same problem; sparse is fastest for legged robots.
    pub jacobian: Jacobian,
    /// Whether constraints are solved island by island: extra work for a single robot.
    pub islands: bool,
    /// Whether geom pairs are culled by bounding volume hierarchies: extra work for few geoms.
    pub midphase: bool,
    /// Whether every row keeps a whole `mjData`: a hundred times the memory, and needed by models that use sleep.
    pub persistent: bool,
    /// When sensors are evaluated.
    pub sensors: SensorSchedule,
}

impl PhysicsOptions {
    /// The fastest options for a single legged robot.
    #[must_use]
    pub fn new(timestep: f64) -> Self {
        Self {
            timestep,
            jacobian: Jacobian::Sparse,
            islands: false,
            midphase: false,
            persistent: false,
            sensors: SensorSchedule::Declared,
        }
    }
}

/// A model that MuJoCo has loaded.
#[derive(Debug)]
pub struct MujocoBuilder {
    model: Model,
    info: ModelInfo,
    persistent: bool,
    sensors: SensorSchedule,
}

impl MujocoBuilder {
    /// Loads a model file: MJCF, URDF or MuJoCo's binary format.
    ///
    /// # Errors
    /// [`BackendError::Model`] carries MuJoCo's message; [`BackendError::Unsupported`] names what the model has that the
    /// backend cannot express.
    pub fn load(path: impl AsRef<Path>, options: &PhysicsOptions) -> Result<Self, BackendError> {
        Self::new(Model::load(path).map_err(model_error)?, options)
    }

    /// Compiles an MJCF document.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_xml(xml: &str, options: &PhysicsOptions) -> Result<Self, BackendError> {
        Self::new(Model::from_xml_str(xml).map_err(model_error)?, options)
    }

    /// Compiles the MJCF document called `main` among `files` (name, text), which may include the others by name.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_xml_files(main: &str, files: &[(&str, &str)], options: &PhysicsOptions) -> Result<Self, BackendError> {
        Self::new(Model::from_xml_files(main, files).map_err(model_error)?, options)
    }

    /// Takes a loaded model.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn new(model: Model, options: &PhysicsOptions) -> Result<Self, BackendError> {
        let &PhysicsOptions { timestep, jacobian, islands, midphase, persistent, sensors } = options;
        let model = model
            .with_options(&ModelOptions {
                timestep: Some(timestep),
                jacobian: Some(jacobian),
                islands: Some(islands),
                midphase: Some(midphase),
            })
            .map_err(model_error)?;
        let info = describe::describe(&model)?;
        Ok(Self { model, info, persistent, sensors })
    }

    /// The loaded model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Why the engine cannot do something; `None` if it can.
    fn lacks(&self, feature: Feature) -> Option<String> {
        match feature {
            Feature::Field(field @ (ModelField::ActuatorKp | ModelField::ActuatorKd)) => {
                let other = self.model.actuators().find(|actuator| actuator.position_gains.is_none())?;
                Some(format!("{field:?} per row for actuator `{}`, which is no position servo", other.name))
            }
            Feature::Output(output) => {
                let (kind, index) = object(output)?;
                let count = self.model.count(kind);
                (index >= count).then(|| format!("{kind} {index}: the model has {count}"))
            }
            Feature::Field(_) | Feature::SubstepFeedback | Feature::Freshness(_) | Feature::ExternalWrench => None,
        }
    }

    fn require(&self, feature: Feature) -> Result<(), BackendError> {
        match self.lacks(feature) {
            None => Ok(()),
            Some(feature) => Err(BackendError::Unsupported { engine: ENGINE, feature }),
        }
    }
}

impl BackendBuilder for MujocoBuilder {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn supports(&self, feature: Feature) -> bool {
        self.lacks(feature).is_none()
    }

    fn build(self: Box<Self>, request: &BackendRequest) -> Result<Box<dyn Backend>, BackendError> {
        let outputs = request.outputs.iter().map(|output| Feature::Output(*output));
        let fields = request.fields.iter().map(|field| Feature::Field(*field));
        outputs.chain(fields).try_for_each(|feature| self.require(feature))?;

        let options = BatchOptions {
            rows: request.rows,
            threads: request.threads,
            persistent: self.persistent,
            sensors: self.sensors,
            outputs: request.outputs.iter().map(|output| source(*output)).collect(),
            freshness: match request.freshness {
                Freshness::Fresh => manege_mujoco::Freshness::Fresh,
                Freshness::LastSubstep => manege_mujoco::Freshness::LastSubstep,
            },
        };
        Ok(Box::new(rows::MujocoBackend::new(&self.model, &self.info, &options, &request.fields)?))
    }

    fn save_model(&self, path: &Path) -> Result<(), BackendError> {
        self.model.save_mjb(path).map_err(|error| BackendError::Engine(error.to_string()))
    }
}

/// The object that an output is a quantity of.
fn object(output: Output) -> Option<(ObjectKind, usize)> {
    match output {
        Output::Qpos | Output::Qvel => None,
        Output::BodyPosition(body)
        | Output::BodyOrientation(body)
        | Output::BodyLinearVelocity(body)
        | Output::BodyAngularVelocity(body) => Some((ObjectKind::Body, body)),
        Output::SitePosition(site) => Some((ObjectKind::Site, site)),
        Output::GeomPosition(geom) => Some((ObjectKind::Geom, geom)),
        Output::Sensor(sensor) => Some((ObjectKind::Sensor, sensor)),
    }
}

/// The engine's name for an output. [`ModelInfo`] lists objects in the model's order, so that indices agree.
fn source(output: Output) -> Source {
    match output {
        Output::Qpos => Source::Qpos,
        Output::Qvel => Source::Qvel,
        Output::BodyPosition(body) => Source::BodyPosition(body),
        Output::BodyOrientation(body) => Source::BodyOrientation(body),
        Output::BodyLinearVelocity(body) => Source::BodyLinearVelocity(body),
        Output::BodyAngularVelocity(body) => Source::BodyAngularVelocity(body),
        Output::SitePosition(site) => Source::SitePosition(site),
        Output::GeomPosition(geom) => Source::GeomPosition(geom),
        Output::Sensor(sensor) => Source::Sensor(sensor),
    }
}

fn model_error(error: manege_mujoco::ModelError) -> BackendError {
    BackendError::Model(error.to_string())
}

fn batch_error(error: manege_mujoco::BatchError) -> BackendError {
    use manege_mujoco::BatchError;
    match error {
        BatchError::Row { row, rows } => BackendError::Row { row, rows },
        BatchError::Size { buffer, expected, actual } => BackendError::Size { buffer, expected, actual },
        other => BackendError::Engine(other.to_string()),
    }
}
