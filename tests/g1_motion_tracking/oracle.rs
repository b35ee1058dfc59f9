//! Observations, rewards, terminations and metrics against MuJoCo's own Python package.

#[path = "../../systems/mujoco/tests/common/oracle.rs"]
mod exchange;

use std::path::Path;

use glam::DQuat;
use manege::Environment;
use manege::environment::InitialState;
use manege_components::rotation;
use manege_systems::step::AutoReset;

use super::{FRAMES, JOINTS, NQ, NV, builder, frames, motion, scatter, state};

const ROWS: usize = 24;

/// The two rewards that the task does not use, with weights of their own.
const JOINT_REWARDS: &str = "rewards.motion_joint_pos.weight = 0.3\nrewards.motion_joint_vel.weight = 0.7";

/// What rows did, step after step, row after row.
#[derive(Default)]
struct Record {
    before: Vec<f64>,
    frame: Vec<f64>,
    after: Vec<f64>,
    action: Vec<f64>,
    previous: Vec<f64>,
    command: Vec<f64>,
    policy: Vec<f64>,
    critic: Vec<f64>,
    rewards: Vec<f64>,
    ends: Vec<f64>,
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn states(env: &mut Environment) -> Vec<f64> {
    let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
    qpos.chunks(NQ).zip(qvel.chunks(NV)).flat_map(|(qpos, qvel)| [qpos, qvel].concat()).collect()
}

impl Record {
    /// Takes the step and records it.
    fn step(&mut self, env: &mut Environment, previous: &[f32], action: &[f32]) {
        self.before.extend(states(env));
        self.frame.extend(frames(env).iter().map(|&frame| frame as f64));
        env.step(action).unwrap();
        self.after.extend(states(env));
        self.previous.extend(wide(previous));
        self.action.extend(wide(action));
        self.command.extend(wide(env.commands()));
        self.policy.extend(wide(env.observation(0)));
        self.critic.extend(wide(env.observation(1)));
        self.rewards.extend(wide(env.reward_terms()));
        self.ends
            .extend(env.termination_terms().iter().flat_map(|bits| (0..5).map(move |term| (bits >> term & 1) as f64)));
    }
}

fn singles(from: usize, scale: f64) -> Vec<f32> {
    (from..from + ROWS * JOINTS).map(|i| (scale * scatter(i)) as f32).collect()
}

/// Rows around the motion: farther from it the greater `spread` is, and all of them lower by `sink`, m.
fn around(round: usize, spread: f64, sink: f64) -> InitialState {
    let motion = motion();
    let mut initial = InitialState::default();
    let (qpos, qvel) = (initial.qpos.insert(Vec::new()), initial.qvel.insert(Vec::new()));
    let mut placed = Vec::new();
    for row in 0..ROWS {
        let u: Vec<f64> = (0..100).map(|i| scatter(1000 * round + 100 * row + i)).collect();
        // The first row of each round is at the end.
        let frame = if row == 0 { FRAMES - 1 } else { ((u[0] + 1.0) * 0.5 * (FRAMES - 2) as f64) as usize };
        placed.push(frame as f32);
        let (mut positions, mut velocities) = state(&motion, frame);
        for (position, u) in positions.iter_mut().zip(&u[1..]).take(3) {
            *position += spread * u;
        }
        positions[2] -= sink;
        let turned = DQuat::from_rotation_z(spread * 3.0 * u[5])
            * DQuat::from_rotation_y(spread * 3.5 * u[6])
            * rotation::from_wxyz(&positions[3..7]);
        positions[3..7].copy_from_slice(&rotation::to_wxyz(turned.normalize()));
        for (position, u) in positions[7..].iter_mut().zip(&u[10..]) {
            *position += 0.6 * spread * u;
        }
        for (velocity, u) in velocities.iter_mut().zip(&u[50..]) {
            *velocity += spread * u;
        }
        qpos.extend(positions);
        qvel.extend(velocities);
    }
    initial.task_state = vec![("motion_frame".to_owned(), placed)];
    initial
}

fn environment() -> Environment {
    builder(ROWS)
        .auto_reset(AutoReset::Disabled)
        .corruption(false)
        .config(JOINT_REWARDS.parse().unwrap())
        .build()
        .unwrap()
}

fn run_oracle(folder: &Path, record: &Record) -> bool {
    for (name, values) in [
        ("before", &record.before),
        ("after", &record.after),
        ("frame", &record.frame),
        ("action", &record.action),
        ("previous", &record.previous),
    ] {
        exchange::write(folder, name, values);
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/g1_motion_tracking.py");
    exchange::run(script, folder)
}

/// Asserts that two arrays agree as well as single precision allows; `names` gives the names and widths of their columns.
#[track_caller]
fn assert_near(what: &str, names: &[(String, usize)], actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{what}: number of values");
    let columns: Vec<&str> = names.iter().flat_map(|(name, width)| vec![name.as_str(); *width]).collect();
    for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let (row, name) = (i / columns.len(), columns[i % columns.len()]);
        let error = (actual - expected).abs();
        assert!(error <= 4e-6 * expected.abs().max(1.0), "{what}, row {row}, {name}: {actual} should be {expected}");
    }
}

#[test]
fn every_term_agrees_with_mujoco_and_its_formula() {
    let mut record = Record::default();
    let mut env = environment();
    let zeros = vec![0.0; ROWS * JOINTS];
    for (round, (spread, sink)) in [(0.02, 0.0), (0.2, 0.0), (0.6, 0.0), (0.4, 0.65)].into_iter().enumerate() {
        env.reset().unwrap();
        env.set_initial(&around(round, spread, sink)).unwrap();
        record.step(&mut env, &zeros, &singles(100 * round, 0.3));
    }
    // Two steps on end: the second compares with how the motion was laid over the robot after the first.
    let enabled = "terminations.anchor_pos.enabled = false\nterminations.anchor_ori.enabled = false\n\
                   terminations.ee_body_pos.enabled = false\nterminations.motion_clip_end.enabled = false";
    let mut free = builder(ROWS)
        .auto_reset(AutoReset::Disabled)
        .corruption(false)
        .config(JOINT_REWARDS.parse().unwrap())
        .config(enabled.parse().unwrap())
        .build()
        .unwrap();
    free.reset().unwrap();
    let first = singles(20_000, 0.2);
    free.step(&first).unwrap();
    let from = record.ends.len();
    record.step(&mut free, &first, &singles(30_000, 0.2));
    // Without the other terms, only bit 0 means anything.
    record.ends.truncate(from);

    let folder = tempfile::tempdir().unwrap();
    if !run_oracle(folder.path(), &record) {
        return;
    }
    for (group, found) in env.spec().groups.iter().zip([&record.policy, &record.critic]) {
        let names: Vec<_> = group.terms.iter().map(|term| (term.name.clone(), term.columns.len())).collect();
        assert_near(&group.name, &names, found, &exchange::read(folder.path(), &group.name));
    }
    let names: Vec<_> = env.spec().reward_terms.iter().map(|name| (name.clone(), 1)).collect();
    let expected = exchange::read(folder.path(), "rewards");
    assert_near("reward", &names, &record.rewards, &expected);
    for (term, name) in env.spec().reward_terms.iter().enumerate() {
        let counting = expected.iter().skip(term).step_by(names.len()).filter(|value| value.abs() > 1e-3).count();
        assert!(counting >= 8, "{name} says something of {counting} rows only");
    }
    assert_near("command", &[("motion".to_owned(), 58)], &record.command, &exchange::read(folder.path(), "command"));
    let expected = &exchange::read(folder.path(), "ends")[..from];
    assert_eq!(record.ends, expected, "time_out, clip_end, anchor_pos, anchor_ori and ee_body_pos of every row");
    for (term, least) in [(1, 4.0), (2, 4.0), (3, 4.0), (4, 8.0)] {
        let fired = expected.iter().skip(term).step_by(5).sum::<f64>();
        assert!(fired >= least && fired <= 0.6 * (4 * ROWS) as f64, "term {term} ends {fired} episodes");
    }
}

#[test]
fn the_errors_of_an_episode_are_logged_when_it_is_reset() {
    let mut env = environment();
    env.reset().unwrap();
    env.set_initial(&around(1, 0.2, 0.0)).unwrap();
    let mut record = Record::default();
    record.step(&mut env, &[0.0; ROWS * JOINTS], &singles(0, 0.3));
    env.reset().unwrap();
    let folder = tempfile::tempdir().unwrap();
    if !run_oracle(folder.path(), &record) {
        return;
    }
    let rows = exchange::read(folder.path(), "metrics");
    let names = [
        "anchor_pos",
        "anchor_rot",
        "anchor_lin_vel",
        "anchor_ang_vel",
        "body_pos",
        "body_rot",
        "body_lin_vel",
        "body_ang_vel",
        "joint_pos",
        "joint_vel",
    ];
    for (i, name) in names.iter().enumerate() {
        let expected = rows.iter().skip(i).step_by(names.len()).sum::<f64>() / ROWS as f64;
        let logged = env.log().get(&format!("Metrics/motion/error_{name}")).unwrap();
        assert!((logged - expected).abs() < 5e-6 * expected.max(1.0), "{name}: {logged} should be {expected}");
        assert!(expected > 0.01, "{name} is {expected}");
    }
}
