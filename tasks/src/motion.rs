//! Reference motions: movements of a robot that a policy learns to follow.
//!
//! - [`Motion`] is a movement in the form that trackers share: joints and all bodies, with velocities, in a `.npz` file.
//! - [`verify`] proves by forward kinematics that a motion is one of the robot and says what it looks like if it is not;
//!   [`measure`] gives the numbers.
//! - [`MotionClips`] joins motions into one library that is fast to gather from by frame.
//! - [`Trajectory`] is what a motion follows from, root and joints alone. [`Trajectory::to_motion`] makes the rest;
//!   [`read_lafan_csv`] reads one from the text files of retargeted LAFAN1.
//! - [`synthesize_g1`] makes a motion of our own.
//!
//! [`Kinematics`] is the robot in all of this.

mod check;
mod clips;
mod csv;
mod diagnosis;
mod error;
mod file;
mod kinematics;
mod synthesize;
mod trajectory;

pub use check::{Fit, RangeViolation, Worst, judge, measure, verify};
pub use clips::{Clip, ClipOptions, MotionClips};
pub use csv::{Dialect, LAFAN_RATE, read_lafan_csv};
pub use diagnosis::{Convention, Suspicion};
pub use error::MotionError;
pub use file::Motion;
pub use kinematics::{Joint, Kinematics};
pub use synthesize::{SYNTHETIC_RATE, synthesize_g1};
pub use trajectory::Trajectory;
