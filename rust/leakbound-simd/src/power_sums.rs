//! The one pass over the data: Σp and the power sums of the variances p(1−p).

use crate::dispatch::dispatch;
use crate::vector::{MAX_LANES, Vector, padded};

/// The most power sums one pass collects.
pub const MAX_TERMS: usize = 24;

/// Entries handled between two visits to the compensated totals; the buffers stay in L1.
const BLOCK: usize = 512;

/// 1.5·2²⁶: adding and subtracting it rounds a probability to a multiple of 2⁻²⁶, so that sums of
/// up to 2²⁶ such multiples are exact.
const ROUNDER: f64 = 100_663_296.0;

/// Sums over the terms, with oᵢ = Eᵢx, pᵢ = oᵢ/(1+oᵢ), wᵢ = pᵢ(1−pᵢ) and tᵢ = 1−2pᵢ.
#[derive(Clone, Debug)]
pub struct PowerSums {
    /// How many entries of `even` and `odd` were collected.
    pub terms: usize,
    /// Σ cᵢpᵢ as an unevaluated sum of two doubles.
    pub mean: (f64, f64),
    /// `even[m-1]` = Σ cᵢwᵢᵐ.
    pub even: [f64; MAX_TERMS],
    /// `odd[m-1]` = Σ cᵢtᵢwᵢᵐ.
    pub odd: [f64; MAX_TERMS],
    /// max wᵢ.
    pub largest: f64,
}

dispatch! {
    /// Collects [`PowerSums`] at the odds multiplier `x`.
    ///
    /// `residuals` refine the odds, which are Eᵢ(1+rᵢ); `counts` are the multiplicities cᵢ, all one
    /// when absent. `terms` is rounded up to an even number and cut at [`MAX_TERMS`]. The mean
    /// carries about 100 bits, everything else is rounded once per term and summed with
    /// compensation per block.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn power_sums(
        odds: &[f64],
        residuals: &[f32],
        counts: Option<&[f64]>,
        x: f64,
        terms: usize,
    ) -> PowerSums = precise;
}

dispatch! {
    /// [`PowerSums`] of two terms in plain double precision: enough to search for x.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn rough_power_sums(odds: &[f64], counts: Option<&[f64]>, x: f64) -> PowerSums = rough;
}

/// A sum per lane with its accumulated rounding error.
#[derive(Clone, Copy)]
struct Total<V> {
    sum: V,
    error: V,
}

impl<V: Vector> Total<V> {
    #[inline(always)]
    fn zero() -> Self {
        Self {
            sum: V::zero(),
            error: V::zero(),
        }
    }
    #[inline(always)]
    fn add(&mut self, x: V) {
        let (sum, error) = self.sum.two_sum(x);
        self.sum = sum;
        self.error = self.error.add(error);
    }
    /// All lanes together, in lane order.
    fn value(self) -> (f64, f64) {
        let (sums, errors) = (self.sum.to_lanes(), self.error.to_lanes());
        let (mut high, mut low) = (0.0, 0.0);
        for (sum, error) in sums.into_iter().zip(errors) {
            let (next, rounding) = two_sum(high, sum);
            high = next;
            low += rounding + error;
        }
        two_sum(high, low)
    }
}

/// Sums of numbers below 1 within one block: the leading 26 bits without error, the rest apart.
struct Split<V> {
    high: V,
    low: V,
}

impl<V: Vector> Split<V> {
    #[inline(always)]
    fn zero() -> Self {
        Self {
            high: V::zero(),
            low: V::zero(),
        }
    }
    /// Adds `count`·(x + error); `count` is 1 unless `COUNTED`.
    #[inline(always)]
    fn add<const COUNTED: bool>(&mut self, x: V, error: V, count: V, total: &mut Total<V>) {
        let rounder = V::splat(ROUNDER);
        let high = x.add(rounder).sub(rounder);
        let low = x.sub(high).add(error);
        if COUNTED {
            let product = high.mul(count);
            total.add(product);
            self.low = low.mul_add(count, self.low.add(high.product_error(count, product)));
        } else {
            self.high = self.high.add(high);
            self.low = self.low.add(low);
        }
    }
    #[inline(always)]
    fn spill(self, total: &mut Total<V>) {
        total.add(self.high);
        total.error = total.error.add(self.low);
    }
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// One block: w, t and the running power c·wᵐ of every entry.
struct Buffers {
    w: [f64; BLOCK],
    t: [f64; BLOCK],
    power: [f64; BLOCK],
}

/// All sums so far.
struct Collector<V> {
    mean: Total<V>,
    variance: Total<V>,
    largest: V,
    even: [Total<V>; MAX_TERMS],
    odd: [Total<V>; MAX_TERMS],
}

#[inline(always)]
fn precise<V: Vector>(
    odds: &[f64],
    residuals: &[f32],
    counts: Option<&[f64]>,
    x: f64,
    terms: usize,
) -> PowerSums {
    match counts {
        Some(counts) => collect::<V, true, true>(odds, residuals, counts, x, terms),
        None => collect::<V, false, true>(odds, residuals, &[], x, terms),
    }
}

#[inline(always)]
fn rough<V: Vector>(odds: &[f64], counts: Option<&[f64]>, x: f64) -> PowerSums {
    match counts {
        Some(counts) => collect::<V, true, false>(odds, &[], counts, x, 2),
        None => collect::<V, false, false>(odds, &[], &[], x, 2),
    }
}

#[inline(always)]
fn collect<V: Vector, const COUNTED: bool, const PRECISE: bool>(
    odds: &[f64],
    residuals: &[f32],
    counts: &[f64],
    x: f64,
    terms: usize,
) -> PowerSums {
    assert!(!PRECISE || odds.len() == residuals.len());
    assert!(!COUNTED || odds.len() == counts.len());
    let terms = terms.next_multiple_of(2).clamp(2, MAX_TERMS);
    let mut buffers = Buffers {
        w: [0.0; BLOCK],
        t: [0.0; BLOCK],
        power: [0.0; BLOCK],
    };
    let mut collector = Collector::<V> {
        mean: Total::zero(),
        variance: Total::zero(),
        largest: V::zero(),
        even: [Total::zero(); MAX_TERMS],
        odd: [Total::zero(); MAX_TERMS],
    };
    let whole = odds.len() - odds.len() % V::LANES;
    let mut start = 0;
    while start < whole {
        let end = whole.min(start + BLOCK);
        let residuals = if PRECISE {
            &residuals[start..end]
        } else {
            residuals
        };
        let counts = if COUNTED { &counts[start..end] } else { counts };
        let odds = &odds[start..end];
        collector.probabilities::<COUNTED, PRECISE>(&mut buffers, odds, residuals, counts, x);
        collector.powers::<COUNTED>(&mut buffers, end - start, terms);
        start = end;
    }
    if whole < odds.len() {
        let odds = padded(&odds[whole..]);
        let residuals = if PRECISE {
            padded(&residuals[whole..])
        } else {
            [0.0; MAX_LANES]
        };
        let counts = if COUNTED {
            padded(&counts[whole..])
        } else {
            [0.0; MAX_LANES]
        };
        let (odds, residuals) = (&odds[..V::LANES], &residuals[..V::LANES]);
        collector.probabilities::<COUNTED, PRECISE>(&mut buffers, odds, residuals, &counts, x);
        collector.powers::<COUNTED>(&mut buffers, V::LANES, terms);
    }
    collector.finish(terms, PRECISE)
}

impl<V: Vector> Collector<V> {
    /// Fills the buffers of one block of whole vectors and adds to mean, variance and largest w.
    #[inline(always)]
    fn probabilities<const COUNTED: bool, const PRECISE: bool>(
        &mut self,
        buffers: &mut Buffers,
        odds: &[f64],
        residuals: &[f32],
        counts: &[f64],
        x: f64,
    ) {
        let (one, x) = (V::one(), V::splat(x));
        let (mut means, mut variances) = (Split::<V>::zero(), Split::<V>::zero());
        let mut largest = self.largest;
        let mut k = 0;
        while k < odds.len() {
            let e = V::load(&odds[k..]);
            let o = e.mul(x);
            let q = one.div(one.add(o));
            let p = o.mul(q);
            let w = p.mul(q);
            w.store(&mut buffers.w[k..]);
            q.sub(p).store(&mut buffers.t[k..]);
            largest = largest.max(w);
            let count = if COUNTED { V::load(&counts[k..]) } else { one };
            if COUNTED {
                w.mul(count).store(&mut buffers.power[k..]);
            }
            if PRECISE {
                // p lacks (o(1−p) − p)/(1+o), with o and 1−p completed by their rounding errors.
                let complement = one.sub(p);
                let complement_error = one.sub(complement).sub(p);
                let o_error = e.product_error(x, o);
                let lacking = o_error.mul_add(complement, o.mul(complement_error));
                let lacking = lacking.sub(o.residual(complement, p));
                let p_error = q.mul_add(lacking, w.mul(V::load_f32(&residuals[k..])));
                means.add::<COUNTED>(p, p_error, count, &mut self.mean);
                variances.add::<COUNTED>(w, V::zero(), count, &mut self.variance);
            } else {
                means.high = p.mul_add(count, means.high);
            }
            k += V::LANES;
        }
        means.spill(&mut self.mean);
        variances.spill(&mut self.variance);
        self.largest = largest;
    }

    /// Adds Σc·wᵐ and Σt·c·wᵐ of one block for every m.
    #[inline(always)]
    fn powers<const COUNTED: bool>(&mut self, buffers: &mut Buffers, used: usize, terms: usize) {
        let mut m = 0;
        while m < terms {
            let (even, odd) = (&mut self.even[m..], &mut self.odd[m..]);
            let plain = m == 0 && !COUNTED;
            if terms - m >= 4 {
                four_powers::<V>(buffers, used, even, odd, plain, m + 4 < terms);
                m += 4;
            } else {
                two_powers::<V>(buffers, used, even, odd, plain);
                m += 2;
            }
        }
    }

    fn finish(self, terms: usize, precise: bool) -> PowerSums {
        let mut sums = PowerSums {
            terms,
            mean: self.mean.value(),
            even: [0.0; MAX_TERMS],
            odd: [0.0; MAX_TERMS],
            largest: 0.0,
        };
        for m in 0..terms {
            sums.even[m] = self.even[m].value().0;
            sums.odd[m] = self.odd[m].value().0;
        }
        if precise {
            sums.even[0] = self.variance.value().0;
        }
        for lane in self.largest.to_lanes() {
            sums.largest = sums.largest.max(lane);
        }
        sums
    }
}

/// Adds Σc·wᵐ and Σt·c·wᵐ for the next four m, starting from w itself if `plain`; leaves the fifth
/// power behind if `more` follow.
#[inline(always)]
fn four_powers<V: Vector>(
    buffers: &mut Buffers,
    used: usize,
    even: &mut [Total<V>],
    odd: &mut [Total<V>],
    plain: bool,
    more: bool,
) {
    let (mut a0, mut a1, mut a2, mut a3) = (V::zero(), V::zero(), V::zero(), V::zero());
    let (mut b0, mut b1, mut b2, mut b3) = (V::zero(), V::zero(), V::zero(), V::zero());
    let mut k = 0;
    while k < used {
        let w = V::load(&buffers.w[k..]);
        let t = V::load(&buffers.t[k..]);
        let mut power = if plain {
            w
        } else {
            V::load(&buffers.power[k..])
        };
        a0 = a0.add(power);
        b0 = t.mul_add(power, b0);
        power = power.mul(w);
        a1 = a1.add(power);
        b1 = t.mul_add(power, b1);
        power = power.mul(w);
        a2 = a2.add(power);
        b2 = t.mul_add(power, b2);
        power = power.mul(w);
        a3 = a3.add(power);
        b3 = t.mul_add(power, b3);
        if more {
            power.mul(w).store(&mut buffers.power[k..]);
        }
        k += V::LANES;
    }
    for (total, sum) in even.iter_mut().zip([a0, a1, a2, a3]) {
        total.add(sum);
    }
    for (total, sum) in odd.iter_mut().zip([b0, b1, b2, b3]) {
        total.add(sum);
    }
}

/// As `four_powers`, for the last two m.
#[inline(always)]
fn two_powers<V: Vector>(
    buffers: &Buffers,
    used: usize,
    even: &mut [Total<V>],
    odd: &mut [Total<V>],
    plain: bool,
) {
    let (mut a0, mut a1, mut b0, mut b1) = (V::zero(), V::zero(), V::zero(), V::zero());
    let mut k = 0;
    while k < used {
        let w = V::load(&buffers.w[k..]);
        let t = V::load(&buffers.t[k..]);
        let power = if plain {
            w
        } else {
            V::load(&buffers.power[k..])
        };
        a0 = a0.add(power);
        b0 = t.mul_add(power, b0);
        let power = power.mul(w);
        a1 = a1.add(power);
        b1 = t.mul_add(power, b1);
        k += V::LANES;
    }
    even[0].add(a0);
    even[1].add(a1);
    odd[0].add(b0);
    odd[1].add(b1);
}
