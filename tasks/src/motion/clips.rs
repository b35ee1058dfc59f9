//! Motions joined into one library, laid out for gathers by frame.

use std::ops::Range;
use std::path::Path;

use super::{Kinematics, Motion, MotionError, verify};

/// How motions are joined.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipOptions {
    /// Frames per second that are needed: one for each control step.
    pub rate: f64,
    /// Whether motions of other rates are resampled rather than refused.
    pub resample: bool,
    /// Names of the bodies to keep, in the order to keep them in.
    pub bodies: Vec<String>,
}

/// One motion of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// Where it is from.
    pub origin: String,
    /// Its frames in the library.
    pub frames: Range<usize>,
}

/// Motions one after the other, in single precision.
///
/// Each quantity is one contiguous array with a row for each frame. Frames are counted through all clips.
#[derive(Debug, Clone, PartialEq)]
pub struct MotionClips {
    rate: f64,
    clips: Vec<Clip>,
    last_frame: Vec<u32>,
    joints: usize,
    bodies: Vec<String>,
    joint_pos: Vec<f32>,
    joint_vel: Vec<f32>,
    body_pos: Vec<f32>,
    body_quat: Vec<f32>,
    body_lin_vel: Vec<f32>,
    body_ang_vel: Vec<f32>,
}

impl MotionClips {
    /// Reads, verifies and joins files.
    ///
    /// # Errors
    /// A file cannot be read, does not [fit](verify) the robot, or has another frame rate and `resample` is off; or the
    /// robot has no body of a name.
    pub fn load<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        robot: &mut Kinematics,
        options: &ClipOptions,
    ) -> Result<Self, MotionError> {
        let mut clips = Self::empty(robot, options)?;
        for path in paths {
            let motion = Motion::read(path, robot)?;
            verify(&motion, robot)?;
            clips.append(&motion, robot, options)?;
        }
        clips.checked()
    }

    /// Joins motions that are in memory.
    ///
    /// # Errors
    /// A motion has another frame rate and `resample` is off, or the robot has no body of a name.
    pub fn new<'a>(
        motions: impl IntoIterator<Item = &'a Motion>,
        robot: &mut Kinematics,
        options: &ClipOptions,
    ) -> Result<Self, MotionError> {
        let mut clips = Self::empty(robot, options)?;
        for motion in motions {
            clips.append(motion, robot, options)?;
        }
        clips.checked()
    }

    fn empty(robot: &Kinematics, options: &ClipOptions) -> Result<Self, MotionError> {
        // A wrong name is reported before a file is read.
        options.bodies.iter().try_for_each(|name| robot.body(name).map(|_| ()))?;
        Ok(Self {
            rate: options.rate,
            clips: Vec::new(),
            last_frame: Vec::new(),
            joints: robot.joints().len(),
            bodies: options.bodies.clone(),
            joint_pos: Vec::new(),
            joint_vel: Vec::new(),
            body_pos: Vec::new(),
            body_quat: Vec::new(),
            body_lin_vel: Vec::new(),
            body_ang_vel: Vec::new(),
        })
    }

    fn append(&mut self, motion: &Motion, robot: &mut Kinematics, options: &ClipOptions) -> Result<(), MotionError> {
        let resampled;
        let motion = match motion.check_rate(self.rate) {
            Ok(()) => motion,
            Err(_) if options.resample => {
                resampled = motion.trajectory()?.resampled(self.rate)?.to_motion(robot)?;
                &resampled
            }
            Err(error) => return Err(error),
        };
        let start = self.frames();
        let frames = start..start + motion.frames();
        let Ok(last) = u32::try_from(frames.end - 1) else {
            return Err(MotionError::Length {
                origin: "the library".to_owned(),
                frames: frames.end,
                limit: u32::MAX as usize,
            });
        };
        self.joint_pos.extend_from_slice(motion.joint_pos());
        self.joint_vel.extend_from_slice(motion.joint_vel());
        let kept = self.bodies.iter().map(|name| robot.body(name)).collect::<Result<Vec<_>, _>>()?;
        let all = robot.bodies().len();
        gather(&mut self.body_pos, motion.body_pos(), &kept, all, 3);
        gather(&mut self.body_quat, motion.body_quat(), &kept, all, 4);
        gather(&mut self.body_lin_vel, motion.body_lin_vel(), &kept, all, 3);
        gather(&mut self.body_ang_vel, motion.body_ang_vel(), &kept, all, 3);
        self.last_frame.resize(frames.end, last);
        self.clips.push(Clip { origin: motion.origin().to_owned(), frames });
        Ok(())
    }

    fn checked(self) -> Result<Self, MotionError> {
        super::trajectory::check_rate("the library", self.rate)?;
        if self.clips.is_empty() {
            return Err(MotionError::NoMotion);
        }
        Ok(self)
    }

    /// Frames per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Number of frames in all clips, at least 2.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.last_frame.len()
    }

    /// The clips in the order of their frames.
    #[must_use]
    pub fn clips(&self) -> &[Clip] {
        &self.clips
    }

    /// Names of the bodies that are kept, in their order.
    #[must_use]
    pub fn bodies(&self) -> &[String] {
        &self.bodies
    }

    /// Number of joints.
    #[must_use]
    pub fn joints(&self) -> usize {
        self.joints
    }

    /// For each frame, the last frame of its clip.
    #[must_use]
    pub fn last_frames(&self) -> &[u32] {
        &self.last_frame
    }

    /// Joint positions in a frame, rad.
    ///
    /// # Panics
    /// If there is no such frame, as for all quantities.
    #[must_use]
    #[inline]
    pub fn joint_pos(&self, frame: usize) -> &[f32] {
        &self.joint_pos[frame * self.joints..][..self.joints]
    }

    /// Joint velocities in a frame, rad/s.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    #[inline]
    pub fn joint_vel(&self, frame: usize) -> &[f32] {
        &self.joint_vel[frame * self.joints..][..self.joints]
    }

    /// Positions of the kept bodies in a frame, in the world, m.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    #[inline]
    pub fn body_pos(&self, frame: usize) -> &[[f32; 3]] {
        self.row(&self.body_pos, frame)
    }

    /// Orientations of the kept bodies in a frame, in the world, `wxyz`.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    #[inline]
    pub fn body_quat(&self, frame: usize) -> &[[f32; 4]] {
        self.row(&self.body_quat, frame)
    }

    /// Linear velocities of the kept bodies in a frame, in the world, m/s.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    #[inline]
    pub fn body_lin_vel(&self, frame: usize) -> &[[f32; 3]] {
        self.row(&self.body_lin_vel, frame)
    }

    /// Angular velocities of the kept bodies in a frame, in the world, rad/s.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    #[inline]
    pub fn body_ang_vel(&self, frame: usize) -> &[[f32; 3]] {
        self.row(&self.body_ang_vel, frame)
    }

    #[inline]
    fn row<'a, const N: usize>(&self, values: &'a [f32], frame: usize) -> &'a [[f32; N]] {
        let bodies = self.bodies.len();
        &values.as_chunks::<N>().0[frame * bodies..][..bodies]
    }
}

/// Appends `width` values of each of the `kept` among `all` bodies, frame after frame.
fn gather(to: &mut Vec<f32>, from: &[f32], kept: &[usize], all: usize, width: usize) {
    to.reserve(from.len() / all * kept.len());
    for frame in from.chunks_exact(all * width) {
        for body in kept {
            to.extend_from_slice(&frame[body * width..][..width]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::synthesize_g1;

    fn options(resample: bool) -> ClipOptions {
        let bodies = ["torso_link", "pelvis", "right_wrist_yaw_link"].map(str::to_owned).to_vec();
        ClipOptions { rate: 50.0, resample, bodies }
    }

    #[test]
    fn frames_count_through_all_clips_and_bodies_are_found_by_name() {
        let mut robot = Kinematics::g1().unwrap();
        let motion = synthesize_g1(&mut robot).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("motion.npz");
        motion.write(std::fs::File::create(&path).unwrap()).unwrap();

        let clips = MotionClips::load([&path, &path], &mut robot, &options(false)).unwrap();
        assert_eq!(clips.frames(), 802);
        assert_eq!(clips.clips()[1].frames, 401..802);
        assert_eq!(clips.clips()[1].origin, path.display().to_string());
        assert_eq!(clips.last_frames()[400..402], [400, 801]);
        for (frame, stored) in [(0, 0), (123, 123), (400, 400), (401, 0), (801, 400)] {
            for (kept, name) in clips.bodies().iter().enumerate() {
                let state = motion.body(stored, robot.body(name).unwrap()).map(|value| value as f32);
                assert_eq!(clips.body_pos(frame)[kept], state[..3]);
                assert_eq!(clips.body_quat(frame)[kept], state[3..7]);
                assert_eq!(clips.body_lin_vel(frame)[kept], state[7..10]);
                assert_eq!(clips.body_ang_vel(frame)[kept], state[10..]);
            }
            assert_eq!(clips.joint_pos(frame), &motion.joint_pos()[stored * 29..][..29]);
            assert_eq!(clips.joint_vel(frame), &motion.joint_vel()[stored * 29..][..29]);
        }
    }

    #[test]
    fn other_frame_rates_are_refused_or_resampled() {
        let mut robot = Kinematics::g1().unwrap();
        let at_50 = synthesize_g1(&mut robot).unwrap();
        let at_25 = at_50.trajectory().unwrap().resampled(25.0).unwrap().to_motion(&mut robot).unwrap();
        let error = MotionClips::new([&at_50, &at_25], &mut robot, &options(false)).unwrap_err().to_string();
        assert!(error.contains("has 25 frames per second, but 50 are needed"), "{error}");

        let clips = MotionClips::new([&at_25], &mut robot, &options(true)).unwrap();
        assert_eq!(clips.frames(), 401);
        let torso = robot.body("torso_link").unwrap();
        for frame in 0..401 {
            let expected = at_50.body(frame, torso);
            let found = clips.body_pos(frame)[0];
            let off = (0..3).map(|i| (f64::from(found[i]) - expected[i]).abs()).fold(0.0, f64::max);
            // Every other frame is as it was; between them, a line replaces a curve.
            assert!(off < if frame % 2 == 0 { 1e-6 } else { 2e-3 }, "frame {frame}: {off} m");
        }
    }

    #[test]
    fn unknown_bodies_and_empty_libraries_are_refused() {
        let mut robot = Kinematics::g1().unwrap();
        let wrong = ClipOptions { bodies: vec!["torso".to_owned()], ..options(false) };
        let error = MotionClips::new([], &mut robot, &wrong).unwrap_err().to_string();
        assert!(error.contains("no body `torso`; did you mean `torso_link`?"), "{error}");
        let error = MotionClips::new([], &mut robot, &options(false)).unwrap_err().to_string();
        assert_eq!(error, "no motion was given");
    }
}
