//! Where pelvis, feet and upper body are at a time.

use std::f64::consts::{FRAC_PI_6, TAU};

use glam::DVec3;

/// Length of the motion, s.
pub const DURATION: f64 = 8.0;

/// Joints of the upper body that move, in the order of [`Figure::upper_body`].
pub const UPPER_BODY: [&str; 5] = [
    "waist_yaw_joint",
    "left_shoulder_pitch_joint",
    "right_shoulder_pitch_joint",
    "left_elbow_joint",
    "right_elbow_joint",
];

/// Start and end of the squat, s.
const SQUAT: [f64; 2] = [0.5, 2.5];

/// Start and end of the arms' swinging, s.
const SWING: [f64; 2] = [2.5, 4.5];

/// When the first foot leaves the floor for the turn, s.
const FIRST_STEP: f64 = 4.7;

/// Time from one step to the next, and time that a foot is in the air, s.
const STEP: [f64; 2] = [0.45, 0.33];

/// Number of steps, left foot first.
const STEPS: u32 = 6;

/// The whole robot at a time, the upper body relative to the standing pose.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// Position of the pelvis in the frame of its heading, m.
    pub pelvis: DVec3,
    /// Heading of the pelvis, rad.
    pub heading: f64,
    /// Forward lean of the pelvis, rad.
    pub pitch: f64,
    /// The left foot.
    pub left: Foot,
    /// The right foot.
    pub right: Foot,
    /// Offsets of [`UPPER_BODY`] from the standing pose, rad.
    pub upper_body: [f64; 5],
}

/// A foot at a time.
#[derive(Debug, Clone, Copy)]
pub struct Foot {
    /// Heading of the foot and of its place seen from below the pelvis, rad.
    pub heading: f64,
    /// Height above the floor, m.
    pub lift: f64,
}

impl Figure {
    /// The figure at `time` seconds.
    pub fn at(time: f64) -> Self {
        let squat = bump(time, SQUAT);
        let (left, right) = (Foot::at(time, 0), Foot::at(time, 1));

        // Arms swing against each other, and the waist against the arms.
        let [from, to] = SWING;
        let swing = rise(time, [from, from + 0.6]) * (1.0 - rise(time, [to - 0.6, to]));
        let phase = swing * (TAU * (time - from)).sin();
        Self {
            pelvis: DVec3::new(-0.04 * squat, -0.035 * weight(time), 0.755 - 0.2 * squat),
            heading: 0.5 * (left.heading + right.heading),
            pitch: 0.3 * squat,
            left,
            right,
            upper_body: [
                0.25 * phase,
                -1.1 * squat - 0.6 * phase,
                -1.1 * squat + 0.6 * phase,
                -0.3 * squat + 0.3 * swing,
                -0.3 * squat + 0.3 * swing,
            ],
        }
    }
}

impl Foot {
    /// The foot that makes the steps `first`, `first + 2`, ...
    fn at(time: f64, first: u32) -> Self {
        let mut foot = Self { heading: 0.0, lift: 0.0 };
        for step in (first..STEPS).step_by(2) {
            let start = FIRST_STEP + STEP[0] * f64::from(step);
            let flight = [start, start + STEP[1]];
            foot.heading += FRAC_PI_6 * rise(time, flight);
            foot.lift += 0.05 * bump(time, flight);
        }
        foot
    }
}

/// Which foot carries the robot: 1 is the right one, -1 the left one, 0 both.
fn weight(time: f64) -> f64 {
    let mut weight = 0.0;
    let mut side = 0.0;
    for step in 0..=STEPS {
        // Before a step, over to the foot that stays; after the last, back to the middle.
        let next = if step == STEPS { 0.0 } else { 1.0 - 2.0 * f64::from(step % 2) };
        let start = FIRST_STEP + STEP[0] * f64::from(step);
        weight += (next - side) * rise(time, [start - 0.25, start + 0.1]);
        side = next;
    }
    weight
}

/// From 0 to 1 between two times, with velocity and acceleration 0 at both.
fn rise(time: f64, [from, to]: [f64; 2]) -> f64 {
    let x = ((time - from) / (to - from)).clamp(0.0, 1.0);
    x * x * x * (10.0 + x * (6.0 * x - 15.0))
}

/// From 0 to 1 and back, with velocity and acceleration 0 at both ends.
fn bump(time: f64, [from, to]: [f64; 2]) -> f64 {
    let x = ((time - from) / (to - from)).clamp(0.0, 1.0);
    64.0 * (x * (1.0 - x)).powi(3)
}
