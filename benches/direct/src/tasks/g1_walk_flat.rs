//! `g1_walk_flat`, fused.

use std::f32::consts::{PI, TAU};

use manege_components::{StreamId, rotation};
use manege_systems::backend::{ModelField, ModelInfo};
use manege_tasks::terms::gait_pair::swing_height;

use crate::DirectError;
use crate::root::root_orientation;
use crate::task::{Clock, Ended, FusedTask, Plan, Slot, actuators, at, keyframe, noisy, outputs};
use crate::velocity::{CONTROL_PERIOD, EPISODE_STEPS, VelocityCommand, begin_root};

const JOINTS: usize = 29;

/// What the task senses, after the generalised state.
const SENSORS: [&str; 7] = [
    "torso_gyro",
    "torso_upvector",
    "pelvis_local_linvel",
    "left_foot_quat",
    "right_foot_quat",
    "left_foot_pos",
    "right_foot_pos",
];

/// Where the outputs lie in a row's state.
mod state {
    pub(super) const JOINT_POSITIONS: usize = 7;
    pub(super) const ROOT_VELOCITY: usize = 36;
    pub(super) const ROOT_ANGULAR_VELOCITY: usize = 39;
    pub(super) const JOINT_VELOCITIES: usize = 42;
    pub(super) const GYRO: usize = 71;
    pub(super) const UP: usize = 74;
    pub(super) const LINEAR_VELOCITY: usize = 77;
    pub(super) const LEFT_ORIENTATION: usize = 80;
    pub(super) const RIGHT_ORIENTATION: usize = 84;
    pub(super) const LEFT_POSITION: usize = 88;
    pub(super) const RIGHT_POSITION: usize = 91;
}

/// Planar speed up to which the command becomes 0, m/s.
const DEAD_BAND: f32 = 0.2;

/// Greatest height of a swinging foot, m.
const SWING_HEIGHT: f64 = 0.09;

const NOISE_POSITIONS: StreamId = StreamId::new("observation/policy/joint_pos");
const NOISE_VELOCITIES: StreamId = StreamId::new("observation/policy/joint_vel");

/// Penalties grow as episodes get longer.
struct PenaltyScaling {
    /// Episodes that the average is over.
    window: f64,
    /// Control steps.
    average_length: f64,
    scale: f64,
}

impl PenaltyScaling {
    fn new(rows: usize) -> Self {
        Self { window: (1000.0 * rows as f64 / 4096.0).floor().max(1.0), average_length: 0.0, scale: 0.125 }
    }

    /// Takes note of `count` episodes that lasted `steps` control steps together.
    fn update(&mut self, count: u32, steps: u64) {
        let share = (f64::from(count) / self.window).min(1.0);
        self.average_length = (1.0 - share) * self.average_length + share * (steps as f64 / f64::from(count));
        if self.average_length < 150.0 {
            self.scale *= 0.999;
        } else if self.average_length > 750.0 {
            self.scale *= 1.001;
        }
        self.scale = self.scale.clamp(0.125, 0.25);
    }

    fn apply(&self, configured: &[f32; 9]) -> [f32; 9] {
        configured.map(|weight| if weight < 0.0 { (f64::from(weight) * self.scale) as f32 } else { weight })
    }
}

pub(crate) struct G1WalkFlat {
    default_qpos: Vec<f64>,
    default_joints: [f64; JOINTS],
    actuators: [usize; JOINTS],
    pose_weights: [f64; JOINTS],
    /// Compiled gains of the actuators.
    kp: Vec<f64>,
    kd: Vec<f64>,
    configured: [f32; 9],
    weights: [f32; 9],
    /// Width of the foot height reward, m².
    foot_height_scale: f64,
    penalties: PenaltyScaling,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    action: [f32; JOINTS],
    previous: [f32; JOINTS],
    command: VelocityCommand,
    /// Left and right foot, rad in `[0, 2π)`.
    phases: [f32; 2],
}

impl FusedTask for G1WalkFlat {
    type Row = Row;

    const ACTION_WIDTH: usize = JOINTS;
    const GROUP_WIDTHS: [usize; 2] = [98, 101];
    const REWARDS: usize = 9;
    const ERRORS: &'static [&'static str] = &["twist/error_vel_xy", "twist/error_vel_yaw"];
    const TIME_OUTS: u64 = 0b001;

    fn new(preset: &str, info: &ModelInfo, rows: usize) -> Result<(Self, Plan), DirectError> {
        let flashsac = preset == "flashsac";
        let (action_rate, feet, foot_height_scale) = if flashsac { (-5.0, -25.0, 0.005) } else { (-4.0, -20.0, 0.04) };
        let configured = [2.0, 1.5, -1.0, -10.0, action_rate, -0.5, feet, 5.0, 10.0];
        let default_qpos = keyframe(info, "stand")?;
        let kp: Vec<f64> = info.actuators.iter().map(|actuator| actuator.kp).collect();
        let kd: Vec<f64> = info.actuators.iter().map(|actuator| actuator.kd).collect();
        // Hip pitch, roll and yaw, knee, ankle pitch and roll; then the waist and the arms.
        let leg = [0.01, if flashsac { 2.0 } else { 1.0 }, 5.0, 0.01, 5.0, 5.0];
        let mut pose_weights = [50.0; JOINTS];
        pose_weights[..6].copy_from_slice(&leg);
        pose_weights[6..12].copy_from_slice(&leg);
        let penalties = PenaltyScaling::new(rows);
        let fields = vec![(ModelField::ActuatorKp, kp.clone()), (ModelField::ActuatorKd, kd.clone())];
        let task = Self {
            default_joints: *at(&default_qpos, state::JOINT_POSITIONS),
            actuators: actuators(info)?,
            pose_weights,
            kp,
            kd,
            weights: penalties.apply(&configured),
            configured,
            foot_height_scale,
            penalties,
            default_qpos: default_qpos.clone(),
        };
        Ok((task, Plan { outputs: outputs(info, &SENSORS)?, fields, qpos: default_qpos }))
    }

    fn row(&self) -> Row {
        Row::default()
    }

    fn act(&self, row: &mut Row, action: &[f32], ctrl: &mut [f64]) {
        row.previous = row.action;
        row.action.copy_from_slice(action);
        for ((&action, &actuator), &default) in row.action.iter().zip(&self.actuators).zip(&self.default_joints) {
            ctrl[actuator] = f64::from(action + default as f32);
        }
    }

    fn evaluate(&self, clock: &Clock, row: &mut Row, state: &[f64], rewards: &mut [f32]) -> u64 {
        const ADVANCE: f32 = (std::f64::consts::TAU * 1.5 * CONTROL_PERIOD) as f32;
        row.phases = row.phases.map(|phase| (phase + ADVANCE) % TAU);

        let velocity = at::<3>(state, state::LINEAR_VELOCITY);
        let angular = at::<3>(state, state::GYRO);
        let up = at::<3>(state, state::UP);
        let command = row.command.values.map(f64::from);
        let lin_error = (command[0] - velocity[0]).powi(2) + (command[1] - velocity[1]).powi(2);
        let ang_error = command[2] - angular[2];
        let rate = row.action.iter().zip(&row.previous).map(|(now, before)| (now - before).powi(2)).sum::<f32>();
        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS).iter().zip(&self.default_joints);
        let pose = joints.zip(&self.pose_weights).map(|((q, default), w)| w * (q - default).powi(2)).sum::<f64>();
        let tilt = |start| {
            let wxyz = at::<4>(state, start);
            wxyz[1].powi(2) + wxyz[2].powi(2)
        };
        let heights = [state[state::LEFT_POSITION + 2], state[state::RIGHT_POSITION + 2]];
        let foot_error = |foot: usize| heights[foot] - SWING_HEIGHT * swing_height(f64::from(row.phases[foot]));
        let (left, right) = (foot_error(0), foot_error(1));
        let values = [
            (-lin_error / 0.25).exp() as f32,
            (-ang_error * ang_error / 0.25).exp() as f32,
            (angular[0] * angular[0] + angular[1] * angular[1]) as f32,
            (up[0] * up[0] + up[1] * up[1]) as f32,
            rate,
            pose as f32,
            (tilt(state::LEFT_ORIENTATION) + tilt(state::RIGHT_ORIENTATION)) as f32,
            (-(left * left + right * right) / self.foot_height_scale).exp() as f32,
            1.0,
        ];
        for ((reward, value), weight) in rewards.iter_mut().zip(values).zip(&self.weights) {
            *reward = value * weight;
        }

        // The tilt exceeds the limit where its cosine falls below the limit's.
        let tilted = up[2] < 65f64.to_radians().cos();
        u64::from(clock.step >= EPISODE_STEPS) | u64::from(tilted) << 1 | u64::from(state[2] < 0.3) << 2
    }

    fn command(&self, clock: &Clock, row: &mut Row, state: &[f64], dt: f64) {
        let velocity = root_orientation(state).inverse() * rotation::vec3(at::<3>(state, state::ROOT_VELOCITY));
        row.command.advance(clock, velocity, state[state::ROOT_ANGULAR_VELOCITY + 2], dt, DEAD_BAND);
    }

    fn observe(&self, clock: &Clock, row: &Row, state: &[f64], policy: &mut [f32], critic: &mut [f32]) {
        for (out, value) in policy[..3].iter_mut().zip(at::<3>(state, state::GYRO)) {
            *out = *value as f32 * 0.25;
        }
        for (out, value) in policy[3..6].iter_mut().zip(at::<3>(state, state::UP)) {
            *out = -value as f32;
        }
        policy[64..93].copy_from_slice(&row.action);
        policy[93..96].copy_from_slice(&row.command.values);
        policy[96..98].copy_from_slice(&row.phases);
        critic[..6].copy_from_slice(&policy[..6]);
        critic[64..98].copy_from_slice(&policy[64..98]);

        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS).iter().zip(&self.default_joints);
        for (out, (q, default)) in critic[6..35].iter_mut().zip(joints) {
            *out = (q - default) as f32;
        }
        for (out, value) in critic[35..64].iter_mut().zip(at::<JOINTS>(state, state::JOINT_VELOCITIES)) {
            *out = *value as f32;
        }
        noisy(clock, NOISE_POSITIONS, 0.01, critic[6..35].iter().copied(), &mut policy[6..35]);
        noisy(clock, NOISE_VELOCITIES, 0.1, critic[35..64].iter().copied(), &mut policy[35..64]);
        policy[35..64].iter_mut().chain(&mut critic[35..64]).for_each(|value| *value *= 0.05);
        for (out, value) in critic[98..101].iter_mut().zip(at::<3>(state, state::LINEAR_VELOCITY)) {
            *out = *value as f32 * 2.0;
        }
    }

    fn errors(&self, ended: &Ended<'_, Row>, errors: &mut [f32]) {
        errors.copy_from_slice(&ended.row.command.errors);
    }

    fn episodes_ended<'a>(&mut self, ended: impl Iterator<Item = Ended<'a, Row>>) {
        let (count, steps) =
            ended.fold((0, 0), |(count, steps), ended| (count + 1, steps + u64::from(ended.clock.step)));
        if count > 0 {
            self.penalties.update(count, steps);
            self.weights = self.penalties.apply(&self.configured);
        }
    }

    fn begin(&self, clock: &Clock, row: &mut Row, mut slot: Slot<'_>) {
        const GAINS: StreamId = StreamId::new("event/pd_gains");
        const PHASE: StreamId = StreamId::new("task/gait_phase");
        row.action = [0.0; JOINTS];
        row.previous = [0.0; JOINTS];
        row.command.begin(clock, DEAD_BAND);
        let left = clock.streams.draws(PHASE, 0).uniform_f32(0.0, TAU);
        row.phases = [left, (left + PI) % TAU];

        begin_root(clock, &self.default_qpos, slot.qpos, slot.qvel);
        let mut draws = clock.streams.draws(GAINS, 0);
        for (field, defaults) in [(0, &self.kp), (1, &self.kd)] {
            for (value, default) in slot.field(field).iter_mut().zip(defaults) {
                *value = default * draws.uniform(0.9, 1.1);
            }
        }
    }
}
