//! Searches that end on the side on which the test rejects.

use crate::error::{AuditError, out_of_range};

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
    Ok(Some(narrow(low, high, &mut rejects)?))
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
        narrow(0.0, -LN_LOWEST, &mut at)?
    };
    Ok((-found).exp().min(1.0_f64.next_down()))
}

/// Halve the bracket between a rejected `low` and a kept `high`; the rejected end that remains.
fn narrow(
    mut low: f64,
    mut high: f64,
    rejects: &mut impl FnMut(f64) -> Result<bool, AuditError>,
) -> Result<f64, AuditError> {
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if high - low <= NARROW * high || middle <= low || middle >= high {
            break;
        }
        if rejects(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
