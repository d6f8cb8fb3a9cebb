//! Correct and incorrect guesses in the order in which they are visited.

use std::sync::Arc;

use leakbound_math::MathError;
use leakbound_math::memory::{listed, room};

use crate::error::AuditError;
use crate::guesses::bits::Bits;
use crate::guesses::counts::Counts;
use crate::guesses::grid::Grid;
use crate::guesses::shuffled::Shuffled;

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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
pub struct Path(Guesses);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Guesses {
    /// One bit for each guess.
    Each {
        success: Bits,
        /// Bit `i`: may a cut be made after guess `i + 1`?
        cut: Bits,
    },
    /// The ends of tied blocks, all that is known of them.
    Blocks(Vec<Cut>),
    /// Ranks in a random order within ties, taken in turn from the top and the bottom.
    Shuffled { ranks: Arc<Shuffled>, turns: Turns },
}

/// So many ranks from the top and so many from the bottom, in turn while there are both; of these
/// `length` are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) top: u32,
    pub(crate) bottom: u32,
    pub(crate) length: u32,
}

impl Turns {
    /// How many of the first `guesses` are from the top.
    fn at_top(self, guesses: u32) -> u32 {
        let from_bottom = (guesses / 2).min(self.bottom);
        (guesses - from_bottom).min(self.top)
    }
}

impl Path {
    pub(crate) fn new(success: Bits, cut: Bits) -> Self {
        Self(Guesses::Each { success, cut })
    }

    /// The path whose cuts, increasing, end tied blocks.
    pub(crate) fn of_blocks(ends: Vec<Cut>) -> Self {
        Self(Guesses::Blocks(ends))
    }

    /// The path that visits shuffled ranks in turn.
    pub(crate) fn of_shuffled(ranks: Arc<Shuffled>, turns: Turns) -> Self {
        Self(Guesses::Shuffled { ranks, turns })
    }

    /// A path on which every cut is allowed.
    pub fn from_successes(successes: &[bool]) -> Self {
        Self::new(
            successes.iter().copied().collect(),
            std::iter::repeat_n(true, successes.len()).collect(),
        )
    }

    /// A path on which every cut is allowed, all correct guesses first.
    pub fn correct_first(guesses: u32, correct: u32) -> Result<Self, AuditError> {
        let (all, right) = (i64::from(guesses), i64::from(correct));
        let counts = Counts::of_blocks(&[right, all - right], &[right, 0])?;
        let turns = Turns {
            top: guesses,
            bottom: 0,
            length: guesses,
        };
        Ok(Self::of_shuffled(Arc::new(Shuffled::new(counts, 0)), turns))
    }

    /// Number of guesses on the whole path.
    pub fn guesses(&self) -> u32 {
        match &self.0 {
            Guesses::Each { success, .. } => success.len() as u32,
            Guesses::Blocks(ends) => ends.last().map_or(0, |cut| cut.guesses),
            Guesses::Shuffled { turns, .. } => turns.length,
        }
    }

    /// Number of correct guesses on the whole path.
    pub fn correct(&self) -> u32 {
        match &self.0 {
            Guesses::Each { success, .. } => success.count() as u32,
            Guesses::Blocks(ends) => ends.last().map_or(0, |cut| cut.correct),
            Guesses::Shuffled { ranks, turns } => one_drawn(ranks, *turns, turns.length).correct,
        }
    }

    /// The shortest allowed prefix of at least `guesses` guesses.
    pub fn cut_at_or_after(&self, guesses: u32) -> Result<Cut, AuditError> {
        let available = self.guesses();
        let out_of_range = AuditError::GuessesOutOfRange {
            guesses: u64::from(guesses),
            available: u64::from(available),
        };
        if guesses == 0 || guesses > available {
            return Err(out_of_range);
        }
        match &self.0 {
            Guesses::Each { success, cut } => {
                let end = cut.next_set(guesses as usize - 1).ok_or(out_of_range)? + 1;
                let correct = success.count_between(0, end) as u32;
                let guesses = end as u32;
                Ok(Cut { guesses, correct })
            }
            Guesses::Blocks(ends) => Ok(ends[ends.partition_point(|end| end.guesses < guesses)]),
            Guesses::Shuffled { ranks, turns } => Ok(one_drawn(ranks, *turns, guesses)),
        }
    }

    /// Guesses and correct ones after the first `from`, up to the first `to`, as far as there are any.
    ///
    /// Within a tied block of counts none is told from another: both ends move back to cuts.
    pub(crate) fn between(&self, from: u32, to: u32) -> (u32, u32) {
        let (from, to) = (from.min(self.guesses()), to.min(self.guesses()));
        let [start, end] = match &self.0 {
            Guesses::Each { success, .. } => {
                let correct = success.count_between(from as usize, to as usize);
                return (to - from, correct as u32);
            }
            Guesses::Blocks(ends) => [from, to].map(|position| {
                let after = ends.partition_point(|end| end.guesses <= position);
                let last = after.checked_sub(1);
                last.map_or(Cut::default(), |last| ends[last])
            }),
            Guesses::Shuffled { ranks, turns } => {
                [from, to].map(|position| one_drawn(ranks, *turns, position))
            }
        };
        (end.guesses - start.guesses, end.correct - start.correct)
    }

    /// The path to its last allowed cut of at most `guesses` guesses, or to its first cut if that is
    /// beyond.
    #[must_use]
    pub fn prefix(&self, guesses: u32) -> Self {
        match &self.0 {
            Guesses::Each { success, cut } => {
                let within = (guesses as usize).min(success.len());
                let last = within
                    .checked_sub(1)
                    .and_then(|last| cut.previous_set(last))
                    .or_else(|| cut.next_set(0));
                let end = last.map_or(0, |bit| bit + 1);
                Self::new(
                    (0..end).map(|index| success.get(index)).collect(),
                    (0..end).map(|index| cut.get(index)).collect(),
                )
            }
            Guesses::Blocks(ends) => {
                let within = ends.partition_point(|end| end.guesses <= guesses);
                Self::of_blocks(ends[..within.max(1).min(ends.len())].to_vec())
            }
            Guesses::Shuffled { ranks, turns } => {
                let length = guesses.max(1).min(turns.length);
                Self::of_shuffled(Arc::clone(ranks), Turns { length, ..*turns })
            }
        }
    }

    /// The allowed cuts on `grid` with at least `min_guesses` guesses, shortest first.
    ///
    /// A position of the grid inside a tied block moves back to the end of the block before, so
    /// the cuts still depend on scores alone.
    pub fn cuts(&self, grid: &Grid, min_guesses: u32) -> Result<Vec<Cut>, AuditError> {
        let mut cuts = match grid.positions(self.guesses())? {
            None => self.every_cut()?,
            Some(positions) => self.cuts_at_or_before(&positions)?,
        };
        cuts.retain(|cut| cut.guesses >= min_guesses);
        Ok(cuts)
    }

    /// At most `points` allowed cuts, geometric in the number of guesses.
    ///
    /// # Errors
    /// No memory for so many.
    pub fn sample(&self, points: usize) -> Result<Vec<Cut>, AuditError> {
        let guesses = self.guesses();
        if guesses as usize <= points {
            return self.every_cut();
        }
        let positions = geometric_positions(guesses as usize, points)?;
        let positions = listed(positions.len(), positions.iter().map(|&p| p as u32))?;
        self.cuts_at_or_before(&positions)
    }

    fn every_cut(&self) -> Result<Vec<Cut>, AuditError> {
        match &self.0 {
            Guesses::Each { success, cut } => {
                let mut cuts = room(cut.count())?;
                let mut correct = 0;
                for index in 0..success.len() {
                    correct += u32::from(success.get(index));
                    if cut.get(index) {
                        cuts.push(Cut {
                            guesses: index as u32 + 1,
                            correct,
                        });
                    }
                }
                Ok(cuts)
            }
            Guesses::Blocks(ends) => Ok(listed(ends.len(), ends.iter().copied())?),
            Guesses::Shuffled { ranks, turns } => {
                let positions = listed(turns.length as usize, 1..=turns.length)?;
                drawn(ranks, *turns, &positions)
            }
        }
    }

    /// The last allowed cut at or before each of some increasing positions, each once.
    fn cuts_at_or_before(&self, positions: &[u32]) -> Result<Vec<Cut>, AuditError> {
        match &self.0 {
            Guesses::Each { success, cut } => {
                let found = positions
                    .iter()
                    .filter_map(|&position| cut.previous_set((position as usize).checked_sub(1)?))
                    .map(|bit| bit + 1);
                let mut ends: Vec<usize> = listed(positions.len(), found)?;
                ends.dedup();
                Ok(cuts_at(success, &ends)?)
            }
            Guesses::Blocks(ends) => {
                let at_or_before = |&position: &u32| {
                    let after = ends.partition_point(|end| end.guesses <= position);
                    after.checked_sub(1).map(|last| ends[last])
                };
                let found = positions.iter().filter_map(at_or_before);
                let mut cuts: Vec<Cut> = listed(positions.len(), found)?;
                cuts.dedup();
                Ok(cuts)
            }
            Guesses::Shuffled { ranks, turns } => drawn(ranks, *turns, positions),
        }
    }
}

/// Correct guesses among the first so many.
fn one_drawn(ranks: &Shuffled, turns: Turns, guesses: u32) -> Cut {
    let (examples, members) = (ranks.counts().examples(), ranks.counts().members());
    let top = turns.at_top(guesses);
    let above = ranks.members_above_one(top);
    let not_below = ranks.members_above_one(examples - (guesses - top));
    Cut {
        guesses,
        correct: above + (guesses - top) - (members - not_below),
    }
}

/// Correct guesses after each of some increasing numbers of guesses, 0 left out.
fn drawn(ranks: &Shuffled, turns: Turns, guesses: &[u32]) -> Result<Vec<Cut>, AuditError> {
    let (examples, members) = (ranks.counts().examples(), ranks.counts().members());
    let guesses = &guesses[guesses.partition_point(|&guesses| guesses == 0)..];
    let made = guesses.iter().copied();
    let most = guesses.len();
    let top = listed(most, made.clone().map(|made| turns.at_top(made)))?;
    // From the bottom up ranks fall: they are asked for from the last guess on.
    let from_the_end = made.clone().zip(&top).rev();
    let bottom = listed(
        most,
        from_the_end.map(|(made, top)| examples - (made - top)),
    )?;
    let above = ranks.members_above(&top)?;
    let not_below = ranks.members_above(&bottom)?;
    let counted = made
        .zip(top)
        .zip(above)
        .zip(not_below.into_iter().rev())
        .map(|(((guesses, top), above), not_below)| Cut {
            guesses,
            correct: above + (guesses - top) - (members - not_below),
        });
    Ok(listed(most, counted)?)
}

/// Prefix counts of `bits` at increasing `ends`.
pub(crate) fn cuts_at(bits: &Bits, ends: &[usize]) -> Result<Vec<Cut>, MathError> {
    let (mut start, mut correct) = (0, 0);
    let counted = ends.iter().map(|&end| {
        correct += bits.count_between(start, end);
        start = end;
        Cut {
            guesses: end as u32,
            correct: correct as u32,
        }
    });
    listed(ends.len(), counted)
}

/// At most `points` positions in `1..=length`, evenly spaced in logarithm, the last included.
pub(crate) fn geometric_positions(length: usize, points: usize) -> Result<Vec<usize>, MathError> {
    if length <= points {
        return listed(length, 1..=length);
    }
    let step = (length as f64).ln() / (points.max(2) - 1) as f64;
    let spaced =
        (0..points).map(|point| ((step * point as f64).exp().round() as usize).clamp(1, length));
    let mut positions = listed(points, spaced)?;
    positions.dedup();
    Ok(positions)
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
            let sample = path.sample(2_000).unwrap();
            assert!(sample.len() <= 2_000);
            assert!(sample.is_sorted_by(|a, b| a.guesses < b.guesses));
            assert_eq!(sample.last().map(|cut| cut.guesses as usize), Some(length));
        }
    }
}
