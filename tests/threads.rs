//! Results do not depend on the number of threads, with so many rows that every loop over them may be split.

use manege::Environment;

const ROWS: usize = 1030;

#[test]
fn many_rows_have_the_same_bits_on_any_number_of_threads() {
    for task in ["go2_joystick_flat:flashsac", "g1_walk_flat:sac", "g1_motion_tracking:sac"] {
        let mut environments = [1, 2, 3].map(|threads| {
            let changes = "episode_length = 0.1".parse().expect("a table");
            Environment::builder(task).rows(ROWS).threads(threads).seed(5).config(changes).build().expect("it builds")
        });
        for env in &mut environments {
            env.reset().expect("a reset");
        }
        let values = ROWS * environments[0].action_width();
        for step in 0..8 {
            let actions: Vec<f32> = (0..values).map(|i| ((step * values + i) as f32 * 12.9898).sin()).collect();
            for env in &mut environments {
                env.step(&actions).expect("a step");
            }
            let [one, others @ ..] = &environments;
            for other in others {
                assert_eq!(one.rewards(), other.rewards(), "{task}, step {step}");
                assert_eq!(one.terminated(), other.terminated(), "{task}, step {step}");
                assert_eq!(one.truncated(), other.truncated(), "{task}, step {step}");
                for group in 0..one.spec().groups.len() {
                    assert_eq!(one.observation(group), other.observation(group), "{task}, step {step}, group {group}");
                }
                assert!(one.log().iter().eq(other.log().iter()), "{task}, step {step}");
            }
        }
    }
}
