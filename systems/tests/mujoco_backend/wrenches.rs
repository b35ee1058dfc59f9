//! Forces and torques from outside.

use manege_systems::backend::{BackendError, Output, StateWrite, WrenchWrite, WriteKind};

use crate::{MACHINE, close, request, rows, step};

const H: f64 = 0.01;

/// Force along the rail on the block, and torque about the axle on the wheel.
fn values(force: f64, torque: f64) -> [f64; 12] {
    let mut values = [0.0; 12];
    (values[0], values[10]) = (force, torque);
    values
}

/// From rest, with no control, `v = h F / m` after a step, and so on; a wrench lasts until it is written or the row is reset.
#[test]
fn a_wrench_lasts_until_it_is_written_or_the_row_is_reset() {
    let mut backend = rows(MACHINE, H, request(3, vec![Output::Qvel]));
    let write = [values(6.0, 0.0), values(-2.0, 1.5)].concat();
    backend.apply_wrenches(WrenchWrite { rows: &[0, 2], bodies: &[1, 2], values: &write }).expect("valid");
    assert_eq!(backend.outputs(), [0.0; 6], "nothing moves before a step");
    let mut expected = [[0.0; 2]; 3];
    let check = |outputs: &[f64], expected: &[[f64; 2]; 3]| {
        assert!(outputs.iter().zip(expected.as_flattened()).all(|(a, b)| close(*a, *b)), "{outputs:?}, {expected:?}");
    };
    // One step from position 0, where the servo does nothing.
    step(&mut *backend, 1, &[0.0; 3]);
    expected[0][0] = H * 6.0 / 2.0;
    expected[2] = [H * -2.0 / 2.0, H * 1.5 / 0.5];
    check(backend.outputs(), &expected);

    // Row 0 is changed but for its wrench; row 2 begins anew.
    let state = |row, kind| StateWrite { rows: row, kind, qpos: &[0.0; 2], qvel: &[0.0; 2], fields: &[] };
    backend.write(state(&[0], WriteKind::Patch)).expect("valid");
    backend.write(state(&[2], WriteKind::Reset)).expect("valid");
    step(&mut *backend, 1, &[0.0; 3]);
    expected[2] = [0.0; 2];
    check(backend.outputs(), &expected);

    // One body of row 0 is written, and the other one's wrench stays.
    backend.write(state(&[0], WriteKind::Patch)).expect("valid");
    let torque = &values(0.0, 3.0)[6..];
    backend.apply_wrenches(WrenchWrite { rows: &[0], bodies: &[2], values: torque }).expect("valid");
    step(&mut *backend, 1, &[0.0; 3]);
    expected[0][1] = H * 3.0 / 0.5;
    check(backend.outputs(), &expected);
}

#[test]
fn wrenches_that_do_not_fit_are_refused_and_nothing_is_written() {
    let mut backend = rows(MACHINE, H, request(3, vec![Output::Qvel]));
    let good = WrenchWrite { rows: &[0, 1], bodies: &[1], values: &[5.0; 12] };
    let error = backend.apply_wrenches(WrenchWrite { rows: &[0, 3], ..good }).expect_err("no row 3");
    assert!(matches!(error, BackendError::Row { row: 3, rows: 3 }), "{error}");
    let error = backend.apply_wrenches(WrenchWrite { bodies: &[3], ..good }).expect_err("no body 3");
    assert_eq!(error.to_string(), "there is no body 3: the model has 3");
    let error = backend.apply_wrenches(WrenchWrite { values: &[5.0; 11], ..good }).expect_err("too few values");
    assert!(matches!(error, BackendError::Size { expected: 12, actual: 11, .. }), "{error}");
    step(&mut *backend, 1, &[0.0; 3]);
    assert_eq!(backend.outputs(), [0.0; 6]);
}
