//! Steps on end: noise, time-outs, snapshots, motions of other files, and independence from threads.

use manege::Environment;
use manege::environment::InitialState;
use manege_tasks::motion::Kinematics;

use super::{FRAMES, JOINTS, builder, frames, motion, scatter};

fn actions(env: &Environment, step: usize) -> Vec<f32> {
    (0..env.rows() * JOINTS).map(|i| (0.3 * scatter(5000 * step + i)) as f32).collect()
}

fn observed<'a>(env: &'a Environment, group: &str, term: &str, row: usize) -> &'a [f32] {
    let index = env.spec().group(group).unwrap();
    let group = &env.spec().groups[index];
    let columns = group.terms.iter().find(|columns| columns.name == term).unwrap().columns.clone();
    &env.observation(index)[row * group.width..][columns]
}

#[test]
fn the_policy_is_corrupted_as_the_task_says_and_the_critic_is_not() {
    let [mut noisy, mut clean] = [true, false].map(|corruption| {
        let mut env = builder(16).seed(2).corruption(corruption).build().unwrap();
        env.reset().unwrap();
        env
    });
    let limits = [
        ("command", 0.0),
        ("motion_anchor_pos_b", 0.0),
        ("motion_anchor_ori_b", 0.0),
        ("base_lin_vel", 0.1),
        ("base_ang_vel", 0.2),
        ("joint_pos", 0.01),
        ("joint_vel", 1.5),
        ("actions", 0.0),
    ];
    let mut noise = vec![Vec::new(); limits.len()];
    for step in 0..30 {
        let actions = actions(&noisy, step);
        noisy.step(&actions).unwrap();
        clean.step(&actions).unwrap();
        assert_eq!(noisy.observation(1), clean.observation(1));
        for row in 0..16 {
            for ((term, _), noise) in limits.iter().zip(&mut noise) {
                let [seen, without] = [&noisy, &clean].map(|env| observed(env, "policy", term, row));
                noise.extend(seen.iter().zip(without).map(|(seen, without)| f64::from(seen - without)));
                assert_eq!(without, observed(&noisy, "critic", term, row), "{term}");
            }
        }
    }
    for ((term, limit), noise) in limits.iter().zip(&noise) {
        let greatest = noise.iter().fold(0.0, |greatest: f64, value| greatest.max(value.abs()));
        assert!(greatest <= limit + 1e-5 && greatest >= 0.98 * limit, "{term}: {greatest} of {limit}");
    }
}

#[test]
fn episodes_are_cut_off_after_500_steps() {
    let changes = "commands.motion.truncate_on_clip_end = false\nterminations.motion_clip_end.enabled = false\n\
                   terminations.anchor_pos.enabled = false\nterminations.anchor_ori.enabled = false\n\
                   terminations.ee_body_pos.enabled = false";
    let mut env = builder(1).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    for step in 1..=500 {
        env.step(&[0.0; JOINTS]).unwrap();
        assert_eq!(env.truncated(), [step == 500], "step {step}");
    }
    assert_eq!(env.terminated(), [false]);
}

/// Every bit of what the rows give in some steps.
fn run(env: &mut Environment, steps: std::ops::Range<usize>) -> Vec<u64> {
    let mut bits = Vec::new();
    for step in steps {
        env.step(&actions(env, step)).unwrap();
        let single = |values: &[f32]| values.iter().map(|value| u64::from(value.to_bits())).collect::<Vec<_>>();
        bits.extend([env.observation(0), env.observation(1), env.rewards()].map(single).concat());
        bits.extend(env.termination_terms());
        bits.extend(env.qpos().iter().map(|value| value.to_bits()));
    }
    bits
}

#[test]
fn results_do_not_depend_on_threads() {
    let runs = [1, 2, 7].map(|threads| {
        let mut env = builder(12).seed(4).threads(threads).build().unwrap();
        env.reset().unwrap();
        run(&mut env, 0..60)
    });
    assert!(runs[0] == runs[1] && runs[0] == runs[2]);
}

#[test]
fn before_the_first_failure_rows_do_not_depend_on_each_other() {
    let frames_of = |rows: usize| {
        let mut env = builder(rows).seed(6).build().unwrap();
        env.reset().unwrap();
        frames(&mut env)
    };
    assert_eq!(frames_of(40)[..3], frames_of(3));
}

#[test]
fn a_snapshot_keeps_what_the_sampling_has_learnt() {
    let learn = "commands.motion.sampling = { kind = \"adaptive\", uniform_ratio = 0.1, alpha = 0.3, kernel_size = 1, kernel_lambda = 0.8 }";
    let build = || builder(16).seed(8).config(learn.parse().unwrap()).build().unwrap();
    let mut env = build();
    env.reset().unwrap();
    run(&mut env, 0..60);
    let snapshot = env.snapshot().unwrap();
    let expected = run(&mut env, 60..120);
    let mut other = build();
    other.restore(&snapshot).unwrap();
    assert!(run(&mut other, 60..120) == expected);
}

#[test]
fn files_are_joined_into_clips_and_each_ends_an_episode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.npz");
    motion().write(std::fs::File::create(&path).unwrap()).unwrap();
    let name = toml::Value::from(path.to_str().unwrap());
    let changes = format!("commands.motion.files = [{name}, {name}]");
    let mut env = builder(2).config(changes.parse().unwrap()).build().unwrap();
    env.reset().unwrap();
    let last = FRAMES as f32 - 1.0;
    let mut initial = InitialState {
        task_state: vec![("motion_frame".to_owned(), vec![last, last + FRAMES as f32])],
        ..InitialState::default()
    };
    env.set_initial(&initial).unwrap();
    env.step(&[0.0; 2 * JOINTS]).unwrap();
    assert_eq!(env.truncated(), [true; 2]);

    initial.task_state[0].1[1] += 1.0;
    let error = env.set_initial(&initial).unwrap_err().to_string();
    assert_eq!(error, "`motion_frame` of row 1 is 802; it lies between 0 and 801");
}

#[test]
fn files_that_do_not_fit_are_refused_when_the_environment_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.npz");
    let mut robot = Kinematics::g1().unwrap();
    let slow = motion().trajectory().unwrap().resampled(25.0).unwrap().to_motion(&mut robot).unwrap();
    slow.write(std::fs::File::create(&path).unwrap()).unwrap();
    let follow = |changes: &str| {
        let name = toml::Value::from(path.to_str().unwrap());
        let changes = format!("commands.motion.files = [{name}]\n{changes}");
        builder(1).config(changes.parse().unwrap()).build()
    };
    let error = follow("").err().unwrap().to_string();
    assert!(error.contains("command term `motion`") && error.contains("25 frames per second"), "{error}");
    assert!(follow("commands.motion.resample = true").is_ok());
    for (changes, expected) in [
        ("commands.motion.bodies = [\"torso_link\"]", "the first must be the root, `pelvis`"),
        ("commands.motion.anchor = \"head\"", "`head` is none of `bodies`"),
        ("commands.motion.bodies = [\"pelvis\", \"torso\"]", "did you mean `torso_link`?"),
        ("commands.motion.joint_position = [0.1, -0.1]", "is an empty range"),
        ("rewards.motion_body_pos.command = \"motoin\"", "unknown motion command `motoin`; did you mean `motion`?"),
        ("terminations.ee_body_pos.bodies = [\"left_foot\"]", "the command does not track `left_foot`"),
    ] {
        let error = builder(1).config(changes.parse().unwrap()).build().err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
