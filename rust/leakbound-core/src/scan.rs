//! All cuts at once: a statistic's maximum, calibrated exactly.

use crate::{AuditError, Boundary, Cut, CutBound, Grid, Interrupt, Path, ScanStatistic, best_cut};
use leakbound_math::Probability;

/// Lower confidence bound at error probability `beta` from the best cut of a path.
///
/// Let ℓ be the largest limit of `statistic` over the cuts. Were every guess right with
/// probability p independently, the chance that some cut reaches the limit ℓ is the chance that a
/// Bernoulli walk crosses the boundary of those counts; the bound is the largest p at which that
/// chance is at most `beta`. By coupling, the same holds for any guesses that are right with
/// probability at most p given the scores and earlier guesses.
///
/// The price of looking at all cuts is thereby paid exactly, instead of by dividing `beta` by
/// their number. Cost: one pass over the cuts, and a few walks over a window of about 10·√m
/// states.
///
/// Sources: test inversion after Buehler (1957); the coupling is the one behind Steinke, Nasr and
/// Jagielski (2023), Theorem 5.2, and PANORAMIA (Kazmi et al. 2024), Proposition 1.
///
/// ```
/// use leakbound_core::{Grid, Interrupt, KlDivergence, Path, scan};
/// let path = Path::from_successes(&[true; 100]);
/// let bound = scan(&path, &KlDivergence::for_level(0.05)?, 0.05, &Grid::All, 1,
///                  &Interrupt::default())?;
/// assert!((bound.probability.p() - 0.05_f64.powf(0.01)).abs() < 1e-12);
/// # Ok::<(), leakbound_core::AuditError>(())
/// ```
///
/// # Errors
/// A parameter outside its range, a grid that does not fit the path, or an interrupt.
pub fn scan(
    path: &Path,
    statistic: &impl ScanStatistic,
    beta: f64,
    grid: &Grid,
    min_guesses: u32,
    interrupt: &Interrupt,
) -> Result<CutBound, AuditError> {
    let cuts = path.cuts(grid, min_guesses)?;
    let best = best_cut(&cuts, statistic, interrupt)?;
    let Some(cut) = best.cut else {
        return Ok(CutBound::NONE);
    };
    let probability = calibrate(&cuts, statistic, best.statistic, cut, beta, interrupt)?;
    Ok(probability.map_or(CutBound::NONE, |probability| CutBound {
        probability,
        ..best
    }))
}

/// The bound of a scan whose statistic is largest at `cut`, with the value `level`.
pub(crate) fn calibrate(
    cuts: &[Cut],
    statistic: &impl ScanStatistic,
    level: Probability,
    cut: Cut,
    beta: f64,
    interrupt: &Interrupt,
) -> Result<Option<Probability>, AuditError> {
    let guesses: Vec<u32> = cuts.iter().map(|cut| cut.guesses).collect();
    let mut thresholds = statistic.thresholds(level, &guesses)?;
    // Rounding must not leave the observed cut outside of its own rejection region.
    if let Ok(index) = guesses.binary_search(&cut.guesses) {
        thresholds[index] = thresholds[index].min(cut.correct);
    }
    Boundary::new(&guesses, &thresholds)?.calibrate(beta, level, interrupt)
}
