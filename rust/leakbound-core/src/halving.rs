//! Bisection that ends on the side where something holds.

use crate::error::AuditError;

/// Halves the bracket between `low`, where something holds, and `high`, where it does not, at most
/// so often and until it is narrow, relative to its end; the end at which it holds.
pub(crate) fn halve(
    (mut low, mut high): (f64, f64),
    halvings: usize,
    narrow: f64,
    mut holds: impl FnMut(f64) -> Result<bool, AuditError>,
) -> Result<f64, AuditError> {
    for _ in 0..halvings {
        let middle = 0.5 * (low + high);
        if high - low <= narrow * high || middle <= low || middle >= high {
            break;
        }
        if holds(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
