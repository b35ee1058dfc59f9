//! Ctrl-C: the first finishes the step at hand, the second ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;

/// Whether the user asked to stop.
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// The exit status of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        // In this order: at the second signal the flag is already set, so the first handler ends the program.
        signal_hook::flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&asked))?;
        signal_hook::flag::register(SIGINT, Arc::clone(&asked))?;
        Ok(Self(asked))
    }

    /// Whether the user asked to stop.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
