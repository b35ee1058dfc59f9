//! When a motion is over, and when it is lost.

use glam::{DQuat, DVec3};
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::termination::{TerminationTerm, termination};
use serde::{Deserialize, Serialize};

use super::super::resolve;
use super::{MotionReference, Pursuit};

/// Fires where `error` is beyond `limit`.
fn beyond(
    context: &BuildContext<'_>,
    command: &str,
    limit: f64,
    error: impl Fn(&Pursuit<'_>) -> f64 + Send + Sync + 'static,
) -> Result<Box<dyn TerminationTerm>, BuildError> {
    let reference = MotionReference::of(context, command)?;
    let limit = resolve::positive("limit", limit)?;
    Ok(termination(move |row| error(&reference.pursuit(row)).abs() > limit))
}

/// The frame to match is the last of its clip. As a time-out, since the robot has done nothing wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipEnd {
    /// Name of the motion command.
    pub command: String,
}

impl TermParams<dyn TerminationTerm> for ClipEnd {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        Ok(termination(move |row| {
            let frame = reference.frame_index(row.task(reference.frame)[0]);
            frame >= reference.clips.last_frames()[frame] as usize
        }))
    }
}

/// The heights of the anchors of robot and motion differ by more than a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorHeightError {
    /// Name of the motion command.
    pub command: String,
    /// Greatest difference, m.
    pub limit: f64,
}

impl TermParams<dyn TerminationTerm> for AnchorHeightError {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        beyond(context, &self.command, self.limit, |pursuit| {
            let anchor = pursuit.anchor();
            pursuit.motion_position(anchor).z - pursuit.position(anchor).z
        })
    }
}

/// The tilts of the anchors of robot and motion differ by more than a limit: the difference of the z components of the direction
/// of gravity, a unit vector, in the two frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnchorTiltError {
    /// Name of the motion command.
    pub command: String,
    /// Greatest difference, between 0 and 2.
    pub limit: f64,
}

impl TermParams<dyn TerminationTerm> for AnchorTiltError {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        beyond(context, &self.command, self.limit, |pursuit| {
            let anchor = pursuit.anchor();
            let gravity = |frame: DQuat| (frame.conjugate() * DVec3::NEG_Z).z;
            gravity(pursuit.motion_orientation(anchor)) - gravity(pursuit.orientation(anchor))
        })
    }
}

/// The height of any of some bodies differs from that of its [relative target](super) by more than a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyHeightError {
    /// Name of the motion command.
    pub command: String,
    /// The bodies, which the command tracks.
    pub bodies: Vec<String>,
    /// Greatest difference, m.
    pub limit: f64,
}

impl TermParams<dyn TerminationTerm> for BodyHeightError {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let reference = MotionReference::of(context, &self.command)?;
        let limit = resolve::positive("limit", self.limit)?;
        let tracked = reference.clips.bodies();
        let find = |name: &String| {
            tracked.iter().position(|body| body == name).ok_or_else(|| {
                let message = format!("the command does not track `{name}`; it tracks {}", tracked.join(", "));
                resolve::impossible("bodies", message)
            })
        };
        let bodies = self.bodies.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(termination(move |row| {
            let pursuit = reference.pursuit(row);
            let off = |&body: &usize| (pursuit.relative_position(body).z - pursuit.position(body).z).abs() > limit;
            bodies.iter().any(off)
        }))
    }
}
