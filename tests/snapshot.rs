//! A snapshot, in memory or in a file, continues bit for bit.

use manege::Environment;
use manege::environment::{EnvironmentBuilder, Snapshot, SnapshotError};

const ROWS: usize = 5;

/// Rows that fall over, run out of time and are pushed within 100 steps.
fn builder(rows: usize, seed: u64) -> EnvironmentBuilder {
    let changes =
        "episode_length = 0.8\nevents.push.mode.seconds = [0.3, 0.5]\ncommands.twist.resampling_time = [0.1, 0.4]";
    Environment::builder("go2_joystick_flat:flashsac").rows(rows).seed(seed).config(changes.parse().unwrap())
}

/// Actions that differ from row to row and step to step.
fn actions(env: &Environment, step: usize) -> Vec<f32> {
    (0..env.rows() * env.action_width()).map(|i| 2.0 * (0.7 * step as f32 + 1.3 * i as f32).sin()).collect()
}

/// Every bit of what a caller can read.
fn bits(env: &mut Environment) -> Vec<u64> {
    let single = |values: &[f32]| values.iter().map(|value| u64::from(value.to_bits())).collect::<Vec<_>>();
    let double = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let mut bits = Vec::new();
    for group in 0..env.spec().groups.len() {
        bits.extend(single(env.observation(group)));
        bits.extend(single(env.final_observation(group)));
    }
    bits.extend(single(env.rewards()));
    bits.extend(single(env.reward_terms()));
    for flags in [env.terminated(), env.truncated(), env.diverged()] {
        bits.extend(flags.iter().map(|&flag| u64::from(flag)));
    }
    bits.extend(env.termination_terms());
    bits.push(env.divergences());
    bits.extend(double(env.controls()));
    bits.extend(env.log().iter().map(|(_, value)| value.to_bits()));
    bits.extend(single(env.commands()));
    bits.extend(double(env.qpos()));
    bits.extend(double(env.qvel()));
    bits
}

#[test]
fn original_and_restored_twin_stay_bitwise_equal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.snapshot");
    for threads in [1, 2] {
        let mut original = builder(ROWS, 3).threads(1).build().unwrap();
        original.reset().unwrap();
        for step in 0..30 {
            original.step(&actions(&original, step)).unwrap();
        }
        let snapshot = original.snapshot().unwrap();
        snapshot.write(&file).unwrap();
        assert_eq!(Snapshot::read(&file).unwrap(), snapshot);

        let mut twin = builder(ROWS, 3).threads(threads).build().unwrap();
        twin.restore(&Snapshot::read(&file).unwrap()).unwrap();
        assert_eq!(bits(&mut original), bits(&mut twin));
        let mut ends = [0, 0];
        for step in 30..130 {
            original.step(&actions(&original, step)).unwrap();
            twin.step(&actions(&twin, step)).unwrap();
            assert_eq!(bits(&mut original), bits(&mut twin), "step {step} on {threads} threads");
            ends[0] += original.truncated().iter().filter(|&&flag| flag).count();
            ends[1] += original.terminated().iter().filter(|&&flag| flag).count();
        }
        assert!(ends[0] > 0 && ends[1] > 0, "episodes ended by time and by falling: {ends:?}");

        // Back in time, after resets by hand.
        twin.reset_rows(&[1, 4]).unwrap();
        twin.restore(&snapshot).unwrap();
        original.restore(&snapshot).unwrap();
        original.reset_rows(&[2]).unwrap();
        twin.reset_rows(&[2]).unwrap();
        for step in 0..10 {
            original.step(&actions(&original, step)).unwrap();
            twin.step(&actions(&twin, step)).unwrap();
            assert_eq!(bits(&mut original), bits(&mut twin));
        }
    }
}

#[test]
fn snapshots_of_other_environments_are_refused_and_change_nothing() {
    let mut env = builder(2, 3).build().unwrap();
    env.reset().unwrap();
    env.step(&actions(&env, 0)).unwrap();
    let before = (bits(&mut env), env.snapshot().unwrap());
    let other = |builder: EnvironmentBuilder| {
        let mut other = builder.build().unwrap();
        other.reset().unwrap();
        other.snapshot().unwrap()
    };
    for (snapshot, parts) in [
        (other(Environment::builder("go2_joystick_flat").rows(2).seed(3)), ["preset is base", "is flashsac"]),
        (other(builder(3, 3)), ["number of rows is 3", "is 2"]),
        (other(builder(2, 4)), ["seed is 4", "is 3"]),
        (other(builder(2, 3).corruption(false)), ["observation noise is false", "is true"]),
        (
            other(builder(2, 3).config("rewards.action_rate.weight = -0.5".parse().unwrap())),
            ["configuration `rewards.action_rate.weight` is -0.5", "is -0.0"],
        ),
    ] {
        let error = env.restore(&snapshot).unwrap_err();
        assert!(matches!(error, SnapshotError::Mismatch { .. }));
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!((bits(&mut env), env.snapshot().unwrap()), before);
    }
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.snapshot");
    let mut env = builder(1, 0).build().unwrap();
    env.reset().unwrap();
    env.snapshot().unwrap().write(&file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = Snapshot::read(&file).unwrap_err();
        assert!(matches!(error, SnapshotError::Format { .. }));
        error.to_string()
    };
    assert!(refused(b"numbers").contains("cut off"));
    assert!(refused(&[0; 100]).contains("does not begin like one"));
    assert!(refused(&whole[..whole.len() - 1]).contains("checksum"));
    assert!(refused(&whole[..whole.len() / 2]).contains("cut off"));
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    assert!(refused(&changed).contains("checksum"));
    let mut newer = whole.clone();
    newer[8] = 9;
    assert!(refused(&newer).contains("version 9"));
    let missing = Snapshot::read(folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, SnapshotError::File { action: "read", .. }));
    assert!(missing.to_string().contains("none"), "{missing}");
}
