//! The same seed gives the same bits, whatever runs beside.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use manege_components::{Command, EpisodeClock, RobotState};
use manege_systems::backend::ModelField;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::event::{EventOptions, EventTerm};
use manege_systems::managers::observation::{Noise, ObservationOptions};
use manege_systems::runtime::RuntimeOptions;

use crate::env::{Env, options};
use crate::terms::{Made, Push, ScaleMass, Sensor, config, made};

/// A number that depends on every bit of what the rows show.
fn digest(env: &Env) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut floats = |values: &[f32]| values.iter().for_each(|value| value.to_bits().hash(&mut hasher));
    for row in 0..env.rows {
        floats(&env.observation(0, row));
        floats(&env.observation(1, row));
        floats(&env.get::<Command>(row).values);
    }
    floats(&env.buffers().rewards);
    (&env.buffers().terminated, &env.buffers().truncated).hash(&mut hasher);
    for row in 0..env.rows {
        env.get::<RobotState>(row).values.iter().for_each(|value| value.to_bits().hash(&mut hasher));
    }
    hasher.finish()
}

/// Digests of a run, and how many episodes ended in it.
fn run(options: RuntimeOptions, steps: usize) -> (Vec<u64>, usize) {
    let mut env = Env::started(&config(), options);
    let mut ends = 0;
    let mut digests = vec![digest(&env)];
    for _ in 0..steps {
        env.step();
        ends += (0..env.rows).filter(|&row| env.done(row)).count();
        digests.push(digest(&env));
    }
    (digests, ends)
}

#[test]
fn the_same_seed_gives_the_same_bits_for_any_number_of_threads() {
    // Reports: MuJoCo 1093 and 1514, dm_control 64.
    // Enough rows for the managers' loops to be split.
    let rows = |threads| RuntimeOptions { threads, ..options(260) };
    let (expected, ends) = run(rows(1), 150);
    assert!(ends > 1000, "{ends} episodes ended");
    for threads in [1, 2, 3, 8] {
        assert_eq!(run(rows(threads), 150).0, expected, "{threads} threads");
    }
}

#[test]
fn another_seed_gives_other_episodes_and_noise() {
    let a = Env::started(&config(), options(2));
    let b = Env::started(&config(), RuntimeOptions { seed: 12, ..options(2) });
    for row in 0..2 {
        assert_ne!(a.qpos(row), b.qpos(row));
        assert_ne!(a.get::<Command>(row).values, b.get::<Command>(row).values);
        // At rest the gyro shows nothing but its noise.
        assert_ne!(a.term(0, row, "gyro"), b.term(0, row, "gyro"));
        assert_ne!(a.term(0, row, "gyro"), [0.0; 3]);
    }
    assert_ne!(a.qpos(0), a.qpos(1), "rows differ too");
}

#[test]
fn a_rows_episodes_do_not_depend_on_the_number_of_rows() {
    // Report: UniLab 1349.
    let trajectory = |rows: usize| {
        let mut env = Env::started(&config(), options(rows));
        let mut seen = vec![(env.get::<EpisodeClock>(0).episode, env.episode_start(0))];
        for _ in 0..90 {
            env.step();
            seen.push((env.get::<EpisodeClock>(0).episode, env.episode_start(0)));
        }
        seen
    };
    let expected = trajectory(1);
    assert!(expected.last().unwrap().0 >= 4, "several episodes");
    for rows in [7, 300] {
        assert_eq!(trajectory(rows), expected, "{rows} rows");
    }
}

#[test]
fn a_term_more_does_not_change_what_the_others_draw() {
    let base = config();
    let mut more = config();
    let noisy = Entry::new(ObservationOptions::default().noise(Noise::gaussian(1.0)), Sensor::new("left_tip"));
    more.observations[0].terms.shift_insert(0, "another".into(), noisy);
    // It draws, and writes back what was there.
    let idle = Entry::new(EventOptions::reset(), Push { limit: 0.0 });
    more.events.shift_insert(0, "another".into(), idle);
    more.events.insert("and_another".into(), Entry::new(EventOptions::interval(0.02, 0.1), Push { limit: 0.0 }));
    let (mut a, mut b) = (Env::started(&base, options(5)), Env::started(&more, options(5)));
    for step in 0..60 {
        for row in 0..5 {
            assert_eq!(a.get::<Command>(row), b.get::<Command>(row), "row {row}, step {step}");
            assert_eq!(a.qpos(row), b.qpos(row), "row {row}, step {step}");
            for term in ["gyro", "up", "joint_pos", "joint_vel"] {
                assert_eq!(a.term(0, row, term), b.term(0, row, term), "{term} of row {row}, step {step}");
            }
        }
        a.step();
        b.step();
    }
}

/// Masses of all bodies as rows have them, one entry per event.
type Masses = Arc<Mutex<Vec<Vec<f64>>>>;

/// An event that notes the row's masses.
fn note_masses(into: Masses) -> Made<dyn EventTerm> {
    struct Note(Masses);
    impl EventTerm for Note {
        fn apply(&self, row: &mut manege_systems::managers::event::EventRow<'_>) {
            self.0.lock().unwrap().push(row.staged.field(ModelField::BodyMass).1.to_vec());
        }
    }
    made(move |context| {
        context.field(ModelField::BodyMass)?;
        Ok(Box::new(Note(into.clone())) as Box<dyn EventTerm>)
    })
}

fn with_startup(masses: &Masses) -> EnvironmentConfig {
    let mut config = config();
    config.events = [
        ("mass".into(), Entry::new(EventOptions::startup(), ScaleMass { range: [0.5, 1.5] })),
        ("push".into(), Entry::new(EventOptions::startup(), Push { limit: 1.0 })),
        ("note".into(), Entry::new(EventOptions::reset(), note_masses(masses.clone()))),
    ]
    .into();
    config
}

#[test]
fn startup_events_depend_on_the_seed_and_the_row_and_last() {
    // Report: Isaac Lab 275 and PR 940 (randomisation at startup came before the seed).
    let start = |seed| {
        let masses = Masses::default();
        let mut env = Env::new(&with_startup(&masses), RuntimeOptions { seed, ..options(3) });
        let velocities: Vec<Vec<f64>> = (0..3).map(|row| env.qvel(row).to_vec()).collect();
        // The push left the pose alone.
        assert_eq!(env.qpos(0), [0.0, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        env.reset();
        env.reset();
        let masses = masses.lock().unwrap().clone();
        assert_eq!(masses[..3], masses[3..], "the masses stay what they were");
        (velocities, masses[..3].to_vec())
    };
    let (velocities, masses) = start(1);
    assert_eq!((velocities.clone(), masses.clone()), start(1));
    let other = start(2);
    for row in 0..3 {
        assert_ne!(velocities[row], other.0[row]);
        assert_ne!(masses[row], other.1[row]);
        let factor = masses[row][1] / 3.0;
        assert!((0.5..1.5).contains(&factor), "{factor}");
    }
    assert_ne!(velocities[0], velocities[1]);
    assert_ne!(masses[0], masses[1]);
}
