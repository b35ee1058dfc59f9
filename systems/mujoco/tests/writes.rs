//! Writing and resetting rows' states.

mod common;

use common::{noise, oracle, start, walker};
use manege_mujoco::{Batch, BatchOptions, Freshness, ObjectKind, Source, Stage, StateField, Step};

const ROWS: usize = 6;

/// A batch that has been stepped until its rows differ in everything.
fn stepped(outputs: Vec<Source>, freshness: Freshness, threads: usize, persistent: bool) -> Batch {
    let model = walker();
    let options = BatchOptions { rows: ROWS, threads, outputs, freshness, persistent, ..BatchOptions::default() };
    let mut batch = Batch::new(&model, &options).expect("valid options");
    let (qpos, qvel) = start(&model, ROWS);
    for row in 0..ROWS {
        batch.qpos_mut(row).expect("a row").copy_from_slice(&qpos[row * model.nq()..][..model.nq()]);
        batch.qvel_mut(row).expect("a row").copy_from_slice(&qvel[row * model.nv()..][..model.nv()]);
    }
    advance(&mut batch, None, 1..20);
    batch
}

/// Steps rows with controls of their own, the same ones each time.
fn advance(batch: &mut Batch, rows: Option<&[u32]>, steps: std::ops::Range<u64>) {
    for index in steps {
        let controls = noise(index, ROWS * batch.model().nu());
        let step = Step { rows, substeps: 3, controls: Some(&controls), ..Step::default() };
        batch.step(&step).expect("a valid request");
        assert_eq!(batch.faults(), []);
    }
}

/// Everything that determines a row's future.
fn whole_state(batch: &Batch, row: usize) -> Vec<f64> {
    let fields = [
        StateField::Time,
        StateField::Qpos,
        StateField::Qvel,
        StateField::QaccWarmstart,
        StateField::Ctrl,
        StateField::QfrcApplied,
        StateField::XfrcApplied,
    ];
    fields.into_iter().flat_map(|field| batch.state(field, row).expect("a row").to_vec()).collect()
}

#[test]
fn outputs_of_written_rows_have_the_bits_of_mj_forward() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let model = walker();
    let (qpos, qvel) = start(&model, ROWS + 3);
    let (qpos, qvel) = (&qpos[3 * model.nq()..], &qvel[3 * model.nv()..]);
    let ctrl = noise(99, ROWS * model.nu());
    model.save_mjb(path.join("model.mjb")).expect("the directory is writable");
    oracle::write(path, "qpos", qpos);
    oracle::write(path, "qvel", qvel);
    oracle::write(path, "ctrl", &ctrl);
    if !oracle::run(common::file("oracle/forward.py"), path) {
        return;
    }
    let (sensors, xpos) = (oracle::read(path, "sensors"), oracle::read(path, "xpos"));

    let written = [0, 2, 3, 5];
    let check = |what: &str, sources: Vec<Source>, (freshness, persistent), expected: &dyn Fn(usize) -> Vec<f64>| {
        let mut batch = stepped(sources, freshness, 2, persistent);
        let before = batch.outputs().to_vec();
        batch.reset_rows(Some(&written)).expect("valid rows");
        for row in written.map(|row| row as usize) {
            batch.qpos_mut(row).expect("a row").copy_from_slice(&qpos[row * model.nq()..][..model.nq()]);
            batch.qvel_mut(row).expect("a row").copy_from_slice(&qvel[row * model.nv()..][..model.nv()]);
            let controls = batch.state_mut(StateField::Ctrl, row).expect("a row");
            controls.copy_from_slice(&ctrl[row * model.nu()..][..model.nu()]);
        }
        batch.refresh(Some(&written)).expect("valid rows");
        for row in 0..ROWS {
            let actual = batch.output_row(row).expect("a row");
            let before = &before[row * actual.len()..][..actual.len()];
            let expected = if written.contains(&(row as u32)) { expected(row) } else { before.to_vec() };
            oracle::assert_same_bits(&format!("{what}, row {row}"), actual, &expected);
        }
    };

    let body = model.id(ObjectKind::Body, "left_rear_shin").expect("a body");
    for mode in [(Freshness::Fresh, false), (Freshness::Fresh, true), (Freshness::LastSubstep, false)] {
        check("body", vec![Source::BodyPosition(body)], mode, &|row| {
            xpos[(row * model.count(ObjectKind::Body) + body) * 3..][..3].to_vec()
        });
        for (index, sensor) in model.sensors().enumerate() {
            check(sensor.name, vec![Source::Sensor(index)], mode, &|row| {
                sensors[row * model.nsensordata()..][..model.nsensordata()][sensor.data.clone()].to_vec()
            });
        }
        let all = (0..model.count(ObjectKind::Sensor)).map(Source::Sensor).collect();
        check("all sensors", all, mode, &|row| sensors[row * model.nsensordata()..][..model.nsensordata()].to_vec());
    }
}

#[test]
fn refreshing_changes_no_state() {
    let model = walker();
    let sensors: Vec<_> = (0..model.count(ObjectKind::Sensor)).map(Source::Sensor).collect();
    for persistent in [false, true] {
        let mut batch = stepped(sensors.clone(), Freshness::Fresh, 2, persistent);
        let before: Vec<_> = (0..ROWS).map(|row| whole_state(&batch, row)).collect();
        batch.refresh(None).expect("all rows");
        for (row, before) in before.iter().enumerate() {
            oracle::assert_same_bits(&format!("row {row}"), &whole_state(&batch, row), before);
        }
    }
}

/// What rows do depends neither on other rows' resets nor on which rows share a call.
#[test]
fn resetting_a_subset_leaves_the_other_rows_alone() {
    for persistent in [false, true] {
        resets_leave_other_rows_alone(persistent);
    }
}

fn resets_leave_other_rows_alone(persistent: bool) {
    let mut plain = stepped(vec![Source::Qpos], Freshness::Fresh, 1, false);
    let mut mixed = stepped(vec![Source::Qpos], Freshness::Fresh, 2, persistent);
    mixed.reset_rows(Some(&[1, 4])).expect("valid rows");
    mixed.qpos_mut(4).expect("a row")[2] += 0.3;
    mixed.refresh(Some(&[1, 4])).expect("valid rows");

    advance(&mut plain, None, 20..40);
    advance(&mut mixed, None, 20..30);
    advance(&mut mixed, Some(&[0, 2, 3]), 30..40);
    advance(&mut mixed, Some(&[5]), 30..40);
    for row in [0, 2, 3, 5] {
        oracle::assert_same_bits(&format!("row {row}"), &whole_state(&mixed, row), &whole_state(&plain, row));
    }
    assert_ne!(whole_state(&mixed, 1), whole_state(&plain, 1));
}

/// A reset row is a new row: nothing of its past is left.
#[test]
fn a_reset_row_behaves_as_a_new_one() {
    for persistent in [false, true] {
        reset_rows_are_new(persistent);
    }
}

fn reset_rows_are_new(persistent: bool) {
    let model = walker();
    let mut used = stepped(vec![Source::Qpos], Freshness::Fresh, 2, persistent);
    used.state_mut(StateField::XfrcApplied, 2).expect("a row").fill(1.0);
    used.reset_rows(None).expect("all rows");
    let options = BatchOptions { rows: ROWS, ..BatchOptions::default() };
    let mut new = Batch::new(&model, &options).expect("valid options");
    for row in 0..ROWS {
        oracle::assert_same_bits(&format!("row {row}"), &whole_state(&used, row), &whole_state(&new, row));
        assert_eq!(used.qpos(row).expect("a row"), model.qpos0());
    }
    advance(&mut used, None, 0..30);
    advance(&mut new, None, 0..30);
    for row in 0..ROWS {
        oracle::assert_same_bits(&format!("row {row}"), &whole_state(&used, row), &whole_state(&new, row));
    }
}

/// In a persistent batch a physics step goes on from what the one before has evaluated. Whatever is written in between has to
/// be seen nevertheless, refreshed or not: the rows do what rows without a memory do.
#[test]
fn nothing_that_is_written_goes_unseen() {
    let sensors: Vec<_> = (0..walker().count(ObjectKind::Sensor)).map(Source::Sensor).collect();
    let mut batches = [false, true].map(|persistent| stepped(sensors.clone(), Freshness::Fresh, 2, persistent));
    let mut check = |what: &str, write: &dyn Fn(&mut Batch)| {
        for batch in &mut batches {
            write(batch);
            advance(batch, None, 40..42);
        }
        let [shared, persistent] = &batches;
        for row in 0..ROWS {
            let what = format!("{what}, row {row}");
            oracle::assert_same_bits(&what, &whole_state(persistent, row), &whole_state(shared, row));
        }
        oracle::assert_same_bits(what, persistent.outputs(), shared.outputs());
    };
    check("nothing", &|_| ());
    check("positions", &|batch| batch.qpos_mut(1).expect("a row")[2] += 0.1);
    check("velocities", &|batch| batch.qvel_mut(2).expect("a row")[0] += 1.0);
    check("forces", &|batch| batch.state_mut(StateField::QfrcApplied, 3).expect("a row")[0] = 5.0);
    check("one row's model", &|batch| {
        let mass = batch.expand::<f64>("body_mass").expect("a field");
        batch.model_field_row_mut(mass, 4).expect("a row")[2] *= 1.5;
    });
    check("all models", &|batch| {
        let damping = batch.expand::<f64>("dof_damping").expect("a field");
        batch.model_field_mut(damping).expect("a field").iter_mut().for_each(|damping| *damping *= 2.0);
    });
    check("constants", &|batch| batch.set_const(None).expect("all rows"));
    check("a refresh", &|batch| batch.refresh(Some(&[0, 5])).expect("rows"));
    check("a reset", &|batch| batch.reset_rows(Some(&[0, 5])).expect("rows"));
    check("MuJoCo's own loop", &|batch| batch.step_native(Some(&[1]), 3, Stage::None).expect("a row"));
    check("a forward pass", &|batch| batch.forward(None, Stage::Position).expect("all rows"));
}
