//! What the tasks that follow a velocity command share.

use std::f64::consts::PI;

use glam::DVec3;
use manege_components::{Draws, StreamId, rotation};

use crate::root::{RootVelocity, set_root, symmetric};
use crate::task::Clock;

/// Control period of the tasks, s.
pub(crate) const CONTROL_PERIOD: f64 = 0.02;

/// Control steps in the longest episode, 20 s.
pub(crate) const EPISODE_STEPS: u32 = 1000;

/// Less than this is left when a timer has run out, s.
pub(crate) const TIMER_END: f64 = 0.01 * CONTROL_PERIOD;

/// Seconds between two draws of the command.
const RESAMPLING: f32 = 20.0;

/// A planar velocity to follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct VelocityCommand {
    /// Forward and leftward velocity, m/s, and yaw rate, rad/s.
    pub(crate) values: [f32; 3],
    /// Tracking errors, added up over the episode: planar velocity, yaw rate.
    pub(crate) errors: [f32; 2],
    time_left: f64,
    resamplings: u32,
}

impl VelocityCommand {
    /// Draws the command of a new episode. Planar speeds up to `dead_band` become 0.
    pub(crate) fn begin(&mut self, clock: &Clock, dead_band: f32) {
        self.errors = [0.0; 2];
        self.resamplings = 0;
        self.resample(clock, dead_band);
    }

    fn resample(&mut self, clock: &Clock, dead_band: f32) {
        const STREAM: StreamId = StreamId::new("command/twist");
        let mut draws = clock.streams.draws(STREAM, u64::from(self.resamplings));
        self.time_left = f64::from(draws.uniform_f32(RESAMPLING, RESAMPLING));
        self.values =
            [[-0.6, 1.0], [-0.4, 0.4], [-0.8, 0.8]].map(|[low, high]: [f64; 2]| draws.uniform(low, high) as f32);
        if self.values[0].hypot(self.values[1]) <= dead_band {
            self.values[..2].fill(0.0);
        }
        self.resamplings += 1;
    }

    /// Adds the errors of a robot that moves like this, and draws the command again when its time is over.
    pub(crate) fn advance(&mut self, clock: &Clock, velocity: DVec3, yaw_rate: f64, dt: f64, dead_band: f32) {
        let [x, y, yaw] = self.values.map(f64::from);
        let steps = f64::from(EPISODE_STEPS);
        self.errors[0] += ((x - velocity.x).hypot(y - velocity.y) / steps) as f32;
        self.errors[1] += ((yaw - yaw_rate).abs() / steps) as f32;
        self.time_left -= dt;
        if self.time_left < TIMER_END {
            self.resample(clock, dead_band);
        }
    }
}

/// Draws where the floating root begins: somewhere near its default pose, with any heading and some velocity.
pub(crate) fn begin_root(clock: &Clock, default: &[f64], qpos: &mut [f64], qvel: &mut [f64]) {
    const STREAM: StreamId = StreamId::new("event/reset_root_state_uniform");
    const POSE: [f64; 6] = [0.5, 0.5, 0.0, 0.0, 0.0, PI];
    let mut draws = clock.streams.draws(STREAM, 0);
    let [x, y, z, roll, pitch, yaw] = symmetric(&mut draws, POSE);
    let [vx, vy, vz, wx, wy, wz] = symmetric(&mut draws, [0.5; 6]);
    let position = rotation::vec3(default) + DVec3::new(x, y, z);
    let orientation = rotation::from_wxyz(&default[3..7]) * rotation::from_roll_pitch_yaw(roll, pitch, yaw);
    let velocity = RootVelocity { linear: DVec3::new(vx, vy, vz), angular: DVec3::new(wx, wy, wz) };
    set_root(qpos, qvel, position, orientation, velocity);
}

/// Adds a random velocity to the floating root.
pub(crate) fn push_root(mut draws: Draws, limits: [f64; 6], qpos: &mut [f64], qvel: &mut [f64]) {
    let [vx, vy, vz, wx, wy, wz] = symmetric(&mut draws, limits);
    let orientation = rotation::from_wxyz(&qpos[3..7]);
    let linear = rotation::vec3(qvel) + DVec3::new(vx, vy, vz);
    let angular = orientation * rotation::vec3(&qvel[3..6]) + DVec3::new(wx, wy, wz);
    set_root(qpos, qvel, rotation::vec3(qpos), orientation, RootVelocity { linear, angular });
}
