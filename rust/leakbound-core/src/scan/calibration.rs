//! All cuts at once: a statistic's maximum, calibrated exactly.

use crate::crossing::boundary::Boundary;
use crate::error::{AuditError, out_of_range};
use crate::guesses::grid::Grid;
use crate::guesses::path::{Cut, Path};
use crate::interrupt::Interrupt;
use crate::scan::best_cut::{CutBound, best_cut};
use crate::scan::statistic::KlDivergence;
use leakbound_math::memory::{listed, room};
use leakbound_math::{Probability, clopper_pearson};

/// Lower confidence bounds at error probability `beta` from the best cut of a path.
///
/// Let ℓ be the largest limit of `statistic` over the cuts. Were every guess correct with
/// probability p independently, the chance that some cut reaches the limit ℓ is the chance that a
/// Bernoulli walk crosses the boundary of those counts; the bound is the largest p at which that
/// chance is at most `beta`. By coupling, the same holds for any guesses that are correct with
/// probability at most p given the scores and earlier guesses.
///
/// The price of looking at all cuts is thereby paid exactly, instead of by dividing `beta` by
/// their number. Cost: one pass over the cuts, and a few walks over a window of about 10·√m
/// states.
///
/// Sources: test inversion after Buehler (1957); the coupling is the one behind Steinke, Nasr and
/// Jagielski (2023), Theorem 5.2, and PANORAMIA (Kazmi et al. 2024), Proposition 1.
///
/// # Rare failures
///
/// Under (ε, δ)-DP, p = σ(ε), the guesses are dominated by independent ones together with a number
/// of failures F of mean at most g·m·δ/(2(1 + e^ε)), g = 1 for guesses of "member" only and 2 where
/// scores decide between the roles. `failures` is g·m·δ/2, m the number of all examples, and 0
/// under pure DP. Where it is positive, the bound is the largest p ≥ ½ at which
/// [`crossing_with_failures`](Boundary::crossing_with_failures) is at most `beta`; 0 if there is
/// none. Set `min_guesses` well above 1: where few guesses are made, one failure is worth a lot.
///
/// The budget falls with p, so the bound on the probability of a crossing need not rise with p. Any
/// p at which it is at most `beta` is valid: the claims are nested, as in
/// [`ApproxLimit`](crate::ApproxLimit), with the statistic's maximum in place of the count.
///
/// ```
/// use leakbound_core::{Interrupt, Path, Scan};
/// let path = Path::from_successes(&[true; 200]);
/// let scan = Scan { min_guesses: 50, ..Scan::at_level(0.05)? };
/// let bound = |failures| Scan { failures, ..scan.clone() }.bound(&path, &Interrupt::default());
/// let (pure, failing) = (bound(0.0)?.probability.p(), bound(0.5 * 200.0 * 1e-5)?.probability.p());
/// assert!((pure - 0.05_f64.powf(1.0 / 200.0)).abs() < 1e-12);
/// assert!(failing < pure && failing > pure - 1e-3);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// What is largest at the cut that is reported.
    pub statistic: KlDivergence,
    /// The probability of error.
    pub beta: f64,
    /// The cuts that are looked at.
    pub grid: Grid,
    /// The fewest guesses of a cut.
    pub min_guesses: u32,
    /// E F/(1 − p).
    pub failures: f64,
}

impl Scan {
    /// Every cut and no failures, with the default statistic.
    pub fn at_level(beta: f64) -> Result<Self, AuditError> {
        Ok(Self {
            statistic: KlDivergence::for_level(beta)?,
            beta,
            grid: Grid::All,
            min_guesses: 1,
            failures: 0.0,
        })
    }

    /// The bound of a path.
    ///
    /// # Errors
    /// A parameter outside its range, a grid that does not fit the path, `failures` negative or not
    /// a number, or an interrupt.
    pub fn bound(&self, path: &Path, interrupt: &Interrupt) -> Result<CutBound, AuditError> {
        self.bound_above(path, f64::NEG_INFINITY, interrupt)
    }

    /// As [`bound`](Self::bound), but nothing where its log-odds are sure to be below `least`.
    ///
    /// A walk that reaches the count of the observed cut has crossed the boundary, so the bound is at
    /// most Clopper and Pearson's limit at that cut alone, and failures lower it. Where this limit
    /// is below `least` there is no need to calibrate.
    ///
    /// # Errors
    /// As for [`bound`](Self::bound).
    pub fn bound_above(
        &self,
        path: &Path,
        least: f64,
        interrupt: &Interrupt,
    ) -> Result<CutBound, AuditError> {
        let (cuts, best) = self.observed(path, interrupt)?;
        let Some(cut) = best.cut else {
            return Ok(CutBound::NONE);
        };
        let (correct, guesses) = (u64::from(cut.correct), u64::from(cut.guesses));
        let alone = clopper_pearson::lower_limit(correct, guesses, self.beta)?;
        if alone.logit() < least {
            return Ok(CutBound::NONE);
        }
        match self.calibrate(&cuts, best.statistic, cut, interrupt)? {
            None if self.failures == 0.0 => Ok(CutBound::NONE),
            probability => Ok(CutBound {
                probability: probability.unwrap_or(Probability::ZERO),
                ..best
            }),
        }
    }

    /// The cuts of a path, and the one at which the statistic is largest.
    pub(super) fn observed(
        &self,
        path: &Path,
        interrupt: &Interrupt,
    ) -> Result<(Vec<Cut>, CutBound), AuditError> {
        if !(self.failures >= 0.0 && self.failures.is_finite()) {
            return out_of_range("failures", self.failures, "a number of at least 0");
        }
        let cuts = path.cuts(&self.grid, self.min_guesses)?;
        let best = best_cut(&cuts, &self.statistic, interrupt)?;
        Ok((cuts, best))
    }

    /// The bound if the statistic is largest at `cut`, with the value `level`.
    pub(super) fn calibrate(
        &self,
        cuts: &[Cut],
        level: Probability,
        cut: Cut,
        interrupt: &Interrupt,
    ) -> Result<Option<Probability>, AuditError> {
        let boundary = boundary(self.statistic, cuts, |_| level, cut)?;
        match boundary.calibrate(self.beta, level, interrupt)? {
            Some(highest) if self.failures > 0.0 => {
                boundary.calibrate_with_failures(self.beta, highest, self.failures, interrupt)
            }
            solution => Ok(solution),
        }
    }
}

/// The counts that refute a level, which `level` names for each of the cuts. The observed cut is on
/// the boundary: rounding must not leave it outside of its own rejection region.
///
/// At each cut the fewest correct guesses that do, or one more than all guesses where none does.
/// Found by walking: each search starts where the last one ended, moved along with the number of
/// correct guesses expected at the level.
pub(super) fn boundary(
    statistic: KlDivergence,
    cuts: &[Cut],
    level: impl Fn(usize) -> Probability,
    observed: Cut,
) -> Result<Boundary, AuditError> {
    let (mut last_expected, mut last) = (0.0, 0);
    let mut thresholds = room(cuts.len())?;
    for (index, &Cut { guesses, .. }) in cuts.iter().enumerate() {
        let level = level(index);
        let expected = f64::from(guesses) * level.p();
        let refutes = |correct| statistic.reaches(Cut { guesses, correct }, level);
        let mut threshold = last + (expected - last_expected) as u32;
        last_expected = expected;
        while threshold <= guesses && !refutes(threshold) {
            threshold += 1;
        }
        if threshold > guesses {
            // Not even correct guesses alone would do; the next search starts from the mean.
            thresholds.push(guesses + 1);
            last = expected as u32;
            continue;
        }
        while threshold > 0 && refutes(threshold - 1) {
            threshold -= 1;
        }
        thresholds.push(threshold);
        last = threshold;
    }
    if let Ok(index) = cuts.binary_search_by_key(&observed.guesses, |cut| cut.guesses) {
        thresholds[index] = thresholds[index].min(observed.correct);
    }
    let guesses = listed(cuts.len(), cuts.iter().map(|cut| cut.guesses))?;
    Boundary::new(&guesses, &thresholds)
}
