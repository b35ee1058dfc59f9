//! Runs scripts on MuJoCo's own Python package, and exchanges arrays with them.
//!
//! Other packages' tests include this file by path.

// Not every test file uses everything.
#![allow(dead_code)]

use std::path::Path;
use std::process::Command;

/// The variable that names a Python interpreter which has `mujoco` 3.17 and `numpy`.
const PYTHON_VARIABLE: &str = "MANEGE_ORACLE_PYTHON";

/// Runs `script` with `directory` as its argument. Gives `false`, and says so, if there is no interpreter.
pub fn run(script: impl AsRef<Path>, directory: &Path) -> bool {
    let Some(python) = std::env::var_os(PYTHON_VARIABLE).filter(|python| !python.is_empty()) else {
        println!("skipped: {PYTHON_VARIABLE} is not set");
        return false;
    };
    let script = script.as_ref();
    // MuJoCo's package logs to a file in the working directory.
    let output = Command::new(&python)
        .arg(script)
        .arg(directory)
        .current_dir(directory)
        .output()
        .unwrap_or_else(|error| panic!("{PYTHON_VARIABLE}={python:?} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{} failed:\n{}{}",
        script.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// Writes `name.f64`: little-endian, without a header.
pub fn write(directory: &Path, name: &str, values: &[f64]) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(directory.join(format!("{name}.f64")), bytes).expect("the directory is writable");
}

/// Reads `name.f64`.
pub fn read(directory: &Path, name: &str) -> Vec<f64> {
    let bytes = std::fs::read(directory.join(format!("{name}.f64"))).expect("the script has written it");
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// Asserts that two arrays have the same bits, and names the first value that has not.
#[track_caller]
pub fn assert_same_bits(what: &str, actual: &[f64], expected: &[f64]) {
    assert_eq!(actual.len(), expected.len(), "{what}: number of values");
    let differing = actual.iter().zip(expected).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(index) = differing {
        panic!("{what}: value {index} is {:e}, but should be {:e}", actual[index], expected[index]);
    }
}
