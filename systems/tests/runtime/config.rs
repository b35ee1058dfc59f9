//! Configurations that make no sense: one clear error each, before anything starts.

use manege_systems::config::{ConfigError, EnvironmentConfig, parse_assignment};

use crate::env::{Env, options};
use crate::terms::config;

fn changed(assignment: &str) -> Result<EnvironmentConfig, ConfigError> {
    let mut config = config();
    config.apply(&parse_assignment(assignment)?)?;
    Ok(config)
}

fn message(assignment: &str) -> String {
    match changed(assignment) {
        Err(error) => error.to_string(),
        Ok(config) => match Env::try_new(&config, options(1), |_, _, _| {}) {
            Ok(_) => panic!("`{assignment}` was taken"),
            Err(error) => error.to_string(),
        },
    }
}

#[test]
fn each_mistake_is_named_with_what_would_be_right() {
    // Reports: mjlab 885 and others (options that are silently ignored).
    for (assignment, expected) in [
        ("rewards.alve.weight=1", "did you mean `alive`"),
        ("rewards.alive.wieght=1", "did you mean `weight`"),
        ("observation.policy.corruption=false", "did you mean `observations`"),
        ("physics.timestp=0.01", "did you mean `timestep`"),
        ("rewards.alive.weight=\"much\"", "rewards.alive"),
        ("rewards.alive=3", "`rewards.alive`: expected a table of keys (enabled, weight"),
        ("observations.policy.terms=3", "`observations.policy.terms`: expected a table"),
        ("observations.policy.history_length=1000000", "observations.policy.history_length"),
        ("physics.timestep=0", "positive"),
        ("physics.control_period=0", "physics.control_period"),
        ("physics.control_period=1e9", "more than 1000000 physics steps"),
        ("physics.control_period=0.021", "0.02 s would be"),
        ("episode_length=0", "episode_length"),
        ("keyframe=hom", "did you mean `home`"),
        ("actions.joints.joints=[\"lft\"]", "left, right"),
        ("actions.joints.joints=[\"(\"]", "regular expression"),
        ("actions.joints.clip=[1, -1]", "empty range"),
        ("observations.policy.terms.gyro.sensor=gyr", "did you mean `gyro`"),
        ("commands.twist.resampling_time=[0, 1]", "resampling_time"),
        ("commands.twist.lin_vel_x=[1, -1]", "empty range"),
        ("events.push.mode.seconds=[-1, 1]", "events.push.mode.seconds"),
    ] {
        let message = message(assignment);
        assert!(message.contains(expected), "`{assignment}`: {message}");
    }
}

#[test]
fn terms_may_have_any_name() {
    let mut config = config();
    let alive = config.rewards["alive"].clone();
    config.rewards.insert("still-alive".into(), alive);
    config.apply(&parse_assignment("rewards.height.weight=7").expect("an assignment")).expect("a change");
    let weights: Vec<f32> = config.rewards.values().map(|entry| entry.options.weight).collect();
    assert_eq!(weights, [1.0, 7.0, -0.01, 1.0]);
    config.apply(&parse_assignment("rewards.still-alive.weight=3").expect("an assignment")).expect("a change");
    assert_eq!(config.rewards["still-alive"].options.weight, 3.0);
}

#[test]
fn a_change_that_fails_changes_nothing() {
    let mut config = config();
    let before = config.to_table().expect("a table");
    config.apply(&parse_assignment("rewards.alive.weight=\"much\"").expect("an assignment")).unwrap_err();
    assert_eq!(config.to_table().expect("a table"), before);
}

#[test]
fn every_key_that_is_shown_can_be_set_to_what_it_is() {
    let mut config = config();
    // Terms made by functions have no keys of their own to read back.
    for group in config.observations.values_mut() {
        group.terms.retain(|_, entry| entry.term.kind() == "Sensor");
    }
    config.rewards.clear();
    config.terminations.clear();
    let table = config.to_table().expect("a table");
    config.apply(&table).expect("its own table");
    assert_eq!(config.to_table().expect("a table"), table);
}

#[test]
fn no_rows_or_no_threads_are_refused() {
    for (bad, expected) in [
        (manege_systems::runtime::RuntimeOptions { rows: 0, ..options(1) }, "the number of rows"),
        (manege_systems::runtime::RuntimeOptions { threads: 0, ..options(1) }, "the number of threads"),
    ] {
        let error = match Env::try_new(&config(), bad, |_, _, _| {}) {
            Ok(_) => panic!("it was built"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_kind_of_a_term_is_the_name_of_its_type_without_path_and_parameters() {
    let config = config();
    assert_eq!(config.events["push"].term.kind(), "Push");
    assert_eq!(config.rewards["alive"].term.kind(), "Made", "a type with a parameter that has a path too");
}
