//! Holds the models in `assets/robots` to the recorded facts about the robots.
//!
//! The comparison itself is made by the `mujoco` Python package, which knows nothing of this project: set
//! `MANEGE_ORACLE_PYTHON` to an interpreter that has `mujoco==3.17.0`. Without it the tests are skipped, and say so.

use std::path::Path;
use std::process::Command;

/// Compiles `assets/robots/<name>/scene_flat.xml` and compares it with `tests/fixtures/robots/<name>.json`.
fn assert_matches_facts(name: &str) {
    let Some(python) = std::env::var_os("MANEGE_ORACLE_PYTHON") else {
        println!("skipped: MANEGE_ORACLE_PYTHON is not set");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&python)
        .arg("-B") // leaves no bytecode in the source tree
        .arg(root.join("tests/oracle/robot_facts.py"))
        .arg(root.join(format!("assets/robots/{name}/scene_flat.xml")))
        .arg(root.join(format!("tests/fixtures/robots/{name}.json")))
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", Path::new(&python).display()));
    assert!(
        output.status.success(),
        "{name} differs from its facts ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

#[test]
fn go2_matches_its_facts() {
    assert_matches_facts("go2");
}

#[test]
fn g1_matches_its_facts() {
    assert_matches_facts("g1");
}
