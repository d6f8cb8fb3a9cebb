//! One macro turns a kernel written against `Vector` into a function that takes a `Level`.

/// Defines `pub fn $name(level, args…)` that runs `$kernel::<V>` with the `V` of that level.
macro_rules! dispatch {
    (
        $(#[$doc:meta])*
        pub fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)? = $kernel:ident;
    ) => {
        $(#[$doc])*
        pub fn $name(level: $crate::level::Level, $($arg: $type),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::x86_64::{__m256d, __m512d};

                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $type),*) $(-> $ret)? {
                    $kernel::<__m512d>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $type),*) $(-> $ret)? {
                    $kernel::<__m256d>($($arg),*)
                }
                match level.0 {
                    // SAFETY: a `Level` of this kind exists only where detection found the features.
                    $crate::level::Kind::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::level::Kind::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::level::Kind::Portable => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = level;
            $kernel::<$crate::portable::Array>($($arg),*)
        }
    };
}

pub(crate) use dispatch;
