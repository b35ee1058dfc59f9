//! Steady-state calls do not allocate.

// A counting allocator.
#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{noise, walker};
use manege_mujoco::{Batch, BatchOptions, ObjectKind, Source, Step};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// The only test of this file: others would allocate at the same time.
#[test]
fn steady_state_calls_do_not_allocate() {
    let model = walker();
    let mut outputs = vec![Source::Qpos, Source::Qvel, Source::BodyLinearVelocity(2)];
    outputs.extend((0..model.count(ObjectKind::Sensor)).map(Source::Sensor));
    let options = BatchOptions { rows: 16, threads: 2, outputs, ..BatchOptions::default() };
    let mut batch = Batch::new(&model, &options).expect("valid options");
    let mass = batch.expand::<f64>("body_mass").expect("a field");
    batch.model_field_row_mut(mass, 3).expect("a row")[2] = 8.0;
    batch.set_const(None).expect("all rows");
    let controls = noise(1, 16 * model.nu());
    let control = |_: usize, _: u32, qpos: &[f64], _: &[f64], ctrl: &mut [f64]| ctrl[0] = qpos[14];
    let rows = [1, 2, 5];

    let mut round = || {
        for rows in [None, Some(&rows[..])] {
            let step = Step { rows, substeps: 2, controls: Some(&controls), control: Some(&control) };
            batch.step(&step).expect("a valid request");
            assert!(batch.faults().is_empty());
        }
        batch.reset_rows(Some(&rows)).expect("valid rows");
        batch.model_field_row_mut(mass, 5).expect("a row")[2] += 0.5;
        batch.set_const(Some(&rows)).expect("valid rows");
        batch.refresh(Some(&rows)).expect("valid rows");
    };
    round();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    (0..20).for_each(|_| round());
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
    assert!(before > 0, "the allocator counts");
}
