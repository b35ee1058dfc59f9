//! Rewards for following a motion: `exp(-e² / std²)` of an error `e`.

use manege_components::rotation;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::TermParams;
use manege_systems::managers::reward::{RewardTerm, reward};
use serde::{Deserialize, Serialize};

use super::super::resolve;
use super::{MotionReference, Pursuit};

/// A reward that is 1 where `squared_error` is 0, and 1/e where it is `std²`.
fn closeness(
    context: &BuildContext<'_>,
    command: &str,
    std: f64,
    squared_error: impl Fn(&Pursuit<'_>) -> f64 + Send + Sync + 'static,
) -> Result<Box<dyn RewardTerm>, BuildError> {
    let reference = MotionReference::of(context, command)?;
    let variance = resolve::positive("std", std)?.powi(2);
    Ok(reward(move |row| (-squared_error(&reference.pursuit(row)) / variance).exp() as f32))
}

/// Mean over the tracked bodies.
fn mean_over_bodies(pursuit: &Pursuit<'_>, squared_error: impl Fn(usize) -> f64) -> f64 {
    pursuit.bodies().map(squared_error).sum::<f64>() / pursuit.reference.bodies() as f64
}

/// Mean over the joints of a squared difference.
fn mean_square(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) =
        pairs.fold((0.0, 0.0), |(sum, count), (robot, motion)| (sum + (robot - motion).powi(2), count + 1.0));
    sum / count
}

macro_rules! closeness_terms {
    ($($(#[$doc:meta])* $name:ident, $unit:literal, $error:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Name of the motion command.
            pub command: String,
            #[doc = concat!("Error at which the reward is 1/e, ", $unit, ".")]
            pub std: f64,
        }

        impl TermParams<dyn RewardTerm> for $name {
            fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
                closeness(context, &self.command, self.std, $error)
            }
        }
    )*};
}

closeness_terms! {
    /// Distance between the anchors of robot and motion in the world.
    TrackAnchorPosition, "m", |pursuit| {
        let anchor = pursuit.anchor();
        (pursuit.motion_position(anchor) - pursuit.position(anchor)).length_squared()
    };
    /// Angle between the anchors of robot and motion in the world.
    TrackAnchorOrientation, "rad", |pursuit| {
        let anchor = pursuit.anchor();
        rotation::angle_between(pursuit.motion_orientation(anchor), pursuit.orientation(anchor)).powi(2)
    };
    /// Distances of the bodies from their [relative targets](super); the square is their mean square.
    TrackBodyPositions, "m", |pursuit| mean_over_bodies(pursuit, |body| {
        (pursuit.relative_position(body) - pursuit.position(body)).length_squared()
    });
    /// Angles of the bodies to their [relative targets](super); the square is their mean square.
    TrackBodyOrientations, "rad", |pursuit| mean_over_bodies(pursuit, |body| {
        rotation::angle_between(pursuit.relative_orientation(body), pursuit.orientation(body)).powi(2)
    });
    /// Differences of the bodies' linear velocities in the world; the square is their mean square.
    TrackBodyLinearVelocities, "m/s", |pursuit| mean_over_bodies(pursuit, |body| {
        (pursuit.motion_linear_velocity(body) - pursuit.linear_velocity(body)).length_squared()
    });
    /// Differences of the bodies' angular velocities in the world; the square is their mean square.
    TrackBodyAngularVelocities, "rad/s", |pursuit| mean_over_bodies(pursuit, |body| {
        (pursuit.motion_angular_velocity(body) - pursuit.angular_velocity(body)).length_squared()
    });
    /// Differences of the joints' positions; the square is their mean square.
    TrackJointPositions, "rad", |pursuit| mean_square(pursuit.joint_positions());
    /// Differences of the joints' velocities; the square is their mean square.
    TrackJointVelocities, "rad/s", |pursuit| mean_square(pursuit.joint_velocities());
}
