//! What can be wrong with a motion.

use std::io;
use std::path::PathBuf;

use manege_mujoco::{BatchError, ModelError};

use super::csv::Dialect;
use super::diagnosis::Suspicion;
use crate::npz::NpzError;

/// Why a motion cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MotionError {
    /// The `.npz` file is damaged, or lacks an array, or one has an unusable shape, type or value.
    #[error(transparent)]
    Npz(#[from] NpzError),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The robot's model cannot be loaded.
    #[error("the robot's model: {0}")]
    Model(#[from] ModelError),
    /// The physics engine does not take the robot.
    #[error("the robot's model: {0}")]
    Batch(#[from] BatchError),
    /// The model is none that motions describe.
    #[error("motions are of robots with a floating base and joints of one degree of freedom: {0}")]
    Robot(String),
    /// A body that the robot does not have.
    #[error("the robot has no body `{name}`{}", hint(nearest.as_deref()))]
    UnknownBody {
        /// The name given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// The motion is of a robot with other parts.
    #[error("{origin} is not of this robot: it has {found} {what}, where the robot has {expected}")]
    OtherRobot {
        /// Where the motion is from.
        origin: String,
        /// What is counted: `joints` or `bodies`.
        what: &'static str,
        /// How many the motion has.
        found: usize,
        /// How many the robot has.
        expected: usize,
    },
    /// The first of one body too many is not the world.
    #[error(
        "{origin} has one body more than the robot, but the first is no world: at frame {frame} it is not at the origin"
    )]
    NoWorld {
        /// Where the motion is from.
        origin: String,
        /// The frame.
        frame: usize,
    },
    /// The motion is too short or too long.
    #[error("{origin} has {frames} frames; a motion has from 2 to {limit}")]
    Length {
        /// Where the motion is from.
        origin: String,
        /// Its number of frames.
        frames: usize,
        /// The greatest number allowed.
        limit: usize,
    },
    /// A library without motions.
    #[error("no motion was given")]
    NoMotion,
    /// A frame rate that cannot be.
    #[error("{origin}: {rate} frames per second is no frame rate; one is from 1 to 1000")]
    Rate {
        /// Where the motion is from.
        origin: String,
        /// The frame rate found, Hz.
        rate: f64,
    },
    /// The frame rate is not the one asked for, and resampling was not.
    #[error(
        "{origin} has {found} frames per second, but {wanted} are needed, one for each control step; \
         `manege motion convert` resamples it, or set `resample = true` where the motion is named"
    )]
    OtherRate {
        /// Where the motion is from.
        origin: String,
        /// Its frame rate, Hz.
        found: f64,
        /// The rate asked for, Hz.
        wanted: f64,
    },
    /// A value that is not finite.
    #[error("{origin}: frame {frame} has a value that is not finite")]
    NotFinite {
        /// Where the motion is from.
        origin: String,
        /// The frame.
        frame: usize,
    },
    /// Four numbers that are no rotation.
    #[error("{origin}: at frame {frame}, the quaternion of `{body}` has length {length}, not 1")]
    Quaternion {
        /// Where the motion is from.
        origin: String,
        /// The frame.
        frame: usize,
        /// The body.
        body: String,
        /// Length of the quaternion.
        length: f64,
    },
    /// The bodies are not where the joints put them.
    #[error(
        "{origin} does not fit the robot: at frame {frame}, `{body}` is {position:.3} m and {orientation:.3} rad from \
         where root and joints put it; {suspicion}"
    )]
    Misfit {
        /// Where the motion is from.
        origin: String,
        /// The body that is off most.
        body: String,
        /// The frame where it is.
        frame: usize,
        /// Distance from where it should be, m.
        position: f64,
        /// Angle from how it should be oriented, rad.
        orientation: f64,
        /// What the reason may be.
        suspicion: Suspicion,
    },
    /// The joints' velocities are not those of their positions.
    #[error(
        "{origin}: the joint velocities are {ratio:.3} times what the positions give at {rate} frames per second; {}",
        rate_hint(*ratio, *rate)
    )]
    Velocities {
        /// Where the motion is from.
        origin: String,
        /// Velocities found, divided by those of the positions.
        ratio: f64,
        /// The frame rate that the file states, Hz.
        rate: f64,
    },
    /// Velocities of bodies that belong to another motion, another frame of reference, or none.
    #[error("{origin}: {what}: `{body}` is off by {error:.2} {unit} at frame {frame}")]
    BodyVelocities {
        /// Where the motion is from.
        origin: String,
        /// What is wrong.
        what: &'static str,
        /// The body that is off most.
        body: String,
        /// The frame where it is.
        frame: usize,
        /// By how much, in `unit`.
        error: f64,
        /// m/s or rad/s.
        unit: &'static str,
    },
    /// MuJoCo cannot place the robot.
    #[error("{origin}: at frame {frame}, the robot cannot be placed: {reason}")]
    Pose {
        /// Where the motion is from.
        origin: String,
        /// The frame.
        frame: usize,
        /// What MuJoCo says.
        reason: String,
    },
    /// A text file of a data set whose conventions are not those of the LAFAN1 retargeting.
    #[error("{} is no retargeted LAFAN1 file: {dialect}", path.display())]
    Dialect {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        dialect: Dialect,
    },
    /// A line of a text file that cannot be used.
    #[error("{}, line {line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

pub(super) fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// What the ratio of velocities found to velocities expected suggests.
fn rate_hint(ratio: f64, rate: f64) -> String {
    let true_rate = ratio * rate;
    // Recorders and converters use few frame rates; one of them explains the ratio better than anything else.
    let usual = [24.0, 25.0, 30.0, 50.0, 60.0, 100.0, 120.0, 200.0, 240.0];
    let degrees = 180.0 / std::f64::consts::PI;
    if (ratio / degrees - 1.0).abs() < 0.05 {
        "they look like degrees per second".to_owned()
    } else if let Some(usual) = usual.iter().find(|usual| (true_rate / **usual - 1.0).abs() < 0.03) {
        format!("they look like those of {usual} frames per second")
    } else {
        "the frame rate or the velocities are wrong".to_owned()
    }
}
