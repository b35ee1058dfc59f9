//! Holds `go2_joystick_flat` to its definition: every term, range and time of its two presets.
//!
//! Where a number depends on the physics, the `mujoco` Python package works it out; see [`oracle`].

mod actions;
mod by_hand;
mod commands;
mod episodes;
mod events;
mod noise;
#[path = "../../systems/mujoco/tests/common/oracle.rs"]
mod oracle;
mod push;
mod recorded;

use manege::Environment;
use manege::environment::{EnvironmentBuilder, InitialState};
use manege_components::Row;
use manege_systems::backend::ModelField;
use manege_systems::staging::Staging;

const NQ: usize = 19;
const NV: usize = 18;
const JOINTS: usize = 12;

/// Joint positions of the keyframe `home`: FL, FR, RL, RR × hip, thigh, calf.
const HOME: [f64; JOINTS] = [0.0, 0.8, -1.5, 0.0, 0.8, -1.5, 0.0, 1.0, -1.5, 0.0, 1.0, -1.5];

/// What distinguishes the presets' numbers.
#[derive(Debug, Clone, Copy)]
struct Preset {
    name: &'static str,
    /// Joint displacement per unit of action, rad.
    action_scale: f64,
    /// Square of the tracking terms' width.
    tracking_variance: f64,
    weights: [(&'static str, f64); 9],
}

const BASE: Preset = Preset {
    name: "base",
    action_scale: 0.25,
    tracking_variance: 0.25,
    weights: [
        ("tracking_lin_vel", 1.0),
        ("tracking_ang_vel", 0.2),
        ("lin_vel_z", -5.0),
        ("ang_vel_xy", -0.1),
        ("base_height", -100.0),
        ("action_rate", -0.005),
        ("similar_to_default", -0.1),
        ("contact", 0.24),
        ("swing_feet_z", 4.0),
    ],
};

const FLASHSAC: Preset = Preset {
    name: "flashsac",
    action_scale: 0.4,
    tracking_variance: 0.4,
    weights: [
        ("tracking_lin_vel", 1.0),
        ("tracking_ang_vel", 0.2),
        ("lin_vel_z", -5.0),
        ("ang_vel_xy", -0.1),
        ("base_height", -20.0),
        ("action_rate", -0.02),
        ("similar_to_default", -0.4),
        ("contact", 1.5),
        ("swing_feet_z", 4.0),
    ],
};

const PRESETS: [Preset; 2] = [BASE, FLASHSAC];

impl Preset {
    fn weight(&self, term: &str) -> f64 {
        self.weights.iter().find(|(name, _)| *name == term).expect("a reward term").1
    }
}

fn builder(preset: Preset, rows: usize) -> EnvironmentBuilder {
    Environment::builder(&format!("go2_joystick_flat:{}", preset.name)).rows(rows)
}

/// An environment in which nothing is random, after its reset.
fn plain(preset: Preset, rows: usize) -> Environment {
    let mut env = builder(preset, rows).randomization(false).corruption(false).build().unwrap();
    env.reset().unwrap();
    env
}

/// A row's state, to be placed by [`place`]: at rest in the default pose, unless said otherwise.
#[derive(Debug, Clone)]
struct Placed {
    qpos: [f64; NQ],
    qvel: [f64; NV],
    command: [f32; 3],
    /// Gait phase before the next step, cycles.
    phase: f32,
}

impl Placed {
    /// The default pose with the root at a height, m.
    fn at_height(height: f64) -> Self {
        let mut qpos = [0.0; NQ];
        (qpos[2], qpos[3]) = (height, 1.0);
        qpos[7..].copy_from_slice(&HOME);
        Self { qpos, qvel: [0.0; NV], command: [0.0; 3], phase: 0.0 }
    }

    /// Turned about an axis of unit length by an angle, rad; turns add up, each about an axis of the world.
    fn turned(mut self, axis: [f64; 3], angle: f64) -> Self {
        let (s, c) = (0.5 * angle).sin_cos();
        let [x, y, z] = axis.map(|part| part * s);
        let [w0, x0, y0, z0] = [3, 4, 5, 6].map(|i| self.qpos[i]);
        self.qpos[3..7].copy_from_slice(&[
            c * w0 - x * x0 - y * y0 - z * z0,
            c * x0 + x * w0 + y * z0 - z * y0,
            c * y0 - x * z0 + y * w0 + z * x0,
            c * z0 + x * y0 - y * x0 + z * w0,
        ]);
        self
    }
}

/// Puts all rows where they are wanted.
fn place(env: &mut Environment, rows: &[Placed]) {
    env.set_initial(&InitialState {
        qpos: Some(rows.iter().flat_map(|row| row.qpos).collect()),
        qvel: Some(rows.iter().flat_map(|row| row.qvel).collect()),
        commands: vec![("twist".into(), rows.iter().flat_map(|row| row.command).collect())],
        task_state: vec![("gait_phase".into(), rows.iter().map(|row| row.phase).collect())],
    })
    .unwrap();
}

/// Takes a step with the same action value everywhere.
fn step(env: &mut Environment, action: f32) {
    let actions = vec![action; env.rows() * JOINTS];
    env.step(&actions).unwrap();
}

/// A row's values of an observation term.
fn observed(env: &Environment, group: &str, term: &str, row: usize) -> Vec<f64> {
    let index = env.spec().group(group).unwrap();
    let spec = &env.spec().groups[index];
    let columns = spec.terms.iter().find(|known| known.name == term).unwrap().columns.clone();
    env.observation(index)[row * spec.width..][columns].iter().map(|&value| f64::from(value)).collect()
}

/// A row's value × weight of a reward term.
fn rewarded(env: &Environment, term: &str, row: usize) -> f64 {
    let names = &env.spec().reward_terms;
    let index = names.iter().position(|name| name == term).unwrap();
    f64::from(env.reward_terms()[row * names.len() + index])
}

/// A row's values of a model parameter, as last written to the physics engine.
fn field(env: &Environment, field: ModelField, row: usize) -> Option<Vec<f64>> {
    env.world().resource::<Staging>().committed(field, Row(row as u32)).map(<[f64]>::to_vec)
}

/// Asserts that numbers agree to `tolerance` × (1 + size).
#[track_caller]
fn assert_close(what: &str, actual: f64, expected: f64, tolerance: f64) {
    let difference = (actual - expected).abs();
    assert!(difference <= tolerance * (1.0 + expected.abs()), "{what} is {actual}, but should be {expected}");
}

/// Asserts that numbers lie in a range and nearly fill it.
#[track_caller]
fn assert_fills(what: &str, values: impl IntoIterator<Item = f64>, low: f64, high: f64) {
    let (mut least, mut greatest, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0);
    for value in values {
        (least, greatest, count) = (least.min(value), greatest.max(value), count + 1);
    }
    // Bounds survive f32 and the conversion of velocities there and back.
    let rounding = 1e-6 * (1.0 + high.abs().max(low.abs()));
    assert!(low - rounding <= least && greatest <= high + rounding, "{what}: [{least}, {greatest}] in [{low}, {high}]");
    let gap = 0.05 * (high - low);
    assert!(least <= low + gap && greatest >= high - gap, "{what}: {count} values in [{least}, {greatest}] only");
}

/// Numbers that look random and are the same in every run: `SplitMix64`.
struct Numbers(u64);

impl Numbers {
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 * (high - low)
    }
}
