//! What the backend says of models, and which it refuses.

use manege_systems::backend::mujoco::{MujocoBuilder, PhysicsOptions};
use manege_systems::backend::{
    BackendBuilder, BackendError, BackendRequest, Feature, Freshness, ModelField, OptionValue, Output,
};

use crate::{BIPED, MACHINE, builder, request};

#[test]
fn info_describes_the_model() {
    let builder = builder(BIPED, 0.004);
    let info = builder.info();
    assert_eq!((builder.engine(), info.nq, info.nv, info.nu), ("mujoco", 9, 8, 2));
    assert_eq!((info.timestep, info.floating_root, info.gravity), (0.004, Some(1), [0.0, 0.0, -9.81]));
    let joints: Vec<_> = info.joints.iter().map(|j| (j.name.as_str(), j.qpos, j.dof, j.range, j.actuator)).collect();
    assert_eq!(joints, [("left", 7, 6, Some([-1.0, 1.0]), Some(1)), ("right", 8, 7, None, Some(0))]);
    let actuators: Vec<_> =
        info.actuators.iter().map(|a| (a.name.as_str(), a.joint, a.kp, a.kd, a.force_range)).collect();
    assert_eq!(actuators, [("right", Some(1), 20.0, 0.5, Some([-9.0, 9.0])), ("left", Some(0), 25.0, 0.6, None)]);
    assert_eq!(
        info.bodies.iter().map(|body| body.name.as_str()).collect::<Vec<_>>(),
        ["world", "trunk", "left", "right"]
    );
    assert_eq!((info.bodies[1].mass, info.bodies[2].com), (4.0, [0.0, 0.0, -0.15]));
    assert_eq!(info.geoms, ["floor", "trunk", "left", "right"]);
    assert_eq!(info.geom_friction[..3], [0.8, 0.01, 0.001]);
    assert_eq!(info.dof_armature, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.01]);
    assert_eq!((info.dof_damping[6], info.dof_friction_loss[6], info.dof_friction_loss[7]), (0.1, 0.05, 0.0));
    assert_eq!(info.sites, ["imu"]);
    assert_eq!(
        info.sensors.iter().map(|s| (s.name.as_str(), s.dim)).collect::<Vec<_>>(),
        [("gyro", 3), ("accelerometer", 3), ("foot", 1)]
    );
    assert_eq!(info.default_qpos, [0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((info.keyframes[0].name.as_str(), info.keyframes[0].qpos[7]), ("home", 0.1));
    assert!(info.options.contains(&("jacobian".to_owned(), OptionValue::Text("sparse".to_owned()))));
    assert!(info.options.contains(&("timestep".to_owned(), OptionValue::Number(0.004))));
}

#[test]
fn models_that_cannot_be_described_are_refused_by_name() {
    let body = |joint| format!("<body name='b' pos='1 0 0'>{joint}<geom size='.1'/></body>");
    let free = body("<freejoint name='root'/>");
    for (worldbody, actuator, name) in [
        (body("<joint name='hip' type='ball'/>"), "", "hip"),
        (format!("{free}{}", body("<freejoint name='ball'/>").replace("'b'", "'c'")), "", "ball"),
        (format!("{}{free}", body("<joint name='j'/>").replace("'b'", "'c'")), "", "root"),
    ] {
        let xml = format!("<mujoco><worldbody>{worldbody}</worldbody><actuator>{actuator}</actuator></mujoco>");
        let error = MujocoBuilder::from_xml(&xml, &PhysicsOptions::new(0.01)).unwrap_err();
        assert!(
            matches!(&error, BackendError::Unsupported { engine: "mujoco", feature } if feature.contains(name)),
            "{error}"
        );
    }
    let error = MujocoBuilder::from_xml("<mujoco><nonsense/></mujoco>", &PhysicsOptions::new(0.01)).unwrap_err();
    assert!(matches!(&error, BackendError::Model(message) if message.contains("nonsense")), "{error}");
    assert!(matches!(MujocoBuilder::from_xml(BIPED, &PhysicsOptions::new(-1.0)), Err(BackendError::Model(_))));
    assert!(matches!(
        MujocoBuilder::load("no/such/robot.xml", &PhysicsOptions::new(0.01)),
        Err(BackendError::Model(_))
    ));
}

#[test]
fn what_the_engine_lacks_is_named() {
    let motor = MACHINE
        .replace("<position name=\"servo\" joint=\"rail\" kp=\"10\" kv=\"0\"/>", "<motor name=\"m\" joint=\"rail\"/>");
    for field in [ModelField::ActuatorKp, ModelField::ActuatorKd] {
        let builder = builder(&motor, 0.01);
        assert!(!builder.supports(Feature::Field(field)));
        let error =
            builder.build(&BackendRequest { fields: vec![field], ..request(1, vec![]) }).map(|_| ()).unwrap_err();
        assert!(matches!(&error, BackendError::Unsupported { feature, .. } if feature.contains("`m`")), "{error}");
        assert!(self::builder(MACHINE, 0.01).supports(Feature::Field(field)));
    }
    for output in [Output::BodyPosition(3), Output::Sensor(0), Output::SitePosition(0), Output::GeomPosition(1)] {
        assert!(!builder(MACHINE, 0.01).supports(Feature::Output(output)));
        let error = builder(MACHINE, 0.01).build(&request(1, vec![output])).map(|_| ()).unwrap_err();
        assert!(matches!(&error, BackendError::Unsupported { .. }), "{error}");
    }
    let builder = builder(MACHINE, 0.01);
    for feature in [
        Feature::Output(Output::BodyLinearVelocity(2)),
        Feature::Field(ModelField::Gravity),
        Feature::SubstepFeedback,
        Feature::Freshness(Freshness::LastSubstep),
    ] {
        assert!(builder.supports(feature));
    }
    assert!(builder.build(&request(0, vec![])).is_err());
}
