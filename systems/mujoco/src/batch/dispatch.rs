//! Calls that work on many rows.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use mujoco_rs::mujoco_c::{mjData, mjModel, mjtState, mjtWarning};

use super::control::guard;
use super::output::{Plan, Rotation};
use super::refresh::{Refresh, forget_evaluated};
use super::{Batch, Control, count, substep};
use crate::error::{FaultReason, Unstable};
use crate::model::{array, array_mut};
use crate::{BatchError, RowFault, Stage, ffi};

/// What [`Batch::step`] does.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    /// The rows to step, ascending and unique; `None` for all.
    pub rows: Option<&'a [u32]>,
    /// Number of physics steps, at least 1.
    pub substeps: u32,
    /// Controls of *all* rows, `rows × nu` values; `None` to keep those in the rows' states.
    pub controls: Option<&'a [f64]>,
    /// Recomputes controls before every physics step, on the threads that step the rows.
    pub control: Option<&'a dyn Control>,
}

impl Default for Step<'_> {
    /// One physics step of all rows with the controls that they have.
    fn default() -> Self {
        Self { rows: None, substeps: 1, controls: None, control: None }
    }
}

/// What the row callbacks read and write.
struct Context<'a> {
    plan: &'a Plan,
    /// Whether each row's `mjData` is evaluated at its state; each row's callback reads and writes that row's.
    evaluated: *mut bool,
    /// The output buffer, of which each row's callback writes that row's part.
    outputs: *mut f64,
    /// The batch's state rows, each of which is written when its callback has returned.
    states: *const f64,
    state_width: usize,
    substeps: u32,
    /// Controls of all rows, or null.
    controls: *const f64,
    control: Option<&'a dyn Control>,
    nq: usize,
    nv: usize,
    nu: usize,
    faults: &'a Mutex<Vec<RowFault>>,
}

impl Context<'_> {
    fn note(&self, row: u32, reason: FaultReason) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(RowFault { row, reason });
    }
}

/// The warnings after which a row cannot be trusted.
const UNSTABLE: [(mjtWarning, Unstable); 4] = [
    (mjtWarning::mjWARN_BADQPOS, Unstable::Position),
    (mjtWarning::mjWARN_BADQVEL, Unstable::Velocity),
    (mjtWarning::mjWARN_BADQACC, Unstable::Acceleration),
    (mjtWarning::mjWARN_BADCTRL, Unstable::Control),
];

impl Batch {
    /// Advances rows by some physics steps in one dispatch, and copies their outputs.
    ///
    /// Rows that fail are listed by [`faults`](Self::faults); the others are unaffected.
    ///
    /// # Errors
    /// [`BatchError::Row`], [`BatchError::Size`] or [`BatchError::Count`] for a request that does not fit the batch; nothing
    /// was stepped.
    pub fn step(&mut self, step: &Step<'_>) -> Result<(), BatchError> {
        count("substeps", step.substeps as usize)?;
        if let Some(controls) = step.controls {
            let expected = self.rows * self.model.nu();
            if controls.len() != expected {
                return Err(BatchError::Size { buffer: "controls", expected, actual: controls.len() });
            }
        }
        self.apply(step, step_row, true)
    }

    /// Brings the outputs of rows whose state or model fields were written up to date, without stepping them.
    ///
    /// States stay as they were written. If one is not finite, that is a [fault](Self::faults) of its row, and the outputs
    /// are those of the model's default state.
    ///
    /// # Errors
    /// [`BatchError::Row`] for rows that do not exist, or are not ascending and unique.
    pub fn refresh(&mut self, rows: Option<&[u32]>) -> Result<(), BatchError> {
        self.apply(&Step { rows, ..Step::default() }, refresh_row, false)
    }

    /// Runs a callback on rows. With `save`, what it leaves in a row's `mjData` becomes the row's state.
    fn apply(&mut self, step: &Step<'_>, callback: ffi::mjfBatchFunc, save: bool) -> Result<(), BatchError> {
        let selection = self.select(step.rows)?;
        let mut context = Context {
            plan: &self.plan,
            evaluated: self.evaluated.as_mut_ptr(),
            outputs: self.outputs.as_mut_ptr(),
            states: self.state.as_ptr(),
            state_width: self.state.width(),
            substeps: step.substeps,
            controls: step.controls.map_or(ptr::null(), <[f64]>::as_ptr),
            control: step.control,
            nq: self.model.nq(),
            nv: self.model.nv(),
            nu: self.model.nu(),
            faults: &self.noted,
        };
        let argument = (&raw mut context).cast::<c_void>();
        let failed = selection.call(|ids, nid| {
            // SAFETY: the selection is valid, and the callbacks take a `Context`, which lives until all rows are done.
            // What it refers to is not accessed otherwise meanwhile, except for the state row that MuJoCo writes after
            // a callback on that row has returned.
            unsafe { ffi::mjb_apply(self.raw.as_ptr(), ids, nid, callback, argument, c_int::from(save)) }
        });
        self.collect(selection, failed);
        Ok(())
    }

    /// Runs MuJoCo's own loop of physics steps, then the stages up to `stage` at the new state. There is no control
    /// callback, and [`outputs`](Self::outputs) stay as they are; bound [data fields](Self::bind) are refreshed.
    ///
    /// # Errors
    /// [`BatchError::Row`] or [`BatchError::Count`] for a request that does not fit the batch; nothing was stepped.
    pub fn step_native(&mut self, rows: Option<&[u32]>, substeps: u32, stage: Stage) -> Result<(), BatchError> {
        let nstep = count("substeps", substeps as usize)?;
        let selection = self.select(rows)?;
        self.invalidate(selection);
        let failed = selection.call(|ids, nid| {
            // SAFETY: the selection, the number of steps and the stage are valid.
            unsafe { ffi::mjb_step(self.raw.as_ptr(), ids, nid, nstep, stage as c_int) }
        });
        self.collect(selection, failed);
        Ok(())
    }

    /// Evaluates the stages up to `stage` at the rows' states. [`outputs`](Self::outputs) stay as they are; bound
    /// [data fields](Self::bind) are refreshed.
    ///
    /// # Errors
    /// [`BatchError::Row`] for rows that do not exist, or are not ascending and unique.
    pub fn forward(&mut self, rows: Option<&[u32]>, stage: Stage) -> Result<(), BatchError> {
        let selection = self.select(rows)?;
        self.invalidate(selection);
        let failed = selection.call(|ids, nid| {
            // SAFETY: the selection and the stage are valid.
            unsafe { ffi::mjb_forward(self.raw.as_ptr(), ids, nid, stage as c_int) }
        });
        self.collect(selection, failed);
        Ok(())
    }

    /// Recomputes what MuJoCo derives from the rows' model fields when it compiles a model, such as inverse weights.
    ///
    /// To be called after masses, centres of mass, inertias or armatures were written. Frictions, damping, gains, ranges
    /// and options need it not.
    ///
    /// # Errors
    /// [`BatchError::Row`] for rows that do not exist, or are not ascending and unique.
    pub fn set_const(&mut self, rows: Option<&[u32]>) -> Result<(), BatchError> {
        let selection = self.select(rows)?;
        self.invalidate(selection);
        let failed = selection.call(|ids, nid| {
            // SAFETY: the selection is valid.
            unsafe { ffi::mjb_setConst(self.raw.as_ptr(), ids, nid) }
        });
        self.collect(selection, failed);
        Ok(())
    }
}

/// Steps one row.
///
/// # Safety
/// Called by `mjb_apply` with a [`Context`].
///
/// MuJoCo leaves a failed row by a `longjmp` out of the `mj_*` function that raised the error, past this frame. So nothing
/// with a destructor is alive here across a call of one; user code runs between them, inside [`guard`], which has
/// returned before the next call.
unsafe extern "C-unwind" fn step_row(model: *const mjModel, data: *mut mjData, row: c_int, argument: *mut c_void) {
    // SAFETY: `apply` passes a context that outlives the call and that callbacks only read.
    let context = unsafe { &*argument.cast::<Context<'_>>().cast_const() };
    let row = row.unsigned_abs();
    // SAFETY: MuJoCo passes a valid model and data that belong together, and calls one callback for each row.
    unsafe {
        clear_unstable(data);
        forget_evaluated(data);
        let offset = row as usize * context.nu;
        if !context.controls.is_null() {
            ptr::copy_nonoverlapping(context.controls.add(offset), (*data).ctrl, context.nu);
        }
        let plan = context.plan;
        let rotation = plan.rotation.as_ref().filter(|_| substep::is_plain(model));
        let evaluated = context.evaluated.add(row as usize);
        if let Some(rotation) = rotation
            && !*evaluated
        {
            substep::evaluate(model, data, &rotation.between);
        }
        // A row that fails half-way is left without being evaluated.
        *evaluated = false;
        for substep in 0..context.substeps {
            if let Some(control) = context.control
                && !call_control(context, control, data, row, substep)
            {
                // The state row is still what it was before the call; saving it again changes nothing.
                let state = context.states.add(row as usize * context.state_width);
                ffi::mj_setState(model, data, state, INTEGRATION);
                return;
            }
            let last = substep + 1 == context.substeps;
            let sensors = last && plan.sensors_of_last_step || plan.sensors_of_every_step;
            match rotation {
                Some(Rotation { last: reached, .. }) if last => substep::rotate(model, data, sensors, reached),
                Some(Rotation { between, .. }) => substep::rotate(model, data, sensors, between),
                None => substep::step(model, data, sensors),
            }
            if unstable(data).is_some() {
                break;
            }
        }
        if rotation.is_none() {
            finish_row(context, &plan.after_step, model, data, row);
        } else {
            publish_row(context, model, data, row);
            *evaluated = unstable(data).is_none();
        }
    }
}

/// Evaluates the outputs of one row's state.
///
/// # Safety
/// As for [`step_row`].
unsafe extern "C-unwind" fn refresh_row(model: *const mjModel, data: *mut mjData, row: c_int, argument: *mut c_void) {
    // SAFETY: as in `step_row`.
    let context = unsafe { &*argument.cast::<Context<'_>>().cast_const() };
    // SAFETY: as in `step_row`.
    unsafe {
        let row = row.unsigned_abs();
        clear_unstable(data);
        *context.evaluated.add(row as usize) = false;
        finish_row(context, &context.plan.after_write, model, data, row);
    }
}

const INTEGRATION: c_int = mjtState::mjSTATE_INTEGRATION as c_int;

/// Checks the final state, evaluates what the outputs need, and copies them.
///
/// # Safety
/// As for [`step_row`].
unsafe fn finish_row(context: &Context<'_>, refresh: &Refresh, model: *const mjModel, data: *mut mjData, row: u32) {
    // SAFETY: as in `step_row`.
    unsafe {
        // What `mj_step` would check at its next call: a state that went bad is this call's fault, not the next one's.
        substep::evaluate(model, data, refresh);
        publish_row(context, model, data, row);
    }
}

/// Copies the outputs of an evaluated row, and notes whether it has become unstable.
///
/// # Safety
/// As for [`step_row`].
unsafe fn publish_row(context: &Context<'_>, model: *const mjModel, data: *mut mjData, row: u32) {
    // SAFETY: as in `step_row`.
    unsafe {
        let width = context.plan.width();
        context.plan.copy_out(model, data, context.outputs.add(row as usize * width));
        if let Some(quantity) = unstable(data) {
            context.note(row, FaultReason::Unstable(quantity));
        }
    }
}

/// Calls the control on a row; gives whether it returned.
///
/// # Safety
/// As for [`step_row`].
unsafe fn call_control(
    context: &Context<'_>,
    control: &dyn Control,
    data: *mut mjData,
    row: u32,
    substep: u32,
) -> bool {
    // SAFETY: the arrays have these lengths, and nothing else accesses the row's data while the slices live. The arrays
    // may be null where the model has no such values.
    let (qpos, qvel, ctrl) = unsafe {
        (array((*data).qpos, context.nq), array((*data).qvel, context.nv), array_mut((*data).ctrl, context.nu))
    };
    // SAFETY: the handler is this thread's; it is put back below, which `guard` makes sure is reached.
    let handler = unsafe { ffi::_mjPRIVATE_setTlsLogHandler(None) };
    let result = guard(|| control.control(row as usize, substep, qpos, qvel, ctrl));
    // SAFETY: the handler that MuJoCo had set.
    unsafe { ffi::_mjPRIVATE_setTlsLogHandler(handler) };
    match result {
        Ok(()) => true,
        Err(message) => {
            context.note(row, FaultReason::Panic(message));
            false
        }
    }
}

/// Zeroes the counters of the warnings that [`unstable`] looks at. MuJoCo's reset of a row sets them to one, whatever they
/// were, so that an increase is only visible from zero.
///
/// # Safety
/// `data` is valid, and nothing else accesses it.
unsafe fn clear_unstable(data: *mut mjData) {
    for (warning, _) in UNSTABLE {
        // SAFETY: valid by this function's contract.
        unsafe { (*data).warning[warning as usize].number = 0 };
    }
}

/// The first quantity that MuJoCo has warned of since [`clear_unstable`].
///
/// # Safety
/// `data` is valid, and nothing else writes to it.
unsafe fn unstable(data: *const mjData) -> Option<Unstable> {
    // SAFETY: valid by this function's contract.
    let warnings = unsafe { &(*data).warning };
    UNSTABLE.iter().find(|(warning, _)| warnings[*warning as usize].number > 0).map(|(_, quantity)| *quantity)
}
