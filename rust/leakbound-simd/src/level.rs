//! Which copy of a kernel to run.

use std::fmt;
use std::sync::OnceLock;

/// The instruction set a kernel runs on.
///
/// A value can only be had from [`Level::best`], [`Level::available`] or [`Level::PORTABLE`], so
/// holding one proves that this machine runs it. That is what makes the kernels safe to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level(pub(crate) Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Level {
    /// The copy every machine runs: NEON on 64-bit Arm, SSE2 on 64-bit x86.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The widest level this machine runs, detected once.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// Every level this machine runs, widest first; never empty.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::with_capacity(3);
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                levels.push(Self(Kind::Avx512));
            }
            if avx2 {
                levels.push(Self(Kind::Avx2));
            }
        }
        levels.push(Self::PORTABLE);
        levels
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            Kind::Portable => "portable",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn best_is_the_first_available_and_portable_is_the_last() {
        let levels = Level::available();
        assert_eq!(levels.first(), Some(&Level::best()));
        assert_eq!(levels.last(), Some(&Level::PORTABLE));
    }

    #[test]
    fn levels_have_distinct_names() {
        let mut names: Vec<String> = Level::available().iter().map(ToString::to_string).collect();
        names.dedup();
        assert_eq!(names.len(), Level::available().len());
    }
}
