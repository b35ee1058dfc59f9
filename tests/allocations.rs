//! A control step takes no memory once it runs, resets included.

use std::alloc::System;
use std::ops::Range;

use manege::collector::{Collector, RandomPolicy, ReplayRing, TransitionLayout};
use manege::environment::{EnvironmentBuilder, Rows};
use manege::prelude::*;
use manege::systems::managers::action::{ActionOptions, ExplicitPdAction};
use manege::systems::managers::curriculum::{
    CurriculumOptions, RangeSchedule, RangeStage, RewardWeightSchedule, WeightStage,
};
use manege::systems::managers::event::EventOptions;
use manege::systems::managers::metrics::{MetricOptions, MetricTerm, Reduce, metric, state_metric};
use manege::systems::managers::observation::{Delay, GroupOptions, ObservationOptions};
use manege::systems::managers::termination::TerminationOptions;
use manege::tasks::terms::events::{ApplyExternalWrench, AxisRanges};
use manege::tasks::terms::observations::{JointPositionRelative, JointVelocity};
use manege::tasks::terms::terminations::TimeOut;
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROWS: usize = 16;
const STEPS: usize = 1000;

/// What makes rows restart often: short episodes, and actions that throw the robot over. The first time-out comes for all rows
/// that have lasted at once, so lists of rows have then had their greatest length.
const SHORT_EPISODES: &str = "episode_length = 1.0";

fn environment(builder: EnvironmentBuilder, threads: usize) -> Environment {
    let mut env = builder.threads(threads).build().expect("the task builds");
    env.reset().expect("the task resets");
    env
}

fn builder(task: &str, rows: usize, changes: &str) -> EnvironmentBuilder {
    Environment::builder(task).rows(rows).config(changes.parse().expect("a table"))
}

fn action(step: usize, columns: usize, to: &mut [f32]) {
    for (i, value) in to.iter_mut().enumerate() {
        *value = (((step * columns + i) as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) as f32 - 1.0;
    }
}

/// Everything that keeps something per row and step: delays, histories, modes of commands, and timers that run out often.
const EVERYTHING: &str = r#"
episode_length = 1.0

[actions.joint_pos]
delay_control_steps = [0, 2]
delay_substeps = [0, 3]

[commands.twist]
resampling_time = [0.1, 0.5]
rel_standing = 0.2
rel_forward = 0.2
rel_world = 0.3
rel_heading = 0.5

[observations.policy]
nan_policy = "sanitize"

[observations.policy.terms.joint_pos]
history_length = 4
clip = [-1.0, 1.0]
delay = { min_lag = 0, max_lag = 3, hold_probability = 0.3, update_period = 2, per_row_phase = true }

[observations.policy.terms.joint_vel]
history_length = 3
noise = { kind = "gaussian_bias", mean = 0.0, std = 0.1 }

[observations.critic.terms.base_ang_vel]
delay = { min_lag = 1, max_lag = 2, per_row = false }

[events.push.mode]
kind = "interval"
seconds = [0.1, 0.3]
global = false
"#;

/// The height of the root, which can be sampled at either rate.
#[derive(Clone, Serialize, Deserialize)]
struct Height {}

impl TermParams<dyn MetricTerm> for Height {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn MetricTerm>, BuildError> {
        state_metric(context, |state| state.qpos[2] as f32)
    }
}

/// How long the episode has been, control steps.
#[derive(Clone, Serialize, Deserialize)]
struct Age {}

impl TermParams<dyn MetricTerm> for Age {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn MetricTerm>, BuildError> {
        Ok(metric(|row| row.clock().step as f32))
    }
}

/// The quadruped with terms of the managers that the built-in task does not use.
fn everything(preset: &str) -> EnvironmentConfig {
    let (go2, _) = manege::tasks::find("go2_joystick_flat").expect("a built-in task");
    let mut config = (go2.config)(preset);
    config.metrics.insert("height".into(), Entry::new(MetricOptions::reduce(Reduce::Max).per_substep(), Height {}));
    config.metrics.insert("age".into(), Entry::new(MetricOptions::reduce(Reduce::Last), Age {}));
    // Stages begin while allocations are counted.
    let stages = (0..10).map(|i| WeightStage { step: 100 * i, weight: -0.01 * i as f32 }).collect();
    let weight = RewardWeightSchedule { reward: "action_rate".to_owned(), stages };
    config.curriculum.insert("weight".into(), Entry::new(CurriculumOptions::every_step(), weight));
    let stages = (0..10).map(|i| RangeStage { step: 100 * i, range: [-0.1, 0.1 * (i + 1) as f64] }).collect();
    let range = RangeSchedule { range: "commands.twist.lin_vel_x".to_owned(), stages };
    config.curriculum.insert("range".into(), Entry::new(CurriculumOptions::at_resets(), range));
    let wrench = ApplyExternalWrench {
        body: "base".to_owned(),
        force: AxisRanges::symmetric(5.0),
        torque: AxisRanges::symmetric(0.5),
        duration: [0.05, 0.2],
    };
    config.events.insert("wrench".into(), Entry::new(EventOptions::interval(0.1, 0.4), wrench));
    config
}

const ARM: &str = r#"<mujoco model="arm">
  <worldbody>
    <body name="upper">
      <joint name="shoulder" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.03" mass="1" contype="0"/>
      <body name="lower" pos="0 0 -0.4">
        <joint name="elbow" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.5" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/><motor name="elbow" joint="elbow"/></actuator>
</mujoco>"#;

/// Motors with a control law of ours, which is computed in every physics step from actions that come late.
fn arm(_preset: &str) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, 0.02), 1.0);
    let law = ExplicitPdAction::around_default_pose(0.5, 20.0, 1.0, 10.0);
    config.actions = [("law".into(), Entry::new(ActionOptions::delayed_by_substeps(0, 9), law))].into();
    let late = ObservationOptions::default().delay(Delay::steps(0, 2));
    let terms = [
        ("positions".into(), Entry::new(late, JointPositionRelative {})),
        ("velocities".into(), Entry::new(ObservationOptions::default(), JointVelocity {})),
    ];
    config.observations =
        [("policy".into(), GroupConfig { options: GroupOptions::default(), terms: terms.into() })].into();
    config.terminations = [("time_out".into(), Entry::new(TerminationOptions::time_out(), TimeOut {}))].into();
    config
}

const ONE_PRESET: &[Preset] = &[Preset { name: "base", summary: "the only one" }];

/// Allocations and reallocations in `steps`, and the number of episodes that ended. Before every step, `before` has its way.
fn run(env: &mut Environment, steps: Range<usize>, mut before: impl FnMut(&mut Environment, usize)) -> (usize, usize) {
    let columns = env.rows() * env.action_width();
    let mut actions = vec![0.0; columns];
    let mut resets = 0;
    let region = Region::new(ALLOCATOR);
    for step in steps {
        action(step, columns, &mut actions);
        before(env, step);
        env.step(&actions).expect("a step");
        resets += env.terminated().iter().zip(env.truncated()).filter(|(a, b)| **a || **b).count();
    }
    let change = region.change();
    (change.allocations + change.reallocations, resets)
}

fn built_in_tasks_allocate_nothing() {
    let tasks = ["go2_joystick_flat:flashsac", "g1_walk_flat:sac", "g1_motion_tracking:sac"];
    for (task, threads) in tasks.into_iter().flat_map(|task| [(task, 1), (task, 2)]) {
        let mut env = environment(builder(task, ROWS, SHORT_EPISODES), threads);
        run(&mut env, 0..200, |_, _| ());
        let (allocations, resets) = run(&mut env, 200..200 + STEPS, |_, _| ());
        assert_eq!(allocations, 0, "{task}, {threads} threads");
        assert!(resets > STEPS / 10, "{task}: only {resets} episodes ended");

        let layout = TransitionLayout::of(&env);
        let mut ring = ReplayRing::new(layout, 64).expect("memory");
        let mut collector = Collector::new(env).expect("a reset");
        let mut policy = RandomPolicy::uniform(1, collector.environment().action_width());
        let mut run = |steps: usize| {
            for _ in 0..steps {
                let transitions = collector.step(&mut policy).expect("a step");
                ring.push(&transitions);
            }
        };
        run(100);
        let region = Region::new(ALLOCATOR);
        run(200);
        let change = region.change();
        assert_eq!(
            (change.allocations, change.reallocations),
            (0, 0),
            "{task}, {threads} threads, collected: {change:?}"
        );
    }
}

/// Sets a command of some or all rows in every step, and every now and then gives it back. The calls allocate; steps of rows whose
/// command is held do not.
fn joystick(env: &Environment) -> impl FnMut(&mut Environment, usize) + use<> {
    let twist = env.command_handle("twist").expect("a command");
    move |env, step| {
        let values = [0.01 * (step % 100) as f32, 0.1, -0.2];
        let rows = if step.is_multiple_of(7) { Rows::All } else { Rows::These(&[1, 4, 11]) };
        env.override_command(twist, rows, &values).expect("set");
        if step.is_multiple_of(5) {
            env.release_command(twist, Rows::These(&[0, 4])).expect("released");
        }
        assert_eq!(env.commands().len(), 3 * ROWS);
    }
}

fn optional_features_allocate_nothing() {
    let (go2, _) = manege::tasks::find("go2_joystick_flat").expect("a built-in task");
    let go2 = Task { name: "everything", config: everything, ..go2 };
    let arm = Task {
        name: "arm",
        summary: "two joints with motors",
        presets: ONE_PRESET,
        model: ModelFiles { main: "arm.xml", files: &[("arm.xml", ARM)] },
        config: arm,
    };
    let variants = [("shared", 1, AutoReset::SameStep), ("persistent", 1, AutoReset::SameStep)];
    let variants =
        variants.into_iter().chain([("persistent", 2, AutoReset::SameStep), ("shared", 2, AutoReset::NextStep)]);
    for (layout, threads, auto_reset) in variants {
        let case = format!("{layout}, {threads} threads, {auto_reset:?}");
        let layout = format!("physics.layout = \"{layout}\"\n");
        let builder =
            |task: &str, changes: &str| builder(task, ROWS, &(layout.clone() + changes)).auto_reset(auto_reset);

        let mut env = environment(builder("everything:flashsac", EVERYTHING).register(go2), threads);
        let mut joystick = joystick(&env);
        run(&mut env, 0..200, &mut joystick);
        let (allocations, resets) = run(&mut env, 200..200 + STEPS, |_, _| ());
        assert_eq!(allocations, 0, "{case}");
        assert!(resets > STEPS / 10, "{case}: only {resets} episodes ended");

        let mut env = environment(builder("arm", SHORT_EPISODES).register(arm), threads);
        run(&mut env, 0..200, |_, _| ());
        let (allocations, resets) = run(&mut env, 200..200 + STEPS, |_, _| ());
        assert_eq!(allocations, 0, "arm, {case}");
        assert!(resets > STEPS / 10, "arm, {case}: only {resets} episodes ended");
    }
}

/// With this many rows, row loops run in a pool. What is handed to it from outside waits in a queue of rayon's, which takes
/// a block of memory for every 63 entries; a step enters the pool once, or a few times while it is not known whether this
/// pays. All else would show as at least one allocation per step.
fn many_rows_allocate_next_to_nothing() {
    let mut env = environment(builder("go2_joystick_flat:flashsac", 1024, "episode_length = 0.5"), 2);
    run(&mut env, 0..30, |_, _| ());
    let (allocations, resets) = run(&mut env, 30..90, |_, _| ());
    assert!(allocations < 10, "{allocations} allocations in 60 steps");
    assert!(resets > 1024, "only {resets} episodes ended");
}

// One test, because other tests of the same program would be counted.
#[test]
fn a_thousand_control_steps_with_resets_allocate_nothing() {
    built_in_tasks_allocate_nothing();
    optional_features_allocate_nothing();
    many_rows_allocate_next_to_nothing();
}
