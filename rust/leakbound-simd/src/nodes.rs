//! The centred log generating function at the nodes of a contour, eight or four nodes at a time.

use crate::dispatch::dispatch;
use crate::power_sums::{MAX_TERMS, PowerSums};
use crate::vector::{MAX_LANES, Vector};

/// Up to this |S| the odd coefficients come from the backward recurrence, above it from the forward
/// one (whose error, 4ᵐ units in the last place, is harmless since wᵐ ≤ 4⁻ᵐ).
const BACKWARD_LIMIT: f64 = 0.5;
/// Extra steps of the backward recurrence; each divides the error of its start by at least 8.
const BACKWARD_STEPS: usize = 10;

/// Angles φₖ with the sines and cosines of their halves, padded with zeros to a multiple of eight.
#[derive(Clone, Debug)]
pub struct Nodes {
    count: usize,
    angles: Vec<f64>,
    half_sines: Vec<f64>,
    half_cosines: Vec<f64>,
}

impl Nodes {
    /// The nodes φₖ = k·step for k below `count`.
    pub fn equispaced(step: f64, count: usize) -> Self {
        let mut nodes = Self::with_room_for(count);
        let (sine_step, cosine_step) = (0.5 * step).sin_cos();
        let (mut sine, mut cosine) = (0.0, 1.0);
        for k in 0..count {
            // Rotating is cheap; starting afresh now and then keeps its error at a few units.
            if k % 8 == 0 {
                (sine, cosine) = (0.5 * step * k as f64).sin_cos();
            }
            nodes.angles[k] = step * k as f64;
            nodes.half_sines[k] = sine;
            nodes.half_cosines[k] = cosine;
            let next = sine * cosine_step + cosine * sine_step;
            cosine = cosine * cosine_step - sine * sine_step;
            sine = next;
        }
        nodes
    }

    /// The nodes at `angles`.
    pub fn at(angles: &[f64]) -> Self {
        let mut nodes = Self::with_room_for(angles.len());
        nodes.angles[..angles.len()].copy_from_slice(angles);
        for (k, angle) in angles.iter().enumerate() {
            (nodes.half_sines[k], nodes.half_cosines[k]) = (0.5 * angle).sin_cos();
        }
        nodes
    }

    fn with_room_for(count: usize) -> Self {
        let padded = count.next_multiple_of(MAX_LANES);
        Self {
            count,
            angles: vec![0.0; padded],
            half_sines: vec![0.0; padded],
            half_cosines: vec![1.0; padded],
        }
    }

    /// The number of nodes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of nodes with the padding: the length of the slices a kernel writes.
    pub fn padded(&self) -> usize {
        self.angles.len()
    }

    /// φₖ.
    pub fn angles(&self) -> &[f64] {
        &self.angles[..self.count]
    }

    /// sin(φₖ/2).
    pub fn half_sines(&self) -> &[f64] {
        &self.half_sines[..self.count]
    }

    /// cos(φₖ/2).
    pub fn half_cosines(&self) -> &[f64] {
        &self.half_cosines[..self.count]
    }
}

dispatch! {
    /// Writes L(d + iφₖ), L(z) = Σ cᵢ\[ln(1+pᵢ(eᶻ−1)) − pᵢz\], as real and imaginary parts.
    ///
    /// The series, in S = 4 sinh²(z/2), is L = ½ Σₘ (−1)ᵐ⁺¹ AₘSᵐ/m − Σₘ dₘ(z)Bₘ with
    /// dₘ = sinh z·(−S)ᵐ·eₘ, cut after `terms`.
    ///
    /// # Panics
    /// If `re` or `im` is not of length [`Nodes::padded`], or `terms` exceeds those collected.
    pub fn series_at_nodes(
        sums: &PowerSums,
        terms: usize,
        d: f64,
        nodes: &Nodes,
        re: &mut [f64],
        im: &mut [f64],
    ) = series;
}

dispatch! {
    /// Multiplies the complex numbers (reₖ, imₖ) by Πᵢ (1 + pᵢ(e^{iφₖ} − 1)).
    ///
    /// # Panics
    /// If `re` or `im` is not of length [`Nodes::padded`].
    pub fn multiply_nodes(
        probabilities: &[f64],
        nodes: &Nodes,
        re: &mut [f64],
        im: &mut [f64],
    ) = multiply;
}

/// A complex number per lane.
#[derive(Clone, Copy)]
struct Complex<V> {
    re: V,
    im: V,
}

impl<V: Vector> Complex<V> {
    #[inline(always)]
    fn zero() -> Self {
        Self {
            re: V::zero(),
            im: V::zero(),
        }
    }
    #[inline(always)]
    fn times(self, y: Self) -> Self {
        Self {
            re: self.re.mul(y.re).sub(self.im.mul(y.im)),
            im: self.re.mul_add(y.im, self.im.mul(y.re)),
        }
    }
    #[inline(always)]
    fn plus(self, y: Self) -> Self {
        Self {
            re: self.re.add(y.re),
            im: self.im.add(y.im),
        }
    }
    #[inline(always)]
    fn minus(self, y: Self) -> Self {
        Self {
            re: self.re.sub(y.re),
            im: self.im.sub(y.im),
        }
    }
    #[inline(always)]
    fn scaled(self, factor: f64) -> Self {
        let factor = V::splat(factor);
        Self {
            re: self.re.mul(factor),
            im: self.im.mul(factor),
        }
    }
}

/// Σₘ dₘBₘ over the first `terms`, with the recurrence `backward` or forward.
#[inline(always)]
fn odd_part<V: Vector>(
    odd: &[f64; MAX_TERMS],
    terms: usize,
    half_z: Complex<V>,
    sinh: Complex<V>,
    minus_s: Complex<V>,
    backward: bool,
) -> Complex<V> {
    let mut sum = Complex::zero();
    if backward {
        let start = terms + BACKWARD_STEPS;
        let mut e = Complex {
            re: V::splat(1.0 / (4 * start + 6) as f64),
            im: V::zero(),
        };
        for m in (1..=start).rev() {
            let inverse = 1.0 / (4 * m + 2) as f64;
            e = minus_s.times(e).scaled((m + 1) as f64 * inverse);
            e.re = e.re.add(V::splat(inverse));
            if m <= terms {
                sum = minus_s.times(sum).plus(e.scaled(odd[m - 1]));
            }
        }
        return sinh.times(minus_s.times(sum));
    }
    let (mut d, mut power) = (half_z, sinh);
    for (m, &b) in odd.iter().enumerate().take(terms) {
        d = d
            .scaled((4 * m + 2) as f64)
            .minus(power)
            .scaled(1.0 / (m + 1) as f64);
        power = power.times(minus_s);
        sum = sum.plus(d.scaled(b));
    }
    sum
}

#[inline(always)]
fn series<V: Vector>(
    sums: &PowerSums,
    terms: usize,
    d: f64,
    nodes: &Nodes,
    re: &mut [f64],
    im: &mut [f64],
) {
    let length = nodes.padded();
    assert!(re.len() == length && im.len() == length && terms <= sums.terms);
    let (sinh_half, cosh_half) = ((0.5 * d).sinh(), (0.5 * d).cosh());
    let (vs, vc) = (V::splat(sinh_half), V::splat(cosh_half));
    let mut k = 0;
    while k < length {
        let (sine, cosine) = (
            V::load(&nodes.half_sines[k..]),
            V::load(&nodes.half_cosines[k..]),
        );
        let sinh = Complex {
            re: vs.mul(cosine),
            im: vc.mul(sine),
        };
        let cosh = Complex {
            re: vc.mul(cosine),
            im: vs.mul(sine),
        };
        let minus_s = sinh.times(sinh).scaled(-4.0);
        let mut even = Complex::zero();
        for m in (1..=terms).rev() {
            even = minus_s.times(even);
            even.re = even.re.add(V::splat(sums.even[m - 1] / m as f64));
        }
        even = minus_s.times(even).scaled(-0.5);
        let mut widest = 0.0f64;
        for lane in sine.to_lanes() {
            widest = widest.max(4.0 * (sinh_half * sinh_half + lane * lane));
        }
        let half_z = Complex {
            re: V::splat(0.5 * d),
            im: V::load(&nodes.angles[k..]).mul(V::splat(0.5)),
        };
        let sinh_z = sinh.times(cosh).scaled(2.0);
        let backward = widest <= BACKWARD_LIMIT;
        let value = even.minus(odd_part(
            &sums.odd, terms, half_z, sinh_z, minus_s, backward,
        ));
        value.re.store(&mut re[k..]);
        value.im.store(&mut im[k..]);
        k += V::LANES;
    }
}

#[inline(always)]
fn multiply<V: Vector>(probabilities: &[f64], nodes: &Nodes, re: &mut [f64], im: &mut [f64]) {
    let length = nodes.padded();
    assert!(re.len() == length && im.len() == length);
    let two = V::splat(2.0);
    let mut k = 0;
    while k < length {
        let half_sine = V::load(&nodes.half_sines[k..]);
        let doubled = half_sine.mul(two);
        let sine = doubled.mul(V::load(&nodes.half_cosines[k..]));
        let one_minus_cosine = doubled.mul(half_sine);
        let mut product = Complex {
            re: V::load(&re[k..]),
            im: V::load(&im[k..]),
        };
        let mut lost = Complex::zero();
        for &p in probabilities {
            let p = V::splat(p);
            let below = p.mul(one_minus_cosine);
            let factor = Complex {
                re: V::one().sub(below),
                im: p.mul(sine),
            };
            product = product.times(factor);
            // Equal terms lose the same in 1 − below, so what is lost is kept, times 1/factor:
            // the conjugate is near enough wherever the product matters.
            let rounding = V::one().sub(factor.re).sub(below);
            lost.re = rounding.mul_add(factor.re, lost.re);
            lost.im = rounding.neg_mul_add(factor.im, lost.im);
        }
        product = product.plus(product.times(lost));
        product.re.store(&mut re[k..]);
        product.im.store(&mut im[k..]);
        k += V::LANES;
    }
}
