//! The baseline computes what the managed environment computes, bit for bit.

use manege::Environment;
use manege::collector::{Policy, RandomPolicy};
use manege_direct::{Options, Recording, build};
use manege_systems::backend::Output;

/// What both paths are put through.
struct Run {
    task: &'static str,
    rows: usize,
    threads: usize,
    steps: usize,
    random: bool,
    /// Resets that have to happen, so that the comparison is about them too.
    least_resets: usize,
}

fn same_bits(what: &str, step: usize, managed: &[f32], direct: &[f32]) {
    assert_eq!(managed.len(), direct.len(), "{what}: sizes");
    let differs = managed.iter().zip(direct).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(place) = differs {
        panic!("{what} of step {step} differs at {place}: managed {}, direct {}", managed[place], direct[place]);
    }
}

/// What is reported about the episodes that ended in the last step: as means in any order of addition.
fn compare_reports(managed: &Environment, direct: &dyn manege_direct::Environment) {
    let longest_episode = managed.config().episode_length;
    let report = direct.report();
    let ended = managed.terminated().iter().zip(managed.truncated()).filter(|(a, b)| **a || **b).count();
    assert_eq!(report.episodes, ended);
    if ended == 0 {
        return;
    }
    let same = |key: String, direct: f64| {
        let managed = managed.log().get(&key).unwrap_or_else(|| panic!("{key} is reported"));
        assert!((managed - direct).abs() <= 1e-6 * managed.abs().max(1e-3), "{key}: {managed}, direct {direct}");
    };
    let spec = managed.spec();
    for (name, sum) in spec.reward_terms.iter().zip(&report.rewards) {
        same(format!("Episode_Reward/{name}"), sum / longest_episode);
    }
    for (name, error) in direct.error_names().iter().zip(&report.errors) {
        same(format!("Metrics/{name}"), *error);
    }
    for ((name, _), count) in spec.termination_terms.iter().zip(report.terminations) {
        same(format!("Episode_Termination/{name}"), f64::from(count));
    }
}

fn compare(run: &Run) {
    let seed = 11;
    let mut managed = Environment::builder(run.task).rows(run.rows).threads(run.threads).seed(seed).build().unwrap();
    managed.reset().unwrap();
    let mut direct = build(run.task, Options { rows: run.rows, threads: run.threads, seed }).unwrap();
    direct.reset().unwrap();

    let width = managed.action_width();
    let widths = direct.group_widths();
    let mut policy = RandomPolicy::normal(seed, width);
    let mut actions = vec![0.0; run.rows * width];
    let mut resets = 0;
    for step in 0..=run.steps {
        for group in 0..2 {
            same_bits(&format!("observation {group}"), step, managed.observation(group), direct.observation(group));
        }
        if step == run.steps {
            break;
        }
        if run.random {
            policy.act(&[], &mut actions).unwrap();
        }
        managed.step(&actions).unwrap();
        direct.step(&actions).unwrap();
        same_bits("reward", step, managed.rewards(), direct.rewards());
        same_bits("a reward term", step, managed.reward_terms(), direct.reward_terms());
        assert_eq!(managed.terminated(), direct.terminated(), "terminated in step {step}");
        assert_eq!(managed.truncated(), direct.truncated(), "truncated in step {step}");
        compare_reports(&managed, &*direct);
        resets += direct.reset_rows().len();
        for &row in direct.reset_rows() {
            for (group, width) in widths.into_iter().enumerate() {
                let columns = row as usize * width..(row as usize + 1) * width;
                let (a, b) = (managed.final_observation(group), direct.final_observation(group));
                same_bits("a final observation", step, &a[columns.clone()], &b[columns]);
            }
        }
    }
    assert!(resets >= run.least_resets, "{resets} resets");
}

// 760 steps reach the push at 15 s and 1001 the time-out at 20 s; random actions make the robots fall.

#[test]
fn go2_base_is_the_same() {
    let task = "go2_joystick_flat:base";
    compare(&Run { task, rows: 3, threads: 1, steps: 1005, random: false, least_resets: 3 });
    compare(&Run { task, rows: 24, threads: 2, steps: 300, random: true, least_resets: 0 });
}

#[test]
fn go2_flashsac_is_the_same() {
    let task = "go2_joystick_flat:flashsac";
    compare(&Run { task, rows: 3, threads: 1, steps: 1005, random: false, least_resets: 3 });
    compare(&Run { task, rows: 24, threads: 2, steps: 300, random: true, least_resets: 1 });
}

#[test]
fn g1_walk_sac_is_the_same() {
    let task = "g1_walk_flat:sac";
    compare(&Run { task, rows: 8, threads: 2, steps: 300, random: false, least_resets: 20 });
    compare(&Run { task, rows: 8, threads: 1, steps: 300, random: true, least_resets: 20 });
}

#[test]
fn g1_walk_flashsac_is_the_same() {
    let task = "g1_walk_flat:flashsac";
    compare(&Run { task, rows: 8, threads: 1, steps: 300, random: false, least_resets: 20 });
    compare(&Run { task, rows: 8, threads: 2, steps: 300, random: true, least_resets: 20 });
}

#[test]
fn g1_motion_tracking_is_the_same() {
    let task = "g1_motion_tracking:sac";
    // Some episodes end with the motion, which takes 8 s, others because the robot falls.
    compare(&Run { task, rows: 8, threads: 1, steps: 420, random: false, least_resets: 40 });
    compare(&Run { task, rows: 8, threads: 2, steps: 200, random: true, least_resets: 40 });
}

/// Many rows are shared out to threads.
#[test]
fn the_parallel_pass_is_the_same() {
    compare(&Run { task: "g1_walk_flat", rows: 2100, threads: 2, steps: 3, random: true, least_resets: 0 });
}

#[test]
fn bare_physics_goes_where_the_task_went() {
    let (task, options) = ("g1_walk_flat:sac", Options { rows: 8, threads: 2, seed: 3 });
    let mut managed = Environment::builder(task).rows(8).seed(3).build().unwrap();
    managed.reset().unwrap();
    let mut direct = build(task, options).unwrap();
    direct.reset().unwrap();
    let mut recording = Recording::start(&*direct);
    let actions = vec![0.1; 8 * direct.action_width()];
    let mut resets = 0;
    for _ in 0..150 {
        managed.step(&actions).unwrap();
        direct.step(&actions).unwrap();
        recording.add_step(&*direct);
        resets += direct.reset_rows().len();
    }
    assert!(resets > 0, "nothing was reset");
    let (times, backend) = recording.replay(task, options, vec![Output::Qpos]).unwrap();
    assert_eq!(times.len(), 150);
    assert_eq!(backend.outputs(), managed.qpos());
}

#[test]
fn wrong_names_get_a_hint() {
    let options = Options { rows: 1, threads: 1, seed: 0 };
    let error = build("g1_walk_flt", options).err().expect("no such task").to_string();
    assert!(error.contains("did you mean `g1_walk_flat`"), "{error}");
}

#[test]
fn actions_that_are_wrong_are_refused() {
    let mut direct = build("go2_joystick_flat", Options { rows: 2, threads: 1, seed: 0 }).unwrap();
    direct.reset().unwrap();
    let error = direct.step(&[0.0; 23]).unwrap_err().to_string();
    assert!(error.contains("23") && error.contains("12"), "{error}");
    let mut actions = [0.0; 24];
    actions[15] = f32::NAN;
    let error = direct.step(&actions).unwrap_err().to_string();
    assert!(error.contains("row 1, column 3"), "{error}");
}
