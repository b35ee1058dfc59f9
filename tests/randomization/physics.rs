//! The physics of rows with values of their own, against MuJoCo's own Python package.

use std::path::Path;

use manege::systems::backend::{BackendBuilder, ModelField};

use super::*;

const STEPS: usize = 60;
const SUBSTEPS: usize = 4;
const ROWS: usize = 2;

/// Fields by MuJoCo's names; gains are written as they are here.
const FIELDS: [(&str, ModelField); 10] = [
    ("body_mass", ModelField::BodyMass),
    ("body_ipos", ModelField::BodyCom),
    ("body_inertia", ModelField::BodyInertia),
    ("geom_friction", ModelField::GeomFriction),
    ("dof_armature", ModelField::DofArmature),
    ("dof_damping", ModelField::DofDamping),
    ("dof_frictionloss", ModelField::DofFrictionLoss),
    ("kp", ModelField::ActuatorKp),
    ("kd", ModelField::ActuatorKd),
    ("gravity", ModelField::Gravity),
];

/// MuJoCo derives constants from these when it compiles a model.
const DERIVED_FROM: [ModelField; 4] =
    [ModelField::BodyMass, ModelField::BodyCom, ModelField::BodyInertia, ModelField::DofArmature];

/// Every quantity in an environment of its own, then all in one: every row goes as a model with these values does whose
/// derived constants (subtree masses, inverse weights, the inertia matrix's diagonal) MuJoCo has computed anew.
#[test]
fn rows_go_as_models_with_their_values_do() {
    // Reports: mjlab PR 640 and PR 631 (masses and centres of mass without the constants derived from them).
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    builder(&config([])).save_model(&path.join("model.mjb")).expect("a model file");

    let terms = every_quantity(Distribution::uniform(0.6, 1.6), Operation::Scale);
    let all: Vec<Event> = terms.iter().map(|term| term.2.clone()).collect();
    let mut what: Vec<Option<ModelField>> = terms.iter().map(|term| Some(term.0)).collect();
    what.push(None);
    let mut envs: Vec<Env> = terms.into_iter().map(|term| Env::new([term.2], ROWS)).collect();
    envs.push(Env::new(all, ROWS));

    let rows = || (0..envs.len()).flat_map(|env| (0..ROWS).map(move |row| (env, row)));
    for (name, field) in FIELDS {
        let values: Vec<f64> = rows().flat_map(|(env, row)| envs[env].field(field, row as u32)).collect();
        oracle::write(path, name, &values);
    }
    let (qpos, qvel): (Vec<_>, Vec<_>) = rows().map(|(env, row)| envs[env].state(row)).unzip();
    oracle::write(path, "qpos", &qpos.concat());
    oracle::write(path, "qvel", &qvel.concat());
    oracle::write(path, "steps", &[STEPS as f64, SUBSTEPS as f64]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/randomization.py");
    if !oracle::run(script, path) {
        return;
    }

    // Rows × steps × (positions, velocities); as they should be, and with the constants of the compiled model.
    let (expected, stale) = (oracle::read(path, "expected"), oracle::read(path, "stale"));
    let (rows, width) = (ROWS * what.len(), envs[0].info.nq + envs[0].info.nv);
    assert_eq!(expected.len(), rows * STEPS * width);
    for step in 0..STEPS {
        for (index, (env, field)) in envs.iter_mut().zip(&what).enumerate() {
            env.step();
            for row in 0..ROWS {
                let (mut state, qvel) = env.state(row);
                state.extend(qvel);
                let place = ((ROWS * index + row) * STEPS + step) * width;
                oracle::assert_same_bits(
                    &format!("{field:?}, row {row}, step {step}"),
                    &state,
                    &expected[place..][..width],
                );
            }
        }
    }
    // The constants matter: without them the rows would have gone elsewhere.
    for (index, field) in what.iter().enumerate() {
        let values = ROWS * index * STEPS * width..ROWS * (index + 1) * STEPS * width;
        let derived = field.is_none_or(|field| DERIVED_FROM.contains(&field));
        assert_eq!(expected[values.clone()] != stale[values], derived, "{field:?}");
    }
}
