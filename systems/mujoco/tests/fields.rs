//! Per-row model fields and copies of data fields.

mod common;

use common::{file, noise, oracle, start, walker};
use manege_mujoco::{
    Batch, BatchError, BatchOptions, FaultReason, Model, ModelField, ObjectKind, RowFault, Stage, Step,
};
use serde_json::json;

const STEPS: usize = 150;

/// One row's change of a model: how the model is recompiled, and what is written into the row instead.
struct Variant {
    compiled: serde_json::Value,
    written: Vec<(&'static str, usize, Vec<f64>)>,
}

fn variants(model: &Model) -> Vec<Variant> {
    let id = |kind, name| model.id(kind, name).expect("a name");
    let trunk = id(ObjectKind::Body, "trunk");
    let floating_box = id(ObjectKind::Body, "box");
    let knee = model.joints().nth(id(ObjectKind::Joint, "left_rear_knee")).expect("a joint").dof;
    let foot = id(ObjectKind::Geom, "right_front_foot");
    let floor = id(ObjectKind::Geom, "floor");
    let servo = id(ObjectKind::Actuator, "right_front_hip");
    let (gains, biases) = (10 * servo, 10 * servo);
    let variant = |compiled, written| Variant { compiled, written };
    vec![
        variant(json!({}), vec![]),
        variant(json!({"body/trunk/mass": 8.5}), vec![("body_mass", trunk, vec![8.5])]),
        variant(
            json!({"body/trunk/ipos": [0.05, -0.02, 0.03]}),
            vec![("body_ipos", 3 * trunk, vec![0.05, -0.02, 0.03])],
        ),
        // The box's inertial frame is its body frame before, and is not any more after: MuJoCo has shortcuts for that.
        variant(
            json!({"body/box/ipos": [0.02, 0.03, -0.01]}),
            vec![("body_ipos", 3 * floating_box, vec![0.02, 0.03, -0.01])],
        ),
        variant(
            json!({"body/trunk/inertia": [0.05, 0.09, 0.11]}),
            vec![("body_inertia", 3 * trunk, vec![0.05, 0.09, 0.11])],
        ),
        variant(json!({"joint/left_rear_knee/armature": 0.07}), vec![("dof_armature", knee, vec![0.07])]),
        variant(json!({"joint/left_rear_knee/damping": [0.9]}), vec![("dof_damping", knee, vec![0.9])]),
        variant(json!({"joint/left_rear_knee/frictionloss": 0.5}), vec![("dof_frictionloss", knee, vec![0.5])]),
        variant(
            json!({"geom/floor/friction": [0.2, 0.02, 0.002], "geom/right_front_foot/friction": [0.3, 0.02, 0.002]}),
            vec![
                ("geom_friction", 3 * floor, vec![0.2, 0.02, 0.002]),
                ("geom_friction", 3 * foot, vec![0.3, 0.02, 0.002]),
            ],
        ),
        variant(
            json!({"actuator/right_front_hip/gainprm": [45.0], "actuator/right_front_hip/biasprm": [0.0, -45.0, -1.5]}),
            vec![("actuator_gainprm", gains, vec![45.0]), ("actuator_biasprm", biases, vec![0.0, -45.0, -1.5])],
        ),
        variant(json!({"option/-/gravity": [1.0, -0.5, -8.0]}), vec![("opt.gravity", 0, vec![1.0, -0.5, -8.0])]),
        variant(
            json!({"body/trunk/mass": 7.0, "body/box/mass": 3.0, "joint/left_rear_knee/armature": 0.04}),
            vec![
                ("body_mass", trunk, vec![7.0]),
                ("body_mass", floating_box, vec![3.0]),
                ("dof_armature", knee, vec![0.04]),
            ],
        ),
    ]
}

#[test]
fn fields_give_rows_what_recompiled_models_give() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let model = walker();
    let variants = variants(&model);
    let rows = variants.len();
    let (qpos, qvel) = start(&model, rows);
    // All rows start alike, so that it is the fields that make the difference.
    let (qpos, qvel) = (qpos[..model.nq()].repeat(rows), qvel[..model.nv()].repeat(rows));
    let ctrl: Vec<f64> = noise(3, STEPS * model.nu()).chunks(model.nu()).flat_map(|ctrl| ctrl.repeat(rows)).collect();
    oracle::write(path, "qpos", &qpos);
    oracle::write(path, "qvel", &qvel);
    oracle::write(path, "ctrl", &ctrl);
    let compiled: Vec<_> = variants.iter().map(|variant| &variant.compiled).collect();
    let plan = json!({ "xml": file("models/walker.xml"), "variants": compiled, "steps": STEPS });
    std::fs::write(path.join("plan.json"), plan.to_string()).expect("the directory is writable");
    if !oracle::run(file("oracle/variants.py"), path) {
        return;
    }

    let options = BatchOptions { rows, threads: 2, ..BatchOptions::default() };
    let mut batch = Batch::new(&model, &options).expect("valid options");
    for (row, variant) in variants.iter().enumerate() {
        batch.qpos_mut(row).expect("a row").copy_from_slice(&qpos[..model.nq()]);
        batch.qvel_mut(row).expect("a row").copy_from_slice(&qvel[..model.nv()]);
        for (name, first, values) in &variant.written {
            let field = batch.expand::<f64>(name).expect("a field");
            let row = batch.model_field_row_mut(field, row).expect("a row");
            row[*first..][..values.len()].copy_from_slice(values);
        }
    }
    batch.set_const(None).expect("all rows");
    assert_eq!(batch.faults(), []);

    let expected = oracle::read(path, "constants");
    for (row, expected) in expected.chunks_exact(expected.len() / rows).enumerate() {
        let names =
            ["body_subtreemass", "body_invweight0", "dof_M0", "dof_invweight0", "tendon_invweight0", "actuator_acc0"];
        let actual: Vec<f64> = names
            .into_iter()
            .flat_map(|name| {
                let field = batch.expand::<f64>(name).expect("a field");
                batch.model_field_row(field, row).expect("a row").to_vec()
            })
            .collect();
        oracle::assert_same_bits(&format!("constants of {}", variants[row].compiled), &actual, expected);
    }

    let (out_qpos, out_qvel) = (oracle::read(path, "out_qpos"), oracle::read(path, "out_qvel"));
    for (step, controls) in ctrl.chunks_exact(rows * model.nu()).enumerate() {
        batch.step(&Step { controls: Some(controls), ..Step::default() }).expect("a valid request");
        assert_eq!(batch.faults(), []);
        for (row, variant) in variants.iter().enumerate() {
            let what = format!("{} in step {step}", variant.compiled);
            let (nq, nv) = (model.nq(), model.nv());
            let index = step * rows + row;
            oracle::assert_same_bits(&what, batch.qpos(row).expect("a row"), &out_qpos[index * nq..][..nq]);
            oracle::assert_same_bits(&what, batch.qvel(row).expect("a row"), &out_qvel[index * nv..][..nv]);
        }
    }
    for (row, variant) in variants.iter().enumerate().skip(1) {
        let (varied, plain) = (batch.qpos(row).expect("a row"), batch.qpos(0).expect("a row"));
        assert_ne!(varied, plain, "{}", variant.compiled);
    }
}

#[test]
fn a_field_starts_from_the_models_values() {
    let model = walker();
    let mut batch = Batch::new(&model, &BatchOptions { rows: 3, ..BatchOptions::default() }).expect("valid options");
    let friction = batch.expand::<f64>("geom_friction").expect("a field");
    let expected = model.geom_friction().as_flattened().repeat(3);
    assert_eq!(batch.model_field(friction).expect("a field"), expected);
    let limited = batch.expand::<bool>("jnt_limited").expect("a field");
    let one: Vec<bool> = model.joints().map(|joint| joint.range.is_some()).collect();
    assert_eq!(batch.model_field(limited).expect("a field"), one.repeat(3));
    let disabled = batch.expand::<i32>("opt.disableflags").expect("an option");
    assert_eq!(batch.model_field(disabled).expect("an option"), [0, 0, 0]);
    // Asking again gives the same storage.
    batch.model_field_mut(friction).expect("a field")[4] = 0.123;
    let again = batch.expand::<f64>("geom_friction").expect("a field");
    assert_eq!(batch.model_field(again).expect("a field")[4], 0.123);
}

#[test]
fn bound_fields_hold_what_mujoco_computes() {
    let model = Model::from_xml_str(
        "<mujoco>
           <worldbody>
             <body pos='1 2 3'><freejoint/><inertial pos='0 0 0' mass='2' diaginertia='1 1 1'/></body>
             <body pos='0 0 1'><joint type='slide' axis='1 0 0'/><geom size='.1' mass='4' pos='.5 0 0'/></body>
           </worldbody>
         </mujoco>",
    )
    .expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions { rows: 2, ..BatchOptions::default() }).expect("valid options");
    let (bias, com, constraints) = (
        batch.bind::<f64>("qfrc_bias").expect("a field"),
        batch.bind::<f64>("xipos").expect("a field"),
        batch.bind::<i32>("nefc").expect("a field"),
    );
    assert!(batch.data_field(bias).expect("a field").iter().all(|value| *value == 0.0));
    batch.qpos_mut(1).expect("a row")[7] = 0.25;
    batch.forward(None, Stage::Acceleration).expect("all rows");
    // Bias forces counteract gravity: 2 kg × 9.81 m/s² upwards.
    let expected = [0.0, 0.0, 2.0 * 9.81, 0.0, 0.0, 0.0, 0.0].repeat(2);
    for (actual, expected) in batch.data_field(bias).expect("a field").iter().zip(expected) {
        assert!((actual - expected).abs() < 1e-12);
    }
    let com = batch.data_field(com).expect("a field");
    assert_eq!(com[6..9], [0.5, 0.0, 1.0]);
    assert_eq!(com[9 + 6..], [0.75, 0.0, 1.0]);
    assert_eq!(batch.data_field(constraints).expect("a field"), [0, 0]);

    batch.step_native(Some(&[1]), 3, Stage::Velocity).expect("a row");
    assert_eq!(batch.faults(), []);
    // Free fall by symplectic Euler: z = z₀ − g h² (1 + 2 + 3).
    let height = batch.qpos(1).expect("a row")[2];
    assert!((height - (3.0 - 9.81 * 0.002 * 0.002 * 6.0)).abs() < 1e-12);
    assert_eq!(batch.qpos(0).expect("a row")[2], 3.0);
}

#[test]
fn unknown_fields_are_errors_with_suggestions() {
    let model = walker();
    let mut batch = Batch::new(&model, &BatchOptions::default()).expect("valid options");
    let error = batch.expand::<f64>("body_mas").unwrap_err();
    assert!(matches!(&error, BatchError::UnknownField { nearest, .. } if nearest[0] == "body_mass"), "{error}");
    assert!(error.to_string().contains("`body_mass`"), "{error}");
    // The wrong type, an index, a state, a data field, nothing at all.
    for result in [
        batch.expand::<i32>("body_mass").err(),
        batch.expand::<i32>("body_parentid").err(),
        batch.expand::<f64>("opt.solver").err(),
        batch.expand::<f64>("xpos").err(),
        batch.expand::<f64>("").err(),
        batch.expand::<f64>("body_mass\0").err(),
        batch.bind::<f64>("qpos").err(),
        batch.bind::<f64>("body_mass").err(),
        batch.bind::<i32>("xpos").err(),
    ] {
        assert!(matches!(result, Some(BatchError::UnknownField { .. })), "{result:?}");
    }
}

#[test]
fn fields_of_other_batches_and_rows_are_errors() {
    let model = walker();
    let options = BatchOptions { rows: 2, ..BatchOptions::default() };
    let mut one = Batch::new(&model, &options).expect("valid options");
    let mut other = Batch::new(&model, &options).expect("valid options");
    let mass: ModelField<f64> = one.expand("body_mass").expect("a field");
    let friction: ModelField<f64> = other.expand("geom_friction").expect("a field");
    assert!(matches!(one.model_field(friction), Err(BatchError::ForeignField { name: "geom_friction" })));
    assert!(matches!(other.model_field_mut(mass), Err(BatchError::ForeignField { name: "body_mass" })));
    assert!(matches!(one.model_field_row(mass, 2), Err(BatchError::Row { row: 2, rows: 2 })));
    assert!(matches!(one.model_field_row_mut(mass, usize::MAX), Err(BatchError::Row { .. })));
}

/// Gain parameters of some actuators are addresses to MuJoCo, which nobody may write.
#[test]
fn gains_that_hold_addresses_cannot_be_expanded() {
    let model = Model::from_xml_str(
        "<mujoco>
           <worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>
           <actuator><muscle joint='j' lengthrange='0 1'/></actuator>
         </mujoco>",
    )
    .expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions::default()).expect("valid options");
    assert!(matches!(batch.expand::<f64>("actuator_gainprm"), Err(BatchError::SharedField { .. })));
    assert!(batch.expand::<f64>("actuator_biasprm").is_ok());
}

/// MuJoCo compiles a body whose centre of mass is its origin to a form that the origin's row cannot leave.
#[test]
fn moving_the_centre_of_mass_of_a_simple_body_is_a_fault() {
    let model = Model::from_xml_str(
        "<mujoco><worldbody><body name='ball'><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
    )
    .expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions { rows: 2, ..BatchOptions::default() }).expect("valid options");
    let com = batch.expand::<f64>("body_ipos").expect("a field");
    batch.model_field_row_mut(com, 1).expect("a row")[3] = 0.05;
    batch.set_const(None).expect("all rows");
    let [RowFault { row: 1, reason: FaultReason::Engine(message) }] = batch.faults() else {
        panic!("{:?}", batch.faults())
    };
    assert!(message.contains("simple"), "{message}");
}
