//! Correct and incorrect guesses in the order in which they are visited.

use crate::error::AuditError;
use crate::guesses::bits::Bits;
use crate::guesses::grid::Grid;

/// How a path visits the examples of a ranking.
///
/// Roles are fixed by scores alone: the boundary between "member" and "non-member" is the end of a
/// tied block nearest to the middle of the ranking (of two, the higher-scored one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Everyone is guessed "member", from the highest score down.
    Member,
    /// The upper half is guessed "member", from the highest score down.
    MemberHalf,
    /// The lower half is guessed "non-member", from the lowest score up.
    NonMemberHalf,
    /// Both halves, from both ends: the next block comes from the side with fewer guesses so far.
    Interleaved,
}

/// A prefix of a path: so many guesses, of which so many correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Guesses made, `r`.
    pub guesses: u32,
    /// Correct ones among them, `w`.
    pub correct: u32,
}

/// Guesses in visiting order, and the cuts that scores allow.
///
/// ```
/// use leakbound_core::{Grid, Path};
/// let path = Path::from_successes(&[true, true, false, true]);
/// assert_eq!(path.guesses(), 4);
/// assert_eq!(path.correct(), 3);
/// assert_eq!(path.cuts(&Grid::All, 1)?.len(), 4);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    success: Bits,
    /// Bit `i`: may a cut be made after guess `i + 1`?
    cut: Bits,
}

impl Path {
    pub(crate) fn new(success: Bits, cut: Bits) -> Self {
        Self { success, cut }
    }

    /// A path on which every cut is allowed.
    #[must_use]
    pub fn from_successes(successes: &[bool]) -> Self {
        Self {
            success: successes.iter().copied().collect(),
            cut: std::iter::repeat_n(true, successes.len()).collect(),
        }
    }

    /// Number of guesses on the whole path.
    #[must_use]
    pub fn guesses(&self) -> u32 {
        self.success.len() as u32
    }

    /// Number of correct guesses on the whole path.
    #[must_use]
    pub fn correct(&self) -> u32 {
        self.success.count() as u32
    }

    /// The shortest allowed prefix of at least `guesses` guesses.
    ///
    /// # Errors
    /// `guesses` is zero or more than the path holds.
    pub fn cut_at_or_after(&self, guesses: u32) -> Result<Cut, AuditError> {
        let available = self.guesses();
        let out_of_range = AuditError::GuessesOutOfRange {
            guesses: u64::from(guesses),
            available: u64::from(available),
        };
        if guesses == 0 || guesses > available {
            return Err(out_of_range);
        }
        let end = self
            .cut
            .next_set(guesses as usize - 1)
            .ok_or(out_of_range)?
            + 1;
        let correct = self.success.count_between(0, end) as u32;
        Ok(Cut {
            guesses: end as u32,
            correct,
        })
    }

    /// Guesses and correct ones after the first `from`, up to the first `to`, as far as there are any.
    pub(crate) fn between(&self, from: u32, to: u32) -> (u32, u32) {
        let (from, to) = (from.min(self.guesses()), to.min(self.guesses()));
        let correct = self.success.count_between(from as usize, to as usize);
        (to - from, correct as u32)
    }

    /// The path to its last allowed cut of at most `guesses` guesses, or to its first cut if that is
    /// beyond.
    ///
    /// ```
    /// use leakbound_core::Path;
    /// let path = Path::from_successes(&[true, true, false, true]).prefix(2);
    /// assert_eq!((path.guesses(), path.correct()), (2, 2));
    /// ```
    #[must_use]
    pub fn prefix(&self, guesses: u32) -> Self {
        let within = (guesses as usize).min(self.success.len());
        let last = within
            .checked_sub(1)
            .and_then(|last| self.cut.previous_set(last))
            .or_else(|| self.cut.next_set(0));
        let end = last.map_or(0, |bit| bit + 1);
        Self {
            success: (0..end).map(|index| self.success.get(index)).collect(),
            cut: (0..end).map(|index| self.cut.get(index)).collect(),
        }
    }

    /// The allowed cuts on `grid` with at least `min_guesses` guesses, shortest first.
    ///
    /// A position of the grid inside a tied block moves back to the end of the block before, so
    /// the cuts still depend on scores alone.
    ///
    /// # Errors
    /// A grid that does not fit the path's length.
    pub fn cuts(&self, grid: &Grid, min_guesses: u32) -> Result<Vec<Cut>, AuditError> {
        let mut cuts = match grid.positions(self.guesses())? {
            None => self.every_cut(),
            Some(positions) => self.cuts_at_or_before(&positions),
        };
        cuts.retain(|cut| cut.guesses >= min_guesses);
        Ok(cuts)
    }

    /// At most `points` allowed cuts, geometric in the number of guesses.
    #[must_use]
    pub fn sample(&self, points: usize) -> Vec<Cut> {
        let positions = geometric_positions(self.success.len(), points);
        self.cuts_at_or_before(&positions.iter().map(|&p| p as u32).collect::<Vec<_>>())
    }

    fn every_cut(&self) -> Vec<Cut> {
        let mut cuts = Vec::with_capacity(self.cut.count());
        let mut correct = 0;
        for index in 0..self.success.len() {
            correct += u32::from(self.success.get(index));
            if self.cut.get(index) {
                cuts.push(Cut {
                    guesses: index as u32 + 1,
                    correct,
                });
            }
        }
        cuts
    }

    fn cuts_at_or_before(&self, positions: &[u32]) -> Vec<Cut> {
        let mut ends: Vec<usize> = positions
            .iter()
            .filter_map(|&position| self.cut.previous_set(position as usize - 1))
            .map(|bit| bit + 1)
            .collect();
        ends.dedup();
        cuts_at(&self.success, ends)
    }
}

/// Prefix counts of `bits` at increasing `ends`.
pub(crate) fn cuts_at(bits: &Bits, ends: Vec<usize>) -> Vec<Cut> {
    let (mut start, mut correct) = (0, 0);
    ends.into_iter()
        .map(|end| {
            correct += bits.count_between(start, end);
            start = end;
            Cut {
                guesses: end as u32,
                correct: correct as u32,
            }
        })
        .collect()
}

/// At most `points` positions in `1..=length`, evenly spaced in logarithm, the last included.
pub(crate) fn geometric_positions(length: usize, points: usize) -> Vec<usize> {
    if length <= points {
        return (1..=length).collect();
    }
    let step = (length as f64).ln() / (points.max(2) - 1) as f64;
    let mut positions: Vec<usize> = (0..points)
        .map(|point| ((step * point as f64).exp().round() as usize).clamp(1, length))
        .collect();
    positions.dedup();
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_inside_a_tied_block_move_to_its_ends() {
        let success: Bits = [true, true, false, true, false].into_iter().collect();
        let cut: Bits = [true, false, false, true, true].into_iter().collect();
        let path = Path::new(success, cut);
        let cuts = |grid| {
            let cuts = path.cuts(&grid, 1).unwrap();
            cuts.iter()
                .map(|c| (c.guesses, c.correct))
                .collect::<Vec<_>>()
        };
        assert_eq!(cuts(Grid::All), [(1, 1), (4, 3), (5, 3)]);
        assert_eq!(cuts(Grid::Listed(vec![2, 3, 5])), [(1, 1), (5, 3)]);
        assert_eq!(
            path.cut_at_or_after(2).unwrap(),
            Cut {
                guesses: 4,
                correct: 3
            }
        );
        assert!(path.cut_at_or_after(6).is_err());
        assert_eq!(path.cuts(&Grid::All, 2).unwrap().len(), 2);
    }

    #[test]
    fn a_prefix_ends_at_a_cut() {
        let success: Bits = [true, true, false, true, false].into_iter().collect();
        let cut: Bits = [false, true, false, true, true].into_iter().collect();
        let path = Path::new(success, cut);
        let ends = [0, 1, 2, 3, 4, 5, 9].map(|guesses| path.prefix(guesses).guesses());
        assert_eq!(ends, [2, 2, 2, 2, 4, 5, 5]);
        assert_eq!(path.prefix(9), path);
    }

    #[test]
    fn samples_are_increasing_and_end_with_the_path() {
        for length in [1, 5, 2_000, 12_345] {
            let path = Path::from_successes(&vec![true; length]);
            let sample = path.sample(2_000);
            assert!(sample.len() <= 2_000);
            assert!(sample.is_sorted_by(|a, b| a.guesses < b.guesses));
            assert_eq!(sample.last().map(|cut| cut.guesses as usize), Some(length));
        }
    }
}
