//! Names and widths of everything in an environment's buffers.

use std::ops::Range;

use bevy_ecs::prelude::{Resource, World};
use manege_systems::backend::ModelInfo;
use manege_systems::build::TaskStateNames;
use manege_systems::managers::action::ActionManager;
use manege_systems::managers::command::CommandManager;
use manege_systems::managers::observation::ObservationManager;
use manege_systems::managers::reward::RewardManager;
use manege_systems::managers::termination::TerminationManager;

/// A name and the columns that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermColumns {
    /// The term's name.
    pub name: String,
    /// Its columns in the buffer.
    pub columns: Range<usize>,
}

/// An observation group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSpec {
    /// The group's name.
    pub name: String,
    /// Number of columns.
    pub width: usize,
    /// The group's terms with their columns, in order.
    pub terms: Vec<TermColumns>,
}

/// Names and widths of everything in an environment's buffers.
#[derive(Resource, Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Observation groups, in order.
    pub groups: Vec<GroupSpec>,
    /// Action terms with their columns.
    pub actions: Vec<TermColumns>,
    /// Command terms with their columns.
    pub commands: Vec<TermColumns>,
    /// Per-row task state with its columns.
    pub task_state: Vec<TermColumns>,
    /// Reward terms.
    pub reward_terms: Vec<String>,
    /// Termination terms, and whether each is a time-out.
    pub termination_terms: Vec<(String, bool)>,
    /// Joints, in the order of joint observations.
    pub joints: Vec<String>,
    /// Actuators, in the order of controls.
    pub actuators: Vec<String>,
    /// Control index of the actuator that drives each joint.
    pub joint_actuators: Vec<Option<usize>>,
    /// Length of `qpos`.
    pub nq: usize,
    /// Length of `qvel`.
    pub nv: usize,
    /// Number of actuators.
    pub nu: usize,
}

impl Spec {
    pub(crate) fn new(world: &World, info: &ModelInfo) -> Self {
        let columns = |name: &str, columns: Range<usize>| TermColumns { name: name.to_owned(), columns };
        let observations = world.resource::<ObservationManager>();
        let groups = observations
            .groups()
            .map(|group| GroupSpec {
                name: group.name().to_owned(),
                width: group.width(),
                terms: group.terms().map(|term| columns(term.name(), term.columns())).collect(),
            })
            .collect();
        let terminations = world.resource::<TerminationManager>();
        Self {
            groups,
            actions: world.resource::<ActionManager>().terms().map(|(name, range)| columns(name, range)).collect(),
            commands: world.resource::<CommandManager>().terms().map(|(name, range)| columns(name, range)).collect(),
            task_state: world
                .resource::<TaskStateNames>()
                .slices
                .iter()
                .map(|(name, slice)| columns(name, slice.range()))
                .collect(),
            reward_terms: world.resource::<RewardManager>().names().to_vec(),
            termination_terms: terminations
                .names()
                .iter()
                .enumerate()
                .map(|(i, name)| (name.clone(), terminations.is_time_out(i)))
                .collect(),
            joints: info.joints.iter().map(|joint| joint.name.clone()).collect(),
            actuators: info.actuators.iter().map(|actuator| actuator.name.clone()).collect(),
            joint_actuators: info.joints.iter().map(|joint| joint.actuator).collect(),
            nq: info.nq,
            nv: info.nv,
            nu: info.nu,
        }
    }

    /// Position of an observation group by name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| group.name == name)
    }

    /// Number of values in an action.
    #[must_use]
    pub fn action_width(&self) -> usize {
        width(&self.actions)
    }

    /// Number of values in a row's commands.
    #[must_use]
    pub fn command_width(&self) -> usize {
        width(&self.commands)
    }
}

fn width(terms: &[TermColumns]) -> usize {
    terms.last().map_or(0, |term| term.columns.end)
}
