//! What resets draw: where rows start, and the model that each row gets.

use std::f64::consts::PI;

use manege::Environment;
use manege_systems::backend::ModelField;

use crate::{BASE, FLASHSAC, HOME, PRESETS, assert_close, assert_fills, builder, field, plain};

const GAINS: [(ModelField, f64, f64); 2] = [(ModelField::ActuatorKp, 31.5, 38.5), (ModelField::ActuatorKd, 0.45, 0.55)];

/// Velocity of a body, given in its own frame, in the world's, for a body that is turned about the vertical alone.
fn to_world(yaw: f64, [x, y, z]: [f64; 3]) -> [f64; 3] {
    let (s, c) = yaw.sin_cos();
    [c * x - s * y, s * x + c * y, z]
}

#[test]
fn rows_start_upright_anywhere_near_the_origin() {
    const ROWS: usize = 256;
    for preset in PRESETS {
        let mut env = builder(preset, ROWS).seed(1).build().unwrap();
        env.reset().unwrap();
        let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
        let mut yaws = Vec::new();
        for qpos in qpos.chunks_exact(19) {
            assert_eq!((qpos[2], &qpos[7..]), (0.3, &HOME[..]));
            assert_close("roll and pitch", qpos[4].hypot(qpos[5]), 0.0, 1e-12);
            yaws.push(2.0 * qpos[6].atan2(qpos[3]));
        }
        assert_fills("x", qpos.iter().step_by(19).copied(), -0.5, 0.5);
        assert_fills("y", qpos.iter().skip(1).step_by(19).copied(), -0.5, 0.5);
        let wrapped = yaws.iter().map(|yaw| (yaw + PI).rem_euclid(2.0 * PI) - PI);
        assert_fills("yaw", wrapped, -PI, PI);

        let mut angular = Vec::new();
        for (qvel, &yaw) in qvel.chunks_exact(18).zip(&yaws) {
            assert_eq!(qvel[6..], [0.0; 12]);
            angular.push(to_world(yaw, [qvel[3], qvel[4], qvel[5]]));
        }
        for axis in 0..3 {
            assert_fills("linear velocity", qvel.iter().skip(axis).step_by(18).copied(), -0.5, 0.5);
            assert_fills("angular velocity", angular.iter().map(|angular| angular[axis]), -0.5, 0.5);
        }
        // In the body frame the corners of that square stick out: the range is the world's.
        assert!(qvel.chunks_exact(18).any(|qvel| qvel[3].abs() > 0.55));
    }
}

#[test]
fn gains_are_drawn_for_each_actuator() {
    const ROWS: usize = 128;
    for preset in PRESETS {
        let mut env = builder(preset, ROWS).build().unwrap();
        env.reset().unwrap();
        for (gain, low, high) in GAINS {
            let rows: Vec<Vec<f64>> = (0..ROWS).map(|row| field(&env, gain, row).unwrap()).collect();
            assert_fills("gain", rows.iter().flatten().copied(), low, high);
            for actuator in 0..12 {
                assert_fills("gain of one actuator", rows.iter().map(|row| row[actuator]), low, high);
            }
            let mut all: Vec<f64> = rows.concat();
            all.sort_by(f64::total_cmp);
            all.dedup();
            assert_eq!(all.len(), ROWS * 12, "no two actuators share a draw");
        }
    }
}

#[test]
fn flashsac_varies_the_base_and_nothing_else() {
    const ROWS: usize = 128;
    let mut env = builder(FLASHSAC, ROWS).build().unwrap();
    env.reset().unwrap();
    let bodies = env.model_info().bodies.clone();
    let base = bodies.iter().position(|body| body.name == "base").unwrap();
    assert_eq!(bodies[base].mass, 6.921);
    let column = |kind: ModelField, index: usize| -> Vec<f64> {
        (0..ROWS).map(|row| field(&env, kind, row).unwrap()[index]).collect()
    };
    assert_fills("mass", column(ModelField::BodyMass, base), 6.921 - 1.5, 6.921 + 1.5);
    assert_fills(
        "centre of mass",
        column(ModelField::BodyCom, 3 * base),
        bodies[base].com[0] - 0.05,
        bodies[base].com[0] + 0.05,
    );
    for (index, body) in bodies.iter().enumerate() {
        if index != base {
            assert_eq!(column(ModelField::BodyMass, index), [body.mass; ROWS], "{}", body.name);
        }
        for axis in (0..3).filter(|&axis| index != base || axis > 0) {
            assert_eq!(column(ModelField::BodyCom, 3 * index + axis), [body.com[axis]; ROWS], "{}", body.name);
        }
    }
    for row in 0..ROWS {
        assert_eq!(field(&env, ModelField::Gravity, row).unwrap(), [0.0, 0.0, -9.81]);
    }
    assert_eq!(field(&env, ModelField::BodyInertia, 0), None);
    assert_eq!(field(&env, ModelField::DofArmature, 0), None);
    assert_eq!(field(&env, ModelField::GeomFriction, 0), None);

    let base = builder(BASE, 1).build().unwrap();
    for kind in [ModelField::BodyMass, ModelField::BodyCom, ModelField::Gravity] {
        assert_eq!(field(&base, kind, 0), None);
    }
}

/// Every draw starts from the compiled model, not from the last draw.
#[test]
fn a_thousand_resets_do_not_add_up() {
    let mut env = builder(FLASHSAC, 1).build().unwrap();
    let base = env.model_info().bodies.iter().position(|body| body.name == "base").unwrap();
    let com = env.model_info().bodies[base].com[0];
    let mut drawn: [Vec<f64>; 5] = Default::default();
    for _ in 0..1000 {
        env.reset().unwrap();
        drawn[0].push(field(&env, ModelField::BodyMass, 0).unwrap()[base]);
        drawn[1].push(field(&env, ModelField::BodyCom, 0).unwrap()[3 * base]);
        drawn[2].push(field(&env, ModelField::ActuatorKp, 0).unwrap()[7]);
        drawn[3].push(field(&env, ModelField::ActuatorKd, 0).unwrap()[7]);
        drawn[4].push(env.qpos()[0]);
        assert_eq!(field(&env, ModelField::Gravity, 0).unwrap(), [0.0, 0.0, -9.81]);
        assert_eq!(env.qpos()[2], 0.3);
    }
    let ranges = [(6.921 - 1.5, 6.921 + 1.5), (com - 0.05, com + 0.05), (31.5, 38.5), (0.45, 0.55), (-0.5, 0.5)];
    for (values, (low, high)) in drawn.iter().zip(ranges) {
        assert_fills("a draw", values.iter().copied(), low, high);
        assert_fills("a late draw", values[900..].iter().copied(), low, high);
        // Uniform about the middle: the mean of 1000 has a standard error of width / sqrt(12000).
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert!(
            (mean - 0.5 * (low + high)).abs() < 4.0 * (high - low) / 12_000f64.sqrt(),
            "mean {mean} of {low}..{high}"
        );
    }
}

/// A reset of some rows leaves the models of the others alone.
#[test]
fn rows_that_are_not_reset_keep_their_model() {
    let mut env = builder(FLASHSAC, 3).build().unwrap();
    env.reset().unwrap();
    let fields = |env: &Environment, row: usize| {
        [ModelField::ActuatorKp, ModelField::ActuatorKd, ModelField::BodyMass, ModelField::BodyCom]
            .map(|kind| field(env, kind, row).unwrap())
    };
    let before: Vec<_> = (0..3).map(|row| fields(&env, row)).collect();
    env.reset_rows(&[2, 0]).unwrap();
    assert_eq!(fields(&env, 1), before[1]);
    for row in [0, 2] {
        fields(&env, row).iter().zip(&before[row]).for_each(|(after, before)| assert_ne!(after, before));
    }
}

#[test]
fn without_randomization_everything_is_in_the_middle() {
    for preset in PRESETS {
        let mut env = plain(preset, 2);
        for row in 0..2 {
            let mut home = vec![0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0];
            home.extend(HOME);
            assert_eq!(env.qpos()[19 * row..][..19], home);
            assert_eq!(env.qvel()[18 * row..][..18], [0.0; 18]);
            // As compiled: the damping of the actuators is randomisation's doing.
            let gain = |kind| field(&env, kind, row);
            assert_eq!(gain(ModelField::ActuatorKp).unwrap(), [35.0; 12]);
            assert_eq!(gain(ModelField::ActuatorKd).unwrap(), [0.0; 12]);
            if let Some(masses) = gain(ModelField::BodyMass) {
                let compiled: Vec<f64> = env.model_info().bodies.iter().map(|body| body.mass).collect();
                assert_eq!(masses, compiled);
            }
        }
    }
}
