//! What terms see while an environment is built: names become handles, and needs become requests.

mod error;
mod select;

pub use error::BuildError;

use std::any::Any;
use std::sync::Arc;

use bevy_ecs::prelude::Resource;
use indexmap::IndexMap;
use regex_lite::Regex;

use crate::backend::{BackendBuilder, Feature, JointInfo, ModelField, ModelInfo, Output};
use crate::config::{PerName, nearest};
use crate::handles::{CommandSlice, RewardHandle, StateSlice, TaskSlice};
use crate::tunable::{TunableRange, Tunables};
use crate::wrench::WrenchHandle;

/// Resolves names for terms, and collects the physics outputs and model fields that they need.
pub struct BuildContext<'a> {
    backend: &'a dyn BackendBuilder,
    default_qpos: Vec<f64>,
    control_period: f64,
    episode_length: f64,
    outputs: Vec<(Output, StateSlice)>,
    fields: Vec<ModelField>,
    /// The body of each source of external wrenches.
    wrenches: Vec<usize>,
    commands: IndexMap<String, CommandSlice>,
    actions: IndexMap<String, std::ops::Range<usize>>,
    task_state: IndexMap<String, TaskSlice>,
    task_state_ranges: IndexMap<String, [f32; 2]>,
    /// Configured weights.
    rewards: IndexMap<String, f32>,
    tunables: Tunables,
    shared: IndexMap<String, Arc<dyn Any + Send + Sync>>,
    randomization: bool,
    /// `section.term` of the term that is being built.
    building: String,
}

impl<'a> BuildContext<'a> {
    /// A context over a loaded model, whose rows start episodes from the keyframe of the given name.
    ///
    /// `control_period` and `episode_length` are in s.
    ///
    /// # Errors
    /// The model has no such keyframe.
    pub fn new(
        backend: &'a dyn BackendBuilder,
        keyframe: Option<&str>,
        control_period: f64,
        episode_length: f64,
    ) -> Result<Self, BuildError> {
        let info = backend.info();
        let default_qpos = match keyframe {
            None => info.default_qpos.clone(),
            Some(name) => {
                let names = info.keyframes.iter().map(|key| key.name.as_str());
                info.keyframes[index_of("keyframe", name, names)?].qpos.clone()
            }
        };
        Ok(Self {
            backend,
            default_qpos,
            control_period,
            episode_length,
            outputs: Vec::new(),
            fields: Vec::new(),
            wrenches: Vec::new(),
            commands: IndexMap::new(),
            actions: IndexMap::new(),
            task_state: IndexMap::new(),
            task_state_ranges: IndexMap::new(),
            rewards: IndexMap::new(),
            tunables: Tunables::default(),
            shared: IndexMap::new(),
            randomization: true,
            building: String::new(),
        })
    }

    /// Names, sizes and defaults of the model.
    #[must_use]
    pub fn info(&self) -> &'a ModelInfo {
        self.backend.info()
    }

    /// Duration of a control step, s.
    #[must_use]
    pub fn control_period(&self) -> f64 {
        self.control_period
    }

    /// Longest duration of an episode, s.
    #[must_use]
    pub fn episode_length(&self) -> f64 {
        self.episode_length
    }

    /// Longest duration of an episode, control steps.
    #[must_use]
    pub fn max_episode_steps(&self) -> u32 {
        max_episode_steps(self.episode_length, self.control_period)
    }

    /// The configuration that every episode starts from, `nq` values.
    #[must_use]
    pub fn default_qpos(&self) -> &[f64] {
        &self.default_qpos
    }

    /// Positions of the joints in the configuration that every episode starts from, rad or m, in joint order.
    #[must_use]
    pub fn default_joint_positions(&self) -> Vec<f64> {
        self.info().joints.iter().map(|joint| self.default_qpos[joint.qpos]).collect()
    }

    /// Requests a physics output. Asking again gives the same handle.
    ///
    /// # Errors
    /// The backend has no such output.
    pub fn output(&mut self, output: Output) -> Result<StateSlice, BuildError> {
        if let Some((_, slice)) = self.outputs.iter().find(|(known, _)| *known == output) {
            return Ok(*slice);
        }
        self.require(Feature::Output(output))?;
        let start = self.outputs.last().map_or(0, |(_, slice)| slice.range().end);
        let slice = StateSlice::new(start, output.width(self.info()));
        self.outputs.push((output, slice));
        Ok(slice)
    }

    /// Requests that a model field may differ from row to row.
    ///
    /// # Errors
    /// The backend cannot vary it.
    pub fn field(&mut self, field: ModelField) -> Result<ModelField, BuildError> {
        self.require(Feature::Field(field))?;
        if !self.fields.contains(&field) {
            self.fields.push(field);
        }
        Ok(field)
    }

    /// Lets the term that is being built apply forces and torques to a body (an index into [`ModelInfo::bodies`]).
    ///
    /// Every call gives a source of its own; what acts on a body is the sum of its sources.
    ///
    /// # Errors
    /// The backend cannot apply any.
    pub fn wrench(&mut self, body: usize) -> Result<WrenchHandle, BuildError> {
        self.require(Feature::ExternalWrench)?;
        self.wrenches.push(body);
        Ok(WrenchHandle(self.wrenches.len() - 1))
    }

    /// Fails, naming the feature, if the backend lacks it.
    pub(crate) fn require(&self, feature: Feature) -> Result<(), BuildError> {
        if self.backend.supports(feature) {
            return Ok(());
        }
        Err(crate::backend::BackendError::Unsupported {
            engine: self.backend.engine(),
            feature: format!("{feature:?}"),
        }
        .into())
    }

    /// Requests a sensor's reading.
    ///
    /// # Errors
    /// The model has no such sensor.
    pub fn sensor(&mut self, name: &str) -> Result<StateSlice, BuildError> {
        let index = index_of("sensor", name, self.info().sensors.iter().map(|sensor| sensor.name.as_str()))?;
        self.output(Output::Sensor(index))
    }

    /// Index of a body.
    ///
    /// # Errors
    /// The model has no such body.
    pub fn body(&self, name: &str) -> Result<usize, BuildError> {
        index_of("body", name, self.info().bodies.iter().map(|body| body.name.as_str()))
    }

    /// Index of a geom.
    ///
    /// # Errors
    /// The model has no such geom.
    pub fn geom(&self, name: &str) -> Result<usize, BuildError> {
        index_of("geom", name, self.info().geoms.iter().map(String::as_str))
    }

    /// Index of a site.
    ///
    /// # Errors
    /// The model has no such site.
    pub fn site(&self, name: &str) -> Result<usize, BuildError> {
        index_of("site", name, self.info().sites.iter().map(String::as_str))
    }

    /// Indices of the joints that any of the patterns matches, in model order.
    ///
    /// A pattern is a joint name or a regular expression that must match the whole name.
    ///
    /// # Errors
    /// A pattern is no regular expression, or matches nothing.
    pub fn joints(&self, patterns: &[String]) -> Result<Vec<usize>, BuildError> {
        let names: Vec<&str> = self.info().joints.iter().map(|joint| joint.name.as_str()).collect();
        matching("joint", patterns, &names)
    }

    /// Resolves a value for each of the named joints (indices into [`ModelInfo::joints`]).
    ///
    /// # Errors
    /// A pattern is no regular expression or matches none of these joints, or a joint has no value and `default` is
    /// `None`.
    pub fn per_joint<V: Copy>(
        &self,
        joints: &[usize],
        values: &PerName<V>,
        default: Option<V>,
    ) -> Result<Vec<V>, BuildError> {
        let names: Vec<&str> = joints.iter().map(|&joint| self.info().joints[joint].name.as_str()).collect();
        per_name("joint", &names, values, default)
    }

    /// Requests all joint positions, in joint order.
    ///
    /// # Errors
    /// The model's joints do not lie next to each other in `qpos`.
    pub fn joint_positions(&mut self) -> Result<StateSlice, BuildError> {
        let part = contiguous(&self.info().joints, |joint| joint.qpos)?;
        Ok(self.output(Output::Qpos)?.part(part.start, part.len()))
    }

    /// Requests all joint velocities, in joint order.
    ///
    /// # Errors
    /// The model's joints do not lie next to each other in `qvel`.
    pub fn joint_velocities(&mut self) -> Result<StateSlice, BuildError> {
        let part = contiguous(&self.info().joints, |joint| joint.dof)?;
        Ok(self.output(Output::Qvel)?.part(part.start, part.len()))
    }

    /// Requests the floating root's position in the world, m, 3 values.
    ///
    /// # Errors
    /// The model has no floating root.
    pub fn root_position(&mut self) -> Result<StateSlice, BuildError> {
        self.root_body()?;
        Ok(self.output(Output::Qpos)?.part(0, 3))
    }

    /// Requests the floating root's orientation in the world, `wxyz`.
    ///
    /// # Errors
    /// The model has no floating root.
    pub fn root_orientation(&mut self) -> Result<StateSlice, BuildError> {
        self.root_body()?;
        Ok(self.output(Output::Qpos)?.part(3, 4))
    }

    /// Requests the floating root's linear velocity in the world frame, m/s, 3 values.
    ///
    /// # Errors
    /// The model has no floating root.
    pub fn root_linear_velocity(&mut self) -> Result<StateSlice, BuildError> {
        self.root_body()?;
        Ok(self.output(Output::Qvel)?.part(0, 3))
    }

    /// Requests the floating root's angular velocity in its body frame, rad/s, 3 values.
    ///
    /// # Errors
    /// The model has no floating root.
    pub fn root_angular_velocity(&mut self) -> Result<StateSlice, BuildError> {
        self.root_body()?;
        Ok(self.output(Output::Qvel)?.part(3, 3))
    }

    /// Index of the body that carries the floating root.
    ///
    /// # Errors
    /// The model has no floating root.
    pub fn root_body(&self) -> Result<usize, BuildError> {
        self.info().floating_root.ok_or(BuildError::NoFloatingRoot)
    }

    /// Where a command term's values are.
    ///
    /// # Errors
    /// The environment has no such command.
    pub fn command(&self, name: &str) -> Result<CommandSlice, BuildError> {
        let index = index_of("command", name, self.commands.keys().map(String::as_str))?;
        Ok(self.commands[index])
    }

    /// Which values of the action belong to an action term.
    ///
    /// # Errors
    /// The environment has no such action term.
    pub fn action(&self, name: &str) -> Result<std::ops::Range<usize>, BuildError> {
        let index = index_of("action", name, self.actions.keys().map(String::as_str))?;
        Ok(self.actions[index].clone())
    }

    /// Number of values in the whole action.
    #[must_use]
    pub fn action_width(&self) -> usize {
        self.actions.values().last().map_or(0, |range| range.end)
    }

    /// Where named task values are.
    ///
    /// # Errors
    /// The task registered no such values.
    pub fn task_state(&self, name: &str) -> Result<TaskSlice, BuildError> {
        let index = index_of("task state", name, self.task_state.keys().map(String::as_str))?;
        Ok(self.task_state[index])
    }

    /// Registers `width` values per row under a name; replay and snapshots know them by it.
    ///
    /// # Errors
    /// The name is taken.
    pub fn register_task_state(&mut self, name: &str, width: usize) -> Result<TaskSlice, BuildError> {
        if self.task_state.contains_key(name) {
            return Err(BuildError::Duplicate { kind: "task state", name: name.to_owned() });
        }
        let slice = TaskSlice::new(self.task_state_width(), width);
        self.task_state.insert(name.to_owned(), slice);
        Ok(slice)
    }

    /// Says that what is registered under `name` lies in `range`, both ends included: other values are refused where they come
    /// from outside.
    pub fn limit_task_state(&mut self, name: &str, range: [f32; 2]) {
        self.task_state_ranges.insert(name.to_owned(), range);
    }

    /// Makes a range of the term that is being built tunable, under the name `section.term.key`.
    ///
    /// # Errors
    /// The term has a tunable range of this key.
    pub fn tunable_range(&mut self, key: &str, range: [f64; 2]) -> Result<TunableRange, BuildError> {
        let name = format!("{}.{key}", self.building);
        if self.tunables.0.contains_key(&name) {
            return Err(BuildError::Duplicate { kind: "tunable range", name });
        }
        let range = TunableRange::new(range);
        self.tunables.0.insert(name, range.clone());
        Ok(range)
    }

    /// A tunable range by name, such as `commands.twist.lin_vel_x`.
    ///
    /// # Errors
    /// No term made such a range tunable.
    pub fn tunable(&self, name: &str) -> Result<TunableRange, BuildError> {
        let index = index_of("tunable range", name, self.tunables.0.keys().map(String::as_str))?;
        Ok(self.tunables.0[index].clone())
    }

    /// A reward term by name.
    ///
    /// # Errors
    /// The environment has no such reward.
    pub fn reward(&self, name: &str) -> Result<RewardHandle, BuildError> {
        index_of("reward", name, self.rewards.keys().map(String::as_str)).map(RewardHandle)
    }

    /// The reward terms with their configured weights, in order.
    pub fn rewards(&self) -> impl Iterator<Item = (RewardHandle, f32)> {
        self.rewards.values().enumerate().map(|(i, &weight)| (RewardHandle(i), weight))
    }

    /// Lets terms that are built later find `value` under the name of the term that is being built, such as the motion that
    /// a command follows.
    pub fn share<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.shared.insert(self.building.clone(), value);
    }

    /// What the command term of the given name [shares](Self::share).
    ///
    /// # Errors
    /// No command of this name shares a `T`; the error lists those that do.
    pub fn shared_by_command<T: Send + Sync + 'static>(
        &self,
        kind: &'static str,
        name: &str,
    ) -> Result<Arc<T>, BuildError> {
        let values = self
            .shared
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix("commands.")?, Arc::clone(value).downcast::<T>().ok()?)));
        let values: Vec<(&str, Arc<T>)> = values.collect();
        let index = index_of(kind, name, values.iter().map(|(name, _)| *name))?;
        Ok(Arc::clone(&values[index].1))
    }

    /// Whether the environment randomises: if not, what a term draws at a reset to vary it is the centre of its range
    /// ([`Draws::centred`](manege_components::Draws::centred)).
    #[must_use]
    pub fn randomization(&self) -> bool {
        self.randomization
    }

    pub(crate) fn set_randomization(&mut self, randomization: bool) {
        self.randomization = randomization;
    }

    /// Says which term is built next.
    pub(crate) fn enter(&mut self, section: &str, term: &str) {
        self.building = format!("{section}.{term}");
    }

    pub(crate) fn tunables(&self) -> Tunables {
        self.tunables.clone()
    }

    pub(crate) fn register_reward(&mut self, name: &str, weight: f32) {
        self.rewards.insert(name.to_owned(), weight);
    }

    pub(crate) fn register_command(&mut self, name: &str, width: usize) -> CommandSlice {
        let start = self.commands.values().last().map_or(0, |slice| slice.range().end);
        let slice = CommandSlice::new(start, width);
        self.commands.insert(name.to_owned(), slice);
        slice
    }

    pub(crate) fn register_action(&mut self, name: &str, width: usize) -> std::ops::Range<usize> {
        let start = self.action_width();
        self.actions.insert(name.to_owned(), start..start + width);
        start..start + width
    }

    pub(crate) fn task_state_width(&self) -> usize {
        self.task_state.values().last().map_or(0, |slice| slice.range().end)
    }

    pub(crate) fn task_state_names(&self) -> TaskStateNames {
        TaskStateNames { slices: self.task_state.clone(), ranges: self.task_state_ranges.clone() }
    }

    pub(crate) fn outputs(&self) -> Vec<Output> {
        self.outputs.iter().map(|(output, _)| *output).collect()
    }

    pub(crate) fn output_width(&self) -> usize {
        self.outputs.last().map_or(0, |(_, slice)| slice.range().end)
    }

    pub(crate) fn fields(&self) -> &[ModelField] {
        &self.fields
    }

    pub(crate) fn wrenches(&self) -> &[usize] {
        &self.wrenches
    }
}

/// Names of the per-row task state.
#[derive(Resource, Debug, Clone, Default)]
pub struct TaskStateNames {
    /// Places in [`TaskState`](manege_components::TaskState).
    pub slices: IndexMap<String, TaskSlice>,
    /// Least and greatest values, of those that are limited.
    pub ranges: IndexMap<String, [f32; 2]>,
}

/// As many control steps as the episode needs; a hair less than a whole number of them does not add one.
pub(crate) fn max_episode_steps(episode_length: f64, control_period: f64) -> u32 {
    (episode_length / control_period - 1e-9).ceil() as u32
}

/// Index of `name`, or an error that lists what there is.
pub(crate) fn index_of<'n>(
    kind: &'static str,
    name: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize, BuildError> {
    names.clone().position(|known| known == name).ok_or_else(|| BuildError::UnknownName {
        kind,
        name: name.to_owned(),
        nearest: nearest(name, names.clone()),
        available: names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", "),
    })
}

/// Indices of the names that any pattern matches, in the order of `names`.
pub(crate) fn matching(kind: &'static str, patterns: &[String], names: &[&str]) -> Result<Vec<usize>, BuildError> {
    let mut selected = vec![false; names.len()];
    for pattern in patterns {
        let regex = whole_name(pattern)?;
        let mut any = false;
        for (name, selected) in names.iter().zip(&mut selected) {
            if regex.is_match(name) {
                *selected = true;
                any = true;
            }
        }
        if !any {
            return Err(no_match(kind, pattern, names));
        }
    }
    Ok((0..names.len()).filter(|&i| selected[i]).collect())
}

/// A value for each name.
pub(crate) fn per_name<V: Copy>(
    kind: &'static str,
    names: &[&str],
    values: &PerName<V>,
    default: Option<V>,
) -> Result<Vec<V>, BuildError> {
    let patterns = match values {
        PerName::All(value) => return Ok(vec![*value; names.len()]),
        PerName::Patterns(patterns) => patterns,
    };
    let mut resolved: Vec<Option<V>> = vec![None; names.len()];
    for (pattern, value) in patterns {
        let regex = whole_name(pattern)?;
        let mut any = false;
        for (name, resolved) in names.iter().zip(&mut resolved) {
            if regex.is_match(name) {
                any = true;
                resolved.get_or_insert(*value);
            }
        }
        if !any {
            return Err(no_match(kind, pattern, names));
        }
    }
    resolved
        .into_iter()
        .zip(names)
        .map(|(value, name)| value.or(default).ok_or_else(|| BuildError::NoValue { kind, name: (*name).to_owned() }))
        .collect()
}

fn whole_name(pattern: &str) -> Result<Regex, BuildError> {
    Regex::new(&format!("^(?:{pattern})$"))
        .map_err(|error| BuildError::Pattern { pattern: pattern.to_owned(), message: error.to_string() })
}

fn no_match(kind: &'static str, pattern: &str, names: &[&str]) -> BuildError {
    BuildError::NoMatch {
        kind,
        pattern: pattern.to_owned(),
        nearest: nearest(pattern, names.iter().copied()),
        available: names.iter().filter(|name| !name.is_empty()).copied().collect::<Vec<_>>().join(", "),
    }
}

fn contiguous(
    joints: &[JointInfo],
    address: impl Fn(&JointInfo) -> usize,
) -> Result<std::ops::Range<usize>, BuildError> {
    let start = joints.first().map_or(0, &address);
    if joints.iter().enumerate().any(|(i, joint)| address(joint) != start + i) {
        return Err(BuildError::ScatteredJoints);
    }
    Ok(start..start + joints.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["FL_hip_joint", "FL_calf_joint", "FR_hip_joint", "FR_calf_joint"];

    fn patterns(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|&p| p.to_owned()).collect()
    }

    #[test]
    fn patterns_select_whole_names_in_model_order() {
        assert_eq!(matching("joint", &patterns(&["FR_.*", "FL_hip_joint"]), &NAMES).unwrap(), [0, 2, 3]);
        let error = matching("joint", &patterns(&["hip"]), &NAMES).unwrap_err().to_string();
        assert!(error.contains("hip") && error.contains("FL_calf_joint"), "{error}");
    }

    #[test]
    fn the_first_matching_pattern_gives_the_value() {
        let values = PerName::Patterns([(".*_hip_.*".to_owned(), 1.0), (".*".to_owned(), 2.0)].into_iter().collect());
        assert_eq!(per_name("joint", &NAMES, &values, None).unwrap(), [1.0, 2.0, 1.0, 2.0]);
        let some = PerName::Patterns([(".*_hip_.*".to_owned(), 1.0)].into_iter().collect());
        assert!(matches!(per_name("joint", &NAMES, &some, None), Err(BuildError::NoValue { .. })));
        assert_eq!(per_name("joint", &NAMES, &some, Some(9.0)).unwrap(), [1.0, 9.0, 1.0, 9.0]);
    }
}
