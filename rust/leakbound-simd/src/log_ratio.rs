//! Σ ln[(1+Eᵢy)/(1+Eᵢx)] by compensated products.

use crate::dispatch::dispatch;
use crate::vector::{MAX_LANES, Vector, padded};

/// ln 2 to 106 bits.
const LN_2: (f64, f64) = (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);

/// What [`log_ratio`] returns.
#[derive(Clone, Copy, Debug)]
pub struct LogRatio {
    /// Σ ln[(1+Eᵢy)/(1+Eᵢx)] as an unevaluated sum of two doubles.
    pub log: (f64, f64),
    /// Σ Eᵢy/(1+Eᵢy), plain.
    pub mean: f64,
}

dispatch! {
    /// Σ ln[(1+Eᵢy)/(1+Eᵢx)] for odds Eᵢ(1+rᵢ), with the rounding error of every step carried.
    ///
    /// The error is a few units of 10⁻¹⁶ of the largest partial sum, whatever the number of terms.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn log_ratio(odds: &[f64], residuals: &[f32], x: f64, y: f64) -> LogRatio = kernel;
}

/// Running products, one per lane: Π = product·(1 + error)·2^exponent.
struct Products<V> {
    product: V,
    error: V,
    mean: V,
    exponents: [i64; MAX_LANES],
}

impl<V: Vector> Products<V> {
    /// Takes one vector of terms in.
    #[inline(always)]
    fn multiply(&mut self, e: V, residual: V, x: V, y: V) {
        let one = V::one();
        let (o, u) = (e.mul(x), e.mul(y));
        let (s, s_error) = one.two_sum(o);
        let (t, t_error) = one.two_sum(u);
        let (s_inverse, t_inverse) = (one.div(s), one.div(t));
        let ratio = t.mul(s_inverse);
        let (p_x, p_y) = (o.mul(s_inverse), u.mul(t_inverse));
        self.mean = self.mean.add(p_y);
        let above = t_error.add(e.product_error(y, u)).add(ratio.residual(s, t));
        let below = s_error.add(e.product_error(x, o));
        let mut error = residual.mul(p_y.sub(p_x));
        error = above.mul_add(t_inverse, error);
        error = below.neg_mul_add(s_inverse, error);
        let product = self.product.mul(ratio);
        error = self
            .product
            .product_error(ratio, product)
            .div(product)
            .add(error);
        self.product = product;
        self.error = self.error.add(error);
    }

    /// Moves the binary exponents out of the products.
    #[inline(always)]
    fn normalise(&mut self) {
        const FRACTION: u64 = 0x000f_ffff_ffff_ffff;
        let mut lanes = self.product.to_lanes();
        for (lane, exponent) in lanes.iter_mut().zip(&mut self.exponents).take(V::LANES) {
            let bits = lane.to_bits();
            *exponent += (bits >> 52).cast_signed() - 1023;
            *lane = f64::from_bits((bits & FRACTION) | 0x3ff0_0000_0000_0000);
        }
        self.product = V::load(&lanes);
    }

    fn log(&self) -> (f64, f64) {
        let (products, errors) = (self.product.to_lanes(), self.error.to_lanes());
        let (mut log, mut exponent) = (0.0, 0);
        for k in 0..V::LANES {
            log += products[k].ln() + errors[k];
            exponent += self.exponents[k];
        }
        let exponent = exponent as f64;
        let high = exponent * LN_2.0;
        let low = exponent.mul_add(LN_2.0, -high) + exponent * LN_2.1;
        let sum = high + log;
        let part = sum - high;
        (sum, ((high - (sum - part)) + (log - part)) + low)
    }
}

#[inline(always)]
fn kernel<V: Vector>(odds: &[f64], residuals: &[f32], x: f64, y: f64) -> LogRatio {
    assert!(odds.len() == residuals.len());
    // A ratio lies between 1 and y/x: so many of them stay far from overflow and underflow.
    let octaves = (y / x).log2().abs();
    let safe = if octaves < 900.0 {
        ((900.0 / octaves.max(1e-3)) as usize).clamp(1, 64)
    } else {
        1
    };
    let mut products = Products::<V> {
        product: V::one(),
        error: V::zero(),
        mean: V::zero(),
        exponents: [0; MAX_LANES],
    };
    let (vx, vy) = (V::splat(x), V::splat(y));
    let whole = odds.len() - odds.len() % V::LANES;
    let mut start = 0;
    while start < whole {
        let end = whole.min(start + safe * V::LANES);
        let mut k = start;
        while k < end {
            products.multiply(V::load(&odds[k..]), V::load_f32(&residuals[k..]), vx, vy);
            k += V::LANES;
        }
        products.normalise();
        start = end;
    }
    if whole < odds.len() {
        let (odds, residuals) = (padded(&odds[whole..]), padded(&residuals[whole..]));
        products.multiply(V::load(&odds), V::load_f32(&residuals), vx, vy);
        products.normalise();
    }
    let mut mean = 0.0;
    for lane in products.mean.to_lanes() {
        mean += lane;
    }
    LogRatio {
        log: products.log(),
        mean,
    }
}
