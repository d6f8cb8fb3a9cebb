//! Panics as `leakbound.errors.InternalError`, an ordinary exception.
//!
//! A panic is a defect of this package, yet none may end in `PanicException`, which no `except
//! Exception` catches, nor write to stderr on its own. The standard library is linked into this
//! extension alone, so that its panic hook is ours: no other extension runs it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::errors::named;

/// What was said by the last panic, and where.
static LAST: Mutex<Option<(String, String)>> = Mutex::new(None);

/// A panic that was caught.
pub(crate) struct PanicReport {
    message: String,
    place: Option<String>,
}

/// Note panics of this extension in place of printing them.
pub(crate) fn install_hook() {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location().map_or_else(String::new, |place| {
            format!("{}:{}", place.file(), place.line())
        });
        let said = (message(info.payload()), place);
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
    }));
}

/// What `work` returns, or how it panicked, on this thread or in tasks that it waits for.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, PanicReport> {
    // What was being changed when a panic came is dropped with it.
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = message(payload.as_ref());
        let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Another thread's panic may have come in between.
        let place = last.and_then(|(said, place)| (said == message).then_some(place));
        PanicReport { message, place }
    })
}

impl PanicReport {
    /// The exception.
    pub(crate) fn to_python(&self, py: Python<'_>) -> PyErr {
        let place = self
            .place
            .as_ref()
            .map_or_else(String::new, |place| format!(" at {place}"));
        let message = format!(
            "a defect of leakbound {}: {}{place}; no result was computed. Please report it with \
             the call that led here",
            env!("CARGO_PKG_VERSION"),
            self.message,
        );
        named(py, "InternalError", message)
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        return (*message).to_owned();
    }
    payload
        .downcast_ref::<String>()
        .map_or_else(|| "a panic without a message".to_owned(), Clone::clone)
}
