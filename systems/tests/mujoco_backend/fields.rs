//! Per-row model parameters.

use manege_systems::backend::{BackendBuilder, BackendRequest, FieldWrite, ModelField, Output, StateWrite, WriteKind};

use crate::{BIPED, MACHINE, builder, close, controls, oracle, request, rows, step};

/// What is written into a row.
type Values = Vec<(ModelField, Vec<f64>)>;

/// Each parameter in a row of its own, with its effect on the first step's velocities from rest: `v = h a`.
#[test]
fn fields_act_on_their_row_by_the_laws_of_motion() {
    const H: f64 = 0.01;
    // The row's values, and the block's and the wheel's velocity after a step with control 1.
    let cases: [(Values, [f64; 2]); 10] = [
        (vec![], [H * 10.0 / 2.0, 0.0]),
        (vec![(ModelField::BodyMass, vec![0.0, 5.0, 3.0])], [H * 10.0 / 5.0, 0.0]),
        // Weight times lever over inertia about the axle; a positive turn about y moves +x downwards.
        (
            vec![(ModelField::BodyCom, vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0])],
            [H * 5.0, H * (3.0 * 9.81 * 0.2) / (0.5 + 3.0 * 0.2 * 0.2)],
        ),
        (
            vec![
                (ModelField::BodyCom, vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0]),
                (ModelField::BodyInertia, vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.9, 1.0]),
            ],
            [H * 5.0, H * (3.0 * 9.81 * 0.2) / (0.9 + 3.0 * 0.2 * 0.2)],
        ),
        (vec![(ModelField::DofArmature, vec![0.5, 0.0])], [H * 10.0 / 2.5, 0.0]),
        // Damping is integrated implicitly: (m + h d) v = h f.
        (vec![(ModelField::DofDamping, vec![30.0, 0.0])], [H * 10.0 / (2.0 + H * 30.0), 0.0]),
        // Slipping, so that friction is at its limit.
        (vec![(ModelField::DofFrictionLoss, vec![3.0, 0.0])], [H * (10.0 - 3.0) / 2.0, 0.0]),
        (vec![(ModelField::ActuatorKp, vec![16.0])], [H * 16.0 / 2.0, 0.0]),
        (vec![(ModelField::ActuatorKd, vec![4.0])], [H * 10.0 / 2.0, 0.0]),
        (vec![(ModelField::Gravity, vec![3.0, 0.0, -9.81])], [H * (10.0 / 2.0 + 3.0), 0.0]),
    ];
    let fields: Vec<ModelField> = cases.iter().flat_map(|(values, _)| values).map(|(field, _)| *field).collect();
    let mut request = request(cases.len(), vec![Output::Qvel]);
    request.fields.clone_from(&fields);
    let mut backend = rows(MACHINE, H, request);
    for (row, (values, _)) in cases.iter().enumerate() {
        let fields: Vec<FieldWrite<'_>> =
            values.iter().map(|(field, values)| FieldWrite { field: *field, values }).collect();
        let rows = [row as u32];
        let write =
            StateWrite { rows: &rows, kind: WriteKind::Reset, qpos: &[0.0; 2], qvel: &[0.0; 2], fields: &fields };
        backend.write(write).expect("a valid write");
        assert_eq!(backend.faults(), []);
    }
    step(&mut *backend, 1, &vec![1.0; cases.len()]);
    for ((values, expected), actual) in cases.iter().zip(backend.outputs().chunks_exact(2)) {
        assert!(close(actual[0], expected[0]) && close(actual[1], expected[1]), "{values:?}: {actual:?}, {expected:?}");
    }

    // The servo's whole law at a position and velocity: m a = kp (1 − x) − kd v, in which MuJoCo's Euler integrator takes
    // the velocity as it was.
    let row = [8];
    let write = StateWrite { rows: &row, kind: WriteKind::Patch, qpos: &[0.3, 0.0], qvel: &[0.5, 0.0], fields: &[] };
    backend.write(write).expect("a valid write");
    step(&mut *backend, 1, &vec![1.0; cases.len()]);
    assert!(close(backend.outputs()[16], 0.5 + H * (10.0 * 0.7 - 4.0 * 0.5) / 2.0), "{}", backend.outputs()[16]);
}

/// A mass that is written gives what a model compiled with it gives, contacts and all: the constants that MuJoCo derives
/// from it have followed. Written again, it starts from the model's own values, not from the last ones.
#[test]
fn a_written_mass_equals_a_compiled_one() {
    let outputs = vec![Output::Qpos, Output::Qvel];
    let mut compiled = ["mass=\"4\"", "mass=\"7\""]
        .map(|mass| rows(&BIPED.replace("mass=\"4\"", mass), 0.004, request(1, outputs.clone())));
    let mut written = rows(BIPED, 0.004, BackendRequest { fields: vec![ModelField::BodyMass], ..request(3, outputs) });

    let info = builder(BIPED, 0.004).info().clone();
    let (qpos, qvel) = (info.keyframes[0].qpos.clone(), vec![0.0; 8]);
    let mut write = |row: u32, mass: f64| {
        let mut masses: Vec<f64> = info.bodies.iter().map(|body| body.mass).collect();
        masses[1] = mass;
        let fields = [FieldWrite { field: ModelField::BodyMass, values: &masses }];
        let write = StateWrite { rows: &[row], kind: WriteKind::Reset, qpos: &qpos, qvel: &qvel, fields: &fields };
        written.write(write).expect("a valid write");
        assert_eq!(written.faults(), []);
    };
    (0..3).for_each(|row| write(row, 9.0));
    write(0, 4.0);
    write(1, 7.0);
    write(2, 4.0);
    for backend in &mut compiled {
        let write = StateWrite { rows: &[0], kind: WriteKind::Reset, qpos: &qpos, qvel: &qvel, fields: &[] };
        backend.write(write).expect("a valid write");
    }
    for index in 0..100 {
        let controls = controls(index, 2);
        step(&mut *written, 2, &controls.repeat(3));
        compiled.iter_mut().for_each(|backend| step(&mut **backend, 2, &controls));
        let rows: Vec<_> = written.outputs().chunks_exact(17).collect();
        oracle::assert_same_bits("mass 4", rows[0], compiled[0].outputs());
        oracle::assert_same_bits("mass 7", rows[1], compiled[1].outputs());
        oracle::assert_same_bits("mass 4 again", rows[2], compiled[0].outputs());
    }
    assert_ne!(compiled[0].outputs(), compiled[1].outputs());
}

/// Sliding on the ground, a box slows down by `μ g`, but for the softness of MuJoCo's contacts.
#[test]
fn friction_slows_a_sliding_box() {
    let xml = r#"<mujoco>
      <option cone="elliptic" impratio="100"/>
      <worldbody>
        <geom type="plane" size="9 9 1"/>
        <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="2"/></body>
      </worldbody>
    </mujoco>"#;
    let request = BackendRequest { fields: vec![ModelField::GeomFriction], ..request(2, vec![Output::Qvel]) };
    let mut backend = rows(xml, 0.002, request);
    let friction = |mu| [mu, 0.005, 0.0001, mu, 0.005, 0.0001];
    let values = [friction(0.2), friction(0.5)].concat();
    let qpos = [0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0].repeat(2);
    let qvel = [3.0, 0.0, 0.0, 0.0, 0.0, 0.0].repeat(2);
    let fields = [FieldWrite { field: ModelField::GeomFriction, values: &values }];
    let write = StateWrite { rows: &[0, 1], kind: WriteKind::Reset, qpos: &qpos, qvel: &qvel, fields: &fields };
    backend.write(write).expect("a valid write");
    // First it settles into the ground.
    step(&mut *backend, 100, &[]);
    let before = backend.outputs().to_vec();
    step(&mut *backend, 50, &[]);
    for (row, mu) in [0.2, 0.5].into_iter().enumerate() {
        let slowing = (before[6 * row] - backend.outputs()[6 * row]) / 0.1;
        assert!((slowing / (mu * 9.81) - 1.0).abs() < 0.05, "{slowing}, but μ g = {}", mu * 9.81);
    }
}
