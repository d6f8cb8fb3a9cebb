//! Stopping a long computation from another thread.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::AuditError;

/// A flag that long loops poll, so that a caller can stop them cleanly.
///
/// ```
/// use leakbound_core::Interrupt;
/// let interrupt = Interrupt::default();
/// assert!(interrupt.check().is_ok());
/// interrupt.request();
/// assert!(interrupt.check().is_err());
/// ```
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Ask the computation to stop at its next check.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Carry on, unless a stop was requested.
    ///
    /// # Errors
    /// [`AuditError::Interrupted`] once [`Interrupt::request`] was called.
    pub fn check(&self) -> Result<(), AuditError> {
        if self.0.load(Ordering::Relaxed) {
            Err(AuditError::Interrupted)
        } else {
            Ok(())
        }
    }
}
