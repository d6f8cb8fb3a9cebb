//! One bit per example: ten million guesses in 1.25 MB.

use leakbound_math::MathError;
use leakbound_math::memory::{filled, listed, room};

/// A sequence of bits that only grows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// No bits yet, and room for so many.
    pub(crate) fn with_capacity(len: usize) -> Result<Self, MathError> {
        let words = room(len.div_ceil(64))?;
        Ok(Self { words, len: 0 })
    }

    /// The same bits once more.
    pub(crate) fn copied(&self) -> Result<Self, MathError> {
        let words = listed(self.words.len(), self.words.iter().copied())?;
        Ok(Self {
            words,
            len: self.len,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bit) << (self.len % 64);
        }
        self.len += 1;
    }

    /// So many bits, all set.
    pub(crate) fn ones(len: usize) -> Result<Self, MathError> {
        let mut words = filled(len.div_ceil(64), u64::MAX)?;
        if let (Some(last), true) = (words.last_mut(), !len.is_multiple_of(64)) {
            *last >>= 64 - len % 64;
        }
        Ok(Self { words, len })
    }

    /// Push the 64 bits of a word, the lowest first, at the end of a word.
    pub(crate) fn push_word(&mut self, word: u64) {
        debug_assert!(self.len.is_multiple_of(64), "the last word has room");
        self.words.push(word);
        self.len += 64;
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// How many bits are set.
    pub(crate) fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// How many of the bits in `start..end` are set.
    pub(crate) fn count_between(&self, start: usize, end: usize) -> usize {
        (start..end)
            .step_by(64)
            .map(|from| self.chunk(from, end).count_ones() as usize)
            .sum()
    }

    /// Position of the first set bit at or after `start`.
    pub(crate) fn next_set(&self, start: usize) -> Option<usize> {
        (start..self.len).step_by(64).find_map(|from| {
            let chunk = self.chunk(from, self.len);
            (chunk != 0).then(|| from + chunk.trailing_zeros() as usize)
        })
    }

    /// Position of the last set bit at or before `end`.
    pub(crate) fn previous_set(&self, end: usize) -> Option<usize> {
        let mut word = end / 64;
        let mut kept = self.words[word] << (63 - end % 64) >> (63 - end % 64);
        loop {
            if kept != 0 {
                return Some(64 * word + 63 - kept.leading_zeros() as usize);
            }
            word = word.checked_sub(1)?;
            kept = self.words[word];
        }
    }

    /// The bits `from..min(from + 64, end)`, the first of them lowest.
    pub(crate) fn chunk(&self, from: usize, end: usize) -> u64 {
        let (word, shift) = (from / 64, from % 64);
        let low = self.words[word] >> shift;
        let high = match self.words.get(word + 1) {
            Some(next) if shift > 0 => next << (64 - shift),
            _ => 0,
        };
        let wanted = (end - from).min(64);
        (low | high) & (u64::MAX >> (64 - wanted))
    }
}

impl FromIterator<bool> for Bits {
    fn from_iter<I: IntoIterator<Item = bool>>(iter: I) -> Self {
        let iter = iter.into_iter();
        let mut bits = Self::default();
        iter.for_each(|bit| bits.push(bit));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pattern with long gaps, so that runs cross word ends.
    fn pattern(len: usize) -> Vec<bool> {
        (0..len)
            .map(|i| i % 7 == 3 && !(70..260).contains(&i))
            .collect()
    }

    #[test]
    fn counts_and_searches_agree_with_a_plain_vector() {
        let plain = pattern(400);
        let bits: Bits = plain.iter().copied().collect();
        assert_eq!(bits.count(), plain.iter().filter(|&&b| b).count());
        for start in 0..400 {
            assert_eq!(bits.get(start), plain[start]);
            assert_eq!(bits.next_set(start), (start..400).find(|&i| plain[i]));
            assert_eq!(
                bits.previous_set(start),
                (0..=start).rev().find(|&i| plain[i])
            );
            for end in start..400 {
                let expected = plain[start..end].iter().filter(|&&b| b).count();
                assert_eq!(bits.count_between(start, end), expected);
            }
        }
    }
}
