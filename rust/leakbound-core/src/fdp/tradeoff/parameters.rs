//! Checks of the parameters of trade-off functions.

use crate::error::AuditError;

fn out_of_range<T>(name: &'static str, value: f64, range: &'static str) -> Result<T, AuditError> {
    Err(AuditError::ParameterOutOfRange { name, value, range })
}

/// A parameter of at least 0.
pub(super) fn check_non_negative(name: &'static str, value: f64) -> Result<f64, AuditError> {
    if value >= 0.0 && value.is_finite() {
        return Ok(value);
    }
    out_of_range(name, value, "at least 0 and finite")
}

/// A δ in [0, 1).
pub(super) fn check_delta(value: f64) -> Result<f64, AuditError> {
    if (0.0..1.0).contains(&value) {
        return Ok(value);
    }
    out_of_range("delta", value, "at least 0 and below 1")
}
