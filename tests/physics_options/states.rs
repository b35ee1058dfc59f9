//! States of robots that stand, move, fall and lie tangled, and what one physics step makes of them under other options.
//!
//! The bench of the same name includes this file.

use std::time::{Duration, Instant};

use manege_mujoco::{Batch, BatchOptions, Freshness, Jacobian, Model, ModelOptions, SensorSchedule, Source, Step};

/// The robots, by the task whose model and physics step they have.
pub const TASKS: [&str; 2] = ["go2_joystick_flat", "g1_walk_flat"];

/// Rows, a quarter for each way of moving.
pub const ROWS: usize = 512;
/// Control steps that are simulated, and every how many of them all states are taken.
const CONTROL_STEPS: usize = 84;
const EVERY: usize = 4;

/// Options that MuJoCo has by itself, each of ours alone, and all together. The last is a yardstick: stock options, but the
/// solver goes on until it is nearer to the minimum than by the tolerance of 1e-8 that both robots' models have.
pub const VARIANTS: [&str; 8] = [
    "stock",
    "sparse Jacobian",
    "islands off",
    "midphase off",
    "sensors off",
    "visual geoms off",
    "all five",
    "stock, solved further",
];

const ALL: &str = "all five";

/// The difference that does not count, in rad, m, rad/s and m/s.
pub const SAME: f64 = 1e-12;

fn batch(model: &Model, variant: &str, timestep: f64) -> Batch {
    let all = variant == ALL;
    let options = ModelOptions {
        timestep: Some(timestep),
        jacobian: (all || variant == "sparse Jacobian").then_some(Jacobian::Sparse),
        islands: (all || variant == "islands off").then_some(false),
        midphase: (all || variant == "midphase off").then_some(false),
    };
    let model = model.clone().with_options(&options).expect("options of a valid model");
    let options = BatchOptions {
        rows: ROWS,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        outputs: vec![Source::Qpos, Source::Qvel],
        freshness: Freshness::LastSubstep,
        sensors: if all || variant == "sensors off" { SensorSchedule::Declared } else { SensorSchedule::EverySubstep },
        ..BatchOptions::default()
    };
    Batch::new(&model, &options).expect("a batch")
}

/// How one variant compares with stock options.
#[derive(Debug, Clone)]
pub struct Comparison {
    pub variant: &'static str,
    /// Time of each physics step of all rows.
    pub times: Vec<Duration>,
    /// Greatest differences of positions and velocities.
    pub qpos: f64,
    pub qvel: f64,
    /// States in which a velocity differs by more than [`SAME`].
    pub beyond: usize,
    /// States compared.
    pub states: usize,
    /// States whose step failed.
    pub faults: usize,
}

/// A number in `[-1, 1)` that looks random and depends on `i` alone.
fn scatter(i: usize) -> f64 {
    ((i as f64 * 12.9898).sin() * 43_758.545_3).rem_euclid(2.0) - 1.0
}

/// How a quarter of the rows moves.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Standing,
    Moving,
    Falling,
    Tangled,
}

fn way(row: usize) -> Way {
    [Way::Standing, Way::Moving, Way::Falling, Way::Tangled][row * 4 / ROWS]
}

/// Puts a row where its way begins: on its feet, or thrown at the floor.
fn place(batch: &mut Batch, row: usize, home: &[f64]) {
    let qpos = batch.qpos_mut(row).expect("a row");
    qpos.copy_from_slice(home);
    let thrown = way(row) == Way::Tangled;
    for (i, value) in qpos.iter_mut().enumerate().skip(7) {
        *value += if thrown { 1.5 } else { 0.05 } * scatter(100 * row + i);
    }
    if thrown {
        let quat: Vec<f64> = (0..4).map(|i| scatter(7000 + 100 * row + i)).collect();
        let length = quat.iter().map(|value| value * value).sum::<f64>().sqrt();
        qpos[2] = 0.5;
        (0..4).for_each(|i| qpos[3 + i] = quat[i] / length);
    }
    let qvel = batch.qvel_mut(row).expect("a row");
    for (i, value) in qvel.iter_mut().enumerate() {
        *value = if thrown { 4.0 } else { 0.2 } * scatter(3000 + 100 * row + i);
    }
}

/// Targets of a row's joints in a control step, around its home pose.
fn targets(row: usize, step: usize, home: &[f64], joints: &[(usize, usize)], controls: &mut [f64]) {
    let spread = match way(row) {
        Way::Standing => 0.0,
        Way::Moving => 0.25,
        Way::Falling => 1.0,
        Way::Tangled => 2.5,
    };
    for (i, &(qpos, control)) in joints.iter().enumerate() {
        controls[control] = home[qpos] + spread * scatter(row * 977 + step * 131 + i);
    }
}

/// Simulates with stock options, and takes one physics step from all states that are met under each variant.
pub fn compare(task: &str) -> Vec<Comparison> {
    let (task, preset) = manege_tasks::find(task).expect("a task");
    let config = (task.config)(preset.name);
    let (timestep, substeps) = (config.physics.timestep, config.physics.substeps().expect("whole steps"));
    let model = Model::from_xml_files(task.model.main, task.model.files).expect("a valid model");
    let home = model.keyframes().find(|key| key.name == config.keyframe).expect("the task's keyframe").qpos.to_vec();
    let joints: Vec<(usize, usize)> = {
        let positions: Vec<usize> = model.joints().map(|joint| joint.qpos).collect();
        let drives = |actuator: manege_mujoco::Actuator<'_>| {
            (positions[actuator.joint.expect("a joint")], actuator.controls.start)
        };
        model.actuators().map(drives).collect()
    };
    let (nq, nu) = (model.nq(), model.nu());

    // A section that stands twice is merged.
    let further = |text: &str| text.replace("</mujoco>", "<option tolerance=\"1e-14\"/></mujoco>");
    let files: Vec<(&str, String)> = task.model.files.iter().map(|(name, text)| (*name, further(text))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let further = Model::from_xml_files(task.model.main, &files).expect("a valid model");

    let bare = format!(r#"<mujoco><compiler discardvisual="true"/><include file="{}"/></mujoco>"#, task.model.main);
    let files = [task.model.files, &[("bare.xml", bare.as_str())]].concat();
    let stepped = Model::from_xml_files("bare.xml", &files).expect("a valid model");

    let mut leader = batch(&model, "stock", timestep);
    let mut variants: Vec<(Comparison, Batch)> = VARIANTS
        .map(|variant| {
            let comparison =
                Comparison { variant, times: Vec::new(), qpos: 0.0, qvel: 0.0, beyond: 0, states: 0, faults: 0 };
            let model = if variant == VARIANTS[7] {
                &further
            } else if [ALL, "visual geoms off"].contains(&variant) {
                &stepped
            } else {
                &model
            };
            (comparison, batch(model, variant, timestep))
        })
        .into();
    (0..ROWS).for_each(|row| place(&mut leader, row, &home));
    leader.refresh(None).expect("rows");
    let mut controls = vec![0.0; ROWS * nu];
    let mut saved = Vec::new();
    for step in 0..CONTROL_STEPS {
        for (row, controls) in controls.chunks_exact_mut(nu).enumerate() {
            targets(row, step, &home, &joints, controls);
        }
        if step % EVERY == EVERY - 1 {
            saved.clear();
            leader.save(&mut saved);
            // In turns, so that what else the machine does falls on all of them.
            let turn = step / EVERY % variants.len();
            for i in 0..variants.len() {
                let (comparison, batch) = &mut variants[(turn + i) % VARIANTS.len()];
                batch.load(&saved).expect("the state of a batch like this one");
                let one = Step { controls: Some(&controls), ..Step::default() };
                let begun = Instant::now();
                batch.step(&one).expect("a step");
                comparison.times.push(begun.elapsed());
            }
            let (stock, others) = variants.split_first_mut().expect("there are some");
            stock.0.states += ROWS;
            stock.0.faults += stock.1.faults().len();
            for (comparison, batch) in others {
                comparison.states += ROWS;
                comparison.faults += batch.faults().len();
                for row in 0..ROWS {
                    let [ours, stocks] = [&*batch, &stock.1].map(|batch| batch.output_row(row).expect("a row"));
                    let greatest = |part: std::ops::Range<usize>| {
                        ours[part.clone()]
                            .iter()
                            .zip(&stocks[part])
                            .fold(0.0f64, |most, (a, b)| most.max((a - b).abs()))
                    };
                    let (qpos, qvel) = (greatest(0..nq), greatest(nq..ours.len()));
                    comparison.qpos = comparison.qpos.max(qpos);
                    comparison.qvel = comparison.qvel.max(qvel);
                    comparison.beyond += usize::from(qvel > SAME);
                }
            }
        }
        leader.step(&Step { substeps, controls: Some(&controls), ..Step::default() }).expect("a step");
    }
    variants.into_iter().map(|(comparison, _)| comparison).collect()
}
