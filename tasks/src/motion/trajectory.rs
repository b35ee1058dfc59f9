//! Root and joints over time: what everything else about a motion follows from.

use glam::{DQuat, DVec3};
use manege_components::rotation::to_wxyz;

use super::kinematics::STATE;
use super::{Kinematics, Motion, MotionError};

/// How far from 1 the length of a quaternion may be.
pub(super) const UNIT_TOLERANCE: f64 = 1e-2;

/// A robot's root and joints at equal intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    origin: String,
    rate: f64,
    width: usize,
    root_position: Vec<DVec3>,
    root_orientation: Vec<DQuat>,
    joints: Vec<f64>,
}

/// How root and joints move, one value for each frame.
struct Velocities {
    root_linear: Vec<DVec3>,
    root_angular: Vec<DVec3>,
    joints: Vec<f64>,
}

impl Trajectory {
    /// A trajectory without frames. `origin` says in messages where it is from, `rate` is in frames per second, and `joints`
    /// is the number of joints.
    #[must_use]
    pub fn new(origin: impl Into<String>, rate: f64, joints: usize) -> Self {
        Self {
            origin: origin.into(),
            rate,
            width: joints,
            root_position: Vec::new(),
            root_orientation: Vec::new(),
            joints: Vec::new(),
        }
    }

    /// Adds a frame: the root's position in m and orientation in the world, and the joints in rad or m.
    ///
    /// # Errors
    /// The number of joints is wrong, a value is not finite, or the orientation is not a unit quaternion.
    pub fn push(&mut self, position: DVec3, orientation: DQuat, joints: &[f64]) -> Result<(), MotionError> {
        let frame = self.frames();
        if joints.len() != self.width {
            return Err(MotionError::OtherRobot {
                origin: self.origin.clone(),
                what: "joints",
                found: joints.len(),
                expected: self.width,
            });
        }
        if !(position.is_finite() && orientation.is_finite() && joints.iter().all(|joint| joint.is_finite())) {
            return Err(MotionError::NotFinite { origin: self.origin.clone(), frame });
        }
        let length = orientation.length();
        if (length - 1.0).abs() > UNIT_TOLERANCE {
            return Err(MotionError::Quaternion {
                origin: self.origin.clone(),
                frame,
                body: "the root".to_owned(),
                length,
            });
        }
        self.root_position.push(position);
        self.root_orientation.push(orientation.normalize());
        self.joints.extend_from_slice(joints);
        Ok(())
    }

    /// Number of frames.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.root_position.len()
    }

    /// Frames per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The root's position in a frame, m.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn root_position(&self, frame: usize) -> DVec3 {
        self.root_position[frame]
    }

    /// The root's orientation in a frame.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn root_orientation(&self, frame: usize) -> DQuat {
        self.root_orientation[frame]
    }

    /// The joints in a frame, rad or m.
    ///
    /// # Panics
    /// If there is no such frame.
    #[must_use]
    pub fn joints(&self, frame: usize) -> &[f64] {
        &self.joints[frame * self.width..][..self.width]
    }

    /// The same movement at another frame rate: linear between frames, and along the shorter arc for the orientation.
    ///
    /// The last frame is kept only if it falls on the new grid.
    ///
    /// # Errors
    /// [`MotionError::Rate`] for a rate that is none, and [`MotionError::Length`] if the result would be too long.
    pub fn resampled(&self, rate: f64) -> Result<Self, MotionError> {
        self.check()?;
        let mut result = Self::new(self.origin.clone(), rate, self.width);
        let last = self.frames() - 1;
        // The grid has one frame more than whole steps fit in; a step may fall short by rounding.
        let frames = (last as f64 / self.rate * rate + 1e-6).floor() as usize + 1;
        check_rate(&self.origin, rate)?;
        check_length(&self.origin, frames)?;
        let mut joints = vec![0.0; self.width];
        for frame in 0..frames {
            let at = (frame as f64 / rate * self.rate).min(last as f64);
            let before = (at.floor() as usize).min(last - 1);
            let part = at - before as f64;
            let (from, to) = (self.joints(before), self.joints(before + 1));
            for (joint, (from, to)) in joints.iter_mut().zip(from.iter().zip(to)) {
                *joint = from + part * (to - from);
            }
            let position = self.root_position[before].lerp(self.root_position[before + 1], part);
            let orientation = self.root_orientation[before].slerp(self.root_orientation[before + 1], part);
            result.push(position, orientation, &joints)?;
        }
        Ok(result)
    }

    /// The motion of the whole robot: velocities by central differences, one-sided at the ends, and the bodies by forward
    /// kinematics.
    ///
    /// # Errors
    /// The trajectory is too short or too long, its rate is none, or it is not of this robot.
    pub fn to_motion(&self, robot: &mut Kinematics) -> Result<Motion, MotionError> {
        self.check()?;
        let expected = robot.joints().len();
        if self.width != expected {
            return Err(MotionError::OtherRobot {
                origin: self.origin.clone(),
                what: "joints",
                found: self.width,
                expected,
            });
        }
        let velocities = self.velocities();
        let mut motion = Motion::with_capacity(self.origin.clone(), self.rate, self.frames(), robot);
        let place = |frame: usize, qpos: &mut [f64], qvel: &mut [f64]| {
            place_root(qpos, self.root_position[frame], self.root_orientation[frame]);
            qpos[7..].copy_from_slice(self.joints(frame));
            let angular = self.root_orientation[frame].inverse() * velocities.root_angular[frame];
            place_root_velocity(qvel, velocities.root_linear[frame], angular);
            qvel[6..].copy_from_slice(&velocities.joints[frame * self.width..][..self.width]);
        };
        robot.evaluate(&self.origin, self.frames(), place, |frame, bodies| {
            motion.push(
                self.joints(frame),
                &velocities.joints[frame * self.width..][..self.width],
                bodies.as_chunks::<STATE>().0,
            );
        })?;
        Ok(motion)
    }

    fn velocities(&self) -> Velocities {
        let frames = self.frames();
        let mut velocities = Velocities {
            root_linear: Vec::with_capacity(frames),
            root_angular: Vec::with_capacity(frames),
            joints: Vec::with_capacity(frames * self.width),
        };
        for frame in 0..frames {
            let (before, after) = (frame.saturating_sub(1), (frame + 1).min(frames - 1));
            let per_second = self.rate / (after - before) as f64;
            velocities.root_linear.push((self.root_position[after] - self.root_position[before]) * per_second);
            let turn = self.root_orientation[after] * self.root_orientation[before].inverse();
            velocities.root_angular.push(rotation_vector(turn) * per_second);
            let joints = self.joints(before).iter().zip(self.joints(after));
            velocities.joints.extend(joints.map(|(before, after)| (after - before) * per_second));
        }
        velocities
    }

    fn check(&self) -> Result<(), MotionError> {
        check_rate(&self.origin, self.rate)?;
        check_length(&self.origin, self.frames())
    }
}

/// Greatest number of frames of a motion: two hours at 50 per second.
pub(super) const MAX_FRAMES: usize = 360_000;

pub(super) fn check_length(origin: &str, frames: usize) -> Result<(), MotionError> {
    if (2..=MAX_FRAMES).contains(&frames) {
        return Ok(());
    }
    Err(MotionError::Length { origin: origin.to_owned(), frames, limit: MAX_FRAMES })
}

pub(super) fn check_rate(origin: &str, rate: f64) -> Result<(), MotionError> {
    if (1.0..=1000.0).contains(&rate) {
        return Ok(());
    }
    Err(MotionError::Rate { origin: origin.to_owned(), rate })
}

pub(super) fn place_root(qpos: &mut [f64], position: DVec3, orientation: DQuat) {
    qpos[..3].copy_from_slice(&position.to_array());
    qpos[3..7].copy_from_slice(&to_wxyz(orientation));
}

/// `angular` is in the root's own frame.
pub(super) fn place_root_velocity(qvel: &mut [f64], linear: DVec3, angular: DVec3) {
    qvel[..3].copy_from_slice(&linear.to_array());
    qvel[3..6].copy_from_slice(&angular.to_array());
}

/// The axis of the shorter of the two rotations, times its angle in rad.
pub(super) fn rotation_vector(rotation: DQuat) -> DVec3 {
    let rotation = if rotation.w < 0.0 { -rotation } else { rotation };
    let sine = rotation.xyz().length();
    // Below this, the angle is its sine to the last bit.
    let scale = if sine < 1e-9 { 2.0 } else { 2.0 * sine.atan2(rotation.w) / sine };
    rotation.xyz() * scale
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// One turn about an axis in two seconds, at 30 frames per second, with a joint on a line and one on a parabola.
    fn turning(axis: DVec3) -> Trajectory {
        let mut trajectory = Trajectory::new("a test", 30.0, 2);
        for frame in 0..61 {
            let time = f64::from(frame) / 30.0;
            let mut orientation = DQuat::from_axis_angle(axis, PI * time);
            if frame % 2 == 1 {
                orientation = -orientation;
            }
            trajectory.push(DVec3::new(time, 0.0, 1.0), orientation, &[2.0 * time, time * time]).unwrap();
        }
        trajectory
    }

    #[test]
    fn resampling_keeps_lines_and_constant_turns() {
        let axis = DVec3::new(1.0, 2.0, -2.0) / 3.0;
        let resampled = turning(axis).resampled(50.0).unwrap();
        assert_eq!(resampled.frames(), 101);
        for frame in 0..101 {
            let time = frame as f64 / 50.0;
            assert!((resampled.root_position(frame) - DVec3::new(time, 0.0, 1.0)).length() < 1e-12);
            let off = resampled.root_orientation(frame) * DQuat::from_axis_angle(axis, PI * time).inverse();
            assert!(rotation_vector(off).length() < 1e-12, "frame {frame}");
            assert!((resampled.joints(frame)[0] - 2.0 * time).abs() < 1e-12);
            // Chords of a parabola lie above it, by at most an eighth of the squared interval times its curvature.
            let above = resampled.joints(frame)[1] - time * time;
            assert!((-1e-12..1.0 / 3600.0 + 1e-12).contains(&above), "frame {frame}: {above}");
        }
    }

    #[test]
    fn a_last_frame_off_the_grid_is_left_out() {
        let mut trajectory = Trajectory::new("a test", 30.0, 0);
        for _ in 0..3 {
            trajectory.push(DVec3::ZERO, DQuat::IDENTITY, &[]).unwrap();
        }
        // Two thirtieths of a second hold three whole fiftieths, and a third.
        assert_eq!(trajectory.resampled(50.0).unwrap().frames(), 4);
        assert_eq!(trajectory.resampled(30.0).unwrap(), trajectory);
    }

    #[test]
    fn velocities_are_those_of_lines_turns_and_parabolas() {
        let axis = DVec3::new(2.0, -1.0, 2.0) / 3.0;
        let velocities = turning(axis).velocities();
        for frame in 0..61 {
            assert!((velocities.root_linear[frame] - DVec3::X).length() < 1e-12);
            assert!((velocities.root_angular[frame] - PI * axis).length() < 1e-12, "frame {frame}");
            assert!((velocities.joints[2 * frame] - 2.0).abs() < 1e-12);
            // A central difference of a parabola is exact; a one-sided one is that of the interval's middle.
            let time = frame as f64 / 30.0
                + [0.0, 1.0 / 60.0, -1.0 / 60.0][usize::from(frame == 0) + 2 * usize::from(frame == 60)];
            assert!((velocities.joints[2 * frame + 1] - 2.0 * time).abs() < 1e-12, "frame {frame}");
        }
    }

    #[test]
    fn frames_that_are_none_are_refused() {
        let mut trajectory = Trajectory::new("a test", 30.0, 1);
        let push = |trajectory: &mut Trajectory, orientation, joints: &[f64]| {
            trajectory.push(DVec3::ZERO, orientation, joints).unwrap_err().to_string()
        };
        assert!(push(&mut trajectory, DQuat::IDENTITY, &[]).contains("0 joints, where the robot has 1"));
        assert!(push(&mut trajectory, DQuat::IDENTITY, &[f64::NAN]).contains("not finite"));
        assert!(push(&mut trajectory, DQuat::IDENTITY * 1.1, &[0.0]).contains("length 1.1"));
        trajectory.push(DVec3::ZERO, DQuat::IDENTITY, &[0.0]).unwrap();
        assert!(trajectory.resampled(50.0).unwrap_err().to_string().contains("1 frames"));
        trajectory.push(DVec3::ZERO, DQuat::IDENTITY, &[0.0]).unwrap();
        for rate in [0.0, -50.0, f64::NAN, 1e9] {
            assert!(trajectory.resampled(rate).unwrap_err().to_string().contains("no frame rate"));
        }
    }
}
