//! The Mills ratio as a sum of products of ratios of neighbouring point probabilities.

use crate::probability::Probability;

/// Share of the sum below which a term, and with it the rest, no longer counts: the rest is a
/// few σ such terms at most, and far smaller where the sum is itself of that order.
const NEGLIGIBLE: f64 = 1e-18;

/// h = 1 + r₁ + r₁ r₂ + …, with rᵢ = P(X = v + i) / P(X = v + i − 1)
/// = (failures + 1 − i)/(successes + i) · p/q.
///
/// The ratios fall, from at most 1. With v ≥ N p they obey rᵢ₊₁ ≤ (1 − i/(n q)) / (1 + i/(n p)), so
/// their product falls below e^{−i² ln 2 / (2 n p q)} up to i = n p and by half each step after:
/// the loop ends within 11 σ + 60 steps, and at the latest with r = 0 when the failures run out.
pub(super) fn ratio(successes: f64, failures: f64, p: Probability) -> f64 {
    let odds = p.p() / p.q();
    let (mut s, mut f) = (successes, failures);
    let (mut term, mut sum) = (1.0, 1.0);
    while term > NEGLIGIBLE * sum {
        // Four ratios nᵢ/dᵢ over one denominator, formed apart from the running term, so that
        // blocks overlap in the processor: only one product per block waits for the last.
        let (n1, n2) = (f * odds, (f - 1.0) * odds);
        let (n3, n4) = ((f - 2.0) * odds, (f - 3.0) * odds);
        let (d1, d2, d3, d4) = (s + 1.0, s + 2.0, s + 3.0, s + 4.0);
        let (n12, d34) = (n1 * n2, d3 * d4);
        let last = n12 * n3 * n4;
        let inverse = 1.0 / (d1 * d2 * d34);
        sum += term * (((n1 * d2 + n12) * d34 + n12 * n3 * d4 + last) * inverse);
        term *= last * inverse;
        s += 4.0;
        f -= 4.0;
    }
    sum
}
