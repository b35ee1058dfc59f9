//! How the time of a physics step grows with degrees of freedom and with contacts: tables.
//!
//! `cargo x bench --bench growth`. One thread; the models of each table take turns, and times are medians. Chains swing without touching
//! anything; tables stand on as many feet as they have contacts; the tasks' robots stand, or fall without touching anything.

use std::fmt::Write;
use std::time::Instant;

use manege_mujoco::{Batch, BatchOptions, Jacobian, Model, ModelOptions, Step};

const ROWS: usize = 128;
const ROUNDS: usize = 15;
/// Physics steps in a round, few enough that robots which nobody controls are still standing.
const SUBSTEPS: u32 = 10;

/// The options that the tasks have.
fn options(timestep: f64) -> ModelOptions {
    ModelOptions {
        timestep: Some(timestep),
        jacobian: Some(Jacobian::Sparse),
        islands: Some(false),
        midphase: Some(false),
    }
}

fn from_xml(body: &str) -> Model {
    let xml = format!("<mujoco><worldbody>{body}</worldbody></mujoco>");
    let model = Model::from_xml_files("model.xml", &[("model.xml", &xml)]).expect("a valid model");
    model.with_options(&options(0.002)).expect("options of a valid model")
}

/// Links that hang one from the other by hinges in turn about x and y.
fn chain(links: usize) -> Model {
    let mut xml = String::new();
    for i in 0..links {
        let (height, axis) = (if i == 0 { 0.0 } else { -0.1 }, if i % 2 == 0 { "1 0 0" } else { "0 1 0" });
        write!(
            xml,
            r#"<body pos="0 0 {height}"><joint axis="{axis}" damping="0.01"/>
               <geom type="capsule" fromto="0 0 0 0 0 -0.1" size="0.01" contype="0" conaffinity="0"/>"#
        )
        .expect("text takes text");
    }
    xml.push_str(&"</body>".repeat(links));
    from_xml(&xml)
}

/// A slab on spheres that touch the floor.
fn table(feet: usize) -> Model {
    let mut xml = String::from(r#"<geom type="plane" size="5 5 1"/><body pos="0 0 0.0999"><freejoint/>"#);
    xml.push_str(r#"<geom type="box" size="0.5 0.5 0.02" contype="0" conaffinity="0"/>"#);
    for i in 0..feet {
        let angle = std::f64::consts::TAU * i as f64 / feet as f64;
        let (y, x) = angle.sin_cos();
        write!(xml, r#"<geom type="sphere" size="0.05" pos="{:.3} {:.3} -0.05"/>"#, 0.4 * x, 0.4 * y)
            .expect("text takes text");
    }
    xml.push_str("</body>");
    from_xml(&xml)
}

struct Case {
    name: String,
    batch: Batch,
    /// The state that every round begins with, all rows'.
    start: Vec<f64>,
    times: Vec<f64>,
}

impl Case {
    /// Rows in the model's default configuration or one given, moving about so fast, rad/s or m/s, after `settle` physics steps.
    fn new(name: String, model: &Model, start: Option<&[f64]>, ctrl: &[f64], speed: f64, settle: u32) -> Self {
        let options = BatchOptions { rows: ROWS, threads: 1, ..BatchOptions::default() };
        let mut batch = Batch::new(model, &options).expect("a batch");
        for row in 0..ROWS {
            if let Some(qpos) = start {
                batch.qpos_mut(row).expect("a row").copy_from_slice(qpos);
            }
            for (i, velocity) in batch.qvel_mut(row).expect("a row").iter_mut().enumerate() {
                *velocity = speed * ((row * 31 + i) as f64).sin();
            }
            batch.state_mut(manege_mujoco::StateField::Ctrl, row).expect("a row").copy_from_slice(ctrl);
        }
        if settle > 0 {
            batch.step(&Step { substeps: settle, ..Step::default() }).expect("a step");
        }
        let mut start = Vec::new();
        batch.save(&mut start);
        Self { name, batch, start, times: Vec::new() }
    }

    fn round(&mut self) {
        self.batch.load(&self.start).expect("the batch's own state");
        let begun = Instant::now();
        self.batch.step(&Step { substeps: SUBSTEPS, ..Step::default() }).expect("a step");
        self.times.push(begun.elapsed().as_secs_f64() * 1e6 / (ROWS as f64 * f64::from(SUBSTEPS)));
        assert!(self.batch.faults().is_empty(), "{}: a row failed", self.name);
    }
}

fn report(title: &str, mut cases: Vec<Case>) {
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    println!("| {title} | µs per row and physics step |");
    println!("|---|---:|");
    for Case { name, times, .. } in &mut cases {
        times.sort_by(f64::total_cmp);
        println!("| {name} | {:.2} |", times[times.len() / 2]);
    }
    println!();
}

fn robots() -> Vec<Case> {
    let mut cases = Vec::new();
    for task in ["go2_joystick_flat", "g1_walk_flat"] {
        let (task, preset) = manege_tasks::find(task).expect("a task");
        let config = (task.config)(preset.name);
        let model = Model::from_xml_files(task.model.main, task.model.files).expect("a valid model");
        let model = model.with_options(&options(config.physics.timestep)).expect("options of a valid model");
        let home =
            model.keyframes().find(|key| key.name == config.keyframe).expect("the task's keyframe").qpos.to_vec();
        let mut ctrl = vec![0.0; model.nu()];
        let positions: Vec<usize> = model.joints().map(|joint| joint.qpos).collect();
        for actuator in model.actuators() {
            ctrl[actuator.controls.start] = home[positions[actuator.joint.expect("a joint")]];
        }
        let mut high = home.clone();
        high[2] += 100.0;
        for (way, start, settle) in [("falling", &high, 0), ("standing", &home, 20)] {
            let name = format!("{}, {way} ({} degrees of freedom)", task.name, model.nv());
            cases.push(Case::new(name, &model, Some(start), &ctrl, 0.1, settle));
        }
    }
    cases
}

fn main() {
    let chains = [3, 6, 12, 24, 48, 96].map(|links| Case::new(links.to_string(), &chain(links), None, &[], 0.5, 0));
    report("degrees of freedom, no contact", chains.into());
    let tables = [0, 1, 2, 4, 8, 16, 32].map(|feet| Case::new(feet.to_string(), &table(feet), None, &[], 0.0, 20));
    report("contacts of one body", tables.into());
    report("robot", robots());
}
