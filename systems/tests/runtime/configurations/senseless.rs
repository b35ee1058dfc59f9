//! Numbers and names that make no sense end in an error, never in a panic.

use manege_components::RobotState;
use manege_systems::config::{Entry, PerColumn};
use manege_systems::managers::action::JointPositionAction;
use manege_systems::managers::curriculum::{CurriculumOptions, RewardWeightSchedule, WeightStage};
use manege_systems::managers::event::EventOptions;
use manege_systems::managers::observation::{Delay, Noise, ObservationOptions};
use manege_systems::managers::reward::RewardOptions;
use manege_systems::runtime;
use proptest::prelude::*;

use super::generated::{Generated, environment};
use super::{actions, cases};
use crate::env::Env;
use crate::terms::{Push, ScaleMass, Sensor, ends_when_told, nothing, reward_of};

/// One thing that makes no sense, put into an environment that does.
type Defect = (&'static str, fn(&mut Generated));

const DEFECTS: [Defect; 18] = [
    ("number of rows", |it| it.options.rows = 0),
    ("number of threads", |it| it.options.threads = 0),
    ("episode_length", |it| it.config.episode_length = f64::NAN),
    ("physics.control_period", |it| it.config.physics.control_period *= 1.1),
    ("timestep", |it| it.config.physics.timestep = 0.0),
    ("hme", |it| it.config.keyframe = "hme".to_owned()),
    ("empty range", |it| first_options(it).clip = Some([1.0, -1.0])),
    ("factors for 2 values", |it| first_options(it).scale = PerColumn::Each(vec![1.0; 3])),
    ("scale", |it| first_options(it).scale = PerColumn::All(f32::INFINITY)),
    ("history_length", |it| first_options(it).history_length = u32::MAX),
    ("lags 2 to 1", |it| first_options(it).delay = Some(Delay::steps(2, 1))),
    ("noise", |it| first_options(it).noise = Some(Noise::gaussian(f32::NAN))),
    ("gyroscope", |it| {
        let term = Entry::new(Default::default(), Sensor::new("gyroscope"));
        it.config.observations[0].terms.insert("bad".to_owned(), term);
    }),
    ("rewards.bad.weight", |it| {
        let term = reward_of(nothing, |_, ()| 1.0);
        let options = RewardOptions::weight(f32::NEG_INFINITY);
        it.config.rewards.insert("bad".to_owned(), Entry::new(options, term));
    }),
    ("events.bad.mode.seconds", |it| {
        let options = EventOptions::interval(0.2, 0.1);
        it.config.events.insert("bad".to_owned(), Entry::new(options, Push { limit: 0.0 }));
    }),
    ("no_such_reward", |it| {
        let term = RewardWeightSchedule {
            reward: "no_such_reward".to_owned(),
            stages: vec![WeightStage { step: 0, weight: 1.0 }],
        };
        it.config.curriculum.insert("bad".to_owned(), Entry::new(CurriculumOptions::at_resets(), term));
    }),
    ("elbow", |it| {
        let action =
            JointPositionAction { joints: vec!["elbow".to_owned()], ..JointPositionAction::around_default_pose(1.0) };
        it.config.actions.insert("bad".to_owned(), Entry::new(Default::default(), action));
    }),
    ("64", |it| {
        for i in 0..65 {
            it.config.terminations.insert(format!("bad_{i}"), ends_when_told());
        }
    }),
];

fn first_options(generated: &mut Generated) -> &mut ObservationOptions {
    &mut generated.config.observations[0].terms[0].options
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn one_thing_that_makes_no_sense_is_an_error_that_says_what(generated in environment()) {
        for (named, spoil) in DEFECTS {
            let mut spoilt = generated.clone();
            spoil(&mut spoilt);
            match Env::try_new(&spoilt.config, spoilt.options, |_, _, _| {}) {
                Ok(_) => prop_assert!(false, "{} was built", named),
                Err(error) => prop_assert!(error.to_string().contains(named), "{}: {}", named, error),
            }
        }
    }
}

/// Puts a number that may be anything in place of one that made sense.
fn disturb(generated: &mut Generated, place: usize, wild: f32) {
    let config = &mut generated.config;
    match place {
        0 => config.episode_length = f64::from(wild),
        1 => config.physics.control_period = f64::from(wild),
        2 => config.physics.timestep = f64::from(wild),
        3 => first_options(generated).scale = PerColumn::All(wild),
        4 => first_options(generated).clip = Some([wild, 1.0]),
        5 => first_options(generated).noise = Some(Noise::gaussian(wild)),
        6 => first_options(generated).noise = Some(Noise::uniform(wild)),
        7 => first_options(generated).history_length = wild as u32,
        8 => first_options(generated).delay = Some(Delay::steps(0, wild as u32)),
        9 => config.rewards.values_mut().for_each(|reward| reward.options.weight = wild),
        10 => config.commands.values_mut().for_each(|command| command.options.resampling_time = [wild; 2]),
        11 => {
            let options = EventOptions::interval(wild, wild);
            config.events.insert("wild".to_owned(), Entry::new(options, Push { limit: 0.1 }));
        }
        12 => {
            let push = Push { limit: f64::from(wild) };
            config.events.insert("wild".to_owned(), Entry::new(EventOptions::step(), push));
        }
        13 => {
            let mass = ScaleMass { range: [f64::from(wild); 2] };
            config.events.insert("wild".to_owned(), Entry::new(EventOptions::reset(), mass));
        }
        _ => {
            let action = JointPositionAction::around_default_pose(wild);
            config.actions = [("wild".to_owned(), Entry::new(Default::default(), action))].into();
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn any_number_in_any_place_ends_in_an_error_or_in_steps_but_in_no_panic(
        mut generated in environment(),
        place in 0..15usize,
        wild in prop_oneof![prop::num::f32::ANY, Just(0.0), Just(f32::MAX), Just(f32::NAN), Just(f32::INFINITY)],
    ) {
        disturb(&mut generated, place, wild);
        if let Ok(mut env) = Env::try_new(&generated.config, generated.options, |_, _, _| {}) {
            // What the numbers lead to is an error or not, as the tests of the managers say.
            let _ = runtime::reset_all(&mut env.world);
            for step in 0..12 {
                let actions = actions(&env, step);
                let _ = env.try_step(&actions);
                let all_rows: Vec<u32> = (0..env.rows as u32).collect();
                if step == 5 {
                    let _ = runtime::reset_rows(&mut env.world, &all_rows);
                }
                for &row in &all_rows {
                    prop_assert!(env.get::<RobotState>(row as usize).values.iter().all(|value| value.is_finite()));
                }
            }
        }
    }
}
