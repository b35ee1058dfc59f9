//! Which values events give the rows.

use manege::systems::backend::ModelField;
use manege::systems::config::Entry;
use manege::systems::managers::event::EventOptions;
use manege::systems::runtime::{self, RuntimeOptions};

use super::*;

const EXACTLY: [fn(f64) -> Distribution; 3] = [
    |value| Distribution::uniform(value, value),
    |value| Distribution::log_uniform(value, value),
    |value| Distribution::gaussian(value, 0.0),
];

/// The row's values are those expected at `places`, and the compiled ones elsewhere, to the bit.
#[track_caller]
fn assert_varied(env: &Env, field: ModelField, places: &[usize], expected: impl Fn(f64) -> f64) {
    for (place, (actual, compiled)) in env.field(field, 0).into_iter().zip(field.compiled(&env.info)).enumerate() {
        let expected = if places.contains(&place) { expected(compiled) } else { compiled };
        assert!(actual == expected, "{field:?} at {place}: {actual} should be {expected}");
    }
}

#[test]
fn a_thousand_resets_at_1_1_give_1_1_times_the_compiled_value() {
    // Reports: mjlab PR 640 (values that add up over resets).
    for exactly in EXACTLY {
        let terms = every_quantity(exactly(1.1), Operation::Scale);
        let mut env = Env::new(terms.iter().map(|term| term.2.clone()), 1);
        for _ in 0..1000 {
            env.reset();
        }
        for (field, places, _) in &terms {
            assert_varied(&env, *field, places, |compiled| 1.1 * compiled);
        }
    }
}

#[test]
fn a_draw_is_added_or_takes_the_values_place() {
    for exactly in EXACTLY {
        let terms = every_quantity(exactly(0.25), Operation::Add);
        let env = Env::new(terms.iter().map(|term| term.2.clone()), 1);
        for (field, places, _) in &terms {
            assert_varied(&env, *field, places, |compiled| compiled + 0.25);
        }
        let terms = every_quantity(exactly(0.25), Operation::Set);
        let env = Env::new(terms.iter().map(|term| term.2.clone()), 1);
        for (field, places, _) in &terms {
            assert_varied(&env, *field, places, |_| 0.25);
        }
    }
}

#[test]
fn rows_episodes_and_objects_get_draws_of_their_own() {
    // Report: mjlab PR 28 (fields varied at resets were the same in every row).
    let terms = every_quantity(Distribution::uniform(0.5, 1.5), Operation::Scale);
    let mut env = Env::new(terms.iter().map(|term| term.2.clone()), 2);
    // Objects of a term, such as the two legs; the values of an inertia are one object.
    let factors = |env: &Env, row| {
        let per_term = terms.iter().map(|(field, places, _)| {
            let (values, compiled) = (env.field(*field, row), field.compiled(&env.info));
            let factors: Vec<f64> = places.iter().map(|&place| values[place] / compiled[place]).collect();
            if *field == ModelField::BodyInertia {
                assert!((factors[0] - factors[2]).abs() < 1e-12 && (factors[3] - factors[5]).abs() < 1e-12);
                vec![factors[0], factors[3]]
            } else {
                factors
            }
        });
        per_term.flatten().collect::<Vec<f64>>()
    };
    let mut all = [factors(&env, 0), factors(&env, 1)].concat();
    env.reset();
    all.extend([factors(&env, 0), factors(&env, 1)].concat());
    assert!(all.iter().all(|factor| (0.5..1.5).contains(factor)), "{all:?}");
    all.sort_by(f64::total_cmp);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] > 1e-9), "no two draws are the same: {all:?}");
}

#[test]
fn a_shared_draw_goes_for_all_that_are_selected() {
    let term = RandomizeBodyMass {
        bodies: names(&[".*_leg", "trunk"]),
        distribution: Distribution::log_uniform(0.5, 2.0),
        operation: Operation::Scale,
        shared: true,
        scale_inertia: false,
    };
    let env = Env::new([at_reset(term)], 2);
    let factor = |row, body: usize| env.field(ModelField::BodyMass, row)[body] / env.info.bodies[body].mass;
    for row in 0..2 {
        for leg in LEGS {
            assert!((factor(row, leg) / factor(row, TRUNK) - 1.0).abs() < 1e-12);
        }
    }
    assert!((factor(0, TRUNK) / factor(1, TRUNK) - 1.0).abs() > 1e-6, "each row has its own");
}

#[test]
fn inertia_follows_the_mass_if_asked_to() {
    let mass = |scale_inertia| {
        at_reset(RandomizeBodyMass {
            bodies: names(&["trunk"]),
            distribution: Distribution::uniform(6.0, 6.0),
            operation: Operation::Set,
            shared: false,
            scale_inertia,
        })
    };
    let env = Env::new([mass(true)], 1);
    assert_varied(&env, ModelField::BodyInertia, &[3, 4, 5], |compiled| 1.5 * compiled);
    let env = Env::new([mass(false)], 1);
    assert_varied(&env, ModelField::BodyInertia, &[], |compiled| compiled);
}

#[test]
fn values_stay_possible() {
    let terms = every_quantity(Distribution::gaussian(-50.0, 0.0), Operation::Add);
    let env = Env::new(terms.iter().map(|term| term.2.clone()), 1);
    for (field, places, _) in &terms {
        let least = match field {
            ModelField::BodyMass => 1e-6,
            ModelField::BodyInertia => 1e-9,
            ModelField::BodyCom | ModelField::Gravity => {
                assert_varied(&env, *field, places, |compiled| compiled - 50.0);
                continue;
            }
            _ => 0.0,
        };
        assert_varied(&env, *field, places, |_| least);
    }
    // A body without mass stays without.
    let term = RandomizeBodyMass {
        bodies: names(&[".*"]),
        distribution: Distribution::uniform(1.5, 1.5),
        operation: Operation::Scale,
        shared: false,
        scale_inertia: true,
    };
    let env = Env::new([at_reset(term)], 1);
    assert_eq!(env.field(ModelField::BodyMass, 0)[FLAG], 0.0);
    assert_eq!(env.field(ModelField::BodyMass, 0)[TRUNK], 6.0);
}

#[test]
fn what_is_drawn_at_startup_stays_over_resets() {
    let friction = |geoms: &[&str]| RandomizeGeomFriction {
        geoms: names(geoms),
        coefficient: Friction::Sliding,
        distribution: Distribution::uniform(0.2, 1.2),
        operation: Operation::Set,
        shared: false,
    };
    // The other term varies the same field, but other geoms of it, at every reset.
    let events = [Entry::new(EventOptions::startup(), friction(&["floor"])), at_reset(friction(&["left_foot"]))];
    let mut env = Env::new(events, 3);
    let floor = |env: &Env| [0, 1, 2].map(|row| env.field(ModelField::GeomFriction, row)[0]);
    let foot = |env: &Env| [0, 1, 2].map(|row| env.field(ModelField::GeomFriction, row)[6]);
    let (floors, feet) = (floor(&env), foot(&env));
    assert!(floors[0] != floors[1] && floors[1] != floors[2] && floors[0] != floors[2], "{floors:?}");
    for _ in 0..3 {
        env.step();
        runtime::reset_rows(&mut env.world, &[0, 2]).expect("rows to reset");
    }
    assert_eq!(floor(&env), floors);
    let now = foot(&env);
    assert!(now[0] != feet[0] && now[1] == feet[1] && now[2] != feet[2], "{feet:?} became {now:?}");
}

#[test]
fn a_run_without_randomisation_has_the_compiled_model() {
    let terms = every_quantity(Distribution::uniform(2.0, 3.0), Operation::Scale);
    let options = RuntimeOptions { randomization: false, ..RuntimeOptions::new(1) };
    let mut env = Env::try_new(terms.iter().map(|term| term.2.clone()), options).expect("valid events");
    env.reset();
    for (field, _, _) in terms {
        assert_varied(&env, field, &[], |compiled| compiled);
    }
}
