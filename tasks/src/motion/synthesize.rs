//! A motion of our own: standing, a squat, swinging arms and a turn on the spot.
//!
//! Pelvis, feet and upper body follow smooth curves, and the legs' joints are solved so that the feet are where they are
//! to be: flat on the floor, or lifted for a step. It is kinematics only: nothing makes sure that a robot could keep its
//! balance.

mod choreography;
mod legs;

use glam::{DQuat, DVec3};

use super::{Kinematics, Motion, MotionError, Trajectory};
use choreography::{DURATION, Figure, UPPER_BODY};
use legs::Legs;

/// Frames per second of the motion that [`synthesize_g1`] makes.
pub const SYNTHETIC_RATE: f64 = 50.0;

/// Height of the origin of a foot that stands on the floor, m: the lowest points of its collision shapes are this much
/// below it.
const SOLE: f64 = 0.035;

/// Joints and positions are multiples of this, rad and m. Last bits of sines, which differ between machines, do not
/// survive it.
const GRID: f64 = 1.0 / (1 << 20) as f64;

/// Components of quaternions are multiples of this.
const QUATERNION_GRID: f64 = 1.0 / (1 << 30) as f64;

/// Makes a motion of the G1: eight seconds of standing, a squat with the arms forward, swinging arms, and a turn to the
/// left by a quarter in six steps. The result is always the same.
///
/// # Errors
/// The robot is not a G1: it lacks a joint, a body or the keyframe `stand`, or its feet do not reach the floor.
pub fn synthesize_g1(robot: &mut Kinematics) -> Result<Motion, MotionError> {
    let joint = |robot: &Kinematics, name: &str| {
        let found = robot.joints().iter().position(|joint| joint.name == name);
        found.ok_or_else(|| MotionError::Robot(format!("the G1 has a joint `{name}`, but the model has not")))
    };
    let stand = robot.model().keyframes().find(|keyframe| keyframe.name == "stand").map(|stand| stand.qpos.to_vec());
    let stand = stand.ok_or_else(|| MotionError::Robot("the model has no keyframe `stand`".to_owned()))?;
    let upper_body = UPPER_BODY.iter().map(|name| joint(robot, name)).collect::<Result<Vec<_>, _>>()?;
    let mut legs = Legs::new(robot, &stand)?;
    // Where the left foot stands, from a point below the pelvis; the right one mirrors it.
    let stance = legs.stance();

    let frames = (DURATION * SYNTHETIC_RATE).round() as usize + 1;
    let mut trajectory = Trajectory::new("the synthetic motion", SYNTHETIC_RATE, robot.joints().len());
    let mut joints = stand[7..].to_vec();
    for frame in 0..frames {
        let figure = Figure::at(frame as f64 / SYNTHETIC_RATE);
        let heading = DQuat::from_rotation_z(figure.heading);
        let position = (heading * figure.pelvis).map(|value| snapped(value, GRID));
        let orientation = heading * DQuat::from_rotation_y(figure.pitch);
        let orientation = DQuat::from_array(orientation.to_array().map(|value| snapped(value, QUATERNION_GRID)));
        let orientation = orientation.normalize();
        for (index, offset) in upper_body.iter().zip(figure.upper_body) {
            joints[*index] = stand[7 + index] + offset;
        }
        let feet =
            [(figure.left, stance), (figure.right, stance * DVec3::new(1.0, -1.0, 1.0))].map(|(foot, stance)| {
                let turn = DQuat::from_rotation_z(foot.heading);
                (turn * stance + DVec3::Z * (SOLE + foot.lift), turn)
            });
        legs.solve(robot, frame, (position, orientation), feet, &mut joints)?;
        let snapped: Vec<_> = joints.iter().map(|value| snapped(*value, GRID)).collect();
        trajectory.push(position, orientation, &snapped)?;
    }
    trajectory.to_motion(robot)
}

/// The nearest multiple of `grid`.
fn snapped(value: f64, grid: f64) -> f64 {
    (value / grid).round() * grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::{measure, verify};

    #[test]
    fn the_motion_fits_the_robot_and_stays_within_its_ranges() {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        assert_eq!((motion.frames(), motion.duration()), (401, 8.0));
        verify(&motion, &mut robot).unwrap();
        let fit = measure(&motion, &mut robot, None).unwrap();
        assert!(fit.position.error < 1e-6 && fit.orientation.error < 1e-6, "{fit:?}");
        assert_eq!(fit.range_violations, []);
    }

    #[test]
    fn feet_stand_flat_or_step_and_never_slide() {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        let feet = ["left_ankle_roll_link", "right_ankle_roll_link"].map(|name| robot.body(name).unwrap());
        let mut lifted = [false; 2];
        for frame in 0..motion.frames() {
            let state = feet.map(|foot| motion.body(frame, foot));
            for (foot, state) in state.iter().enumerate() {
                let up = motion.orientation(frame, feet[foot]) * DVec3::Z;
                assert!(up.z > 1.0 - 1e-9, "frame {frame}: foot {foot} is not flat");
                assert!(state[2] > SOLE - 1e-5, "frame {frame}: foot {foot} is in the floor");
                lifted[foot] |= state[2] > SOLE + 0.04;
            }
            // At least one foot stands, and what stands does not move.
            let standing = (0..2).filter(|&foot| state[foot][2] < SOLE + 1e-5).collect::<Vec<_>>();
            assert!(!standing.is_empty(), "frame {frame}: both feet are in the air");
            for foot in standing {
                let speed = state[foot][7..10].iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                assert!(speed < 0.02, "frame {frame}: foot {foot} slides at {speed} m/s");
            }
        }
        assert_eq!(lifted, [true; 2]);
    }

    #[test]
    fn the_robot_ends_where_it_began_but_a_quarter_further() {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        let last = motion.frames() - 1;
        let turn = motion.orientation(last, 0) * motion.orientation(0, 0).inverse();
        let quarter = DQuat::from_rotation_z(std::f64::consts::FRAC_PI_2);
        assert!(turn.dot(quarter).abs() > 1.0 - 1e-9);
        let lowest = (0..=last).map(|frame| motion.body(frame, 0)[2]).fold(f64::INFINITY, f64::min);
        assert!((0.5..0.6).contains(&lowest), "the squat goes down to {lowest} m");
        for joint in 0..motion.joints {
            let at = |frame: usize| motion.joint_pos[frame * motion.joints + joint];
            assert!((at(last) - at(0)).abs() < 1e-4, "{}", robot.joints()[joint].name);
        }
    }

    #[test]
    fn velocities_do_not_jump() {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        for frame in 1..motion.frames() {
            for joint in 0..motion.joints {
                let at = |frame: usize| motion.joint_vel[frame * motion.joints + joint];
                let acceleration = f64::from(at(frame) - at(frame - 1)) * SYNTHETIC_RATE;
                assert!(acceleration.abs() < 120.0, "{} at {frame}: {acceleration} rad/s²", robot.joints()[joint].name);
            }
        }
    }

    #[test]
    fn another_robot_is_refused() {
        let model = manege_mujoco::Model::from_xml_str(
            "<mujoco><worldbody><body name='box'><freejoint/><geom size='1'/></body></worldbody></mujoco>",
        );
        let error = synthesize_g1(&mut Kinematics::new(&model.unwrap()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("keyframe `stand`"), "{error}");
    }
}
