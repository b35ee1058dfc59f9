//! Everything that an environment computes, step by step, in one file.
//!
//! ```
//! use manege::Environment;
//! use manege::replay::Dump;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut env = Environment::builder("go2_joystick_flat").rows(2).build()?;
//! env.reset()?;
//! let mut dump = Dump::new(&mut env);
//! env.step(&[0.0; 24])?;
//! dump.add_step(&mut env);
//! let folder = tempfile::tempdir()?;
//! dump.write(&folder.path().join("dump.npz"))?;
//! # Ok(())
//! # }
//! ```

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::Environment;
use crate::environment::{Spec, TermColumns};
use crate::files::{Existing, write_whole};
use crate::npz::NpzWriter;

/// Everything that was computed, from the state after the reset (t = 0) to that after the last of T steps.
///
/// | array | shape | type |
/// |---|---|---|
/// | `qpos`, `qvel` | (T+1, rows, `nq` or `nv`) | f64 |
/// | `ctrl` | (T, rows, actuators) | f64 |
/// | `obs/<group>` | (T+1, rows, columns) | f32 |
/// | `command/<name>` | (T+1, rows, columns) | f32 |
/// | `reward`, `reward/<term>` (value × weight, before the control period) | (T, rows) | f32 |
/// | `terminated`, `truncated`, `termination/<term>` | (T, rows) | bool |
/// | `final_obs/<group>` (zero for rows that did not end) | (T, rows, columns) | f32 |
/// | `names`: terms with their columns, joints, actuators, as JSON | | text |
pub struct Dump {
    spec: Spec,
    rows: usize,
    steps: usize,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    controls: Vec<f64>,
    observations: Vec<Vec<f32>>,
    final_observations: Vec<Vec<f32>>,
    commands: Vec<Vec<f32>>,
    rewards: Vec<f32>,
    reward_terms: Vec<Vec<f32>>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    termination_terms: Vec<Vec<bool>>,
}

impl Dump {
    /// Begins with the environment as it is before the first step.
    #[must_use]
    pub fn new(environment: &mut Environment) -> Self {
        let spec = environment.spec().clone();
        let mut dump = Self {
            rows: environment.rows(),
            steps: 0,
            qpos: Vec::new(),
            qvel: Vec::new(),
            controls: Vec::new(),
            observations: vec![Vec::new(); spec.groups.len()],
            final_observations: vec![Vec::new(); spec.groups.len()],
            commands: vec![Vec::new(); spec.commands.len()],
            rewards: Vec::new(),
            reward_terms: vec![Vec::new(); spec.reward_terms.len()],
            terminated: Vec::new(),
            truncated: Vec::new(),
            termination_terms: vec![Vec::new(); spec.termination_terms.len()],
            spec,
        };
        dump.add_state(environment);
        dump
    }

    /// Control steps so far.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    fn add_state(&mut self, environment: &mut Environment) {
        self.qpos.extend_from_slice(environment.qpos());
        self.qvel.extend_from_slice(environment.qvel());
        for (group, values) in self.observations.iter_mut().enumerate() {
            values.extend_from_slice(environment.observation(group));
        }
        let width = self.spec.command_width();
        let commands = environment.commands();
        for (term, values) in self.spec.commands.iter().zip(&mut self.commands) {
            for row in commands.chunks_exact(width) {
                values.extend_from_slice(&row[term.columns.clone()]);
            }
        }
    }

    /// Adds what the environment's last step computed.
    pub fn add_step(&mut self, environment: &mut Environment) {
        self.steps += 1;
        self.controls.extend_from_slice(environment.controls());
        self.rewards.extend_from_slice(environment.rewards());
        let terms = self.reward_terms.len();
        for (term, values) in self.reward_terms.iter_mut().enumerate() {
            values.extend(environment.reward_terms().iter().skip(term).step_by(terms));
        }
        self.terminated.extend_from_slice(environment.terminated());
        self.truncated.extend_from_slice(environment.truncated());
        for (term, values) in self.termination_terms.iter_mut().enumerate() {
            values.extend(environment.termination_terms().iter().map(|fired| fired >> term & 1 == 1));
        }
        let ended: Vec<bool> =
            environment.terminated().iter().zip(environment.truncated()).map(|(a, b)| *a || *b).collect();
        for (group, values) in self.final_observations.iter_mut().enumerate() {
            let width = self.spec.groups[group].width;
            for (row, ended) in environment.final_observation(group).chunks_exact(width).zip(&ended) {
                if *ended {
                    values.extend_from_slice(row);
                } else {
                    values.resize(values.len() + width, 0.0);
                }
            }
        }
        self.add_state(environment);
    }

    /// Writes everything, under a temporary name until it is whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_whole(path, Existing::Replace, |file| {
            let mut npz = NpzWriter::new(file);
            let (rows, steps, spec) = (self.rows, self.steps, &self.spec);
            npz.write("qpos", &[steps + 1, rows, spec.nq], &self.qpos)?;
            npz.write("qvel", &[steps + 1, rows, spec.nv], &self.qvel)?;
            npz.write("ctrl", &[steps, rows, spec.nu], &self.controls)?;
            for (group, values) in spec.groups.iter().zip(&self.observations) {
                npz.write(&format!("obs/{}", group.name), &[steps + 1, rows, group.width], values)?;
            }
            for (term, values) in spec.commands.iter().zip(&self.commands) {
                npz.write(&format!("command/{}", term.name), &[steps + 1, rows, term.columns.len()], values)?;
            }
            npz.write("reward", &[steps, rows], &self.rewards)?;
            for (name, values) in spec.reward_terms.iter().zip(&self.reward_terms) {
                npz.write(&format!("reward/{name}"), &[steps, rows], values)?;
            }
            npz.write("terminated", &[steps, rows], &self.terminated)?;
            npz.write("truncated", &[steps, rows], &self.truncated)?;
            for ((name, _), values) in spec.termination_terms.iter().zip(&self.termination_terms) {
                npz.write(&format!("termination/{name}"), &[steps, rows], values)?;
            }
            for (group, values) in spec.groups.iter().zip(&self.final_observations) {
                npz.write(&format!("final_obs/{}", group.name), &[steps, rows, group.width], values)?;
            }
            npz.write_text("names", &names(spec).to_string())?;
            npz.finish()?;
            Ok(())
        })
    }
}

/// Term names with their column ranges, joints and actuators.
fn names(spec: &Spec) -> Value {
    let columns = |terms: &[TermColumns]| -> Value {
        let entries = terms.iter().map(|term| (term.name.clone(), json!([term.columns.start, term.columns.end])));
        Value::Object(entries.collect())
    };
    let groups = spec.groups.iter().map(|group| (group.name.clone(), columns(&group.terms)));
    let terminations: Vec<&str> = spec.termination_terms.iter().map(|(name, _)| name.as_str()).collect();
    json!({
        "observations": Value::Object(groups.collect()),
        "actions": columns(&spec.actions),
        "commands": columns(&spec.commands),
        "task_state": columns(&spec.task_state),
        "rewards": spec.reward_terms,
        "terminations": terminations,
        "joints": spec.joints,
        "actuators": spec.actuators,
        "joint_to_actuator": spec.joint_actuators,
    })
}
