//! The options that make physics cheaper do not change what it computes.

mod states;

use manege::Environment;

use states::{SAME, TASKS, VARIANTS, compare};

/// Positions are the same to 1e-12 in all states. Velocities are in more than 99 of 100, and never differ by a hundredth of what
/// the solver's tolerance leaves open: the sparse Jacobian adds numbers up in another order, and where a robot is thrown about
/// the solver makes more of that.
#[test]
fn one_physics_step_is_the_same_under_our_options_and_under_stock_ones() {
    for task in TASKS {
        let mut comparisons = compare(task);
        let yardstick = comparisons.pop().expect("the yardstick comes last");
        assert_eq!(yardstick.variant, VARIANTS[7]);
        for comparison in comparisons {
            let variant = comparison.variant;
            if ["sensors off", "visual geoms off"].contains(&variant) {
                assert_eq!((comparison.qpos, comparison.qvel), (0.0, 0.0), "{task}, {variant}");
            }
            assert!(comparison.states >= 10_000, "{task}, {variant}: only {} states", comparison.states);
            assert_eq!(comparison.faults, 0, "{task}, {variant}");
            assert!(comparison.qpos <= SAME, "{task}, {variant}: positions differ by {:e}", comparison.qpos);
            assert!(comparison.beyond * 100 < comparison.states, "{task}, {variant}: {} states", comparison.beyond);
            assert!(comparison.qvel < 0.01 * yardstick.qvel, "{task}, {variant}: {comparison:?} against {yardstick:?}");
        }
    }
}

/// What is random is drawn for bodies and joints, and sensors name geoms: none of it may depend on how many geoms there are.
#[test]
fn geoms_that_are_only_seen_change_no_bit_of_a_rollout() {
    for task in ["go2_joystick_flat:flashsac", "g1_walk_flat:flashsac", "g1_motion_tracking:sac"] {
        let mut environments = [false, true].map(|visuals| {
            let changes = format!("physics.visuals = {visuals}\nepisode_length = 0.5");
            let builder = Environment::builder(task).rows(8).seed(3).config(changes.parse().expect("a table"));
            builder.build().expect("the task builds")
        });
        for env in &mut environments {
            env.reset().expect("a reset");
        }
        let values = environments[0].rows() * environments[0].action_width();
        for step in 0..60 {
            let action = |i: usize| ((step * values + i) as f32 * 12.9898).sin();
            let actions: Vec<f32> = (0..values).map(action).collect();
            for env in &mut environments {
                env.step(&actions).expect("a step");
            }
            let [without, with] = &environments;
            assert_eq!(without.rewards(), with.rewards(), "{task}, step {step}");
            for group in 0..without.spec().groups.len() {
                assert_eq!(without.observation(group), with.observation(group), "{task}, step {step}, group {group}");
            }
        }
    }
}
