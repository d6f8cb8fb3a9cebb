//! Tied examples in a random order, of which only what is asked for is drawn.

use leakbound_math::memory::room;
use leakbound_math::stream::{Purpose, Stream};
use leakbound_math::{MathError, hypergeometric};

use crate::guesses::counts::{Block, Counts};

/// Parts of a block with no more ranks than this are drawn one rank after another.
const SMALL: u32 = 64;

/// Blocks of equal score, each in an order drawn at random from a seed.
///
/// In a random order of n examples with k members, the number of members in the first half is
/// hypergeometric, and given it both halves are in random orders of their own. So a block is halved
/// until the ranks that are asked for are ends of parts, each part drawn from a stream named by its
/// ranks. Whatever is asked for, and in whatever order, all answers are about one order, whose law
/// is that of a random permutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shuffled {
    counts: Counts,
    seed: u64,
}

impl Shuffled {
    pub(crate) fn new(counts: Counts, seed: u64) -> Self {
        Self { counts, seed }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Members among the top ranks, for numbers of ranks that do not decrease.
    ///
    /// Cost: O(log n) draws for a rank inside a block of n, those of parts shared between ranks.
    pub(crate) fn members_above(&self, ranks: &[u32]) -> Result<Vec<u32>, MathError> {
        let mut found = room(ranks.len())?;
        self.count_above(ranks, &mut found);
        Ok(found)
    }

    /// Members among so many top ranks.
    pub(crate) fn members_above_one(&self, rank: u32) -> u32 {
        let mut found = Vec::new();
        self.count_above(&[rank], &mut found);
        found.first().copied().unwrap_or(0)
    }

    fn count_above(&self, mut ranks: &[u32], found: &mut Vec<u32>) {
        while let Some(&rank) = ranks.first() {
            let Some(block) = self.counts.ending_from(rank) else {
                break;
            };
            let (inside, beyond) = ranks.split_at(ranks.partition_point(|&r| r <= block.end));
            self.count(block, inside, found);
            ranks = beyond;
        }
    }

    /// Count the members above some ranks of a part of a block.
    fn count(&self, part: Block, ranks: &[u32], found: &mut Vec<u32>) {
        let Block {
            start,
            end,
            before,
            members,
        } = part;
        let (Some(&first), size) = (ranks.first(), part.size()) else {
            return;
        };
        if members == 0 || members == size || first == end {
            let share = u32::from(members > 0);
            let whole = |&rank: &u32| {
                if rank == end {
                    members
                } else {
                    share * (rank - start)
                }
            };
            found.extend(ranks.iter().map(|rank| before + whole(rank)));
            return;
        }
        let name = u64::from(start) << 32 | u64::from(end);
        let mut stream = Stream::new(Purpose::TiedBlocks, self.seed, name);
        if size <= SMALL {
            let (mut at, mut left, mut counted) = (start, members, before);
            found.extend(ranks.iter().map(|&rank| {
                while at < rank {
                    let is_member = u32::from(stream.below(end - at) < left);
                    left -= is_member;
                    counted += is_member;
                    at += 1;
                }
                counted
            }));
            return;
        }
        let middle = start + size / 2;
        let (items, marked, drawn) = (size.into(), members.into(), (size / 2).into());
        let above = hypergeometric::draw(&mut stream, items, marked, drawn) as u32;
        let (upper, lower) = ranks.split_at(ranks.partition_point(|&rank| rank <= middle));
        let upper_half = Block {
            end: middle,
            members: above,
            ..part
        };
        let lower_half = Block {
            start: middle,
            before: before + above,
            members: members - above,
            ..part
        };
        self.count(upper_half, upper, found);
        self.count(lower_half, lower, found);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shuffled(examples: &[i64], members: &[i64], seed: u64) -> Shuffled {
        Shuffled::new(Counts::of_blocks(examples, members).unwrap(), seed)
    }

    #[test]
    fn answers_are_about_one_order_whatever_is_asked() {
        let blocks = shuffled(&[1, 300, 5, 1000, 1], &[1, 120, 0, 999, 0], 7);
        let all: Vec<u32> = (0..=1307).collect();
        let counts = blocks.members_above(&all).unwrap();
        assert_eq!((counts[0], counts[1307]), (0, 1120));
        for (&a, &b) in counts.iter().zip(&counts[1..]) {
            assert!(b == a || b == a + 1);
        }
        for rank in [0, 1, 2, 100, 151, 301, 306, 307, 800, 1306, 1307] {
            assert_eq!(
                blocks.members_above(&[rank]).unwrap(),
                [counts[rank as usize]]
            );
        }
        let sparse: Vec<u32> = (0..=1307).step_by(37).collect();
        let expected: Vec<u32> = sparse.iter().map(|&rank| counts[rank as usize]).collect();
        assert_eq!(blocks.members_above(&sparse).unwrap(), expected);
        assert_ne!(
            shuffled(&[1, 300, 5, 1000, 1], &[1, 120, 0, 999, 0], 8)
                .members_above(&all)
                .unwrap(),
            counts
        );
    }

    #[test]
    fn every_order_is_equally_likely() {
        // Of 6 ranks with 3 members there are 20 orders; above 64 ranks halves are drawn first.
        let mut seen = std::collections::HashMap::new();
        for seed in 0..40_000 {
            let order = shuffled(&[6], &[3], seed)
                .members_above(&[1, 2, 3, 4, 5])
                .unwrap();
            *seen.entry(order).or_insert(0_i32) += 1;
        }
        assert_eq!(seen.len(), 20);
        // Each is Bin(40,000, 1/20): standard deviation 44.
        assert!(seen.values().all(|&n| (n - 2_000).abs() < 240), "{seen:?}");
    }

    #[test]
    fn places_in_large_blocks_are_equally_likely() {
        // One member among 200: its rank is uniform.
        let mut seen = [0_i32; 4];
        for seed in 0..20_000 {
            let counts = shuffled(&[200], &[1], seed)
                .members_above(&[50, 100, 150, 200])
                .unwrap();
            seen[counts.iter().filter(|&&count| count == 0).count()] += 1;
        }
        // Each is Bin(20,000, 1/4): standard deviation 61.
        assert!(seen.iter().all(|&n| (n - 5_000).abs() < 340), "{seen:?}");
        // Two members of 200: neighbouring quarters are not favoured over far ones.
        let mut together = 0;
        for seed in 0..20_000 {
            let counts = shuffled(&[200], &[2], seed).members_above(&[50]).unwrap();
            together += i32::from(counts[0] == 2);
        }
        // Bin(20,000, 50·49/(200·199) = 0.0616): standard deviation 34.
        assert!((together - 1_231).abs() < 190, "{together}");
    }
}
