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

/// How far from what the velocities of root and joints give a body's linear velocity may be, m/s. Velocities of centres of mass,
/// which some simulators store, stay below; velocities that are missing or in another frame do not.
const LINEAR_TOLERANCE: f64 = 0.5;

/// The same for angular velocities, rad/s.
const ANGULAR_TOLERANCE: f64 = 1.0;

/// How far from what its positions give the root's velocity may be, m/s. One frame that is out of place is far above.
const ROOT_TOLERANCE: f64 = 1.0;

/// Frames that are looked at for the reason why a motion does not fit.
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
    /// Greatest difference of the root's linear velocity from what its positions in the frames around give, m/s, of all frames.
    pub root_velocity: Worst,
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

    /// Whether the bodies' velocities are those of root and joints, and the root's those of its positions.
    #[must_use]
    pub fn body_velocities_fit(&self) -> bool {
        self.linear_velocity.error <= LINEAR_TOLERANCE
            && self.angular_velocity.error <= ANGULAR_TOLERANCE
            && self.root_velocity.error <= ROOT_TOLERANCE
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
        root_velocity: root_velocity(motion, robot),
        velocity_ratio: velocity_ratio(motion),
        range_violations: range_violations(motion, robot),
    })
}

/// Makes sure that a motion is one of the robot, in every frame.
///
/// # Errors
/// [`MotionError::Misfit`] names the body that is off most, and what the reason looks like: another order of bodies or
/// joints, degrees, quaternions with the scalar last. [`MotionError::Velocities`] if the frame rate or the joints'
/// velocities are wrong, [`MotionError::BodyVelocities`] if those of the bodies are.
pub fn verify(motion: &Motion, robot: &mut Kinematics) -> Result<Fit, MotionError> {
    let fit = measure(motion, robot, None)?;
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
        _ if !fit.body_velocities_fit() => {
            let origin = motion.origin.clone();
            let (what, unit, worst) = if fit.root_velocity.error > ROOT_TOLERANCE {
                ("the velocity of the root is not what its positions give", "m/s", &fit.root_velocity)
            } else if fit.linear_velocity.error > LINEAR_TOLERANCE {
                ("linear velocities are not those of the bodies' frames in the world", "m/s", &fit.linear_velocity)
            } else {
                ("angular velocities are not those of the bodies in the world", "rad/s", &fit.angular_velocity)
            };
            let Worst { error, body, frame } = worst.clone();
            Err(MotionError::BodyVelocities { origin, what, body, frame, error, unit })
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

fn root_velocity(motion: &Motion, robot: &Kinematics) -> Worst {
    let mut worst = Worst { error: 0.0, body: robot.bodies()[0].clone(), frame: 0 };
    for frame in 1..motion.frames - 1 {
        let position = |frame: usize| vec3(&motion.body(frame, 0));
        let expected = (position(frame + 1) - position(frame - 1)) * motion.rate / 2.0;
        let error = (vec3(&motion.body(frame, 0)[7..]) - expected).length();
        if error > worst.error {
            (worst.error, worst.frame) = (error, frame);
        }
    }
    worst
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::synthesize_g1;

    fn synthetic() -> (Kinematics, Motion) {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        (robot, motion)
    }

    fn complaint(motion: &Motion, robot: &mut Kinematics) -> String {
        verify(motion, robot).unwrap_err().to_string()
    }

    /// The body order of Isaac Lab's G1, as its users list it; so is the joint order below.
    const ISAAC_BODIES: [&str; 30] = [
        "pelvis",
        "left_hip_pitch_link",
        "right_hip_pitch_link",
        "waist_yaw_link",
        "left_hip_roll_link",
        "right_hip_roll_link",
        "waist_roll_link",
        "left_hip_yaw_link",
        "right_hip_yaw_link",
        "torso_link",
        "left_knee_link",
        "right_knee_link",
        "left_shoulder_pitch_link",
        "right_shoulder_pitch_link",
        "left_ankle_pitch_link",
        "right_ankle_pitch_link",
        "left_shoulder_roll_link",
        "right_shoulder_roll_link",
        "left_ankle_roll_link",
        "right_ankle_roll_link",
        "left_shoulder_yaw_link",
        "right_shoulder_yaw_link",
        "left_elbow_link",
        "right_elbow_link",
        "left_wrist_roll_link",
        "right_wrist_roll_link",
        "left_wrist_pitch_link",
        "right_wrist_pitch_link",
        "left_wrist_yaw_link",
        "right_wrist_yaw_link",
    ];

    /// Reorders the columns of an array: the column at `i` becomes the one that was at `order[i]`.
    fn permute(values: &mut Vec<f32>, order: &[usize], width: usize) {
        let frames = values.chunks_exact(order.len() * width);
        let permuted = |frame: &[f32]| -> Vec<f32> {
            order.iter().flat_map(|from| frame[from * width..][..width].to_vec()).collect()
        };
        *values = frames.flat_map(permuted).collect();
    }

    fn permute_bodies(motion: &mut Motion, order: &[usize]) {
        permute(&mut motion.body_pos, order, 3);
        permute(&mut motion.body_quat, order, 4);
        permute(&mut motion.body_lin_vel, order, 3);
        permute(&mut motion.body_ang_vel, order, 3);
    }

    fn to_isaac_bodies(motion: &mut Motion, robot: &Kinematics) {
        let order = ISAAC_BODIES.map(|name| robot.body(name).unwrap());
        permute_bodies(motion, &order);
    }

    fn to_isaac_joints(motion: &mut Motion, robot: &Kinematics) {
        // The joint of a body is named like it, but for the torso's, which pitches the waist.
        let joint = |body: &str| {
            let name = body.replace("_link", "_joint").replace("torso", "waist_pitch");
            robot.joints().iter().position(|joint| joint.name == name).unwrap()
        };
        let order: Vec<_> = ISAAC_BODIES[1..].iter().map(|body| joint(body)).collect();
        permute(&mut motion.joint_pos, &order, 1);
        permute(&mut motion.joint_vel, &order, 1);
    }

    fn to_degrees(motion: &mut Motion) {
        motion.joint_pos.iter_mut().for_each(|value| *value = value.to_degrees());
    }

    fn to_scalar_last(motion: &mut Motion) {
        motion.body_quat.as_chunks_mut::<4>().0.iter_mut().for_each(|wxyz| wxyz.rotate_left(1));
    }

    #[test]
    fn the_order_of_another_simulator_is_named() {
        let (mut robot, mut motion) = synthetic();
        to_isaac_bodies(&mut motion, &robot);
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("it looks like bodies in breadth-first order, as Isaac Lab has them"), "{text}");
        assert!(text.contains(" m and ") && text.contains("`"), "{text}");
        to_isaac_joints(&mut motion, &robot);
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("it looks like bodies and joints in breadth-first order"), "{text}");
    }

    #[test]
    fn degrees_and_reordered_quaternions_are_named() {
        let (mut robot, motion) = synthetic();
        let mut degrees = motion.clone();
        to_degrees(&mut degrees);
        let text = complaint(&degrees, &mut robot);
        assert!(text.contains("it looks like joint positions in degrees, not radians"), "{text}");
        let mut scalar_last = motion.clone();
        to_scalar_last(&mut scalar_last);
        let text = complaint(&scalar_last, &mut robot);
        assert!(text.contains("it looks like quaternions `xyzw`, not `wxyz`"), "{text}");
        // And both, with the joints in another order.
        to_scalar_last(&mut degrees);
        to_isaac_joints(&mut degrees, &robot);
        let text = complaint(&degrees, &mut robot);
        for part in ["joints in breadth-first order", "degrees", "`xyzw`"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn swapped_bodies_are_named() {
        let (mut robot, mut motion) = synthetic();
        let mut order: Vec<_> = (0..motion.bodies).collect();
        order.swap(4, 10);
        permute_bodies(&mut motion, &order);
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("body 4 is where `right_knee_link` should be"), "{text}");
    }

    /// The pelvis and the waist's first link have one origin, as have the waist's second and the torso: angles count too.
    #[test]
    fn swapped_bodies_of_one_origin_are_noticed() {
        let (mut robot, mut motion) = synthetic();
        let (pelvis, waist) = (robot.body("pelvis").unwrap(), robot.body("waist_yaw_link").unwrap());
        let mut order: Vec<_> = (0..motion.bodies).collect();
        order.swap(pelvis, waist);
        permute_bodies(&mut motion, &order);
        assert!(matches!(verify(&motion, &mut robot), Err(MotionError::Misfit { .. })));
    }

    #[test]
    fn velocities_of_another_frame_or_of_none_are_refused_and_those_of_centres_of_mass_are_not() {
        let mut robot = Kinematics::g1().unwrap();
        let good = synthesize_g1(&mut robot).unwrap();
        let refused = |change: &dyn Fn(&mut Motion), robot: &mut Kinematics| {
            let mut motion = good.clone();
            change(&mut motion);
            verify(&motion, robot).err().map(|error| error.to_string())
        };
        // The clip is slow: what is wrong is made plain.
        let spin = |motion: &mut Motion| motion.body_ang_vel.iter_mut().for_each(|value| *value *= -8.0);
        assert!(refused(&spin, &mut robot).unwrap().contains("off by"));
        let wrist = good.bodies - 1;
        let slide = |motion: &mut Motion| motion.body_lin_vel[3 * wrist] += 0.6;
        let error = refused(&slide, &mut robot).unwrap();
        assert!(error.contains("linear velocities are not those") && error.contains("frame 0"), "{error}");
        let of_masses = |motion: &mut Motion| motion.body_lin_vel[3 * wrist] += 0.3;
        assert_eq!(refused(&of_masses, &mut robot), None);
        // One frame in which the whole robot is elsewhere.
        let jump = |motion: &mut Motion| {
            let bodies = motion.bodies;
            motion.body_pos[100 * 3 * bodies..101 * 3 * bodies]
                .as_chunks_mut::<3>()
                .0
                .iter_mut()
                .for_each(|p| p[0] += 5.0);
        };
        let error = refused(&jump, &mut robot).unwrap();
        assert!(error.contains("the root is not what its positions give: `pelvis`"), "{error}");
    }

    #[test]
    fn a_single_frame_that_does_not_fit_is_found() {
        let mut robot = Kinematics::g1().unwrap();
        let mut motion = synthesize_g1(&mut robot).unwrap();
        // Between the frames of any even sample of a few.
        let wrist = 3 * (137 * motion.bodies + motion.bodies - 1);
        motion.body_pos[wrist] += 0.5;
        let error = verify(&motion, &mut robot).unwrap_err().to_string();
        assert!(error.contains("at frame 137") && error.contains("0.500 m"), "{error}");
    }

    #[test]
    fn the_worst_body_and_its_distance_are_named() {
        let (mut robot, mut motion) = synthetic();
        let (body, frame) = (robot.body("left_elbow_link").unwrap(), motion.frames - 1);
        motion.body_pos[(frame * motion.bodies + body) * 3] += 0.25;
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("at frame 400, `left_elbow_link` is 0.250 m and 0.000 rad"), "{text}");
    }

    #[test]
    fn other_link_lengths_are_told_from_another_robot() {
        let (mut robot, mut motion) = synthetic();
        let scaled = |motion: &Motion, factor: f32| {
            let mut scaled = motion.clone();
            for frame in scaled.body_pos.chunks_exact_mut(motion.bodies * 3) {
                let root: [f32; 3] = [frame[0], frame[1], frame[2]];
                let values = frame.iter_mut().zip(root.iter().cycle());
                values.for_each(|(value, root)| *value = root + (*value - root) * factor);
            }
            scaled
        };
        let text = complaint(&scaled(&motion, 1.03), &mut robot);
        assert!(text.contains("another version of the robot"), "{text}");
        motion = scaled(&motion, 2.0);
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("another robot"), "{text}");
    }

    #[test]
    fn a_wrong_frame_rate_is_noticed_and_the_right_one_named() {
        let (mut robot, mut motion) = synthetic();
        motion.rate = 30.0;
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("1.667 times") && text.contains("look like those of 50 frames per second"), "{text}");
        motion.rate = 50.0;
        motion.joint_vel.iter_mut().for_each(|value| *value = value.to_degrees());
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("look like degrees per second"), "{text}");
    }

    #[test]
    fn joints_out_of_range_are_measured() {
        let (mut robot, mut motion) = synthetic();
        let knee = robot.joints().iter().position(|joint| joint.name == "left_knee_joint").unwrap();
        let greatest = robot.joints()[knee].range.unwrap()[1];
        for (frame, excess) in [(10, 0.5), (11, 0.125)] {
            motion.joint_pos[frame * motion.joints + knee] = (greatest + excess) as f32;
        }
        let [violation] = &measure(&motion, &mut robot, None).unwrap().range_violations[..] else {
            panic!("one joint is out of its range");
        };
        assert_eq!((violation.joint.as_str(), violation.frames), ("left_knee_joint", 2));
        assert!((violation.worst - 0.5).abs() < 1e-6);
    }

    #[test]
    fn values_too_large_for_the_engine_are_an_error() {
        let (mut robot, mut motion) = synthetic();
        let last = motion.joint_pos.len() - 1;
        motion.joint_pos[last] = 1e30;
        let text = complaint(&motion, &mut robot);
        assert!(text.contains("at frame 400, the robot cannot be placed: unstable position"), "{text}");
    }
}
