//! `go2_joystick_flat`, fused.

use std::f64::consts::FRAC_PI_3;

use glam::DVec3;
use manege_components::{StreamId, rotation};
use manege_systems::backend::{ModelField, ModelInfo};

use crate::DirectError;
use crate::root::root_orientation;
use crate::task::{Clock, Ended, FusedTask, Plan, Slot, actuators, at, index_of, keyframe, noisy, outputs};
use crate::velocity::{CONTROL_PERIOD, EPISODE_STEPS, TIMER_END, VelocityCommand, begin_root, push_root};

const JOINTS: usize = 12;

/// What the task senses, after the generalised state.
const SENSORS: [&str; 11] = [
    "gyro",
    "upvector",
    "local_linvel",
    "FL_foot_contact",
    "FR_foot_contact",
    "RL_foot_contact",
    "RR_foot_contact",
    "FL_pos",
    "FR_pos",
    "RL_pos",
    "RR_pos",
];

/// Where the outputs lie in a row's state.
mod state {
    pub(super) const JOINT_POSITIONS: usize = 7;
    pub(super) const ROOT_VELOCITY: usize = 19;
    pub(super) const ROOT_ANGULAR_VELOCITY: usize = 22;
    pub(super) const JOINT_VELOCITIES: usize = 25;
    pub(super) const GYRO: usize = 37;
    pub(super) const UP: usize = 40;
    pub(super) const LINEAR_VELOCITY: usize = 43;
    pub(super) const FEET_FOUND: usize = 46;
    pub(super) const FEET_POSITIONS: usize = 50;
}

/// Offsets of FL, FR, RL and RR from the common phase, cycles.
const FOOT_OFFSETS: [f32; 4] = [0.0, 0.5, 0.5, 0.0];

/// Part of the cycle that a foot is on the ground.
const STANCE: f32 = 0.6;

/// Seconds between two pushes of all rows.
const PUSH_INTERVAL: f64 = 15.0;

const POLICY_POSITIONS: StreamId = StreamId::new("observation/policy/joint_pos");
const POLICY_VELOCITIES: StreamId = StreamId::new("observation/policy/joint_vel");
const CRITIC_POSITIONS: StreamId = StreamId::new("observation/critic/joint_pos");
const CRITIC_VELOCITIES: StreamId = StreamId::new("observation/critic/joint_vel");

/// What differs between the presets.
struct Preset {
    flashsac: bool,
    action_scale: f32,
    /// Square of the tracking rewards' width.
    variance: f64,
    weights: [f32; 9],
}

impl Preset {
    fn named(name: &str) -> Self {
        if name == "flashsac" {
            Self {
                flashsac: true,
                action_scale: 0.4,
                variance: 0.632_455_5_f64.powi(2),
                weights: [1.0, 0.2, -5.0, -0.1, -20.0, -0.02, -0.4, 1.5, 4.0],
            }
        } else {
            Self {
                flashsac: false,
                action_scale: 0.25,
                variance: 0.25,
                weights: [1.0, 0.2, -5.0, -0.1, -100.0, -0.005, -0.1, 0.24, 4.0],
            }
        }
    }
}

pub(crate) struct Go2JoystickFlat {
    preset: Preset,
    default_qpos: Vec<f64>,
    default_joints: [f64; JOINTS],
    /// Control index of the actuator that drives each joint.
    actuators: [usize; JOINTS],
    base: usize,
    base_mass: f64,
    base_com: [f64; 3],
    /// Common phase, cycles in `[0, 1)`, and what it makes of the feet.
    phase: f32,
    feet: [f32; 4],
    until_push: f64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    action: [f32; JOINTS],
    previous: [f32; JOINTS],
    command: VelocityCommand,
}

impl FusedTask for Go2JoystickFlat {
    type Row = Row;

    const ACTION_WIDTH: usize = JOINTS;
    const GROUP_WIDTHS: [usize; 2] = [49, 52];
    const REWARDS: usize = 9;
    const ERRORS: &'static [&'static str] = &["twist/error_vel_xy", "twist/error_vel_yaw"];
    const TIME_OUTS: u64 = 0b01;

    fn new(preset: &str, info: &ModelInfo, _rows: usize) -> Result<(Self, Plan), DirectError> {
        let preset = Preset::named(preset);
        let default_qpos = keyframe(info, "home")?;
        let base = index_of("body", "base", info.bodies.iter().map(|body| body.name.as_str()))?;
        let gains = |of: fn(&manege_systems::backend::ActuatorInfo) -> f64| info.actuators.iter().map(of).collect();
        let mut fields = vec![
            (ModelField::ActuatorKp, gains(|actuator| actuator.kp)),
            (ModelField::ActuatorKd, gains(|actuator| actuator.kd)),
        ];
        if preset.flashsac {
            fields.push((ModelField::BodyMass, info.bodies.iter().map(|body| body.mass).collect()));
            fields.push((ModelField::BodyCom, info.bodies.iter().flat_map(|body| body.com).collect()));
            // Drawn from a range of one value, the compiled one.
            fields.push((ModelField::Gravity, info.gravity.to_vec()));
        }
        let task = Self {
            default_joints: *at(&default_qpos, state::JOINT_POSITIONS),
            actuators: actuators(info)?,
            base,
            base_mass: info.bodies[base].mass,
            base_com: info.bodies[base].com,
            phase: 0.0,
            feet: FOOT_OFFSETS,
            until_push: PUSH_INTERVAL,
            default_qpos: default_qpos.clone(),
            preset,
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
            ctrl[actuator] = f64::from(action * self.preset.action_scale + default as f32);
        }
    }

    fn advance(&mut self) {
        const ADVANCE: f32 = (2.0 * CONTROL_PERIOD) as f32;
        self.phase = (self.phase + ADVANCE) % 1.0;
        self.feet = FOOT_OFFSETS.map(|offset| (self.phase + offset) % 1.0);
    }

    fn evaluate(&self, clock: &Clock, row: &mut Row, state: &[f64], rewards: &mut [f32]) -> u64 {
        let to_body = root_orientation(state).inverse();
        let velocity = to_body * rotation::vec3(at::<3>(state, state::ROOT_VELOCITY));
        let angular = at::<3>(state, state::ROOT_ANGULAR_VELOCITY);
        let command = row.command.values.map(f64::from);

        let variance = self.preset.variance;
        let lin_error = (command[0] - velocity.x).powi(2) + (command[1] - velocity.y).powi(2);
        let ang_error = command[2] - angular[2];
        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS);
        let deviation = joints.iter().zip(&self.default_joints).map(|(q, default)| (q - default).abs()).sum::<f64>();
        let rate = row.action.iter().zip(&row.previous).map(|(now, before)| (now - before).powi(2)).sum::<f32>();
        let found = at::<4>(state, state::FEET_FOUND);
        let positions = at::<12>(state, state::FEET_POSITIONS);
        // Minus 0 is what an empty sum is.
        let (mut agreeing, mut swing) = (0u8, -0.0);
        for (foot, &phase) in self.feet.iter().enumerate() {
            agreeing += u8::from((found[foot] > 0.1) == (phase < STANCE));
            if phase >= STANCE {
                swing += (-(positions[3 * foot + 2] - 0.1).powi(2) / 0.01).exp();
            }
        }
        let values = [
            (-lin_error / variance).exp() as f32,
            (-ang_error * ang_error / variance).exp() as f32,
            velocity.z.powi(2) as f32,
            (angular[0] * angular[0] + angular[1] * angular[1]) as f32,
            (state[2] - 0.3).powi(2) as f32,
            rate,
            deviation as f32,
            f32::from(agreeing) / 4.0,
            (swing / 4.0) as f32,
        ];
        for ((reward, value), weight) in rewards.iter_mut().zip(values).zip(&self.preset.weights) {
            *reward = value * weight;
        }

        // The tilt exceeds the limit where its cosine falls below the limit's.
        let gravity = to_body * DVec3::NEG_Z;
        u64::from(clock.step >= EPISODE_STEPS) | u64::from(-gravity.z < FRAC_PI_3.cos()) << 1
    }

    fn push_is_due(&mut self) -> bool {
        if !self.preset.flashsac {
            return false;
        }
        self.until_push -= CONTROL_PERIOD;
        let due = self.until_push < TIMER_END;
        if due {
            self.until_push = PUSH_INTERVAL;
        }
        due
    }

    fn push(&self, clock: &Clock, qpos: &mut [f64], qvel: &mut [f64]) {
        const STREAM: StreamId = StreamId::new("event/push");
        let draws = clock.streams.draws(STREAM, u64::from(clock.step));
        push_root(draws, [1.0, 1.0, 0.5, 0.0, 0.0, 0.0], qpos, qvel);
    }

    fn command(&self, clock: &Clock, row: &mut Row, state: &[f64], dt: f64) {
        let velocity = root_orientation(state).inverse() * rotation::vec3(at::<3>(state, state::ROOT_VELOCITY));
        row.command.advance(clock, velocity, state[state::ROOT_ANGULAR_VELOCITY + 2], dt, 0.0);
    }

    fn observe(&self, clock: &Clock, row: &Row, state: &[f64], policy: &mut [f32], critic: &mut [f32]) {
        for (out, value) in policy[..3].iter_mut().zip(at::<3>(state, state::GYRO)) {
            *out = *value as f32;
        }
        for (out, value) in policy[3..6].iter_mut().zip(at::<3>(state, state::UP)) {
            *out = -value as f32;
        }
        policy[30..42].copy_from_slice(&row.action);
        policy[42..45].copy_from_slice(&row.command.values);
        policy[45..49].copy_from_slice(&self.feet);

        let joints = at::<JOINTS>(state, state::JOINT_POSITIONS).iter().zip(&self.default_joints);
        let positions = joints.map(|(q, default)| (q - default) as f32);
        let velocities = at::<JOINTS>(state, state::JOINT_VELOCITIES).iter().map(|velocity| *velocity as f32);
        if self.preset.flashsac {
            noisy(clock, CRITIC_POSITIONS, 0.01, positions.clone(), &mut critic[6..18]);
            noisy(clock, CRITIC_VELOCITIES, 0.1, velocities.clone(), &mut critic[18..30]);
            noisy(clock, POLICY_POSITIONS, 0.01, positions, &mut policy[6..18]);
            noisy(clock, POLICY_VELOCITIES, 0.1, velocities, &mut policy[18..30]);
        } else {
            policy[6..18].iter_mut().zip(positions).for_each(|(out, value)| *out = value);
            policy[18..30].iter_mut().zip(velocities).for_each(|(out, value)| *out = value);
            critic[6..30].copy_from_slice(&policy[6..30]);
        }
        critic[..6].copy_from_slice(&policy[..6]);
        critic[30..49].copy_from_slice(&policy[30..49]);
        for (out, value) in critic[49..52].iter_mut().zip(at::<3>(state, state::LINEAR_VELOCITY)) {
            *out = *value as f32;
        }
    }

    fn errors(&self, ended: &Ended<'_, Row>, errors: &mut [f32]) {
        errors.copy_from_slice(&ended.row.command.errors);
    }

    fn begin(&self, clock: &Clock, row: &mut Row, mut slot: Slot<'_>) {
        const GAINS: StreamId = StreamId::new("event/pd_gains");
        const MASS: StreamId = StreamId::new("event/base_mass");
        const COM: StreamId = StreamId::new("event/base_com");
        row.action = [0.0; JOINTS];
        row.previous = [0.0; JOINTS];
        row.command.begin(clock, 0.0);

        begin_root(clock, &self.default_qpos, slot.qpos, slot.qvel);
        let mut draws = clock.streams.draws(GAINS, 0);
        slot.field(0).iter_mut().for_each(|kp| *kp = draws.uniform(31.5, 38.5));
        slot.field(1).iter_mut().for_each(|kd| *kd = draws.uniform(0.45, 0.55));
        if self.preset.flashsac {
            let drawn = clock.streams.draws(MASS, 0).uniform(-1.5, 1.5);
            slot.field(2)[self.base] = (self.base_mass + drawn).max(1e-6);
            // Only the first of the three coordinates varies.
            let drawn = clock.streams.draws(COM, 0).uniform(-0.05, 0.05);
            slot.field(3)[3 * self.base] = self.base_com[0] + drawn;
        }
    }
}
