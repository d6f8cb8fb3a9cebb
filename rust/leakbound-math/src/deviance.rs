//! Deviances: the exponents of the Poisson and binomial saddle-point formulas, free of cancellation.
//!
//! Names: `mean` is Loader's n p, `deviance` his D₀ scaled, D(x; m) = x ln(x/m) + m − x (Loader
//! 2000, "Fast and accurate computation of binomial probabilities", §2).

use crate::probability::Probability;

/// r · KL(w/r ‖ p) = w ln(w/(r p)) + (r − w) ln((r − w)/(r q)) ≥ 0, for w successes in r trials.
///
/// Domain: 0 ≤ w ≤ r ≤ 2⁵³, not necessarily whole; p = 0 with w > 0 and p = 1 with w < r give ∞.
/// Accuracy: 1e-15 relative wherever the smaller of p and q is taken as exact, w/r close to p
/// included: w − r p is formed with the rounding of the product carried along. Nearest, no
/// direction. Source: Loader 2000, eq. (3), D(w; r p) + D(r − w; r q).
pub fn binomial_divergence(successes: f64, trials: f64, p: Probability) -> f64 {
    let failures = trials - successes;
    let (mean, other) = (Mean::new(trials, p.p()), Mean::new(trials, p.q()));
    let above = above_mean(successes, trials, p);
    deviance_of(successes, mean, above) + deviance_of(failures, other, -above)
}

/// A lower and an upper bound of [`binomial_divergence`], by products and quotients alone.
///
/// Domain: that of the divergence. With x = w/r it is r times the integral of (x − t)/(t (1 − t))
/// from p to x, that is r (x − p)²/2 times a mean of 1/(t (1 − t)) with weights in proportion to
/// |x − t|. That function is convex: by Jensen's inequality the mean is at least its value at the mean
/// place, p + (x − p)/3, and by the chord at most two thirds of its value at p and a third of that
/// at x, which is ∞ for w = 0 and w = r. Both are rounded outwards; where x is near p they differ by
/// about ((x − p)/(2 p q))², relative, or less.
pub fn binomial_divergence_bounds(successes: f64, trials: f64, p: Probability) -> (f64, f64) {
    let above = above_mean(successes, trials, p);
    if above == 0.0 {
        return (0.0, 0.0);
    }
    let square = above * above;
    if square < 1e-200 {
        // Products of it may underflow.
        return (0.0, f64::INFINITY);
    }
    let at_mean = trials * p.p() * p.q();
    let at_share = successes * (trials - successes);
    let between = (3.0 * trials * p.p() + above) * (3.0 * trials * p.q() - above);
    let low = 4.5 * square * trials / between;
    let below = 6.0 * at_mean * at_share;
    let high = if below > 0.0 {
        square * (2.0 * at_share + trials * at_mean) / below
    } else {
        f64::INFINITY
    };
    (low * (1.0 - OUTWARDS), high * (1.0 + OUTWARDS))
}

/// ln n! − \[½ ln(2πn) + n ln n − n\], the error of Stirling's formula, about 1/(12 n).
///
/// Domain: n ≥ 1; +∞ at 0, its limit. Accuracy: 3e-16 relative; nearest, no direction. Cost: a
/// table look-up below 24, else six terms of the series Σ B₂ₖ / (2k (2k−1) n^{2k−1}), whose
/// remainder is below the seventh, 2e-18 of the sum at n = 24.
pub fn stirling_error(n: u64) -> f64 {
    if let Some(&error) = STIRLING_ERROR.get(n as usize) {
        return error;
    }
    let inverse = 1.0 / n as f64;
    let z = inverse * inverse;
    inverse * (S1 - z * (S2 - z * (S3 - z * (S4 - z * (S5 - z * S6)))))
}

/// w − r p.
fn above_mean(successes: f64, trials: f64, p: Probability) -> f64 {
    // The smaller of p and q is exact, so its product tells the difference of both sides.
    if p.p() <= p.q() {
        Mean::new(trials, p.p()).below(successes)
    } else {
        -Mean::new(trials, p.q()).below(trials - successes)
    }
}

/// A product `value + low`, `low` being what rounding took from `value`.
#[derive(Clone, Copy)]
pub(crate) struct Mean {
    value: f64,
    low: f64,
}

impl Mean {
    pub(crate) fn new(trials: f64, p: f64) -> Self {
        let value = trials * p;
        Self {
            value,
            low: trials.mul_add(p, -value),
        }
    }

    /// x minus the product: exact to a rounding of the difference.
    pub(crate) fn below(self, x: f64) -> f64 {
        (x - self.value) - self.low
    }
}

/// D(x; mean), given x − mean.
fn deviance_of(x: f64, mean: Mean, difference: f64) -> f64 {
    // With s = (x − m)/(x + m), D = s [(x − m) + 2 x s² g(s²)], as ln(x/m) = 2 artanh s.
    let s = difference / (x + mean.value);
    if s.abs() <= NEAR {
        s * (difference + 2.0 * x * (s * s) * artanh_tail(s * s))
    } else {
        far_deviance(x, mean, difference)
    }
}

/// D(x; mean) where x/mean is not within [½, 2]; also where x or mean is 0, or both.
fn far_deviance(x: f64, mean: Mean, difference: f64) -> f64 {
    if x == 0.0 {
        return mean.value;
    }
    let ratio = x / mean.value;
    if !ratio.is_finite() || ratio == 0.0 {
        return x * (x.ln() - mean.value.ln()) - difference;
    }
    // x/mean = ratio + residual/mean, so x ln(x/mean) gains x · residual/(mean · ratio) = residual.
    let residual = (-ratio).mul_add(mean.value, x) - ratio * mean.low;
    x * ratio.ln() + (residual - difference)
}

/// Largest |s| of the near formulas: x/m from ½ to 2, past which the plain ones cancel at most 1 : 4.
const NEAR: f64 = 1.0 / 3.0;
/// What rounding may do to the bounds of a divergence, and to the divergence, relative.
const OUTWARDS: f64 = 1e-14;

/// g(z) = (artanh √z / √z − 1)/z = Σ zᵏ/(2k + 3) on [0, 1/9], by its Chebyshev interpolant of degree
/// 9 (error 4.5e-17), summed in two halves for speed.
fn artanh_tail(z: f64) -> f64 {
    let z2 = z * z;
    let z4 = z2 * z2;
    let low = (G[0] + z * G[1]) + z2 * (G[2] + z * G[3]);
    let middle = (G[4] + z * G[5]) + z2 * (G[6] + z * G[7]);
    low + z4 * (middle + z4 * (G[8] + z * G[9]))
}

const G: [f64; 10] = [
    0.333_333_333_333_333_3,
    0.200_000_000_000_072_92,
    0.142_857_142_835_543_8,
    0.111_111_113_587_139_32,
    0.090_908_947_180_664_29,
    0.076_927_850_324_793_12,
    0.066_570_721_048_274_68,
    0.060_005_364_047_953_56,
    0.044_003_692_430_723_37,
    0.080_820_228_059_717_66,
];

// B₂ₖ / (2k (2k − 1)), signs taken out.
const S1: f64 = 1.0 / 12.0;
const S2: f64 = 1.0 / 360.0;
const S3: f64 = 1.0 / 1260.0;
const S4: f64 = 1.0 / 1680.0;
const S5: f64 = 1.0 / 1188.0;
const S6: f64 = 691.0 / 360_360.0;

/// `stirling_error` of 0 to 23, from mpmath at 60 digits.
const STIRLING_ERROR: [f64; 24] = [
    f64::INFINITY,
    0.081_061_466_795_327_26,
    0.041_340_695_955_409_3,
    0.027_677_925_684_998_34,
    0.020_790_672_103_765_093,
    0.016_644_691_189_821_193,
    0.013_876_128_823_070_748,
    0.011_896_709_945_891_77,
    0.010_411_265_261_972_096,
    0.009_255_462_182_712_733,
    0.008_330_563_433_362_87,
    0.007_573_675_487_951_841,
    0.006_942_840_107_209_53,
    0.006_408_994_188_004_207,
    0.005_951_370_112_758_847_5,
    0.005_554_733_551_962_801,
    0.005_207_655_919_609_640_4,
    0.004_901_395_948_434_738,
    0.004_629_153_749_334_028,
    0.004_385_560_249_232_324,
    0.004_166_319_691_996_922,
    0.003_967_954_218_640_86,
    0.003_787_618_068_444_434_6,
    0.003_622_960_224_683_094_8,
];
