//! A pose for a body to reach, drawn uniformly.

use glam::{DQuat, DVec3};
use manege_components::{Draws, rotation};
use serde::{Deserialize, Serialize};

use super::{CommandRow, CommandTerm, checked_range};
use crate::backend::Output;
use crate::build::{BuildContext, BuildError};
use crate::config::TermParams;
use crate::handles::StateSlice;
use crate::tunable::TunableRange;

/// Draws a pose for a body in the frame of the floating root: 7 values, position x, y, z in m, then a unit quaternion
/// `wxyz` with w ≥ 0.
///
/// The orientation is Rz(yaw)·Ry(pitch)·Rx(roll) of three angles drawn uniformly. The pose moves with the root.
///
/// The metrics `position_error` (m) and `orientation_error` (rad, the angle of the rotation between the two, `0..=π`)
/// are those of the body against the pose in the episode's last control step. Curricula may change the six ranges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformPoseCommand {
    /// Name of the body that is to reach the pose.
    pub body: String,
    /// Range of the position along the root's x axis, m.
    pub pos_x: [f64; 2],
    /// Range of the position along the root's y axis, m.
    pub pos_y: [f64; 2],
    /// Range of the position along the root's z axis, m.
    pub pos_z: [f64; 2],
    /// Range of the roll, rad.
    pub roll: [f64; 2],
    /// Range of the pitch, rad.
    pub pitch: [f64; 2],
    /// Range of the yaw, rad.
    pub yaw: [f64; 2],
}

struct UniformPose {
    position: [TunableRange; 3],
    angles: [TunableRange; 3],
    root: Frame,
    body: Frame,
}

/// Where the pose of a frame in the world is read.
#[derive(Clone, Copy)]
struct Frame {
    position: StateSlice,
    orientation: StateSlice,
}

impl TermParams<dyn CommandTerm> for UniformPoseCommand {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn CommandTerm>, BuildError> {
        let mut range = |key, range| context.tunable_range(key, checked_range(key, range)?);
        let position = [range("pos_x", self.pos_x)?, range("pos_y", self.pos_y)?, range("pos_z", self.pos_z)?];
        let angles = [range("roll", self.roll)?, range("pitch", self.pitch)?, range("yaw", self.yaw)?];
        let root = Frame { position: context.root_position()?, orientation: context.root_orientation()? };
        let body = context.body(&self.body)?;
        let body = Frame {
            position: context.output(Output::BodyPosition(body))?,
            orientation: context.output(Output::BodyOrientation(body))?,
        };
        Ok(Box::new(UniformPose { position, angles, root, body }))
    }
}

impl UniformPose {
    /// The target's pose in the world.
    fn target(&self, row: &CommandRow<'_>) -> (DVec3, DQuat) {
        let values = [0, 1, 2, 3, 4, 5, 6].map(|i| f64::from(row.values[i]));
        let root = row.view.rotation(self.root.orientation);
        // An override may be any quaternion, and single precision makes none exactly unit.
        let orientation = rotation::from_wxyz(&values[3..]);
        let position = row.view.vec3(self.root.position) + root * rotation::vec3(&values[..3]);
        (position, root * orientation)
    }
}

impl CommandTerm for UniformPose {
    fn width(&self) -> usize {
        7
    }

    fn metrics(&self) -> &[&'static str] {
        &["position_error", "orientation_error"]
    }

    fn resample(&self, row: &mut CommandRow<'_>, draws: &mut Draws) {
        let mut draw = |range: &TunableRange| {
            let [low, high] = range.get();
            draws.uniform(low, high)
        };
        for (value, range) in row.values.iter_mut().zip(&self.position) {
            *value = draw(range) as f32;
        }
        let [roll, pitch, yaw] = [0, 1, 2].map(|i| draw(&self.angles[i]));
        let orientation = rotation::from_roll_pitch_yaw(roll, pitch, yaw);
        // q and −q are the same rotation; one of them is enough for a policy to know.
        let orientation = if orientation.w < 0.0 { -orientation } else { orientation };
        for (value, component) in row.values[3..].iter_mut().zip(rotation::to_wxyz(orientation)) {
            *value = component as f32;
        }
    }

    fn update_metrics(&self, row: &mut CommandRow<'_>) {
        let (position, orientation) = self.target(row);
        row.metrics[0] = position.distance(row.view.vec3(self.body.position)) as f32;
        row.metrics[1] = rotation::angle_between(orientation, row.view.rotation(self.body.orientation)) as f32;
    }
}
