//! Observations of a motion that is followed, all in the frame of the robot's anchor body.
//!
//! Orientations are given by six numbers, the first two columns of their rotation matrix, row by row:
//! `M00 M01 M10 M11 M20 M21` (Zhou et al. 2019).

use glam::{DMat3, DQuat};
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::observation::{ObservationTerm, observation};
use serde::{Deserialize, Serialize};

use super::MotionReference;

/// The first two columns of a rotation's matrix, row by row.
fn six_numbers(rotation: DQuat) -> [f32; 6] {
    let DMat3 { x_axis: x, y_axis: y, .. } = DMat3::from_quat(rotation);
    [x.x, y.x, x.y, y.y, x.z, y.z].map(|value| value as f32)
}

/// Where the motion's anchor is, seen from the robot's, m (3 values).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotionAnchorPosition {
    /// Name of the motion command.
    pub command: String,
}

impl TermParams<dyn ObservationTerm> for MotionAnchorPosition {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        Ok(observation(3, move |row, out| {
            let pursuit = reference.pursuit(row);
            let anchor = pursuit.anchor();
            let apart = pursuit.motion_position(anchor) - pursuit.position(anchor);
            let seen = pursuit.orientation(anchor).conjugate() * apart;
            out.copy_from_slice(&seen.as_vec3().to_array());
        }))
    }
}

/// How the motion's anchor is turned, seen from the robot's (6 values).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotionAnchorOrientation {
    /// Name of the motion command.
    pub command: String,
}

impl TermParams<dyn ObservationTerm> for MotionAnchorOrientation {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        Ok(observation(6, move |row, out| {
            let pursuit = reference.pursuit(row);
            let anchor = pursuit.anchor();
            let seen = pursuit.orientation(anchor).conjugate() * pursuit.motion_orientation(anchor);
            out.copy_from_slice(&six_numbers(seen));
        }))
    }
}

/// Where the robot's tracked bodies are, seen from its anchor, m (3 values each).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyPositions {
    /// Name of the motion command.
    pub command: String,
}

impl TermParams<dyn ObservationTerm> for BodyPositions {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        Ok(observation(3 * reference.bodies(), move |row, out| {
            let pursuit = reference.pursuit(row);
            let anchor = pursuit.anchor();
            let (origin, into_anchor) = (pursuit.position(anchor), pursuit.orientation(anchor).conjugate());
            for (body, out) in pursuit.bodies().zip(out.as_chunks_mut().0) {
                *out = (into_anchor * (pursuit.position(body) - origin)).as_vec3().to_array();
            }
        }))
    }
}

/// How the robot's tracked bodies are turned, seen from its anchor (6 values each).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyOrientations {
    /// Name of the motion command.
    pub command: String,
}

impl TermParams<dyn ObservationTerm> for BodyOrientations {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        Ok(observation(6 * reference.bodies(), move |row, out| {
            let pursuit = reference.pursuit(row);
            let into_anchor = pursuit.orientation(pursuit.anchor()).conjugate();
            for (body, out) in pursuit.bodies().zip(out.as_chunks_mut().0) {
                *out = six_numbers(into_anchor * pursuit.orientation(body));
            }
        }))
    }
}
