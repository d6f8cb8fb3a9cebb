//! Which numbers of guesses are looked at.

use crate::error::{AuditError, out_of_range};

/// Up to this many guesses [`Grid::Auto`] looks at every cut.
const EVERY_CUT_UP_TO: u32 = 20_000;
/// Beyond, consecutive cuts of [`Grid::Auto`] differ by this factor.
const AUTO_RATIO: f64 = 1.005;

/// A choice of cuts that depends on the length of the path alone.
#[derive(Debug, Clone, PartialEq)]
pub enum Grid {
    /// Every cut.
    All,
    /// Every cut up to 20,000 guesses, then a geometric grid of ratio 1.005.
    Auto,
    /// A geometric grid from the first guess on, as in [`geometric`](Self::positions).
    Geometric {
        /// Factor between consecutive cuts, above 1.
        ratio: f64,
    },
    /// The listed numbers of guesses.
    Listed(Vec<u32>),
}

impl Grid {
    /// The numbers of guesses looked at on a path of `length`, increasing; none for every one.
    ///
    /// A geometric grid emits `x` rounded half to even, from its start while `x` is below
    /// `length`, `x` growing by the ratio but by at least one, and ends with `length`.
    ///
    /// # Errors
    /// A ratio not above 1, or a listed number outside `1..=length`.
    pub fn positions(&self, length: u32) -> Result<Option<Vec<u32>>, AuditError> {
        match self {
            Self::All => Ok(None),
            Self::Auto if length <= EVERY_CUT_UP_TO => Ok(None),
            Self::Auto => {
                let every = (1..EVERY_CUT_UP_TO).collect();
                Ok(Some(geometric_grid(
                    every,
                    f64::from(EVERY_CUT_UP_TO),
                    AUTO_RATIO,
                    length,
                )))
            }
            Self::Geometric { ratio } if *ratio > 1.0 && ratio.is_finite() => {
                Ok(Some(geometric_grid(Vec::new(), 1.0, *ratio, length)))
            }
            Self::Geometric { ratio } => out_of_range("ratio", *ratio, "a finite number above 1"),
            Self::Listed(positions) => listed_grid(positions, length).map(Some),
        }
    }

    /// How many cuts a union bound over this grid corrects for.
    pub fn size(&self, length: u32) -> Result<usize, AuditError> {
        Ok(self
            .positions(length)?
            .map_or(length as usize, |positions| positions.len()))
    }
}

fn geometric_grid(mut positions: Vec<u32>, start: f64, ratio: f64, length: u32) -> Vec<u32> {
    let end = f64::from(length);
    let mut x = start;
    while x < end {
        positions.push(x.round_ties_even() as u32);
        x = (ratio * x).max(x + 1.0);
    }
    positions.push(length);
    positions.dedup();
    positions
}

fn listed_grid(positions: &[u32], length: u32) -> Result<Vec<u32>, AuditError> {
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    match sorted
        .iter()
        .find(|&&position| position == 0 || position > length)
    {
        Some(&position) => Err(AuditError::GuessesOutOfRange {
            guesses: u64::from(position),
            available: u64::from(length),
        }),
        None if sorted.is_empty() => Err(AuditError::Empty),
        None => Ok(sorted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_grids_have_the_documented_sizes() {
        let grid = Grid::Geometric { ratio: 1.5 };
        for (length, size) in [(200, 14), (1_000, 18), (10_000, 24), (100_000, 29)] {
            assert_eq!(grid.size(length).unwrap(), size, "length {length}");
        }
    }

    #[test]
    fn auto_is_every_cut_on_short_paths_and_starts_geometric_at_twenty_thousand() {
        assert_eq!(Grid::Auto.positions(20_000).unwrap(), None);
        let positions = Grid::Auto.positions(1_000_000).unwrap().unwrap();
        assert_eq!(positions[..20_000], (1..=20_000).collect::<Vec<_>>());
        assert_eq!(positions[20_000], 20_100);
        assert_eq!(positions.last(), Some(&1_000_000));
        assert!(positions.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn listed_numbers_are_checked_sorted_and_unique() {
        assert_eq!(
            Grid::Listed(vec![7, 3, 7]).positions(9).unwrap(),
            Some(vec![3, 7])
        );
        assert!(Grid::Listed(vec![10]).positions(9).is_err());
        assert!(Grid::Listed(vec![0]).positions(9).is_err());
        assert!(Grid::Listed(Vec::new()).positions(9).is_err());
        assert!(Grid::Geometric { ratio: 1.0 }.positions(9).is_err());
    }
}
