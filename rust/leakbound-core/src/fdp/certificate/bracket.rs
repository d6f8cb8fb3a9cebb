//! Root finding in a bracket, by false position.

/// Relative width at which a bracket is narrow enough.
pub(super) const NARROW: f64 = 1e-12;

/// An argument, and the logarithm there of what is to become 1.
pub(super) type Trial = (f64, f64);

/// The next trial of a bracket: false position, an end that has not moved for a while counting
/// less, and halving if that does not help either. It lands on neither end.
pub(super) fn next_trial(low: Trial, high: Trial, run: i32) -> f64 {
    let middle = 0.5 * (low.0 + high.0);
    if run.abs() > 4 {
        return middle;
    }
    let weight = 0.5_f64.powi((run.abs() - 1).max(0));
    let (below, above) = if run > 0 {
        (low.1, high.1 * weight)
    } else {
        (low.1 * weight, high.1)
    };
    let width = high.0 - low.0;
    let at = low.0 + width * below / (below - above);
    // Half a tolerance inside, so that the other end follows.
    let least = 0.5 * NARROW * high.0.abs().min(1.0);
    let at = at.clamp(
        low.0 + least.min(0.25 * width),
        high.0 - least.min(0.25 * width),
    );
    if at > low.0 && at < high.0 {
        at
    } else {
        middle
    }
}
