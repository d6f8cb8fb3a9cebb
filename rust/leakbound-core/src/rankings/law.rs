//! The two laws of a trade-off function, taken together.

use leakbound_math::error::{check_length, check_probabilities};
use leakbound_math::hull::lower_hull;

use crate::error::AuditError;

/// Parts of [0, 1] for which the first share in each is known, so that few are searched.
const PARTS: usize = 1024;

/// A: how many members the share u with the largest likelihood ratios holds, piecewise linear.
///
/// P without the example and Q with it have f as their trade-off function. Half of each together,
/// those that a test of level α and error f(α) calls members are a share u = (α + 1 − f(α))/2, and
/// hold members of mass (1 − f(α))/2.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledLaw {
    /// Shares between which A is linear, increasing from 0.
    share: Vec<f64>,
    /// A there.
    mass: Vec<f64>,
    /// A′ from each to the next: the chance that a trial there is a member.
    slope: Vec<f64>,
    /// The first share at or above each of so many equal parts of [0, 1], and how many there are.
    starts: Vec<usize>,
}

impl PooledLaw {
    /// The law of the curve through points (`level`, `missed`), the largest convex one below them.
    ///
    /// # Errors
    /// Lengths differ, points are no probabilities, or none of them has an error below 1 − level.
    pub fn new(level: &[f64], missed: &[f64]) -> Result<Self, AuditError> {
        check_length("missed", missed.len(), "level", level.len())?;
        check_probabilities("level", level)?;
        check_probabilities("missed", missed)?;
        let points = level.iter().copied().zip(missed.iter().copied()).collect();
        let (mut share, mut mass, mut most) = (vec![0.0], vec![0.0], 0.0);
        for (level, missed) in lower_hull(points) {
            let found = f64::midpoint(level, 1.0 - missed);
            if found > most {
                share.push(found);
                mass.push((1.0 - missed) / 2.0);
                most = found;
            }
        }
        if share.len() < 2 {
            return Err(AuditError::TableEnds);
        }
        let slope = (1..share.len())
            .map(|i| (mass[i] - mass[i - 1]) / (share[i] - share[i - 1]))
            .collect();
        let edges = (0..=PARTS).map(|part| part as f64 / PARTS as f64);
        let mut starts: Vec<usize> = edges
            .map(|edge| share.partition_point(|&share| share < edge))
            .collect();
        starts.push(share.len());
        Ok(Self {
            share,
            mass,
            slope,
            starts,
        })
    }

    /// Shares between which A is linear, increasing from 0.
    pub fn share(&self) -> &[f64] {
        &self.share
    }

    /// A at these shares.
    pub fn mass(&self) -> &[f64] {
        &self.mass
    }

    /// A(u) and A′(u), the latter from the left.
    pub(super) fn at(&self, u: f64) -> (f64, f64) {
        let part = (u * PARTS as f64).clamp(0.0, PARTS as f64) as usize;
        let (first, end) = (self.starts[part], self.starts[part + 1]);
        let next = first + self.share[first..end].partition_point(|&share| share < u);
        let here = next.saturating_sub(1).min(self.slope.len() - 1);
        let slope = self.slope[here];
        (self.mass[here] + slope * (u - self.share[here]), slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_told_share_of_members_is_on_top() {
        // f(α) = 0.6 (1 − α): a test finds 40 % of the members at no cost.
        let law = PooledLaw::new(&[0.0, 1.0], &[0.6, 0.0]).unwrap();
        assert_eq!(law.share(), [0.0, 0.2, 1.0]);
        assert_eq!(law.mass(), [0.0, 0.2, 0.5]);
        assert_eq!(law.at(0.1), (0.1, 1.0));
        let (mass, slope) = law.at(0.6);
        assert!((mass - 0.35).abs() < 1e-15 && (slope - 0.375).abs() < 1e-15);
        assert!((law.at(1.0).0 - 0.5).abs() < 1e-15);
    }

    #[test]
    fn every_share_is_found_among_many() {
        // f(α) = (1 − √α)², by its points.
        let level: Vec<f64> = (0..=300).map(|i| f64::from(i) / 300.0).collect();
        let missed: Vec<f64> = level.iter().map(|x| (1.0 - x.sqrt()).powi(2)).collect();
        let law = PooledLaw::new(&level, &missed).unwrap();
        let knots = law.share().iter().zip(law.mass());
        for (&share, &mass) in knots.clone() {
            assert!((law.at(share).0 - mass).abs() < 1e-15);
        }
        for (pair, mass) in law.share().windows(2).zip(law.mass().windows(2)) {
            let (held, slope) = law.at(f64::midpoint(pair[0], pair[1]));
            assert!((held - f64::midpoint(mass[0], mass[1])).abs() < 1e-15);
            assert!((slope * (pair[1] - pair[0]) - (mass[1] - mass[0])).abs() < 1e-15);
        }
        assert_eq!(law.at(0.0).0, 0.0);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        assert!(PooledLaw::new(&[0.0], &[1.0]).is_err());
        assert!(PooledLaw::new(&[0.0, 1.0], &[1.0]).is_err());
        assert!(PooledLaw::new(&[0.0, 1.0], &[1.0, f64::NAN]).is_err());
        assert!(PooledLaw::new(&[], &[]).is_err());
    }
}
