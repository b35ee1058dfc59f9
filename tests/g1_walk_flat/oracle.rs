//! Observations, rewards and terminations against MuJoCo's own Python package.

#[path = "../../systems/mujoco/tests/common/oracle.rs"]
mod exchange;

use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

use manege::Environment;
use manege::environment::InitialState;
use manege_systems::step::AutoReset;

use super::resets::with_gains;
use super::{JOINTS, NQ, NV, PRESETS, STAND, builder, scatter};

const ROWS: usize = 16;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

/// What rows did, step after step, row after row.
#[derive(Default)]
struct Record {
    arrays: [Vec<f64>; 10],
}

const NAMES: [&str; 10] =
    ["qpos", "qvel", "action", "previous", "command", "phase", "policy", "critic", "rewards", "ends"];

impl Record {
    fn add(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        self.arrays[NAMES.iter().position(|known| *known == name).unwrap()].extend(values);
    }

    fn get(&self, name: &str) -> &[f64] {
        &self.arrays[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    /// Takes the step and records it.
    fn step(&mut self, env: &mut Environment, phase: &[f32], previous: &[f32], action: &[f32]) {
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        env.step(action).unwrap();
        self.add("phase", wide(phase));
        self.add("previous", wide(previous));
        self.add("action", wide(action));
        self.add("qpos", env.qpos().to_vec());
        self.add("qvel", env.qvel().to_vec());
        self.add("command", wide(env.commands()));
        self.add("policy", wide(env.observation(0)));
        self.add("critic", wide(env.observation(1)));
        self.add("rewards", wide(env.reward_terms()));
        let ends = env.termination_terms().iter().flat_map(|bits| (0..3).map(move |term| (bits >> term & 1) as f64));
        self.add("ends", ends);
        for (terms, total) in env.reward_terms().chunks(9).zip(env.rewards()) {
            let sum: f32 = terms.iter().sum();
            assert!((sum * 0.02 - total).abs() < 1e-5 * total.abs().max(1.0), "{total} is not 0.02 s × {sum}");
        }
    }
}

fn singles(from: usize, count: usize, scale: f64) -> Vec<f32> {
    (from..from + count).map(|i| (scale * scatter(i)) as f32).collect()
}

/// Rows anywhere and moving; in the second half of the rows lying on their back, around 0.3 m high.
fn wild(round: usize, lying: bool) -> InitialState {
    let mut initial = InitialState::default();
    let (qpos, qvel) = (initial.qpos.insert(Vec::new()), initial.qvel.insert(Vec::new()));
    for row in 0..ROWS {
        let u: Vec<f64> = (0..100).map(|i| scatter(1000 * round + 100 * row + i)).collect();
        let (yaw, tilt) = (3.0 * u[3], if lying { -1.57 } else { 1.9 * u[4] });
        // Turned about the vertical, then about the axis that is at 30° to the robot's y axis, or is it.
        let (axis_x, axis_y) = if lying { (0.0, 1.0) } else { (0.5, 0.75f64.sqrt()) };
        let (sy, cy) = (0.5 * yaw).sin_cos();
        let (st, ct) = (0.5 * tilt).sin_cos();
        let height = if lying { 0.3 + 0.03 * u[2] } else { 1.3 + 0.3 * u[2] };
        qpos.extend([u[0], u[1], height]);
        qpos.extend([cy * ct, st * (cy * axis_x - sy * axis_y), st * (cy * axis_y + sy * axis_x), sy * ct]);
        qpos.extend(STAND[1..].iter().zip(&u[10..]).map(|(stand, u)| stand + 0.2 * u));
        qvel.extend(u[60..60 + NV].iter().map(|u| if lying { 0.1 * u } else { *u }));
    }
    let commands: Vec<f32> = singles(7000 + 100 * round, 3 * ROWS, 0.8);
    let phases: Vec<f32> =
        (0..2 * ROWS).map(|i| ((scatter(9000 + 100 * round + i) + 1.0) * 0.5 * TAU) as f32).collect();
    initial.commands = vec![("twist".to_owned(), commands)];
    initial.task_state = vec![("gait_phase".to_owned(), phases)];
    initial
}

fn record(preset: &str) -> Record {
    let mut record = Record::default();
    let mut env = builder(preset, ROWS).auto_reset(AutoReset::Disabled).corruption(false).build().unwrap();
    let zeros = vec![0.0; ROWS * JOINTS];
    for round in 0..4 {
        env.reset().unwrap();
        let initial = wild(round, round == 3);
        env.set_initial(&initial).unwrap();
        let action = singles(100 * round, ROWS * JOINTS, 0.3);
        record.step(&mut env, &initial.task_state[0].1, &zeros, &action);
    }
    // Two steps after an ordinary reset, so that there is an action before the last.
    env.reset().unwrap();
    let first = singles(20_000, ROWS * JOINTS, 0.2);
    env.step(&first).unwrap();
    let gait = super::columns(&env, "critic", "gait_phase");
    let width = env.spec().groups[1].width;
    let phases: Vec<f32> = env.observation(1).chunks(width).flat_map(|row| row[gait.clone()].to_vec()).collect();
    record.step(&mut env, &phases, &first, &singles(30_000, ROWS * JOINTS, 0.2));
    record
}

/// Asserts that two arrays agree as well as single precision allows; `name` gives the names of their columns.
#[track_caller]
fn assert_near(what: &str, names: &[(String, usize)], actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{what}: number of values");
    let columns: Vec<&str> = names.iter().flat_map(|(name, width)| vec![name.as_str(); *width]).collect();
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let (row, name) = (i / columns.len(), columns[i % columns.len()]);
        let error = (actual - expected).abs();
        assert!(error <= 2e-6 * expected.abs().max(1.0), "{what}, row {row}, {name}: {actual} should be {expected}");
    }
}

#[test]
fn every_term_agrees_with_mujoco_and_its_formula() {
    for preset in PRESETS {
        let folder = tempfile::tempdir().unwrap();
        let record = record(preset);
        for name in &NAMES[..6] {
            exchange::write(folder.path(), name, record.get(name));
        }
        exchange::write(folder.path(), "flashsac", &[f64::from(u8::from(preset == "flashsac"))]);
        if !exchange::run(script("g1_walk_flat.py"), folder.path()) {
            return;
        }
        let env = builder(preset, 1).build().unwrap();
        for group in &env.spec().groups {
            let names: Vec<_> = group.terms.iter().map(|term| (term.name.clone(), term.columns.len())).collect();
            let expected = exchange::read(folder.path(), &group.name);
            assert_near(&format!("{preset} {}", group.name), &names, record.get(&group.name), &expected);
        }
        let names: Vec<_> = env.spec().reward_terms.iter().map(|name| (name.clone(), 1)).collect();
        let expected = exchange::read(folder.path(), "rewards");
        assert_near(&format!("{preset} reward"), &names, record.get("rewards"), &expected);
        let expected = exchange::read(folder.path(), "ends");
        assert_eq!(record.get("ends"), expected, "{preset}: time_out, tilt and base_height of every row");
        for term in [1, 2] {
            let fired = expected.iter().skip(term).step_by(3).sum::<f64>();
            assert!(fired >= 4.0 && fired <= 0.6 * expected.len() as f64 / 3.0, "term {term} ends {fired} episodes");
        }
    }
}

#[test]
fn a_control_step_is_three_steps_of_mujoco_with_the_rows_own_gains() {
    with_gains(ROWS, |env, gains| {
        // Standing on the floor: the contacts count too.
        let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
        let action = singles(500, ROWS * JOINTS, 0.3);
        env.step(&action).unwrap();
        for (action, controls) in action.chunks(JOINTS).zip(env.controls().chunks(JOINTS)) {
            for ((action, control), stand) in action.iter().zip(controls).zip(&STAND[1..]) {
                assert!((f64::from(*action) + stand - control).abs() < 1e-6, "targets are around the standing pose");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let action: Vec<f64> = action.iter().map(|&value| f64::from(value)).collect();
        let arrays = [("qpos", &qpos), ("qvel", &qvel), ("action", &action), ("kp", &gains.kp), ("kd", &gains.kd)];
        for (name, values) in arrays {
            exchange::write(folder.path(), name, values);
        }
        if !exchange::run(script("g1_walk_flat_step.py"), folder.path()) {
            return;
        }
        let expected = exchange::read(folder.path(), "after");
        let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
        for row in 0..ROWS {
            let (positions, velocities) = expected[row * (NQ + NV)..][..NQ + NV].split_at(NQ);
            let compared = qpos[row * NQ..].iter().zip(positions).chain(qvel[row * NV..].iter().zip(velocities));
            for (actual, expected) in compared {
                assert!((actual - expected).abs() < 1e-5, "row {row}: {actual} should be {expected}");
            }
        }
    });
}
