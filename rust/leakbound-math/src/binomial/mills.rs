//! Mills ratio of the binomial, h = P(X ≥ v) / P(X = v), for v ≥ (n + 1) p.
//!
//! Names: n trials, N = n + 1; a = v − N p ≥ 0 is the excess, σ² = N p q and x = a/σ.

mod expansion;
mod series;

use crate::probability::Probability;

/// Standard deviation up to which the series is summed whatever its length, and above which the
/// expansion is good to 1e-15.
const SERIES_DEVIATION: f64 = 40.0;

/// Length up to which the series costs less than the expansion.
const SERIES_TERMS: f64 = 300.0;

/// P(X ≥ v) / P(X = v) to 1e-14 relative, for 1 ≤ v ≤ n, 0 < p < 1 and a ≥ 0.
///
/// Bounded cost for every n: a series of at most 11 σ + 60 terms (see [`series`]) where σ ≤ 40 or
/// a is so large that some 300 terms suffice, else an expansion in 1/σ of at most 33 terms.
pub(super) fn ratio(v: u64, trials: u64, p: Probability, excess: f64) -> f64 {
    let variance = (trials as f64 + 1.0) * p.p() * p.q();
    // Term j of the series is about exp(−(a j + j²/2)/σ²); this is where that is e⁻³⁷.
    let terms = 74.0 * variance / ((excess * excess + 74.0 * variance).sqrt() + excess);
    if variance <= SERIES_DEVIATION * SERIES_DEVIATION || terms <= SERIES_TERMS {
        series::ratio(v as f64, (trials - v) as f64, p)
    } else {
        expansion::ratio(v as f64, p, excess, variance.sqrt())
    }
}
