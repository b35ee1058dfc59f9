//! Manège.
