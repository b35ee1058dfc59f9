//! Rows of one model, stepped together.

mod control;
mod dispatch;
mod field;
mod field_names;
mod output;
mod refresh;
mod snapshot;
mod state;
mod substep;
mod watched;

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use field::Storage;
use output::Plan;
use state::{Layout, Rows};

use crate::error::FaultReason;
use crate::{BatchError, Model, RowFault, ffi, install_log_handler};

pub use control::Control;
pub use dispatch::Step;
pub use field::{DataField, Element, ModelField};
pub use output::{Freshness, SensorSchedule, Source};
pub use state::{StateField, Warning};

/// What a batch is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchOptions {
    /// Number of rows, at least 1.
    pub rows: usize,
    /// Upper bound on threads that work at once, the caller's included, at least 1.
    pub threads: usize,
    /// Whether every row keeps a whole `mjData` of its own, rather than each thread one for all rows that it steps.
    /// Needs a hundred times the memory; required for models with sleep enabled.
    pub persistent: bool,
    /// What is copied into [`Batch::outputs`], back to back, for each row.
    pub outputs: Vec<Source>,
    /// When the outputs that derive from `qpos` and `qvel` are evaluated.
    pub freshness: Freshness,
    /// When sensors are evaluated.
    pub sensors: SensorSchedule,
}

impl Default for BatchOptions {
    /// One row, one thread, no outputs.
    fn default() -> Self {
        Self {
            rows: 1,
            threads: 1,
            persistent: false,
            outputs: Vec::new(),
            freshness: Freshness::Fresh,
            sensors: SensorSchedule::Declared,
        }
    }
}

/// Rows of one model, stepped together.
///
/// A row is MuJoCo's integration state: time, positions, velocities, activations, solver warm start, controls, applied
/// forces and the rest of what determines the next step. Stepping a row gives the same bits whatever the number of rows
/// and threads and whatever happens in other rows.
///
/// Calls take `&mut self`, so that two threads cannot use a batch at once:
///
/// ```compile_fail,E0499
/// # use manege_mujoco::{Batch, Step};
/// fn race(batch: &mut Batch) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| batch.step(&Step::default()));
///         scope.spawn(|| batch.step(&Step::default()));
///     });
/// }
/// ```
///
/// Nor can a borrowed slice of a row outlive the next call:
///
/// ```compile_fail,E0502
/// # use manege_mujoco::{Batch, Step};
/// fn stale(batch: &mut Batch) -> f64 {
///     let qpos = batch.qpos(0).unwrap();
///     batch.step(&Step::default()).unwrap();
///     qpos[0]
/// }
/// ```
pub struct Batch {
    raw: NonNull<ffi::mjBatch>,
    model: Model,
    rows: usize,
    threads: usize,
    persistent: bool,
    state: Rows,
    layout: Layout,
    /// The state of a row that has just been made.
    initial: Box<[f64]>,
    plan: Plan,
    outputs: Box<[f64]>,
    /// Whether a row's `mjData` holds the position and velocity stages of the row's state. Of use, and kept, where the plan
    /// says that physics steps [rotate](output::Rotation).
    evaluated: Box<[bool]>,
    faults: Vec<RowFault>,
    /// Faults that the worker threads note during a call; empty between calls.
    noted: Mutex<Vec<RowFault>>,
    fields: Vec<Storage>,
}

// SAFETY: a batch owns its `mjBatch` and everything that its pointers reach, and MuJoCo ties none of that to a thread:
// it makes calls on any thread, installs what is thread-local when a call begins, and joins its workers when the batch
// is deleted. Shared references only read memory that nothing writes between calls, and calls take `&mut self`.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

impl Batch {
    /// Makes rows in the model's default state, with outputs evaluated.
    ///
    /// # Errors
    /// [`BatchError::Count`] and [`BatchError::Index`] for options that do not fit; [`BatchError::Make`] if MuJoCo cannot
    /// batch the model.
    pub fn new(model: &Model, options: &BatchOptions) -> Result<Self, BatchError> {
        install_log_handler();
        let BatchOptions { rows, threads, persistent, .. } = *options;
        let (nsim, nthread) = (count("rows", rows)?, count("threads", threads)?);
        let plan = Plan::new(model, options)?;

        let config = ffi::mjBatchConfig { nthread, persistent };
        let mut message: [c_char; 512] = [0; 512];
        // SAFETY: the model is valid and copied, and `message` has the length that is passed.
        let raw =
            unsafe { ffi::mjb_makeBatch(model.raw(), nsim, &config, message.as_mut_ptr(), message.len() as c_int) };
        let Some(raw) = NonNull::new(raw) else {
            // SAFETY: MuJoCo has written a NUL-terminated message, or left the zeros.
            let message = unsafe { CStr::from_ptr(message.as_ptr()) }.to_string_lossy().into_owned();
            return Err(BatchError::Make(message));
        };
        // SAFETY: `raw` is a batch of `rows` rows; its state rows stay where they are while it lives.
        let (state, layout, threads) = unsafe {
            (Rows::new(raw, rows), Layout::new(raw), usize::try_from(ffi::mjb_nthread(raw.as_ptr())).unwrap_or(threads))
        };

        let mut batch = Self {
            raw,
            model: model.clone(),
            rows,
            threads,
            persistent,
            initial: state.row(0).into(),
            state,
            layout,
            outputs: vec![0.0; rows * plan.width()].into(),
            plan,
            evaluated: vec![false; rows].into(),
            faults: Vec::new(),
            noted: Mutex::new(Vec::new()),
            fields: Vec::new(),
        };
        batch.refresh(None)?;
        Ok(batch)
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of threads that calls run on, the caller's included: what was asked for, but no more than rows.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whether every row keeps a whole `mjData`.
    #[must_use]
    pub fn persistent(&self) -> bool {
        self.persistent
    }

    /// The model that the rows are simulations of.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The rows that failed in the last call, in ascending order.
    #[must_use]
    pub fn faults(&self) -> &[RowFault] {
        &self.faults
    }

    /// Checks a list of rows: that they exist, and are ascending and unique.
    ///
    /// # Errors
    /// [`BatchError::Row`] names the first that is not.
    pub fn check_rows(&self, rows: &[u32]) -> Result<(), BatchError> {
        self.select(Some(rows)).map(|_| ())
    }

    /// Checks a selection of rows before MuJoCo is given it.
    fn select<'a>(&self, rows: Option<&'a [u32]>) -> Result<Selection<'a>, BatchError> {
        if let Some(rows) = rows {
            let mut least = 0;
            for &row in rows {
                if row < least || row as usize >= self.rows {
                    return Err(BatchError::Row { row, rows: self.rows });
                }
                least = row + 1;
            }
        }
        Ok(Selection(rows))
    }

    fn check_row(&self, row: usize) -> Result<(), BatchError> {
        if row < self.rows {
            return Ok(());
        }
        Err(BatchError::Row { row: u32::try_from(row).unwrap_or(u32::MAX), rows: self.rows })
    }

    /// Notes that the rows' states or models are not what their `mjData` was evaluated for.
    fn invalidate(&mut self, selection: Selection<'_>) {
        selection.rows(self.rows).for_each(|row| self.evaluated[row as usize] = false);
    }

    /// Gathers the faults of a call that MuJoCo says `failed` on that many rows.
    fn collect(&mut self, selection: Selection<'_>, failed: c_int) {
        self.faults.clear();
        let noted = self.noted.get_mut().unwrap_or_else(PoisonError::into_inner);
        if failed == 0 && noted.is_empty() {
            return;
        }
        self.faults.append(noted);
        for row in selection.rows(self.rows) {
            // SAFETY: the row exists, so it has a status and a NUL-terminated message.
            unsafe {
                if *ffi::mjb_status(self.raw.as_ptr()).add(row as usize) != 0 {
                    let message = CStr::from_ptr(ffi::mjb_error(self.raw.as_ptr(), row as c_int));
                    let reason = FaultReason::Engine(message.to_string_lossy().trim_end().to_owned());
                    self.faults.push(RowFault { row, reason });
                }
            }
        }
        self.faults.sort_by_key(|fault| fault.row);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: the batch is valid, and no call on it is under way.
        unsafe { ffi::mjb_deleteBatch(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("model", &self.model)
            .field("rows", &self.rows)
            .field("threads", &self.threads)
            .field("persistent", &self.persistent)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// Rows of a batch, in range, ascending and unique; `None` for all.
#[derive(Clone, Copy)]
struct Selection<'a>(Option<&'a [u32]>);

impl<'a> Selection<'a> {
    /// Makes a batch call on the rows, and gives its count of failed rows.
    fn call(self, call: impl FnOnce(*const c_int, c_int) -> c_int) -> c_int {
        match self.0 {
            // MuJoCo need not be asked, and might take a list without rows for all rows.
            Some([]) => 0,
            // Both the count and the indices fit: they are at most the number of rows.
            Some(rows) => call(rows.as_ptr().cast(), rows.len() as c_int),
            None => call(ptr::null(), 0),
        }
    }

    fn rows(self, rows: usize) -> impl Iterator<Item = u32> + use<'a> {
        let all = if self.0.is_none() { 0..rows as u32 } else { 0..0 };
        self.0.unwrap_or_default().iter().copied().chain(all)
    }
}

/// A count that MuJoCo takes as `int`.
fn count(what: &'static str, value: usize) -> Result<c_int, BatchError> {
    match c_int::try_from(value) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(BatchError::Count { what, value }),
    }
}
