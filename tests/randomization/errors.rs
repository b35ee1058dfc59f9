//! What is refused when the environment is built.

use manege::systems::runtime::RuntimeOptions;

use super::*;

/// Building with the event fails, and the message has all the parts.
#[track_caller]
fn assert_refused(event: Event, parts: &[&str]) {
    let error = Env::try_new([event], RuntimeOptions::new(1)).err().expect("it cannot be built").to_string();
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

fn mass(bodies: &[&str], distribution: Distribution, operation: Operation) -> Event {
    at_reset(RandomizeBodyMass { bodies: names(bodies), distribution, operation, shared: false, scale_inertia: false })
}

#[test]
fn distributions_that_are_none_are_refused() {
    let refused =
        |distribution, part| assert_refused(mass(&["trunk"], distribution, Operation::Add), &["event_0", part]);
    refused(Distribution::uniform(1.0, 0.5), "`distribution`: [1, 0.5] is an empty range");
    refused(Distribution::uniform(f64::NAN, 0.5), "empty range");
    refused(Distribution::uniform(0.0, f64::INFINITY), "empty range");
    refused(Distribution::log_uniform(0.0, 2.0), "positive");
    refused(Distribution::log_uniform(-1.0, 2.0), "positive");
    refused(Distribution::log_uniform(2.0, 1.0), "[2, 1]");
    refused(Distribution::gaussian(1.0, -0.1), "standard deviation -0.1");
    let com = RandomizeBodyCom {
        bodies: names(&["trunk"]),
        x: None,
        y: Some(Distribution::uniform(0.1, -0.1)),
        z: None,
        operation: Operation::Add,
        shared: false,
    };
    assert_refused(at_reset(com), &["`y`: [0.1, -0.1]"]);
}

#[test]
fn values_below_zero_are_refused_where_there_are_none() {
    for operation in [Operation::Set, Operation::Scale] {
        assert_refused(mass(&["trunk"], Distribution::uniform(-0.1, 1.0), operation), &["-0.1 is below 0"]);
        assert_refused(mass(&["trunk"], Distribution::gaussian(-1.0, 0.1), operation), &["-1 is below 0"]);
    }
}

#[test]
fn a_factor_on_nothing_is_refused() {
    // Only the left joint has dry friction.
    let loss = |joints: &[&str]| RandomizeJointFrictionLoss {
        joints: names(joints),
        distribution: Distribution::uniform(0.5, 1.5),
        operation: Operation::Scale,
        shared: false,
    };
    assert_refused(at_reset(loss(&["right"])), &["all selected values are 0"]);
    assert!(Env::try_new([at_reset(loss(&[".*"]))], RuntimeOptions::new(1)).is_ok());
}

#[test]
fn names_that_do_not_exist_are_refused_with_those_that_do() {
    let distribution = Distribution::uniform(0.9, 1.1);
    let (operation, shared) = (Operation::Scale, false);
    assert_refused(mass(&["left_lag"], distribution, operation), &["left_lag", "`left_leg`", "trunk, left_leg, flag"]);
    assert_refused(mass(&["world"], distribution, operation), &["matches no body"]);
    assert_refused(mass(&[], distribution, operation), &["nothing is selected"]);
    assert_refused(mass(&["("], distribution, operation), &["regular expression"]);
    let coefficient = Friction::Rolling;
    let geoms = names(&["foot"]);
    let friction = RandomizeGeomFriction { geoms, coefficient, distribution, operation, shared };
    assert_refused(at_reset(friction), &["matches no geom", "floor, trunk, left_foot, right_foot"]);
    let joints = names(&["root"]);
    let armature = RandomizeJointArmature { joints, distribution, operation, shared };
    assert_refused(at_reset(armature), &["matches no joint", "left, right"]);
    let actuators = names(&["left"]);
    let gains = RandomizeGains { actuators, kp: Some(distribution), kd: None, operation, shared };
    assert_refused(at_reset(gains), &["matches no actuator", "right_servo, left_servo"]);
}
