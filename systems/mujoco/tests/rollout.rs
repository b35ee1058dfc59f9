//! Stepping and refreshing against MuJoCo's Python package, bit for bit.

mod common;

use std::sync::OnceLock;

use common::{noise, oracle, start, walker};
use manege_mujoco::{
    Batch, BatchOptions, Freshness, Jacobian, Model, ModelOptions, ObjectKind, OptionValue, SensorSchedule, Source,
    Stage, StateField, Step,
};

const ROWS: usize = 5;
const STEPS: usize = 50;

/// Whether rows keep their data, and when sensors are evaluated: nothing of which may be seen.
const SCHEDULES: [(bool, SensorSchedule); 4] = [
    (false, SensorSchedule::Declared),
    (false, SensorSchedule::EverySubstep),
    (true, SensorSchedule::Declared),
    (true, SensorSchedule::EverySubstep),
];

fn options() -> BatchOptions {
    BatchOptions { rows: ROWS, threads: 2, ..BatchOptions::default() }
}

/// A rollout and what MuJoCo's Python package makes of it.
struct Recording {
    directory: tempfile::TempDir,
    model: Model,
    substeps: u32,
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    ctrl: Vec<f64>,
}

impl Recording {
    fn make(model: Model, substeps: u32) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (qpos, qvel) = start(&model, ROWS);
        let ctrl: Vec<f64> = noise(7, STEPS * ROWS * model.nu()).iter().map(|noise| 0.8 * noise).collect();
        let path = directory.path();
        model.save_mjb(path.join("model.mjb")).expect("the directory is writable");
        oracle::write(path, "qpos", &qpos);
        oracle::write(path, "qvel", &qvel);
        oracle::write(path, "ctrl", &ctrl);
        let plan = serde_json::json!({ "rows": ROWS, "steps": STEPS, "substeps": substeps });
        std::fs::write(path.join("plan.json"), plan.to_string()).expect("the directory is writable");
        oracle::run(common::file("oracle/rollout.py"), path).then_some(Self {
            directory,
            model,
            substeps,
            qpos,
            qvel,
            ctrl,
        })
    }

    /// The recording of the walker as its file has it, made once for all tests.
    fn shared() -> Option<&'static Self> {
        static RECORDING: OnceLock<Option<Recording>> = OnceLock::new();
        RECORDING.get_or_init(|| Self::make(walker(), 4)).as_ref()
    }

    fn read(&self, name: &str) -> Vec<f64> {
        oracle::read(self.directory.path(), name)
    }

    /// A batch at the start of the rollout.
    fn batch(&self, threads: usize, persistent: bool, outputs: Vec<Source>, freshness: Freshness) -> Batch {
        self.batch_with(&BatchOptions { threads, persistent, outputs, freshness, ..options() })
    }

    fn batch_with(&self, options: &BatchOptions) -> Batch {
        let mut batch = Batch::new(&self.model, options).expect("the options are valid");
        for row in 0..ROWS {
            let (nq, nv) = (self.model.nq(), self.model.nv());
            batch.qpos_mut(row).expect("a row").copy_from_slice(&self.qpos[row * nq..][..nq]);
            batch.qvel_mut(row).expect("a row").copy_from_slice(&self.qvel[row * nv..][..nv]);
        }
        batch
    }

    /// Steps a batch through the rollout, calling `check` after each control step.
    fn replay(&self, batch: &mut Batch, mut check: impl FnMut(usize, &Batch)) {
        for (index, controls) in self.ctrl.chunks_exact(ROWS * self.model.nu()).enumerate() {
            let step = Step { substeps: self.substeps, controls: Some(controls), ..Step::default() };
            batch.step(&step).expect("the request is valid");
            assert_eq!(batch.faults(), []);
            check(index, batch);
        }
    }
}

/// The part of a recorded quantity that belongs to one control step and row.
fn part(values: &[f64], step: usize, row: usize) -> &[f64] {
    let width = values.len() / (STEPS * ROWS);
    &values[(step * ROWS + row) * width..][..width]
}

fn check_states(recording: &Recording, batch: &mut Batch) {
    let (qpos, qvel, warmstart) =
        (recording.read("out_qpos"), recording.read("out_qvel"), recording.read("out_warmstart"));
    recording.replay(batch, |step, batch| {
        for row in 0..ROWS {
            let what = format!("step {step}, row {row}");
            oracle::assert_same_bits(&what, batch.qpos(row).expect("a row"), part(&qpos, step, row));
            oracle::assert_same_bits(&what, batch.qvel(row).expect("a row"), part(&qvel, step, row));
            let actual = batch.state(StateField::QaccWarmstart, row).expect("a row");
            oracle::assert_same_bits(&what, actual, part(&warmstart, step, row));
        }
    });
}

#[test]
fn states_have_the_bits_of_a_plain_loop() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let contacts = recording.read("out_contacts");
    assert!(contacts.iter().filter(|count| **count > 0.0).count() > contacts.len() / 2, "the robot is on the ground");
    for threads in [1, 2] {
        for persistent in [false, true] {
            let mut batch = recording.batch(threads, persistent, vec![Source::Qpos], Freshness::Fresh);
            check_states(recording, &mut batch);
        }
    }
}

#[test]
fn evaluating_every_output_leaves_the_states_alone() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let outputs: Vec<_> = (0..recording.model.count(ObjectKind::Sensor)).map(Source::Sensor).collect();
    for (persistent, sensors) in SCHEDULES {
        let options = BatchOptions { persistent, sensors, outputs: outputs.clone(), ..options() };
        check_states(recording, &mut recording.batch_with(&options));
    }
}

/// Physics steps without sensors are put together from MuJoCo's stages where `mj_step` is no more than that.
#[test]
fn every_integrator_has_the_bits_of_a_plain_loop() {
    let xml = std::fs::read_to_string(common::file("models/walker.xml")).expect("the model's file");
    for integrator in ["Euler", "RK4", "implicit", "implicitfast", "discrete"] {
        let xml = xml.replace("integrator=\"implicitfast\"", &format!("integrator=\"{integrator}\""));
        let model = Model::from_xml_str(&xml).expect("a valid model");
        assert!(model.options().contains(&("integrator", OptionValue::Text(integrator))));
        let Some(recording) = Recording::make(model, 4) else {
            return;
        };
        for persistent in [false, true] {
            check_states(&recording, &mut recording.batch(2, persistent, vec![], Freshness::Fresh));
        }
    }
}

#[test]
fn options_reach_the_solver() {
    let options = ModelOptions {
        timestep: Some(0.003),
        jacobian: Some(Jacobian::Sparse),
        islands: Some(false),
        midphase: Some(false),
    };
    let Some(recording) = Recording::make(walker().with_options(&options).expect("valid options"), 4) else {
        return;
    };
    check_states(&recording, &mut recording.batch(2, false, vec![], Freshness::Fresh));
}

/// Bodies, geoms and sites: each alone, so that each finds what it needs evaluated.
#[test]
fn fresh_kinematics_have_the_bits_of_mj_forward() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let model = &recording.model;
    let body = model.id(ObjectKind::Body, "right_rear_shin").expect("a body");
    let geom = model.id(ObjectKind::Geom, "left_front_foot").expect("a geom");
    let site = model.id(ObjectKind::Site, "imu").expect("a site");
    let cases = [
        (vec![Source::BodyPosition(body)], "fresh_xpos", 3 * body, 3),
        (vec![Source::BodyOrientation(body)], "fresh_xquat", 4 * body, 4),
        (vec![Source::BodyAngularVelocity(body)], "fresh_velocity", 6 * body, 3),
        (vec![Source::BodyLinearVelocity(body)], "fresh_velocity", 6 * body + 3, 3),
        (vec![Source::BodyAngularVelocity(body), Source::BodyLinearVelocity(body)], "fresh_velocity", 6 * body, 6),
        (vec![Source::GeomPosition(geom)], "fresh_geom_xpos", 3 * geom, 3),
        (vec![Source::SitePosition(site)], "fresh_site_xpos", 3 * site, 3),
    ];
    for (sources, name, offset, width) in cases {
        let expected = recording.read(name);
        for persistent in [false, true] {
            let mut batch = recording.batch(2, persistent, sources.clone(), Freshness::Fresh);
            assert_eq!(batch.output_width(), width);
            recording.replay(&mut batch, |step, batch| {
                for row in 0..ROWS {
                    let actual = batch.output_row(row).expect("a row");
                    oracle::assert_same_bits(name, actual, &part(&expected, step, row)[offset..][..width]);
                }
            });
        }
    }
}

/// Each sensor alone, so that each finds what it needs evaluated; acceleration sensors keep the last step's values.
#[test]
fn fresh_sensors_have_the_bits_of_mj_forward() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let (fresh, last) = (recording.read("fresh_sensors"), recording.read("out_sensors"));
    assert!(fresh.iter().zip(&last).filter(|(fresh, last)| fresh != last).count() > last.len() / 2);
    for (index, sensor) in recording.model.sensors().enumerate() {
        let expected = if sensor.stage == Stage::Acceleration { &last } else { &fresh };
        for (persistent, sensors) in SCHEDULES {
            let options = BatchOptions { persistent, sensors, outputs: vec![Source::Sensor(index)], ..options() };
            recording.replay(&mut recording.batch_with(&options), |step, batch| {
                for row in 0..ROWS {
                    let what = format!("sensor {}, step {step}, row {row}", sensor.name);
                    let actual = batch.output_row(row).expect("a row");
                    oracle::assert_same_bits(&what, actual, &part(expected, step, row)[sensor.data.clone()]);
                }
            });
        }
    }
}

#[test]
fn last_substep_sensors_have_the_bits_of_mj_step() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let last = recording.read("out_sensors");
    let sources = (0..recording.model.count(ObjectKind::Sensor)).map(Source::Sensor).collect();
    let mut batch = recording.batch(2, false, sources, Freshness::LastSubstep);
    recording.replay(&mut batch, |step, batch| {
        for row in 0..ROWS {
            oracle::assert_same_bits("sensors", batch.output_row(row).expect("a row"), part(&last, step, row));
        }
    });
}

/// MuJoCo evaluates some quantities once for a state, and remembers in `mjData` that it has. A row must not take over
/// what another row that used the same `mjData` has left there.
#[test]
fn energies_are_not_those_of_the_row_before() {
    let Some(recording) = Recording::make(walker(), 1) else {
        return;
    };
    let last = recording.read("out_sensors");
    let sensors: Vec<_> = recording.model.sensors().map(|sensor| sensor.data).collect();
    for name in ["kinetic", "potential", "robot_velocity", "robot_momentum"] {
        let index = recording.model.id(ObjectKind::Sensor, name).expect("a sensor");
        let mut batch = recording.batch(1, false, vec![Source::Sensor(index)], Freshness::LastSubstep);
        batch.refresh(Some(&[ROWS as u32 - 1])).expect("a row");
        for (step, controls) in recording.ctrl.chunks_exact(ROWS * recording.model.nu()).enumerate() {
            batch.step(&Step { controls: Some(controls), ..Step::default() }).expect("the request is valid");
            for row in 0..ROWS {
                let expected = &part(&last, step, row)[sensors[index].clone()];
                oracle::assert_same_bits(name, batch.output_row(row).expect("a row"), expected);
            }
            batch.refresh(Some(&[ROWS as u32 - 1])).expect("a row");
        }
    }
}

/// Sensors of two geoms, with which no other contacts are looked for, together: one must not hide what another needs.
#[test]
fn contacts_between_geoms_have_the_bits_of_mj_forward() {
    let Some(recording) = Recording::shared() else {
        return;
    };
    let fresh = recording.read("fresh_sensors");
    let sensors: Vec<_> = recording.model.sensors().map(|sensor| sensor.data).collect();
    let indices =
        ["foot_on_floor", "foot_on_box"].map(|name| recording.model.id(ObjectKind::Sensor, name).expect("a sensor"));
    let mut touched = 0;
    let mut batch = recording.batch(2, false, indices.map(Source::Sensor).to_vec(), Freshness::Fresh);
    recording.replay(&mut batch, |step, batch| {
        for row in 0..ROWS {
            let read = indices.map(|index| &part(&fresh, step, row)[sensors[index].clone()]).concat();
            touched += usize::from(read[0] > 0.0);
            oracle::assert_same_bits("contacts", batch.output_row(row).expect("a row"), &read);
        }
    });
    assert!(touched > ROWS * STEPS / 10, "the foot is on the floor in {touched} states only: a poor test");
}
