//! Whether a motion is one of the robot: its numbers against forward kinematics.

use std::f64::consts::TAU;

use manege_components::rotation::{from_wxyz, vec3};
use serde::Serialize;

use super::diagnosis;
use super::kinematics::STATE;
use super::trajectory::{place_root, place_root_velocity, rotation_vector};
use super::{Kinematics, Motion, MotionError};

/// How far from where root and joints put it a body may be, m. Rounding in files is a hundredth of it.
pub(super) const POSITION_TOLERANCE: f64 = 1e-3;

/// How far from how root and joints orient it a body may be, rad.
pub(super) const ORIENTATION_TOLERANCE: f64 = 0.01;

/// How far from 1 the ratio of joint velocities to differences of joint positions may be.
const VELOCITY_TOLERANCE: f64 = 0.15;

/// Frames that [`verify`] looks at.
const SAMPLE: usize = 16;

/// A greatest error, and where it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worst {
    /// The error.
    pub error: f64,
    /// The body that has it.
    pub body: String,
    /// The frame where it has it.
    pub frame: usize,
}

/// A joint that leaves its range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RangeViolation {
    /// The joint.
    pub joint: String,
    /// Number of frames in which it is out of its range.
    pub frames: usize,
    /// How far it is out at most, rad.
    pub worst: f64,
}

/// How well a motion fits a robot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Number of frames that were compared.
    pub frames: usize,
    /// Greatest distance of a body from where root and joints put it, m.
    pub position: Worst,
    /// Greatest angle of a body from how root and joints orient it, rad.
    pub orientation: Worst,
    /// Greatest difference of a body's linear velocity from what the velocities of root and joints give, m/s.
    pub linear_velocity: Worst,
    /// Greatest difference of a body's angular velocity from what the velocities of root and joints give, rad/s.
    pub angular_velocity: Worst,
    /// Joint velocities divided by differences of joint positions, in the least-squares sense over all frames; 1 if the
    /// frame rate is right. None if the joints hardly move.
    pub velocity_ratio: Option<f64>,
    /// The joints that leave their range in some frame, of all frames.
    pub range_violations: Vec<RangeViolation>,
}

impl Fit {
    /// Whether the bodies are where root and joints put them.
    #[must_use]
    pub fn bodies_fit(&self) -> bool {
        self.position.error <= POSITION_TOLERANCE && self.orientation.error <= ORIENTATION_TOLERANCE
    }

    /// Whether the joints' velocities are those of their positions.
    #[must_use]
    pub fn velocities_fit(&self) -> bool {
        self.velocity_ratio.is_none_or(|ratio| (ratio - 1.0).abs() <= VELOCITY_TOLERANCE)
    }
}

/// Compares a motion with forward kinematics, in every frame or in some that are spread over it.
///
/// # Errors
/// [`MotionError::Pose`] if MuJoCo cannot place the robot as the motion says.
pub fn measure(motion: &Motion, robot: &mut Kinematics, frames: Option<usize>) -> Result<Fit, MotionError> {
    let frames = sample(motion.frames, frames.unwrap_or(motion.frames));
    // Error, body and index in the sample of the greatest error of each kind.
    let mut worst = [(0.0, 0, 0); 4];
    robot
        .evaluate(
            &motion.origin,
            frames.len(),
            |at, qpos, qvel| place(motion, frames[at], qpos, qvel),
            |at, bodies| {
                for (body, expected) in bodies.as_chunks::<STATE>().0.iter().enumerate() {
                    let errors = errors(&motion.body(frames[at], body), expected);
                    for (worst, error) in worst.iter_mut().zip(errors) {
                        if error > worst.0 {
                            *worst = (error, body, at);
                        }
                    }
                }
            },
        )
        .map_err(|error| match error {
            MotionError::Pose { origin, frame, reason } => MotionError::Pose { origin, frame: frames[frame], reason },
            error => error,
        })?;
    let [position, orientation, linear_velocity, angular_velocity] =
        worst.map(|(error, body, at)| Worst { error, body: robot.bodies()[body].clone(), frame: frames[at] });
    Ok(Fit {
        frames: frames.len(),
        position,
        orientation,
        linear_velocity,
        angular_velocity,
        velocity_ratio: velocity_ratio(motion),
        range_violations: range_violations(motion, robot),
    })
}

/// Makes sure, on a sample of frames, that a motion is one of the robot.
///
/// # Errors
/// [`MotionError::Misfit`] names the body that is off most, and what the reason looks like: another order of bodies or
/// joints, degrees, quaternions with the scalar last. [`MotionError::Velocities`] if the frame rate or the velocities are
/// wrong.
pub fn verify(motion: &Motion, robot: &mut Kinematics) -> Result<Fit, MotionError> {
    let fit = measure(motion, robot, Some(SAMPLE))?;
    judge(motion, robot, &fit)?;
    Ok(fit)
}

/// The error of [`verify`], for a fit that is known already.
///
/// # Errors
/// As [`verify`].
pub fn judge(motion: &Motion, robot: &mut Kinematics, fit: &Fit) -> Result<(), MotionError> {
    if !fit.bodies_fit() {
        // The body that is off most in relation to what it may be.
        let by_position = fit.position.error / POSITION_TOLERANCE >= fit.orientation.error / ORIENTATION_TOLERANCE;
        let worst = if by_position { &fit.position } else { &fit.orientation };
        let suspicion = diagnosis::suspect(motion, robot, &sample(motion.frames, SAMPLE))?;
        return Err(MotionError::Misfit {
            origin: motion.origin.clone(),
            body: worst.body.clone(),
            frame: worst.frame,
            position: fit.position.error,
            orientation: fit.orientation.error,
            suspicion,
        });
    }
    match fit.velocity_ratio {
        Some(ratio) if !fit.velocities_fit() => {
            Err(MotionError::Velocities { origin: motion.origin.clone(), ratio, rate: motion.rate })
        }
        _ => Ok(()),
    }
}

/// At most `count` of `frames` frames, evenly spread from the first to the last.
fn sample(frames: usize, count: usize) -> Vec<usize> {
    if count >= frames {
        return (0..frames).collect();
    }
    (0..count).map(|i| i * (frames - 1) / (count - 1).max(1)).collect()
}

/// Writes the pose and velocity that the root and the joints of a frame have.
fn place(motion: &Motion, frame: usize, qpos: &mut [f64], qvel: &mut [f64]) {
    let root = motion.body(frame, 0);
    let orientation = motion.orientation(frame, 0);
    place_root(qpos, vec3(&root), orientation);
    place_root_velocity(qvel, vec3(&root[7..]), orientation.inverse() * vec3(&root[10..]));
    let stored = frame * motion.joints..(frame + 1) * motion.joints;
    let copy = |to: &mut [f64], from: &[f32]| to.iter_mut().zip(from).for_each(|(to, from)| *to = f64::from(*from));
    copy(&mut qpos[7..], &motion.joint_pos[stored.clone()]);
    copy(&mut qvel[6..], &motion.joint_vel[stored]);
}

/// Distance, angle, and differences of linear and angular velocity between two states of a body.
pub(super) fn errors(found: &[f64; STATE], expected: &[f64]) -> [f64; 4] {
    let turn = from_wxyz(&found[3..7]).normalize() * from_wxyz(&expected[3..7]).inverse();
    [
        (vec3(found) - vec3(expected)).length(),
        // A rotation vector is at most half a turn long, but for rounding.
        rotation_vector(turn).length().min(TAU / 2.0),
        (vec3(&found[7..]) - vec3(&expected[7..])).length(),
        (vec3(&found[10..]) - vec3(&expected[10..])).length(),
    ]
}

fn velocity_ratio(motion: &Motion) -> Option<f64> {
    /// Mean square velocity below which rounding counts, (rad/s)².
    const STILL: f64 = 1e-4;
    let (mut of_differences, mut mixed) = (0.0, 0.0);
    for frame in 1..motion.frames - 1 {
        for joint in 0..motion.joints {
            let at = |frame: usize| f64::from(motion.joint_pos[frame * motion.joints + joint]);
            let difference = (at(frame + 1) - at(frame - 1)) * motion.rate / 2.0;
            of_differences += difference * difference;
            mixed += difference * f64::from(motion.joint_vel[frame * motion.joints + joint]);
        }
    }
    let values = motion.frames.saturating_sub(2) * motion.joints;
    (of_differences > STILL * values as f64).then(|| mixed / of_differences)
}

fn range_violations(motion: &Motion, robot: &Kinematics) -> Vec<RangeViolation> {
    /// Files round; this much is no violation, rad.
    const ROUNDING: f64 = 1e-6;
    let mut violations = Vec::new();
    for (index, joint) in robot.joints().iter().enumerate() {
        let Some([least, greatest]) = joint.range else { continue };
        let (mut frames, mut worst) = (0, 0.0_f64);
        for position in motion.joint_pos.iter().skip(index).step_by(motion.joints) {
            let position = f64::from(*position);
            let excess = (least - position).max(position - greatest);
            if excess > ROUNDING {
                frames += 1;
                worst = worst.max(excess);
            }
        }
        if frames > 0 {
            violations.push(RangeViolation { joint: joint.name.clone(), frames, worst });
        }
    }
    violations
}
