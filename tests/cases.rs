//! The benchmark command, as a script sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
#[cfg(unix)]
use std::{process::Stdio, time::Duration};

use serde_json::Value;

const CASES: [&str; 7] = [
    "flashsac/go2_joystick_flat/mujoco",
    "sac/g1_walk_flat/mujoco",
    "sac/g1_walk_flat/motrix",
    "flashsac/g1_walk_flat/mujoco",
    "flashsac/g1_walk_flat/motrix",
    "sac/g1_motion_tracking/mujoco",
    "sac/g1_motion_tracking/motrix",
];

const TINY: [&str; 8] = ["--envs", "8", "--steps", "5", "--runs", "1", "--warmup", "1"];

fn cases(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_manege")).arg("cases").args(arguments).output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The direct side, which is there if the whole workspace was built, as for `cargo test --workspace`.
fn direct() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_manege")).with_file_name("manege-direct");
    let path = path.with_extension(std::env::consts::EXE_EXTENSION);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("skipped: manege-direct is not built; `cargo x test` builds it");
    None
}

fn entry<'a>(json: &'a Value, name: &str) -> &'a Value {
    json["cases"].as_array().expect("a list").iter().find(|case| case["case"] == name).expect("the case")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn every_case_is_reported_in_every_format() {
    if direct().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("results");
    let output = cases(&[&TINY[..], &["--threads", "1", "--json", "--out", out.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON object");

    let mut names: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["cases.csv", "cases.json", "cases.md"], "nothing unfinished is left behind");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&read("cases.json")).unwrap(), json);

    let reported: Vec<_> = json["cases"].as_array().expect("a list").iter().map(|case| &case["case"]).collect();
    assert_eq!(reported, CASES);
    for name in CASES.iter().filter(|name| name.ends_with("/motrix")) {
        let case = entry(&json, name);
        assert_eq!(case["status"], "backend not built", "{name}");
        assert!(case["direct"].is_null() && case["managed"].is_null() && case["managed_over_direct"].is_null());
    }
    for name in CASES.iter().filter(|name| name.ends_with("/mujoco")) {
        let case = entry(&json, name);
        assert_eq!((&case["status"], &case["resets_equal"]), (&"measured".into(), &true.into()), "{name}");
        let (direct, managed) = (&case["direct"], &case["managed"]);
        let ratio = number(&managed["env_steps_per_s"]) / number(&direct["env_steps_per_s"]);
        assert!((number(&case["managed_over_direct"]) - ratio).abs() < 1e-12, "{name}");
        for side in [direct, managed] {
            // One run: its mean is the median over runs, and the phases add up to the step.
            let run = &side["runs"][0];
            assert_eq!(run["step_ms"]["samples"], 5);
            assert_eq!(number(&run["step_ms"]["mean"]), number(&side["step_ms"]));
            let rate = 8.0 * 1e3 / number(&side["step_ms"]);
            assert!((number(&side["env_steps_per_s"]) / rate - 1.0).abs() < 1e-9, "{name}");
            let phases = ["physics_ms", "update_ms", "reset_ms", "collector_ms"];
            let sum: f64 = phases.iter().map(|phase| number(&side[*phase])).sum();
            assert!((sum / number(&side["step_ms"]) - 1.0).abs() < 1e-6, "{name}: {sum}");
        }
        assert!(number(&case["ceiling"]["step_ms"]) > 0.0);
    }

    let csv = read("cases.csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let columns =
        "case,status,side,run,env_steps_per_s,step_ms,physics_ms,update_ms,reset_ms,collector_ms,resets_per_step";
    assert_eq!(lines[0].join(","), columns);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let sides = |name: &str| lines.iter().filter(|line| line[0] == name).map(|line| line[2]).collect::<Vec<_>>();
    assert_eq!(sides(CASES[0]), ["direct", "managed", "ceiling"]);
    assert_eq!(sides(CASES[2]), [""]);

    let markdown = read("cases.md");
    let rows = markdown.lines().filter(|line| line.starts_with("| ")).count();
    assert_eq!(rows, 2 + CASES.len(), "{markdown}");
    assert!(markdown.contains("as many rows in every step of"), "{markdown}");
}

#[test]
fn chosen_cases_are_shown_as_a_table() {
    if direct().is_none() {
        return;
    }
    let output = cases(&[&TINY[..], &["--only", CASES[4], "--only", CASES[0]]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let first: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first[..3], ["case", CASES[0], CASES[4]], "{text}");
    for column in ["direct", "managed", "managed/direct", "managed/ceiling", "physics ms", "resets per step", "spread"]
    {
        assert!(text.lines().next().unwrap().contains(column), "{column}: {text}");
    }
    assert!(text.contains("backend not built"), "{text}");
}

#[test]
fn cases_without_a_backend_need_no_direct_side() {
    let output = cases(&["--only", CASES[2], CASES[6], "--direct", "nowhere", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["cases"].as_array().unwrap().len(), 2);
}

#[test]
fn an_unknown_case_is_an_error_with_the_nearest_name() {
    let output = cases(&["--only", "sac/g1_walk_flat/mujco"]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("did you mean `sac/g1_walk_flat/mujoco`?"), "{message}");
    assert!(CASES.iter().all(|case| message.contains(case)), "{message}");
}

#[test]
fn a_direct_side_that_is_not_there_is_an_error_that_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("manege-direct");
    let output = cases(&["--only", CASES[0], "--direct", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains(missing.to_str().unwrap()), "{message}");
    assert!(message.contains("cargo build --release -p manege-direct"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_run_at_hand_and_reports_the_others() {
    use std::os::unix::process::CommandExt;
    if direct().is_none() {
        return;
    }
    // A group of its own, as a shell makes one: Ctrl-C reaches the runs as well.
    let child = Command::new(env!("CARGO_BIN_EXE_manege"))
        .args([
            "cases", "--envs", "8", "--steps", "5", "--warmup", "1", "--runs", "1000000", "--only", CASES[1], "--json",
        ])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_secs(1));
    let killed = Command::new("kill").args(["-s", "INT", "--", &format!("-{}", child.id())]).status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("stdout is one JSON object");
    assert_eq!(entry(&json, CASES[1])["status"], "interrupted");
}
