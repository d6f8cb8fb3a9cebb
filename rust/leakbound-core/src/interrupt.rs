//! Stopping a long computation from another thread.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::AuditError;

/// A flag that long loops poll, so that a caller can stop them cleanly.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Ask the computation to stop at its next check.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Carry on, unless a stop was requested.
    pub fn check(&self) -> Result<(), AuditError> {
        if self.0.load(Ordering::Relaxed) {
            Err(AuditError::Interrupted)
        } else {
            Ok(())
        }
    }
}
