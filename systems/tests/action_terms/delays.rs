//! Actions that take effect late, against a plain model: every action that was given, and how old the one in effect is.

use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{Entry, EnvironmentConfig, PhysicsConfig, TermParams};
use manege_systems::managers::action::{ActionOptions, ExplicitPdAction, JointEffortAction};
use manege_systems::managers::termination::{TerminationOptions, TerminationTerm, termination};
use manege_systems::runtime::{self, RuntimeOptions};
use manege_systems::snapshot;
use manege_systems::step::AutoReset;
use serde::{Deserialize, Serialize};

use super::{Env, SUBSTEPS, TIMESTEP, action, chain, config};

/// A weightless world with a mass on a rail: a force changes the velocity by force × time / mass.
const RAIL: &str = r#"<mujoco model="rail">
  <option timestep="0.005" gravity="0 0 0"/>
  <worldbody>
    <body name="cart">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <geom type="sphere" size="0.1" mass="2" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor name="y" joint="y"/><motor name="x" joint="x"/></actuator>
</mujoco>"#;
const MASS: f64 = 2.0;
const ROWS: usize = 40;

fn rail(options: ActionOptions) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(TIMESTEP, TIMESTEP * f64::from(SUBSTEPS)), 100.0);
    config.actions = [("push".to_owned(), Entry::new(options, JointEffortAction::scaled(1.0)))].into();
    config
}

fn options(rows: usize) -> RuntimeOptions {
    RuntimeOptions { seed: 5, ..RuntimeOptions::new(rows) }
}

/// The velocity that a row's cart has after each control step if forces act `lag` physics steps late.
fn velocities(forces: &[[f32; 2]], lag: usize) -> Vec<[f64; 2]> {
    let substeps = SUBSTEPS as usize;
    let mut velocity = [0.0; 2];
    let step = |now: usize| {
        for substep in now * substeps..(now + 1) * substeps {
            let force = forces[substep.saturating_sub(lag) / substeps];
            for (velocity, force) in velocity.iter_mut().zip(force) {
                *velocity += f64::from(force) / MASS * TIMESTEP;
            }
        }
        velocity
    };
    (0..forces.len()).map(step).collect()
}

/// The lags, in physics steps, with which the plain model explains what a row did.
fn explaining(forces: &[[f32; 2]], seen: &[[f64; 2]], lags: std::ops::RangeInclusive<usize>) -> Vec<usize> {
    let near = |(a, b): (&[f64; 2], &[f64; 2])| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
    lags.filter(|&lag| velocities(forces, lag).iter().zip(seen).all(near)).collect()
}

/// Steps, and gives the forces and velocities of a row.
fn drive(env: &mut Env, from: usize, steps: usize, row: usize) -> (Vec<[f32; 2]>, Vec<[f64; 2]>) {
    let (mut forces, mut seen) = (Vec::new(), Vec::new());
    for step in from..from + steps {
        let actions = action(step, 2 * env.rows);
        forces.push([actions[2 * row], actions[2 * row + 1]]);
        env.step(&actions);
        seen.push([env.state(row)[2], env.state(row)[3]]);
    }
    (forces, seen)
}

#[test]
fn an_action_takes_effect_as_late_as_its_row_has_drawn() {
    let cases = [
        // Whole control steps, which are 4 physics steps.
        (ActionOptions::delayed_by_control_steps(2, 2), 8..=8, 4),
        (ActionOptions::delayed_by_control_steps(0, 3), 0..=12, 4),
        (ActionOptions::delayed_by_substeps(3, 3), 3..=3, 1),
        (ActionOptions::delayed_by_substeps(0, 9), 0..=9, 1),
        (ActionOptions { delay_control_steps: [1, 2], delay_substeps: [0, 3], ..ActionOptions::default() }, 4..=11, 1),
    ];
    for (delay, lags, unit) in cases {
        let mut drawn = Vec::new();
        for row in 0..ROWS {
            let mut env = Env::new(RAIL, &rail(delay.clone()), options(ROWS));
            let (forces, seen) = drive(&mut env, 0, 12, row);
            let found = explaining(&forces, &seen, 0..=40);
            // Exactly one lag explains both directions: the values of a term share it.
            assert_eq!(found.len(), 1, "{delay:?}, row {row}: {found:?}");
            assert!(lags.contains(&found[0]) && found[0].is_multiple_of(unit), "{delay:?}: {found:?}");
            drawn.push(found[0]);
            if row > 12 && lags.start() == lags.end() {
                break;
            }
        }
        let all = lags.clone().step_by(unit).all(|lag| drawn.contains(&lag));
        assert!(all, "{delay:?} draws every lag: {drawn:?}");
    }
}

#[test]
fn a_reset_forgets_the_actions_of_the_last_episode_and_draws_anew() {
    // Adapted from mjlab: a robot was moved by commands that were still on their way when it was put elsewhere.
    let mut env = Env::new(RAIL, &rail(ActionOptions::delayed_by_substeps(0, 9)), options(ROWS));
    let mut lags = Vec::new();
    for episode in 0..6 {
        let (forces, seen) = drive(&mut env, 100 * episode, 7, 1);
        let found = explaining(&forces, &seen, 0..=9);
        assert_eq!(found.len(), 1, "episode {episode}: {found:?}");
        lags.push(found[0]);
        runtime::reset_rows(&mut env.world, &[1, 3]).expect("rows");
    }
    assert!(lags.iter().any(|&lag| lag != lags[0]), "every episode draws: {lags:?}");
}

/// Ends episodes after some control steps.
#[derive(Clone, Serialize, Deserialize)]
struct EndsAfter {
    steps: u32,
}

impl TermParams<dyn TerminationTerm> for EndsAfter {
    fn build(&self, _context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let steps = self.steps;
        Ok(termination(move |row| row.clock().step >= steps))
    }
}

#[test]
fn an_automatic_reset_and_the_same_one_by_hand_leave_the_same_line() {
    let mut config =
        rail(ActionOptions { delay_control_steps: [0, 2], delay_substeps: [0, 3], ..ActionOptions::default() });
    config.terminations =
        [("told".to_owned(), Entry::new(TerminationOptions::failure(), EndsAfter { steps: 7 }))].into();
    let with = |auto_reset| RuntimeOptions { auto_reset, ..options(4) };
    let mut automatic = Env::new(RAIL, &config, with(AutoReset::SameStep));
    let mut by_hand = Env::new(RAIL, &config, with(AutoReset::Disabled));
    for step in 0..30 {
        automatic.step(&action(step, 8));
        by_hand.step(&action(step, 8));
        if step % 7 == 6 {
            runtime::reset_all(&mut by_hand.world).expect("a reset");
        }
        for row in 0..4 {
            assert_eq!(automatic.state(row), by_hand.state(row), "step {step}");
        }
    }
}

#[test]
fn lags_are_the_same_for_any_number_of_rows_and_threads() {
    let run = |rows: usize, threads: usize| {
        let options = RuntimeOptions { threads, ..options(rows) };
        let mut env = Env::new(RAIL, &rail(ActionOptions::delayed_by_substeps(0, 9)), options);
        (0..9).for_each(|_| env.step(&vec![1.0; 2 * rows]));
        (0..3).map(|row| env.state(row)).collect::<Vec<_>>()
    };
    assert_eq!(run(3, 1), run(3, 2));
    assert_eq!(run(3, 1), run(17, 1));
}

#[test]
fn without_randomization_the_lag_is_in_the_middle() {
    let options = RuntimeOptions { randomization: false, ..options(1) };
    let mut env = Env::new(RAIL, &rail(ActionOptions::delayed_by_substeps(2, 6)), options);
    let (forces, seen) = drive(&mut env, 0, 9, 0);
    assert_eq!(explaining(&forces, &seen, 0..=20), [4]);
}

#[test]
fn a_delayed_law_holds_the_old_target_against_the_new_state() {
    // With a lag as long as the run, the first target is in effect all the time.
    let late = ActionOptions::delayed_by_control_steps(30, 30);
    let pd = ExplicitPdAction::around_default_pose(0.5, 20.0, 1.0, 50.0);
    let mut delayed = Env::new(&chain("motor"), &config(late, pd.clone()), options(1));
    let mut constant = Env::new(&chain("motor"), &config(ActionOptions::default(), pd), options(1));
    for step in 0..30 {
        delayed.step(&action(step, 3));
        constant.step(&action(0, 3));
        assert_eq!(delayed.state(0), constant.state(0), "step {step}");
    }
}

#[test]
fn a_snapshot_holds_the_actions_that_are_on_their_way() {
    let config =
        rail(ActionOptions { delay_control_steps: [0, 3], delay_substeps: [0, 3], ..ActionOptions::default() });
    let mut env = Env::new(RAIL, &config, options(6));
    (0..5).for_each(|step| env.step(&action(step, 12)));
    let state = snapshot::save(&env.world);
    let mut other = Env::new(RAIL, &config, options(6));
    snapshot::load(&mut other.world, &state).expect("a snapshot of the same environment");
    for step in 5..15 {
        env.step(&action(step, 12));
        other.step(&action(step, 12));
        for row in 0..6 {
            assert_eq!(env.state(row), other.state(row));
        }
    }
    assert_eq!(snapshot::save(&env.world), snapshot::save(&other.world));
}
