//! Probability mass functions: more Bernoulli terms.

use crate::dispatch::dispatch;
use crate::vector::Vector;

dispatch! {
    /// Multiplies the generating function `pmf` by Πᵢ (qᵢ + pᵢz), in place.
    ///
    /// `pmf[0..=degree]` holds the coefficients on entry, `pmf[0..=degree + p.len()]` on return. All
    /// arithmetic is on numbers of one sign, so each coefficient keeps its relative accuracy.
    ///
    /// # Panics
    /// If `pmf` is too short or `p` and `q` differ in length.
    pub fn multiply_by_terms(pmf: &mut [f64], degree: usize, p: &[f64], q: &[f64]) = multiply;
}

#[inline(always)]
fn multiply<V: Vector>(pmf: &mut [f64], degree: usize, p: &[f64], q: &[f64]) {
    assert!(p.len() == q.len() && pmf.len() > degree + p.len());
    let mut degree = degree;
    for (&p, &q) in p.iter().zip(q) {
        degree += 1;
        pmf[degree] = 0.0;
        let (vp, vq) = (V::splat(p), V::splat(q));
        // From the top down: what is read below has not been written yet.
        let mut end = degree + 1;
        while end > V::LANES {
            let start = end - V::LANES;
            let shifted = V::load(&pmf[start - 1..]);
            let here = V::load(&pmf[start..]);
            shifted.mul_add(vp, here.mul(vq)).store(&mut pmf[start..]);
            end = start;
        }
        for k in (1..end).rev() {
            pmf[k] = p * pmf[k - 1] + q * pmf[k];
        }
        pmf[0] *= q;
    }
}
