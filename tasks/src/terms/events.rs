//! Event terms.

use glam::DVec3;
use manege_components::{Draws, rotation};
use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{ConfigError, TermParams};
use manege_systems::managers::event::{EventRow, EventTerm};
use manege_systems::tunable::TunableRange;
use serde::{Deserialize, Serialize};

/// Least and greatest value of a uniform draw.
pub type Range = [f64; 2];

fn check(ranges: &[(&str, Range)]) -> Result<(), BuildError> {
    match ranges.iter().find(|(_, [low, high])| !(low <= high && low.is_finite() && high.is_finite())) {
        None => Ok(()),
        Some((path, [low, high])) => Err(ConfigError::Impossible {
            path: (*path).to_owned(),
            message: format!("[{low}, {high}] is an empty range"),
        }
        .into()),
    }
}

/// Six ranges: along the axes (m or m/s) and about them (rad or rad/s).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SixRanges {
    /// Along x.
    pub x: Range,
    /// Along y.
    pub y: Range,
    /// Along z.
    pub z: Range,
    /// About x.
    pub roll: Range,
    /// About y.
    pub pitch: Range,
    /// About z.
    pub yaw: Range,
}

impl SixRanges {
    /// Nothing varies.
    pub const ZERO: Self =
        Self { x: [0.0; 2], y: [0.0; 2], z: [0.0; 2], roll: [0.0; 2], pitch: [0.0; 2], yaw: [0.0; 2] };

    /// All six vary by up to `limit` in either direction.
    #[must_use]
    pub const fn symmetric(limit: f64) -> Self {
        let range = [-limit, limit];
        Self { x: range, y: range, z: range, roll: range, pitch: range, yaw: range }
    }

    /// Checks the ranges, and makes each tunable under `key` and its own name.
    pub(crate) fn tunable(&self, key: &str, context: &mut BuildContext<'_>) -> Result<SixTunable, BuildError> {
        let Self { x, y, z, roll, pitch, yaw } = *self;
        check(&[("x", x), ("y", y), ("z", z), ("roll", roll), ("pitch", pitch), ("yaw", yaw)])?;
        let mut tunable = |name: &str, range| context.tunable_range(&format!("{key}.{name}"), range);
        Ok(SixTunable([
            tunable("x", x)?,
            tunable("y", y)?,
            tunable("z", z)?,
            tunable("roll", roll)?,
            tunable("pitch", pitch)?,
            tunable("yaw", yaw)?,
        ]))
    }
}

/// Six ranges that curricula may change.
pub(crate) struct SixTunable([TunableRange; 6]);

impl SixTunable {
    /// Draws the values along the axes, then those about them.
    pub(crate) fn draw(&self, draws: &mut Draws) -> (DVec3, DVec3) {
        let [x, y, z, roll, pitch, yaw] = self.0.each_ref().map(|range| {
            let [low, high] = range.get();
            draws.uniform(low, high)
        });
        (DVec3::new(x, y, z), DVec3::new(roll, pitch, yaw))
    }
}

/// Puts the whole robot into its default configuration, at rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetSceneToDefault {}

struct SceneToDefault {
    qpos: Vec<f64>,
}

impl TermParams<dyn EventTerm> for ResetSceneToDefault {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(SceneToDefault { qpos: context.default_qpos().to_vec() }))
    }
}

impl EventTerm for SceneToDefault {
    fn apply(&self, row: &mut EventRow<'_>) {
        row.staged.qpos_mut().copy_from_slice(&self.qpos);
        row.staged.qvel_mut().fill(0.0);
    }
}

/// Moves the floating root from its default pose: position += (x, y, z); orientation = default · Rz·Ry·Rx; and gives it a
/// velocity, linear and angular in the world frame. Curricula may change the ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRootUniform {
    /// Displacement, m and rad.
    pub pose: SixRanges,
    /// Velocity, m/s and rad/s.
    pub velocity: SixRanges,
}

struct ResetRoot {
    pose: SixTunable,
    velocity: SixTunable,
}

impl TermParams<dyn EventTerm> for ResetRootUniform {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        context.root_body()?;
        let pose = self.pose.tunable("pose", context)?;
        let velocity = self.velocity.tunable("velocity", context)?;
        Ok(Box::new(ResetRoot { pose, velocity }))
    }
}

impl EventTerm for ResetRoot {
    fn apply(&self, row: &mut EventRow<'_>) {
        let (shift, turn) = self.pose.draw(&mut row.draws);
        let (linear, angular) = self.velocity.draw(&mut row.draws);
        let mut root = row.staged.root();
        root.position += shift;
        root.orientation *= rotation::from_roll_pitch_yaw(turn.x, turn.y, turn.z);
        root.linear_velocity = linear;
        root.angular_velocity = angular;
        row.staged.set_root(root);
    }
}

/// How a drawn number changes a compiled one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It takes its place.
    Abs,
    /// It is added to it.
    Add,
    /// It multiplies it.
    Scale,
}

impl Operation {
    fn apply(self, default: f64, drawn: f64) -> f64 {
        match self {
            Self::Abs => drawn,
            Self::Add => default + drawn,
            Self::Scale => default * drawn,
        }
    }
}

/// Varies the gains of every position actuator, each on its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeGains {
    /// Position gain, N·m/rad, or what changes it.
    pub kp: Range,
    /// Velocity gain, N·m·s/rad, or what changes it.
    pub kd: Range,
    /// How the draws change the compiled gains.
    pub operation: Operation,
}

impl TermParams<dyn EventTerm> for RandomizeGains {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        check(&[("kp", self.kp), ("kd", self.kd)])?;
        context.field(ModelField::ActuatorKp)?;
        context.field(ModelField::ActuatorKd)?;
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for RandomizeGains {
    fn apply(&self, row: &mut EventRow<'_>) {
        let EventRow { staged, draws, .. } = row;
        for (field, [low, high]) in [(ModelField::ActuatorKp, self.kp), (ModelField::ActuatorKd, self.kd)] {
            let (defaults, values) = staged.field(field);
            for (value, &default) in values.iter_mut().zip(defaults) {
                *value = self.operation.apply(default, draws.uniform(low, high));
            }
        }
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Least mass that a body may be given, kg.
const MIN_MASS: f64 = 1e-6;

/// Varies the mass of a body; its inertia stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeBodyMass {
    /// Name of the body.
    pub body: String,
    /// Mass, kg, or what changes it.
    pub range: Range,
    /// How the draw changes the compiled mass.
    pub operation: Operation,
}

struct BodyMass {
    body: usize,
    range: Range,
    operation: Operation,
}

impl TermParams<dyn EventTerm> for RandomizeBodyMass {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        check(&[("range", self.range)])?;
        context.field(ModelField::BodyMass)?;
        Ok(Box::new(BodyMass { body: context.body(&self.body)?, range: self.range, operation: self.operation }))
    }
}

impl EventTerm for BodyMass {
    fn apply(&self, row: &mut EventRow<'_>) {
        let drawn = row.draws.uniform(self.range[0], self.range[1]);
        let (defaults, values) = row.staged.field(ModelField::BodyMass);
        values[self.body] = self.operation.apply(defaults[self.body], drawn).max(MIN_MASS);
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Moves the centre of mass of a body, in the body's frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeBodyCom {
    /// Name of the body.
    pub body: String,
    /// Displacement along x, m.
    pub x: Range,
    /// Displacement along y, m.
    pub y: Range,
    /// Displacement along z, m.
    pub z: Range,
}

struct BodyCom {
    body: usize,
    ranges: [Range; 3],
}

impl TermParams<dyn EventTerm> for RandomizeBodyCom {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        check(&[("x", self.x), ("y", self.y), ("z", self.z)])?;
        context.field(ModelField::BodyCom)?;
        Ok(Box::new(BodyCom { body: context.body(&self.body)?, ranges: [self.x, self.y, self.z] }))
    }
}

impl EventTerm for BodyCom {
    fn apply(&self, row: &mut EventRow<'_>) {
        let EventRow { staged, draws, .. } = row;
        let (defaults, values) = staged.field(ModelField::BodyCom);
        for (axis, [low, high]) in self.ranges.into_iter().enumerate() {
            let place = 3 * self.body + axis;
            values[place] = defaults[place] + draws.uniform(low, high);
        }
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Sets gravity in the world frame, m/s².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomizeGravity {
    /// Component along x.
    pub x: Range,
    /// Component along y.
    pub y: Range,
    /// Component along z.
    pub z: Range,
}

impl TermParams<dyn EventTerm> for RandomizeGravity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        check(&[("x", self.x), ("y", self.y), ("z", self.z)])?;
        context.field(ModelField::Gravity)?;
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for RandomizeGravity {
    fn apply(&self, row: &mut EventRow<'_>) {
        let EventRow { staged, draws, .. } = row;
        let (_, gravity) = staged.field(ModelField::Gravity);
        for (value, [low, high]) in gravity.iter_mut().zip([self.x, self.y, self.z]) {
            *value = draws.uniform(low, high);
        }
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Pushes the robot by adding to the floating root's velocity, linear and angular in the world frame. Curricula may change
/// the ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushBySettingVelocity {
    /// What is added, m/s and rad/s.
    pub velocity: SixRanges,
}

struct Push {
    velocity: SixTunable,
}

impl TermParams<dyn EventTerm> for PushBySettingVelocity {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        context.root_body()?;
        Ok(Box::new(Push { velocity: self.velocity.tunable("velocity", context)? }))
    }
}

impl EventTerm for Push {
    fn apply(&self, row: &mut EventRow<'_>) {
        let (linear, angular) = self.velocity.draw(&mut row.draws);
        let mut root = row.staged.root();
        root.linear_velocity += linear;
        root.angular_velocity += angular;
        row.staged.set_root(root);
    }

    fn randomizes(&self) -> bool {
        true
    }
}
