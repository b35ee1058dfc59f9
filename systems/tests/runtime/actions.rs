//! Bad actions are refused, and leave no trace.

use manege_systems::error::StepError;
use manege_systems::step::StepCounter;

use crate::env::{ACTIONS, Env, options};
use crate::terms::config;

const ROWS: usize = 6;

fn bad_value(place: usize, value: f32) -> Vec<f32> {
    let mut actions = vec![0.5; ROWS * ACTIONS];
    actions[place] = value;
    actions
}

#[test]
fn values_that_are_not_finite_are_refused_by_row_and_column() {
    let mut env = Env::started(&config(), options(ROWS));
    for (place, value) in [(0, f32::NAN), (7, f32::INFINITY), (11, f32::NEG_INFINITY)] {
        let error = env.try_step(&bad_value(place, value)).unwrap_err();
        let StepError::ActionNotFinite { row, column, value: named } = error else { panic!("{error}") };
        assert_eq!((row as usize, column), (place / ACTIONS, place % ACTIONS));
        assert_eq!(named.to_bits(), value.to_bits());
        let text = error.to_string();
        assert!(text.contains(&format!("row {row}, column {column}")), "{text}");
    }
    let mut two = bad_value(9, f32::NAN);
    two[4] = f32::INFINITY;
    let error = env.try_step(&two).unwrap_err();
    assert!(matches!(error, StepError::ActionNotFinite { row: 2, column: 0, .. }), "the first one is named: {error}");
}

#[test]
fn buffers_of_the_wrong_size_are_refused() {
    let mut env = Env::started(&config(), options(ROWS));
    for actual in [0, 1, ROWS * ACTIONS - 1, ROWS * ACTIONS + 1, ROWS * ACTIONS + ACTIONS] {
        let error = env.try_step(&vec![0.0; actual]).unwrap_err();
        let StepError::ActionShape { rows: ROWS, width: ACTIONS, actual: named } = error else { panic!("{error}") };
        assert_eq!(named, actual);
        let text = error.to_string();
        assert!(text.contains("6 rows × 2 columns = 12") && text.contains(&format!("{actual} values")), "{text}");
    }
}

#[test]
fn the_environment_goes_on_as_if_the_bad_action_had_not_been() {
    let (mut env, mut twin) = (Env::started(&config(), options(ROWS)), Env::started(&config(), options(ROWS)));
    for step in 0..60 {
        env.step();
        twin.step();
        let before = env.snapshots();
        assert_eq!(before, twin.snapshots(), "step {step}");
        let counter = *env.world.resource::<StepCounter>();
        let log = env.log("reward/alive");
        env.try_step(&bad_value(step % 12, f32::NAN)).unwrap_err();
        env.try_step(&[]).unwrap_err();
        assert_eq!(env.snapshots(), before, "step {step}");
        assert_eq!(*env.world.resource::<StepCounter>(), counter);
        assert_eq!(env.log("reward/alive"), log);
    }
}

#[test]
fn large_but_finite_actions_are_the_policys_own_business() {
    let mut env = Env::started(&config(), options(ROWS));
    env.try_step(&bad_value(3, 1e6)).unwrap();
    assert_eq!(env.term(1, 1, "action"), [0.5, 1e6]);
    assert!(env.qpos(1).iter().all(|value| value.is_finite()));
}

#[test]
fn the_first_columns_drive_the_first_joints_whatever_the_order_of_actuators() {
    // Reports: mjlab PR 352, menagerie 148 (actuators in another order than joints).
    let mut env = Env::started(&config(), options(1));
    env.try_step(&[1.0, -0.5]).unwrap();
    // Targets are 0.5 × action + the joint's position in the keyframe (left 0.4, right -0.3); the right arm's
    // actuator comes first.
    let controls = env.world.resource::<manege_systems::step::Controls>().values();
    let expected = [-0.5 * 0.5 - 0.3, 0.5 + 0.4];
    for (control, expected) in controls.iter().zip(expected) {
        assert!((control - expected).abs() < 1e-6, "{controls:?}");
    }
}
