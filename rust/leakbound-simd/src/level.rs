//! Which copy of a kernel to run.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that names the level to run, `avx512`, `avx2` or `portable`: a switch for
/// tests, read once.
pub const SWITCH: &str = "LEAKBOUND_SIMD";

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

    /// The widest level this machine runs, detected once; [`SWITCH`] may name a narrower one.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::chosen(std::env::var(SWITCH).ok().as_deref()))
    }

    /// The level named, or the widest where there is no such name or this machine does not run it.
    fn chosen(name: Option<&str>) -> Self {
        let levels = Self::available();
        let named = levels.iter().find(|level| Some(level.name()) == name);
        *named.unwrap_or(&levels[0])
    }

    /// What [`SWITCH`] calls this level.
    pub const fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            Kind::Portable => "portable",
        }
    }

    /// Every level this machine runs, widest first; never empty.
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
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Level;

    #[test]
    fn the_widest_comes_first_and_portable_last() {
        let levels = Level::available();
        assert_eq!(levels.first(), Some(&Level::chosen(None)));
        assert_eq!(levels.last(), Some(&Level::PORTABLE));
    }

    #[test]
    fn every_level_can_be_chosen_by_name() {
        for level in Level::available() {
            assert_eq!(Level::chosen(Some(level.name())), level);
        }
        assert_eq!(Level::chosen(Some("mmx")), Level::chosen(None));
    }
}
