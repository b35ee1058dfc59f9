//! Terms as a host writes them: structs of parameters, and closures for probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use glam::DVec3;
use manege_systems::backend::ModelField;
use manege_systems::build::{BuildContext, BuildError};
use manege_systems::config::{Entry, EnvironmentConfig, PhysicsConfig, TermParams, TerminationEntry};
use manege_systems::handles::{CommandSlice, StateSlice};
use manege_systems::managers::action::{ActionOptions, JointPositionAction};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::event::{EventOptions, EventRow, EventTerm};
use manege_systems::managers::observation::{
    Delay, GroupConfig, GroupOptions, Noise, ObservationOptions, ObservationTerm, observation,
};
use manege_systems::managers::reward::{RewardOptions, RewardTerm, reward};
use manege_systems::managers::termination::{TerminationOptions, TerminationTerm, termination};
use manege_systems::row_view::RowView;
use serde::{Deserialize, Serialize};

/// A shared function that makes a term.
type Make<T> = Arc<dyn Fn(&mut BuildContext<'_>) -> Result<Box<T>, BuildError> + Send + Sync>;

/// A term made by a function. Every one has a number of its own, so that none is taken for another.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Made<T: ?Sized + 'static> {
    number: u64,
    #[serde(skip)]
    make: Option<Make<T>>,
}

impl<T: ?Sized> Clone for Made<T> {
    fn clone(&self) -> Self {
        Self { number: self.number, make: self.make.clone() }
    }
}

impl<T: ?Sized> TermParams<T> for Made<T> {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<T>, BuildError> {
        self.make.as_ref().expect("a term of this kind is not read from a file")(context)
    }
}

pub fn made<T: ?Sized>(
    make: impl Fn(&mut BuildContext<'_>) -> Result<Box<T>, BuildError> + Send + Sync + 'static,
) -> Made<T> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    Made { number: NUMBER.fetch_add(1, Ordering::Relaxed), make: Some(Arc::new(make)) }
}

/// A reward from a handle and a function that uses it.
pub fn reward_of<H: Copy + Send + Sync + 'static>(
    handle: impl Fn(&mut BuildContext<'_>) -> Result<H, BuildError> + Send + Sync + 'static,
    value: impl Fn(&RowView<'_>, H) -> f32 + Send + Sync + Clone + 'static,
) -> Made<dyn RewardTerm> {
    made(move |context| {
        let (handle, value) = (handle(context)?, value.clone());
        Ok(reward(move |row| value(row, handle)))
    })
}

/// A termination from a handle and a function that uses it.
pub fn termination_of<H: Copy + Send + Sync + 'static>(
    handle: impl Fn(&mut BuildContext<'_>) -> Result<H, BuildError> + Send + Sync + 'static,
    fires: impl Fn(&RowView<'_>, H) -> bool + Send + Sync + Clone + 'static,
) -> Made<dyn TerminationTerm> {
    made(move |context| {
        let (handle, fires) = (handle(context)?, fires.clone());
        Ok(termination(move |row| fires(row, handle)))
    })
}

/// An observation from a handle and a function that uses it.
pub fn observation_of<H: Copy + Send + Sync + 'static>(
    width: usize,
    handle: impl Fn(&mut BuildContext<'_>) -> Result<H, BuildError> + Send + Sync + 'static,
    compute: impl Fn(&RowView<'_>, H, &mut [f32]) + Send + Sync + Clone + 'static,
) -> Made<dyn ObservationTerm> {
    made(move |context| {
        let (handle, compute) = (handle(context)?, compute.clone());
        Ok(observation(width, move |row, out| compute(row, handle, out)))
    })
}

/// An event from a function.
pub fn event(apply: impl Fn(&mut EventRow<'_>) + Send + Sync + Clone + 'static) -> Made<dyn EventTerm> {
    struct FromClosure<F>(F);
    impl<F: Fn(&mut EventRow<'_>) + Send + Sync> EventTerm for FromClosure<F> {
        fn apply(&self, row: &mut EventRow<'_>) {
            (self.0)(row);
        }
    }
    made(move |_| Ok(Box::new(FromClosure(apply.clone())) as Box<dyn EventTerm>))
}

/// No handle.
pub fn nothing(_: &mut BuildContext<'_>) -> Result<(), BuildError> {
    Ok(())
}

/// A sensor's reading as an observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensor {
    pub sensor: String,
}

impl Sensor {
    pub fn new(sensor: &str) -> Self {
        Self { sensor: sensor.to_owned() }
    }
}

impl TermParams<dyn ObservationTerm> for Sensor {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let slice = context.sensor(&self.sensor)?;
        Ok(observation(slice.width(), move |row, out| copy(row.state(slice), out)))
    }
}

fn copy(from: &[f64], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from as f32;
    }
}

/// Puts the box somewhere above the ground, its arms somewhere, moving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scatter {
    pub spread: f64,
}

impl TermParams<dyn EventTerm> for Scatter {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for Scatter {
    fn apply(&self, row: &mut EventRow<'_>) {
        let mut draw = || row.draws.uniform(-self.spread, self.spread);
        let (shift, speed, arms) = ([draw(), draw(), draw()], [draw(), draw(), draw()], [draw(), draw()]);
        let mut root = row.staged.root();
        root.position += 0.2 * DVec3::from(shift);
        root.linear_velocity = 0.5 * DVec3::from(speed);
        row.staged.set_root(root);
        for (joint, shift) in row.staged.qpos_mut()[7..].iter_mut().zip(arms) {
            *joint += shift;
        }
    }
}

/// Adds to the root's linear velocity, m/s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    pub limit: f64,
}

impl TermParams<dyn EventTerm> for Push {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for Push {
    fn apply(&self, row: &mut EventRow<'_>) {
        for axis in 0..3 {
            row.staged.qvel_mut()[axis] += row.draws.uniform(-self.limit, self.limit);
        }
    }
}

/// Multiplies the mass of every body by a drawn factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleMass {
    pub range: [f64; 2],
}

impl TermParams<dyn EventTerm> for ScaleMass {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        context.field(ModelField::BodyMass)?;
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for ScaleMass {
    fn apply(&self, row: &mut EventRow<'_>) {
        let factor = row.draws.uniform(self.range[0], self.range[1]);
        let (default, mass) = row.staged.field(ModelField::BodyMass);
        for (mass, default) in mass.iter_mut().zip(default) {
            *mass = default * factor;
        }
    }

    fn randomizes(&self) -> bool {
        true
    }
}

/// Handle of the root's position.
pub fn root(context: &mut BuildContext<'_>) -> Result<StateSlice, BuildError> {
    context.root_position()
}

/// Handles of the joints' state.
pub fn joints(context: &mut BuildContext<'_>) -> Result<(StateSlice, StateSlice), BuildError> {
    Ok((context.joint_positions()?, context.joint_velocities()?))
}

pub fn twist(context: &mut BuildContext<'_>) -> Result<CommandSlice, BuildError> {
    context.command("twist")
}

/// Ends the episodes of rows whose action says so.
pub fn ends_when_told() -> TerminationEntry {
    Entry::new(TerminationOptions::failure(), termination_of(nothing, |row, ()| row.action()[0] == crate::env::END))
}

/// As [`config`], but episodes end only where the action says so.
pub fn config_without_accidents() -> EnvironmentConfig {
    let mut config = config();
    config.episode_length = 1000.0;
    config.terminations = [("told".into(), ends_when_told())].into();
    config
}

fn group(corruption: bool) -> GroupConfig {
    let plain = ObservationOptions::default;
    let joint_pos = observation_of(2, joints, |row, (pos, _), out| copy(row.state(pos), out));
    let joint_vel = observation_of(2, joints, |row, (_, vel), out| copy(row.state(vel), out));
    let action = observation_of(2, nothing, |row, (), out| out.copy_from_slice(row.action()));
    let command = observation_of(3, twist, |row, twist, out| out.copy_from_slice(row.command(twist)));
    let terms = [
        ("gyro".into(), Entry::new(plain().noise(Noise::gaussian(0.05)), Sensor::new("gyro"))),
        ("up".into(), Entry::new(plain().noise(Noise::UniformBias { min: -0.1, max: 0.1 }), Sensor::new("up"))),
        ("tip".into(), Entry::new(plain(), Sensor::new("left_tip"))),
        ("joint_pos".into(), Entry::new(plain().noise(Noise::uniform(0.02)).history(3), joint_pos)),
        ("joint_vel".into(), Entry::new(plain().delay(Delay::steps(1, 3)).scale(0.1), joint_vel)),
        ("action".into(), Entry::new(plain(), action)),
        ("command".into(), Entry::new(plain(), command)),
    ];
    GroupConfig { options: GroupOptions { corruption, ..GroupOptions::default() }, terms: terms.into() }
}

/// An environment that uses every manager: 4 substeps, episodes of 25 control steps at most; rows fall or drift off at
/// different times.
pub fn config() -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, 0.02), 0.5);
    config.keyframe = "home".to_owned();
    config.actions =
        [("joints".into(), Entry::new(ActionOptions::default(), JointPositionAction::around_default_pose(0.5)))].into();
    config.commands = [(
        "twist".into(),
        Entry::new(
            CommandOptions { enabled: true, resampling_time: [0.06, 0.2] },
            UniformVelocityCommand {
                lin_vel_x: [-1.0, 1.0],
                lin_vel_y: [-0.5, 0.5],
                ang_vel_z: [-1.0, 1.0],
                ..UniformVelocityCommand::default()
            },
        ),
    )]
    .into();
    config.observations = [("policy".into(), group(true)), ("critic".into(), group(false))].into();
    let height = reward_of(root, |row, root| row.vec3(root).z as f32);
    let change = reward_of(nothing, |row, ()| {
        row.action().iter().zip(row.previous_action()).map(|(a, b)| (a - b) * (a - b)).sum()
    });
    config.rewards = [
        ("alive".into(), Entry::new(RewardOptions::weight(1.0), reward_of(nothing, |_, ()| 1.0))),
        ("height".into(), Entry::new(RewardOptions::weight(2.0), height)),
        ("action_rate".into(), Entry::new(RewardOptions::weight(-0.01), change)),
    ]
    .into();
    let late = termination_of(|context| Ok(context.max_episode_steps()), |row, limit| row.clock().step >= limit);
    let away = termination_of(root, |row, root| row.vec3(root).y.abs() > 0.2);
    config.terminations = [
        ("time_out".into(), Entry::new(TerminationOptions::time_out(), late)),
        ("away".into(), Entry::new(TerminationOptions::failure(), away)),
    ]
    .into();
    config.events = [
        ("scatter".into(), Entry::new(EventOptions::reset(), Scatter { spread: 0.4 })),
        ("mass".into(), Entry::new(EventOptions::reset(), ScaleMass { range: [0.8, 1.2] })),
        ("push".into(), Entry::new(EventOptions::interval(0.1, 0.3), Push { limit: 0.4 })),
        ("gust".into(), Entry::new(EventOptions::global_interval(0.24, 0.24), Push { limit: 0.2 })),
    ]
    .into();
    config
}
