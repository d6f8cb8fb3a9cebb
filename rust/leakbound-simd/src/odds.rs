//! Odds with the rounding error they carry, from probabilities or from log odds.

use crate::dispatch::dispatch;
use crate::exponential::{INVERSE_FACTORIALS, LN_2_HIGH, LN_2_LOW};
use crate::vector::{MAX_LANES, Vector, padded};

dispatch! {
    /// Writes Eᵢ = pᵢ/(1−pᵢ), rounded, to `odds` and to `residuals` the rᵢ with
    /// pᵢ/(1−pᵢ) = Eᵢ(1+rᵢ) to about 75 bits, for 0 < pᵢ < 1 normal numbers.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn odds_from_probabilities(
        probabilities: &[f64],
        odds: &mut [f64],
        residuals: &mut [f32],
    ) = from_probabilities;
}

dispatch! {
    /// Writes Eᵢ = exp(aᵢ − shift), rounded, to `odds` and to `residuals` the rᵢ with
    /// exp(aᵢ − shift) = Eᵢ(1+rᵢ) to about 60 bits, for |aᵢ − shift| ≤ 700.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn odds_from_logits(
        logits: &[f64],
        shift: f64,
        odds: &mut [f64],
        residuals: &mut [f32],
    ) = from_logits;
}

#[inline(always)]
fn from_probabilities<V: Vector>(probabilities: &[f64], odds: &mut [f64], residuals: &mut [f32]) {
    assert!(probabilities.len() == odds.len() && odds.len() == residuals.len());
    let whole = odds.len() - odds.len() % V::LANES;
    let mut k = 0;
    while k < whole {
        let (e, residual) = quotient(V::load(&probabilities[k..]));
        e.store(&mut odds[k..]);
        residual.store_f32(&mut residuals[k..]);
        k += V::LANES;
    }
    if whole < odds.len() {
        let (e, residual) = quotient(V::load(&padded(&probabilities[whole..])));
        store_rest(e, residual, &mut odds[whole..], &mut residuals[whole..]);
    }
}

/// p/(1−p) and what its rounding left, relatively.
#[inline(always)]
fn quotient<V: Vector>(p: V) -> (V, V) {
    let (q, q_error) = V::one().two_sum(V::zero().sub(p));
    let e = p.div(q);
    (e, e.residual(q, p).sub(e.mul(q_error)).div(p))
}

#[inline(always)]
fn from_logits<V: Vector>(logits: &[f64], shift: f64, odds: &mut [f64], residuals: &mut [f32]) {
    assert!(logits.len() == odds.len() && odds.len() == residuals.len());
    let minus_shift = V::splat(-shift);
    let whole = odds.len() - odds.len() % V::LANES;
    let mut k = 0;
    while k < whole {
        let (e, residual) = exponential(V::load(&logits[k..]).two_sum(minus_shift));
        e.store(&mut odds[k..]);
        residual.store_f32(&mut residuals[k..]);
        k += V::LANES;
    }
    if whole < odds.len() {
        let (e, residual) = exponential(V::load(&padded(&logits[whole..])).two_sum(minus_shift));
        store_rest(e, residual, &mut odds[whole..], &mut residuals[whole..]);
    }
}

/// exp(a + `a_low`) and what its rounding left, relatively.
#[inline(always)]
fn exponential<V: Vector>((a, a_low): (V, V)) -> (V, V) {
    // a + a_low = k ln 2 + r + r_low
    let rounder = V::splat(V::ROUNDER);
    let k = a
        .mul(V::splat(std::f64::consts::LOG2_E))
        .add(rounder)
        .sub(rounder);
    let k_low = k.mul(V::splat(LN_2_LOW));
    let (r, r_error) = a
        .sub(k.mul(V::splat(LN_2_HIGH)))
        .two_sum(V::zero().sub(k_low));
    let r_low = r_error
        .add(a_low)
        .sub(k.product_error(V::splat(LN_2_LOW), k_low));

    // exp(r + r_low) = 1 + r + r²/2 + cubic + r_low·exp(r), leading parts summed without error
    let mut series = V::zero();
    for &coefficient in &INVERSE_FACTORIALS[..14] {
        series = series.mul_add(r, V::splat(coefficient));
    }
    let (half, square) = (V::splat(0.5), r.mul(r));
    let (sum, error_1) = V::one().two_sum(r);
    let (sum, error_2) = sum.two_sum(square.mul(half));
    let (sum, error_3) = sum.two_sum(square.mul(r).mul(series));
    let low = r
        .product_error(r, square)
        .mul_add(half, error_1.add(error_2).add(error_3));
    let low = r_low.mul_add(sum, low);
    let e = sum.add(low);
    (e.mul(k.power_of_two()), sum.sub(e).add(low).div(e))
}

/// Stores the first lanes of both over slices shorter than a vector.
#[inline(always)]
fn store_rest<V: Vector>(e: V, residual: V, odds: &mut [f64], residuals: &mut [f32]) {
    let mut rounded = [0.0; MAX_LANES];
    residual.store_f32(&mut rounded);
    let left = odds.len();
    odds.copy_from_slice(&e.to_lanes()[..left]);
    residuals.copy_from_slice(&rounded[..left]);
}
