//! Stepping and writing states.

use std::path::Path;

use manege_systems::backend::{
    BackendBuilder, FaultReason, Output, RowFault, StateWrite, StepRequest, SubstepControl, SubstepState, WriteKind,
};

use crate::{BIPED, MACHINE, builder, close, controls, oracle, request, rows, step};

#[test]
fn rollouts_have_the_bits_of_mujocos_own() {
    const ROWS: usize = 3;
    const STEPS: usize = 40;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let builder = builder(BIPED, 0.004);
    builder.save_model(&path.join("model.mjb")).expect("the directory is writable");
    let mut qpos = builder.info().keyframes[0].qpos.repeat(ROWS);
    (0..ROWS).for_each(|row| qpos[row * 9 + 8] += 0.1 * row as f64);
    let qvel: Vec<f64> = (0..ROWS * 8).map(|index| 0.2 * (index as f64).cos()).collect();
    let ctrl: Vec<f64> = (0..STEPS).flat_map(|step| controls(step, ROWS * 2)).collect();
    oracle::write(path, "qpos", &qpos);
    oracle::write(path, "qvel", &qvel);
    oracle::write(path, "ctrl", &ctrl);
    std::fs::write(path.join("plan.json"), r#"{"rows": 3, "steps": 40, "substeps": 5}"#).expect("writable");
    if !oracle::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("mujoco/tests/oracle/rollout.py"), path) {
        return;
    }

    // What each output is called in the recording, and where it is there; the last is an acceleration sensor.
    let outputs = [
        (Output::Qpos, "out_qpos", 0..9),
        (Output::BodyLinearVelocity(3), "fresh_velocity", 21..24),
        (Output::BodyOrientation(2), "fresh_xquat", 8..12),
        (Output::Sensor(2), "fresh_sensors", 6..7),
        (Output::Qvel, "out_qvel", 0..8),
        (Output::BodyAngularVelocity(3), "fresh_velocity", 18..21),
        (Output::BodyPosition(1), "fresh_xpos", 3..6),
        (Output::SitePosition(0), "fresh_site_xpos", 0..3),
        (Output::GeomPosition(3), "fresh_geom_xpos", 9..12),
        (Output::Sensor(0), "fresh_sensors", 0..3),
        (Output::Sensor(1), "out_sensors", 3..6),
    ];
    let recordings: Vec<Vec<f64>> = outputs.iter().map(|(_, name, _)| oracle::read(path, name)).collect();
    let mut backend =
        builder.build(&request(ROWS, outputs.iter().map(|output| output.0).collect())).expect("a valid request");
    let rows: Vec<u32> = (0..ROWS as u32).collect();
    let write = StateWrite { rows: &rows, kind: WriteKind::Reset, qpos: &qpos, qvel: &qvel, fields: &[] };
    backend.write(write).expect("a valid write");
    assert_eq!(backend.outputs().len(), ROWS * backend.output_width());
    let mut landed = false;
    for (index, controls) in ctrl.chunks_exact(ROWS * 2).enumerate() {
        step(&mut *backend, 5, controls);
        for (row, actual) in backend.outputs().chunks_exact(backend.output_width()).enumerate() {
            let expected: Vec<f64> = outputs
                .iter()
                .zip(&recordings)
                .flat_map(|((_, _, range), recording)| {
                    let width = recording.len() / (STEPS * ROWS);
                    recording[(index * ROWS + row) * width..][..width][range.clone()].to_vec()
                })
                .collect();
            oracle::assert_same_bits(&format!("row {row}, step {index}"), actual, &expected);
            landed |= actual[9 + 3 + 4] != 0.0;
        }
    }
    assert!(landed, "a foot touches the ground");
}

/// Patching a state with itself changes nothing; a reset forgets what is not given.
#[test]
fn patches_keep_and_resets_forget_what_is_not_given() {
    let make = || rows(BIPED, 0.004, request(2, vec![Output::Qpos, Output::Qvel]));
    let (mut plain, mut written, mut new) = (make(), make(), make());
    for index in 0..30 {
        step(&mut *plain, 3, &controls(index, 4));
        step(&mut *written, 3, &controls(index, 4));
    }
    let state = written.outputs().to_vec();
    let (qpos, qvel) = (&state[17..26], &state[26..]);
    written.write(StateWrite { rows: &[1], kind: WriteKind::Patch, qpos, qvel, fields: &[] }).expect("a valid write");
    assert_eq!(written.outputs(), state);
    for index in 30..60 {
        step(&mut *plain, 3, &controls(index, 4));
        step(&mut *written, 3, &controls(index, 4));
        oracle::assert_same_bits("patched", written.outputs(), plain.outputs());
    }

    let reset = StateWrite { rows: &[1], kind: WriteKind::Reset, qpos, qvel, fields: &[] };
    written.write(reset).expect("a valid write");
    new.write(reset).expect("a valid write");
    for index in 0..30 {
        step(&mut *written, 3, &controls(index, 4));
        step(&mut *new, 3, &controls(index, 4));
        oracle::assert_same_bits("reset", &written.outputs()[17..], &new.outputs()[17..]);
    }
}

#[test]
fn a_push_is_visible_at_once() {
    let mut backend = rows(BIPED, 0.004, request(2, vec![Output::Qvel, Output::BodyLinearVelocity(1)]));
    let before = backend.outputs().to_vec();
    let qpos = builder(BIPED, 0.004).info().default_qpos.clone();
    let qvel = [1.0, -2.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0];
    let push = StateWrite { rows: &[1], kind: WriteKind::Patch, qpos: &qpos, qvel: &qvel, fields: &[] };
    backend.write(push).expect("a valid write");
    assert_eq!(backend.outputs()[..11], before[..11]);
    assert_eq!(backend.outputs()[11 + 8..], [1.0, -2.0, 0.5]);
}

/// A control law on the state: it sees each substep's, and its own row's.
struct Spring;

impl SubstepControl for Spring {
    fn control(&self, row: usize, substep: u32, state: SubstepState<'_>, ctrl: &mut [f64]) {
        assert!((row, substep) != (2, 1), "a row that fails");
        ctrl[0] = 0.1 * row as f64 + 0.5 * state.qpos[0] - 0.2 * state.qvel[0];
    }
}

#[test]
fn feedback_is_computed_in_every_substep() {
    let mut request = request(3, vec![Output::Qpos, Output::Qvel]);
    request.substep_feedback = true;
    let mut backend = rows(MACHINE, 0.01, request);
    let step = StepRequest { rows: None, substeps: 4, controls: &[0.3; 3], feedback: Some(&Spring) };
    backend.step(step).expect("a valid request");

    let fault = RowFault { row: 2, reason: FaultReason::Panic("a row that fails".to_owned()) };
    assert_eq!(backend.faults(), [fault]);
    assert_eq!(backend.outputs()[8..], [0.0; 4]);
    for row in 0..2 {
        // m a = kp (u − x) with the law for u, by symplectic Euler.
        let (mut x, mut v) = (0.0, 0.0);
        for _ in 0..4 {
            v += 0.01 * 10.0 * (0.1 * f64::from(row) + 0.5 * x - 0.2 * v - x) / 2.0;
            x += 0.01 * v;
        }
        let actual = &backend.outputs()[4 * row as usize..][..4];
        assert!(close(actual[0], x) && close(actual[2], v), "{actual:?}, {x}, {v}");
    }

    let step = StepRequest { rows: None, substeps: 1, controls: &[0.3; 3], feedback: None };
    backend.step(step).expect("a valid request");
    assert_eq!(backend.faults(), []);
}
