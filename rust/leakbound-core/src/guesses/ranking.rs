//! Scores in order, highest first, with ties that labels cannot break.

use std::sync::Arc;

use leakbound_math::memory::{listed, room};

use crate::error::{AuditError, check_examples, out_of_range};
use crate::guesses::bits::Bits;
use crate::guesses::counts::{Block, Counts};
use crate::guesses::path::{Cut, Order, Path, Turns, cuts_at, geometric_positions};
use crate::guesses::shuffled::Shuffled;
use crate::guesses::sorted::{
    Key, Sorted, are_single, in_turn, merge, sorted_keys, sorted_keys_of_rows,
};
use crate::interrupt::Interrupt;

/// Membership in order of score, highest first.
///
/// Members' and non-members' scores are sorted separately and merged, so the order within a block
/// of equal scores carries no information: cuts are allowed only where a block ends.
///
/// ```
/// use leakbound_core::{Interrupt, Order, Ranking};
/// let (scores, member) = ([0.1, 2.0, 2.0, -1.0], [false, true, false, true]);
/// let ranking = Ranking::new(&scores, &member, &Interrupt::default())?;
/// assert_eq!(ranking.blocks(), 3);
/// let path = ranking.path(Order::Member)?;
/// assert_eq!(path.cut_at_or_after(1)?.guesses, 2); // the two tied examples stay together
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ranking {
    ranks: Ranks,
    members: usize,
    /// Σ over members of the non-members ranked at or after them, ties counted as after.
    pairs_won_or_tied: u64,
}

#[derive(Debug, Clone)]
enum Ranks {
    /// One bit for each example.
    Each(Sorted),
    /// Counts of tied blocks.
    Counted(Counts),
    /// The same, ties broken at random.
    Shuffled(Arc<Shuffled>),
}

/// How examples of equal score are ordered where they are known by their counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    /// Not at all: cuts fall between blocks.
    Together,
    /// At random, from a seed.
    Shuffled(u64),
}

impl Ranking {
    /// Rank `scores`, the highest first; `member[i]` says whether example `i` was included.
    ///
    /// Cost: two sorts of 64-bit keys, side by side on two threads, and one merge. Memory: one
    /// copy of the scores while it runs, in single precision if it has all of them; two bits per
    /// example afterwards.
    ///
    /// # Errors
    /// No examples, more than `u32::MAX`, lengths that differ, a NaN score, or an interrupt.
    pub fn new(scores: &[f64], member: &[bool], interrupt: &Interrupt) -> Result<Self, AuditError> {
        check_examples(scores.len(), member.len())?;
        if let Some(index) = scores.iter().position(|score| score.is_nan()) {
            return Err(AuditError::ScoreIsNan { index });
        }
        if are_single(scores.iter().copied()) {
            Self::merged::<u32>(sorted_keys(scores, member, interrupt)?, interrupt)
        } else {
            Self::merged::<u64>(sorted_keys(scores, member, interrupt)?, interrupt)
        }
    }

    /// The ranking of sorted keys of members and of others.
    fn merged<K: Key>(
        (members, others): (Vec<K>, Vec<K>),
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        let (sorted, pairs_won_or_tied) = merge(&members, &others, interrupt)?;
        Ok(Self {
            ranks: Ranks::Each(sorted),
            members: members.len() - 1,
            pairs_won_or_tied,
        })
    }

    /// Rank the scores of some rows, those of `members` and those of `others`, each row once.
    ///
    /// Cost and memory: those of [`Self::new`], and no copy of the scores beside the keys.
    ///
    /// # Errors
    /// No rows, more than `u32::MAX`, one that is not there, a NaN score, or an interrupt.
    pub fn of_rows(
        scores: &[f64],
        members: &[u32],
        others: &[u32],
        interrupt: &Interrupt,
    ) -> Result<Self, AuditError> {
        let examples = members.len() + others.len();
        check_examples(examples, examples)?;
        for &row in members.iter().chain(others) {
            let index = row as usize;
            match scores.get(index) {
                None => return out_of_range("row", row.into(), "below the number of scores"),
                Some(score) if score.is_nan() => return Err(AuditError::ScoreIsNan { index }),
                Some(_) => {}
            }
        }
        let rows = members.iter().chain(others);
        if are_single(rows.map(|&row| scores[row as usize])) {
            let keys = sorted_keys_of_rows::<u32>(scores, members, others, interrupt)?;
            Self::merged(keys, interrupt)
        } else {
            let keys = sorted_keys_of_rows::<u64>(scores, members, others, interrupt)?;
            Self::merged(keys, interrupt)
        }
    }

    /// The ranking of examples that are in order, the likeliest member first: none are tied, or
    /// `block_end[i]` says whether example `i` is the last of its score, members first in a block.
    ///
    /// ```
    /// use leakbound_core::Ranking;
    /// let member = [true, false, true];
    /// let ranking = Ranking::in_order(&member, None)?;
    /// assert_eq!((ranking.members(), ranking.blocks()), (2, 3));
    /// assert_eq!(ranking.auc(), 0.5); // one member is above the non-member, one below
    /// let ranking = Ranking::in_order(&member, Some(&[false, true, true]))?;
    /// assert_eq!((ranking.members(), ranking.blocks()), (2, 2));
    /// assert_eq!(ranking.auc(), 0.25); // one is tied with it, one below
    /// # Ok::<(), leakbound_core::AuditError>(())
    /// ```
    ///
    /// # Errors
    /// No examples, more than `u32::MAX`, lengths that differ, or no memory.
    pub fn in_order(member: &[bool], block_end: Option<&[bool]>) -> Result<Self, AuditError> {
        check_examples(member.len(), block_end.unwrap_or(member).len())?;
        let mut bits = Bits::with_capacity(member.len())?;
        let (mut members, mut pairs_won) = (0, 0);
        for &is_member in member {
            bits.push(is_member);
            members += u64::from(is_member);
            // Each non-member comes after the members before it.
            pairs_won += if is_member { 0 } else { members };
        }
        let (block_end, blocks) = match block_end {
            None => (Bits::ones(member.len())?, member.len()),
            Some(block_end) => ends_of(block_end)?,
        };
        Ok(Self {
            ranks: Ranks::Each(Sorted {
                member: bits,
                block_end,
                blocks,
            }),
            members: members as usize,
            pairs_won_or_tied: pairs_won,
        })
    }

    /// The ranking of examples that are counted: so many at each score, the highest score first, and
    /// so many members among them. Scores of no example are left out.
    ///
    /// Memory and cost: those of the blocks, whatever the number of examples. Ties that are shuffled
    /// have the law of a random order; only what paths are asked for is drawn.
    ///
    /// # Errors
    /// No examples, more than `u32::MAX`, lengths that differ, negative counts, or more members than
    /// examples.
    pub fn of_blocks(examples: &[i64], members: &[i64], ties: Ties) -> Result<Self, AuditError> {
        let counts = Counts::of_blocks(examples, members)?;
        let others = u64::from(counts.examples() - counts.members());
        let pairs = counts.blocks().map(|block| {
            let others_before = u64::from(block.start - block.before);
            u64::from(block.members) * (others - others_before)
        });
        Ok(Self {
            members: counts.members() as usize,
            pairs_won_or_tied: pairs.sum(),
            ranks: match ties {
                Ties::Together => Ranks::Counted(counts),
                Ties::Shuffled(seed) => Ranks::Shuffled(Arc::new(Shuffled::new(counts, seed))),
            },
        })
    }

    /// Number of examples, `m`.
    pub fn examples(&self) -> usize {
        match &self.ranks {
            Ranks::Each(sorted) => sorted.examples(),
            Ranks::Counted(counts) => counts.examples() as usize,
            Ranks::Shuffled(shuffled) => shuffled.counts().examples() as usize,
        }
    }

    /// How many of them are members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Number of distinct scores; of examples, where ties are broken.
    pub fn blocks(&self) -> usize {
        match &self.ranks {
            Ranks::Each(sorted) => sorted.blocks,
            Ranks::Counted(counts) => counts.len(),
            Ranks::Shuffled(_) => self.examples(),
        }
    }

    /// How many examples share their score with another; none where ties are broken.
    pub fn tied(&self) -> usize {
        if self.blocks() == self.examples() {
            return 0;
        }
        let singletons = match &self.ranks {
            Ranks::Each(sorted) => sorted
                .blocks_from_the_top()
                .filter(|&(start, end)| end == start + 1)
                .count(),
            Ranks::Counted(counts) => counts.blocks().filter(|block| block.size() == 1).count(),
            Ranks::Shuffled(_) => self.examples(),
        };
        self.examples() - singletons
    }

    /// Area under the ROC curve: P(member's score > non-member's) + ½ P(equal); ½ without both.
    ///
    /// Counted examples of equal score are equal here, however their order is drawn.
    pub fn auc(&self) -> f64 {
        let non_members = self.examples() - self.members;
        if self.members == 0 || non_members == 0 {
            return 0.5;
        }
        let pairs = self.members as f64 * non_members as f64;
        (self.pairs_won_or_tied as f64 - 0.5 * self.tied_pairs() as f64) / pairs
    }

    /// Pairs of a member and a non-member of equal score.
    fn tied_pairs(&self) -> u64 {
        let of_counts = |counts: &Counts| {
            let within =
                |block: Block| u64::from(block.members) * u64::from(block.size() - block.members);
            counts.blocks().map(within).sum()
        };
        match &self.ranks {
            Ranks::Each(sorted) if sorted.blocks == sorted.examples() => 0,
            Ranks::Each(sorted) => sorted
                .blocks_from_the_top()
                .map(|(start, end)| {
                    let members = sorted.member.count_between(start, end);
                    (members * (end - start - members)) as u64
                })
                .sum(),
            Ranks::Counted(counts) => of_counts(counts),
            Ranks::Shuffled(shuffled) => of_counts(shuffled.counts()),
        }
    }

    /// Correct and incorrect guesses in the given order of visiting.
    ///
    /// # Errors
    /// [`AuditError::EveryExampleAbstains`] if roles are needed and all scores are equal.
    pub fn path(&self, order: Order) -> Result<Path, AuditError> {
        let examples = self.examples();
        let (top, bottom) = match order {
            Order::Member => (examples, 0),
            Order::MemberHalf => (self.role_boundary()?, 0),
            Order::NonMemberHalf => (0, examples - self.role_boundary()?),
            Order::Interleaved => {
                let boundary = self.role_boundary()?;
                (boundary, examples - boundary)
            }
        };
        Ok(match &self.ranks {
            Ranks::Each(sorted) if order == Order::Member => {
                Path::new(sorted.member.copied()?, sorted.block_end.copied()?)
            }
            Ranks::Each(sorted) => sorted.visit(top, bottom)?,
            Ranks::Counted(counts) => visit_counts(counts, top, bottom)?,
            Ranks::Shuffled(shuffled) => {
                let [top, bottom] = [top as u32, bottom as u32];
                let length = top + bottom;
                let turns = Turns {
                    top,
                    bottom,
                    length,
                };
                Path::of_shuffled(Arc::clone(shuffled), turns)
            }
        })
    }

    /// Members among the top ranks, at no more than `points` cuts that depend on scores alone.
    ///
    /// Half of the cuts are geometric from the top, half from the bottom, each moved to the end of
    /// its tied block.
    ///
    /// # Errors
    /// No memory for so many.
    pub fn roc(&self, points: usize) -> Result<Vec<Cut>, AuditError> {
        let examples = self.examples();
        let from_the_top = geometric_positions(examples, points / 2)?;
        let positions = from_the_top
            .iter()
            .flat_map(|&position| [position, examples + 1 - position]);
        match &self.ranks {
            Ranks::Each(sorted) => {
                let end = |position| Some(sorted.block_end.next_set(position - 1)? + 1);
                let mut ends = listed(2 * from_the_top.len(), positions.filter_map(end))?;
                ends.sort_unstable();
                ends.dedup();
                Ok(cuts_at(&sorted.member, &ends)?)
            }
            Ranks::Counted(counts) => Ok(roc_of(counts, positions)),
            Ranks::Shuffled(shuffled) => Ok(roc_of(shuffled.counts(), positions)),
        }
    }

    /// The end of a tied block nearest to the middle; above it guesses are "member".
    fn role_boundary(&self) -> Result<usize, AuditError> {
        let examples = self.examples();
        if self.blocks() == 1 {
            return Err(AuditError::EveryExampleAbstains { examples });
        }
        let half = (examples / 2).max(1);
        let (above, below) = match &self.ranks {
            // Ends are counted in examples; both searches look at bits, one position lower.
            Ranks::Each(Sorted { block_end, .. }) => (
                block_end.previous_set(half - 1).map(|bit| bit + 1),
                block_end.next_set(examples / 2).map(|bit| bit + 1),
            ),
            Ranks::Counted(counts) => {
                let end = |block: Option<Block>| block.map(|block| block.end as usize);
                let [half, after] = [half as u32, (examples / 2) as u32 + 1];
                (end(counts.ending_by(half)), end(counts.ending_from(after)))
            }
            Ranks::Shuffled(_) => (Some(half), None),
        };
        let distance = |end: usize| (2 * end).abs_diff(examples);
        let nearest = [above, below]
            .into_iter()
            .flatten()
            .min_by_key(|&end| distance(end));
        nearest.ok_or(AuditError::Empty)
    }
}

/// The ends of blocks as bits, and how many there are; the last example ends one.
fn ends_of(block_end: &[bool]) -> Result<(Bits, usize), AuditError> {
    let mut bits = Bits::with_capacity(block_end.len())?;
    let mut blocks = 0;
    for (rank, &is_end) in block_end.iter().enumerate() {
        let is_end = is_end || rank + 1 == block_end.len();
        bits.push(is_end);
        blocks += usize::from(is_end);
    }
    Ok((bits, blocks))
}

/// [`Sorted::visit`] for blocks of which the counts are known.
fn visit_counts(counts: &Counts, top: usize, bottom: usize) -> Result<Path, AuditError> {
    let examples = counts.examples() as usize;
    let mut ends = room(counts.len())?;
    let mut last = Cut::default();
    in_turn(
        counts
            .blocks()
            .take_while(|block| block.end as usize <= top),
        counts
            .blocks()
            .rev()
            .take_while(|block| block.start as usize + bottom >= examples),
        |block| block.size() as usize,
        |block, is_top| {
            let others = block.size() - block.members;
            last = Cut {
                guesses: last.guesses + block.size(),
                correct: last.correct + if is_top { block.members } else { others },
            };
            ends.push(last);
        },
    );
    Ok(Path::of_blocks(ends))
}

/// Members among the top ranks, at the ends of the blocks that hold some positions.
fn roc_of(counts: &Counts, positions: impl Iterator<Item = usize>) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = positions
        .filter_map(|position| counts.ending_from(position as u32))
        .map(|block| Cut {
            guesses: block.end,
            correct: block.before + block.members,
        })
        .collect();
    cuts.sort_unstable_by_key(|cut| cut.guesses);
    cuts.dedup();
    cuts
}
