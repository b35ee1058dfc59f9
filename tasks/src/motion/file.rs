//! Motions, and the `.npz` files that hold them.

use std::io::{self, Seek, Write};
use std::path::Path;

use glam::DQuat;
use manege_components::rotation::{from_wxyz, vec3};

use super::kinematics::STATE;
use super::trajectory::{UNIT_TOLERANCE, check_length, check_rate};
use super::{Kinematics, MotionError, Trajectory};
use crate::npz::{Extent, NpzReader, NpzWriter};

/// How far from the origin a body may be that is the world, m.
const WORLD_TOLERANCE: f32 = 1e-3;

/// Relative difference of frame rates that rounding explains.
const SAME_RATE: f64 = 1e-4;

/// A robot's movement: what its joints and bodies do in every frame.
///
/// Joints and bodies are in the order of the robot's model, the root is body 0, and the world is no body. All body
/// quantities are in the world frame. [`Motion::read`] makes sure of the sizes and that all values are finite;
/// [`measure`](super::measure) and [`verify`](super::verify) tell whether they belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Motion {
    pub(super) origin: String,
    pub(super) rate: f64,
    pub(super) frames: usize,
    pub(super) joints: usize,
    pub(super) bodies: usize,
    pub(super) joint_pos: Vec<f32>,
    pub(super) joint_vel: Vec<f32>,
    pub(super) body_pos: Vec<f32>,
    pub(super) body_quat: Vec<f32>,
    pub(super) body_lin_vel: Vec<f32>,
    pub(super) body_ang_vel: Vec<f32>,
}

impl Motion {
    /// Reads a file with the arrays `fps`, `joint_pos` and `joint_vel` (frames × joints), `body_pos_w`, `body_lin_vel_w` and
    /// `body_ang_vel_w` (frames × bodies × 3) and `body_quat_w` (frames × bodies × 4, `wxyz`), single or double precision,
    /// with or without the world as the first body.
    ///
    /// What the file declares is compared with the robot and with the greatest length of a motion before values are read.
    ///
    /// # Errors
    /// The file is damaged or incomplete, the sizes are not those of the robot, a value is not finite, or a quaternion has
    /// not length 1.
    pub fn read(path: impl AsRef<Path>, robot: &Kinematics) -> Result<Self, MotionError> {
        let path = path.as_ref();
        let origin = path.display().to_string();
        let mut file = NpzReader::open(path)?;

        let (joints, bodies) = (robot.joints().len(), robot.bodies().len());
        let other = |what, found, expected| MotionError::OtherRobot { origin: origin.clone(), what, found, expected };
        let rate = read_rate(&mut file)?;
        check_rate(&origin, rate)?;

        let shape = file.checked_shape("joint_pos", &[Extent::Any("T"), Extent::Any("joints")])?;
        let frames = shape[0];
        if shape[1] != joints {
            return Err(other("joints", shape[1], joints));
        }
        check_length(&origin, frames)?;
        let shape =
            file.checked_shape("body_pos_w", &[Extent::Exactly(frames), Extent::Any("bodies"), Extent::Exactly(3)])?;
        let with_world = shape[1] == bodies + 1;
        if shape[1] != bodies && !with_world {
            return Err(other("bodies", shape[1], bodies));
        }
        let stored = bodies + usize::from(with_world);

        let mut read = |name: &str, widths: &[usize]| -> Result<Vec<f32>, MotionError> {
            let shape: Vec<_> = [frames].iter().chain(widths).map(|length| Extent::Exactly(*length)).collect();
            Ok(file.read_finite::<f32>(name, &shape)?.values)
        };
        let mut motion = Self {
            joint_pos: read("joint_pos", &[joints])?,
            joint_vel: read("joint_vel", &[joints])?,
            body_pos: read("body_pos_w", &[stored, 3])?,
            body_quat: read("body_quat_w", &[stored, 4])?,
            body_lin_vel: read("body_lin_vel_w", &[stored, 3])?,
            body_ang_vel: read("body_ang_vel_w", &[stored, 3])?,
            origin,
            rate,
            frames,
            joints,
            bodies,
        };
        if with_world {
            motion.drop_world(stored)?;
        }
        motion.check_quaternions(robot)?;
        Ok(motion)
    }

    /// Writes the file that [`read`](Self::read) reads, without the world, in single precision. Equal motions give equal
    /// bytes.
    ///
    /// # Errors
    /// `file` cannot be written.
    pub fn write(&self, file: impl Write + Seek) -> io::Result<()> {
        let Self { frames, joints, bodies, .. } = *self;
        let mut writer = NpzWriter::new(file);
        writer.write("fps", &[1], &[self.rate])?;
        writer.write("joint_pos", &[frames, joints], &self.joint_pos)?;
        writer.write("joint_vel", &[frames, joints], &self.joint_vel)?;
        writer.write("body_pos_w", &[frames, bodies, 3], &self.body_pos)?;
        writer.write("body_quat_w", &[frames, bodies, 4], &self.body_quat)?;
        writer.write("body_lin_vel_w", &[frames, bodies, 3], &self.body_lin_vel)?;
        writer.write("body_ang_vel_w", &[frames, bodies, 3], &self.body_ang_vel)?;
        writer.finish()?;
        Ok(())
    }

    /// Where the motion is from: a file, or how it was made.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Frames per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Time from the first frame to the last, s.
    #[must_use]
    pub fn duration(&self) -> f64 {
        (self.frames - 1) as f64 / self.rate
    }

    /// Joint positions, rad, frames × joints.
    #[must_use]
    pub fn joint_pos(&self) -> &[f32] {
        &self.joint_pos
    }

    /// Joint velocities, rad/s, frames × joints.
    #[must_use]
    pub fn joint_vel(&self) -> &[f32] {
        &self.joint_vel
    }

    /// Positions of the bodies' frames, m, frames × bodies × 3.
    #[must_use]
    pub fn body_pos(&self) -> &[f32] {
        &self.body_pos
    }

    /// Orientations of the bodies, `wxyz`, frames × bodies × 4.
    #[must_use]
    pub fn body_quat(&self) -> &[f32] {
        &self.body_quat
    }

    /// Linear velocities of the bodies' frames, m/s, frames × bodies × 3.
    #[must_use]
    pub fn body_lin_vel(&self) -> &[f32] {
        &self.body_lin_vel
    }

    /// Angular velocities of the bodies, rad/s, frames × bodies × 3.
    #[must_use]
    pub fn body_ang_vel(&self) -> &[f32] {
        &self.body_ang_vel
    }

    /// Makes sure that the motion has a frame rate.
    ///
    /// # Errors
    /// [`MotionError::OtherRate`] if it has another.
    pub fn check_rate(&self, rate: f64) -> Result<(), MotionError> {
        if (self.rate / rate - 1.0).abs() <= SAME_RATE {
            return Ok(());
        }
        Err(MotionError::OtherRate { origin: self.origin.clone(), found: self.rate, wanted: rate })
    }

    /// Root and joints alone.
    ///
    /// # Errors
    /// None that [`read`](Self::read) has not found already.
    pub fn trajectory(&self) -> Result<Trajectory, MotionError> {
        let mut trajectory = Trajectory::new(self.origin.clone(), self.rate, self.joints);
        let mut joints = vec![0.0; self.joints];
        for frame in 0..self.frames {
            let stored = &self.joint_pos[frame * self.joints..];
            joints.iter_mut().zip(stored).for_each(|(joint, stored)| *joint = f64::from(*stored));
            let root = self.body(frame, 0);
            trajectory.push(vec3(&root), from_wxyz(&root[3..7]), &joints)?;
        }
        Ok(trajectory)
    }

    /// A motion that [`push`](Self::push) fills.
    pub(super) fn with_capacity(origin: String, rate: f64, frames: usize, robot: &Kinematics) -> Self {
        let (joints, bodies) = (robot.joints().len(), robot.bodies().len());
        Self {
            origin,
            rate,
            frames: 0,
            joints,
            bodies,
            joint_pos: Vec::with_capacity(frames * joints),
            joint_vel: Vec::with_capacity(frames * joints),
            body_pos: Vec::with_capacity(frames * bodies * 3),
            body_quat: Vec::with_capacity(frames * bodies * 4),
            body_lin_vel: Vec::with_capacity(frames * bodies * 3),
            body_ang_vel: Vec::with_capacity(frames * bodies * 3),
        }
    }

    pub(super) fn push(&mut self, joint_pos: &[f64], joint_vel: &[f64], bodies: &[[f64; STATE]]) {
        let append = |to: &mut Vec<f32>, values: &[f64]| to.extend(values.iter().map(|value| *value as f32));
        append(&mut self.joint_pos, joint_pos);
        append(&mut self.joint_vel, joint_vel);
        for state in bodies {
            append(&mut self.body_pos, &state[..3]);
            append(&mut self.body_quat, &state[3..7]);
            append(&mut self.body_lin_vel, &state[7..10]);
            append(&mut self.body_ang_vel, &state[10..]);
        }
        self.frames += 1;
    }

    /// One body's state in a frame: position, orientation `wxyz`, linear and angular velocity.
    pub(super) fn body(&self, frame: usize, body: usize) -> [f64; STATE] {
        let at = frame * self.bodies + body;
        let mut state = [0.0; STATE];
        let parts = [
            &self.body_pos[3 * at..][..3],
            &self.body_quat[4 * at..][..4],
            &self.body_lin_vel[3 * at..][..3],
            &self.body_ang_vel[3 * at..][..3],
        ];
        state.iter_mut().zip(parts.into_iter().flatten()).for_each(|(state, stored)| *state = f64::from(*stored));
        state
    }

    /// The orientation of a body in a frame, of length 1.
    pub(super) fn orientation(&self, frame: usize, body: usize) -> DQuat {
        from_wxyz(&self.body(frame, body)[3..7]).normalize()
    }

    /// Removes the first of `stored` bodies.
    fn drop_world(&mut self, stored: usize) -> Result<(), MotionError> {
        let at_origin = |position: &[f32]| position[..3].iter().all(|value| value.abs() <= WORLD_TOLERANCE);
        if let Some(frame) = self.body_pos.chunks_exact(3 * stored).position(|bodies| !at_origin(bodies)) {
            return Err(MotionError::NoWorld { origin: self.origin.clone(), frame });
        }
        drop_first(&mut self.body_pos, stored, 3);
        drop_first(&mut self.body_quat, stored, 4);
        drop_first(&mut self.body_lin_vel, stored, 3);
        drop_first(&mut self.body_ang_vel, stored, 3);
        Ok(())
    }

    fn check_quaternions(&self, robot: &Kinematics) -> Result<(), MotionError> {
        for (at, wxyz) in self.body_quat.as_chunks::<4>().0.iter().enumerate() {
            let length = wxyz.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
            if (length - 1.0).abs() > UNIT_TOLERANCE {
                return Err(MotionError::Quaternion {
                    origin: self.origin.clone(),
                    frame: at / self.bodies,
                    body: robot.bodies()[at % self.bodies].clone(),
                    length,
                });
            }
        }
        Ok(())
    }
}

/// `fps` is a number, or an array of which the first value counts.
fn read_rate(file: &mut NpzReader) -> Result<f64, MotionError> {
    let shape = file.shape("fps")?;
    let extents: &[Extent] = match shape.as_slice() {
        [] => &[],
        // A list of rates is short; a long one is something else.
        [1..=16] => &[Extent::Any("n")],
        _ => &[Extent::Exactly(1)],
    };
    Ok(file.read_finite::<f64>("fps", extents)?.values.first().copied().unwrap_or(f64::NAN))
}

/// Removes the first of `bodies` bodies with `width` values each from every frame.
fn drop_first(values: &mut Vec<f32>, bodies: usize, width: usize) {
    let frames = values.len() / (bodies * width);
    let kept = (bodies - 1) * width;
    for frame in 0..frames {
        let from = frame * bodies * width + width;
        values.copy_within(from..from + kept, frame * kept);
    }
    values.truncate(frames * kept);
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::motion::synthesize_g1;

    fn synthetic() -> (Kinematics, Motion) {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        (robot, motion)
    }

    fn bytes(motion: &Motion) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        motion.write(&mut file).unwrap();
        file.into_inner()
    }

    /// Reads a file with the given bytes.
    fn read(bytes: &[u8], robot: &Kinematics) -> Result<Motion, MotionError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("motion.npz");
        std::fs::write(&path, bytes).unwrap();
        Motion::read(&path, robot).map(|motion| Motion { origin: "the synthetic motion".to_owned(), ..motion })
    }

    fn complaint(bytes: &[u8], robot: &Kinematics) -> String {
        read(bytes, robot).unwrap_err().to_string()
    }

    /// The bytes of a motion with one array replaced.
    fn with(motion: &Motion, name: &str, shape: &[usize], values: &[f32]) -> Vec<u8> {
        let Motion { frames, joints, bodies, .. } = *motion;
        let mut writer = NpzWriter::new(Cursor::new(Vec::new()));
        let arrays: [(&str, &[usize], &[f32]); 7] = [
            ("fps", &[1], &[motion.rate as f32]),
            ("joint_pos", &[frames, joints], &motion.joint_pos),
            ("joint_vel", &[frames, joints], &motion.joint_vel),
            ("body_pos_w", &[frames, bodies, 3], &motion.body_pos),
            ("body_quat_w", &[frames, bodies, 4], &motion.body_quat),
            ("body_lin_vel_w", &[frames, bodies, 3], &motion.body_lin_vel),
            ("body_ang_vel_w", &[frames, bodies, 3], &motion.body_ang_vel),
        ];
        for (known, known_shape, known_values) in arrays {
            if known == name {
                writer.write(name, shape, values).unwrap();
            } else {
                writer.write(known, known_shape, known_values).unwrap();
            }
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn what_is_written_reads_back() {
        let (robot, motion) = synthetic();
        assert_eq!(read(&bytes(&motion), &robot).unwrap(), motion);
    }

    #[test]
    fn double_precision_a_world_body_and_a_scalar_rate_are_read() {
        let (robot, motion) = synthetic();
        let Motion { frames, joints, bodies, .. } = motion;
        let mut writer = NpzWriter::new(Cursor::new(Vec::new()));
        let double = |values: &[f32]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
        // The world is at rest at the origin.
        let with_world = |values: &[f32], world: &[f64]| {
            let frames = values.chunks_exact(bodies * world.len());
            frames.flat_map(|bodies| [world.to_vec(), double(bodies)].concat()).collect::<Vec<_>>()
        };
        writer.write("fps", &[], &[50.0_f64]).unwrap();
        writer.write("joint_pos", &[frames, joints], &double(&motion.joint_pos)).unwrap();
        writer.write("joint_vel", &[frames, joints], &double(&motion.joint_vel)).unwrap();
        for (name, values) in [
            ("body_pos_w", &motion.body_pos),
            ("body_lin_vel_w", &motion.body_lin_vel),
            ("body_ang_vel_w", &motion.body_ang_vel),
        ] {
            writer.write(name, &[frames, bodies + 1, 3], &with_world(values, &[0.0; 3])).unwrap();
        }
        let quaternions = with_world(&motion.body_quat, &[1.0, 0.0, 0.0, 0.0]);
        writer.write("body_quat_w", &[frames, bodies + 1, 4], &quaternions).unwrap();
        let file = writer.finish().unwrap().into_inner();
        assert_eq!(read(&file, &robot).unwrap(), motion);
    }

    #[test]
    fn sizes_of_other_robots_are_refused() {
        let (robot, motion) = synthetic();
        let frames = motion.frames;
        let text = complaint(&with(&motion, "joint_pos", &[frames, 23], &vec![0.0; frames * 23]), &robot);
        assert!(text.contains("it has 23 joints, where the robot has 29"), "{text}");
        let text = complaint(&with(&motion, "body_pos_w", &[frames, 38, 3], &vec![0.0; frames * 114]), &robot);
        assert!(text.contains("it has 38 bodies, where the robot has 30"), "{text}");
        // 31 bodies, the first of which moves.
        let text = complaint(&with(&motion, "body_pos_w", &[frames, 31, 3], &vec![0.5; frames * 93]), &robot);
        assert!(text.contains("`body_quat_w`") && text.contains("(401, 30, 4), not (401, 31, 4)"), "{text}");
        let text = complaint(&with(&motion, "joint_vel", &[frames - 1, 29], &vec![0.0; (frames - 1) * 29]), &robot);
        assert!(text.contains("`joint_vel`") && text.contains("(400, 29), not (401, 29)"), "{text}");
        let text = complaint(&with(&motion, "joint_pos", &[frames * 29], &motion.joint_pos), &robot);
        assert!(text.contains("not (T, joints)"), "{text}");
    }

    #[test]
    fn a_first_body_that_moves_is_no_world() {
        let (_, mut motion) = synthetic();
        let error = motion.drop_world(motion.bodies).unwrap_err().to_string();
        assert!(error.contains("the first is no world: at frame 0"), "{error}");
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let (robot, motion) = synthetic();
        let shape = [motion.frames, motion.bodies, 4];
        let mut damaged = motion.body_quat.clone();
        damaged[(7 * motion.bodies + 3) * 4] = f32::NAN;
        let text = complaint(&with(&motion, "body_quat_w", &shape, &damaged), &robot);
        assert!(text.contains("`body_quat_w`") && text.contains("[7, 3, 0] is NaN"), "{text}");
        let mut damaged = motion.body_quat.clone();
        damaged[(7 * motion.bodies + 3) * 4..][..4].fill(1.0);
        let text = complaint(&with(&motion, "body_quat_w", &shape, &damaged), &robot);
        assert!(text.contains("at frame 7, the quaternion of `left_hip_yaw_link` has length 2"), "{text}");
        for rate in [0.0, -50.0, 1e6] {
            let text = complaint(&with(&motion, "fps", &[1], &[rate]), &robot);
            assert!(text.contains("is no frame rate"), "{text}");
        }
        let text = complaint(&with(&motion, "fps", &[0], &[]), &robot);
        assert!(text.contains("`fps`"), "{text}");
    }

    /// Replaces the first occurrence of a text by one of the same length.
    fn patch(bytes: &mut [u8], from: &[u8], to: &[u8]) {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
    }

    #[test]
    fn declared_sizes_are_checked_before_values_are_read() {
        let (robot, motion) = synthetic();
        let mut file = bytes(&motion);
        // The header has room for a long number in its padding.
        let (declared, huge) = ("(401, 29, ), }", "(4611686018427387, 29), }");
        patch(&mut file, format!("{declared:<0$}", huge.len()).as_bytes(), huge.as_bytes());
        let text = complaint(&file, &robot);
        assert!(text.contains("4611686018427387 frames; a motion has from 2 to 360000"), "{text}");
    }

    #[test]
    fn damaged_files_are_errors() {
        let (robot, motion) = synthetic();
        let file = bytes(&motion);
        for length in [0, 1, 30, 100, file.len() / 2, file.len() - 1] {
            let text = complaint(&file[..length], &robot);
            assert!(text.contains("no .npz file"), "{length}: {text}");
        }
        // Headers of the archive and of an array, and the archive's table of contents; values have checksums.
        let (start, end) = (0..300, file.len() - 600..file.len());
        for (at, bit) in start.chain(end).zip((0..8).cycle()) {
            let mut changed = file.clone();
            changed[at] ^= 1 << bit;
            // Some bytes do not count, as dates; the others are noticed or change nothing that is read.
            if let Ok(read) = read(&changed, &robot) {
                assert_eq!(read, motion, "byte {at} counts and was not noticed");
            }
        }
    }
}
