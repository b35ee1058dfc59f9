//! Controls that are recomputed while a row is being stepped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Recomputes one row's controls from its state before a physics step.
///
/// Called on the thread that steps the row, in no order between rows. A panic becomes the row's
/// [fault](crate::FaultReason::Panic).
///
/// An implementation computes. If it calls into MuJoCo by other means and MuJoCo raises an error there, the process
/// aborts: only what the batch itself runs can fail by the row.
pub trait Control: Sync {
    /// Writes the controls for physics step `substep` (from 0) of `row` into `ctrl` (`nu` values), given the row's
    /// generalised positions and velocities.
    ///
    /// On entry `ctrl` holds the previous step's controls.
    fn control(&self, row: usize, substep: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]);
}

impl<F: Fn(usize, u32, &[f64], &[f64], &mut [f64]) + Sync> Control for F {
    fn control(&self, row: usize, substep: u32, qpos: &[f64], qvel: &[f64], ctrl: &mut [f64]) {
        self(row, substep, qpos, qvel, ctrl);
    }
}

/// Calls `body`, and gives a panic's message as the error.
pub(super) fn guard(body: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(message)
}

fn message(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        Some((*text).to_owned())
    } else {
        payload.downcast_ref::<String>().cloned()
    };
    text.unwrap_or_else(|| {
        // Whatever it is, its destructor might panic again, and here that would end the process.
        std::mem::forget(payload);
        "a panic without a message".to_owned()
    })
}
