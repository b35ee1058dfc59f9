//! The options that make physics cheaper do not change what it computes.

mod states;

use states::{SAME, TASKS, VARIANTS, compare};

/// Positions are the same to 1e-12 in all states. Velocities are in more than 99 of 100, and never differ by a hundredth of what
/// the solver's tolerance leaves open: the sparse Jacobian adds numbers up in another order, and where a robot is thrown about
/// the solver makes more of that.
#[test]
fn one_physics_step_is_the_same_under_our_options_and_under_stock_ones() {
    for task in TASKS {
        let mut comparisons = compare(task);
        let yardstick = comparisons.pop().expect("the yardstick comes last");
        assert_eq!(yardstick.variant, VARIANTS[6]);
        for comparison in comparisons {
            let variant = comparison.variant;
            assert!(comparison.states >= 10_000, "{task}, {variant}: only {} states", comparison.states);
            assert_eq!(comparison.faults, 0, "{task}, {variant}");
            assert!(comparison.qpos <= SAME, "{task}, {variant}: positions differ by {:e}", comparison.qpos);
            assert!(comparison.beyond * 100 < comparison.states, "{task}, {variant}: {} states", comparison.beyond);
            assert!(comparison.qvel < 0.01 * yardstick.qvel, "{task}, {variant}: {comparison:?} against {yardstick:?}");
        }
    }
}
