//! Terms on states made up by hand, with values worked out by hand.

use std::f32::consts::{FRAC_PI_2, PI};

use manege_components::{Action, Command, CommandWidths, EpisodeClock, RobotState, Row, Streams, TaskState};
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::EnvironmentConfig;
use manege_systems::row_view::RowView;
use manege_tasks::Task;
use manege_tasks::terms::gait_pair::swing_height;

use super::{JOINTS, STAND};

/// A row in which everything is zero but what a test sets.
struct Hand<'a> {
    config: &'a EnvironmentConfig,
    context: BuildContext<'a>,
    state: RobotState,
    phases: [f32; 2],
}

/// Calls `test` for a preset.
fn with_hand<R>(preset: &str, test: impl FnOnce(&mut Hand<'_>) -> R) -> R {
    let (task, _): (Task, _) = manege_tasks::find("g1_walk_flat").unwrap();
    let config = (task.config)(preset);
    let model = task.load(&config.physics).unwrap();
    let mut context = BuildContext::new(&*model, Some("stand"), 0.02, 20.0).unwrap();
    config.task["gait"].term.build(&mut context).unwrap();
    test(&mut Hand { config: &config, context, state: RobotState::zeros(512), phases: [0.0; 2] })
}

impl Hand<'_> {
    fn sense(&mut self, sensor: &str, values: &[f64]) {
        let slice = self.context.sensor(sensor).unwrap();
        self.state.values[slice.range()].copy_from_slice(values);
    }

    fn feet(&mut self, left: f64, right: f64) {
        self.sense("left_foot_pos", &[3.0, 4.0, left]);
        self.sense("right_foot_pos", &[3.0, 4.0, right]);
    }

    fn see<R>(&self, look: impl FnOnce(&RowView<'_>) -> R) -> R {
        let (clock, streams) = (EpisodeClock::default(), Streams::for_row(0, Row(0), 0));
        let (action, command) = (Action::zeros(JOINTS), Command::zeros(&CommandWidths::default()));
        let task = TaskState { values: self.phases.into() };
        look(&RowView::new(Row(0), &clock, &streams, &self.state, &action, &command, &task))
    }

    fn reward(&mut self, name: &str) -> f32 {
        let term = self.config.rewards[name].term.build(&mut self.context).unwrap();
        self.see(|row| term.value(row))
    }

    fn ends(&mut self, name: &str) -> bool {
        let term = self.config.terminations[name].term.build(&mut self.context).unwrap();
        self.see(|row| term.fires(row))
    }
}

#[track_caller]
fn assert_near(actual: f32, expected: f64) {
    let error = (f64::from(actual) - expected).abs();
    assert!(error <= 1e-6 * expected.abs().max(1.0), "{actual} should be {expected}");
}

#[test]
fn a_foot_is_highest_at_phase_0_and_on_the_ground_at_half_a_cycle() {
    use std::f64::consts::TAU;
    // In cycles; 1/8 of a cycle is a quarter of the way up or down: 3/16 - 2/64 = 5/32.
    let heights = [(0.0, 1.0), (0.25, 0.5), (0.5, 0.0), (0.75, 0.5), (0.625, 5.0 / 32.0), (0.125, 27.0 / 32.0)];
    for (cycles, height) in heights {
        for turns in [0.0, 1.0] {
            let actual = swing_height((cycles + turns) * TAU);
            assert!((actual - height).abs() < 1e-12, "{actual} at {cycles} cycles should be {height}");
        }
    }
}

#[test]
fn feet_at_the_heights_of_their_phases_are_rewarded_in_full() {
    // Of the two presets, the width of the reward is 0.04 and 0.005 m².
    for (preset, scale) in [("sac", 0.04f64), ("flashsac", 0.005)] {
        with_hand(preset, |hand| {
            hand.phases = [0.0, PI];
            hand.feet(0.09, 0.0);
            assert_near(hand.reward("feet_phase"), 1.0);
            // Left and right are not interchangeable.
            hand.feet(0.0, 0.09);
            assert_near(hand.reward("feet_phase"), (-2.0 * 0.0081 / scale).exp());
            // A tenth of a metre too high, with one foot and with both.
            hand.feet(0.19, 0.0);
            assert_near(hand.reward("feet_phase"), (-0.01 / scale).exp());
            hand.feet(0.19, -0.1);
            assert_near(hand.reward("feet_phase"), (-0.02 / scale).exp());
            hand.phases = [FRAC_PI_2, 3.0 * FRAC_PI_2];
            hand.feet(0.045, 0.045);
            assert_near(hand.reward("feet_phase"), 1.0);
        });
    }
}

#[test]
fn penalties_are_squares_of_what_is_sensed() {
    with_hand("sac", |hand| {
        hand.sense("torso_gyro", &[1.0, -2.0, 9.0]);
        assert_near(hand.reward("penalty_ang_vel_xy"), 5.0);
        hand.sense("torso_upvector", &[0.6, 0.0, 0.8]);
        assert_near(hand.reward("penalty_orientation"), 0.36);
        // A foot that is only turned about the vertical counts nothing; on its side, sin²(45°).
        let half = 0.5f64.sqrt();
        hand.sense("left_foot_quat", &[half, 0.0, 0.0, half]);
        hand.sense("right_foot_quat", &[1.0, 0.0, 0.0, 0.0]);
        assert_near(hand.reward("penalty_feet_ori"), 0.0);
        hand.sense("right_foot_quat", &[half, half, 0.0, 0.0]);
        assert_near(hand.reward("penalty_feet_ori"), 0.5);
        hand.sense("left_foot_quat", &[half, 0.0, -half, 0.0]);
        assert_near(hand.reward("penalty_feet_ori"), 1.0);
        assert_near(hand.reward("alive"), 1.0);
    });
}

#[test]
fn joints_off_the_default_pose_count_by_their_weights() {
    // hip pitch, roll, yaw, knee, ankle pitch, roll of each leg; 17 joints of waist and arms.
    for (preset, hip_roll) in [("sac", 1.0), ("flashsac", 2.0)] {
        with_hand(preset, |hand| {
            let leg = [0.01, hip_roll, 5.0, 0.01, 5.0, 5.0];
            let weights: Vec<f64> = leg.into_iter().chain(leg).chain([50.0; 17]).collect();
            let joints = hand.context.joint_positions().unwrap().range();
            let default = &STAND[1..];
            hand.state.values[joints.clone()].copy_from_slice(default);
            assert_near(hand.reward("pose"), 0.0);
            for (i, weight) in weights.iter().enumerate() {
                hand.state.values[joints.clone()].copy_from_slice(default);
                hand.state.values[joints.start + i] += if i % 2 == 0 { 0.1 } else { -0.1 };
                assert_near(hand.reward("pose"), weight * 0.01);
            }
            hand.state.values[joints].iter_mut().zip(default).for_each(|(q, default)| *q = default + 1.0);
            assert_near(hand.reward("pose"), if preset == "sac" { 882.04 } else { 884.04 });
        });
    }
}

#[test]
fn episodes_end_beyond_65_degrees_and_below_30_centimetres() {
    with_hand("sac", |hand| {
        let mut tilted = |degrees: f64| {
            let (sin, cos) = degrees.to_radians().sin_cos();
            hand.sense("torso_upvector", &[0.6 * sin, 0.8 * sin, cos]);
            hand.ends("tilt")
        };
        let expected = [(0.0, false), (64.999, false), (65.001, true), (90.0, true), (180.0, true)];
        for (degrees, ends) in expected {
            assert_eq!(tilted(degrees), ends, "{degrees}°");
        }
        // Rounding makes a unit vector longer than 1.
        hand.sense("torso_upvector", &[0.0, 0.0, 1.0 + 1e-15]);
        assert!(!hand.ends("tilt"));
        hand.sense("torso_upvector", &[0.0, 0.0, -1.0 - 1e-15]);
        assert!(hand.ends("tilt"));

        let height = hand.context.root_position().unwrap().range().start + 2;
        for (metres, ends) in [(0.754, false), (0.3, false), (0.3 - 1e-9, true), (-1.0, true)] {
            hand.state.values[height] = metres;
            assert_eq!(hand.ends("base_height"), ends, "{metres} m");
        }
    });
}

#[test]
fn sensors_that_do_not_fit_are_refused() {
    with_hand("sac", |hand| {
        let mut changed = |key: &str, value: &str| -> Result<(), BuildError> {
            let mut config = hand.config.clone();
            config.apply(&format!("rewards.{key} = {value}").parse().unwrap()).unwrap();
            config.rewards[key.split('.').next().unwrap()].term.build(&mut hand.context).map(|_| ())
        };
        for (key, value, parts) in [
            ("penalty_ang_vel_xy.sensor", "'torso_giro'", ["unknown sensor", "did you mean `torso_gyro`"]),
            ("penalty_ang_vel_xy.sensor", "'left_foot_quat'", ["`left_foot_quat` reads 4 values", "3 are needed"]),
            ("penalty_feet_ori.sensors", "['torso_gyro']", ["`torso_gyro` reads 3 values", "4 are needed"]),
            ("feet_phase.left", "'left_foot_contact_0'", ["impossible value for `left`", "reads 1 values"]),
            ("feet_phase.scale", "0.0", ["impossible value for `scale`", "0 is not a positive number"]),
            ("pose.weights", "nan", ["impossible value for `weights`", "NaN"]),
        ] {
            let message = changed(key, value).unwrap_err().to_string();
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    });
}
