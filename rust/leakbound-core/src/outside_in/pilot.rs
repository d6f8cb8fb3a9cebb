//! A pilot sample: labels that are seen, and never tested, tell which ranks are worth a guess.
//!
//! Each end of a ranking is cut into blocks of ranks, the outermost of [`FIRST`], each further one
//! [`RATIO`] times as many. The labels of a quarter of each block, in its middle, are seen; the
//! others may be tested. Which labels are seen depends on ranks only, and which of the others are
//! tested depends on the labels seen besides. So another label of an example that is tested would
//! change neither the examples tested nor their number, which is all that the theorem for pairs
//! asks for: see [`OutsideIn`](super::plan::OutsideIn).
//!
//! Where memberships are no fair coins, a label that is seen has a weight: [`Pilot::weighted`].

use std::cmp::Ordering;

use crate::error::AuditError;
use crate::guesses::path::Path;

/// Ranks of the outermost block, and of each further one beside the one before.
const FIRST: f64 = 4.0;
const RATIO: f64 = std::f64::consts::SQRT_2;
/// The share of a block whose labels are seen.
const SEEN: f64 = 0.25;
/// Log-likelihood that accuracies must gain before they may fall outwards.
const PENALTY: f64 = 2.0;
/// Accuracies are compared where they are this far from 0 and 1; guesses weigh no less than this.
const SURE: f64 = 1e-6;
/// Accuracies this close are equal: outer blocks come first.
const CLOSE: f64 = 1e9;

/// Blocks of the ends of a ranking, the most accurate first.
///
/// ```
/// use leakbound_core::{Path, Pilot};
/// // The first ten guesses are coins, the next ones right.
/// let right: Vec<bool> = (0..100).map(|rank| rank > 10 || rank % 2 == 0).collect();
/// let pilot = Pilot::new(vec![Path::from_successes(&right)]);
/// let (_, first, _) = pilot.tested(10)[0];
/// assert!(first > 10);
/// assert_eq!(pilot.correct(10), 10);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    ends: Vec<Path>,
    blocks: Vec<Block>,
}

/// Ranks of an end, from `start` to `stop`; labels are seen from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block {
    end: usize,
    start: u32,
    first: u32,
    last: u32,
    stop: u32,
    /// Guesses seen and right ones among them, by their weights, and the accuracy fitted.
    made: f64,
    right: f64,
    accuracy: f64,
}

impl Block {
    /// Examples that may be tested.
    fn left(&self) -> u32 {
        self.stop - self.start - (self.last - self.first)
    }
}

impl Pilot {
    /// Look at the labels of a quarter of the ranks of each end.
    pub fn new(ends: Vec<Path>) -> Self {
        let mut blocks = Vec::new();
        for (end, path) in ends.iter().enumerate() {
            let mut own = blocks_of(end, path.guesses(), f64::round);
            for block in &mut own {
                let (made, right) = path.between(block.first, block.last);
                (block.made, block.right) = (f64::from(made), f64::from(right));
            }
            blocks.extend(fitted(own));
        }
        blocks.sort_by(best_first);
        Self { ends, blocks }
    }

    /// Look at the labels of [`Pilot::seen_of`] the ranks of one path, each with a weight in [0, 1].
    ///
    /// Matched examples are worth as much as fair coins: weighed by the chance that matching keeps
    /// them, labels that features alone explain make no block look right.
    ///
    /// ```
    /// use leakbound_core::{Path, Pilot};
    /// let right: Vec<bool> = (0..100).map(|rank| rank % 3 != 0).collect();
    /// let weights: Vec<f64> = right.iter().map(|&hit| if hit { 0.5 } else { 1.0 }).collect();
    /// let path = Path::from_successes(&right);
    /// assert!(Pilot::new(vec![path.clone()]).accuracy(10, 0.0) > 0.6);
    /// assert!(Pilot::weighted(path, &weights)?.accuracy(10, 0.0) < 0.6);
    /// # Ok::<(), leakbound_core::AuditError>(())
    /// ```
    ///
    /// # Errors
    /// There is not one weight for each rank.
    pub fn weighted(path: Path, weights: &[f64]) -> Result<Self, AuditError> {
        if weights.len() != path.guesses() as usize {
            return Err(AuditError::StepMismatch {
                given: weights.len(),
                steps: path.guesses() as usize,
            });
        }
        let mut own = blocks_of(0, path.guesses(), f64::round_ties_even);
        for block in &mut own {
            for rank in block.first..block.last {
                let weight = weights[rank as usize];
                let (_, hit) = path.between(rank, rank + 1);
                block.made += weight;
                block.right += weight * f64::from(hit);
            }
        }
        let mut blocks = fitted(own);
        blocks.sort_by(best_first);
        let ends = vec![path];
        Ok(Self { ends, blocks })
    }

    /// First rank and the rank after the last one of those that [`Pilot::weighted`] looks at.
    ///
    /// A quarter of a block that is halfway between two numbers is the even one, and not the larger
    /// one as of [`Pilot::new`]: each keeps the numbers of results that are stored.
    pub fn seen_of(guesses: u32) -> Vec<(u32, u32)> {
        let blocks = blocks_of(0, guesses, f64::round_ties_even).into_iter();
        blocks.map(|block| (block.first, block.last)).collect()
    }

    /// How many examples the best block leaves to be tested, the best two, and so on.
    pub fn numbers(&self) -> Vec<u32> {
        let mut left = 0;
        let sums = self.blocks.iter().map(|block| {
            left += block.left();
            left
        });
        sums.collect()
    }

    /// The accuracy of so many guesses of the best blocks, less `caution` standard errors of what
    /// was seen of them.
    pub fn accuracy(&self, guesses: u32, caution: f64) -> f64 {
        let wanted = f64::from(guesses);
        let (mut left, mut seen, mut right) = (0.0, 0.0, 0.0);
        for block in &self.blocks {
            let of_block = f64::from(block.left());
            let part = if of_block > 0.0 {
                ((wanted - left) / of_block).clamp(0.0, 1.0)
            } else {
                1.0
            };
            left += of_block;
            seen += part * block.made;
            right += part * block.right;
            if left >= wanted {
                break;
            }
        }
        // One right and one wrong guess more, so that nothing is sure.
        let made = seen + 2.0;
        let share = (right + 1.0) / made;
        share - caution * (share * (1.0 - share) / made).sqrt()
    }

    /// End, first rank and the rank after the last one of what is tested: so many examples.
    pub fn tested(&self, guesses: u32) -> Vec<(usize, u32, u32)> {
        let mut left = guesses;
        let mut pieces = Vec::new();
        for block in &self.blocks {
            for (start, stop) in [(block.start, block.first), (block.last, block.stop)] {
                let made = left.min(stop - start);
                if made > 0 {
                    pieces.push((block.end, start, start + made));
                }
                left -= made;
            }
        }
        pieces
    }

    /// How many of so many guesses of the best blocks are right.
    pub fn correct(&self, guesses: u32) -> u32 {
        let pieces = self.tested(guesses).into_iter();
        let right = pieces.map(|(end, start, stop)| self.ends[end].between(start, stop).1);
        right.sum()
    }
}

fn best_first(one: &Block, other: &Block) -> Ordering {
    let rounded = |block: &Block| (block.accuracy * CLOSE).round();
    let accuracy = rounded(other).total_cmp(&rounded(one));
    accuracy
        .then(one.start.cmp(&other.start))
        .then(one.end.cmp(&other.end))
}

/// Fit accuracies to what is seen of the blocks of an end.
fn fitted(mut blocks: Vec<Block>) -> Vec<Block> {
    let counts: Vec<_> = blocks
        .iter()
        .map(|block| (block.right, block.made))
        .collect();
    for (block, accuracy) in blocks.iter_mut().zip(umbrella(&counts)) {
        block.accuracy = accuracy;
    }
    blocks
}

/// Cut so many ranks of an end into blocks, of which nothing is seen so far.
fn blocks_of(end: usize, guesses: u32, round: fn(f64) -> f64) -> Vec<Block> {
    let edges = edges(guesses);
    let blocks = edges.windows(2).map(|pair| {
        let (start, stop) = (pair[0], pair[1]);
        let size = stop - start;
        let seen = (round(f64::from(size) * SEEN) as u32).max(1);
        let first = start + (size - seen) / 2;
        Block {
            end,
            start,
            first,
            last: first + seen,
            stop,
            made: 0.0,
            right: 0.0,
            accuracy: 0.0,
        }
    });
    blocks.collect()
}

/// Where blocks of so many ranks end, from 0 on.
fn edges(length: u32) -> Vec<u32> {
    let mut edges = vec![0];
    let mut size = FIRST;
    while size < f64::from(length) {
        edges.push(size.round() as u32);
        size = (size * RATIO).max(size + FIRST);
    }
    // A last block of one rank has nothing left to test.
    if edges.len() > 1 && edges.last().is_some_and(|&last| length - last < 2) {
        edges.pop();
    }
    if length > 0 {
        edges.push(length);
    }
    edges
}

/// Fit accuracies to right guesses and guesses seen, the outermost block first.
///
/// They fall inwards; or, if that is likelier by more than a penalty, they also fall outwards
/// beyond one block: what lies outside is noise.
fn umbrella(counts: &[(f64, f64)]) -> Vec<f64> {
    let mut fitted = falling(counts);
    let mut most = log_likelihood(counts, &fitted);
    for peak in 1..counts.len() {
        let (outer, inner) = counts.split_at(peak);
        let mirrored: Vec<_> = outer.iter().rev().copied().collect();
        let mut both = falling(&mirrored);
        both.reverse();
        both.extend(falling(inner));
        let likelihood = log_likelihood(counts, &both) - PENALTY;
        if likelihood > most {
            most = likelihood;
            fitted = both;
        }
    }
    fitted
}

/// The likeliest accuracies that never increase: adjacent violators are pooled.
fn falling(counts: &[(f64, f64)]) -> Vec<f64> {
    let mut pooled: Vec<(f64, f64, usize)> = Vec::with_capacity(counts.len());
    for &(right, seen) in counts {
        let mut one = (right, seen, 1);
        while let Some(&(hits, guesses, blocks)) = pooled.last() {
            if hits * one.1 > one.0 * guesses {
                break;
            }
            one = (hits + one.0, guesses + one.1, blocks + one.2);
            pooled.pop();
        }
        pooled.push(one);
    }
    let means = pooled
        .into_iter()
        .flat_map(|(hits, guesses, blocks)| std::iter::repeat_n(hits / guesses.max(SURE), blocks));
    means.collect()
}

fn log_likelihood(counts: &[(f64, f64)], accuracies: &[f64]) -> f64 {
    let each = counts
        .iter()
        .zip(accuracies)
        .map(|(&(right, seen), accuracy)| {
            let p = accuracy.clamp(SURE, 1.0 - SURE);
            right * p.ln() + (seen - right) * (-p).ln_1p()
        });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_tile_every_length_and_a_quarter_is_seen() {
        for length in (0..3000).chain([1_000_000, 500_000_000]) {
            let edges = edges(length);
            assert_eq!(edges.first(), Some(&0));
            assert_eq!(edges.last(), Some(&length));
            assert!(edges.windows(2).all(|pair| pair[0] < pair[1]));
        }
        for block in blocks_of(0, 3000, f64::round) {
            let size = f64::from(block.stop - block.start);
            let seen = f64::from(block.last - block.first);
            assert_eq!(seen, (size / 4.0).round().max(1.0));
            assert!(block.start <= block.first && block.last <= block.stop);
        }
    }

    #[test]
    fn each_rank_has_a_weight() {
        let path = Path::from_successes(&[true; 30]);
        assert!(Pilot::weighted(path.clone(), &[1.0; 30]).is_ok());
        assert!(Pilot::weighted(path, &[1.0; 29]).is_err());
    }

    fn of_forty(right: u32) -> (f64, f64) {
        (f64::from(right), 40.0)
    }

    #[test]
    fn accuracies_fall_outwards_only_where_that_is_much_likelier() {
        let noise = umbrella(&[20, 21, 38, 36, 25, 20].map(of_forty));
        assert!(noise[2] > 0.9 && noise[0] < 0.6);
        let hardly = umbrella(&[36, 38, 37, 30, 25, 20].map(of_forty));
        assert!(hardly.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    proptest! {
        /// Pooled accuracies are the projection: their cumulative sums are the least concave
        /// majorant of the counts.
        #[test]
        fn falling_accuracies_are_slopes_of_the_least_concave_majorant(
            counts in prop::collection::vec((0_u32..20, 1_u32..20), 1..30)
        ) {
            let counts: Vec<_> = counts
                .into_iter()
                .map(|(a, b)| (f64::from(a.min(b)), f64::from(b)))
                .collect();
            let fitted = falling(&counts);
            prop_assert!(fitted.windows(2).all(|pair| pair[0] >= pair[1]));
            let (mut sum, mut majorant) = (0.0, 0.0);
            for (i, &(right, seen)) in counts.iter().enumerate() {
                sum += right;
                majorant += fitted[i] * seen;
                prop_assert!(majorant >= sum - 1e-9);
                // A slope changes only where the majorant touches the counts.
                if fitted.get(i + 1).is_none_or(|next| *next < fitted[i] - 1e-12) {
                    prop_assert!((majorant - sum).abs() < 1e-9);
                }
            }
        }

        /// Labels of weight one are those of fair coins, where no block's quarter is rounded.
        #[test]
        fn weights_of_one_change_nothing(right in prop::collection::vec(any::<bool>(), 24)) {
            let path = Path::from_successes(&right);
            let weighted = Pilot::weighted(path.clone(), &[1.0; 24])?;
            prop_assert_eq!(weighted, Pilot::new(vec![path]));
        }

        /// What is tested was not seen, and no rank is tested twice.
        #[test]
        fn ranks_that_are_tested_were_not_seen(
            right in prop::collection::vec(any::<bool>(), 0..400), part in 0.0..1.0_f64
        ) {
            let path = Path::from_successes(&right);
            let (top, bottom) = (path.prefix(path.guesses().div_ceil(2).max(1)), path.clone());
            let pilot = Pilot::new(vec![top, bottom]);
            let most = pilot.numbers().last().copied().unwrap_or(0);
            let guesses = (part * f64::from(most)) as u32;
            let tested = pilot.tested(guesses);
            let made: u32 = tested.iter().map(|(_, start, stop)| stop - start).sum();
            prop_assert_eq!(made, guesses);
            let mut ranks: Vec<_> = tested
                .iter()
                .flat_map(|&(end, start, stop)| (start..stop).map(move |rank| (end, rank)))
                .collect();
            for block in &pilot.blocks {
                for rank in block.first..block.last {
                    prop_assert!(!ranks.contains(&(block.end, rank)));
                }
            }
            ranks.sort_unstable();
            ranks.dedup();
            prop_assert_eq!(ranks.len(), guesses as usize);
        }
    }
}
