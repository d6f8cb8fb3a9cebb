//! The few vector operations the kernels are written in.

/// Lanes of the widest vector; `to_lanes` pads with zeros up to it.
pub(crate) const MAX_LANES: usize = 8;

/// Fewer than [`MAX_LANES`] entries, zeros after them.
pub(crate) fn padded<T: Copy + Default>(rest: &[T]) -> [T; MAX_LANES] {
    let mut lanes = [T::default(); MAX_LANES];
    lanes[..rest.len()].copy_from_slice(rest);
    lanes
}

/// A vector of doubles.
///
/// Every method is inlined into a kernel that is itself inlined into a function compiled for the
/// vector's CPU feature; closures would break that chain, so the kernels use none.
pub(crate) trait Vector: Copy {
    /// Number of lanes, at most [`MAX_LANES`].
    const LANES: usize;

    fn splat(x: f64) -> Self;
    /// The first `LANES` entries of `from`.
    fn load(from: &[f64]) -> Self;
    /// The first `LANES` entries of `from`, widened.
    fn load_f32(from: &[f32]) -> Self;
    /// Writes the lanes over the first `LANES` entries of `to`.
    fn store(self, to: &mut [f64]);
    fn to_lanes(self) -> [f64; MAX_LANES];

    fn add(self, y: Self) -> Self;
    fn sub(self, y: Self) -> Self;
    fn mul(self, y: Self) -> Self;
    fn div(self, y: Self) -> Self;
    fn max(self, y: Self) -> Self;
    /// `self * y + z`, fused where the machine fuses.
    fn mul_add(self, y: Self, z: Self) -> Self;
    /// `z - self * y`, fused where the machine fuses.
    fn neg_mul_add(self, y: Self, z: Self) -> Self;
    /// `self * y - product` without error, for `product` the rounded product.
    fn product_error(self, y: Self, product: Self) -> Self;
    /// `z - self * y` rounded once, for `self * y` within a factor two of `z`.
    fn residual(self, y: Self, z: Self) -> Self;

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
    #[inline(always)]
    fn one() -> Self {
        Self::splat(1.0)
    }
    /// Writes the lanes, rounded, over the first `LANES` entries of `to`.
    #[inline(always)]
    fn store_f32(self, to: &mut [f32]) {
        let lanes = self.to_lanes();
        for (to, lane) in to[..Self::LANES].iter_mut().zip(lanes) {
            *to = lane as f32;
        }
    }
    /// 2 to the power of each lane, for whole lanes; those beyond -1022 and 1023 count as these.
    #[inline(always)]
    fn power_of_two(self) -> Self {
        let mut lanes = self.to_lanes();
        for lane in &mut lanes {
            let exponent = lane.clamp(-1022.0, 1023.0) as i64;
            *lane = f64::from_bits((exponent + 1023).cast_unsigned() << 52);
        }
        Self::load(&lanes)
    }
    /// 1.5·2⁵²: adding it rounds to a whole number, which is then in the last bits.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;

    /// 2 to the power of k, where each lane is `ROUNDER` + k for a whole k between -1022 and 1023.
    #[inline(always)]
    fn power_of_rounded(self) -> Self {
        let mut lanes = self.to_lanes();
        for lane in &mut lanes[..Self::LANES] {
            *lane = f64::from_bits(lane.to_bits().wrapping_add(1023) << 52);
        }
        Self::load(&lanes)
    }
    /// `self + y` and the error of that sum (Knuth's `TwoSum`).
    #[inline(always)]
    fn two_sum(self, y: Self) -> (Self, Self) {
        let sum = self.add(y);
        let part = sum.sub(self);
        (sum, self.sub(sum.sub(part)).add(y.sub(part)))
    }
}
