//! Where a robot's bodies are, given its root and joints.

use std::fmt;

use manege_mujoco::{Batch, BatchOptions, JointKind, Model, ObjectKind, Source};
use manege_systems::config::nearest;

use super::MotionError;
use crate::robots::G1_FLAT;

/// Frames that are evaluated in one call.
const CHUNK: usize = 64;

/// Values of one body: position, orientation `wxyz`, linear and angular velocity.
pub(super) const STATE: usize = 13;

/// A joint of a robot.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// Its name.
    pub name: String,
    /// Its limits in rad, or m if it slides; unlimited joints have none.
    pub range: Option<[f64; 2]>,
}

/// A robot whose motions are read, checked and made: a floating base with joints of one degree of freedom.
///
/// Body 0 is the robot's root; the world is not counted. Joints and bodies are in the order of the model, depth first.
pub struct Kinematics {
    batch: Batch,
    joints: Vec<Joint>,
    /// The body that each joint moves.
    joint_bodies: Vec<usize>,
    bodies: Vec<String>,
    /// The body that each body is attached to; none for the root.
    parents: Vec<Option<usize>>,
}

impl Kinematics {
    /// The robot of a model.
    ///
    /// # Errors
    /// [`MotionError::Robot`] if the model has more or less than one robot, or one that is not as described above.
    pub fn new(model: &Model) -> Result<Self, MotionError> {
        let unsuitable = |message: String| Err(MotionError::Robot(message));
        let mut joints = model.joints();
        match joints.next() {
            Some(root) if root.kind == JointKind::Free && root.body == 1 => {}
            _ => return unsuitable("the model's first body has no free joint".to_owned()),
        }
        let (mut known, mut joint_bodies) = (Vec::new(), Vec::new());
        for joint in joints {
            if !matches!(joint.kind, JointKind::Hinge | JointKind::Slide) {
                return unsuitable(format!("joint `{}` turns in more than one way", joint.name));
            }
            known.push(Joint { name: joint.name.to_owned(), range: joint.range });
            joint_bodies.push(joint.body - 1);
        }
        let mut bodies = Vec::new();
        let mut parents = Vec::new();
        for (index, body) in model.bodies().enumerate().skip(1) {
            if index > 1 && body.parent == 0 {
                return unsuitable(format!("body `{}` is not part of the robot", body.name));
            }
            bodies.push(body.name.to_owned());
            parents.push(body.parent.checked_sub(1));
        }
        let outputs = (1..model.count(ObjectKind::Body)).flat_map(|body| {
            [
                Source::BodyPosition(body),
                Source::BodyOrientation(body),
                Source::BodyLinearVelocity(body),
                Source::BodyAngularVelocity(body),
            ]
        });
        let options = BatchOptions { rows: CHUNK, outputs: outputs.collect(), ..BatchOptions::default() };
        Ok(Self { batch: Batch::new(model, &options)?, joints: known, joint_bodies, bodies, parents })
    }

    /// The built-in Unitree G1.
    ///
    /// # Errors
    /// MuJoCo cannot be used.
    pub fn g1() -> Result<Self, MotionError> {
        Self::new(&Model::from_xml_files(G1_FLAT.main, G1_FLAT.files)?)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        self.batch.model()
    }

    /// The joints, without that of the floating base.
    #[must_use]
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// Names of the bodies, the root first, without the world.
    #[must_use]
    pub fn bodies(&self) -> &[String] {
        &self.bodies
    }

    /// Index of a body.
    ///
    /// # Errors
    /// [`MotionError::UnknownBody`] names the nearest.
    pub fn body(&self, name: &str) -> Result<usize, MotionError> {
        self.bodies.iter().position(|body| body == name).ok_or_else(|| MotionError::UnknownBody {
            name: name.to_owned(),
            nearest: nearest(name, self.bodies.iter().map(String::as_str)),
        })
    }

    /// The bodies level by level, as simulators that number them breadth first have them.
    pub(super) fn breadth_first_bodies(&self) -> Vec<usize> {
        let mut order = vec![0];
        let mut next = 0;
        while next < order.len() {
            let parent = Some(order[next]);
            order.extend((0..self.bodies.len()).filter(|&body| self.parents[body] == parent));
            next += 1;
        }
        order
    }

    /// The joints in the order of the breadth-first bodies that they move.
    pub(super) fn breadth_first_joints(&self) -> Vec<usize> {
        let joints_of = |body: usize| (0..self.joints.len()).filter(move |&joint| self.joint_bodies[joint] == body);
        self.breadth_first_bodies().into_iter().flat_map(joints_of).collect()
    }

    /// Evaluates poses one after the other.
    ///
    /// `place` writes the generalised positions and velocities of a pose: root position, root orientation `wxyz`, joints;
    /// root linear velocity in the world, root angular velocity in the root's frame, joints. `take` is given [`STATE`]
    /// values for each body, all in the world frame.
    pub(super) fn evaluate(
        &mut self,
        origin: &str,
        poses: usize,
        mut place: impl FnMut(usize, &mut [f64], &mut [f64]),
        mut take: impl FnMut(usize, &[f64]),
    ) -> Result<(), MotionError> {
        let rows: [u32; CHUNK] = std::array::from_fn(|row| row as u32);
        let (mut qpos, mut qvel) = (vec![0.0; self.model().nq()], vec![0.0; self.model().nv()]);
        for start in (0..poses).step_by(CHUNK) {
            let count = (poses - start).min(CHUNK);
            for row in 0..count {
                place(start + row, &mut qpos, &mut qvel);
                self.batch.qpos_mut(row)?.copy_from_slice(&qpos);
                self.batch.qvel_mut(row)?.copy_from_slice(&qvel);
            }
            self.batch.refresh(Some(&rows[..count]))?;
            if let Some(fault) = self.batch.faults().first() {
                return Err(MotionError::Pose {
                    origin: origin.to_owned(),
                    frame: start + fault.row as usize,
                    reason: fault.reason.to_string(),
                });
            }
            for row in 0..count {
                take(start + row, self.batch.output_row(row)?);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Kinematics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kinematics")
            .field("joints", &self.joints.len())
            .field("bodies", &self.bodies.len())
            .finish_non_exhaustive()
    }
}
