//! The command, as a script sees it: keys, exit status, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use manege::npz::{Extent, NpzReader, NpzWriter};
use serde_json::Value;

fn manege(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_manege")).args(arguments).output().expect("the command starts")
}

/// The one JSON object on stdout of a command that succeeds.
fn json(arguments: &[&str]) -> Value {
    let output = manege(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")
}

/// Exit status and stderr of a command that fails, with nothing on stdout.
fn failure(arguments: &[&str]) -> (Option<i32>, String) {
    let output = manege(arguments);
    assert!(output.stdout.is_empty(), "stdout: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn collect_prints_the_agreed_keys() {
    let json = json(&["collect", "go2_joystick_flat", "--envs", "8", "--steps", "5", "--json"]);
    let agreed = "task, preset, backend, envs, steps, threads, seed, policy, transitions, elapsed_s, env_steps_per_s, \
        physics_ms, manager_ms, reset_ms, collector_ms, episodes, terminated, truncated, mean_return, mean_length, \
        resets, diverged_rows, observation_dims, action_dim, reward_terms, termination_terms, checksum";
    assert_eq!(keys(&json), agreed.split(", ").collect::<Vec<_>>());
    assert_eq!(json["transitions"], 40);
    assert_eq!(json["observation_dims"], serde_json::json!({ "policy": 49, "critic": 52 }));
    assert_eq!(keys(&json["termination_terms"]), ["time_out", "bad_orientation"]);
    assert_eq!(keys(&json["reward_terms"]).len(), 9);
    let checksum = json["checksum"].as_str().expect("a text");
    assert!(checksum.len() == 16 && checksum.chars().all(|c| c.is_ascii_hexdigit()), "{checksum}");
    let per_step = json["elapsed_s"].as_f64().expect("a number") * 1e3 / 5.0;
    assert!(json["physics_ms"].as_f64().expect("a number") <= per_step, "physics is a part of the step");
}

#[test]
fn checksums_depend_on_the_seed_and_on_nothing_else() {
    let run = |threads: &str, seed: &str| {
        let arguments =
            ["collect", "go2_joystick_flat:flashsac", "--envs", "48", "--steps", "40", "--policy", "normal"];
        let more = ["--threads", threads, "--seed", seed, "--set", "episode_length=0.3", "--json"];
        json(&[&arguments[..], &more[..]].concat())["checksum"].clone()
    };
    let checksum = run("1", "5");
    assert_eq!(checksum, run("1", "5"), "two runs");
    assert_eq!(checksum, run("2", "5"), "two threads");
    assert_ne!(checksum, run("2", "6"), "another seed");
}

#[test]
fn describe_prints_the_agreed_keys_and_the_effective_values() {
    let json = json(&["describe", "go2_joystick_flat:flashsac", "--set", "rewards.contact.weight=2", "--json"]);
    let agreed = "task preset physics joints actuators observations actions rewards terminations commands events \
        curriculum metrics";
    for key in agreed.split_whitespace() {
        assert!(json.get(key).is_some(), "{key}");
    }
    let contact = json["rewards"].as_array().expect("a list").iter().find(|term| term["name"] == "contact");
    assert_eq!(contact.expect("the term")["weight"], 2.0);
    assert_eq!(json["physics"]["substeps"], 2);
    assert_eq!(json["physics"]["cone"], "elliptic");
    let policy = json["observations"]["policy"].as_array().expect("a list");
    assert_eq!(policy[2]["columns"], serde_json::json!([6, 18]));
    assert_eq!(policy[2]["noise"]["max"], 0.01);
    assert_eq!(json["joint_to_actuator"], serde_json::json!([3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]));
}

/// Names of the terms in a list.
fn names(terms: &Value) -> Vec<&str> {
    terms.as_array().expect("a list").iter().map(|term| term["name"].as_str().expect("a name")).collect()
}

#[test]
fn describe_has_what_concerns_groups_and_the_whole_environment() {
    let changes = ["--set", "observations.critic.nan_policy=warn", "--set", "observations.critic.history_length=2"];
    let more = ["--set", "physics.layout=persistent", "--set", "scale_rewards_by_dt=false", "--json"];
    let json = json(&[&["describe", "g1_motion_tracking"][..], &changes, &more].concat());
    let group = |dim: u32, corruption: bool, history: Value, policy: &str| serde_json::json!({ "dim": dim, "corruption": corruption, "history_length": history, "nan_policy": policy });
    assert_eq!(json["observation_groups"]["policy"], group(160, true, Value::Null, "error"));
    assert_eq!(json["observation_groups"]["critic"], group(2 * 289, false, 2.into(), "warn"));
    assert_eq!(json["physics"]["layout"], "persistent");
    assert_eq!(json["physics"]["sensors"], "declared");
    assert_eq!((&json["keyframe"], &json["scale_rewards_by_dt"]), (&"stand".into(), &false.into()));
    assert_eq!((&json["episode_length"], &json["max_episode_steps"]), (&10.0.into(), &500.into()));
    let metrics: Vec<_> = json["commands"][0]["metrics"].as_array().expect("a list").iter().collect();
    assert!(metrics.contains(&&"error_anchor_pos".into()) && metrics.contains(&&"sampling_top1_bin".into()));
    let values = json["task_state_values"].as_array().expect("a list");
    assert_eq!(names(&json["task_state_values"]), ["motion_frame", "motion_alignment"]);
    assert_eq!((&values[0]["columns"], &values[1]["columns"]), (&vec![0, 1].into(), &vec![1, 5].into()));
}

#[test]
fn describe_leaves_out_what_is_switched_off() {
    let task = "g1_walk_flat";
    let (whole, bare) = (
        json(&["describe", task, "--json"]),
        json(&["describe", task, "--json", "--no-corruption", "--no-randomization"]),
    );
    for (described, on) in [(&whole, true), (&bare, false)] {
        assert_eq!((&described["corruption"], &described["randomization"]), (&on.into(), &on.into()));
        assert_eq!(described["observation_groups"]["policy"]["corruption"], on);
        let noisy = described["observations"]["policy"].as_array().expect("a list").iter();
        assert_eq!(noisy.filter(|term| !term["noise"].is_null()).count() > 0, on);
        let types: Vec<_> = described["events"].as_array().expect("a list").iter().map(|term| &term["type"]).collect();
        assert_eq!(types.contains(&&"RandomizeGains".into()), on, "{types:?}");
        assert!(types.contains(&&"ResetRootUniform".into()), "resets draw the centre of their ranges: {types:?}");
    }
    assert!(names(&bare["events"]).len() < names(&whole["events"]).len());
}

#[test]
fn describe_breaks_no_name_in_its_tables() {
    for task in ["g1_motion_tracking", "g1_walk_flat", "go2_joystick_flat"] {
        let output = manege(&["describe", task]);
        let text = String::from_utf8(output.stdout).expect("text");
        let json = json(&["describe", task, "--json"]);
        let groups = json["observations"].as_object().expect("groups").values();
        let sections = ["actions", "commands", "rewards", "terminations", "events", "curriculum", "task_state"];
        let mut lines = text.lines();
        for section in groups.chain(sections.map(|section| &json[section])) {
            for (i, term) in section.as_array().expect("a list").iter().enumerate() {
                let (name, kind) = (term["name"].as_str().expect("a name"), term["type"].as_str().expect("a type"));
                let whole = lines.any(|line| line.split_whitespace().take(3).eq([&*i.to_string(), name, kind]));
                assert!(whole, "{task}: {name} {kind}\n{text}");
            }
        }
    }
}

#[test]
fn wrong_usage_is_one_error_that_names_the_right_thing() {
    let task = "go2_joystick_flat";
    let cases: [(&[&str], &str); 10] = [
        (&["collect", "go2_joystik_flat"], "did you mean `go2_joystick_flat`"),
        (&["collect", "go2_joystick_flat:flash"], "did you mean `flashsac`"),
        (&["collect", task, "--set", "rewards.contct.weight=1"], "did you mean `contact`"),
        (&["collect", task, "--set", "rewards.contact.weight=heavy"], "rewards.contact"),
        (&["collect", task, "--set", "commands.twist.lin_vel_x=[1, -1]"], "empty range"),
        (&["collect", task, "--set", "physics.timestep=0"], "physics.timestep"),
        (&["collect", task, "--set", "physics.control_period=0.025"], "whole multiple"),
        (&["collect", task, "--set", "actions.joint_pos.joints=[\"FL_hip\"]"], "FL_hip_joint"),
        (&["collect", task, "--envs", "4000000000"], "do not fit into memory"),
        (&["collect", task, "--policy", "zeroes"], "zeros, uniform, normal"),
    ];
    for (arguments, expected) in cases {
        let (status, stderr) = failure(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_wrong_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let good = file("good.toml", "[rewards.contact]\nweight = 3.0\n");
    let (unknown, broken) = (file("unknown.toml", "[rewards.contct]\n"), file("broken.toml", "weight ="));
    let task = "go2_joystick_flat";
    let json = json(&["describe", task, "--json", "--config", text(&good), "--set", "rewards.action_rate.weight=0"]);
    let weight = |name: &str| {
        let terms = json["rewards"].as_array().expect("a list");
        terms.iter().find(|term| term["name"] == name).expect("the term")["weight"].clone()
    };
    assert_eq!((weight("contact"), weight("action_rate")), (3.0.into(), 0.0.into()));
    for (option, path, expected) in [
        ("--config", unknown, "did you mean `contact`"),
        ("--config", broken.clone(), "not TOML"),
        ("--config", folder.path().join("none.toml"), "cannot read"),
        ("--out", broken, "cannot write"),
    ] {
        let (status, stderr) = failure(&["collect", task, "--config", text(&good), option, text(&path)]);
        assert_eq!(status, Some(2), "{stderr}");
        assert!(stderr.contains(text(&path)) && stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn shards_hold_every_transition_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("data");
    let arguments = ["collect", "go2_joystick_flat", "--envs", "6", "--steps", "30", "--policy", "uniform"];
    let more = ["--set", "episode_length=0.2", "--out", text(&out), "--json"];
    let json = json(&[&arguments[..], &more[..]].concat());
    let meta = std::fs::read_to_string(out.join("meta.json")).expect("meta.json");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    let shards = meta["shards"].as_array().expect("a list");
    let mut truncated = 0;
    let mut steps = 0;
    for shard in shards {
        let mut file = NpzReader::open(out.join(shard["file"].as_str().expect("a name"))).expect("a whole file");
        let shape = file.shape("truncated").expect("flags");
        assert_eq!(shape[1], 6);
        steps += shape[0];
        let observations =
            file.read::<f32>("obs/policy", &[Extent::Any("T"), Extent::Exactly(6), Extent::Exactly(49)]).expect("obs");
        let next = file.read::<f32>("next_obs/policy", &[Extent::Any("T"), Extent::Exactly(6), Extent::Exactly(49)]);
        let next = next.expect("next obs");
        // An episode of 0.2 s has 10 control steps: after them the next observation is that of the old episode, and
        // shows the action; the observation of the following step is that of the new one, which shows none.
        let row = |values: &[f32], step: usize| values[step * 6 * 49..][30..42].to_vec();
        assert!(row(&next.values, 9).iter().any(|&action| action != 0.0));
        assert!(row(&observations.values, 10).iter().all(|&action| action == 0.0));
        assert_eq!(row(&next.values, 5), row(&observations.values, 6));
        truncated += 1;
    }
    assert!(truncated > 0);
    assert_eq!(steps, 30);
    assert_eq!(json["truncated"], 18);
    let (status, stderr) = failure(&[&arguments[..], &["--out", text(&out)]].concat());
    assert_eq!(status, Some(2), "a folder is not written twice: {stderr}");
}

fn write_actions(path: &Path, steps: usize, rows: usize, poison: Option<usize>) {
    let mut values: Vec<f32> = (0..steps * rows * 12).map(|i| ((i as f32) * 0.7).sin()).collect();
    if let Some(place) = poison {
        values[place] = f32::NAN;
    }
    let mut file = NpzWriter::new(std::fs::File::create(path).expect("a file"));
    file.write("actions", &[steps, rows, 12], &values).expect("written");
    file.finish().expect("written");
}

struct Replay {
    folder: tempfile::TempDir,
    actions: PathBuf,
    dump: PathBuf,
}

impl Replay {
    fn new(steps: usize, rows: usize, poison: Option<usize>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (actions, dump) = (folder.path().join("actions.npz"), folder.path().join("dump.npz"));
        write_actions(&actions, steps, rows, poison);
        Self { folder, actions, dump }
    }

    fn run(&self, more: &[&str]) -> Output {
        let arguments = ["replay", "go2_joystick_flat", "--actions", text(&self.actions), "--dump", text(&self.dump)];
        manege(&[&arguments[..], more].concat())
    }
}

#[test]
fn a_replay_dumps_every_array_and_repeats_itself() {
    let replay = Replay::new(20, 3, None);
    assert!(replay.run(&[]).status.success());
    let first = std::fs::read(&replay.dump).expect("a dump");
    let mut file = NpzReader::open(&replay.dump).expect("a whole file");
    for (name, shape) in [
        ("qpos", vec![21, 3, 19]),
        ("qvel", vec![21, 3, 18]),
        ("ctrl", vec![20, 3, 12]),
        ("obs/policy", vec![21, 3, 49]),
        ("obs/critic", vec![21, 3, 52]),
        ("command/twist", vec![21, 3, 3]),
        ("reward", vec![20, 3]),
        ("reward/contact", vec![20, 3]),
        ("terminated", vec![20, 3]),
        ("truncated", vec![20, 3]),
        ("termination/time_out", vec![20, 3]),
        ("final_obs/critic", vec![20, 3, 52]),
    ] {
        assert_eq!(file.shape(name).expect(name), shape, "{name}");
    }
    assert!(file.contains("names"));
    assert!(replay.run(&["--threads", "1"]).status.success());
    assert_eq!(first, std::fs::read(&replay.dump).expect("a dump"));
}

#[test]
fn a_bad_action_loses_nothing_that_was_computed() {
    // Step 4, row 1, column 7.
    let replay = Replay::new(10, 2, Some(4 * 24 + 12 + 7));
    let output = replay.run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("row 1, column 7") && stderr.contains("step 4"), "{stderr}");
    let mut file = NpzReader::open(&replay.dump).expect("a whole file");
    assert_eq!(file.shape("reward").expect("rewards"), [4, 2]);
}

#[test]
fn a_replay_begins_where_it_is_told() {
    let replay = Replay::new(1, 2, None);
    let initial = replay.folder.path().join("initial.npz");
    let mut file = NpzWriter::new(std::fs::File::create(&initial).expect("a file"));
    let mut qpos = [0.0; 38];
    for row in 0..2 {
        qpos[row * 19 + 2] = 1.0 + row as f64;
        qpos[row * 19 + 3] = 1.0;
    }
    file.write("qpos", &[2, 19], &qpos).expect("written");
    file.write("qvel", &[2, 18], &[0.0f64; 36]).expect("written");
    file.write("twist", &[2, 3], &[0.1f32, 0.2, 0.3, 0.4, 0.5, 0.6]).expect("written");
    file.write("gait_phase", &[2, 1], &[0.25f32, 0.5]).expect("written");
    file.finish().expect("written");
    let output = replay.run(&["--initial", text(&initial)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut file = NpzReader::open(&replay.dump).expect("a whole file");
    let dumped =
        file.read::<f64>("qpos", &[Extent::Exactly(2), Extent::Exactly(2), Extent::Exactly(19)]).expect("qpos");
    assert_eq!(dumped.values[..38], qpos);
    let obs =
        file.read::<f32>("obs/policy", &[Extent::Exactly(2), Extent::Exactly(2), Extent::Exactly(49)]).expect("obs");
    assert_eq!(obs.values[49 + 42..49 + 49], [0.4, 0.5, 0.6, 0.5, 0.0, 0.0, 0.5]);

    let mut file = NpzWriter::new(std::fs::File::create(&initial).expect("a file"));
    file.write("qpo", &[2, 19], &qpos).expect("written");
    file.finish().expect("written");
    let output = replay.run(&["--initial", text(&initial)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `qpos`"));
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in ["tasks", "describe", "collect", "replay", "cases"] {
        let output = manege(&[command, "--help"]);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("manege {command}")), "{command}");
    }
}
