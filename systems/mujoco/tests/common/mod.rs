//! What the integration tests share.

// Not every test file uses everything.
#![allow(dead_code)]

pub mod oracle;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use manege_mujoco::Model;

/// A file among the tests' own.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The legged robot with a box that most tests step.
pub fn walker() -> Model {
    Model::from_xml_path(file("models/walker.xml")).expect("the model is valid")
}

/// The variable that is set in processes which [`run_in_process`] starts.
const CHILD_VARIABLE: &str = "MANEGE_TEST_CHILD";

/// Runs an ignored test of the running test file in a process of its own, whose working directory is `directory`.
pub fn run_in_process(test: &str, directory: &Path) -> Output {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .current_dir(directory)
        .env(CHILD_VARIABLE, test)
        .output()
        .expect("this test runs")
}

/// Whether this process was started by [`run_in_process`]. An ignored test must do nothing otherwise: it may well end
/// the process.
pub fn is_child() -> bool {
    std::env::var_os(CHILD_VARIABLE).is_some()
}

/// Deterministic values in -1..1, different for each seed.
pub fn noise(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}

/// Keyframe `home` of [`walker`] with joint positions and velocities of their own for each row.
pub fn start(model: &Model, rows: usize) -> (Vec<f64>, Vec<f64>) {
    let home = model.keyframes().next().expect("the model has a keyframe").qpos.to_vec();
    let (mut qpos, mut qvel) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let mut position = home.clone();
        let joints = noise(row as u64, 8);
        position[14..].iter_mut().zip(&joints).for_each(|(value, noise)| *value += 0.2 * noise);
        qpos.extend(position);
        qvel.extend(noise(1000 + row as u64, model.nv()).iter().map(|noise| 0.5 * noise));
    }
    (qpos, qvel)
}
