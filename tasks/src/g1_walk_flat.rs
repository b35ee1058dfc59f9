//! The G1 humanoid walks after a velocity command on a flat floor.

use std::f64::consts::PI;

use indexmap::IndexMap;
use manege_systems::config::{Entry, EnvironmentConfig, GroupConfig, PerName, PhysicsConfig};
use manege_systems::managers::action::{ActionOptions, JointPositionAction};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::curriculum::{CurriculumOptions, PenaltyScaling};
use manege_systems::managers::event::EventOptions;
use manege_systems::managers::observation::{GroupOptions, Noise, ObservationOptions};
use manege_systems::managers::reward::RewardOptions;
use manege_systems::managers::task::TaskOptions;
use manege_systems::managers::termination::TerminationOptions;

use crate::robots;
use crate::task::{Preset, Task};
use crate::terms::events::{Distribution, Operation, RandomizeGains, ResetRootUniform, ResetSceneToDefault, SixRanges};
use crate::terms::gait_pair::{PairedFootHeight, PairedGaitClock, PairedPhases};
use crate::terms::observations::{
    CommandValues, JointPositionRelative, JointVelocity, LastAction, NegatedUpAxis, SensorReading,
};
use crate::terms::rewards::{ActionRate, Alive, WeightedPoseDeviation};
use crate::terms::sensed::{
    QuaternionXy, SensedAngularVelocityXy, TrackSensedAngularVelocity, TrackSensedLinearVelocity, UpAxisXy,
};
use crate::terms::terminations::{RootBelowHeight, TiltedUpAxis, TimeOut};

pub(crate) const TASK: Task = Task {
    name: "g1_walk_flat",
    summary: "a G1 humanoid walks after a velocity command on a flat floor",
    presets: &[
        Preset { name: "sac", summary: "noisy policy observations, clean critic, penalties that grow" },
        Preset { name: "flashsac", summary: "as sac, and stricter about foot heights, hips and smooth actions" },
    ],
    model: robots::G1_FLAT,
    config,
};

// The velocimeter is in the pelvis, all else that the task senses in the torso.
const LINEAR_VELOCITY: &str = "pelvis_local_linvel";
const ANGULAR_VELOCITY: &str = "torso_gyro";
const UP_AXIS: &str = "torso_upvector";

const COMMAND: &str = "twist";

fn config(preset: &str) -> EnvironmentConfig {
    let flashsac = preset == "flashsac";
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(1.0 / 150.0, 0.02), 20.0);
    config.keyframe = "stand".to_owned();
    config.task = [("gait".into(), Entry::new(TaskOptions::default(), PairedGaitClock { frequency: 1.5 }))].into();
    config.actions =
        [("joint_pos".into(), Entry::new(ActionOptions::default(), JointPositionAction::around_default_pose(1.0)))]
            .into();
    config.commands = [(
        COMMAND.into(),
        Entry::new(
            CommandOptions::every(20.0),
            UniformVelocityCommand {
                lin_vel_x: [-0.6, 1.0],
                lin_vel_y: [-0.4, 0.4],
                ang_vel_z: [-0.8, 0.8],
                dead_band: 0.2,
                ..UniformVelocityCommand::default()
            },
        ),
    )]
    .into();
    config.observations = [("policy".into(), policy()), ("critic".into(), critic())].into();
    rewards(&mut config, flashsac);
    config.terminations = [
        ("time_out".into(), Entry::new(TerminationOptions::time_out(), TimeOut {})),
        (
            "tilt".into(),
            Entry::new(
                TerminationOptions::failure(),
                TiltedUpAxis { sensor: UP_AXIS.to_owned(), limit: 65f64.to_radians() },
            ),
        ),
        ("base_height".into(), Entry::new(TerminationOptions::failure(), RootBelowHeight { height: 0.3 })),
    ]
    .into();
    events(&mut config);
    config.curriculum =
        [("penalty_scaling".into(), Entry::new(CurriculumOptions::at_resets(), PenaltyScaling::default()))].into();
    config
}

fn sensor(name: &str) -> SensorReading {
    SensorReading { sensor: name.to_owned() }
}

/// What a robot can sense, with noise.
fn policy() -> GroupConfig {
    let plain = ObservationOptions::default;
    let terms = IndexMap::from([
        ("base_ang_vel".into(), Entry::new(plain().scale(0.25), sensor(ANGULAR_VELOCITY))),
        ("projected_gravity".into(), Entry::new(plain(), NegatedUpAxis { sensor: UP_AXIS.to_owned() })),
        ("joint_pos".into(), Entry::new(plain().noise(Noise::uniform(0.01)), JointPositionRelative {})),
        ("joint_vel".into(), Entry::new(plain().noise(Noise::uniform(0.1)).scale(0.05), JointVelocity {})),
        ("actions".into(), Entry::new(plain(), LastAction {})),
        ("command".into(), Entry::new(plain(), CommandValues { command: COMMAND.to_owned() })),
        ("gait_phase".into(), Entry::new(plain(), PairedPhases {})),
    ]);
    GroupConfig { options: GroupOptions { corruption: true, ..GroupOptions::default() }, terms }
}

/// The same without noise, and the linear velocity.
fn critic() -> GroupConfig {
    let mut group = policy();
    group.options.corruption = false;
    let scaled = ObservationOptions::default().scale(2.0);
    group.terms.insert("base_lin_vel".into(), Entry::new(scaled, sensor(LINEAR_VELOCITY)));
    group
}

fn rewards(config: &mut EnvironmentConfig, flashsac: bool) {
    let weight = RewardOptions::weight;
    let (action_rate, feet_ori, foot_height_scale) = if flashsac { (-5.0, -25.0, 0.005) } else { (-4.0, -20.0, 0.04) };
    let std = 0.5;
    let sensor = |name: &str| name.to_owned();
    config.rewards = [
        (
            "tracking_lin_vel".into(),
            Entry::new(
                weight(2.0),
                TrackSensedLinearVelocity { command: COMMAND.to_owned(), sensor: sensor(LINEAR_VELOCITY), std },
            ),
        ),
        (
            "tracking_ang_vel".into(),
            Entry::new(
                weight(1.5),
                TrackSensedAngularVelocity { command: COMMAND.to_owned(), sensor: sensor(ANGULAR_VELOCITY), std },
            ),
        ),
        (
            "penalty_ang_vel_xy".into(),
            Entry::new(weight(-1.0), SensedAngularVelocityXy { sensor: sensor(ANGULAR_VELOCITY) }),
        ),
        ("penalty_orientation".into(), Entry::new(weight(-10.0), UpAxisXy { sensor: sensor(UP_AXIS) })),
        ("penalty_action_rate".into(), Entry::new(weight(action_rate), ActionRate {})),
        ("pose".into(), Entry::new(weight(-0.5), WeightedPoseDeviation { weights: pose_weights(flashsac) })),
        (
            "penalty_feet_ori".into(),
            Entry::new(
                weight(feet_ori),
                QuaternionXy { sensors: vec![sensor("left_foot_quat"), sensor("right_foot_quat")] },
            ),
        ),
        (
            "feet_phase".into(),
            Entry::new(
                weight(5.0),
                PairedFootHeight {
                    left: sensor("left_foot_pos"),
                    right: sensor("right_foot_pos"),
                    swing_height: 0.09,
                    scale: foot_height_scale,
                },
            ),
        ),
        ("alive".into(), Entry::new(weight(10.0), Alive {})),
    ]
    .into();
}

/// Legs may swing to and fro, but hardly turn; the waist and the arms stay where they are.
fn pose_weights(flashsac: bool) -> PerName<f64> {
    let hip_roll = if flashsac { 2.0 } else { 1.0 };
    let weights = [
        (".*_hip_pitch_joint", 0.01),
        (".*_hip_roll_joint", hip_roll),
        (".*_hip_yaw_joint", 5.0),
        (".*_knee_joint", 0.01),
        (".*_ankle_.*", 5.0),
        (".*", 50.0),
    ];
    PerName::Patterns(weights.map(|(pattern, weight)| (pattern.to_owned(), weight)).into())
}

fn events(config: &mut EnvironmentConfig) {
    let half = [-0.5, 0.5];
    config.events = [
        ("reset_scene_to_default".into(), Entry::new(EventOptions::reset(), ResetSceneToDefault {})),
        (
            "reset_root_state_uniform".into(),
            Entry::new(
                EventOptions::reset(),
                ResetRootUniform {
                    pose: SixRanges { x: half, y: half, yaw: [-PI, PI], ..SixRanges::ZERO },
                    velocity: SixRanges::symmetric(0.5),
                },
            ),
        ),
        (
            "pd_gains".into(),
            Entry::new(
                EventOptions::reset(),
                RandomizeGains {
                    actuators: vec![".*".to_owned()],
                    kp: Some(Distribution::uniform(0.9, 1.1)),
                    kd: Some(Distribution::uniform(0.9, 1.1)),
                    operation: Operation::Scale,
                    shared: false,
                },
            ),
        ),
    ]
    .into();
}
