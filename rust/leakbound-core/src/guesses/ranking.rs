//! Scores in order, highest first, with ties that labels cannot break.

use crate::error::AuditError;
use crate::guesses::bits::Bits;
use crate::guesses::path::{Cut, Order, Path, cuts_at, geometric_positions};

/// Greater than the sort key of every number.
const SENTINEL: u64 = u64::MAX;

/// Membership in order of score, highest first.
///
/// Members' and non-members' scores are sorted separately and merged, so the order within a block
/// of equal scores carries no information: cuts are allowed only where a block ends.
///
/// ```
/// use leakbound_core::{Order, Ranking};
/// let ranking = Ranking::new(&[0.1, 2.0, 2.0, -1.0], &[false, true, false, true])?;
/// assert_eq!(ranking.blocks(), 3);
/// let path = ranking.path(Order::Member)?;
/// assert_eq!(path.cut_at_or_after(1)?.guesses, 2); // the two tied examples stay together
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Bit `i`: is the example at rank `i` a member?
    member: Bits,
    /// Bit `i`: does the next rank hold a different score?
    block_end: Bits,
    members: usize,
    blocks: usize,
    /// Σ over members of the non-members ranked at or after them, ties counted as after.
    pairs_won_or_tied: u64,
}

impl Ranking {
    /// Rank `scores`, the highest first; `member[i]` says whether example `i` was included.
    ///
    /// Cost: two sorts of 64-bit keys, side by side on two threads, and one merge. Memory: one
    /// copy of the scores while it runs, two bits per example afterwards.
    ///
    /// # Errors
    /// No examples, more than `u32::MAX`, lengths that differ, or a NaN score.
    pub fn new(scores: &[f64], member: &[bool]) -> Result<Self, AuditError> {
        if scores.len() != member.len() {
            let (scores, members) = (scores.len(), member.len());
            return Err(AuditError::LengthMismatch { scores, members });
        }
        if scores.is_empty() {
            return Err(AuditError::Empty);
        }
        if u32::try_from(scores.len()).is_err() {
            return Err(AuditError::TooManyExamples {
                examples: scores.len(),
            });
        }
        if let Some(index) = scores.iter().position(|score| score.is_nan()) {
            return Err(AuditError::ScoreIsNan { index });
        }
        let (members, non_members) = sorted_keys(scores, member);
        Ok(merge(&members, &non_members))
    }

    /// Number of examples, `m`.
    #[must_use]
    pub fn examples(&self) -> usize {
        self.member.len()
    }

    /// How many of them are members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members
    }

    /// Number of distinct scores.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// How many examples share their score with another.
    #[must_use]
    pub fn tied(&self) -> usize {
        if self.blocks == self.examples() {
            return 0;
        }
        let singletons = self
            .blocks_from_the_top()
            .filter(|&(start, end)| end == start + 1)
            .count();
        self.examples() - singletons
    }

    /// Area under the ROC curve: P(member's score > non-member's) + ½ P(equal); ½ without both.
    #[must_use]
    pub fn auc(&self) -> f64 {
        let non_members = self.examples() - self.members;
        if self.members == 0 || non_members == 0 {
            return 0.5;
        }
        let tied_pairs: u64 = if self.blocks == self.examples() {
            0
        } else {
            self.blocks_from_the_top()
                .map(|(start, end)| {
                    let members = self.member.count_between(start, end);
                    (members * (end - start - members)) as u64
                })
                .sum()
        };
        let pairs = self.members as f64 * non_members as f64;
        (self.pairs_won_or_tied as f64 - 0.5 * tied_pairs as f64) / pairs
    }

    /// Correct and incorrect guesses in the given order of visiting.
    ///
    /// # Errors
    /// [`AuditError::EveryExampleAbstains`] if roles are needed and all scores are equal.
    pub fn path(&self, order: Order) -> Result<Path, AuditError> {
        Ok(match order {
            Order::Member => Path::new(self.member.clone(), self.block_end.clone()),
            Order::MemberHalf => self.visit(self.blocks_from_the_top(), self.role_boundary()?, 0),
            Order::NonMemberHalf => {
                let bottom = self.examples() - self.role_boundary()?;
                self.visit(std::iter::empty(), 0, bottom)
            }
            Order::Interleaved => {
                let boundary = self.role_boundary()?;
                let bottom = self.examples() - boundary;
                self.visit(self.blocks_from_the_top(), boundary, bottom)
            }
        })
    }

    /// Members among the top ranks, at no more than `points` cuts that depend on scores alone.
    ///
    /// Half of the cuts are geometric from the top, half from the bottom, each moved to the end of
    /// its tied block.
    #[must_use]
    pub fn roc(&self, points: usize) -> Vec<Cut> {
        let examples = self.examples();
        let from_the_top = geometric_positions(examples, points / 2);
        let mut positions: Vec<usize> = from_the_top
            .iter()
            .flat_map(|&position| [position, examples + 1 - position])
            .filter_map(|position| self.block_end.next_set(position - 1))
            .map(|end| end + 1)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        cuts_at(&self.member, positions)
    }

    /// The end of a tied block nearest to the middle; above it guesses are "member".
    fn role_boundary(&self) -> Result<usize, AuditError> {
        let examples = self.examples();
        if self.blocks == 1 {
            return Err(AuditError::EveryExampleAbstains { examples });
        }
        // Ends are counted in examples; both searches look at bits, one position lower.
        let above = self
            .block_end
            .previous_set((examples / 2).max(1) - 1)
            .map(|bit| bit + 1);
        let below = self.block_end.next_set(examples / 2).map(|bit| bit + 1);
        let distance = |end: usize| (2 * end).abs_diff(examples);
        let nearest = [above, below]
            .into_iter()
            .flatten()
            .min_by_key(|&end| distance(end));
        nearest.ok_or(AuditError::Empty)
    }

    /// Whole blocks from the top down to `top` examples and from the bottom up to `bottom`
    /// examples, the next always from the side with fewer guesses so far.
    fn visit(
        &self,
        top_blocks: impl Iterator<Item = (usize, usize)>,
        top: usize,
        bottom: usize,
    ) -> Path {
        let examples = self.examples();
        let mut successes = Bits::with_capacity(top + bottom);
        let mut cuts = Bits::with_capacity(top + bottom);
        let mut top_blocks = top_blocks.take_while(|&(_, end)| end <= top).peekable();
        let mut bottom_blocks = self
            .blocks_from_the_bottom()
            .take_while(|&(start, _)| start + bottom >= examples);
        let mut bottom_block = bottom_blocks.next();
        let (mut from_top, mut from_bottom) = (0, 0);
        loop {
            let take_top = match (top_blocks.peek(), bottom_block) {
                (Some(_), Some(_)) => from_top <= from_bottom,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let block = if take_top {
                top_blocks.next()
            } else {
                bottom_block
            };
            let Some((start, end)) = block else { break };
            for rank in start..end {
                successes.push(self.member.get(rank) == take_top);
                cuts.push(rank + 1 == end);
            }
            if take_top {
                from_top += end - start;
            } else {
                from_bottom += end - start;
                bottom_block = bottom_blocks.next();
            }
        }
        Path::new(successes, cuts)
    }

    /// Blocks of equal score as `start..end` in ranks, from the highest score down.
    fn blocks_from_the_top(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let end = (start < self.examples()).then(|| self.block_end.next_set(start))?? + 1;
            Some((std::mem::replace(&mut start, end), end))
        })
    }

    /// The same blocks from the lowest score up.
    fn blocks_from_the_bottom(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut end = self.examples();
        std::iter::from_fn(move || {
            if end == 0 {
                return None;
            }
            let start = if end == 1 {
                0
            } else {
                self.block_end
                    .previous_set(end - 2)
                    .map_or(0, |previous_end| previous_end + 1)
            };
            Some((start, std::mem::replace(&mut end, start)))
        })
    }
}

/// Keys of members and of non-members, each increasing as scores decrease, with a sentinel last.
fn sorted_keys(scores: &[f64], member: &[bool]) -> (Vec<u64>, Vec<u64>) {
    let members = member.iter().filter(|&&is_member| is_member).count();
    let mut keys = (
        Vec::with_capacity(members + 1),
        Vec::with_capacity(scores.len() - members + 1),
    );
    for (&score, &is_member) in scores.iter().zip(member) {
        if is_member {
            keys.0.push(key(score))
        } else {
            keys.1.push(key(score))
        }
    }
    rayon::join(|| keys.0.sort_unstable(), || keys.1.sort_unstable());
    keys.0.push(SENTINEL);
    keys.1.push(SENTINEL);
    keys
}

/// An integer that decreases as the score increases; −0 and +0 share one.
fn key(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    let sign = 1 << 63;
    if bits & sign == 0 {
        !(bits | sign)
    } else {
        bits
    }
}

/// Merge two key lists that end in [`SENTINEL`], members first within a block.
fn merge(members: &[u64], non_members: &[u64]) -> Ranking {
    let examples = members.len() + non_members.len() - 2;
    let mut ranking = Ranking {
        member: Bits::with_capacity(examples),
        block_end: Bits::with_capacity(examples),
        members: members.len() - 1,
        blocks: 0,
        pairs_won_or_tied: 0,
    };
    let (mut i, mut j) = (0, 0);
    while i + j < examples {
        // No branch depends on the data: either list is as likely to come next.
        let is_member = members[i] <= non_members[j];
        let current = members[i].min(non_members[j]);
        ranking.pairs_won_or_tied += u64::from(is_member) * (non_members.len() - 1 - j) as u64;
        i += usize::from(is_member);
        j += usize::from(!is_member);
        let is_end = current != members[i].min(non_members[j]);
        ranking.member.push(is_member);
        ranking.block_end.push(is_end);
        ranking.blocks += usize::from(is_end);
    }
    ranking
}
