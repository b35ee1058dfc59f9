//! Holds the files that the command writes to what numpy reads in them.
//!
//! Set `MANEGE_ORACLE_PYTHON` to an interpreter that has numpy. Without it the tests are skipped, and say so.

use std::path::Path;
use std::process::{Command, Output};

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} ({}):\n{stdout}{stderr}", output.status);
    output
}

fn manege(arguments: &[&str], files: &[(&str, &Path)]) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manege"));
    command.args(arguments).arg("--json");
    files.iter().for_each(|(option, path)| {
        command.arg(option).arg(path);
    });
    serde_json::from_slice(&succeed(&mut command).stdout).expect("stdout is one JSON object")
}

/// The script's command line, or `None` if there is no interpreter for it.
fn oracle(script: &str) -> Option<Command> {
    let Some(python) = std::env::var_os("MANEGE_ORACLE_PYTHON") else {
        println!("skipped: MANEGE_ORACLE_PYTHON is not set");
        return None;
    };
    let mut command = Command::new(python);
    command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(script));
    Some(command)
}

#[test]
fn shards_are_as_described_and_hold_what_the_checksum_is_of() {
    let Some(mut python) = oracle("shards.py") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    // Few enough steps that no episode ends: then the observations after a step are the next observations.
    let arguments = ["collect", "go2_joystick_flat:flashsac", "--envs", "5", "--steps", "12", "--policy", "uniform"];
    let report = manege(&arguments, &[("--out", &data)]);
    assert_eq!(report["episodes"], 0);
    succeed(python.arg(&data).arg(report["checksum"].as_str().expect("a text")));
}

#[test]
fn a_dump_is_driven_by_actions_and_states_that_numpy_wrote() {
    let (Some(mut prepare), Some(mut check)) = (oracle("replay.py"), oracle("replay.py")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    succeed(prepare.arg("prepare").arg(folder.path()));
    let files =
        [("--actions", &*file("actions.npz")), ("--initial", &*file("initial.npz")), ("--dump", &*file("dump.npz"))];
    manege(&["replay", "go2_joystick_flat"], &files);
    succeed(check.arg("check").arg(folder.path()));
}
