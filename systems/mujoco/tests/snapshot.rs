//! Saving a batch and going on from there.

mod common;

use common::{noise, start, walker};
use manege_mujoco::{Batch, BatchError, BatchOptions, Model, Source, StateField, Step};

const ROWS: usize = 3;

fn batch(model: &Model, threads: usize, persistent: bool) -> Batch {
    let outputs = vec![Source::Qpos, Source::Qvel, Source::BodyPosition(3), Source::Sensor(0)];
    Batch::new(model, &BatchOptions { rows: ROWS, threads, persistent, outputs, ..BatchOptions::default() }).unwrap()
}

fn started(model: &Model, threads: usize, persistent: bool) -> Batch {
    let mut batch = batch(model, threads, persistent);
    let (qpos, qvel) = start(model, ROWS);
    for row in 0..ROWS {
        batch.qpos_mut(row).unwrap().copy_from_slice(&qpos[row * model.nq()..][..model.nq()]);
        batch.qvel_mut(row).unwrap().copy_from_slice(&qvel[row * model.nv()..][..model.nv()]);
    }
    batch
}

fn step(batch: &mut Batch, seed: u64) {
    let controls = noise(seed, ROWS * batch.model().nu());
    batch.step(&Step { substeps: 2, controls: Some(&controls), ..Step::default() }).unwrap();
}

/// Makes the rows' models differ: masses with what derives from them, a whole-number option and a flag.
fn vary(batch: &mut Batch) {
    let mass = batch.expand::<f64>("body_mass").unwrap();
    let iterations = batch.expand::<i32>("opt.iterations").unwrap();
    let limited = batch.expand::<bool>("actuator_forcelimited").unwrap();
    for row in 0..ROWS {
        batch.model_field_row_mut(mass, row).unwrap().iter_mut().for_each(|mass| *mass *= 1.0 + 0.2 * row as f64);
        batch.model_field_row_mut(iterations, row).unwrap()[0] = 3 + row as i32;
        batch.model_field_row_mut(limited, row).unwrap()[0] = row == 1;
    }
    batch.set_const(None).unwrap();
}

fn everything(batch: &Batch) -> Vec<u64> {
    let mut state = Vec::new();
    batch.save(&mut state);
    state.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_loaded_batch_goes_on_bit_for_bit() {
    let model = walker();
    for persistent in [false, true] {
        let mut original = started(&model, 1, persistent);
        vary(&mut original);
        (0..20).for_each(|k| step(&mut original, k));
        let mut saved = vec![7.0];
        original.save(&mut saved);
        // Into a new batch, whose rows have no values of their own yet.
        let mut twin = batch(&model, 2, persistent);
        twin.load(&saved[1..]).unwrap();
        assert_eq!(twin.outputs(), original.outputs());
        assert_eq!(
            twin.state(StateField::QaccWarmstart, 2).unwrap(),
            original.state(StateField::QaccWarmstart, 2).unwrap()
        );
        assert!(twin.state(StateField::QaccWarmstart, 2).unwrap().iter().any(|&value| value != 0.0));
        for k in 20..60 {
            step(&mut original, k);
            step(&mut twin, k);
            assert_eq!(everything(&original), everything(&twin), "persistent: {persistent}, step {k}");
        }
    }
}

#[test]
fn loading_a_batch_without_values_of_its_own_brings_the_models_back() {
    let model = walker();
    let mut plain = started(&model, 1, false);
    step(&mut plain, 0);
    let mut saved = Vec::new();
    plain.save(&mut saved);
    let mut varied = started(&model, 1, false);
    vary(&mut varied);
    varied.load(&saved).unwrap();
    for k in 1..20 {
        step(&mut plain, k);
        step(&mut varied, k);
        assert_eq!(plain.outputs(), varied.outputs(), "step {k}");
    }
}

#[test]
fn numbers_of_another_batch_are_refused_and_change_nothing() {
    let model = walker();
    let mut varied = started(&model, 1, false);
    vary(&mut varied);
    step(&mut varied, 0);
    let before = everything(&varied);
    let mut saved = Vec::new();
    varied.save(&mut saved);
    let longer: Vec<f64> = saved.iter().copied().chain([0.0]).collect();
    for wrong in [&[], &saved[..10], &saved[..saved.len() - 1], &longer[..]] {
        let error = varied.load(wrong).unwrap_err();
        assert!(matches!(error, BatchError::Size { actual, .. } if actual == wrong.len()), "{error}");
        assert_eq!(everything(&varied), before);
    }
    let mut smaller = Batch::new(&model, &BatchOptions { rows: ROWS - 1, ..BatchOptions::default() }).unwrap();
    assert!(matches!(smaller.load(&saved), Err(BatchError::Size { .. })));
}
