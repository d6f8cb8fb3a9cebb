//! AVX-512 and AVX2 vectors.
//!
//! SAFETY of every intrinsic below: these types are only named by the copies that `dispatch!`
//! compiles with the features enabled and calls after detection; loads and stores go through slices
//! whose length was checked.

use std::arch::x86_64::{
    __m256d, __m512d, _mm_loadu_ps, _mm256_add_pd, _mm256_cvtps_pd, _mm256_div_pd, _mm256_fmadd_pd,
    _mm256_fmsub_pd, _mm256_fnmadd_pd, _mm256_loadu_pd, _mm256_loadu_ps, _mm256_max_pd,
    _mm256_mul_pd, _mm256_set1_pd, _mm256_storeu_pd, _mm256_sub_pd, _mm512_add_pd, _mm512_cvtps_pd,
    _mm512_div_pd, _mm512_fmadd_pd, _mm512_fmsub_pd, _mm512_fnmadd_pd, _mm512_loadu_pd,
    _mm512_max_pd, _mm512_mul_pd, _mm512_set1_pd, _mm512_storeu_pd, _mm512_sub_pd,
};

use crate::vector::{MAX_LANES, Vector};

macro_rules! x86_vector {
    (
        $type:ty, $lanes:literal, $splat:ident, $load:ident, $load_f32:ident, $widen:ident,
        $store:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $max:ident, $fmadd:ident,
        $fmsub:ident, $fnmadd:ident
    ) => {
        impl Vector for $type {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(x: f64) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $splat(x) }
            }
            #[inline(always)]
            fn load(from: &[f64]) -> Self {
                let from = &from[..$lanes];
                // SAFETY: `from` holds exactly the lanes read; unaligned loads are allowed.
                unsafe { $load(from.as_ptr()) }
            }
            #[inline(always)]
            fn load_f32(from: &[f32]) -> Self {
                let from = &from[..$lanes];
                // SAFETY: `from` holds exactly the lanes read; unaligned loads are allowed.
                unsafe { $widen($load_f32(from.as_ptr())) }
            }
            #[inline(always)]
            fn store(self, to: &mut [f64]) {
                let to = &mut to[..$lanes];
                // SAFETY: `to` holds exactly the lanes written; unaligned stores are allowed.
                unsafe { $store(to.as_mut_ptr(), self) }
            }
            #[inline(always)]
            fn to_lanes(self) -> [f64; MAX_LANES] {
                let mut lanes = [0.0; MAX_LANES];
                self.store(&mut lanes);
                lanes
            }
            #[inline(always)]
            fn add(self, y: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $add(self, y) }
            }
            #[inline(always)]
            fn sub(self, y: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $sub(self, y) }
            }
            #[inline(always)]
            fn mul(self, y: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $mul(self, y) }
            }
            #[inline(always)]
            fn div(self, y: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $div(self, y) }
            }
            #[inline(always)]
            fn max(self, y: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $max(self, y) }
            }
            #[inline(always)]
            fn mul_add(self, y: Self, z: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $fmadd(self, y, z) }
            }
            #[inline(always)]
            fn neg_mul_add(self, y: Self, z: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $fnmadd(self, y, z) }
            }
            #[inline(always)]
            fn product_error(self, y: Self, product: Self) -> Self {
                // SAFETY: the feature is enabled (module documentation).
                unsafe { $fmsub(self, y, product) }
            }
            #[inline(always)]
            fn residual(self, y: Self, z: Self) -> Self {
                self.neg_mul_add(y, z)
            }
        }
    };
}

x86_vector!(
    __m512d,
    8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm256_loadu_ps,
    _mm512_cvtps_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_sub_pd,
    _mm512_mul_pd,
    _mm512_div_pd,
    _mm512_max_pd,
    _mm512_fmadd_pd,
    _mm512_fmsub_pd,
    _mm512_fnmadd_pd
);
x86_vector!(
    __m256d,
    4,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm_loadu_ps,
    _mm256_cvtps_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_sub_pd,
    _mm256_mul_pd,
    _mm256_div_pd,
    _mm256_max_pd,
    _mm256_fmadd_pd,
    _mm256_fmsub_pd,
    _mm256_fnmadd_pd
);
