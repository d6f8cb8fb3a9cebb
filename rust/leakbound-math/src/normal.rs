//! The standard normal distribution: tails, quantiles and their logarithms.
//!
//! Everything rests on the Mills ratio (1 − Φ)/φ, which is smooth, of order 1/x and never
//! underflows: tails are φ times it, log tails −x²/2 plus its logarithm. `erfc(x/√2)/2` meets the
//! accuracy asked for near the centre only, since the rounding of x/√2 costs x² half units in the
//! last place of a tail: libm's serves here for |x| < 1.

mod wichura;

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2, TAU};

use crate::probability::Probability;

/// Φ(x) = P(Z ≤ x) for a standard normal Z.
///
/// Domain: every double, ±∞ included; `NaN` gives `NaN`. Accuracy: 1e-15 relative down to 1e-307
/// (x = −37.5; below that a double itself is coarser, and past −38.6 it is 0); nearest, no
/// direction. For 1 − Φ(x) take [`sf`].
pub fn cdf(x: f64) -> f64 {
    sf(-x)
}

/// Survival function 1 − Φ(x) = P(Z > x).
///
/// Domain and accuracy: those of [`cdf`], with x and −x exchanged; never computed as 1 − Φ(x)
/// where that is small.
pub fn sf(x: f64) -> f64 {
    if x.abs() < CENTRE {
        return 0.5 * libm::erfc(x * FRAC_1_SQRT_2);
    }
    if x < 0.0 {
        return 1.0 - sf(-x);
    }
    let (square, low) = square(x);
    // e^{−(square + low)/2}; |low| is at most half an ulp of the square, so one term suffices.
    let density = (-0.5 * square).exp() * FRAC_1_SQRT_TAU;
    if density == 0.0 {
        0.0
    } else {
        (density - density * (0.5 * low)) * mills_ratio(x)
    }
}

/// ln Φ(x).
///
/// Domain: every double, ±∞ included; `NaN` gives `NaN`. Accuracy: 1e-15 relative over the whole
/// range, also where Φ underflows (−∞ only past x = −1.3e154, where x² overflows) and where it
/// is close to 1; nearest, no direction.
pub fn ln_cdf(x: f64) -> f64 {
    ln_sf(-x)
}

/// ln(1 − Φ(x)).
///
/// Domain and accuracy: those of [`ln_cdf`], with x and −x exchanged.
pub fn ln_sf(x: f64) -> f64 {
    if x < 0.0 {
        return (-sf(-x)).ln_1p();
    }
    if x < CENTRE {
        return sf(x).ln();
    }
    let (square, low) = square(x);
    if square == f64::INFINITY {
        return f64::NEG_INFINITY;
    }
    (mills_ratio(x) * FRAC_1_SQRT_TAU).ln() - 0.5 * square - 0.5 * low
}

/// Mills ratio (1 − Φ(x)) / φ(x) of the standard normal, for x ≥ 0.
///
/// Domain: x ≥ 0, +∞ included (0); `NaN` gives `NaN`. Accuracy: 5e-16 relative; nearest, no
/// direction. Source: (1 + x) times the ratio, in (x − 5)/(x + 5), by its Chebyshev interpolant of
/// degree 23 on the whole half line (error 2e-17), after Shepherd & Laframboise 1981, "Chebyshev
/// approximation of (1 + 2x) exp(x²) erfc x in 0 ≤ x < ∞".
pub fn mills_ratio(x: f64) -> f64 {
    debug_assert!(
        x >= 0.0 || x.is_nan(),
        "the Mills ratio is for x >= 0, got {x}"
    );
    if x > 1e17 {
        return 1.0 / x;
    }
    let y = (x - 5.0) / (x + 5.0);
    let z = y * y;
    // Even and odd halves: two short chains of operations instead of one long.
    let (even, odd) = MILLS.iter().rev().fold((0.0, 0.0), |(even, odd), pair| {
        (even * z + pair[0], odd * z + pair[1])
    });
    (even + y * odd) / (1.0 + x)
}

/// Quantile Φ⁻¹(p): the x with Φ(x) = p.
///
/// Domain: every probability; 0 and 1 give −∞ and +∞. Accuracy: 1e-15 relative, p near ½ and p
/// near 1 (through its complement) included; nearest, no direction. Source: Wichura 1988,
/// algorithm AS 241, and in the tails one Newton step on ln Φ.
pub fn quantile(p: Probability) -> f64 {
    if p.p() > p.q() {
        -lower_quantile(p.q())
    } else {
        lower_quantile(p.p())
    }
}

/// Φ⁻¹(p) for p ≤ ½.
fn lower_quantile(p: f64) -> f64 {
    if p >= wichura::CENTRE {
        wichura::central(p - 0.5)
    } else {
        tail_quantile(p.ln())
    }
}

/// The x with ln Φ(x) = `ln_p`, for Φ(x) < [`wichura::CENTRE`].
fn tail_quantile(ln_p: f64) -> f64 {
    if ln_p < -1e20 {
        // ln Φ = −x²/2 to the last place.
        return -(SQRT_2 * (-ln_p).sqrt());
    }
    let start = if ln_p > wichura::LN_FAR {
        wichura::tail(ln_p)
    } else {
        far_quantile(ln_p)
    };
    // Newton on ln(1 − Φ) at x = −Φ⁻¹(p): the slope is −1/Mills. The residual's rounding, u |ln p|,
    // moves x by u |ln p|/x < u x: half an ulp.
    -(start + (ln_sf(start) - ln_p) * mills_ratio(start))
}

/// x from x² = −2 ln p − ln(2π x²) − 2/x², twice iterated: within 1/x⁵ of the solution.
fn far_quantile(ln_p: f64) -> f64 {
    let square = -2.0 * ln_p;
    let refine = |y: f64| square - (TAU * y).ln() - 2.0 / y;
    refine(refine(square)).sqrt()
}

/// x² and what rounding took from it.
fn square(x: f64) -> (f64, f64) {
    let square = x * x;
    (square, x.mul_add(x, -square))
}

/// |x| up to which erfc(x/√2)/2 is good to 4e-16, and exactly ½ at 0.
const CENTRE: f64 = 1.0;

const FRAC_1_SQRT_TAU: f64 = 0.398_942_280_401_432_7;

/// Monomial coefficients of the interpolant of [`mills_ratio`], even and odd by turns.
const MILLS: [[f64; 2]; 12] = [
    [1.156_848_628_291_894_6, -0.229_487_538_252_113_15],
    [0.077_781_598_868_737_69, 0.025_072_179_301_638_8],
    [-0.066_177_600_779_096_3, 0.061_505_045_840_186_5],
    [-0.038_026_592_185_841_39, 0.016_348_231_281_029_38],
    [-0.004_201_290_329_187_307, 1.953_063_837_079_078_6e-05],
    [0.000_457_043_923_579_536_55, -0.000_134_374_278_557_113_5],
    [-2.480_583_845_192_319e-05, 2.270_961_270_923_768e-05],
    [-1.763_323_926_573_674_6e-07, -3.277_287_633_208_865e-06],
    [3.205_431_665_258_957_4e-07, 4.919_962_331_478_34e-07],
    [-6.588_974_491_108_954e-08, -7.758_520_236_786_343e-08],
    [9.092_476_134_019_147e-09, 1.103_207_115_157_433_6e-08],
    [-7.073_898_575_561_589e-10, -9.564_832_934_712_551e-10],
];
