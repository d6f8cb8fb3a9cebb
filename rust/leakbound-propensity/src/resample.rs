//! Resamples with replacement, as counts: one stream of random numbers for each replicate.

use crate::PropensityError;

/// Resamples drawn before the classes are declared too rare. If a resample lacks a class with
/// probability ½ (the chance is below e⁻¹ for each class that has a row), all do with 2⁻¹⁰⁰⁰.
const PATIENCE: u64 = 1000;

/// The generator xoshiro256++ of D. Blackman and S. Vigna, "Scrambled linear pseudorandom number
/// generators" (2021), its state filled by `SplitMix64`.
#[derive(Debug, Clone)]
pub(crate) struct Stream([u64; 4]);

impl Stream {
    /// The stream of a seed and an index; different pairs start at unrelated states.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut state = seed;
        let mut state = split_mix(&mut state) ^ index;
        Self([(); 4].map(|()| split_mix(&mut state)))
    }

    fn next(&mut self) -> u64 {
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

    /// A whole number below `n`, all equally likely (D. Lemire, "Fast random integer generation in
    /// an interval", 2019).
    fn below(&mut self, n: u32) -> u32 {
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

/// `SplitMix64` of G. Steele, D. Lea and C. Flood (2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `counts` with how often each of its rows occurs in a resample of as many rows, drawn anew
/// until `complete` accepts the counts.
///
/// # Errors
/// [`PropensityError::ClassTooRare`] if none of a thousand resamples is accepted.
pub(crate) fn draw(
    stream: &mut Stream,
    counts: &mut [u32],
    mut complete: impl FnMut(&[u32]) -> bool,
) -> Result<(), PropensityError> {
    let rows = counts.len() as u32;
    for _ in 0..PATIENCE {
        counts.fill(0);
        for _ in 0..rows {
            counts[stream.below(rows) as usize] += 1;
        }
        if complete(counts) {
            return Ok(());
        }
    }
    Err(PropensityError::ClassTooRare { tried: PATIENCE })
}

#[cfg(test)]
mod tests {
    use super::{Stream, draw};

    #[test]
    fn streams_differ_and_repeat() {
        let first: Vec<u64> = (0..4).map(|i| Stream::new(7, i).next()).collect();
        let again: Vec<u64> = (0..4).map(|i| Stream::new(7, i).next()).collect();
        assert_eq!(first, again);
        assert!((1..4).all(|i| first[i] != first[0]));
        assert_ne!(Stream::new(8, 0).next(), first[0]);
    }

    #[test]
    fn every_number_is_equally_likely() {
        let mut stream = Stream::new(0, 0);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        // Each is Bin(70,000, 1/7): standard deviation 93; five of them are exceeded once in 10⁶.
        assert!(seen.iter().all(|&n| n.abs_diff(10_000) < 465), "{seen:?}");
    }

    #[test]
    fn a_resample_has_as_many_rows_as_the_data() {
        let mut counts = vec![0; 50];
        draw(&mut Stream::new(3, 1), &mut counts, |_| true).unwrap();
        assert_eq!(counts.iter().sum::<u32>(), 50);
        let refused = draw(&mut Stream::new(3, 1), &mut counts, |_| false);
        assert!(refused.is_err());
    }
}
