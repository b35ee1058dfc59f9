//! A task from nothing in one file, a cart that balances a pole: `cargo run --release --example cart_pole`

use manege::prelude::*;
use manege::systems::backend::SubstepState;
use manege::systems::managers::action::{ActionOptions, ActionTerm};
use manege::systems::managers::event::{EventOptions, EventRow, EventTerm};
use manege::systems::managers::observation::{GroupOptions, ObservationOptions, ObservationTerm, observation};
use manege::systems::managers::reward::{RewardOptions, RewardTerm, reward};
use manege::systems::managers::termination::{TerminationOptions, TerminationTerm, termination};
use manege::tasks::terms::terminations::TimeOut;
use serde::{Deserialize, Serialize};

const MODEL: &str = r#"<mujoco model="cart_pole">
  <option timestep="0.005"/>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="box" size="0.1 0.08 0.05" mass="1"/>
      <body name="pole">
        <joint name="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.6" size="0.02" mass="0.1" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="10"/></actuator>
</mujoco>"#;

/// A force on the cart, proportional to the action.
#[derive(Clone, Serialize, Deserialize)]
struct Push {
    limit: f32,
}

impl TermParams<dyn ActionTerm> for Push {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn ActionTerm>, BuildError> {
        Ok(Box::new(self.clone()))
    }
}

impl ActionTerm for Push {
    fn width(&self) -> usize {
        1
    }

    fn process(&self, raw: &[f32], _state: SubstepState<'_>, processed: &mut [f32]) {
        processed[0] = raw[0].clamp(-self.limit, self.limit);
    }

    fn write_controls(&self, processed: &[f32], _: SubstepState<'_>, ctrl: &mut [f64]) {
        ctrl[0] = f64::from(processed[0]);
    }
}

/// Cart position and pole angle, then their velocities.
#[derive(Clone, Serialize, Deserialize)]
struct CartAndPole {}

impl TermParams<dyn ObservationTerm> for CartAndPole {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn ObservationTerm>, BuildError> {
        let (positions, velocities) = (context.joint_positions()?, context.joint_velocities()?);
        Ok(observation(4, move |row, out| {
            for (out, value) in out.iter_mut().zip(row.state(positions).iter().chain(row.state(velocities))) {
                *out = *value as f32;
            }
        }))
    }
}

/// `cos` of the pole's angle.
#[derive(Clone, Serialize, Deserialize)]
struct Upright {}

impl TermParams<dyn RewardTerm> for Upright {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn RewardTerm>, BuildError> {
        let positions = context.joint_positions()?;
        Ok(reward(move |row| row.state(positions)[1].cos() as f32))
    }
}

/// The pole leans by more than `angle` (rad).
#[derive(Clone, Serialize, Deserialize)]
struct Fallen {
    angle: f64,
}

impl TermParams<dyn TerminationTerm> for Fallen {
    fn build(&self, context: &mut BuildContext<'_>) -> Result<Box<dyn TerminationTerm>, BuildError> {
        let (positions, angle) = (context.joint_positions()?, self.angle);
        Ok(termination(move |row| row.state(positions)[1].abs() > angle))
    }
}

/// Starts the pole leaning by up to `angle` (rad).
#[derive(Clone, Serialize, Deserialize)]
struct Lean {
    angle: f64,
}

impl TermParams<dyn EventTerm> for Lean {
    fn build(&self, _: &mut BuildContext<'_>) -> Result<Box<dyn EventTerm>, BuildError> {
        Ok(Box::new(self.clone()))
    }
}

impl EventTerm for Lean {
    fn apply(&self, row: &mut EventRow<'_>) {
        row.staged.qpos_mut()[1] = row.draws.uniform(-self.angle, self.angle);
    }
}

fn config(_preset: &str) -> EnvironmentConfig {
    let mut config = EnvironmentConfig::new(PhysicsConfig::new(0.005, 0.02), 5.0);
    config.actions = [("push".into(), Entry::new(ActionOptions::default(), Push { limit: 1.0 }))].into();
    let terms = [("state".into(), Entry::new(ObservationOptions::default(), CartAndPole {}))].into();
    config.observations = [("policy".into(), GroupConfig { options: GroupOptions::default(), terms })].into();
    config.rewards = [("upright".into(), Entry::new(RewardOptions::weight(1.0), Upright {}))].into();
    config.terminations = [
        ("time_out".into(), Entry::new(TerminationOptions::time_out(), TimeOut {})),
        ("fallen".into(), Entry::new(TerminationOptions::failure(), Fallen { angle: 0.5 })),
    ]
    .into();
    config.events = [("lean".into(), Entry::new(EventOptions::reset(), Lean { angle: 0.1 }))].into();
    config
}

const CART_POLE: Task = Task {
    name: "cart_pole",
    summary: "a cart balances a pole",
    presets: &[Preset { name: "base", summary: "the only one" }],
    model: ModelFiles { main: "cart_pole.xml", files: &[("cart_pole.xml", MODEL)] },
    config,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut env = Environment::builder("cart_pole").register(CART_POLE).rows(256).build()?;
    env.reset()?;
    let mut fallen = 0;
    for _ in 0..250 {
        let push = |s: &[f32]| 0.3 * s[0] + 6.0 * s[1] + 0.5 * s[2] + 1.2 * s[3];
        let actions: Vec<f32> = env.observation(0).chunks(4).map(push).collect();
        env.step(&actions)?;
        fallen += env.terminated().iter().filter(|fallen| **fallen).count();
    }
    let mean = env.rewards().iter().sum::<f32>() / 256.0 / 0.02;
    println!("{fallen} poles fell in 5 s; mean reward {mean:.3}");
    assert!(fallen == 0 && mean > 0.99, "the policy balances every pole");
    Ok(())
}
