//! All cuts at once where every guess has odds of its own.

use leakbound_math::Probability;
use leakbound_math::logistic::expit;
use rayon::prelude::*;

use crate::crossing::boundary::Boundary;
use crate::crossing::success_probabilities::LogitFamily;
use crate::error::AuditError;
use crate::guesses::grid::Grid;
use crate::guesses::path::{Cut, Path};
use crate::interrupt::Interrupt;
use crate::scan::statistic::{KlDivergence, divergence, is_above, walk_thresholds};
use crate::sum::CompensatedSum;

/// Largest offset either way.
const MAX_OFFSET: f64 = 300.0;
/// Values of ε looked at: every probability is then a normal number.
const MAX_EPSILON: f64 = 400.0;
/// Newton's steps and bisections: the bracket alone needs sixty.
const MAX_STEPS: usize = 128;
/// Where the search for the statistic stops, in units of ε.
const TOLERANCE: f64 = 1e-15;

/// A lower confidence bound on ε, and the cut that gave it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffsetBound {
    /// Largest ε that was rejected; −∞ if none was.
    pub epsilon: f64,
    /// The cut at which the statistic is largest; none if no cut stands out.
    pub cut: Option<Cut>,
    /// The statistic at that cut, before calibration; −∞ if no cut stands out.
    pub statistic: f64,
}

impl OffsetBound {
    /// Nothing can be rejected.
    pub const NONE: Self = Self {
        epsilon: f64::NEG_INFINITY,
        cut: None,
        statistic: f64::NEG_INFINITY,
    };
}

/// Lower confidence bound on ε at error probability `beta`, if guess i is correct with probability
/// at most σ(ε + aᵢ) given the scores and the guesses before it.
///
/// The statistic is the largest ε such that at some cut w/r is above the mean p̄ of the first r
/// probabilities and r·KL(w/r ‖ p̄) ≥ κ. It is calibrated as in [`scan`](crate::scan()), by a walk
/// whose steps have these probabilities; a path with w correct guesses is reweighted from ε₀ to ε
/// by exp((ε − ε₀)w − Σᵢ[ln(1 + e^{ε + aᵢ}) − ln(1 + e^{ε₀ + aᵢ})]).
///
/// Every allowed cut of at least `min_guesses` is looked at. Domain: |aᵢ| ≤ 300; cuts that refute
/// no ε above −400 count as refuting none. Direction: rounded down, to the side that was verified;
/// accuracy about 1e-13. Cost: as a scan over all cuts, and a few passes over the offsets.
///
/// ```
/// use leakbound_core::{Interrupt, KlDivergence, Path, scan_offsets};
/// let path = Path::from_successes(&[true; 100]);
/// let statistic = KlDivergence::for_level(0.05)?;
/// let bound = scan_offsets(&path, &[1.5; 100], &statistic, 0.05, 1, &Interrupt::default())?;
/// let p = 0.05_f64.powf(0.01);
/// assert!((bound.epsilon - ((p / (1.0 - p)).ln() - 1.5)).abs() < 1e-10);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
///
/// # Errors
/// As many offsets as guesses are needed, each a number within ±300; a level outside (0, 1); or an
/// interrupt.
pub fn scan_offsets(
    path: &Path,
    offsets: &[f64],
    statistic: &KlDivergence,
    beta: f64,
    min_guesses: u32,
    interrupt: &Interrupt,
) -> Result<OffsetBound, AuditError> {
    check(offsets, path.guesses())?;
    let cuts = path.cuts(&Grid::All, min_guesses)?;
    let search = Search {
        offsets,
        cuts: &cuts,
        target: (2.0 * statistic.kappa()).sqrt(),
    };
    let Some((level, cut)) = search.best(interrupt)? else {
        return Ok(OffsetBound::NONE);
    };
    let means = means(offsets, &cuts, level)?;
    let guesses: Vec<u32> = cuts.iter().map(|cut| cut.guesses).collect();
    let mut thresholds = walk_thresholds(
        &guesses,
        |index| f64::from(guesses[index]) * means[index].p(),
        |index, cut| Ok(statistic.reaches(cut, means[index])),
    )?;
    // Rounding must not leave the observed cut outside of its own rejection region.
    if let Ok(index) = guesses.binary_search(&cut.guesses) {
        thresholds[index] = thresholds[index].min(cut.correct);
    }
    let family = LogitFamily::Offset(offsets);
    let epsilon =
        Boundary::new(&guesses, &thresholds)?.calibrate_family(family, beta, level, interrupt)?;
    Ok(epsilon.map_or(OffsetBound::NONE, |epsilon| OffsetBound {
        epsilon,
        cut: Some(cut),
        statistic: level,
    }))
}

/// [`scan_offsets`] for every row of offsets, such as the replicates of a bootstrap: the values of ε
/// alone, −∞ where nothing is rejected.
///
/// Rows are computed in parallel; the result does not depend on the number of threads.
///
/// # Errors
/// As for [`scan_offsets`]; whole rows are needed.
pub fn scan_offset_rows(
    path: &Path,
    rows: &[f64],
    statistic: &KlDivergence,
    beta: f64,
    min_guesses: u32,
    interrupt: &Interrupt,
) -> Result<Vec<f64>, AuditError> {
    let steps = path.guesses() as usize;
    if steps == 0 || !rows.len().is_multiple_of(steps) {
        let given = rows.len();
        return Err(AuditError::StepMismatch { given, steps });
    }
    rows.par_chunks_exact(steps)
        .map(|offsets| {
            scan_offsets(path, offsets, statistic, beta, min_guesses, interrupt)
                .map(|bound| bound.epsilon)
        })
        .collect()
}

fn check(offsets: &[f64], guesses: u32) -> Result<(), AuditError> {
    if offsets.len() != guesses as usize {
        let (given, steps) = (offsets.len(), guesses as usize);
        return Err(AuditError::StepMismatch { given, steps });
    }
    let outside = |offset: &&f64| offset.is_nan() || offset.abs() > MAX_OFFSET;
    match offsets.iter().find(outside) {
        None => Ok(()),
        Some(&value) => Err(AuditError::ParameterOutOfRange {
            name: "offsets",
            value,
            range: "numbers between -300 and 300",
        }),
    }
}

/// The mean probability of the guesses up to each cut.
fn means(offsets: &[f64], cuts: &[Cut], epsilon: f64) -> Result<Vec<Probability>, AuditError> {
    let mut sums = PrefixSums::new(offsets, epsilon);
    cuts.iter()
        .map(|cut| sums.up_to(cut.guesses).map_err(AuditError::from))
        .collect()
}

/// Sums over the first guesses of a path, at one ε.
struct PrefixSums<'a> {
    offsets: &'a [f64],
    epsilon: f64,
    done: usize,
    /// Σ pᵢ and Σ (1 − pᵢ).
    right: CompensatedSum,
    wrong: CompensatedSum,
    /// Σ pᵢ(1 − pᵢ), the derivative of the first in ε.
    variance: f64,
}

impl<'a> PrefixSums<'a> {
    fn new(offsets: &'a [f64], epsilon: f64) -> Self {
        Self {
            offsets,
            epsilon,
            done: 0,
            right: CompensatedSum::default(),
            wrong: CompensatedSum::default(),
            variance: 0.0,
        }
    }

    /// The mean probability of the first `guesses` guesses, no fewer than asked for before.
    fn up_to(&mut self, guesses: u32) -> Result<Probability, leakbound_math::MathError> {
        for &offset in &self.offsets[self.done..guesses as usize] {
            let (p, q) = (expit(self.epsilon + offset), expit(-self.epsilon - offset));
            self.right.add(p);
            self.wrong.add(q);
            self.variance += p * q;
        }
        self.done = guesses as usize;
        let (right, wrong) = (self.right.value(), self.wrong.value());
        if right <= wrong {
            Probability::new(right / f64::from(guesses))
        } else {
            Probability::from_complement(wrong / f64::from(guesses))
        }
    }
}

/// The largest ε that some cut refutes at deviation κ.
struct Search<'a> {
    offsets: &'a [f64],
    cuts: &'a [Cut],
    /// √(2κ)
    target: f64,
}

/// The cut that deviates most at one ε.
#[derive(Clone, Copy)]
struct Deviation {
    /// √(2 r·KL); it falls with ε, nearly linearly.
    root: f64,
    slope: f64,
    cut: Cut,
}

impl Search<'_> {
    /// The statistic and its cut, by Newton's method on the largest deviation, held in a bracket.
    fn best(&self, interrupt: &Interrupt) -> Result<Option<(f64, Cut)>, AuditError> {
        let Some(mut found) = self.deviation_at(-MAX_EPSILON)? else {
            return Ok(None);
        };
        let (mut low, mut high) = (-MAX_EPSILON, MAX_EPSILON);
        let (mut epsilon, mut back) = (0.0, 1.0);
        for _ in 0..MAX_STEPS {
            interrupt.check()?;
            let largest = self.largest(epsilon)?;
            match largest {
                Some(deviation) if deviation.root >= self.target => {
                    (low, found) = (epsilon, deviation);
                }
                _ => high = epsilon,
            }
            let newton = largest.map_or(f64::NAN, |deviation| {
                epsilon + (self.target - deviation.root) / deviation.slope
            });
            let mut next = if newton > low && newton < high {
                newton
            } else {
                0.5 * (low + high)
            };
            let hair = TOLERANCE * epsilon.abs().max(1.0);
            if (next - epsilon).abs() <= hair {
                if epsilon == low || high - low <= hair {
                    break;
                }
                // Newton's steps have come from above and stay there: step over the solution.
                next = (high - back * hair).max(0.5 * (low + high));
                back *= 2.0;
            }
            epsilon = next;
        }
        Ok(Some((low, found.cut)))
    }

    fn deviation_at(&self, epsilon: f64) -> Result<Option<Deviation>, AuditError> {
        let largest = self.largest(epsilon)?;
        Ok(largest.filter(|deviation| deviation.root >= self.target))
    }

    /// The largest deviation of any cut with more correct guesses than expected.
    fn largest(&self, epsilon: f64) -> Result<Option<Deviation>, AuditError> {
        let mut sums = PrefixSums::new(self.offsets, epsilon);
        let mut largest: Option<Deviation> = None;
        for &cut in self.cuts {
            let mean = sums.up_to(cut.guesses)?;
            if !is_above(cut, mean) {
                continue;
            }
            let root = (2.0 * divergence(cut, mean)).sqrt();
            if largest.is_none_or(|deviation| root > deviation.root) {
                let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
                // d(r·KL)/dp̄ = (r p̄ − w)/(p̄ q̄), and dp̄/dε is the mean of pᵢqᵢ.
                let excess = w * mean.q() - (r - w) * mean.p();
                let slope = -excess * sums.variance / (r * mean.p() * mean.q() * root);
                largest = Some(Deviation { root, slope, cut });
            }
        }
        Ok(largest)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_found_from_either_side() {
        let successes: Vec<bool> = (0..300).map(|i| i < 12 || (i * 37) % 10 < 2).collect();
        let path = Path::from_successes(&successes);
        let statistic = KlDivergence::for_level(0.05).unwrap();
        let bound = |offset: f64| {
            let offsets = vec![offset; 300];
            scan_offsets(&path, &offsets, &statistic, 0.05, 1, &Interrupt::default()).unwrap()
        };
        let plain = bound(0.0);
        for offset in [-20.0, -2.2, -0.3, 0.7, 3.0, 40.0] {
            let shifted = bound(offset);
            assert_eq!(shifted.cut, plain.cut, "{offset}");
            assert!(
                (shifted.statistic + offset - plain.statistic).abs() < 1e-11,
                "{offset}"
            );
            assert!(
                (shifted.epsilon + offset - plain.epsilon).abs() < 1e-10,
                "{offset}"
            );
        }
    }
}
