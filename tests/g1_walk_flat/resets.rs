//! What is drawn at resets.

use std::cell::RefCell;
use std::f64::consts::{PI, TAU};

use manege::Environment;
use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{Entry, TermParams};
use manege_systems::managers::event::{EventOptions, EventRow, EventTerm};
use manege_tasks::Task;
use serde::{Deserialize, Serialize};

use super::{JOINTS, NQ, NV, STAND, builder, observed};

/// Gains of every row and actuator, as the last reset staged them.
#[derive(Default)]
pub(super) struct Gains {
    pub(super) kp: Vec<f64>,
    pub(super) kd: Vec<f64>,
}

thread_local! {
    static GAINS: RefCell<Gains> = RefCell::default();
}

/// Looks at the gains that the events before it staged.
#[derive(Clone, Serialize, Deserialize)]
struct GainProbe {}

impl TermParams<dyn EventTerm> for GainProbe {
    fn build(&self, _context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for GainProbe {
    fn apply(&self, row: &mut EventRow<'_>) {
        GAINS.with_borrow_mut(|gains| {
            gains.kp.extend_from_slice(row.staged.field(ModelField::ActuatorKp).1);
            gains.kd.extend_from_slice(row.staged.field(ModelField::ActuatorKd).1);
        });
    }
}

/// Calls `test` with rows that were just reset, and their gains.
pub(super) fn with_gains(rows: usize, test: impl FnOnce(&mut Environment, Gains)) {
    let (task, _) = manege_tasks::find("g1_walk_flat").unwrap();
    let probed = Task {
        config: |preset| {
            let mut config = (manege_tasks::find("g1_walk_flat").unwrap().0.config)(preset);
            config.events.insert("probe".to_owned(), Entry::new(EventOptions::reset(), GainProbe {}));
            config
        },
        ..task
    };
    let mut env = builder("sac", rows).register(probed).build().unwrap();
    GAINS.take();
    env.reset().unwrap();
    test(&mut env, GAINS.take());
}

/// Asserts that many uniform draws are in `[low, high)`, reach almost to both ends and have the right mean.
#[track_caller]
fn assert_uniform(what: &str, values: impl IntoIterator<Item = f64>, low: f64, high: f64) {
    let values: Vec<f64> = values.into_iter().collect();
    let (count, span) = (values.len() as f64, high - low);
    let (least, greatest) = values.iter().fold((high, low), |(a, b), &value| (value.min(a), value.max(b)));
    // Single precision may round a draw up to the end of its range.
    assert!(least >= low - 1e-6 * span && greatest <= high + 1e-6 * span, "{what}: {least} to {greatest}");
    // A gap of 20 mean distances at an end has a probability of e^-20.
    let gap = 20.0 * span / count;
    assert!(least < low + gap && greatest > high - gap, "{what}: only {least} to {greatest}");
    // Five standard errors.
    let mean = values.iter().sum::<f64>() / count;
    let error = span / (12.0 * count).sqrt();
    assert!((mean - 0.5 * (low + high)).abs() < 5.0 * error, "{what}: mean {mean}");
}

#[test]
fn roots_are_drawn_around_the_standing_pose_and_joints_are_in_it() {
    const ROWS: usize = 500;
    let mut env = builder("flashsac", ROWS).seed(11).build().unwrap();
    env.reset().unwrap();
    let (qpos, qvel) = (env.qpos().to_vec(), env.qvel().to_vec());
    let column = |i: usize| qpos.iter().skip(i).step_by(NQ).copied();
    let velocity = |i: usize| qvel.iter().skip(i).step_by(NV).copied();
    assert_uniform("x", column(0), -0.5, 0.5);
    assert_uniform("y", column(1), -0.5, 0.5);
    assert!(column(2).eq([0.754; ROWS]));
    // Turned about the vertical alone.
    assert!(column(4).chain(column(5)).all(|part| part == 0.0));
    let half_yaw = column(3).zip(column(6)).map(|(w, z)| z.atan2(w));
    assert_uniform("yaw", half_yaw.map(|half| 2.0 * half), -PI, PI);
    for row in qpos.chunks(NQ) {
        assert_eq!(row[7..], STAND[1..]);
    }
    for axis in 0..3 {
        assert_uniform("linear velocity", velocity(axis), -0.5, 0.5);
    }
    // The angular velocity is drawn in the world frame and kept in the body's.
    let world = |axis: usize| {
        qpos.chunks(NQ).zip(qvel.chunks(NV)).map(move |(qpos, qvel)| {
            let (sin, cos) = (2.0 * qpos[6].atan2(qpos[3])).sin_cos();
            let [x, y, z] = [qvel[3], qvel[4], qvel[5]];
            [cos * x - sin * y, sin * x + cos * y, z][axis]
        })
    };
    for axis in 0..3 {
        assert_uniform("angular velocity", world(axis), -0.5, 0.5);
    }
    assert!(qvel.chunks(NV).all(|row| row[6..].iter().all(|&velocity| velocity == 0.0)));
}

#[test]
fn gains_are_scaled_by_a_tenth_each_on_its_own() {
    const ROWS: usize = 60;
    with_gains(ROWS, |env, gains| {
        let compiled = |gain: fn(&manege_systems::backend::ActuatorInfo) -> f64| {
            env.model_info().actuators.iter().map(gain).collect::<Vec<_>>()
        };
        for (what, drawn, compiled) in
            [("kp", &gains.kp, compiled(|actuator| actuator.kp)), ("kd", &gains.kd, compiled(|actuator| actuator.kd))]
        {
            assert_eq!(drawn.len(), ROWS * JOINTS);
            let scales: Vec<f64> =
                drawn.iter().zip(compiled.iter().cycle()).map(|(drawn, gain)| drawn / gain).collect();
            assert_uniform(what, scales.iter().copied(), 0.9, 1.1);
            let mut distinct = scales.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            assert!(distinct.len() > ROWS * JOINTS - 5, "no two actuators share a draw");
        }
        // The gains of the robot itself, N·m/rad and N·m·s/rad: hip pitch and hip roll.
        let actuators = &env.model_info().actuators;
        assert_eq!((actuators[0].kp, actuators[0].kd), (40.179, 2.558));
        assert_eq!((actuators[1].kp, actuators[1].kd), (99.098, 6.309));
    });
}

#[test]
fn commands_are_drawn_and_slow_ones_stand_still() {
    const ROWS: usize = 2000;
    let mut env = builder("sac", ROWS).seed(5).build().unwrap();
    env.reset().unwrap();
    let commands: Vec<[f64; 3]> = env.commands().as_chunks().0.iter().map(|c| c.map(f64::from)).collect();
    let (standing, walking): (Vec<[f64; 3]>, Vec<_>) = commands.iter().partition(|[x, y, _]| (*x, *y) == (0.0, 0.0));
    assert!(walking.iter().all(|[x, y, _]| x.hypot(*y) > 0.2));
    // A disc with radius 0.2 m/s in a rectangle of 1.6 by 0.8 m/s; the standard error is 0.7 %.
    let share = standing.len() as f64 / ROWS as f64;
    assert!((share - PI * 0.04 / 1.28).abs() < 0.03, "{share} stand still");
    let (least, greatest) = walking.iter().fold(([9.0; 2], [-9.0; 2]), |(a, b): ([f64; 2], [f64; 2]), c| {
        ([a[0].min(c[0]), a[1].min(c[1])], [b[0].max(c[0]), b[1].max(c[1])])
    });
    for (value, end) in [(least[0], -0.6), (greatest[0], 1.0), (least[1], -0.4), (greatest[1], 0.4)] {
        assert!(value.abs() <= f64::abs(end) + 1e-6 && (value - end).abs() < 0.02, "{value} should be near {end}");
    }
    // Rows that stand still may have to turn.
    assert_uniform("turning, standing", standing.iter().map(|c| c[2]), -0.8, 0.8);
    assert_uniform("turning, walking", walking.iter().map(|c| c[2]), -0.8, 0.8);
}

/// Both phases of every row.
fn phases(env: &Environment) -> Vec<[f32; 2]> {
    (0..env.rows()).map(|row| observed(env, "critic", "gait_phase", row).try_into().unwrap()).collect()
}

/// Angle from `a` to `b` in `[-π, π)`.
fn turn(a: f32, b: f32) -> f64 {
    (f64::from(b) - f64::from(a) + PI).rem_euclid(TAU) - PI
}

#[test]
fn feet_begin_in_antiphase_at_a_phase_drawn_for_the_row() {
    const ROWS: usize = 500;
    let mut env = builder("sac", ROWS).seed(3).build().unwrap();
    env.reset().unwrap();
    let first = phases(&env);
    assert_uniform("left phase", first.iter().map(|phases| f64::from(phases[0])), 0.0, TAU);
    for &[left, right] in &first {
        assert!((0.0..std::f32::consts::TAU).contains(&left) && (0.0..std::f32::consts::TAU).contains(&right));
        assert!((turn(left, right).abs() - PI).abs() < 1e-6, "{left}, {right}");
    }
    let distinct: std::collections::BTreeSet<u32> = first.iter().map(|phases| phases[0].to_bits()).collect();
    assert!(distinct.len() > ROWS - 5);
    // The policy sees the same, and what a row draws does not depend on how many there are.
    assert_eq!(observed(&env, "policy", "gait_phase", 7), first[7]);
    let mut few = builder("sac", 8).seed(3).build().unwrap();
    few.reset().unwrap();
    assert_eq!(phases(&few), first[..8]);
}

#[test]
fn phases_advance_by_three_hundredths_of_a_cycle_and_are_drawn_again_at_a_reset() {
    let mut env = builder("sac", 4).seed(9).build().unwrap();
    env.reset().unwrap();
    let zeros = vec![0.0; 4 * JOINTS];
    let mut before = phases(&env);
    let mut wraps = 0;
    for _ in 0..40 {
        env.step(&zeros).unwrap();
        let after = phases(&env);
        for row in 0..4 {
            for foot in 0..2 {
                if env.terminated()[row] {
                    continue;
                }
                let (before, after) = (before[row][foot], after[row][foot]);
                assert!((turn(before, after) - 0.03 * TAU).abs() < 1e-6, "{before} to {after}");
                assert!((0.0..std::f32::consts::TAU).contains(&after));
                wraps += usize::from(after < before);
            }
        }
        before = after;
    }
    assert!(wraps > 0);
    env.reset_rows(&[1, 2]).unwrap();
    let after = phases(&env);
    assert_eq!((after[0], after[3]), (before[0], before[3]));
    for row in [1, 2] {
        assert!(turn(before[row][0], after[row][0]).abs() > 1e-3);
        assert!((turn(after[row][0], after[row][1]).abs() - PI).abs() < 1e-6);
    }
}

#[test]
fn only_commands_are_random_without_randomisation() {
    let mut env = builder("sac", 2).randomization(false).corruption(false).build().unwrap();
    env.reset().unwrap();
    assert_eq!(env.qpos()[..7], [0.0, 0.0, 0.754, 1.0, 0.0, 0.0, 0.0]);
    assert!(env.qvel().iter().all(|&velocity| velocity == 0.0));
    // What is asked of the robot is the task, not a disturbance of it.
    let commands = env.commands();
    assert_ne!(commands[..3], commands[3..]);
    assert_eq!(phases(&env), [[std::f32::consts::PI, 0.0]; 2]);
}
