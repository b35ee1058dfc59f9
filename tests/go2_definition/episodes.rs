//! How long episodes last, and the gait clock that knows nothing of them.

use manege_systems::step::Timing;

use crate::{PRESETS, assert_close, builder, observed, plain, step};

#[test]
fn an_episode_has_1000_steps() {
    for preset in PRESETS {
        let env = plain(preset, 1);
        assert_eq!(env.config().episode_length, 20.0);
        assert_eq!(env.world().resource::<Timing>().max_episode_steps, 1000);
    }
}

#[test]
fn the_last_step_of_an_episode_truncates_and_does_not_terminate() {
    for preset in PRESETS {
        let mut env = builder(preset, 2).config("episode_length = 0.16".parse().unwrap()).build().unwrap();
        env.reset().unwrap();
        // Two whole episodes.
        for number in 1..=16 {
            step(&mut env, 0.0);
            assert_eq!(env.truncated(), [number % 8 == 0; 2], "step {number}");
            assert_eq!(env.terminated(), [false; 2], "step {number}");
            assert_eq!(env.termination_terms(), [u64::from(number % 8 == 0); 2], "step {number}");
        }
        // A row that started later ends later.
        (0..3).for_each(|_| step(&mut env, 0.0));
        env.reset_rows(&[1]).unwrap();
        for number in 4..=11 {
            step(&mut env, 0.0);
            assert_eq!(env.truncated(), [number == 8, number == 11], "step {number}");
        }
    }
}

/// 0.04 cycles a step, whatever ends or begins.
#[test]
fn the_gait_phase_is_shared_and_never_reset() {
    for preset in PRESETS {
        let mut env = builder(preset, 3).config("episode_length = 0.38".parse().unwrap()).build().unwrap();
        env.reset().unwrap();
        for number in 0..60 {
            if number > 0 {
                step(&mut env, 0.0);
            }
            if number == 10 || number == 44 {
                env.reset_rows(&[2]).unwrap();
            }
            if number == 30 {
                env.reset().unwrap();
            }
            for row in 0..3 {
                for group in ["policy", "critic"] {
                    for (foot, shown) in observed(&env, group, "gait_phase", row).into_iter().enumerate() {
                        assert!((0.0..1.0).contains(&shown));
                        let expected = 0.04 * f64::from(number) + [0.0, 0.5, 0.5, 0.0][foot];
                        // On the circle: 0 and 1 - 1e-7 are close.
                        let apart = (shown - expected + 0.5).rem_euclid(1.0) - 0.5;
                        assert_close(&format!("{group}: foot {foot} of row {row} in step {number}"), apart, 0.0, 1e-5);
                    }
                }
            }
        }
    }
}
