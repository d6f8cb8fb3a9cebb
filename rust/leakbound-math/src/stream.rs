//! Random numbers: one stream for each purpose, seed and index.
//!
//! A stream is named by what it is for, and the name goes into its state with the seed, so that
//! no two uses share numbers because a user gave both the same seed. Number k of a stream depends
//! on nothing else: not on the number of threads, nor on which other streams are read.
//!
//! The generator is xoshiro256++ (D. Blackman and S. Vigna, "Scrambled linear pseudorandom number
//! generators", 2021); its state is mixed by the finaliser of `SplitMix64` (G. Steele, D. Lea and
//! C. Flood, "Fast splittable pseudorandom number generators", 2014).

use std::array;

use crate::normal;
use crate::probability::Probability;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Simulated games, one stream for each game.
    Games,
    /// Bootstrap resamples, one stream for each replicate.
    Resamples,
    /// The halves that a confidence set of propensities is fitted on.
    Halves,
    /// Places of that set from which the search for its least favourable member sets out.
    Places,
    /// The order of examples that share a score, one stream for each part of a block.
    TiedBlocks,
    /// Simulated rankings of independent trials, one stream for each chunk of them.
    Rankings,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 6] = [
        Self::Games,
        Self::Resamples,
        Self::Halves,
        Self::Places,
        Self::TiedBlocks,
        Self::Rankings,
    ];

    /// The name that goes into the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Games => "leakbound/core/games",
            Self::Resamples => "leakbound/propensity/resamples",
            Self::Halves => "leakbound/propensity/halves",
            Self::Places => "leakbound/propensity/places",
            Self::TiedBlocks => "leakbound/core/tied-blocks",
            Self::Rankings => "leakbound/core/rankings",
        }
    }

    /// The bytes of the name eight at a time, preceded by how many they are.
    fn words(self) -> impl Iterator<Item = u64> {
        let bytes = self.name().as_bytes();
        let packed = bytes.chunks(8).map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |word, &b| word << 8 | u64::from(b))
        });
        std::iter::once(bytes.len() as u64).chain(packed)
    }
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream([u64; 4]);

impl Stream {
    /// The stream of a purpose, a seed and an index.
    ///
    /// Each word of the state starts at its own number and takes in name, seed and index one after
    /// another by bijections: the four differ, so they are never all zero, and streams that differ
    /// in the seed alone, or in the index alone, differ in every word.
    pub fn new(purpose: Purpose, seed: u64, index: u64) -> Self {
        Self(array::from_fn(|lane| {
            purpose
                .words()
                .chain([seed, index])
                .fold(lane as u64, |state, word| {
                    mix(state.wrapping_add(STEP) ^ word)
                })
        }))
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "a stream never ends")]
    pub fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// True or false with probability ½.
    pub fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }

    /// An odd multiple of 2⁻⁵³ in (0, 1), all equally likely: never 0 or 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A standard normal number: the quantile of [`Stream::uniform`].
    pub fn normal(&mut self) -> f64 {
        Probability::new(self.uniform()).map_or(0.0, normal::quantile)
    }

    /// A whole number below `n`, all equally likely; 0 if `n` is 0.
    ///
    /// Source: D. Lemire, "Fast random integer generation in an interval" (2019).
    pub fn below(&mut self, n: u32) -> u32 {
        let mut product = u64::from(self.next() as u32) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(self.next() as u32) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }
}

/// 2⁶⁴ over the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of `SplitMix64`, a bijection.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The first outputs of the published program from the state 1, 2, 3, 4.
    #[test]
    fn numbers_are_those_of_xoshiro256plusplus() {
        let mut stream = Stream([1, 2, 3, 4]);
        assert_eq!(stream.next(), 41_943_041);
        assert_eq!(stream.next(), 58_720_359);
        assert_eq!(stream.next(), 3_588_806_011_781_223);
        assert_eq!(stream.next(), 3_591_011_842_654_386);
        assert_eq!(stream.next(), 9_228_616_714_210_784_205);
    }

    #[test]
    fn purposes_seeds_and_indices_name_different_streams() {
        let mut words = HashSet::new();
        for purpose in Purpose::ALL {
            for seed in (0..30).chain([u64::MAX]) {
                for index in (0..30).chain([u64::MAX]) {
                    let stream = Stream::new(purpose, seed, index);
                    assert_eq!(stream.0, Stream::new(purpose, seed, index).0);
                    assert!(stream.0.iter().all(|&word| words.insert(word)));
                }
            }
        }
    }

    #[test]
    fn purposes_have_names_of_their_own() {
        let names: HashSet<&str> = Purpose::ALL.iter().map(|purpose| purpose.name()).collect();
        assert_eq!(names.len(), Purpose::ALL.len());
        assert!(names.iter().all(|name| name.starts_with("leakbound/")));
    }

    #[test]
    fn uniforms_and_normals_have_their_moments() {
        let mut stream = Stream::new(Purpose::Games, 1, 2);
        let draws: Vec<f64> = (0..200_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 2e5;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 2e5;
        let fourth = draws.iter().map(|x| x.powi(4)).sum::<f64>() / 2e5;
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((square - 1.0).abs() < 0.02, "{square}");
        assert!((fourth - 3.0).abs() < 0.15, "{fourth}");
        let least = (0..1000).map(|_| stream.uniform()).fold(1.0, f64::min);
        assert!(least > 0.0 && least < 0.02);
    }

    #[test]
    fn every_number_is_equally_likely() {
        let mut stream = Stream::new(Purpose::Resamples, 0, 0);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        // Each is Bin(70,000, 1/7): standard deviation 93; five of them are exceeded once in 10⁶.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 465), "{seen:?}");
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn coins_are_fair_and_independent_of_the_index() {
        // 100,000 coins, each the first of its stream: standard deviation 158.
        let heads = (0..100_000)
            .filter(|&index| Stream::new(Purpose::Games, 0, index).coin())
            .count();
        assert!(heads.abs_diff(50_000) < 790, "{heads}");
    }
}
