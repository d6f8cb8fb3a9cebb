//! The statistic of a reference parameter.

use crate::error::AuditError;
use crate::rankings::cells::Cells;
use crate::rankings::law::PooledLaw;

/// Deviations by which a shift, and an excess of guesses at an end, differ from the reference; and
/// the largest change of log-odds, where cells are small.
const SHIFT: f64 = 2.5;
const EXCESS: f64 = 5.0;
const STEEPEST: f64 = 4.0;
/// How far a chance stays from 0 and 1.
const CERTAIN: f64 = 1e-9;
/// Roundings of equal statistics.
const CLOSE: f64 = 1e-9;

/// A mixture of likelihood ratios of leaks to a reference, as a function of the members in cells.
///
/// Half of its weight has a larger shift, and half excesses: of members at the top, of others at the
/// bottom, or of both at once, up to each end of the cells. All weights of members fall with the
/// rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    cells: Cells,
    /// Log-odds that the shift adds to a member of each cell.
    shift: Vec<f64>,
    /// What the logarithm of the shift's ratio is less, its weight among it.
    shift_offset: f64,
    /// The excesses at the top, at the bottom and at both, by end.
    excesses: [Vec<Excess>; 3],
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Excess {
    slope: f64,
    offset: f64,
}

/// How far a ranking reaches: a reference, and the logarithm of its statistic there.
#[derive(Debug, Clone, Copy)]
pub struct Reached<'a> {
    /// The reference.
    pub reference: &'a Reference,
    /// The statistic that is far.
    pub threshold: f64,
}

impl Reference {
    /// The statistic whose reference is a law.
    pub fn new(cells: Cells, law: &PooledLaw) -> Self {
        let trials = cells.trials() as f64;
        let edges = cells.edges().windows(2);
        let mut least = 1.0_f64;
        let chances: Vec<f64> = edges
            .map(|edge| {
                let (from, to) = (edge[0] as f64 / trials, edge[1] as f64 / trials);
                let chance = (law.at(to).0 - law.at(from).0) / (to - from);
                least = least.min(chance).clamp(CERTAIN, 1.0 - CERTAIN);
                least
            })
            .collect();
        let sizes = cells.sizes().iter().map(|&size| size as f64);
        let terms: Vec<(f64, f64)> = sizes.zip(chances).collect();
        let shape: Vec<f64> = terms.iter().map(|(_, p)| (p / (1.0 - p)).ln()).collect();
        let (factor, mut shift_offset) = fitted(&terms, &shape, SHIFT);
        shift_offset += 2.0_f64.ln();
        let shift = shape.iter().map(|x| x * factor).collect();
        let ends = cells.ends().len();
        let weight = (6.0 * ends as f64).ln();
        let excesses = [(1.0, 0.0), (0.0, -1.0), (1.0, -1.0)].map(|(top, bottom)| {
            (1..=ends)
                .map(|end| {
                    let mut shape = vec![0.0; terms.len()];
                    shape[..end].fill(top);
                    let last = terms.len() - end;
                    shape[last..].iter_mut().for_each(|x| *x += bottom);
                    let (slope, offset) = fitted(&terms, &shape, EXCESS);
                    let offset = offset + weight;
                    Excess { slope, offset }
                })
                .collect()
        });
        Self {
            cells,
            shift,
            shift_offset,
            excesses,
        }
    }

    /// The cells of the rankings.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The logarithms of the ratios of the shift and of all excesses: by place, then by end.
    ///
    /// # Errors
    /// Members are not those of the cells.
    pub fn ratios(&self, members: &[u64]) -> Result<Vec<f64>, AuditError> {
        self.cells.check(members)?;
        let mut ratios = Vec::new();
        self.ratios_into(&mut ratios, members, &mut Vec::new());
        Ok(ratios)
    }

    /// The same, for members of the cells and with room to reuse.
    fn ratios_into(&self, ratios: &mut Vec<f64>, members: &[u64], above: &mut Vec<u64>) {
        ratios.clear();
        let shifted = members.iter().zip(&self.shift);
        let shift: f64 = shifted.map(|(&held, slope)| held as f64 * slope).sum();
        ratios.push(shift - self.shift_offset);
        above.clear();
        above.push(0);
        let mut total = 0;
        above.extend(members.iter().map(|&held| {
            total += held;
            total
        }));
        let cells = members.len();
        for (excesses, (top, bottom)) in
            self.excesses
                .iter()
                .zip([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
        {
            ratios.extend(excesses.iter().enumerate().map(|(j, excess)| {
                let (over, under) = (above[j + 1], total - above[cells - j - 1]);
                let guessed = top * over as f64 - bottom * under as f64;
                excess.slope * guessed - excess.offset
            }));
        }
    }
}

impl Reached<'_> {
    /// Whether a ranking reaches as far; its ratios are left in `ratios`.
    pub(super) fn by(&self, members: &[u64], ratios: &mut Vec<f64>, above: &mut Vec<u64>) -> bool {
        self.reference.ratios_into(ratios, members, above);
        let largest = ratios.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)) - self.threshold;
        if largest >= 0.0 {
            return true;
        }
        // All together are at most as many times the largest.
        if largest + (ratios.len() as f64).ln() < -CLOSE {
            return false;
        }
        let sum: f64 = ratios.iter().map(|x| (x - self.threshold).exp()).sum();
        sum >= 1.0 - CLOSE
    }
}

/// The factor of a shape, so many standard deviations of its sum or as steep as allowed, and the
/// logarithm of what its likelihood ratio is divided by: ln E e^{factor · shape · members}.
fn fitted(terms: &[(f64, f64)], shape: &[f64], deviations: f64) -> (f64, f64) {
    let variance = terms
        .iter()
        .zip(shape)
        .map(|((size, p), x)| x * x * size * p * (1.0 - p));
    let steepest = shape.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if steepest == 0.0 {
        return (0.0, 0.0);
    }
    let factor = (deviations / variance.sum::<f64>().sqrt()).min(STEEPEST / steepest);
    let offset = terms
        .iter()
        .zip(shape)
        .filter(|(_, x)| **x != 0.0)
        .map(|((size, p), x)| size * (p * (factor * x).exp_m1()).ln_1p());
    (factor, offset.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(trials: u64) -> Reference {
        let law = PooledLaw::new(&[0.0, 0.1, 0.4, 1.0], &[0.95, 0.6, 0.2, 0.0]).unwrap();
        Reference::new(Cells::new(trials).unwrap(), &law)
    }

    /// Members of all cells by an integer's bits, in cells of one trial each.
    fn rankings(trials: u64) -> impl Iterator<Item = Vec<u64>> {
        (0..1_u64 << trials).map(move |bits| (0..trials).map(|i| bits >> i & 1).collect())
    }

    #[test]
    fn each_ratio_has_the_mean_of_its_weight_under_the_reference() {
        let trials = 10;
        let reference = reference(trials);
        let chances: Vec<f64> = {
            // In cells of one trial the shift is steeper log-odds of the reference.
            let law = PooledLaw::new(&[0.0, 0.1, 0.4, 1.0], &[0.95, 0.6, 0.2, 0.0]).unwrap();
            let a = |rank: u64| law.at(rank as f64 / trials as f64).0;
            (0..trials).map(|i| (a(i + 1) - a(i)) * 10.0).collect()
        };
        let mut means = vec![0.0; 1 + 3 * reference.cells().ends().len()];
        for members in rankings(trials) {
            let chance: f64 = members
                .iter()
                .zip(&chances)
                .map(|(&held, p)| if held == 1 { *p } else { 1.0 - p })
                .product();
            let ratios = reference.ratios(&members).unwrap();
            for (mean, ratio) in means.iter_mut().zip(ratios) {
                *mean += chance * ratio.exp();
            }
        }
        assert!((means[0] - 0.5).abs() < 1e-9, "{means:?}");
        let each = 0.5 / (means.len() - 1) as f64;
        assert!(means[1..].iter().all(|mean| (mean - each).abs() < 1e-9));
    }

    #[test]
    fn no_ratio_falls_when_a_member_moves_up() {
        let reference = reference(10);
        for members in rankings(10) {
            let before = reference.ratios(&members).unwrap();
            for place in 1..10 {
                if members[place] == 1 && members[place - 1] == 0 {
                    let mut moved = members.clone();
                    moved.swap(place, place - 1);
                    let after = reference.ratios(&moved).unwrap();
                    let pairs = before.iter().zip(&after);
                    assert!(pairs.into_iter().all(|(a, b)| b >= a));
                }
            }
        }
    }

    #[test]
    fn a_ranking_reaches_its_own_statistic_and_no_larger_one() {
        let reference = reference(40);
        let members: Vec<u64> = reference.cells().sizes().iter().map(|n| n / 2).collect();
        let ratios = reference.ratios(&members).unwrap();
        let own = ratios.iter().map(|x| x.exp()).sum::<f64>().ln();
        let reaches = |threshold: f64| {
            let reference = &reference;
            Reached {
                reference,
                threshold,
            }
            .by(&members, &mut Vec::new(), &mut Vec::new())
        };
        assert!(reaches(own) && reaches(own - 3.0) && reaches(-1e300));
        assert!(!reaches(own + 1e-6) && !reaches(own + 40.0));
    }

    #[test]
    fn a_law_without_a_leak_has_a_statistic() {
        let law = PooledLaw::new(&[0.0, 1.0], &[1.0, 0.0]).unwrap();
        let reference = Reference::new(Cells::new(20).unwrap(), &law);
        let members = vec![0; reference.cells().sizes().len()];
        assert!(
            reference
                .ratios(&members)
                .unwrap()
                .iter()
                .all(|x| x.is_finite())
        );
    }
}
