//! The Mills ratio of the binomial as an expansion in 1/σ about the normal one.
//!
//! From P(X ≥ v) = v C(n, v) ∫₀^p t^{v−1} (1−t)^{n−v} dt with logit t = logit p − u/σ,
//!
//! h = (v q/σ) ∫₀^∞ exp(−x u − u²/2) E(u) du,
//! ln E(u) = −Σ_{k≥3} (−u)^k γₖ / (k! σ^{k−2}),
//!
//! where γₖ = κₖ/κ₂ are the cumulants of one trial over its variance. E is a power series Σ eₖ u^k
//! with eₖ = O(σ^{−k/3}), and the integrals Jₖ of u^k exp(−x u − u²/2) obey
//! Jₖ₊₁ = k Jₖ₋₁ − x Jₖ, J₀ being the normal Mills ratio. Expanding at the end point p, not at the
//! saddle point v/N as Temme's expansion does, leaves nothing to cancel where the two are close.

use crate::normal::mills_ratio;
use crate::probability::Probability;

/// Most powers of u ever needed (σ = 40).
const POWERS: usize = 33;

/// Cumulants in use, the third to the tenth; the next adds 2e-17 at σ = 40.
const CUMULANTS: usize = 8;

/// x below which the recurrence for Jₖ runs upward. Upward, errors grow by a factor x a step, which
/// eₖ outweighs as long as x³ ≲ 6 σ; downward they shrink, the faster the larger x.
const UPWARD: f64 = 4.0;

/// h to 1e-15 relative for a σ above 40 and x = `excess`/σ ≥ 0.
pub(super) fn ratio(successes: f64, p: Probability, excess: f64, deviation: f64) -> f64 {
    let x = excess / deviation;
    // Every third power of u costs a factor 1/σ; after these the rest is e⁻³⁶.
    let powers = (3 * (36.0 / deviation.ln()).ceil() as usize).min(POWERS);
    let weights = exponential_series(&cumulants(p, deviation), powers);
    let weights = &weights[..=powers];
    let integral = if x < UPWARD {
        upward(weights, x)
    } else {
        downward(weights, x)
    };
    successes * p.q() / deviation * integral
}

/// k times the coefficient of u^k in ln E, for k = 3 to 10.
fn cumulants(p: Probability, deviation: f64) -> [f64; CUMULANTS] {
    let d = p.q() - p.p();
    let y = p.p() * p.q();
    let w = 1.0 / deviation;
    let w2 = w * w;
    let w4 = w2 * w2;
    [
        w * d / 2.0,
        -w2 * (1.0 - 6.0 * y) / 6.0,
        w * w2 * d * (1.0 - 12.0 * y) / 24.0,
        -w4 * (1.0 - y * (30.0 - 120.0 * y)) / 120.0,
        w * w4 * d * (1.0 - y * (60.0 - 360.0 * y)) / 720.0,
        -w2 * w4 * (1.0 - y * (126.0 - y * (1680.0 - 5040.0 * y))) / 5040.0,
        w * w2 * w4 * d * (1.0 - y * (252.0 - y * (5040.0 - 20160.0 * y))) / 40320.0,
        -w4 * w4 * (1.0 - y * (510.0 - y * (17640.0 - y * (151_200.0 - 362_880.0 * y))))
            / 362_880.0,
    ]
}

/// The coefficients of E = exp(Σ lₖ u^k), given k lₖ from k = 3: m eₘ = Σ k lₖ eₘ₋ₖ.
fn exponential_series(log: &[f64; CUMULANTS], powers: usize) -> [f64; POWERS + 1] {
    let mut e = [0.0; POWERS + 1];
    e[0] = 1.0;
    for m in 3..=powers {
        let sum: f64 = log
            .iter()
            .zip(e[..=m - 3].iter().rev())
            .map(|(l, e)| l * e)
            .sum();
        e[m] = sum / m as f64;
    }
    e
}

/// Σ eₖ Jₖ(x) for small x.
fn upward(weights: &[f64], x: f64) -> f64 {
    let mut before = mills_ratio(x);
    let mut here = 1.0 - x * before;
    let mut sum = before;
    for (k, weight) in weights.iter().enumerate().skip(1) {
        sum += weight * here;
        (before, here) = (here, k as f64 * before - x * here);
    }
    sum
}

/// Σ eₖ Jₖ(x) for large x: Jₖ = k! Iₖ with Iₖ₋₁ = x Iₖ + (k + 1) Iₖ₊₁, run downward from so far up
/// that the start is forgotten (its share falls by e^{−2x(√start − √k)}), then scaled by I₋₁ = 1.
fn downward(weights: &[f64], x: f64) -> f64 {
    let start = weights.len() + (18.0 / x).powi(2).ceil() as usize;
    let (mut above, mut here) = (0.0, 1.0);
    for k in (weights.len()..=start).rev() {
        (above, here) = (here, x * here + (k + 1) as f64 * above);
    }
    let mut sum = 0.0;
    for (k, (weight, factorial)) in weights.iter().zip(&FACTORIAL).enumerate().rev() {
        sum += weight * factorial * here;
        (above, here) = (here, x * here + (k + 1) as f64 * above);
    }
    sum / here
}

/// k! for each power of u.
const FACTORIAL: [f64; POWERS + 1] = {
    let mut factorial = [1.0; POWERS + 1];
    let mut k = 1;
    while k <= POWERS {
        factorial[k] = factorial[k - 1] * k as f64;
        k += 1;
    }
    factorial
};
