//! Rows that fail, and what becomes of the others.

mod common;

use std::panic;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{noise, oracle, start, walker};
use manege_mujoco::{
    Batch, BatchOptions, Control, FaultReason, Freshness, Model, RowFault, Source, StateField, Step, Unstable, Warning,
};

const ROWS: usize = 8;

fn walkers(threads: usize) -> Batch {
    let model = walker();
    let options = BatchOptions { rows: ROWS, threads, outputs: vec![Source::Qpos], ..BatchOptions::default() };
    let mut batch = Batch::new(&model, &options).expect("valid options");
    let (qpos, qvel) = start(&model, ROWS);
    for row in 0..ROWS {
        batch.qpos_mut(row).expect("a row").copy_from_slice(&qpos[row * model.nq()..][..model.nq()]);
        batch.qvel_mut(row).expect("a row").copy_from_slice(&qvel[row * model.nv()..][..model.nv()]);
    }
    batch.refresh(None).expect("all rows");
    batch
}

fn step(batch: &mut Batch, seed: u64) {
    let controls = noise(seed, ROWS * batch.model().nu());
    batch.step(&Step { substeps: 3, controls: Some(&controls), ..Step::default() }).expect("a valid request");
}

/// Checks that all rows but `except` are as in a batch in which nothing fails.
fn assert_others_unaffected(batch: &Batch, undisturbed: &Batch, except: &[usize]) {
    for row in (0..ROWS).filter(|row| !except.contains(row)) {
        let what = format!("row {row}");
        oracle::assert_same_bits(&what, batch.qpos(row).expect("a row"), undisturbed.qpos(row).expect("a row"));
        oracle::assert_same_bits(&what, batch.qvel(row).expect("a row"), undisturbed.qvel(row).expect("a row"));
        oracle::assert_same_bits(&what, batch.output_row(row).unwrap(), undisturbed.output_row(row).unwrap());
    }
}

/// Panics on purpose without the hook's message.
fn quietly(message: String) -> ! {
    panic::resume_unwind(Box::new(message))
}

#[test]
fn an_engine_error_fails_its_row_alone() {
    let (mut batch, mut undisturbed) = (walkers(2), walkers(1));
    let solver = batch.expand::<i32>("opt.solver").expect("an option");
    let newton = batch.model_field_row(solver, 0).expect("a row")[0];
    step(&mut batch, 1);
    step(&mut undisturbed, 1);
    let before: Vec<Vec<f64>> = [3, 6].map(|row| batch.qpos(row).expect("a row").to_vec()).into();

    // There is no such solver.
    for row in [3, 6] {
        batch.model_field_row_mut(solver, row).expect("a row")[0] = 77;
    }
    step(&mut batch, 2);
    step(&mut undisturbed, 2);
    let faults = batch.faults();
    assert_eq!(faults.iter().map(|fault| fault.row).collect::<Vec<_>>(), [3, 6]);
    for fault in faults {
        let FaultReason::Engine(message) = &fault.reason else { panic!("{fault:?}") };
        assert!(message.contains("solver"), "{message}");
    }
    assert_others_unaffected(&batch, &undisturbed, &[3, 6]);
    for (row, before) in [3, 6].into_iter().zip(&before) {
        assert_eq!(batch.qpos(row).expect("a row"), before);
        assert_eq!(batch.output_row(row).expect("a row"), before);
    }

    // A valid solver again, and the row goes on.
    for row in [3, 6] {
        batch.model_field_row_mut(solver, row).expect("a row")[0] = newton;
    }
    step(&mut batch, 3);
    step(&mut undisturbed, 3);
    assert_eq!(batch.faults(), []);
    assert_ne!(batch.qpos(3).expect("a row"), before[0]);
    assert_others_unaffected(&batch, &undisturbed, &[3, 6]);
}

#[test]
fn a_panic_in_a_control_fails_its_row_alone() {
    for failing_substep in [0, 2] {
        let (mut batch, mut undisturbed) = (walkers(2), walkers(1));
        let controls = |row: usize, substep: u32, _: &[f64], _: &[f64], ctrl: &mut [f64]| {
            ctrl.copy_from_slice(&noise(100 * row as u64 + u64::from(substep), 8));
        };
        let panicking = |row: usize, substep: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]| {
            controls(row, substep, qpos, qvel, ctrl);
            if row == 5 && substep == failing_substep {
                quietly(format!("no control for row {row}"));
            }
        };
        let before = batch.qpos(5).expect("a row").to_vec();
        batch.step(&Step { substeps: 4, control: Some(&panicking), ..Step::default() }).expect("a valid request");
        undisturbed.step(&Step { substeps: 4, control: Some(&controls), ..Step::default() }).expect("a valid request");

        let reason = FaultReason::Panic("no control for row 5".to_owned());
        assert_eq!(batch.faults(), [RowFault { row: 5, reason }]);
        assert_others_unaffected(&batch, &undisturbed, &[5]);
        for field in [StateField::Time, StateField::Ctrl, StateField::QaccWarmstart] {
            assert!(batch.state(field, 5).expect("a row").iter().all(|value| *value == 0.0), "{field:?}");
        }
        assert_eq!(batch.qpos(5).expect("a row"), before);
        assert_eq!(batch.output_row(5).expect("a row"), before);

        step(&mut batch, 9);
        assert_eq!(batch.faults(), []);
    }
}

/// A panic payload that is no text and panics again when it is dropped.
#[test]
fn an_odd_panic_is_contained() {
    struct Grudge;
    impl Drop for Grudge {
        fn drop(&mut self) {
            panic!("not even now");
        }
    }
    let mut batch = walkers(2);
    let control = |row: usize, _: u32, _: &[f64], _: &[f64], _: &mut [f64]| {
        if row == 1 {
            panic::resume_unwind(Box::new(Grudge));
        }
    };
    batch.step(&Step { control: Some(&control), ..Step::default() }).expect("a valid request");
    let reason = FaultReason::Panic("a panic without a message".to_owned());
    assert_eq!(batch.faults(), [RowFault { row: 1, reason }]);
}

#[test]
fn unstable_rows_are_reported_each_time() {
    let (mut batch, mut undisturbed) = (walkers(2), walkers(1));
    // Twice, since MuJoCo's counters are the same after the second time as after the first.
    for round in 0..2 {
        batch.qpos_mut(2).expect("a row")[0] = f64::NAN;
        batch.qvel_mut(4).expect("a row")[1] = f64::INFINITY;
        batch.state_mut(StateField::QfrcApplied, 5).expect("a row")[0] = 1e30;
        step(&mut batch, round);
        step(&mut undisturbed, round);
        let unstable = |row, quantity| RowFault { row, reason: FaultReason::Unstable(quantity) };
        assert_eq!(
            batch.faults(),
            [unstable(2, Unstable::Position), unstable(4, Unstable::Velocity), unstable(5, Unstable::Acceleration)]
        );
        assert_others_unaffected(&batch, &undisturbed, &[2, 4, 5]);
        for row in [2, 4, 5] {
            assert!(batch.output_row(row).expect("a row").iter().all(|value| value.is_finite()));
        }
        batch.reset_rows(Some(&[2, 4, 5])).expect("valid rows");
        step(&mut batch, 100 + round);
        step(&mut undisturbed, 100 + round);
        assert_eq!(batch.faults(), []);
    }
}

#[test]
fn a_bad_control_is_reported() {
    let mut batch = walkers(1);
    let mut controls = vec![0.0; ROWS * batch.model().nu()];
    controls[3 * batch.model().nu() + 1] = f64::NAN;
    batch.step(&Step { controls: Some(&controls), ..Step::default() }).expect("a valid request");
    assert_eq!(batch.faults(), [RowFault { row: 3, reason: FaultReason::Unstable(Unstable::Control) }]);
}

/// A state that goes bad in the last physics step is that call's fault, not the next one's.
#[test]
fn instability_is_reported_by_the_call_that_causes_it() {
    let model = Model::from_xml_str(
        "<mujoco><option timestep='1'/><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
    )
    .expect("a valid model");
    for (freshness, persistent) in
        [(Freshness::Fresh, false), (Freshness::Fresh, true), (Freshness::LastSubstep, false)]
    {
        let options = BatchOptions { outputs: vec![Source::Qvel], freshness, persistent, ..BatchOptions::default() };
        let mut batch = Batch::new(&model, &options).expect("valid options");
        batch.qvel_mut(0).expect("a row")[0] = 1e10;
        batch.qpos_mut(0).expect("a row")[0] = 1e9;
        batch.step(&Step::default()).expect("a valid request");
        assert_eq!(batch.faults(), [RowFault { row: 0, reason: FaultReason::Unstable(Unstable::Position) }]);
        batch.step(&Step::default()).expect("a valid request");
        assert_eq!(batch.faults(), []);
    }
}

#[test]
fn a_written_state_that_is_not_finite_is_reported_by_refresh() {
    let mut batch = walkers(2);
    batch.qpos_mut(7).expect("a row")[2] = f64::NAN;
    batch.refresh(Some(&[1, 7])).expect("valid rows");
    assert_eq!(batch.faults(), [RowFault { row: 7, reason: FaultReason::Unstable(Unstable::Position) }]);
    batch.reset_rows(Some(&[7])).expect("valid rows");
    batch.refresh(Some(&[7])).expect("valid rows");
    assert_eq!(batch.faults(), []);
}

/// Six boxes, the first row's on the floor and the second row's above it, with some memory for contacts.
fn boxes(memory: &str) -> Batch {
    let boxes: String =
        (0..6).map(|i| format!("<geom type='box' size='.1 .1 .1' pos='{} 0 0'/>", 0.3 * f64::from(i))).collect();
    let model = Model::from_xml_str(&format!(
        "<mujoco>
           <size memory='{memory}'/>
           <worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 .09'><freejoint/>{boxes}</body></worldbody>
         </mujoco>"
    ))
    .expect("a valid model");
    let mut batch = Batch::new(&model, &BatchOptions { rows: 2, ..BatchOptions::default() }).expect("valid options");
    batch.qpos_mut(1).expect("a row")[2] = 5.0;
    batch
}

#[test]
fn a_row_that_runs_out_of_memory_fails_alone() {
    let mut batch = boxes("44K");
    batch.step(&Step { substeps: 2, ..Step::default() }).expect("a valid request");
    let [RowFault { row: 0, reason: FaultReason::Engine(message) }] = batch.faults() else {
        panic!("{:?}", batch.faults())
    };
    assert!(message.contains("out of memory"), "{message}");
    assert_eq!(batch.state(StateField::Time, 0).expect("a row"), [0.0]);
    assert!(batch.qpos(1).expect("a row")[2] < 5.0);
}

/// With less memory still, MuJoCo drops constraints with a warning instead.
#[test]
fn dropped_constraints_are_counted() {
    let mut batch = boxes("24K");
    batch.step(&Step::default()).expect("a valid request");
    assert_eq!(batch.faults(), []);
    assert_eq!(batch.warnings(Warning::ConstraintsFull, 0).expect("a row"), 1);
    assert_eq!(batch.warnings(Warning::ConstraintsFull, 1).expect("a row"), 0);
    assert_eq!(batch.warnings(Warning::Inertia, 0).expect("a row"), 0);
}

#[test]
fn controls_see_the_state_of_their_row_and_substep() {
    struct Recorder {
        rows: Vec<AtomicU32>,
    }
    impl Control for Recorder {
        fn control(&self, row: usize, substep: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]) {
            assert_eq!(self.rows[row].fetch_add(1, Ordering::Relaxed), substep);
            // The row's own height and its own seed's velocity, both before the first step.
            if substep == 0 {
                assert_eq!((qpos[9], qvel[0]), (0.4, 0.5 * noise(1000 + row as u64, 20)[0]));
                assert_eq!(ctrl[0], row as f64 * 0.01);
            } else {
                assert_eq!(ctrl[0], row as f64 + f64::from(substep - 1));
                assert_ne!(qpos[9], 0.4);
            }
            ctrl[0] = row as f64 + f64::from(substep);
        }
    }
    let mut batch = walkers(2);
    let recorder = Recorder { rows: (0..ROWS).map(|_| AtomicU32::new(0)).collect() };
    let mut controls = vec![0.0; ROWS * 8];
    (0..ROWS).for_each(|row| controls[row * 8] = row as f64 * 0.01);
    let rows = [0, 3, 7];
    let step = Step { rows: Some(&rows), substeps: 5, controls: Some(&controls), control: Some(&recorder) };
    batch.step(&step).expect("a valid request");
    assert_eq!(batch.faults(), []);
    for (row, calls) in recorder.rows.iter().enumerate() {
        assert_eq!(calls.load(Ordering::Relaxed), if rows.contains(&(row as u32)) { 5 } else { 0 });
    }
}

/// Feedback computed in the callback gives what the same controls give when each substep is a call of its own.
#[test]
fn feedback_equals_single_substeps() {
    let law = |qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]| {
        for (joint, ctrl) in ctrl.iter_mut().enumerate() {
            *ctrl = 0.5 * qpos[14 + joint] - 0.1 * qvel[12 + joint];
        }
    };
    let control = |_: usize, _: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]| law(qpos, qvel, ctrl);
    let (mut fused, mut single) = (walkers(2), walkers(1));
    for _ in 0..10 {
        fused.step(&Step { substeps: 4, control: Some(&control), ..Step::default() }).expect("a valid request");
        for _ in 0..4 {
            let mut controls = vec![0.0; ROWS * 8];
            for (row, controls) in controls.chunks_exact_mut(8).enumerate() {
                law(single.qpos(row).expect("a row"), single.qvel(row).expect("a row"), controls);
            }
            single.step(&Step { controls: Some(&controls), ..Step::default() }).expect("a valid request");
        }
    }
    assert_others_unaffected(&fused, &single, &[]);
}
