//! The law of the sum tilted until its mean is near a target, summarised by power sums.
//!
//! Tilting multiplies all odds by x; with pᵢ = Eᵢx/(1+Eᵢx), wᵢ = pᵢ(1−pᵢ) and tᵢ = 1−2pᵢ the centred
//! log generating function is
//!
//! L(z) = Σ \[ln(1+pᵢ(eᶻ−1)) − pᵢz\] = ½ Σₘ (−1)ᵐ⁺¹ AₘSᵐ/m − Σₘ dₘ(z)Bₘ, S = 4 sinh²(z/2),
//!
//! with Aₘ = Σwᵢᵐ, Bₘ = Σtᵢwᵢᵐ, d₀ = z/2 and dₘ₊₁ = \[(4m+2)dₘ − sinh z (−S)ᵐ\]/(m+1). The error of L
//! terms is at most A₁|S|(w|S|)ᴸ/((L+1)(1−w|S|)), w the largest wᵢ. Where the variance is too small
//! for the series, the few terms with large wᵢ are kept apart and multiplied out.

use leakbound_simd::{LogRatio, PowerSums, log_ratio, power_sums, rough_power_sums};

use super::exact::{self, Sized, Sum, two_product, two_sum};
use super::series::{
    Cumulants, Estimate, REMAINDER, allowance, enough_terms, node_remainder, remainder,
};
use super::terms::Terms;

/// The mean of an accepted base is this many standard deviations from the target at most.
const NEAR: f64 = 3.0;
/// And the remaining shift in ln x at most this.
const LARGEST_SHIFT: f64 = 0.4;
/// The series with `SPLIT_TERMS` terms is right for all w below this share of the variance:
/// (2(L+1)w/(e·var))ᴸ ≤ 3·10⁻¹⁶ at L = 16. So at most 262 trials are ever multiplied out.
const SPLIT: f64 = 0.0085;
const SPLIT_TERMS: usize = 16;
/// From this many entries on, a sample comes before the first full pass.
const SAMPLED: usize = 3000;
/// Powers of S stay below this, and finite when multiplied by sinh z.
const LARGEST_POWER: f64 = 1e250;
/// Keeps divisions by the variance finite where every trial is all but certain.
pub(super) const SMALLEST_VARIANCE: f64 = 1e-300;
/// ln x stays within ±700; steps of at most 4, then bisection, need fewer passes than this.
const MOST_PASSES: usize = 600;
const REACH: f64 = 700.0;

/// A tilted law, near enough to its target that all else follows from its sums.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// All odds are multiplied by this.
    pub(super) x: f64,
    /// ln x, as an unevaluated sum.
    pub(super) log_x: (f64, f64),
    /// The sums of the terms that are in the series.
    pub(super) sums: PowerSums,
    /// The odds at x of the trials that are multiplied out.
    pub(super) large: Vec<f64>,
    /// The shift that brings the mean to the target: the nodes stand at tilt ln x + d.
    pub(super) d: f64,
    /// The variance at ln x + d.
    pub(super) variance: f64,
}

/// A lower and an upper limit for ln x, closed in on with every pass.
struct Bracket {
    low: f64,
    high: f64,
}

impl Bracket {
    /// Notes the sign of target − mean at `log_x` and proposes the next point.
    fn step(&mut self, log_x: f64, delta: f64, d: f64) -> f64 {
        if delta > 0.0 {
            self.low = log_x;
        } else {
            self.high = log_x;
        }
        let next = log_x
            + if d.is_finite() {
                d.clamp(-4.0, 4.0)
            } else {
                4.0 * delta.signum()
            };
        if self.low < next && next < self.high {
            next
        } else {
            0.5 * (self.low + self.high)
        }
    }
}

/// A safe step towards the target from a mean that lacks `delta`.
fn newton(cumulants: Cumulants, delta: f64) -> f64 {
    let d = cumulants.shift(delta);
    if d.abs() < 1.5 && d * delta >= 0.0 {
        d
    } else {
        delta / cumulants.0[0]
    }
}

/// The sums at `log_x`: rough ones for a search, `count` precise ones to stay.
fn pass(terms: &Terms, log_x: f64, count: Option<usize>) -> PowerSums {
    let (counts, x) = (terms.counts.as_deref(), log_x.exp());
    match count {
        None => rough_power_sums(terms.level, &terms.odds, counts, x),
        Some(count) => power_sums(terms.level, &terms.odds, &terms.residuals, counts, x, count),
    }
}

fn distance(sums: &PowerSums, v: f64) -> f64 {
    -((sums.mean.0 - v) + sums.mean.1)
}

/// ln x and an estimate for the law with mean `v`, from a sample of about `size` entries taken eight
/// at a time (whole cache lines) from all over the terms.
fn from_sample(terms: &Terms, v: f64, size: usize, start: f64) -> (f64, Estimate) {
    const RUN: usize = 8;
    let n = terms.odds.len();
    let runs = size / RUN;
    let stride = n / runs;
    let mut odds = Vec::with_capacity(runs * RUN);
    for run in 0..runs {
        // A golden-ratio offset inside the stride, so that no period of the data is met in step.
        let jitter = ((run.wrapping_mul(0x9e37_79b9) & 0xffff_ffff) * (stride - RUN)) >> 32;
        let first = run * stride + jitter;
        odds.extend_from_slice(&terms.odds[first..first + RUN]);
    }
    let scale = n as f64 / odds.len() as f64;
    let target = v / scale;
    let mut bracket = Bracket {
        low: -REACH,
        high: REACH,
    };
    let mut log_x = start;
    loop {
        let sums = rough_power_sums(terms.level, &odds, None, log_x.exp());
        let delta = distance(&sums, target);
        let d = newton(Cumulants::of(&sums), delta);
        let done = delta * delta < 0.1 * sums.even[0] || bracket.high - bracket.low < 1e-6;
        if done || !d.is_finite() {
            let largest = (1.5 * sums.largest).min(0.25);
            let log_x = log_x + if d.abs() < 1.5 { d } else { 0.0 };
            return (
                log_x,
                Estimate {
                    variance: sums.even[0] * scale,
                    largest,
                },
            );
        }
        log_x = bracket.step(log_x, delta, d);
    }
}

/// Where to look first.
fn first_guess(terms: &Terms, v: f64) -> (f64, Option<Estimate>) {
    let n = terms.trials as f64;
    let guess = (v / (n - v)).ln() - terms.typical_log_odds();
    let guess = guess.clamp(-REACH, REACH);
    let entries = terms.odds.len();
    if terms.counts.is_some() || entries < SAMPLED {
        return (guess, None);
    }
    let (log_x, estimate) = from_sample(terms, v, 1024.min(entries / 4), guess);
    if entries / 16 <= 2048 {
        return (log_x, Some(estimate));
    }
    let (log_x, estimate) = from_sample(terms, v, entries / 16, log_x);
    (log_x, Some(estimate))
}

impl Base {
    /// The base for the mean `v`, 0 < v < number of open trials. `start` is an earlier ln x, and
    /// `theta` guesses the real argument the series will be asked for from (ln x, variance).
    pub(super) fn near(
        terms: &Terms,
        v: f64,
        start: Option<f64>,
        theta: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let n = terms.trials as f64;
        let (mut log_x, mut estimate) = match start {
            Some(log_x) => {
                let variance = 0.6 * v * (1.0 - v / n);
                (
                    log_x,
                    Some(Estimate {
                        variance,
                        largest: 0.25_f64.min(variance),
                    }),
                )
            }
            None => first_guess(terms, v),
        };
        let mut bracket = Bracket {
            low: -REACH,
            high: REACH,
        };
        let mut passes = 0;
        loop {
            let count = estimate.and_then(|e| enough_terms(e, theta(log_x, e.variance)));
            let sums = pass(terms, log_x, count);
            passes += 1;
            let cumulants = Cumulants::of(&sums);
            let delta = distance(&sums, v);
            let d = newton(cumulants, delta);
            let near = delta * delta <= NEAR * NEAR * sums.even[0] && d.abs() <= LARGEST_SHIFT;
            let near = near || bracket.high - bracket.low < 1e-9 || passes == MOST_PASSES;
            let variance = cumulants.variance(d).max(SMALLEST_VARIANCE);
            let known = Estimate {
                variance,
                largest: sums.largest,
            };
            if near {
                let accurate = count.is_some()
                    && node_remainder(variance, variance, sums.largest, sums.terms, d) <= REMAINDER
                    && remainder(variance, sums.largest, sums.terms, shift_s(d)) <= REMAINDER;
                if accurate {
                    return Self::new(log_x, sums, Vec::new(), d, variance);
                }
                // Even a vanishing shift may leave the terms short.
                let short = count.is_some() && delta * delta <= 0.01 * sums.even[0];
                if short || enough_terms(known, theta(log_x, variance)).is_none() {
                    return Self::split(terms, v, log_x, d, sums.even[0]);
                }
            }
            estimate = Some(known);
            log_x = bracket.step(log_x, delta, d);
        }
    }

    /// Bounds the error of [`Self::log_mgf`] at `z`, however large; none if it is infinite.
    pub(super) fn bound_remainder(&self, z: f64) -> Option<f64> {
        let PowerSums {
            terms,
            even,
            largest,
            ..
        } = &self.sums;
        let s = shift_s(z);
        // However small the sums it meets, no power of S may overflow.
        let holds = s.powf(*terms as f64) < LARGEST_POWER;
        Some(remainder(even[0], *largest, *terms, s)).filter(|r| holds && r.is_finite())
    }

    fn new(log_x: f64, sums: PowerSums, large: Vec<f64>, d: f64, variance: f64) -> Self {
        let x = log_x.exp();
        Self {
            x,
            log_x: exact::log(x),
            sums,
            large,
            d,
            variance,
        }
    }

    /// The base at `log_x` + `d`, where the mean is near v, with the trials of large w kept out of
    /// the series; `variance` is that at `log_x`, which no shift divides by more than e^|d|.
    fn split(terms: &Terms, v: f64, log_x: f64, d: f64, variance: f64) -> Self {
        let d = if d.abs() <= LARGEST_SHIFT { d } else { 0.0 };
        let (log_x, cut) = (log_x + d, SPLIT * variance * (-d.abs()).exp());
        let x = log_x.exp();
        let (mut odds, mut large) = (terms.odds.clone(), Vec::new());
        for (i, e) in odds.iter_mut().enumerate() {
            let o = *e * x;
            if o / (1.0 + o) / (1.0 + o) > cut {
                let count = terms.counts.as_ref().map_or(1, |counts| counts[i] as usize);
                large.extend(std::iter::repeat_n(o, count));
                *e = 0.0;
            }
        }
        let counts = terms.counts.as_deref();
        let sums = power_sums(terms.level, &odds, &terms.residuals, counts, x, SPLIT_TERMS);
        let mut cumulants = Cumulants::of(&sums);
        let mut delta = distance(&sums, v);
        for &o in &large {
            cumulants.add(o);
            delta -= o / (1.0 + o);
        }
        let d = newton(cumulants, delta).clamp(-LARGEST_SHIFT, LARGEST_SHIFT);
        let variance = cumulants.variance(d).max(SMALLEST_VARIANCE);
        Self::new(log_x, sums, large, d, variance)
    }

    /// The mean of the terms in the series, less `v`.
    pub(super) fn series_mean_less(&self, v: f64) -> f64 {
        -distance(&self.sums, v)
    }

    /// Bounds the error of [`Self::log_mgf`] at `z`; none if it is more than can be allowed.
    pub(super) fn remainder(&self, z: f64) -> Option<f64> {
        let allowed = 4.0 * allowance(self.sums.even[0], shift_s(z));
        self.bound_remainder(z)
            .filter(|remainder| *remainder <= allowed)
    }

    /// Bounds the relative error the series leaves at the nodes of a contour.
    pub(super) fn node_remainder(&self) -> f64 {
        let PowerSums {
            terms,
            even,
            largest,
            ..
        } = &self.sums;
        node_remainder(even[0], self.variance, *largest, *terms, self.d).min(1.0)
    }

    /// L(z) for real z, over the terms in the series.
    fn series(&self, z: f64) -> f64 {
        let (sinh, cosh) = ((0.5 * z).sinh(), (0.5 * z).cosh());
        let (minus_s, sinh_z) = (-4.0 * sinh * sinh, 2.0 * sinh * cosh);
        let PowerSums {
            terms,
            even: a,
            odd: b,
            ..
        } = &self.sums;
        let mut even = 0.0;
        for m in (1..=*terms).rev() {
            even = minus_s * even + a[m - 1] / m as f64;
        }
        let mut odd = 0.0;
        if -minus_s <= 1.0 {
            // e_m = [1 − (m+1)S e_{m+1}]/(4m+2), each step dividing the error of the start by 4.
            let start = terms + 26;
            let mut e = 1.0 / (4 * start + 6) as f64;
            for m in (1..=start).rev() {
                e = (1.0 + minus_s * e * (m + 1) as f64) / (4 * m + 2) as f64;
                if m <= *terms {
                    odd = minus_s * odd + e * b[m - 1];
                }
            }
            odd *= sinh_z * minus_s;
        } else {
            let (mut d, mut power) = (0.5 * z, sinh_z);
            for (m, b) in b.iter().enumerate().take(*terms) {
                d = ((4 * m + 2) as f64 * d - power) / (m + 1) as f64;
                power *= minus_s;
                odd += d * b;
            }
        }
        -0.5 * minus_s * even - odd
    }

    /// L(z) over all terms.
    pub(super) fn log_mgf(&self, z: f64) -> Sized {
        let (growth, decay) = (z.exp_m1(), (-z).exp_m1());
        let mut large = Sum::default();
        for o in &self.large {
            // Through the rarer outcome, whose probability keeps its relative accuracy.
            if *o < 1.0 {
                let p = o / (1.0 + o);
                large.add((p * growth).ln_1p());
                large.add(-p * z);
            } else {
                let q = 1.0 / (1.0 + o);
                large.add((q * decay).ln_1p());
                large.add(q * z);
            }
        }
        let (series, large) = (self.series(z), large.sized());
        Sized {
            value: series + large.value,
            size: series.abs() + large.size,
        }
    }

    /// The mean of all terms less `v`.
    pub(super) fn mean_less(&self, v: f64) -> Sized {
        let (mut likely, mut large) = (0.0, Sum::default());
        for o in &self.large {
            if *o < 1.0 {
                large.add(o / (1.0 + o));
            } else {
                likely += 1.0;
                large.add(-1.0 / (1.0 + o));
            }
        }
        let (series, large) = (self.series_mean_less(v - likely), large.sized());
        Sized {
            value: series + large.value,
            size: series.abs() + large.size,
        }
    }
}

/// S = 4 sinh²(z/2).
fn shift_s(z: f64) -> f64 {
    4.0 * (0.5 * z).sinh().powi(2)
}

/// Σ ln\[(1+Eᵢy)/(1+Eᵢx)\] by a product over all terms, with ln y given as an unevaluated sum, and
/// the mean at y.
pub(super) fn log_ratio_to(terms: &Terms, x: f64, log_y: (f64, f64)) -> LogRatio {
    // y is rounded; the difference of the logarithms is made up for by the mean at y.
    let y = if log_y.0 < -REACH { 0.0 } else { log_y.0.exp() };
    let mut ratio = match &terms.counts {
        None => log_ratio(terms.level, &terms.odds, &terms.residuals, x, y),
        Some(counts) => exact::counted_log_ratio(&terms.odds, &terms.residuals, counts, x, y),
    };
    if y > 0.0 {
        let rounded = exact::log(y);
        ratio.log.1 += ((log_y.0 - rounded.0) + (log_y.1 - rounded.1)) * ratio.mean;
    }
    ratio
}

/// F(z) − vz for F(z) = Σ ln\[(1+Eᵢx·eᶻ)/(1+Eᵢx)\], and the size of what cancelled.
pub(super) fn log_ratio_less(
    terms: &Terms,
    x: f64,
    log_x: (f64, f64),
    z: f64,
    v: f64,
) -> (f64, f64) {
    let (high, low) = two_sum(log_x.0, z);
    let ratio = log_ratio_to(terms, x, (high, low + log_x.1));
    let (product, product_error) = two_product(v, z);
    let (difference, error) = two_sum(ratio.log.0, -product);
    let value = difference + (error + (ratio.log.1 - product_error));
    (value, ratio.log.0.abs() + product.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_split_leaves_to_the_series_is_known_at_the_nodes() {
        let place = |i: i32| f64::from(i * 37 % 801) / 400.0 - 1.0;
        let offsets: Vec<f64> = (0..800).map(|i| 4.0 * place(i).powi(5)).collect();
        let terms = Terms::from_offsets(&offsets).unwrap();
        for (log_x, d) in [(3.75, 0.37), (4.2, 0.37), (3.8, -0.37), (-3.8, 0.39)] {
            let [variance, v] = [log_x, log_x + d].map(|at| pass(&terms, at, Some(16)));
            let (variance, v) = (variance.even[0], v.mean.0);
            let base = Base::split(&terms, v, log_x, d, variance);
            let large = base.large.len();
            let left = base.node_remainder();
            assert!(
                base.d.abs() < 1e-9 && large > 0 && left < 1e-12,
                "{} {large} {left}",
                base.d
            );
        }
    }
}
