//! The Go2 quadruped follows a velocity command on a flat floor.

use std::f64::consts::{FRAC_PI_3, PI};

use manege_systems::config::{Entry, EnvironmentConfig, GroupConfig, PhysicsConfig};
use manege_systems::managers::action::{ActionOptions, JointPositionAction};
use manege_systems::managers::command::{CommandOptions, UniformVelocityCommand};
use manege_systems::managers::event::EventOptions;
use manege_systems::managers::observation::{GroupOptions, Noise, ObservationOptions};
use manege_systems::managers::reward::RewardOptions;
use manege_systems::managers::task::TaskOptions;
use manege_systems::managers::termination::TerminationOptions;

use crate::robots;
use crate::task::{Preset, Task};
use crate::terms::events::{
    Distribution, Operation, PushBySettingVelocity, RandomizeBodyCom, RandomizeBodyMass, RandomizeGains,
    RandomizeGravity, ResetRootUniform, ResetSceneToDefault, SixRanges,
};
use crate::terms::gait::{FootContact, FootPhases, SharedGaitClock, SwingFootHeight};
use crate::terms::observations::{
    CommandValues, JointPositionRelative, JointVelocity, LastAction, NegatedUpAxis, SensorReading,
};
use crate::terms::rewards::{
    ActionRate, AngularVelocityXy, BaseHeight, DefaultPoseDeviation, LinearVelocityZ, TrackAngularVelocity,
    TrackLinearVelocity,
};
use crate::terms::terminations::{BadOrientation, TimeOut};

pub(crate) const TASK: Task = Task {
    name: "go2_joystick_flat",
    summary: "a Go2 quadruped follows a velocity command on a flat floor",
    presets: &[
        Preset { name: "base", summary: "clean observations, no pushes" },
        Preset { name: "flashsac", summary: "noisy observations, varied mass and centre of mass, pushes" },
    ],
    model: robots::GO2_FLAT,
    config,
};

/// Trot: diagonal feet in phase. FL, FR, RL, RR, in cycles.
const FOOT_OFFSETS: [f32; 4] = [0.0, 0.5, 0.5, 0.0];

/// Part of the gait cycle that a foot is on the ground.
const STANCE: f32 = 0.6;

fn config(preset: &str) -> EnvironmentConfig {
    let flashsac = preset == "flashsac";
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.01, 0.02), 20.0);
    config.keyframe = "home".to_owned();
    config.task = [("gait".into(), Entry::new(TaskOptions::default(), SharedGaitClock { frequency: 2.0 }))].into();
    config.actions = [(
        "joint_pos".into(),
        Entry::new(
            ActionOptions::default(),
            JointPositionAction::around_default_pose(if flashsac { 0.4 } else { 0.25 }),
        ),
    )]
    .into();
    config.commands = [(
        "twist".into(),
        Entry::new(
            CommandOptions::every(20.0),
            UniformVelocityCommand {
                lin_vel_x: [-0.6, 1.0],
                lin_vel_y: [-0.4, 0.4],
                ang_vel_z: [-0.8, 0.8],
                ..UniformVelocityCommand::default()
            },
        ),
    )]
    .into();
    config.observations = [("policy".into(), group(flashsac, false)), ("critic".into(), group(flashsac, true))].into();
    rewards(&mut config, flashsac);
    config.terminations = [
        ("time_out".into(), Entry::new(TerminationOptions::time_out(), TimeOut {})),
        ("bad_orientation".into(), Entry::new(TerminationOptions::failure(), BadOrientation { limit: FRAC_PI_3 })),
    ]
    .into();
    events(&mut config, flashsac);
    config
}

fn group(flashsac: bool, critic: bool) -> GroupConfig {
    let plain = ObservationOptions::default;
    let sensor = |name: &str| SensorReading { sensor: name.to_owned() };
    let mut terms = indexmap::IndexMap::from([
        ("base_ang_vel".into(), Entry::new(plain(), sensor("gyro"))),
        ("projected_gravity".into(), Entry::new(plain(), NegatedUpAxis { sensor: "upvector".to_owned() })),
        ("joint_pos".into(), Entry::new(plain().noise(Noise::uniform(0.01)), JointPositionRelative {})),
        ("joint_vel".into(), Entry::new(plain().noise(Noise::uniform(0.1)), JointVelocity {})),
        ("actions".into(), Entry::new(plain(), LastAction {})),
        ("command".into(), Entry::new(plain(), CommandValues { command: "twist".to_owned() })),
        ("gait_phase".into(), Entry::new(plain(), FootPhases { offsets: FOOT_OFFSETS.to_vec() })),
    ]);
    if critic {
        terms.insert("base_lin_vel".into(), Entry::new(plain(), sensor("local_linvel")));
    }
    GroupConfig { options: GroupOptions { corruption: flashsac, ..GroupOptions::default() }, terms }
}

fn rewards(config: &mut EnvironmentConfig, flashsac: bool) {
    let weight = |base: f32, other: f32| RewardOptions::weight(if flashsac { other } else { base });
    let std = if flashsac { 0.632_455_5 } else { 0.5 };
    let twist = || "twist".to_owned();
    let feet = |suffix: &str| ["FL", "FR", "RL", "RR"].iter().map(|foot| format!("{foot}_{suffix}")).collect();
    let offsets = || FOOT_OFFSETS.to_vec();
    config.rewards = [
        ("tracking_lin_vel".into(), Entry::new(weight(1.0, 1.0), TrackLinearVelocity { command: twist(), std })),
        ("tracking_ang_vel".into(), Entry::new(weight(0.2, 0.2), TrackAngularVelocity { command: twist(), std })),
        ("lin_vel_z".into(), Entry::new(weight(-5.0, -5.0), LinearVelocityZ {})),
        ("ang_vel_xy".into(), Entry::new(weight(-0.1, -0.1), AngularVelocityXy {})),
        ("base_height".into(), Entry::new(weight(-100.0, -20.0), BaseHeight { height: 0.3 })),
        ("action_rate".into(), Entry::new(weight(-0.005, -0.02), ActionRate {})),
        ("similar_to_default".into(), Entry::new(weight(-0.1, -0.4), DefaultPoseDeviation {})),
        (
            "contact".into(),
            Entry::new(
                weight(0.24, 1.5),
                FootContact { sensors: feet("foot_contact"), offsets: offsets(), stance: STANCE, threshold: 0.1 },
            ),
        ),
        (
            "swing_feet_z".into(),
            Entry::new(
                weight(4.0, 4.0),
                SwingFootHeight { sensors: feet("pos"), offsets: offsets(), stance: STANCE, height: 0.1, scale: 0.01 },
            ),
        ),
    ]
    .into();
}

fn events(config: &mut EnvironmentConfig, flashsac: bool) {
    let half = [-0.5, 0.5];
    let base = || vec!["base".to_owned()];
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
                    kp: Some(Distribution::uniform(31.5, 38.5)),
                    kd: Some(Distribution::uniform(0.45, 0.55)),
                    operation: Operation::Set,
                    shared: false,
                },
            ),
        ),
    ]
    .into();
    if !flashsac {
        return;
    }
    let fixed = |value| Some(Distribution::uniform(value, value));
    config.events.extend([
        (
            "base_mass".into(),
            Entry::new(
                EventOptions::reset(),
                RandomizeBodyMass {
                    bodies: base(),
                    distribution: Distribution::uniform(-1.5, 1.5),
                    operation: Operation::Add,
                    shared: false,
                    scale_inertia: false,
                },
            ),
        ),
        (
            "base_com".into(),
            Entry::new(
                EventOptions::reset(),
                RandomizeBodyCom {
                    bodies: base(),
                    x: Some(Distribution::uniform(-0.05, 0.05)),
                    y: None,
                    z: None,
                    operation: Operation::Add,
                    shared: false,
                },
            ),
        ),
        (
            "gravity".into(),
            Entry::new(
                EventOptions::reset(),
                RandomizeGravity { x: fixed(0.0), y: fixed(0.0), z: fixed(-9.81), operation: Operation::Set },
            ),
        ),
        (
            "push".into(),
            Entry::new(
                EventOptions::global_interval(15.0, 15.0),
                PushBySettingVelocity {
                    velocity: SixRanges { x: [-1.0, 1.0], y: [-1.0, 1.0], z: half, ..SixRanges::ZERO },
                },
            ),
        ),
    ]);
}
