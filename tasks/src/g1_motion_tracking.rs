//! The G1 humanoid follows reference motions.

use indexmap::IndexMap;
use manege_systems::config::{Entry, EnvironmentConfig, GroupConfig, PhysicsConfig};
use manege_systems::managers::action::{ActionOptions, JointPositionAction};
use manege_systems::managers::command::CommandOptions;
use manege_systems::managers::observation::{GroupOptions, Noise, ObservationOptions};
use manege_systems::managers::reward::RewardOptions;
use manege_systems::managers::termination::TerminationOptions;

use crate::robots;
use crate::task::{Preset, Task};
use crate::terms::events::SixRanges;
use crate::terms::motion::Sampling;
use crate::terms::motion::command::MotionCommand;
use crate::terms::motion::observations::{
    BodyOrientations, BodyPositions, MotionAnchorOrientation, MotionAnchorPosition,
};
use crate::terms::motion::rewards::{
    TrackAnchorOrientation, TrackAnchorPosition, TrackBodyAngularVelocities, TrackBodyLinearVelocities,
    TrackBodyOrientations, TrackBodyPositions, TrackJointPositions, TrackJointVelocities,
};
use crate::terms::motion::terminations::{AnchorHeightError, AnchorTiltError, BodyHeightError, ClipEnd};
use crate::terms::observations::{CommandValues, JointPositionRelative, JointVelocity, LastAction, SensorReading};
use crate::terms::rewards::{ActionRate, BodiesBelowHeight, JointLimitExcess};
use crate::terms::terminations::TimeOut;

pub(crate) const TASK: Task = Task {
    name: "g1_motion_tracking",
    summary: "a G1 humanoid follows reference motions",
    presets: &[Preset { name: "sac", summary: "noisy policy observations, clean critic, starts where it fails" }],
    model: robots::G1_FLAT,
    config,
};

const COMMAND: &str = "motion";

const BODIES: [&str; 14] = [
    "pelvis",
    "left_hip_roll_link",
    "left_knee_link",
    "left_ankle_roll_link",
    "right_hip_roll_link",
    "right_knee_link",
    "right_ankle_roll_link",
    "torso_link",
    "left_shoulder_roll_link",
    "left_elbow_link",
    "left_wrist_yaw_link",
    "right_shoulder_roll_link",
    "right_elbow_link",
    "right_wrist_yaw_link",
];

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn command() -> String {
    COMMAND.to_owned()
}

fn config(_preset: &str) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(1.0 / 150.0, 0.02), 10.0);
    config.keyframe = "stand".to_owned();
    config.actions =
        [("joint_pos".into(), Entry::new(ActionOptions::default(), JointPositionAction::around_default_pose(2.0)))]
            .into();
    config.commands = [(
        COMMAND.into(),
        // A motion is never drawn anew because time is up.
        Entry::new(CommandOptions::every(1e9), motion()),
    )]
    .into();
    config.observations = [("policy".into(), policy()), ("critic".into(), critic())].into();
    rewards(&mut config);
    terminations(&mut config);
    config
}

fn motion() -> MotionCommand {
    MotionCommand {
        files: Vec::new(),
        resample: false,
        anchor: "torso_link".to_owned(),
        bodies: names(&BODIES),
        sampling: Sampling::default(),
        pose: SixRanges {
            x: [-0.05, 0.05],
            y: [-0.05, 0.05],
            z: [-0.01, 0.01],
            roll: [-0.1, 0.1],
            pitch: [-0.1, 0.1],
            yaw: [-0.2, 0.2],
        },
        velocity: SixRanges {
            x: [-0.5, 0.5],
            y: [-0.5, 0.5],
            z: [-0.2, 0.2],
            roll: [-0.52, 0.52],
            pitch: [-0.52, 0.52],
            yaw: [-0.78, 0.78],
        },
        joint_position: [-0.1, 0.1],
        truncate_on_clip_end: true,
    }
}

/// What a robot can sense, with noise, beside what it is to do.
fn policy() -> GroupConfig {
    let plain = ObservationOptions::default;
    let sensor = |name: &str| SensorReading { sensor: name.to_owned() };
    let terms = IndexMap::from([
        ("command".into(), Entry::new(plain(), CommandValues { command: command() })),
        ("motion_anchor_pos_b".into(), Entry::new(plain(), MotionAnchorPosition { command: command() })),
        ("motion_anchor_ori_b".into(), Entry::new(plain(), MotionAnchorOrientation { command: command() })),
        ("base_lin_vel".into(), Entry::new(plain().noise(Noise::uniform(0.1)), sensor("pelvis_local_linvel"))),
        ("base_ang_vel".into(), Entry::new(plain().noise(Noise::uniform(0.2)), sensor("torso_gyro"))),
        ("joint_pos".into(), Entry::new(plain().noise(Noise::uniform(0.01)), JointPositionRelative {})),
        ("joint_vel".into(), Entry::new(plain().noise(Noise::uniform(1.5)), JointVelocity {})),
        ("actions".into(), Entry::new(plain(), LastAction {})),
    ]);
    GroupConfig { options: GroupOptions { corruption: true, ..GroupOptions::default() }, terms }
}

/// The same without noise, and where all bodies are. The linear velocity is there twice, as in the reference's critic.
fn critic() -> GroupConfig {
    let mut group = policy();
    group.options.corruption = false;
    let plain = ObservationOptions::default;
    group.terms.insert("body_pos".into(), Entry::new(plain(), BodyPositions { command: command() }));
    group.terms.insert("body_ori".into(), Entry::new(plain(), BodyOrientations { command: command() }));
    let velocity = SensorReading { sensor: "pelvis_local_linvel".to_owned() };
    group.terms.insert("base_lin_vel_privileged".into(), Entry::new(plain(), velocity));
    group
}

#[expect(clippy::approx_constant, reason = "3.14 rad/s is what the task is defined with")]
fn rewards(config: &mut EnvironmentConfig) {
    let weight = RewardOptions::weight;
    config.rewards = [
        (
            "motion_global_root_pos".into(),
            Entry::new(weight(1.0), TrackAnchorPosition { command: command(), std: 0.3 }),
        ),
        (
            "motion_global_root_ori".into(),
            Entry::new(weight(0.5), TrackAnchorOrientation { command: command(), std: 0.4 }),
        ),
        ("motion_body_pos".into(), Entry::new(weight(2.0), TrackBodyPositions { command: command(), std: 0.3 })),
        ("motion_body_ori".into(), Entry::new(weight(1.0), TrackBodyOrientations { command: command(), std: 0.4 })),
        (
            "motion_body_lin_vel".into(),
            Entry::new(weight(1.0), TrackBodyLinearVelocities { command: command(), std: 1.0 }),
        ),
        (
            "motion_body_ang_vel".into(),
            Entry::new(weight(1.0), TrackBodyAngularVelocities { command: command(), std: 3.14 }),
        ),
        ("motion_joint_pos".into(), Entry::new(weight(0.0), TrackJointPositions { command: command(), std: 0.2 })),
        ("motion_joint_vel".into(), Entry::new(weight(0.0), TrackJointVelocities { command: command(), std: 1.0 })),
        ("action_rate_l2".into(), Entry::new(weight(-0.1), ActionRate {})),
        ("joint_limit".into(), Entry::new(weight(-2.0), JointLimitExcess {})),
        (
            "undesired_contacts".into(),
            Entry::new(
                weight(-0.1),
                BodiesBelowHeight {
                    bodies: names(&["pelvis", ".*_(hip_roll|knee|shoulder_roll|elbow)_link", "torso_link"]),
                    height: 0.05,
                },
            ),
        ),
    ]
    .into();
}

fn terminations(config: &mut EnvironmentConfig) {
    let (time_out, failure) = (TerminationOptions::time_out, TerminationOptions::failure);
    config.terminations = [
        ("time_out".into(), Entry::new(time_out(), TimeOut {})),
        ("motion_clip_end".into(), Entry::new(time_out(), ClipEnd { command: command() })),
        ("anchor_pos".into(), Entry::new(failure(), AnchorHeightError { command: command(), limit: 0.5 })),
        ("anchor_ori".into(), Entry::new(failure(), AnchorTiltError { command: command(), limit: 0.8 })),
        (
            "ee_body_pos".into(),
            Entry::new(
                failure(),
                BodyHeightError {
                    command: command(),
                    bodies: names(&[
                        "left_ankle_roll_link",
                        "right_ankle_roll_link",
                        "left_wrist_yaw_link",
                        "right_wrist_yaw_link",
                    ]),
                    limit: 0.5,
                },
            ),
        ),
    ]
    .into();
}
