//! Whole episodes in files.

use std::path::Path;

use manege::Environment;
use manege::npz::{Extent, NpzReader};
use manege::recorder::EpisodeRecorder;
use manege_systems::step::AutoReset;

const ROWS: usize = 3;

fn environment(auto_reset: AutoReset) -> Environment {
    let changes = "episode_length = 0.12".parse().unwrap();
    Environment::builder("go2_joystick_flat").rows(ROWS).seed(5).config(changes).auto_reset(auto_reset).build().unwrap()
}

fn actions(env: &Environment, step: usize) -> Vec<f32> {
    (0..env.rows() * env.action_width()).map(|i| (0.3 * step as f32 + 0.9 * i as f32).sin()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn read(file: &Path, name: &str, columns: Option<usize>) -> Vec<f32> {
    let mut shape = vec![Extent::Any("T")];
    shape.extend(columns.map(Extent::Exactly));
    NpzReader::open(file).unwrap().read::<f32>(name, &shape).unwrap().values
}

fn row(buffer: &[f32], row: usize) -> &[f32] {
    let width = buffer.len() / ROWS;
    &buffer[row * width..][..width]
}

#[test]
fn a_file_holds_what_the_caller_saw_of_the_episode() {
    let folder = tempfile::tempdir().unwrap();
    let mut env = environment(AutoReset::SameStep);
    env.add_recorder(EpisodeRecorder::new(folder.path().join("made")).unwrap().rows([0, 2, 99]));
    env.reset().unwrap();
    let folder = folder.path().join("made");
    // Row 2's first episode: 6 control steps, then cut off.
    let (mut observations, mut rewards, mut acted) = (row(env.observation(0), 2).to_vec(), Vec::new(), Vec::new());
    for step in 0..6 {
        assert!(names(&folder).is_empty());
        let actions = actions(&env, step);
        env.step(&actions).unwrap();
        let last = step == 5;
        assert_eq!(env.truncated(), [last; ROWS]);
        acted.extend_from_slice(row(&actions, 2));
        rewards.push(env.rewards()[2]);
        observations.extend_from_slice(row(if last { env.final_observation(0) } else { env.observation(0) }, 2));
    }
    assert_eq!(names(&folder), ["row00000_episode000001.npz", "row00002_episode000001.npz"]);
    let file = folder.join("row00002_episode000001.npz");
    assert_eq!(read(&file, "observation_policy", Some(49)), observations);
    assert_eq!(read(&file, "observation_critic", Some(52)).len(), 7 * 52);
    assert_eq!(read(&file, "actions", Some(12)), acted);
    assert_eq!(read(&file, "rewards", None), rewards);

    // An episode that is reset by hand is left out, and the next one is whole.
    env.step(&actions(&env, 6)).unwrap();
    env.reset_rows(&[2]).unwrap();
    let first = row(env.observation(0), 2).to_vec();
    for step in 7..13 {
        env.step(&actions(&env, step)).unwrap();
    }
    env.close_recorders().unwrap();
    let found = names(&folder);
    assert_eq!(found[1..], ["row00000_episode000002.npz", "row00002_episode000001.npz", "row00002_episode000003.npz"]);
    let again = read(&folder.join(&found[3]), "observation_policy", Some(49));
    assert_eq!((again.len(), &again[..49]), (7 * 49, &first[..]));
}

#[test]
fn every_mode_of_reset_records_the_same_episodes() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for (folder, mode) in folders.iter().zip([AutoReset::SameStep, AutoReset::NextStep, AutoReset::Disabled]) {
        let mut env = environment(mode);
        env.add_recorder(EpisodeRecorder::new(folder.path()).unwrap());
        env.reset().unwrap();
        for episode in 0..2 {
            for step in 0..6 {
                env.step(&actions(&env, 6 * episode + step)).unwrap();
            }
            match mode {
                AutoReset::NextStep => env.step(&actions(&env, 0)).unwrap(),
                AutoReset::Disabled if episode == 0 => env.reset().unwrap(),
                // The last episode has ended, though nobody asked for the next one.
                _ => {}
            }
        }
    }
    let [same, next, by_hand] = folders.each_ref().map(|folder| folder.path());
    assert_eq!(names(same).len(), 2 * ROWS);
    let all = names(same);
    assert_eq!([&names(next), &names(by_hand)], [&all; 2]);
    let bytes = |folder: &Path, name: &str| std::fs::read(folder.join(name)).unwrap();
    for name in &all {
        assert!(bytes(same, name) == bytes(by_hand, name), "{name}");
        // The gait's clock goes on in the step in which a row is reset instead of stepped, and shows in its second episode.
        assert!(name.contains("episode000002") || bytes(same, name) == bytes(next, name), "{name}");
        for array in ["actions", "observation_policy"] {
            let columns = if array == "actions" { 12 } else { 49 };
            let [here, there] = [same, next].map(|folder| read(&folder.join(name), array, Some(columns)));
            assert_eq!(here.len(), there.len(), "{name}");
            // Angular velocity, gravity, and some of the joints.
            let without_gait =
                |values: &[f32]| values.chunks(columns).flat_map(|row| row[..12].to_vec()).collect::<Vec<_>>();
            assert!(without_gait(&here) == without_gait(&there), "{name}");
        }
    }
}

#[test]
fn unfinished_episodes_are_written_if_asked_for_and_existing_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = |recorder: EpisodeRecorder| {
        let mut env = environment(AutoReset::SameStep);
        env.add_recorder(recorder.rows([1]));
        env.reset().unwrap();
        env.step(&actions(&env, 0)).unwrap();
        env.close_recorders()
    };
    let recorder = || EpisodeRecorder::new(folder.path()).unwrap();
    run(recorder()).unwrap();
    assert!(names(folder.path()).is_empty());
    run(recorder().unfinished()).unwrap();
    assert_eq!(names(folder.path()), ["row00001_episode000001.npz"]);
    let file = folder.path().join("row00001_episode000001.npz");
    assert_eq!(read(&file, "rewards", None).len(), 1);
    let error = run(recorder().unfinished()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("row00001_episode000001.npz"), "{source}");
    run(recorder().unfinished().overwrite()).unwrap();
}
