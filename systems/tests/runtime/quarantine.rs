//! A row whose physics fails is flagged, terminated and reset; the others do not notice.

use manege_components::{EpisodeClock, Observation, Reward, RobotState};
use manege_systems::backend::SubstepState;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::action::{ActionOptions, ActionTerm};
use manege_systems::managers::event::{EventOptions, EventRow};
use manege_systems::physics::Divergences;
use manege_systems::runtime::RuntimeOptions;
use manege_systems::step::AutoReset;

use crate::env::{END, Env, options};
use crate::terms::{config_without_accidents, event, made};

const ROWS: usize = 5;
const SICK: usize = 3;

type Poison = fn(&mut EventRow<'_>);

/// States that no physics survives.
const POISONS: [(&str, Poison); 5] = [
    ("a position that is not a number", |row| row.staged.qpos_mut()[2] = f64::NAN),
    ("an infinite joint angle", |row| row.staged.qpos_mut()[8] = f64::INFINITY),
    ("a position beyond all bounds", |row| row.staged.qpos_mut()[0] = 1e300),
    ("a velocity that is not a number", |row| row.staged.qvel_mut()[6] = f64::NAN),
    ("a velocity beyond all bounds", |row| row.staged.qvel_mut()[4] = -1e200),
];

/// Poisons one row after the fourth step of its first episode.
fn poisoned(poison: Poison) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let poison = event(move |row| {
        if row.view.row().index() == SICK && row.view.clock() == (EpisodeClock { step: 4, episode: 1 }) {
            poison(row);
        }
    });
    config.events.insert("poison".into(), Entry::new(EventOptions::step(), poison));
    config
}

fn assert_finite(env: &Env, row: usize) {
    assert!(env.get::<RobotState>(row).values.iter().all(|value| value.is_finite()));
    assert!(env.get::<Observation>(row).values.iter().all(|value| value.is_finite()));
    assert!(env.get::<Reward>(row).episode_sums.iter().all(|value| value.is_finite()));
    assert!(env.buffers().rewards[row].is_finite());
    for group in 0..2 {
        assert!(env.observation(group, row).iter().all(|value| value.is_finite()));
        assert!(env.final_observation(group, row).iter().all(|value| value.is_finite()));
    }
}

fn divergences(env: &Env) -> u64 {
    env.world.resource::<Divergences>().total
}

#[test]
fn a_row_that_blows_up_is_reset_within_the_step_and_its_neighbours_are_bitwise_unchanged() {
    // Reports: mjlab 224 and PR 238 (a row stayed NaN after its reset), MuJoCo 168 (bad states are reset silently).
    for (name, poison) in POISONS {
        let mut env = Env::started(&poisoned(poison), options(ROWS));
        // The twin's row ends in the same step because it is told to.
        let mut twin = Env::started(&config_without_accidents(), options(ROWS));
        for step in 1..=30 {
            env.step();
            twin.step_ending(if step == 5 { &[SICK] } else { &[] });
            for row in (0..ROWS).filter(|row| *row != SICK) {
                assert_eq!(env.snapshot(row), twin.snapshot(row), "{name}: row {row}, step {step}");
            }
            assert_finite(&env, SICK);
            assert_eq!(env.buffers().diverged[SICK], step == 5, "{name}, step {step}");
            assert_eq!(env.buffers().terminated[SICK], step == 5, "{name}, step {step}");
            assert!(!env.buffers().truncated[SICK]);
            assert_eq!(divergences(&env), u64::from(step >= 5), "{name}, step {step}");
            if step >= 5 {
                assert_eq!(env.episode_start(SICK), twin.episode_start(SICK), "{name}, step {step}");
            }
        }
    }
}

#[test]
fn a_row_that_blows_up_waits_where_resets_are_not_automatic() {
    for auto_reset in [AutoReset::NextStep, AutoReset::Disabled] {
        let mut env = Env::started(&poisoned(POISONS[0].1), RuntimeOptions { auto_reset, ..options(ROWS) });
        for _ in 0..5 {
            env.step();
        }
        assert!(env.buffers().diverged[SICK] && env.buffers().terminated[SICK]);
        assert_finite(&env, SICK);
        if auto_reset == AutoReset::Disabled {
            env.try_step(&[0.0; 2 * ROWS]).unwrap_err();
            env.reset_rows(&[SICK as u32]);
            assert!(!env.buffers().diverged[SICK]);
        }
        env.step();
        assert!(!env.buffers().diverged[SICK] && !env.buffers().terminated[SICK]);
        assert_eq!(env.get::<EpisodeClock>(SICK).episode, 2);
        assert_finite(&env, SICK);
        assert_eq!(divergences(&env), 1);
    }
}

#[test]
fn every_row_may_blow_up_at_once_and_again() {
    let mut config = config_without_accidents();
    let poison = event(|row| {
        if row.view.clock().step == 2 {
            row.staged.qpos_mut()[7] = f64::NAN;
        }
    });
    config.events.insert("poison".into(), Entry::new(EventOptions::step(), poison));
    let mut env = Env::started(&config, options(ROWS));
    for step in 1..=12 {
        env.step();
        assert_eq!(env.buffers().diverged, [step % 3 == 0; ROWS], "step {step}");
        (0..ROWS).for_each(|row| assert_finite(&env, row));
    }
    assert_eq!(divergences(&env), 4 * ROWS as u64);
}

#[test]
fn a_bad_state_written_at_a_reset_is_quarantined_too() {
    let mut config = config_without_accidents();
    let poison = event(|row| {
        if row.view.row().index() == SICK && row.view.clock().episode == 2 {
            row.staged.qpos_mut()[2] = f64::NAN;
        }
    });
    config.events.insert("poison".into(), Entry::new(EventOptions::reset(), poison));
    let mut env = Env::started(&config, options(ROWS));
    env.step_ending(&[SICK]);
    assert_finite(&env, SICK);
    env.step();
    assert!(env.buffers().diverged[SICK] && env.buffers().terminated[SICK]);
    assert_eq!(*env.get::<EpisodeClock>(SICK), EpisodeClock { step: 0, episode: 3 });
    for _ in 0..10 {
        env.step();
        assert_finite(&env, SICK);
        assert!(!env.done(SICK));
    }
    assert_eq!(divergences(&env), 1);
}

/// A controller that fails on the worker thread where the action says so.
struct Fragile;

impl ActionTerm for Fragile {
    fn width(&self) -> usize {
        2
    }

    fn process(&self, raw: &[f32], _state: SubstepState<'_>, processed: &mut [f32]) {
        processed.copy_from_slice(raw);
    }

    fn write_controls(&self, processed: &[f32], state: SubstepState<'_>, ctrl: &mut [f64]) {
        assert!(processed[0] != END, "a controller's fault");
        ctrl[0] = f64::from(processed[0]) - 0.1 * state.qvel[6];
        ctrl[1] = f64::from(processed[1]) - 0.1 * state.qvel[7];
    }

    fn needs_substep_feedback(&self) -> bool {
        true
    }
}

#[test]
fn a_controller_that_panics_costs_its_row_the_episode_and_nothing_else() {
    let mut config = config_without_accidents();
    config.terminations.clear();
    let fragile = made(|_| Ok(Box::new(Fragile) as Box<dyn ActionTerm>));
    config.actions = [("fragile".into(), Entry::new(ActionOptions::default(), fragile))].into();
    for threads in [1, 2] {
        let options = RuntimeOptions { threads, ..options(ROWS) };
        let (mut env, mut twin) = (Env::started(&config, options), Env::started(&config, options));
        for step in 1..=12 {
            let broken = step == 4;
            env.step_ending(if broken { &[SICK] } else { &[] });
            twin.step();
            for row in (0..ROWS).filter(|row| *row != SICK) {
                assert_eq!(env.snapshot(row), twin.snapshot(row), "row {row}, step {step}");
            }
            assert_eq!((env.buffers().diverged[SICK], env.buffers().terminated[SICK]), (broken, broken));
            assert_finite(&env, SICK);
        }
        assert_eq!(env.get::<EpisodeClock>(SICK).episode, 2);
        assert_eq!(divergences(&env), 1);
    }
}
