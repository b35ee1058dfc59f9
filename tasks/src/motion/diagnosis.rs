//! What is wrong with a motion that does not fit: the usual ways to misread one, tried out.

use std::fmt;

use glam::DQuat;
use manege_components::rotation::{from_wxyz, vec3};

use super::check::{ORIENTATION_TOLERANCE, POSITION_TOLERANCE, errors};
use super::kinematics::STATE;
use super::trajectory::place_root;
use super::{Kinematics, Motion, MotionError};

/// Why a motion may not fit its robot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suspicion {
    /// It would fit if its numbers were read in this way.
    Convention(Convention),
    /// Its bodies are in another order: the one at `index` is where `body` should be.
    BodyOrder {
        /// The first index where the orders differ.
        index: usize,
        /// What is there.
        body: String,
    },
    /// All bodies are near where they should be.
    SimilarRobot,
    /// Nothing that is known explains it.
    Unknown,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Convention(convention) => write!(f, "it looks like {convention}"),
            Self::BodyOrder { index, body } => {
                write!(f, "it looks like another order of bodies: body {index} is where `{body}` should be")
            }
            Self::SimilarRobot => f.write_str("it looks like another version of the robot, with other link lengths"),
            Self::Unknown => f.write_str("it may be of another robot, or have its joints in another order"),
        }
    }
}

/// Ways to write a motion that differ from the one that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Convention {
    /// Bodies are breadth first, as Isaac Lab numbers them, not depth first.
    pub breadth_first_bodies: bool,
    /// Joints are breadth first.
    pub breadth_first_joints: bool,
    /// Joint positions are in degrees.
    pub degrees: bool,
    /// Quaternions are `xyzw`.
    pub scalar_last: bool,
}

impl Convention {
    /// All of them, the simplest first.
    fn all() -> Vec<Self> {
        let mut all: Vec<_> = (1..16)
            .map(|bits: u32| Self {
                breadth_first_bodies: bits & 1 != 0,
                breadth_first_joints: bits & 2 != 0,
                degrees: bits & 4 != 0,
                scalar_last: bits & 8 != 0,
            })
            .collect();
        all.sort_by_key(|convention| convention.parts().len());
        all
    }

    fn parts(self) -> Vec<&'static str> {
        let order = match (self.breadth_first_bodies, self.breadth_first_joints) {
            (true, true) => Some("bodies and joints in breadth-first order, as Isaac Lab has them"),
            (true, false) => Some("bodies in breadth-first order, as Isaac Lab has them"),
            (false, true) => Some("joints in breadth-first order, as Isaac Lab has them"),
            (false, false) => None,
        };
        let degrees = self.degrees.then_some("joint positions in degrees, not radians");
        let quaternions = self.scalar_last.then_some("quaternions `xyzw`, not `wxyz`");
        [order, degrees, quaternions].into_iter().flatten().collect()
    }
}

impl fmt::Display for Convention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts().join(" and "))
    }
}

/// Looks for the reason why `motion` does not fit, on the given frames.
pub(super) fn suspect(motion: &Motion, robot: &mut Kinematics, frames: &[usize]) -> Result<Suspicion, MotionError> {
    for convention in Convention::all() {
        let worst = match worst_errors(motion, robot, frames, convention) {
            Ok(worst) => worst,
            // Numbers read in the wrong way may be too much for MuJoCo.
            Err(MotionError::Pose { .. }) => continue,
            Err(error) => return Err(error),
        };
        if worst[0] <= POSITION_TOLERANCE && worst[1] <= ORIENTATION_TOLERANCE {
            return Ok(Suspicion::Convention(convention));
        }
    }
    if let Some((index, body)) = other_order(motion, robot, frames)? {
        return Ok(Suspicion::BodyOrder { index, body });
    }
    /// Two versions of a robot differ by less, m; different poses by more.
    const SIMILAR: f64 = 0.05;
    let [position, ..] = worst_errors(motion, robot, frames, Convention::default())?;
    Ok(if position < SIMILAR { Suspicion::SimilarRobot } else { Suspicion::Unknown })
}

/// Greatest distance and angle between the bodies and forward kinematics, if the motion is read in some way.
fn worst_errors(
    motion: &Motion,
    robot: &mut Kinematics,
    frames: &[usize],
    convention: Convention,
) -> Result<[f64; 2], MotionError> {
    let identity = |count: usize| (0..count).collect::<Vec<_>>();
    let bodies = if convention.breadth_first_bodies { robot.breadth_first_bodies() } else { identity(motion.bodies) };
    let joints = if convention.breadth_first_joints { robot.breadth_first_joints() } else { identity(motion.joints) };
    let state = |frame: usize, index: usize| {
        let mut state = motion.body(frame, index);
        if convention.scalar_last {
            state[3..7].rotate_right(1);
        }
        state
    };
    let unit = if convention.degrees { std::f64::consts::PI / 180.0 } else { 1.0 };
    let mut worst = [0.0_f64; 2];
    let place = |at: usize, qpos: &mut [f64], qvel: &mut [f64]| {
        let root = state(frames[at], 0);
        place_root(qpos, vec3(&root), unit_quaternion(&root));
        for (position, joint) in motion.joint_pos[frames[at] * motion.joints..].iter().zip(&joints) {
            qpos[7 + joint] = f64::from(*position) * unit;
        }
        qvel.fill(0.0);
    };
    robot.evaluate(&motion.origin, frames.len(), place, |at, expected| {
        for (index, body) in bodies.iter().enumerate() {
            let errors = errors(&state(frames[at], index), &expected[body * STATE..][..STATE]);
            worst = [worst[0].max(errors[0]), worst[1].max(errors[1])];
        }
    })?;
    Ok(worst)
}

/// The first body that is where another should be, if all bodies are where some body should be.
fn other_order(
    motion: &Motion,
    robot: &mut Kinematics,
    frames: &[usize],
) -> Result<Option<(usize, String)>, MotionError> {
    let bodies = motion.bodies;
    // Whether the body at `index` of the motion can be `body` of the robot, at `index * bodies + body`.
    let mut possible = vec![true; bodies * bodies];
    let place = |at: usize, qpos: &mut [f64], qvel: &mut [f64]| {
        let root = motion.body(frames[at], 0);
        place_root(qpos, vec3(&root), unit_quaternion(&root));
        let joints = &motion.joint_pos[frames[at] * motion.joints..];
        qpos[7..].iter_mut().zip(joints).for_each(|(to, from)| *to = f64::from(*from));
        qvel.fill(0.0);
    };
    robot.evaluate(&motion.origin, frames.len(), place, |at, expected| {
        for index in 0..bodies {
            let found = motion.body(frames[at], index);
            for body in 0..bodies {
                let errors = errors(&found, &expected[body * STATE..][..STATE]);
                possible[index * bodies + body] &=
                    errors[0] <= POSITION_TOLERANCE && errors[1] <= ORIENTATION_TOLERANCE;
            }
        }
    })?;
    // Bodies that never move against each other cannot be told apart, and need not be: any of them will do.
    let matches = |index: usize| (0..bodies).find(|body| possible[index * bodies + body]);
    if !(0..bodies).all(|index| matches(index).is_some()) {
        return Ok(None);
    }
    let moved = (0..bodies).find(|&index| !possible[index * bodies + index]);
    Ok(moved.and_then(|index| Some((index, robot.bodies()[matches(index)?].clone()))))
}

fn unit_quaternion(state: &[f64; STATE]) -> DQuat {
    from_wxyz(&state[3..7]).normalize()
}
