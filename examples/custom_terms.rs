//! A built-in task with an action and a reward of the application's own: `cargo run --release --example custom_terms`
//!
//! The four-legged robot gets one more number to control, how much it crouches, and is rewarded for a low trunk.

use manege::prelude::*;
use manege::systems::backend::SubstepState;
use manege::systems::managers::action::{ActionOptions, ActionTerm};
use manege::systems::managers::reward::{RewardOptions, RewardTerm, reward};
use serde::{Deserialize, Serialize};

/// Bends all legs at once, on top of what the joint targets say: thighs forward, calves back by twice as much.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Crouch {
    /// Names or patterns of the joints.
    thighs: Vec<String>,
    calves: Vec<String>,
    /// Angle of the thighs at the action 1, rad.
    angle: f32,
}

/// The term with its names resolved: an actuator and the factor on the crouch's angle, for every joint.
struct CrouchTerm {
    joints: Vec<(usize, f64)>,
    angle: f32,
}

impl TermParams<dyn ActionTerm> for Crouch {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        let mut joints = Vec::new();
        for (names, factor) in [(&self.thighs, 1.0), (&self.calves, -2.0)] {
            for joint in context.joints(names)? {
                let joint = &context.info().joints[joint];
                let actuator = joint.actuator.ok_or_else(|| BuildError::NoActuator { joint: joint.name.clone() })?;
                joints.push((actuator, factor));
            }
        }
        Ok(Box::new(CrouchTerm { joints, angle: self.angle }))
    }
}

impl ActionTerm for CrouchTerm {
    fn width(&self) -> usize {
        1
    }

    fn process(&self, raw: &[f32], _state: SubstepState<'_>, processed: &mut [f32]) {
        processed[0] = raw[0].clamp(0.0, 1.0) * self.angle;
    }

    fn write_controls(&self, processed: &[f32], _: SubstepState<'_>, ctrl: &mut [f64]) {
        // The terms write in their order: the joint targets are there already.
        for &(actuator, factor) in &self.joints {
            ctrl[actuator] += factor * f64::from(processed[0]);
        }
    }
}

/// `exp(-(z - height)² / std²)`, with z the height of the trunk.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LowTrunk {
    /// Wanted height, m.
    height: f64,
    /// Error at which the reward is 1/e, m.
    std: f64,
}

impl TermParams<dyn RewardTerm> for LowTrunk {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let (root, LowTrunk { height, std }) = (context.root_position()?, self.clone());
        Ok(reward(move |row| (-((row.vec3(root).z - height) / std).powi(2)).exp() as f32))
    }
}

/// The built-in task's configuration with two terms more, each under a name that a file or `--set` can refer to.
fn config(preset: &str) -> EnvironmentConfig {
    let (go2, _) = manege::tasks::find("go2_joystick_flat").expect("a built-in task");
    let mut config = (go2.config)(preset);
    let patterns = |pattern: &str| vec![pattern.to_owned()];
    let crouch = Crouch { thighs: patterns(".*_thigh_joint"), calves: patterns(".*_calf_joint"), angle: 0.3 };
    config.actions.insert("crouch".into(), Entry::new(ActionOptions::default(), crouch));
    let low_trunk = LowTrunk { height: 0.2, std: 0.05 };
    config.rewards.insert("low_trunk".into(), Entry::new(RewardOptions::weight(0.0), low_trunk));
    config
}

/// Mean of the new reward over one second in which every robot crouches as told.
fn mean_reward(task: Task, crouch: f32) -> Result<f32, Box<dyn std::error::Error>> {
    // What comes with a weight of 0 is switched on by configuration, as a file given with `--config` would.
    let changes = "rewards.low_trunk = { weight = 0.5, height = 0.22 }".parse()?;
    let mut env = Environment::builder("go2_crouch").register(task).rows(32).config(changes).build()?;
    let width = env.action_width();
    let action = env.spec().actions.iter().find(|term| term.name == "crouch").ok_or("the action is registered")?;
    let column = action.columns.start;
    let terms = env.spec().reward_terms.len();
    let term = env.spec().reward_terms.iter().position(|name| name == "low_trunk").ok_or("so is the reward")?;

    let mut actions = vec![0.0; env.rows() * width];
    actions.iter_mut().skip(column).step_by(width).for_each(|value| *value = crouch);
    env.reset()?;
    let mut sum = 0.0;
    for _ in 0..50 {
        env.step(&actions)?;
        sum += env.reward_terms().iter().skip(term).step_by(terms).sum::<f32>();
    }
    Ok(sum / (50 * env.rows()) as f32)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (go2, _) = manege::tasks::find("go2_joystick_flat")?;
    let task = Task { name: "go2_crouch", summary: "go2_joystick_flat, but low", config, ..go2 };
    let (standing, crouching) = (mean_reward(task, 0.0)?, mean_reward(task, 1.0)?);
    println!("low_trunk, mean of value × weight: {standing:.3} standing, {crouching:.3} crouching");
    assert!(crouching > 2.0 * standing, "crouching brings the trunk down");
    Ok(())
}
