//! `g1_motion_tracking`, fused.

mod sampler;

use glam::{DMat3, DQuat, DVec3};
use manege_components::{StreamId, rotation};
use manege_systems::backend::{ModelInfo, Output};
use manege_tasks::motion::{ClipOptions, Kinematics, MotionClips, synthesize_g1};

use crate::DirectError;
use crate::root::{RootVelocity, set_root, symmetric};
use crate::task::{Clock, Ended, FusedTask, Plan, Slot, actuators, at, index_of, keyframe, noisy, outputs};
use sampler::Sampler;

const JOINTS: usize = 29;

/// The tracked bodies; the first is the root.
const BODIES: [&str; 14] = [
    "pelvis",
    "left_hip_roll_link",
    "left_knee_link",
    "left_ankle_roll_link",
    "right_hip_roll_link",
    "right_knee_link",
    "right_ankle_roll_link",
    "torso_link",
    "left_shoulder_roll_link",
    "left_elbow_link",
    "left_wrist_yaw_link",
    "right_shoulder_roll_link",
    "right_elbow_link",
    "right_wrist_yaw_link",
];

/// Bodies are named by their place among the tracked ones.
const ANCHOR: usize = 7;
const ENDS: [usize; 4] = [3, 6, 10, 13];
const OFF_THE_GROUND: [usize; 10] = [0, 1, 2, 4, 5, 7, 8, 9, 11, 12];

/// What the task senses, after the generalised state. The bodies' poses and velocities follow.
const SENSORS: [&str; 2] = ["pelvis_local_linvel", "torso_gyro"];

/// Where the outputs lie in a row's state.
mod state {
    use super::BODIES;

    pub(super) const JOINT_POSITIONS: usize = 7;
    pub(super) const JOINT_VELOCITIES: usize = 42;
    pub(super) const LINEAR_VELOCITY: usize = 71;
    pub(super) const GYRO: usize = 74;
    pub(super) const POSITIONS: usize = 77;
    pub(super) const ORIENTATIONS: usize = POSITIONS + 3 * BODIES.len();
    pub(super) const LINEAR_VELOCITIES: usize = ORIENTATIONS + 4 * BODIES.len();
    pub(super) const ANGULAR_VELOCITIES: usize = LINEAR_VELOCITIES + 3 * BODIES.len();
}

/// Control steps in the longest episode, 10 s.
const EPISODE_STEPS: u32 = 500;

const ACTION_SCALE: f32 = 2.0;

/// The terms for the joints have weight 0: they are not evaluated.
const WEIGHTS: [f32; 11] = [1.0, 0.5, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0, -0.1, -2.0, -0.1];

pub(crate) struct G1MotionTracking {
    clips: MotionClips,
    sampler: Sampler,
    default_joints: [f64; JOINTS],
    actuators: [usize; JOINTS],
    ranges: [[f64; 2]; JOINTS],
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    action: [f32; JOINTS],
    previous: [f32; JOINTS],
    /// The frame to match.
    frame: usize,
    /// How the motion is laid over the robot: `w` and `z` of the turn about the vertical, x and y of the robot's anchor.
    alignment: [f32; 4],
}

/// A body of the robot, from a row's state.
fn position(state: &[f64], body: usize) -> DVec3 {
    rotation::vec3(at::<3>(state, state::POSITIONS + 3 * body))
}

fn orientation(state: &[f64], body: usize) -> DQuat {
    rotation::from_wxyz(at::<4>(state, state::ORIENTATIONS + 4 * body))
}

fn linear_velocity(state: &[f64], body: usize) -> DVec3 {
    rotation::vec3(at::<3>(state, state::LINEAR_VELOCITIES + 3 * body))
}

fn angular_velocity(state: &[f64], body: usize) -> DVec3 {
    rotation::vec3(at::<3>(state, state::ANGULAR_VELOCITIES + 3 * body))
}

fn wide([x, y, z]: [f32; 3]) -> DVec3 {
    DVec3::new(f64::from(x), f64::from(y), f64::from(z))
}

/// Squares of the errors of one body.
struct BodyErrors {
    /// Height over the relative target, m; not squared.
    height: f64,
    position: f64,
    orientation: f64,
    linear_velocity: f64,
    angular_velocity: f64,
}

impl G1MotionTracking {
    /// The errors of all bodies against the motion, the poses against their relative targets.
    fn body_errors(&self, row: &Row, state: &[f64]) -> [BodyErrors; BODIES.len()] {
        let (positions, orientations) = (self.clips.body_pos(row.frame), self.clips.body_quat(row.frame));
        let (linear, angular) = (self.clips.body_lin_vel(row.frame), self.clips.body_ang_vel(row.frame));
        let [w, z, x, y] = row.alignment.map(f64::from);
        let turn = DQuat::from_xyzw(0.0, 0.0, z, w);
        let anchor = wide(positions[ANCHOR]);
        let over_robot = DVec3::new(x, y, anchor.z);
        std::array::from_fn(|body| {
            let apart = turn * (wide(positions[body]) - anchor) + over_robot - position(state, body);
            let target = turn * rotation::from_wxyz_f32(orientations[body]);
            BodyErrors {
                height: apart.z,
                position: apart.length_squared(),
                orientation: rotation::angle_between(target, orientation(state, body)).powi(2),
                linear_velocity: (wide(linear[body]) - linear_velocity(state, body)).length_squared(),
                angular_velocity: (wide(angular[body]) - angular_velocity(state, body)).length_squared(),
            }
        })
    }
}

/// Mean over the bodies.
fn mean(errors: &[BodyErrors], of: impl Fn(&BodyErrors) -> f64) -> f64 {
    errors.iter().map(of).sum::<f64>() / BODIES.len() as f64
}

/// The first two columns of a rotation's matrix, row by row.
fn six_numbers(rotation: DQuat) -> [f32; 6] {
    let DMat3 { x_axis: x, y_axis: y, .. } = DMat3::from_quat(rotation);
    [x.x, y.x, x.y, y.y, x.z, y.z].map(|value| value as f32)
}

impl FusedTask for G1MotionTracking {
    type Row = Row;

    const ACTION_WIDTH: usize = JOINTS;
    const GROUP_WIDTHS: [usize; 2] = [160, 289];
    const REWARDS: usize = 11;
    const ERRORS: &'static [&'static str] = &[
        "motion/error_anchor_pos",
        "motion/error_anchor_rot",
        "motion/error_anchor_lin_vel",
        "motion/error_anchor_ang_vel",
        "motion/error_body_pos",
        "motion/error_body_rot",
        "motion/error_body_lin_vel",
        "motion/error_body_ang_vel",
        "motion/error_joint_pos",
        "motion/error_joint_vel",
        "motion/sampling_entropy",
        "motion/sampling_top1_prob",
        "motion/sampling_top1_bin",
    ];
    const TIME_OUTS: u64 = 0b00011;

    fn new(_preset: &str, info: &ModelInfo, _rows: usize) -> Result<(Self, Plan), DirectError> {
        let mut robot = Kinematics::g1()?;
        let motion = synthesize_g1(&mut robot)?;
        let options = ClipOptions { rate: 50.0, resample: false, bodies: BODIES.map(str::to_owned).to_vec() };
        let clips = MotionClips::new([&motion], &mut robot, &options)?;

        let mut outputs = outputs(info, &SENSORS)?;
        let names = || info.bodies.iter().map(|body| body.name.as_str());
        for quantity in
            [Output::BodyPosition, Output::BodyOrientation, Output::BodyLinearVelocity, Output::BodyAngularVelocity]
        {
            for name in BODIES {
                outputs.push(quantity(index_of("body", name, names())?));
            }
        }
        let qpos = keyframe(info, "stand")?;
        let mut ranges = [[f64::NEG_INFINITY, f64::INFINITY]; JOINTS];
        for (range, joint) in ranges.iter_mut().zip(&info.joints) {
            *range = joint.range.unwrap_or(*range);
        }
        let task = Self {
            sampler: Sampler::new(clips.frames(), clips.frames() / 50 + 1),
            clips,
            default_joints: *at(&qpos, state::JOINT_POSITIONS),
            actuators: actuators(info)?,
            ranges,
        };
        Ok((task, Plan { outputs, fields: Vec::new(), qpos }))
    }

    fn row(&self) -> Row {
        Row { action: [0.0; JOINTS], previous: [0.0; JOINTS], frame: 0, alignment: [0.0; 4] }
    }

    fn act(&self, row: &mut Row, action: &[f32], ctrl: &mut [f64]) {
        row.previous = row.action;
        row.action.copy_from_slice(action);
        for ((&action, &actuator), &default) in row.action.iter().zip(&self.actuators).zip(&self.default_joints) {
            ctrl[actuator] = f64::from(action * ACTION_SCALE + default as f32);
        }
    }

    #[expect(clippy::approx_constant, reason = "3.14 rad/s is what the task is defined with")]
    fn evaluate(&self, clock: &Clock, row: &mut Row, state: &[f64], rewards: &mut [f32]) -> u64 {
        let robot_anchor = orientation(state, ANCHOR);
        let motion_anchor = rotation::from_wxyz_f32(self.clips.body_quat(row.frame)[ANCHOR]);
        let apart = wide(self.clips.body_pos(row.frame)[ANCHOR]) - position(state, ANCHOR);
        let angle = rotation::angle_between(motion_anchor, robot_anchor);
        let errors = self.body_errors(row, state);
        let close = |squared: f64, std: f64| (-squared / std.powi(2)).exp() as f32;
        let rate = row.action.iter().zip(&row.previous).map(|(now, before)| (now - before).powi(2)).sum::<f32>();
        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS).iter().zip(&self.ranges);
        let excess = joints.map(|(q, [low, high])| ((low - q).max(0.0) + (q - high).max(0.0)).powi(2)).sum::<f64>();
        let low = OFF_THE_GROUND.iter().filter(|&&body| state[state::POSITIONS + 3 * body + 2] < 0.05).count();
        let values = [
            close(apart.length_squared(), 0.3),
            close(angle.powi(2), 0.4),
            close(mean(&errors, |body| body.position), 0.3),
            close(mean(&errors, |body| body.orientation), 0.4),
            close(mean(&errors, |body| body.linear_velocity), 1.0),
            close(mean(&errors, |body| body.angular_velocity), 3.14),
            0.0,
            0.0,
            rate,
            excess as f32,
            low as f32,
        ];
        for ((reward, value), weight) in rewards.iter_mut().zip(values).zip(WEIGHTS) {
            *reward = value * weight;
        }

        let gravity = |frame: DQuat| (frame.conjugate() * DVec3::NEG_Z).z;
        let fallen = [
            clock.step >= EPISODE_STEPS,
            row.frame >= self.clips.last_frames()[row.frame] as usize,
            apart.z.abs() > 0.5,
            (gravity(motion_anchor) - gravity(robot_anchor)).abs() > 0.8,
            ENDS.iter().any(|&body| errors[body].height.abs() > 0.5),
        ];
        fallen.iter().enumerate().fold(0, |bits, (bit, &fires)| bits | u64::from(fires) << bit)
    }

    fn command(&self, _clock: &Clock, row: &mut Row, state: &[f64], dt: f64) {
        if dt > 0.0 && row.frame < self.clips.last_frames()[row.frame] as usize {
            row.frame += 1;
        }
        self.follow(row, state);
    }

    fn observe(&self, clock: &Clock, row: &Row, state: &[f64], policy: &mut [f32], critic: &mut [f32]) {
        const LINEAR: StreamId = StreamId::new("observation/policy/base_lin_vel");
        const ANGULAR: StreamId = StreamId::new("observation/policy/base_ang_vel");
        const POSITIONS: StreamId = StreamId::new("observation/policy/joint_pos");
        const VELOCITIES: StreamId = StreamId::new("observation/policy/joint_vel");
        let (origin, anchor) = (position(state, ANCHOR), orientation(state, ANCHOR));
        let into_anchor = anchor.conjugate();
        let apart = wide(self.clips.body_pos(row.frame)[ANCHOR]) - origin;
        let motion_anchor = rotation::from_wxyz_f32(self.clips.body_quat(row.frame)[ANCHOR]);

        critic[..29].copy_from_slice(self.clips.joint_pos(row.frame));
        critic[29..58].copy_from_slice(self.clips.joint_vel(row.frame));
        critic[58..61].copy_from_slice(&(into_anchor * apart).as_vec3().to_array());
        critic[61..67].copy_from_slice(&six_numbers(into_anchor * motion_anchor));
        for (out, value) in critic[67..70].iter_mut().zip(at::<3>(state, state::LINEAR_VELOCITY)) {
            *out = *value as f32;
        }
        for (out, value) in critic[70..73].iter_mut().zip(at::<3>(state, state::GYRO)) {
            *out = *value as f32;
        }
        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS).iter().zip(&self.default_joints);
        for (out, (q, default)) in critic[73..102].iter_mut().zip(joints) {
            *out = (q - default) as f32;
        }
        for (out, value) in critic[102..131].iter_mut().zip(at::<JOINTS>(state, state::JOINT_VELOCITIES)) {
            *out = *value as f32;
        }
        critic[131..160].copy_from_slice(&row.action);
        for (body, out) in critic[160..202].as_chunks_mut().0.iter_mut().enumerate() {
            *out = (into_anchor * (position(state, body) - origin)).as_vec3().to_array();
        }
        for (body, out) in critic[202..286].as_chunks_mut().0.iter_mut().enumerate() {
            *out = six_numbers(into_anchor * orientation(state, body));
        }
        critic.copy_within(67..70, 286);

        policy.copy_from_slice(&critic[..160]);
        noisy(clock, LINEAR, 0.1, critic[67..70].iter().copied(), &mut policy[67..70]);
        noisy(clock, ANGULAR, 0.2, critic[70..73].iter().copied(), &mut policy[70..73]);
        noisy(clock, POSITIONS, 0.01, critic[73..102].iter().copied(), &mut policy[73..102]);
        noisy(clock, VELOCITIES, 1.5, critic[102..131].iter().copied(), &mut policy[102..131]);
    }

    fn episodes_ended<'a>(&mut self, ended: impl Iterator<Item = Ended<'a, Row>>) {
        self.sampler.learn(ended.filter(|ended| ended.terminated).map(|ended| ended.row.frame));
    }

    fn errors(&self, ended: &Ended<'_, Row>, errors: &mut [f32]) {
        let Ended { row, state, .. } = ended;
        let clips = &self.clips;
        let bodies = self.body_errors(row, state);
        let apart = |motion: &[f32], robot: &[f64]| {
            motion.iter().zip(robot).map(|(m, r)| (r - f64::from(*m)).powi(2)).sum::<f64>().sqrt()
        };
        let motion_anchor = rotation::from_wxyz_f32(clips.body_quat(row.frame)[ANCHOR]);
        let measured = [
            (wide(clips.body_pos(row.frame)[ANCHOR]) - position(state, ANCHOR)).length(),
            rotation::angle_between(motion_anchor, orientation(state, ANCHOR)),
            bodies[ANCHOR].linear_velocity.sqrt(),
            bodies[ANCHOR].angular_velocity.sqrt(),
            mean(&bodies, |body| body.position.sqrt()),
            mean(&bodies, |body| body.orientation.sqrt()),
            mean(&bodies, |body| body.linear_velocity.sqrt()),
            mean(&bodies, |body| body.angular_velocity.sqrt()),
            apart(clips.joint_pos(row.frame), at::<JOINTS>(state, state::JOINT_POSITIONS)),
            apart(clips.joint_vel(row.frame), at::<JOINTS>(state, state::JOINT_VELOCITIES)),
        ];
        for (error, value) in errors.iter_mut().zip(measured) {
            *error = value as f32;
        }
        errors[measured.len()..].copy_from_slice(&self.sampler.statistics());
    }

    fn begin(&self, clock: &Clock, row: &mut Row, slot: Slot<'_>) {
        const STREAM: StreamId = StreamId::new("command/motion");
        row.action = [0.0; JOINTS];
        row.previous = [0.0; JOINTS];
        let mut draws = clock.streams.draws(STREAM, 0);
        // The time until the motion is drawn again, which never comes.
        draws.uniform_f32(1e9, 1e9);
        row.frame = self.sampler.draw(&mut draws);

        let [x, y, z, roll, pitch, yaw] = symmetric(&mut draws, [0.05, 0.05, 0.01, 0.1, 0.1, 0.2]);
        let [vx, vy, vz, wx, wy, wz] = symmetric(&mut draws, [0.5, 0.5, 0.2, 0.52, 0.52, 0.78]);
        let clips = &self.clips;
        let turn = rotation::from_roll_pitch_yaw(roll, pitch, yaw);
        let Slot { qpos, qvel, .. } = slot;
        set_root(
            qpos,
            qvel,
            wide(clips.body_pos(row.frame)[0]) + DVec3::new(x, y, z),
            turn * rotation::from_wxyz_f32(clips.body_quat(row.frame)[0]),
            RootVelocity {
                linear: wide(clips.body_lin_vel(row.frame)[0]) + DVec3::new(vx, vy, vz),
                angular: wide(clips.body_ang_vel(row.frame)[0]) + DVec3::new(wx, wy, wz),
            },
        );
        let joints = clips.joint_pos(row.frame).iter().zip(&self.ranges);
        for (q, (motion, [low, high])) in qpos[state::JOINT_POSITIONS..].iter_mut().zip(joints) {
            *q = (f64::from(*motion) + draws.uniform(-0.1, 0.1)).clamp(*low, *high);
        }
        // Behind the root's six velocities.
        for (velocity, motion) in qvel[6..].iter_mut().zip(clips.joint_vel(row.frame)) {
            *velocity = f64::from(*motion);
        }
    }

    fn follow(&self, row: &mut Row, state: &[f64]) {
        let motion = rotation::from_wxyz_f32(self.clips.body_quat(row.frame)[ANCHOR]);
        let turn = rotation::heading(orientation(state, ANCHOR) * motion.conjugate());
        let position = position(state, ANCHOR);
        row.alignment = [turn.w, turn.z, position.x, position.y].map(|value| value as f32);
    }
}
