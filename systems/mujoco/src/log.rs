//! Routes MuJoCo's log messages to [`tracing`].

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::ffi;

/// MuJoCo's message levels.
const INFO: i32 = 1;
const WARNING: i32 = 2;
const ERROR: i32 = 3;

/// Makes MuJoCo send its messages to [`tracing`], under the target `mujoco`, instead of to standard output and to a
/// file `MUJOCO_LOG.TXT` in the working directory.
///
/// [`Model`](crate::Model) does this before it first calls MuJoCo. A program that uses MuJoCo by other means as well
/// should call it at its start, because no thread may be inside MuJoCo while the handler is exchanged. Calls after the
/// first do nothing.
///
/// Errors that MuJoCo raises while a batch steps a row become that row's [fault](crate::Batch::faults). After any
/// other error MuJoCo cannot go on: its message is logged, and the process aborts.
pub fn install_log_handler() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: `receive` may be called from any thread with any message. This crate has not called MuJoCo yet,
        // and the documentation asks the same of the rest of the program.
        unsafe { ffi::mju_setLogHandler(Some(receive)) };
    });
}

/// The handler. It must neither unwind nor, for an error, return.
unsafe extern "C" fn receive(message: *const ffi::mjLogMessage) {
    // SAFETY: MuJoCo passes a message that is valid during the call.
    let message = unsafe { &*message };
    // SAFETY: `subject` is NUL-terminated within its array.
    let subject = unsafe { text(message.subject.as_ptr()) };
    // SAFETY: `body` and `func` are null or NUL-terminated.
    let (body, function) = unsafe { (text(message.body), text(message.func)) };
    let subject = subject.trim_end();

    // A subscriber that panics must not take MuJoCo's frames with it.
    let logged = catch_unwind(AssertUnwindSafe(|| match message.level {
        ERROR => tracing::error!(target: "mujoco", %function, detail = %body, "{subject}"),
        WARNING => tracing::warn!(target: "mujoco", %function, detail = %body, "{subject}"),
        INFO => tracing::info!(target: "mujoco", %function, detail = %body, "{subject}"),
        _ => tracing::debug!(target: "mujoco", %function, detail = %body, "{subject}"),
    }));
    if let Err(payload) = logged {
        std::mem::forget(payload);
    }

    if message.level >= ERROR {
        eprintln!("MuJoCo: {subject}");
        std::process::abort();
    }
}

/// A C string as text, empty for a null pointer.
///
/// # Safety
/// `pointer` is null, or points to a NUL-terminated string that outlives `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> std::borrow::Cow<'a, str> {
    if pointer.is_null() {
        return std::borrow::Cow::Borrowed("");
    }
    // SAFETY: not null, so a NUL-terminated string by this function's contract.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy()
}
