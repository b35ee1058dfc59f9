//! What it costs that observations see the state which positions and velocities describe: time and memory of the ways to do it.
//!
//! `cargo x bench --bench fresh_quantities`. Robots stand, with zero actions. All ways take each control step in turns; times are
//! medians of the physics dispatch, memory is what the process grew by.

use std::time::{Duration, Instant};

use manege::Environment;
use manege_mujoco::{Batch, BatchOptions, Jacobian, Model, ModelOptions, Stage};
use manege_tasks::Task;

const TASKS: [&str; 2] = ["go2_joystick_flat", "g1_walk_flat"];
const ROWS: [usize; 3] = [256, 1024, 4096];
const STEPS: usize = 15;

enum Way {
    Task(Box<Environment>, Vec<f32>),
    /// MuJoCo's own loop of `mj_step`, then the stages up to one.
    Native(Box<Batch>, u32, Stage),
}

/// The way's name, `physics.fresh` and `physics.layout`.
const WAYS: [(&str, bool, &str); 4] = [
    ("a thread's data, the stages that outputs need", true, "shared"),
    ("a thread's data, one physics step old", false, "shared"),
    ("a row's own data, mj_step2 then mj_step1", true, "persistent"),
    ("a row's own data, one physics step old", false, "persistent"),
];
const NATIVE: [(&str, Stage); 2] =
    [("a thread's data, all of mj_step1", Stage::Velocity), ("a thread's data, mj_step alone", Stage::None)];

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Memory that the process has resident, bytes; 0 where the system does not tell.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()));
    pages.map_or(0, |pages| pages * 4096)
}

fn environment(task: &str, rows: usize, fresh: bool, layout: &str) -> Way {
    let changes = format!("physics.fresh = {fresh}\nphysics.layout = \"{layout}\"");
    let mut env = Environment::builder(task)
        .rows(rows)
        .threads(threads())
        .randomization(false)
        .config(changes.parse().expect("a table"))
        .build()
        .expect("the task builds");
    env.reset().expect("the task resets");
    let actions = vec![0.0; rows * env.action_width()];
    Way::Task(Box::new(env), actions)
}

fn native(task: &Task, rows: usize, stage: Stage) -> Way {
    let config = (task.config)(task.presets[0].name);
    let options = ModelOptions {
        timestep: Some(config.physics.timestep),
        jacobian: Some(Jacobian::Sparse),
        islands: Some(false),
        midphase: Some(false),
    };
    let model = Model::from_xml_files(task.model.main, task.model.files).and_then(|model| model.with_options(&options));
    let model = model.expect("a valid model");
    let home = model.keyframes().find(|key| key.name == config.keyframe).expect("the task's keyframe").qpos.to_vec();
    let positions: Vec<usize> = model.joints().map(|joint| joint.qpos).collect();
    let targets: Vec<f64> =
        model.actuators().map(|actuator| home[positions[actuator.joint.expect("a joint")]]).collect();
    let mut batch =
        Batch::new(&model, &BatchOptions { rows, threads: threads(), ..BatchOptions::default() }).expect("a batch");
    for row in 0..rows {
        batch.qpos_mut(row).expect("a row").copy_from_slice(&home);
        batch.state_mut(manege_mujoco::StateField::Ctrl, row).expect("a row").copy_from_slice(&targets);
    }
    Way::Native(Box::new(batch), config.physics.substeps().expect("whole steps"), stage)
}

impl Way {
    fn step(&mut self) -> Duration {
        match self {
            Self::Task(env, actions) => {
                env.step(actions).expect("a step");
                env.timings().physics
            }
            Self::Native(batch, substeps, stage) => {
                let begun = Instant::now();
                batch.step_native(None, *substeps, *stage).expect("a step");
                begun.elapsed()
            }
        }
    }
}

fn main() {
    for name in TASKS {
        let (task, _) = manege_tasks::find(name).expect("a task");
        for rows in ROWS {
            let mut ways: Vec<(&str, usize, Way, Vec<f64>)> = Vec::new();
            let mut add = |name, make: &dyn Fn() -> Way| {
                let before = resident();
                let mut way = make();
                way.step();
                ways.push((name, resident().saturating_sub(before), way, Vec::new()));
            };
            // The lean ones first: memory that others gave back would hide theirs.
            for (name, stage) in NATIVE {
                add(name, &|| native(&task, rows, stage));
            }
            for (way, fresh, layout) in WAYS {
                add(way, &|| environment(name, rows, fresh, layout));
            }
            for step in 0..STEPS {
                let count = ways.len();
                for i in 0..count {
                    let (_, _, way, times) = &mut ways[(step + i) % count];
                    times.push(way.step().as_secs_f64() * 1e3);
                }
            }
            println!("{name}, {rows} rows, {} threads", threads());
            println!("| way | ms per control step | KiB per row |");
            println!("|---|---:|---:|");
            for (name, bytes, _, times) in &mut ways {
                times.sort_by(f64::total_cmp);
                println!("| {name} | {:.2} | {:.1} |", times[times.len() / 2], *bytes as f64 / 1024.0 / rows as f64);
            }
            println!();
        }
    }
}
