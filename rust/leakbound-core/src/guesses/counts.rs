//! Examples counted by score: how many lie above the end of each tied block, and how many members.

use leakbound_math::memory::room;

use crate::error::{AuditError, out_of_range};

/// Running counts over the blocks of equal score, the highest score first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    examples: Vec<u32>,
    members: Vec<u32>,
}

/// Ranks `start..end` of equal score: a tied block, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Members among all ranks before `start`.
    pub(crate) before: u32,
    /// Members within.
    pub(crate) members: u32,
}

impl Block {
    pub(crate) fn size(&self) -> u32 {
        self.end - self.start
    }
}

impl Counts {
    /// Examples and members at each score, the highest score first; scores of no example are left
    /// out.
    ///
    /// # Errors
    /// No examples, more than `u32::MAX`, lengths that differ, or counts that cannot be.
    pub(crate) fn of_blocks(examples: &[i64], members: &[i64]) -> Result<Self, AuditError> {
        if examples.len() != members.len() {
            let (scores, members) = (examples.len(), members.len());
            return Err(AuditError::LengthMismatch { scores, members });
        }
        let mut counts = Self {
            examples: room(examples.len())?,
            members: room(examples.len())?,
        };
        let (mut above, mut members_above) = (0_u64, 0_u64);
        for (&size, &members) in examples.iter().zip(members) {
            let (Ok(size), Ok(inside)) = (u64::try_from(size), u64::try_from(members)) else {
                return impossible(members);
            };
            if inside > size {
                return impossible(members);
            }
            above = above.saturating_add(size);
            members_above += inside;
            let Ok(end) = u32::try_from(above) else {
                let examples = usize::try_from(above).unwrap_or(usize::MAX);
                return Err(AuditError::TooManyExamples { examples });
            };
            if size > 0 {
                counts.examples.push(end);
                counts.members.push(members_above as u32);
            }
        }
        if counts.examples.is_empty() {
            return Err(AuditError::Empty);
        }
        Ok(counts)
    }

    pub(crate) fn len(&self) -> usize {
        self.examples.len()
    }

    pub(crate) fn examples(&self) -> u32 {
        self.examples.last().copied().unwrap_or(0)
    }

    pub(crate) fn members(&self) -> u32 {
        self.members.last().copied().unwrap_or(0)
    }

    pub(crate) fn block(&self, index: usize) -> Block {
        let last = index.checked_sub(1);
        let before = last.map_or(0, |last| self.members[last]);
        Block {
            start: last.map_or(0, |last| self.examples[last]),
            end: self.examples[index],
            before,
            members: self.members[index] - before,
        }
    }

    pub(crate) fn blocks(&self) -> impl DoubleEndedIterator<Item = Block> + '_ {
        (0..self.len()).map(|index| self.block(index))
    }

    /// The first block that ends at or after a rank, none if all end before it.
    pub(crate) fn ending_from(&self, rank: u32) -> Option<Block> {
        let index = self.examples.partition_point(|&end| end < rank);
        (index < self.len()).then(|| self.block(index))
    }

    /// The last block that ends at or before a rank, none if all end after it.
    pub(crate) fn ending_by(&self, rank: u32) -> Option<Block> {
        let index = self.examples.partition_point(|&end| end <= rank);
        index.checked_sub(1).map(|index| self.block(index))
    }
}

fn impossible<T>(members: i64) -> Result<T, AuditError> {
    let range = "from 0 to the number of examples of the same score";
    out_of_range("members", members as f64, range)
}
