//! Rust errors as the exceptions of `leakbound.errors`.

use leakbound_core::AuditError;
use leakbound_math::MathError;
use leakbound_propensity::PropensityError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyValueError};
use pyo3::prelude::*;

/// The Python exception for an error of the audits.
pub(crate) fn to_python(py: Python<'_>, error: &AuditError) -> PyErr {
    let name = match error {
        AuditError::Math(lacking @ MathError::OutOfMemory { .. }) => {
            return out_of_memory(lacking);
        }
        AuditError::Empty
        | AuditError::LengthMismatch { .. }
        | AuditError::StepMismatch { .. }
        | AuditError::Math(MathError::LengthMismatch { .. })
        | AuditError::TableEnds
        | AuditError::LevelsNotIncreasing { .. }
        | AuditError::NotATradeOff { .. }
        | AuditError::EmptyProfile
        | AuditError::DeltaTooSmall { .. }
        | AuditError::ScoreIsNan { .. } => "InputError",
        AuditError::EveryExampleAbstains { .. } => "AbstentionError",
        // Its limit is argued where it is set.
        AuditError::Math(MathError::NotConverged { .. }) => "InternalError",
        AuditError::Interrupted => return PyKeyboardInterrupt::new_err(()),
        _ => "OptionError",
    };
    named(py, name, error.to_string())
}

/// The Python exception for an error of a propensity model.
pub(crate) fn propensity_to_python(py: Python<'_>, error: &PropensityError) -> PyErr {
    let name = match error {
        PropensityError::Math(lacking @ MathError::OutOfMemory { .. }) => {
            return out_of_memory(lacking);
        }
        PropensityError::LengthMismatch { .. }
        | PropensityError::NotFinite { .. }
        | PropensityError::ClassMissing { .. }
        | PropensityError::ClassTooRare { .. } => "InputError",
        PropensityError::Penalty { .. }
        | PropensityError::Level { .. }
        | PropensityError::Guess { .. } => "OptionError",
        PropensityError::Interrupted => return PyKeyboardInterrupt::new_err(()),
        _ => "FitError",
    };
    named(py, name, error.to_string())
}

/// Python's own exception where there is no memory.
pub(crate) fn out_of_memory(error: &MathError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

/// An exception of `leakbound.errors` by its name.
pub(crate) fn named(py: Python<'_>, name: &str, message: String) -> PyErr {
    let class = py
        .import("leakbound.errors")
        .and_then(|errors| errors.getattr(name));
    match class.and_then(|class| class.call1((message.clone(),))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyValueError::new_err(message),
    }
}
