//! What Ctrl-C does to the command.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A collection that would take hours, once it has begun to write into `out`.
fn endless(rows: &str, out: &Path) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_manege"))
        .args(["collect", "go2_joystick_flat", "--envs", rows, "--steps", "100000000", "--json", "--out"])
        .arg(out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let patience = Instant::now();
    while !out.join("meta.json").exists() {
        assert!(patience.elapsed() < Duration::from_secs(60), "nothing was begun");
        assert!(child.try_wait().expect("a child").is_none(), "the command ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

fn stopped_by(name: &str) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let child = endless("16", &folder.path().join("data"));
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, name);
    (child.wait_with_output().expect("the command ends"), folder)
}

#[test]
fn the_first_signal_keeps_every_step_that_was_taken() {
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let (output, folder) = stopped_by(name);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{stderr}");
        assert!(stderr.contains("interrupted after"), "{stderr}");
        let json: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON object");
        assert!(json["steps"].as_u64().is_some_and(|steps| steps > 0), "{json}");
        let meta = std::fs::read(folder.path().join("data/meta.json")).expect("meta.json");
        let meta: Value = serde_json::from_slice(&meta).expect("JSON");
        assert_eq!((&meta["steps"], &meta["complete"]), (&json["steps"], &Value::Bool(true)));
    }
}

#[test]
fn the_second_signal_ends_the_command_within_the_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    // So many rows that the first step takes seconds.
    let child = endless("40000", &data);
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(20));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty(), "nothing was reported");
    let meta = std::fs::read(data.join("meta.json")).expect("meta.json");
    let meta: Value = serde_json::from_slice(&meta).expect("a whole file");
    assert_eq!(meta["complete"], Value::Bool(false));
}
