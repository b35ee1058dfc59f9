//! Systems.
