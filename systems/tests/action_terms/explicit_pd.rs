//! The torque law within the control step, against the same loop in MuJoCo's own Python package.

#[path = "../../mujoco/tests/common/oracle.rs"]
mod exchange;

use std::path::Path;

use manege_systems::config::PerName;
use manege_systems::managers::action::{ActionOptions, ExplicitPdAction};
use manege_systems::runtime::RuntimeOptions;

use super::{Env, action, chain, config, per_joint};

const STEPS: usize = 60;
const ROWS: usize = 5;
const STIFFNESS: [f64; 3] = [60.0, 30.0, 4.0];
const DAMPING: [f64; 3] = [1.5, 0.6, 0.05];
const LIMIT: [f64; 3] = [12.0, 5.0, 0.4];

fn term() -> ExplicitPdAction {
    ExplicitPdAction {
        scale: PerName::All(0.5),
        stiffness: per_joint(STIFFNESS),
        damping: per_joint(DAMPING),
        effort_limit: per_joint(LIMIT),
        ..ExplicitPdAction::around_default_pose(0.5, 0.0, 0.0, 0.0)
    }
}

/// Every row's state after every control step.
fn run(threads: usize) -> Vec<Vec<Vec<f64>>> {
    let options = RuntimeOptions { threads, ..RuntimeOptions::new(ROWS) };
    let mut env = Env::new(&chain("motor"), &config(ActionOptions::default(), term()), options);
    let mut states = vec![Vec::new(); ROWS];
    for step in 0..STEPS {
        env.step(&action(step, 3 * ROWS));
        for (row, states) in states.iter_mut().enumerate() {
            states.push(env.state(row));
        }
    }
    assert_eq!(env.faults(), 0);
    states
}

#[test]
fn torques_are_computed_from_the_state_of_every_physics_step() {
    let states = run(1);
    assert_eq!(states, run(2));
    assert_eq!(states, run(7));
    for (row, states) in states.iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        std::fs::write(path.join("model.xml"), chain("motor")).expect("writable");
        exchange::write(path, "qpos", &[0.4, -0.7, 0.2]);
        exchange::write(path, "qvel", &[0.0; 3]);
        exchange::write(path, "law", &[STIFFNESS, DAMPING, LIMIT].concat());
        let targets: Vec<f64> = (0..STEPS)
            .flat_map(|step| {
                let actions = action(step, 3 * ROWS);
                let default = [0.4f32, -0.7, 0.2];
                [0, 1, 2].map(|joint| f64::from(actions[3 * row + joint] * 0.5 + default[joint]))
            })
            .collect();
        exchange::write(path, "targets", &targets);
        if !exchange::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/explicit_pd.py"), path) {
            return;
        }
        let expected = exchange::read(path, "states");
        let actual: Vec<f64> = states.concat();
        for (i, (actual, expected)) in actual.iter().zip(&expected).enumerate() {
            assert!((actual - expected).abs() < 1e-12, "row {row}, step {}: {actual}, {expected}", i / 6);
        }
        assert!(expected.iter().any(|value| value.abs() > 1.0), "the arm moves");
    }
}
