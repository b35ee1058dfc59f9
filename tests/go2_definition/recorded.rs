//! Rollouts, recomputed by MuJoCo's Python package with formulas of its own.

use std::path::Path;

use manege::Environment;
use manege_systems::backend::ModelField;
use manege_systems::step::AutoReset;

use crate::{JOINTS, NQ, NV, Numbers, PRESETS, Placed, Preset, builder, field, oracle, place};

const STEPS: usize = 12;

/// What the environment gave, each steps × rows × width; observations begin with the one before the first step.
#[derive(Default)]
struct Recording {
    policy: Vec<f64>,
    critic: Vec<f64>,
    terms: Vec<f64>,
    rewards: Vec<f64>,
    terminated: Vec<f64>,
    controls: Vec<f64>,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
}

/// The values as f64.
fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Takes the steps and records everything. No row may run out of time.
fn record(env: &mut Environment, actions: &[f64]) -> Recording {
    let [policy, critic] = ["policy", "critic"].map(|name| env.spec().group(name).unwrap());
    let mut recording = Recording::default();
    recording.policy.extend(wide(env.observation(policy)));
    recording.critic.extend(wide(env.observation(critic)));
    for actions in actions.chunks_exact(env.rows() * JOINTS) {
        let actions: Vec<f32> = actions.iter().map(|&value| value as f32).collect();
        env.step(&actions).unwrap();
        assert!(!env.truncated().contains(&true) && !env.diverged().contains(&true));
        recording.policy.extend(wide(env.observation(policy)));
        recording.critic.extend(wide(env.observation(critic)));
        recording.terms.extend(wide(env.reward_terms()));
        recording.rewards.extend(wide(env.rewards()));
        recording.terminated.extend(env.terminated().iter().map(|&flag| f64::from(u8::from(flag))));
        recording.controls.extend(env.controls());
        recording.qpos.extend(env.qpos());
        recording.qvel.extend(env.qvel());
    }
    recording
}

/// Steps the environment from where its rows are, and has the oracle do the same. Rows are compared up to the end of
/// their episode. Gives what the oracle found, `None` without one.
fn compare(env: &mut Environment, preset: Preset, phases: &[f32], seed: u64) -> Option<Recording> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let rows = env.rows();
    let mut numbers = Numbers(seed);
    // Rounded to f32, as the environment takes them.
    let actions: Vec<f64> = (0..STEPS * rows * JOINTS).map(|_| f64::from(numbers.uniform(-1.0, 1.0) as f32)).collect();

    env.save_model(path.join("model.mjb")).unwrap();
    let plan = format!(r#"{{"preset": "{}", "rows": {rows}, "steps": {STEPS}}}"#, preset.name);
    std::fs::write(path.join("plan.json"), plan).unwrap();
    oracle::write(path, "qpos", env.qpos());
    oracle::write(path, "qvel", env.qvel());
    oracle::write(path, "commands", &wide(env.commands()));
    oracle::write(path, "phases", &wide(phases));
    oracle::write(path, "actions", &actions);
    for (name, kind) in [
        ("kp", ModelField::ActuatorKp),
        ("kd", ModelField::ActuatorKd),
        ("mass", ModelField::BodyMass),
        ("com", ModelField::BodyCom),
        ("gravity", ModelField::Gravity),
    ] {
        let values: Vec<f64> = (0..rows).filter_map(|row| field(env, kind, row)).flatten().collect();
        if !values.is_empty() {
            oracle::write(path, name, &values);
        }
    }
    let actual = record(env, &actions);
    oracle::write(path, "controls", &actual.controls);
    if !oracle::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/go2_rollout.py"), path) {
        return None;
    }

    let read = |name: &str| oracle::read(path, &format!("expected_{name}"));
    let expected = Recording {
        policy: read("policy"),
        critic: read("critic"),
        terms: read("terms"),
        rewards: read("rewards"),
        terminated: read("terminated"),
        controls: read("controls"),
        qpos: read("qpos"),
        qvel: read("qvel"),
    };
    let check = |what, actual: &[f64], expected: &[f64], width, tolerance| {
        assert_rows_close(what, (actual, expected), (rows, width), tolerance);
    };
    check("controls", &actual.controls, &expected.controls, JOINTS, 1e-6);
    check("qpos", &actual.qpos, &expected.qpos, NQ, 0.0);
    check("qvel", &actual.qvel, &expected.qvel, NV, 0.0);
    check("policy", &actual.policy, &expected.policy, 49, 1e-6);
    check("critic", &actual.critic, &expected.critic, 52, 1e-6);
    check("terms", &actual.terms, &expected.terms, 9, 1e-5);
    check("rewards", &actual.rewards, &expected.rewards, 1, 1e-5);
    check("terminated", &actual.terminated, &expected.terminated, 1, 0.0);
    Some(expected)
}

/// Compares what is not NaN: to `tolerance` × (1 + size), and bit for bit if that is 0.
#[track_caller]
fn assert_rows_close(what: &str, (actual, expected): (&[f64], &[f64]), (rows, width): (usize, usize), tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    assert!(actual.len() >= STEPS * rows * width, "{what}");
    for (i, (&a, &e)) in actual.iter().zip(expected).enumerate().filter(|(_, (_, e))| !e.is_nan()) {
        let equal =
            if tolerance == 0.0 { a.to_bits() == e.to_bits() } else { (a - e).abs() <= tolerance * (1.0 + e.abs()) };
        let (step, row, column) = (i / (rows * width), i / width % rows, i % width);
        assert!(equal, "{what}, step {step}, row {row}, column {column}: {a:e}, but should be {e:e}");
    }
}

/// Rows that stand, crouch askew, fly, and fall on their side.
fn anywhere(row: usize, numbers: &mut Numbers) -> Placed {
    let axis = numbers.uniform(-3.0, 3.0);
    let axis = [axis.cos(), axis.sin(), 0.0];
    let (height, tilt) = match row % 4 {
        0 => (numbers.uniform(0.29, 0.33), numbers.uniform(-0.05, 0.05)),
        1 => (numbers.uniform(0.18, 0.28), numbers.uniform(-0.4, 0.4)),
        2 => (numbers.uniform(0.6, 1.0), numbers.uniform(-3.1, 3.1)),
        _ => (numbers.uniform(0.4, 0.5), numbers.uniform(0.8, 1.2)),
    };
    let mut placed = Placed::at_height(height).turned(axis, tilt).turned([0.0, 0.0, 1.0], numbers.uniform(-3.1, 3.1));
    placed.qpos[7..].iter_mut().for_each(|angle| *angle += numbers.uniform(-0.2, 0.2));
    placed.qvel[..6].fill_with(|| numbers.uniform(-1.0, 1.0));
    placed.qvel[6..].fill_with(|| numbers.uniform(-3.0, 3.0));
    placed.command = [(-0.6, 1.0), (-0.4, 0.4), (-0.8, 0.8)].map(|(low, high)| numbers.uniform(low, high) as f32);
    placed.phase = numbers.uniform(0.0, 1.0) as f32;
    placed
}

#[test]
fn observations_rewards_and_terminations_are_those_of_the_definition() {
    for preset in PRESETS {
        let mut env = builder(preset, 24)
            .randomization(false)
            .corruption(false)
            // Rows stay as they were at the end of their episode, for one step.
            .auto_reset(AutoReset::NextStep)
            .build()
            .unwrap();
        let names: Vec<&str> = env.spec().reward_terms.iter().map(String::as_str).collect();
        assert_eq!(names, preset.weights.map(|(name, _)| name));
        env.reset().unwrap();
        let mut numbers = Numbers(31);
        let rows: Vec<Placed> = (0..env.rows()).map(|row| anywhere(row, &mut numbers)).collect();
        place(&mut env, &rows);
        let phases: Vec<f32> = rows.iter().map(|row| row.phase).collect();
        let Some(expected) = compare(&mut env, preset, &phases, 5) else { return };

        // The rollout has been everywhere.
        let column = |term: usize| expected.terms.iter().skip(term).step_by(9).filter(|value| !value.is_nan());
        let weight = preset.weight("contact");
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            assert!(column(7).any(|value| (value / weight - share).abs() < 1e-6), "{share} of the feet agree");
        }
        assert!(column(8).any(|&value| value > 1.0) && column(8).any(|&value| value == 0.0));
        assert!(expected.terminated.contains(&1.0) && expected.terminated[(STEPS - 1) * 24..].contains(&0.0));
    }
}

#[test]
fn rows_with_varied_models_move_as_mujocos_with_the_same_numbers() {
    for preset in PRESETS {
        let mut env = builder(preset, 6).seed(8).corruption(false).auto_reset(AutoReset::NextStep).build().unwrap();
        env.reset().unwrap();
        // A second episode: fields written over fields.
        env.reset().unwrap();
        let phases = [0.0; 6];
        let Some(expected) = compare(&mut env, preset, &phases, 6) else { return };
        assert!(!expected.terminated.iter().any(|flag| flag.is_nan()), "all rows stand");
    }
}
