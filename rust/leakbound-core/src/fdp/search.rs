//! Searches that end on the side on which the test rejects.

use crate::error::{AuditError, out_of_range};
use crate::halving::halve;

/// Relative width at which a bracket is narrow enough.
const NARROW: f64 = 1e-13;
/// From any width, 1100 halvings reach neighbouring doubles.
const HALVINGS: usize = 1100;
/// ln of the smallest level looked at, near the smallest normal number.
const LN_LOWEST: f64 = -700.0;

/// The largest θ ≥ 0 that `rejects` is known to reject, or none if it does not reject 0.
///
/// `rejects` is true up to some θ and false beyond. Direction: rounded down, by 1e-13 relative.
pub fn largest_rejected(
    mut rejects: impl FnMut(f64) -> Result<bool, AuditError>,
) -> Result<Option<f64>, AuditError> {
    if !rejects(0.0)? {
        return Ok(None);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while rejects(high)? {
        (low, high) = (high, 2.0 * high);
        if high == f64::INFINITY {
            let range = "below the value from which nothing is rejected";
            return out_of_range("parameter", low, range);
        }
    }
    Ok(Some(halve((low, high), HALVINGS, NARROW, rejects)?))
}

/// The smallest τ that `rejects` is known to reject, 1 if there is none: a p-value.
///
/// `rejects` is false up to some τ and true beyond. Direction: rounded up, by 1e-10 relative
/// at most; at least 1e-304.
pub fn smallest_level(
    mut rejects: impl FnMut(f64) -> Result<bool, AuditError>,
) -> Result<f64, AuditError> {
    let mut at = |minus_ln: f64| rejects((-minus_ln).exp().min(1.0_f64.next_down()));
    if !at(0.0)? {
        return Ok(1.0);
    }
    let found = if at(-LN_LOWEST)? {
        -LN_LOWEST
    } else {
        halve((0.0, -LN_LOWEST), HALVINGS, NARROW, at)?
    };
    Ok((-found).exp().min(1.0_f64.next_down()))
}
