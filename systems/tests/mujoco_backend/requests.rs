//! Rows that fail, and requests that do not fit.

use manege_systems::backend::{
    BackendError, FaultReason, FieldWrite, ModelField, Output, RowFault, StateWrite, StepRequest, WriteKind,
};

use crate::{MACHINE, request, rows, step};

#[test]
fn unstable_rows_and_failed_constants_are_faults() {
    let mut request = request(3, vec![Output::Qpos]);
    request.fields = vec![ModelField::BodyCom];
    let ball = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>";
    let mut backend = rows(ball, 0.01, request);
    let qpos = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0].repeat(3);
    let mut qvel = vec![0.0; 18];
    qvel[6] = f64::NAN;
    // MuJoCo compiles a body with its centre of mass at its origin to a form without one.
    let mut com = vec![0.0; 18];
    com[12 + 3] = 0.1;
    let fields = [FieldWrite { field: ModelField::BodyCom, values: &com }];
    let write = StateWrite { rows: &[0, 1, 2], kind: WriteKind::Reset, qpos: &qpos, qvel: &qvel, fields: &fields };
    backend.write(write).expect("a valid write");
    let [unstable, failed] = backend.faults() else { panic!("{:?}", backend.faults()) };
    assert_eq!(*unstable, RowFault { row: 1, reason: FaultReason::Unstable("velocity") });
    assert!(matches!(failed, RowFault { row: 2, reason: FaultReason::EngineError(_) }));

    backend.step(StepRequest { rows: Some(&[0, 1]), substeps: 1, controls: &[], feedback: None }).expect("valid");
    assert_eq!(backend.faults(), [RowFault { row: 1, reason: FaultReason::Unstable("velocity") }]);
}

#[test]
fn requests_that_do_not_fit_change_nothing() {
    let mut request = request(3, vec![Output::Qpos]);
    request.fields = vec![ModelField::BodyMass];
    let mut backend = rows(MACHINE, 0.01, request);
    let before = backend.outputs().to_vec();

    let row = |rows: &'static [u32]| StepRequest { rows: Some(rows), substeps: 1, controls: &[0.5; 3], feedback: None };
    for rows in [&[3][..], &[1, 1], &[2, 0]] {
        assert!(matches!(backend.step(row(rows)), Err(BackendError::Row { rows: 3, .. })));
    }
    let short = StepRequest { rows: None, substeps: 1, controls: &[0.5; 2], feedback: None };
    assert!(matches!(backend.step(short), Err(BackendError::Size { expected: 3, actual: 2, .. })));

    let good = StateWrite { rows: &[0, 2], kind: WriteKind::Reset, qpos: &[0.4; 4], qvel: &[0.0; 4], fields: &[] };
    let write = |write| backend.write(write);
    let errors = [
        StateWrite { rows: &[0, 3], ..good },
        StateWrite { rows: &[2, 0], ..good },
        StateWrite { qpos: &[0.4; 3], ..good },
        StateWrite { qvel: &[0.0; 5], ..good },
        StateWrite { fields: &[FieldWrite { field: ModelField::BodyMass, values: &[1.0; 5] }], ..good },
        StateWrite { fields: &[FieldWrite { field: ModelField::Gravity, values: &[1.0; 6] }], ..good },
    ]
    .map(write)
    .map(Result::unwrap_err);
    assert!(matches!(errors[0], BackendError::Row { row: 3, .. }));
    assert!(matches!(errors[1], BackendError::Row { row: 0, .. }));
    assert!(matches!(errors[2], BackendError::Size { buffer: "qpos", expected: 4, actual: 3 }));
    assert!(matches!(errors[3], BackendError::Size { buffer: "qvel", expected: 4, actual: 5 }));
    assert!(matches!(errors[4], BackendError::Size { expected: 6, actual: 5, .. }));
    assert!(matches!(&errors[5], BackendError::Field(field) if field == "Gravity"));
    assert_eq!(backend.outputs(), before);
    step(&mut *backend, 1, &[0.0; 3]);
    assert_eq!(backend.outputs(), [0.0; 6]);
}
