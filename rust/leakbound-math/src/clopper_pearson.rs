//! Clopper–Pearson limits for a binomial probability, rounded outward.
//!
//! The lower limit solves P(Bin(n, p) ≥ v) = β for p (Clopper & Pearson 1934, "The use of confidence
//! or fiducial limits illustrated in the case of the binomial").
//!
//! As a function of λ = logit p the tail T is the distribution function of a log-concave density,
//! e^{vλ}/(1 + e^λ)^{n+1}, so ln T is concave (Prékopa 1973). A tangent to it therefore lies above it:
//! where a tangent meets ln β, ln T ≤ ln β. The last step of the search is a tangent of this kind, taken
//! from so near that it gives away less than a fiftieth of the allowance for rounding; its result
//! is certified without another evaluation of the tail.

mod local;

use crate::binomial::{Binomial, RELATIVE_ERROR, relative_error};
use crate::error::{MathError, check_level};
use crate::normal;
use crate::probability::Probability;
use local::Local;

/// Lower limit: the largest p with P(Bin(n, p) ≥ v) ≤ β, for v successes in n trials, rounded down.
///
/// Domain: v ≤ n ≤ 2⁵³, 1e-300 ≤ β < 1 (below, perhaps no more than β/n); 0 for v = 0,
/// 1 − (1 − β)^{1/n} for v = 1 and β^{1/n} for v = n. Direction: below the exact limit, on the side
/// where the tail is proven at most β; where 1 < v < n, even the computed tail times
/// 1 + [`RELATIVE_ERROR`] is at most β. Accuracy: p and 1 − p within 1e-12, relative, for β ≤ ½; for
/// larger β within 1e-12/(1 − β). Cost: some four tails, so a microsecond.
///
/// # Errors
/// [`MathError::CountAboveTrials`] if v > n, [`MathError::LevelOutOfRange`] unless 0 < β < 1.
///
/// ```
/// use leakbound_math::clopper_pearson::lower_limit;
/// let limit = lower_limit(10, 10, 0.05)?.p();
/// assert!(limit <= 0.05_f64.powf(0.1) && limit > 0.741_134);
/// assert_eq!(lower_limit(0, 10, 0.05)?.p(), 0.0);
/// # Ok::<(), leakbound_math::MathError>(())
/// ```
pub fn lower_limit(successes: u64, trials: u64, beta: f64) -> Result<Probability, MathError> {
    if successes > trials {
        return Err(MathError::CountAboveTrials { successes, trials });
    }
    check_level("beta", beta)?;
    // A logarithm and its quotient are rounded, and exp multiplies their errors by its size: both are
    // moved by more than that first, towards the smaller p.
    let n = trials as f64;
    let outward = 2.0 * f64::EPSILON;
    match successes {
        0 => Ok(Probability::ZERO),
        1 => {
            let ln_q = (-beta).ln_1p() / n * (1.0 - outward);
            Ok(from_ln_complement(ln_q).next_down())
        }
        _ if successes == trials => {
            let ln_p = beta.ln() / n * (1.0 + outward);
            Ok(from_ln_complement(ln_p).complement().next_down())
        }
        _ => search(successes, trials, beta),
    }
}

/// The probability with ln q = `ln`.
fn from_ln_complement(ln: f64) -> Probability {
    Probability::from_parts(-ln.exp_m1(), ln.exp())
}

/// Steps a search may take. With f = ln T − ln β and its slope g, tangents to a concave f obey
/// |f g|ₖ₊₁ ≤ |f g|ₖ / 4 from their first landing on, which is left of the limit and, at p ≥ β/n, has
/// |f g| ≤ (691 + ln n) n². A step is the last at the latest when |f| < 1e-7, with g > 0.1 for β ≤ ½:
/// 43 steps at n = 10⁷ and 74 at 2⁵³. For larger β, g falls to 1 − β ≥ 1e-16 and |f| has to fall as
/// far: 53 more. Steps of the other kind, each with a tenfold fall of |f| from ½, add at most 16.
const MOST_STEPS: u32 = 150;

/// Share of the allowance for rounding that the last tangent may give away.
const GIVEN_AWAY: f64 = 0.02;

/// The limit for 1 < v < n.
fn search(successes: u64, trials: u64, beta: f64) -> Result<Probability, MathError> {
    // Computed and certified tails are off by an error each; the last factor is the caller's own.
    let allowance = RELATIVE_ERROR + 2.0 * relative_error(beta.ln());
    let target = beta.ln() - allowance;
    // P(X ≥ v) ≤ P(X ≥ 1) ≤ n p, and ≥ pⁿ.
    let lowest = Probability::new((beta / trials as f64).max(f64::MIN_POSITIVE))?;
    let highest = from_ln_complement(beta.ln() / trials as f64).complement();
    let mut p = wilson(successes, trials, Probability::new(beta)?)?;
    let mut before = f64::INFINITY;
    for _ in 0..MOST_STEPS {
        p = match p {
            _ if p < lowest => lowest,
            _ if p > highest => highest,
            _ => p,
        };
        let local = Local::new(Binomial::new(trials, p), successes, target);
        if local.given_away() <= GIVEN_AWAY * allowance {
            return Ok(p.shift_logit(local.tangent()).next_down());
        }
        let near = local.off() < local::NEAR.min(0.1 * before);
        p = p.shift_logit(if near { local.root() } else { local.tangent() });
        before = local.off();
    }
    // Levels below the domain have no accuracy to reach: the end of the bracket is proved.
    Ok(lowest.next_down())
}

/// Wilson's limit with a continuity correction: within a few tenths of a standard deviation for
/// moderate counts and levels.
fn wilson(successes: u64, trials: u64, level: Probability) -> Result<Probability, MathError> {
    let n = trials as f64;
    let (v, failures) = (successes as f64 - 0.5, (trials - successes) as f64 + 0.5);
    let z = -normal::quantile(level);
    let root = (v * failures / n + 0.25 * z * z).sqrt();
    // The smaller root of a quadratic, through the larger, with which it does not cancel.
    Probability::new((v * (v / n) / (v + 0.5 * z * z + z * root)).min(1.0))
}
