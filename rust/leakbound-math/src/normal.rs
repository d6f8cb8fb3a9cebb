//! The standard normal distribution: tails, quantiles and their logarithms.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

use crate::MathError;
use crate::probability::Probability;

/// Φ(x).
#[must_use]
pub fn cdf(x: f64) -> f64 {
    sf(-x)
}

/// 1 − Φ(x).
#[must_use]
pub fn sf(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// ln Φ(x).
#[must_use]
pub fn ln_cdf(x: f64) -> f64 {
    ln_sf(-x)
}

/// ln(1 − Φ(x)).
#[must_use]
pub fn ln_sf(x: f64) -> f64 {
    if x < 0.0 {
        (-sf(-x)).ln_1p()
    } else if x < 35.0 {
        sf(x).ln()
    } else {
        let z = 1.0 / (x * x);
        -0.5 * x * x - (x * (2.0 * std::f64::consts::PI).sqrt()).ln() + (-z + 2.5 * z * z).ln_1p()
    }
}

/// Φ⁻¹(p).
#[must_use]
pub fn quantile(p: Probability) -> f64 {
    if p.p() > p.q() {
        return -quantile(p.complement());
    }
    if p.p() == 0.0 {
        f64::NEG_INFINITY
    } else {
        bisect(|x| cdf(x) < p.p())
    }
}

/// The x with ln Φ(x) = l.
///
/// # Errors
///
/// [`MathError::NotALogProbability`] unless l ≤ 0.
pub fn quantile_from_ln(ln_p: f64) -> Result<f64, MathError> {
    if ln_p.is_nan() || ln_p > 0.0 {
        return Err(MathError::NotALogProbability {
            name: "ln_p",
            value: ln_p,
        });
    }
    if ln_p > -LN_2 {
        return Ok(-quantile(Probability::new(-ln_p.exp_m1())?));
    }
    Ok(bisect(|x| ln_cdf(x) < ln_p))
}

fn bisect(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-2e154, 0.0);
    for _ in 0..600 {
        let x = 0.5 * (low + high);
        if below(x) {
            low = x;
        } else {
            high = x;
        }
    }
    0.5 * (low + high)
}
