//! The logistic function, its inverse and their logarithms, without overflow or cancellation.
//!
//! All are good to a few units in the last place over the whole double range; `NaN` gives `NaN`.

/// Logistic function σ(x) = 1 / (1 + e^{−x}).
///
/// Domain: every double, ±∞ included (1 and 0). Accuracy: 4e-16 relative, for x → −∞ too, where it
/// is e^x; nearest, no direction. For 1 − σ(x) take σ(−x).
pub fn expit(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let odds = x.exp();
        odds / (1.0 + odds)
    }
}

/// σ(x) and σ(−x), the bits that [`expit`] gives for both, from one exponential.
///
/// Domain and accuracy: those of [`expit`].
pub fn expit_both(x: f64) -> (f64, f64) {
    let odds = (-x.abs()).exp();
    let (larger, smaller) = (1.0 / (1.0 + odds), odds / (1.0 + odds));
    // Both are computed and then chosen from: the sign of x is often anybody's guess.
    if x >= 0.0 {
        (larger, smaller)
    } else {
        (smaller, larger)
    }
}

/// Logit ln(p / (1 − p)), the inverse of [`expit`].
///
/// Domain: 0 ≤ p ≤ 1 (−∞ and +∞ at the ends), `NaN` outside. Accuracy: 5e-16 relative, at p near
/// ½ too; for p near 1, where 1 − p is known better than p, use
/// [`Probability::logit`](crate::probability::Probability::logit).
pub fn logit(p: f64) -> f64 {
    let q = 1.0 - p;
    if p > 0.5 {
        -logit_of_smaller(q, p)
    } else {
        logit_of_smaller(p, q)
    }
}

/// ln(p / q) for p ≤ ½ exact and q = 1 − p rounded.
pub(crate) fn logit_of_smaller(p: f64, q: f64) -> f64 {
    if p > 0.25 {
        ((2.0 * p - 1.0) / q).ln_1p()
    } else {
        p.ln() - (-p).ln_1p()
    }
}

/// ln σ(x) = −ln(1 + e^{−x}).
///
/// Domain: every double, ±∞ included. Accuracy: 4e-16 relative; nearest, no direction.
pub fn log_expit(x: f64) -> f64 {
    -softplus(-x)
}

/// Softplus ln(1 + e^x), which is −ln(1 − σ(x)).
///
/// Domain: every double, ±∞ included. Accuracy: 4e-16 relative; nearest, no direction.
pub fn softplus(x: f64) -> f64 {
    if x > 0.0 {
        x + (-x).exp().ln_1p()
    } else {
        x.exp().ln_1p()
    }
}
