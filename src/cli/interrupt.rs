//! Ctrl-C and SIGTERM: the first finishes the step at hand, the second ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// A signal that asks for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signal(i32);

impl Signal {
    /// The exit status by which shells tell that a signal ended a program.
    pub(crate) fn exit_status(self) -> u8 {
        (128 + self.0) as u8
    }
}

/// Whether a signal asked to stop.
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> io::Result<Self> {
        let (first, asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        for signal in [SIGINT, SIGTERM] {
            // In this order: at the second signal the flag is already set, so the first handler ends the program.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
            flag::register_usize(signal, Arc::clone(&first), signal as usize)?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(first))
    }

    /// The signal that asked to stop, if one did.
    pub(crate) fn signal(&self) -> Option<Signal> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Signal(signal as i32)),
        }
    }
}
