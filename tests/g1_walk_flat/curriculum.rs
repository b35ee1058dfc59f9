//! The penalties' common factor.

use manege::Environment;
use manege::environment::InitialState;
use manege_systems::managers::reward::RewardManager;

use super::{JOINTS, PRESETS, builder, standing};

/// Weights of the rewards as configured, in order.
const WEIGHTS: [(&str, f32, f32); 9] = [
    ("tracking_lin_vel", 2.0, 2.0),
    ("tracking_ang_vel", 1.5, 1.5),
    ("penalty_ang_vel_xy", -1.0, -1.0),
    ("penalty_orientation", -10.0, -10.0),
    ("penalty_action_rate", -4.0, -5.0),
    ("pose", -0.5, -0.5),
    ("penalty_feet_ori", -20.0, -25.0),
    ("feet_phase", 5.0, 5.0),
    ("alive", 10.0, 10.0),
];

/// Asserts that the weights in use are the configured ones, with penalties multiplied by `scale`.
#[track_caller]
fn assert_scale(env: &Environment, scale: f64) {
    let rewards = env.world().resource::<RewardManager>();
    assert_eq!(rewards.names().len(), WEIGHTS.len());
    for ((known, sac, flashsac), (name, weight)) in WEIGHTS.iter().zip(rewards.names().iter().zip(&rewards.weights)) {
        let configured = f64::from(if env.preset() == "sac" { *sac } else { *flashsac });
        let expected = if configured < 0.0 { configured * scale } else { configured };
        assert_eq!(known, name);
        assert!((f64::from(*weight) - expected).abs() < 1e-6 * expected.abs(), "{name}: {weight}, not {expected}");
    }
}

fn reported(env: &Environment) -> (f64, f64) {
    let value = |key: &str| env.log().get(&format!("Curriculum/penalty_scaling/{key}")).unwrap();
    (value("average_episode_length"), value("penalty_scale"))
}

/// Takes a step in which the given rows, and only those, end: they lie on their side, and the others stand.
fn step_and_end(env: &mut Environment, ending: impl Fn(usize) -> bool) {
    let rows: Vec<_> = (0..env.rows()).map(|row| (0.9, if ending(row) { 1.5 } else { 0.0 })).collect();
    let qvel = vec![0.0; env.rows() * env.spec().nv];
    env.set_initial(&InitialState { qpos: Some(standing(&rows)), qvel: Some(qvel), ..Default::default() }).unwrap();
    env.step(&vec![0.0; env.rows() * JOINTS]).unwrap();
    let ended: Vec<_> = (0..env.rows()).map(&ending).collect();
    assert_eq!(env.terminated(), ended);
}

#[test]
fn penalties_begin_with_an_eighth_of_their_weight() {
    for preset in PRESETS {
        let mut env = builder(preset, 2).build().unwrap();
        assert_scale(&env, 0.125);
        env.reset().unwrap();
        assert_eq!(reported(&env), (0.0, 0.125));
        assert_scale(&env, 0.125);
    }
}

#[test]
fn long_episodes_let_penalties_grow_and_short_ones_shrink() {
    // 752 control steps are more than 750. The robots fall, but nothing ends their episode.
    let changes = "episode_length = 15.04\nterminations.tilt.enabled = false\nterminations.base_height.enabled = false";
    let mut env = builder("flashsac", 2).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    let zeros = vec![0.0; 2 * JOINTS];
    for _ in 0..751 {
        env.step(&zeros).unwrap();
        assert!(!env.truncated()[0]);
    }
    env.step(&zeros).unwrap();
    assert_eq!(env.truncated(), [true, true]);
    // With so few rows the window is a single episode. Both rows are one reset, so one step of the factor.
    assert_eq!(reported(&env), (752.0, 0.125 * 1.001));
    assert_scale(&env, 0.125 * 1.001);
    // A reset by hand ends nothing.
    env.reset().unwrap();
    assert_eq!(reported(&env), (752.0, 0.125 * 1.001));
    drop(env);

    let changes = "curriculum.penalty_scaling.initial = 0.2";
    let mut env = builder("sac", 2).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    assert_scale(&env, 0.2);
    step_and_end(&mut env, |row| row == 1);
    assert_eq!(reported(&env), (1.0, 0.2 * 0.999));
    assert_scale(&env, 0.2 * 0.999);
    // Rewards of the same step had the weights before.
    assert!((f64::from(env.reward_terms()[9 + 3]) - -10.0 * 0.2 * 1.5f64.sin().powi(2)).abs() < 1e-2);
    step_and_end(&mut env, |_| false);
    assert_scale(&env, 0.2 * 0.999);
}

#[test]
fn the_factor_keeps_within_an_eighth_and_a_quarter() {
    let mut env = builder("sac", 2).build().unwrap();
    env.reset().unwrap();
    step_and_end(&mut env, |_| true);
    assert_eq!(reported(&env), (1.0, 0.125));
    // Episodes of one step are long for this curriculum.
    let changes = "curriculum.penalty_scaling = { short = 0.5, long = 0.9, grow = 1.3 }";
    let mut env = builder("sac", 2).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    for scale in [0.125 * 1.3, 0.125 * 1.3 * 1.3, 0.25, 0.25] {
        step_and_end(&mut env, |_| true);
        assert_eq!(reported(&env), (1.0, scale));
    }
}

#[test]
fn the_average_length_moves_by_the_share_of_the_window_that_ended() {
    // The window is ⌊1000 · 64 / 4096⌋ = 15 episodes.
    let mut env = builder("sac", 64).build().unwrap();
    env.reset().unwrap();
    let mut expected = 0.0;
    // Three episodes of one step.
    step_and_end(&mut env, |row| row < 3);
    expected += 3.0 / 15.0 * (1.0 - expected);
    assert!((reported(&env).0 - expected).abs() < 1e-12);
    // Six episodes: three of one step, which began after the first, and three of two.
    step_and_end(&mut env, |row| row < 6);
    expected += 6.0 / 15.0 * (1.5 - expected);
    assert!((reported(&env).0 - expected).abs() < 1e-12);
    // More than the window: nothing of the past is left. 6 rows are at their first step, 58 at their third.
    step_and_end(&mut env, |_| true);
    assert!((reported(&env).0 - (6.0 + 58.0 * 3.0) / 64.0).abs() < 1e-12);
}
