//! Events and commands: when they happen, and from what they start.

use std::sync::{Arc, Mutex};

use manege_components::Command;
use manege_components::Row;
use manege_systems::backend::ModelField;
use manege_systems::config::{Entry, EnvironmentConfig};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::event::{EventMode, EventOptions, EventTerm};
use manege_systems::staging::Staging;

use crate::env::{Env, options};
use crate::terms::{Made, ScaleMass, config_without_accidents, event};

/// Rows that an event happened to, in order.
type Happened = Arc<Mutex<Vec<u32>>>;

fn noting() -> (Happened, Made<dyn EventTerm>) {
    let happened = Happened::default();
    let note = Arc::clone(&happened);
    (happened, event(move |row| note.lock().expect("no panic").push(row.view.row().0)))
}

fn take(happened: &Happened) -> Vec<u32> {
    std::mem::take(&mut happened.lock().expect("no panic"))
}

fn with_event(options: EventOptions, term: Made<dyn EventTerm>) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    config.events = [("noted".into(), Entry::new(options, term))].into();
    config
}

#[test]
fn startup_events_happen_once_and_step_events_in_every_step() {
    let (happened, term) = noting();
    let mut env = Env::new(&with_event(EventOptions::startup(), term), options(3));
    assert_eq!(take(&happened), [0, 1, 2]);
    env.reset();
    env.step();
    assert_eq!(take(&happened), []);

    let (happened, term) = noting();
    let mut env = Env::started(&with_event(EventOptions::step(), term), options(3));
    for _ in 0..3 {
        env.step();
        assert_eq!(take(&happened), [0, 1, 2]);
    }
}

#[test]
fn timers_of_rows_begin_anew_at_resets_and_fire_at_the_exact_step() {
    // Reports: IsaacLab PR 1750, mjlab PR 1140 (timers not drawn at resets, or another event's timer).
    let (fast, fast_term) = noting();
    let (slow, slow_term) = noting();
    let mut config = with_event(EventOptions::interval(0.1, 0.1), fast_term);
    config.events.insert("slow".into(), Entry::new(EventOptions::interval(0.14, 0.14), slow_term));
    let mut env = Env::started(&config, options(2));
    // Row 1 is reset within step 3, so its timers count from there.
    let mut count = 0;
    for step in 1..=40 {
        if step == 3 {
            env.step_ending(&[1])
        } else {
            env.step()
        }
        let due = |period: i32| {
            let mut rows = Vec::new();
            rows.extend((step % period == 0).then_some(0));
            rows.extend((step > 3 && (step - 3) % period == 0).then_some(1));
            rows
        };
        assert_eq!(take(&fast), due(5), "step {step}");
        assert_eq!(take(&slow), due(7), "step {step}");
        count += 1;
    }
    assert_eq!(count, 40);
}

#[test]
fn timers_of_rows_may_run_on_over_resets() {
    // Report: IsaacLab 5305 (events that hardly ever happen, because episodes end before their timers).
    for keep_over_resets in [false, true] {
        let (happened, term) = noting();
        let mode = EventMode::Interval { seconds: [0.1, 0.1], global: false, keep_over_resets };
        let mut env = Env::started(&with_event(EventOptions { enabled: true, mode }, term), options(2));
        for step in 1..=40 {
            if step % 3 == 0 {
                env.step_ending(&[1])
            } else {
                env.step()
            }
            // A timer of five steps that is drawn again every third never runs out.
            let due = if keep_over_resets { vec![0, 1] } else { vec![0] };
            assert_eq!(take(&happened), if step % 5 == 0 { due } else { vec![] }, "step {step}");
        }
    }
}

/// Control steps between triggers, or between draws of a command, that a timer of so many seconds should take.
const LONG: [(f32, u32); 6] = [(2.0, 100), (3.0, 150), (5.0, 250), (7.5, 375), (8.0, 400), (20.1, 1005)];

#[test]
fn timers_of_many_control_steps_are_exact_too() {
    for (seconds, steps) in LONG {
        for global in [true, false] {
            let (happened, term) = noting();
            let mode = EventMode::Interval { seconds: [seconds, seconds], global, keep_over_resets: global };
            let mut env = Env::started(&with_event(EventOptions { enabled: true, mode }, term), options(1));
            for step in 1..=2 * steps {
                env.step();
                let due = step % steps == 0;
                assert_eq!(take(&happened).len(), usize::from(due), "{seconds} s, global: {global}, step {step}");
            }
        }
    }
}

#[test]
fn commands_that_last_for_many_control_steps_are_exact_too() {
    // A control step of 5 ms, of which rounding in single precision would be a large part after a minute.
    for (seconds, steps) in [(20.0, 4000), (30.0, 6000)] {
        let mut config = twist([seconds, seconds], [-1.0, 1.0]);
        config.physics.control_period = 0.005;
        config.observations.clear();
        config.events.clear();
        let mut env = Env::started(&config, options(1));
        for step in 1..=steps + 1 {
            env.step();
            let draws = if step < steps { 1 } else { 2 };
            assert_eq!(env.get::<Command>(0).resamplings[0], draws, "{seconds} s, step {step}");
        }
    }
}

#[test]
fn a_global_timer_fires_for_all_rows_and_knows_no_resets() {
    let (happened, term) = noting();
    let mut env = Env::started(&with_event(EventOptions::global_interval(0.1, 0.1), term), options(3));
    for step in 1..=20 {
        if step % 3 == 0 {
            env.step_ending(&[0, 1])
        } else {
            env.step()
        }
        assert_eq!(take(&happened), if step % 5 == 0 { vec![0, 1, 2] } else { vec![] }, "step {step}");
    }
}

#[test]
fn a_reset_event_may_rest_between_triggers() {
    let (happened, term) = noting();
    let mode = EventMode::Reset { min_steps_between: 4 };
    let mut env = Env::started(&with_event(EventOptions { enabled: true, mode }, term), options(2));
    assert_eq!(take(&happened), [0, 1]);
    for step in 1..=9 {
        env.step_ending(&[1]);
        assert_eq!(take(&happened), if step % 4 == 0 { vec![1] } else { vec![] }, "step {step}");
    }
}

#[test]
fn model_fields_start_from_the_compiled_model_at_every_reset() {
    // Reports: mjlab PR 640, PR 631 (randomisation that adds up over resets).
    let mut env = {
        let mut config = config_without_accidents();
        let scale = ScaleMass { range: [1.1, 1.1] };
        config.events = [("mass".into(), Entry::new(EventOptions::reset(), scale))].into();
        Env::started(&config, options(2))
    };
    for _ in 0..1000 {
        env.reset_rows(&[0]);
    }
    let masses = env.world.resource::<Staging>().committed(ModelField::BodyMass, Row(0)).expect("a varied field");
    for (mass, compiled) in masses.iter().zip([0.0, 3.0, 0.4, 0.4]) {
        assert!((mass - 1.1 * compiled).abs() < 1e-12, "{masses:?}");
    }
}

#[test]
fn rows_and_episodes_get_values_of_their_own() {
    // Reports: mjlab PR 28 (fields varied at resets were the same in every row), UniLab 93 (some resets did not draw).
    let mut config = config_without_accidents();
    let scale = ScaleMass { range: [0.5, 1.5] };
    config.events = [("mass".into(), Entry::new(EventOptions::reset(), scale))].into();
    let mut env = Env::started(&config, options(3));
    let masses = |env: &Env| -> Vec<f64> {
        let staging = env.world.resource::<Staging>();
        (0..3).map(|row| staging.committed(ModelField::BodyMass, Row(row)).expect("a varied field")[1]).collect()
    };
    let first = masses(&env);
    assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2], "{first:?}");
    assert!(first.iter().all(|mass| (1.5..4.5).contains(mass)), "{first:?}");
    env.step_ending(&[1]);
    let second = masses(&env);
    assert_eq!((second[0], second[2]), (first[0], first[2]));
    assert_ne!(second[1], first[1], "an automatic reset draws");
    env.reset_rows(&[2]);
    let third = masses(&env);
    assert_eq!((third[0], third[1]), (second[0], second[1]));
    assert_ne!(third[2], second[2], "a reset by hand draws");
}

fn twist(resampling_time: [f32; 2], lin_vel_x: [f64; 2]) -> EnvironmentConfig {
    let mut config = config_without_accidents();
    let params = UniformVelocityCommand { lin_vel_x, ..UniformVelocityCommand::default() };
    config.commands = [("twist".into(), Entry::new(CommandOptions { enabled: true, resampling_time }, params))].into();
    config
}

#[test]
fn commands_are_drawn_again_exactly_when_their_time_is_up() {
    // Report: beyondAMP 10 (timers that advance with the physics step).
    let mut env = Env::started(&twist([0.2, 0.2], [-1.0, 1.0]), options(2));
    let mut before = env.get::<Command>(0).values.clone();
    for step in 1..=1000 {
        env.step();
        let now = env.get::<Command>(0).values.clone();
        assert_eq!(now != before, step % 10 == 0, "step {step}");
        before = now;
    }
    assert_eq!(env.get::<Command>(0).resamplings[0], 101);
}

#[test]
fn a_row_whose_episode_ends_is_not_drawn_a_command_by_its_timer() {
    // The timer of both rows would be up in step 5, in which the episode of row 1 ends.
    let mut env = Env::started(&twist([0.1, 0.1], [-1.0, 1.0]), options(2));
    for _ in 0..4 {
        env.step();
    }
    let before = env.get::<Command>(1).values[0];
    let place = {
        let manager = env.world.resource::<manege_systems::managers::observation::ObservationManager>();
        manager
            .groups()
            .next()
            .expect("a group")
            .terms()
            .find(|term| term.name() == "command")
            .expect("it")
            .columns()
            .start
    };
    env.step_ending(&[1]);
    assert_eq!(env.final_observation(0, 1)[place], before, "the last observation shows the command that was followed");
    assert_ne!(env.get::<Command>(1).values[0], before, "the new episode has one of its own");
}

#[test]
fn metrics_of_an_episode_are_reported_before_they_are_cleared() {
    // Report: IsaacLab PR 1352 (metrics logged after they were cleared).
    let mut env = Env::started(&twist([10.0, 10.0], [5.0, 5.0]), options(1));
    for _ in 0..5 {
        env.step();
    }
    let accumulated = env.get::<Command>(0).metrics[0];
    env.step_ending(&[0]);
    let reported = env.log("Metrics/twist/error_vel_xy").expect("an episode ended");
    assert!(reported > f64::from(accumulated) && accumulated > 0.0, "{reported} against {accumulated}");
    assert!(f64::from(env.get::<Command>(0).metrics[0]) < reported / 2.0);
}
