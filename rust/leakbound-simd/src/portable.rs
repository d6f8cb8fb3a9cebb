//! The copy without intrinsics: four lanes that LLVM maps to NEON or SSE2.

use crate::vector::{MAX_LANES, Vector};

/// Four doubles.
#[derive(Clone, Copy)]
pub(crate) struct Array([f64; 4]);

/// `x * y + z`; fused only where that is one instruction, since a fused product in software is slow.
#[inline(always)]
fn multiply_add(x: f64, y: f64, z: f64) -> f64 {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        x.mul_add(y, z)
    } else {
        x * y + z
    }
}

/// The two halves of `x`, of at most 26 bits each (Veltkamp).
#[inline(always)]
fn halves(x: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let scaled = SPLITTER * x;
    let high = scaled - (scaled - x);
    (high, x - high)
}

/// `x * y - product` without error (Dekker where there is no fused product).
#[inline(always)]
fn product_error(x: f64, y: f64, product: f64) -> f64 {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        return x.mul_add(y, -product);
    }
    let ((xh, xl), (yh, yl)) = (halves(x), halves(y));
    ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
}

macro_rules! lanewise {
    ($a:expr, $b:expr, $op:expr) => {{
        let (a, b) = ($a.0, $b.0);
        Array([
            $op(a[0], b[0]),
            $op(a[1], b[1]),
            $op(a[2], b[2]),
            $op(a[3], b[3]),
        ])
    }};
    ($a:expr, $b:expr, $c:expr, $op:expr) => {{
        let (a, b, c) = ($a.0, $b.0, $c.0);
        Array([
            $op(a[0], b[0], c[0]),
            $op(a[1], b[1], c[1]),
            $op(a[2], b[2], c[2]),
            $op(a[3], b[3], c[3]),
        ])
    }};
}

#[inline(always)]
fn larger(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}

impl Vector for Array {
    const LANES: usize = 4;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x; 4])
    }
    #[inline(always)]
    fn load(from: &[f64]) -> Self {
        Self([from[0], from[1], from[2], from[3]])
    }
    #[inline(always)]
    fn load_f32(from: &[f32]) -> Self {
        Self([
            f64::from(from[0]),
            f64::from(from[1]),
            f64::from(from[2]),
            f64::from(from[3]),
        ])
    }
    #[inline(always)]
    fn store(self, to: &mut [f64]) {
        to[..4].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn to_lanes(self) -> [f64; MAX_LANES] {
        let [a, b, c, d] = self.0;
        [a, b, c, d, 0.0, 0.0, 0.0, 0.0]
    }
    #[inline(always)]
    fn add(self, y: Self) -> Self {
        lanewise!(self, y, std::ops::Add::add)
    }
    #[inline(always)]
    fn sub(self, y: Self) -> Self {
        lanewise!(self, y, std::ops::Sub::sub)
    }
    #[inline(always)]
    fn mul(self, y: Self) -> Self {
        lanewise!(self, y, std::ops::Mul::mul)
    }
    #[inline(always)]
    fn div(self, y: Self) -> Self {
        lanewise!(self, y, std::ops::Div::div)
    }
    #[inline(always)]
    fn max(self, y: Self) -> Self {
        lanewise!(self, y, larger)
    }
    #[inline(always)]
    fn mul_add(self, y: Self, z: Self) -> Self {
        lanewise!(self, y, z, multiply_add)
    }
    #[inline(always)]
    fn neg_mul_add(self, y: Self, z: Self) -> Self {
        Self::zero().sub(self).mul_add(y, z)
    }
    #[inline(always)]
    fn product_error(self, y: Self, product: Self) -> Self {
        lanewise!(self, y, product, product_error)
    }
    #[inline(always)]
    fn residual(self, y: Self, z: Self) -> Self {
        let product = self.mul(y);
        z.sub(product).sub(self.product_error(y, product))
    }
}
