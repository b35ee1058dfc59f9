//! Joints of the legs for given places of pelvis and feet.

use glam::{DQuat, DVec3};
use manege_components::rotation::{from_wxyz, vec3};

use crate::motion::kinematics::STATE;
use crate::motion::trajectory::{place_root, rotation_vector};
use crate::motion::{Kinematics, MotionError};

/// Joints of a leg.
const JOINTS: usize = 6;

/// Change of a joint that derivatives are taken with, rad.
const DIFFERENCE: f64 = 1e-6;

/// Greatest error of a foot's place that is left, m and rad.
const TOLERANCE: f64 = 1e-11;

/// Newton steps after which a place counts as out of reach; four are usual.
const MAX_STEPS: usize = 30;

/// A place: position and orientation in the world.
type Place = (DVec3, DQuat);

/// The two legs, left and right.
pub struct Legs {
    /// The joints of each leg.
    joints: [[usize; JOINTS]; 2],
    /// The body that is each leg's foot.
    feet: [usize; 2],
    stance: DVec3,
}

impl Legs {
    /// The legs of a G1 that stands as in `stand`, generalised positions.
    pub fn new(robot: &mut Kinematics, stand: &[f64]) -> Result<Self, MotionError> {
        let mut joints = [[0; JOINTS]; 2];
        let mut feet = [0; 2];
        for (leg, side) in ["left", "right"].into_iter().enumerate() {
            feet[leg] = robot.body(&format!("{side}_ankle_roll_link"))?;
            let names = ["hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll"];
            for (joint, part) in joints[leg].iter_mut().zip(names) {
                let name = format!("{side}_{part}_joint");
                *joint =
                    robot.joints().iter().position(|joint| joint.name == name).ok_or_else(|| {
                        MotionError::Robot(format!("the G1 has a joint `{name}`, but the model has not"))
                    })?;
            }
        }
        let mut stance = DVec3::ZERO;
        let place = |_: usize, qpos: &mut [f64], qvel: &mut [f64]| {
            qpos.copy_from_slice(stand);
            qvel.fill(0.0);
        };
        robot.evaluate("the keyframe `stand`", 1, place, |_, bodies| stance = vec3(&bodies[feet[0] * STATE..]))?;
        let below_pelvis = DVec3::new(stand[0], stand[1], stance.z);
        Ok(Self { joints, feet, stance: stance - below_pelvis })
    }

    /// Where the left foot stands in the keyframe, from the point at its height that is below the pelvis, m.
    pub fn stance(&self) -> DVec3 {
        self.stance
    }

    /// Sets the legs' joints so that the feet are in their places; the joints given are the first guess.
    pub fn solve(
        &mut self,
        robot: &mut Kinematics,
        frame: usize,
        pelvis: Place,
        feet: [Place; 2],
        joints: &mut [f64],
    ) -> Result<(), MotionError> {
        for _ in 0..MAX_STEPS {
            // Errors of both feet as they are, and with the k-th joint of both legs changed.
            let mut errors = [[[0.0; JOINTS]; JOINTS + 1]; 2];
            let place = |at: usize, qpos: &mut [f64], qvel: &mut [f64]| {
                place_root(qpos, pelvis.0, pelvis.1);
                qpos[7..].copy_from_slice(joints);
                if let Some(changed) = at.checked_sub(1) {
                    self.joints.iter().for_each(|leg| qpos[7 + leg[changed]] += DIFFERENCE);
                }
                qvel.fill(0.0);
            };
            robot.evaluate("the synthetic motion", JOINTS + 1, place, |at, bodies| {
                for leg in 0..2 {
                    errors[leg][at] = error(&bodies[self.feet[leg] * STATE..], feet[leg]);
                }
            })?;
            let left_over = errors.iter().flat_map(|leg| leg[0]).fold(0.0, |most: f64, error| most.max(error.abs()));
            if left_over < TOLERANCE {
                return Ok(());
            }
            for (leg, errors) in self.joints.iter().zip(&errors) {
                let [now, changed @ ..] = errors;
                let derivative: [[f64; JOINTS]; JOINTS] = std::array::from_fn(|row| {
                    std::array::from_fn(|column| (changed[column][row] - now[row]) / DIFFERENCE)
                });
                let Some(step) = solution(derivative, *now) else { break };
                leg.iter().zip(step).for_each(|(joint, step)| joints[*joint] -= step);
            }
        }
        Err(MotionError::Pose {
            origin: "the synthetic motion".to_owned(),
            frame,
            reason: "the feet do not reach their places".to_owned(),
        })
    }
}

/// How far a body is from its place: a distance vector in m and a rotation vector in rad.
fn error(body: &[f64], (position, orientation): Place) -> [f64; JOINTS] {
    let distance = vec3(body) - position;
    let turn = rotation_vector(from_wxyz(&body[3..7]) * orientation.inverse());
    [distance.x, distance.y, distance.z, turn.x, turn.y, turn.z]
}

/// Solves linear equations by elimination, with the largest pivot of each column; none if they have no one solution.
fn solution<const N: usize>(mut matrix: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot = (column..N).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        if matrix[column][column].abs() < 1e-12 {
            return None;
        }
        let eliminated = matrix[column];
        for row in column + 1..N {
            let factor = matrix[row][column] / eliminated[column];
            matrix[row].iter_mut().zip(eliminated).for_each(|(value, pivot)| *value -= factor * pivot);
            right[row] -= factor * right[column];
        }
    }
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|k| matrix[row][k] * right[k]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::solution;

    #[test]
    fn equations_are_solved() {
        let matrix = [[0.0, 2.0, 1.0], [1.0, -1.0, 0.0], [3.0, 0.0, -2.0]];
        let solved = solution(matrix, [7.0, -1.0, -3.0]).unwrap();
        for (found, expected) in solved.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{solved:?}");
        }
        assert_eq!(solution([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0]), None);
    }
}
