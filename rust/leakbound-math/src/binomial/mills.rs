//! Mills ratio of the binomial: P(X ≥ v) / P(X = v), for v above the mean.

use crate::probability::Probability;

pub(super) fn ratio(v: u64, trials: u64, p: Probability) -> f64 {
    let odds = p.p() / p.q();
    let (mut failures, mut successes) = ((trials - v) as f64, v as f64);
    let (mut term, mut sum) = (1.0, 1.0);
    while term > 1e-18 * sum && failures > 0.0 {
        successes += 1.0;
        term *= failures / successes * odds;
        failures -= 1.0;
        sum += term;
    }
    sum
}
