//! A ranking of trials, cut at fixed ranks.

use leakbound_math::error::check_length;

use crate::error::{AuditError, out_of_range};

/// A ranking of trials between fixed ranks: 1, 2, 3, 4, 6, 8, 11, … from either end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cells {
    /// The numbers of trials at an end, up to a half of all.
    ends: Vec<u64>,
    /// The ranks after which cells end, and 0: the ends come first.
    edges: Vec<u64>,
    /// How many trials each cell has.
    sizes: Vec<u64>,
}

impl Cells {
    /// The cells of so many trials.
    ///
    /// # Errors
    /// Fewer than two trials.
    pub fn new(trials: u64) -> Result<Self, AuditError> {
        if trials < 2 {
            return out_of_range("trials", trials as f64, "at least 2");
        }
        let half = trials / 2;
        let mut ends: Vec<u64> = (0..2 * u64::BITS)
            .map(|step| 2.0_f64.powf(0.5 * f64::from(step)).round() as u64)
            .take_while(|&end| end < half)
            .collect();
        ends.dedup();
        ends.push(half);
        let below = ends.iter().rev().map(|end| trials - end);
        let mut edges: Vec<u64> = std::iter::once(0).chain(ends.iter().copied()).collect();
        edges.extend(below.chain([trials]));
        edges.dedup();
        let sizes = edges.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Ok(Self { ends, edges, sizes })
    }

    /// The numbers of trials at an end, increasing. The top `ends()[j]` are the first j + 1 cells,
    /// and the bottom ones are the last j + 1.
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// The ranks after which cells end, and 0.
    pub fn edges(&self) -> &[u64] {
        &self.edges
    }

    /// How many trials each cell has.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// How many trials there are.
    pub fn trials(&self) -> u64 {
        self.edges[self.sizes.len()]
    }

    /// Whether all members are above all others, as far as cells tell.
    pub fn perfect(&self, members: &[u64]) -> bool {
        let total: u64 = members.iter().sum();
        let cells = self.edges.iter().zip(&self.sizes).zip(members);
        cells
            .into_iter()
            .all(|((&edge, &size), &held)| held == total.saturating_sub(edge).min(size))
    }

    /// Check that there is a number of members for each cell, no larger than the cell.
    pub(super) fn check(&self, members: &[u64]) -> Result<(), AuditError> {
        check_length("members", members.len(), "cells", self.sizes.len())?;
        match members
            .iter()
            .zip(&self.sizes)
            .find(|(held, size)| held > size)
        {
            Some((&held, _)) => out_of_range("members", held as f64, "at most the size of a cell"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_many_from_either_end_and_hold_all_trials() {
        for trials in (2..300).chain([4_999, 10_000, 1 << 32]) {
            let cells = Cells::new(trials).unwrap();
            assert_eq!(cells.sizes.iter().sum::<u64>(), trials);
            assert!(cells.sizes.iter().eq(cells.sizes.iter().rev()));
            assert!(cells.sizes.iter().all(|&size| size > 0));
            assert_eq!(cells.edges[1..=cells.ends.len()], cells.ends);
            assert_eq!(cells.ends.last(), Some(&(trials / 2)));
        }
        let cells = Cells::new(30).unwrap();
        assert_eq!(cells.ends(), [1, 2, 3, 4, 6, 8, 11, 15]);
        assert!(Cells::new(1).is_err());
    }

    #[test]
    fn a_perfect_ranking_has_its_members_on_top() {
        let cells = Cells::new(10).unwrap(); // sizes 1 1 1 1 1 1 1 1 1 1
        assert!(cells.perfect(&[1, 1, 1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(cells.perfect(&[0; 10]));
        assert!(!cells.perfect(&[1, 0, 1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(cells.check(&[2; 10]).is_err());
        assert!(cells.check(&[0; 9]).is_err());
    }
}
