//! Loading, adjusting, describing and saving models.

mod common;

use common::{file, oracle, walker};
use manege_mujoco::{Jacobian, JointKind, Model, ModelError, ModelOptions, ObjectKind, OptionValue};
use serde_json::{Value, json};

#[test]
fn descriptions_agree_with_mujocos_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let model = walker();
    model.save_mjb(directory.path().join("model.mjb")).expect("the directory is writable");
    if !oracle::run(file("oracle/describe.py"), directory.path()) {
        return;
    }
    let text = std::fs::read_to_string(directory.path().join("description.json")).expect("the script has written it");
    let expected: Value = serde_json::from_str(&text).expect("JSON");

    let kind = |kind| {
        [JointKind::Free, JointKind::Ball, JointKind::Slide, JointKind::Hinge]
            .into_iter()
            .position(|known| known == kind)
    };
    let joints: Vec<Value> = model
        .joints()
        .map(|joint| {
            json!({ "name": joint.name, "kind": kind(joint.kind), "body": joint.body, "qpos": joint.qpos,
                    "dof": joint.dof, "range": joint.range })
        })
        .collect();
    assert_eq!(Value::from(joints), expected["joints"]);

    let bodies: Vec<Value> = model
        .bodies()
        .map(|body| {
            json!({ "name": body.name, "parent": body.parent, "mass": body.mass, "com": body.com,
                    "inertia": body.inertia })
        })
        .collect();
    assert_eq!(Value::from(bodies), expected["bodies"]);

    let sensors: Vec<Value> = model
        .sensors()
        .map(|sensor| {
            json!({ "name": sensor.name, "first": sensor.data.start, "dim": sensor.data.len(),
                    "stage": sensor.stage as i32 })
        })
        .collect();
    assert_eq!(Value::from(sensors), expected["sensors"]);

    let keyframes: Vec<Value> =
        model.keyframes().map(|key| json!({ "name": key.name, "qpos": key.qpos, "qvel": key.qvel })).collect();
    assert_eq!(Value::from(keyframes), expected["keyframes"]);

    for (index, (actuator, expected)) in
        model.actuators().zip(expected["actuators"].as_array().expect("a list")).enumerate()
    {
        assert_eq!(actuator.name, expected["name"]);
        assert_eq!(actuator.controls, index..index + 1);
        assert_eq!(json!(actuator.joint), expected["joint"]);
        assert_eq!(json!(actuator.force_range), expected["force_range"]);
        match actuator.position_gains {
            Some([kp, kd]) => {
                assert_eq!((json!(kp), json!([0.0, -kp, -kd])), (expected["gain"].clone(), expected["bias"].clone()))
            }
            // The one motor.
            None => assert_eq!((actuator.name, &expected["bias"]), ("right_rear_knee", &json!([0.0, 0.0, 0.0]))),
        }
    }
    assert_eq!(json!(model.names(ObjectKind::Geom).collect::<Vec<_>>()), expected["geoms"]);
    assert_eq!(json!(model.names(ObjectKind::Site).collect::<Vec<_>>()), expected["sites"]);
    assert_eq!(json!(model.geom_friction()), expected["geom_friction"]);
    assert_eq!(json!(model.dof_armature()), expected["dof_armature"]);
    assert_eq!(json!(model.dof_damping()), expected["dof_damping"]);
    assert_eq!(json!(model.dof_friction_loss()), expected["dof_frictionloss"]);
    assert_eq!(json!(model.qpos0()), expected["qpos0"]);

    // Choices are numbers to Python: the walker's, in the order of MuJoCo's enumerations.
    let choices =
        [("integrator", "implicitfast", 3), ("cone", "elliptic", 1), ("jacobian", "auto", 2), ("solver", "Newton", 2)];
    let options: Vec<Value> = model
        .options()
        .into_iter()
        .map(|(name, value)| match value {
            OptionValue::Integer(value) => json!([name, value]),
            OptionValue::Number(value) => json!([name, value]),
            OptionValue::Numbers(values) => json!([name, values]),
            OptionValue::Text(text) => {
                let choice = choices.into_iter().find(|choice| (choice.0, choice.1) == (name, text));
                json!([name, choice.expect("the walker's choice").2])
            }
        })
        .collect();
    assert_eq!(Value::from(options), expected["options"]);
}

#[test]
fn options_change_what_they_name_and_nothing_else() {
    let model = walker();
    let changed = ModelOptions {
        timestep: Some(0.001),
        jacobian: Some(Jacobian::Sparse),
        islands: Some(false),
        midphase: Some(false),
    };
    let adjusted = model.clone().with_options(&changed).expect("valid options");
    let differing: Vec<_> = (model.options().into_iter().zip(adjusted.options()))
        .filter(|(before, after)| before != after)
        .map(|(_, after)| after)
        .collect();
    // mjDSBL_MIDPHASE is bit 14, mjDSBL_ISLAND bit 18.
    assert_eq!(
        differing,
        [
            ("timestep", OptionValue::Number(0.001)),
            ("jacobian", OptionValue::Text("sparse")),
            ("disableflags", OptionValue::Integer(1 << 14 | 1 << 18)),
        ]
    );
    let restored = ModelOptions {
        timestep: Some(model.timestep()),
        jacobian: Some(Jacobian::Auto),
        islands: Some(true),
        midphase: Some(true),
    };
    assert_eq!(adjusted.with_options(&restored).expect("valid options").options(), model.options());
    assert_eq!(model.timestep(), 0.004);

    for timestep in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        let options = ModelOptions { timestep: Some(timestep), ..ModelOptions::default() };
        let error = model.clone().with_options(&options).unwrap_err();
        assert!(matches!(error, ModelError::Option { option: "timestep", .. }), "{error}");
    }
}

#[test]
fn binary_models_keep_everything() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("walker.MJB");
    let options = ModelOptions { timestep: Some(0.003), ..ModelOptions::default() };
    let model = walker().with_options(&options).expect("valid options");
    model.save_mjb(&path).expect("the directory is writable");
    let loaded = Model::load(&path).expect("a model");
    assert_eq!(loaded.options(), model.options());
    assert_eq!(loaded.timestep(), 0.003);
    assert!(loaded.bodies().eq(model.bodies()));
    assert!(loaded.sensors().eq(model.sensors()));

    let bytes = std::fs::read(&path).expect("the file");
    for (name, bytes) in [("short", &bytes[..bytes.len() / 2]), ("empty", &[]), ("text", b"<mujoco/>")] {
        let path = directory.path().join(name).with_extension("mjb");
        std::fs::write(&path, bytes).expect("the directory is writable");
        let error = Model::load(&path).unwrap_err();
        assert!(matches!(error, ModelError::Load { .. }), "{name}: {error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = model.save_mjb(directory.path().join("no/such/directory.mjb")).unwrap_err();
    assert!(matches!(error, ModelError::File { action: "write", .. }), "{error}");
    let error = Model::load(directory.path().join("nothing.mjb")).unwrap_err();
    assert!(matches!(error, ModelError::File { action: "read", .. }), "{error}");
}

#[test]
fn mistakes_in_xml_are_reported_with_mujocos_message() {
    let error =
        Model::from_xml_str("<mujoco><worldbody><body><geom typ='box'/></body></worldbody></mujoco>").unwrap_err();
    let message = error.to_string();
    assert!(message.contains("typ") && message.contains("geom"), "{message}");
    let error = Model::load("there/is/no/such/robot.xml").unwrap_err();
    assert!(error.to_string().contains("there/is/no/such/robot.xml"), "{error}");
    let error = Model::from_xml_path("nul\0.xml").unwrap_err();
    assert!(matches!(error, ModelError::Path { .. }), "{error}");
}

#[test]
fn names_that_do_not_exist_come_with_the_nearest_ones() {
    let model = walker();
    for (id, name) in model.names(ObjectKind::Joint).enumerate() {
        assert_eq!(model.id(ObjectKind::Joint, name).expect("its own name"), id);
    }
    let error = model.id(ObjectKind::Joint, "left_frnt_knee").unwrap_err();
    let ModelError::UnknownName { kind: ObjectKind::Joint, name, nearest } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), nearest[0].as_str()), ("left_frnt_knee", "left_front_knee"));
    assert!(
        error.to_string().contains("no joint named `left_frnt_knee`; the nearest are `left_front_knee`"),
        "{error}"
    );
    assert!(
        matches!(model.id(ObjectKind::Body, "zzz"), Err(ModelError::UnknownName { nearest, .. }) if nearest.is_empty())
    );
    assert!(model.id(ObjectKind::Body, "trunk\0").is_err());
    assert_eq!(model.name(ObjectKind::Body, usize::MAX), "");
    assert_eq!(model.name(ObjectKind::Body, model.count(ObjectKind::Body)), "");
    // Leg capsules have no name.
    assert!(model.names(ObjectKind::Geom).any(str::is_empty));
}
