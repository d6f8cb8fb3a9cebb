//! All cuts at once where every guess has odds of its own.

use leakbound_math::Probability;
use leakbound_math::memory::room;
use rayon::prelude::*;

use crate::crossing::success_probabilities::LogitFamily;
use crate::error::{AuditError, out_of_range};
use crate::guesses::grid::Grid;
use crate::guesses::path::{Cut, Path};
use crate::interrupt::Interrupt;
use crate::scan::calibration::boundary;
use crate::scan::deviation::{PrefixSums, Search};
use crate::scan::statistic::KlDivergence;

/// Largest offset either way.
const MAX_OFFSET: f64 = 300.0;

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
/// probabilities and r·KL(w/r ‖ p̄) ≥ κ. It is calibrated as in [`Scan`](crate::Scan), by a walk
/// whose steps have these probabilities; a path with w correct guesses is reweighted from ε₀ to ε
/// by exp((ε − ε₀)w − Σᵢ[ln(1 + e^{ε + aᵢ}) − ln(1 + e^{ε₀ + aᵢ})]).
///
/// Where the bound is below `floor`, it may be left at −∞, which takes less time.
/// Every allowed cut of at least `min_guesses` is looked at. Domain: |aᵢ| ≤ 300; cuts that refute
/// no ε above −400 count as refuting none. Direction: rounded down, to the side that was verified;
/// accuracy about 1e-13. Cost: as a scan over all cuts, and a few passes over the offsets.
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
    floor: f64,
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
    let boundary = boundary(*statistic, &cuts, |index| means[index], cut)?;
    let family = LogitFamily::Offset(offsets);
    // The bound is near the statistic, on one side or the other.
    if level < floor && boundary.is_crossed_above(family, floor, beta, interrupt)? {
        return Ok(OffsetBound::NONE);
    }
    let epsilon = boundary.calibrate_family(family, beta, level, interrupt)?;
    Ok(epsilon.map_or(OffsetBound::NONE, |epsilon| OffsetBound {
        epsilon,
        cut: Some(cut),
        statistic: level,
    }))
}

/// [`scan_offsets`] for every row of offsets, such as the replicates of a bootstrap, each with its
/// floor: the values of ε alone, −∞ where nothing is rejected.
///
/// Rows are computed in parallel; the result does not depend on the number of threads.
pub fn scan_offset_rows(
    path: &Path,
    rows: &[f64],
    statistic: &KlDivergence,
    beta: f64,
    min_guesses: u32,
    floors: &[f64],
    interrupt: &Interrupt,
) -> Result<Vec<f64>, AuditError> {
    let steps = path.guesses() as usize;
    if steps == 0 || rows.len() != steps * floors.len() {
        let given = rows.len();
        return Err(AuditError::StepMismatch { given, steps });
    }
    rows.par_chunks_exact(steps)
        .zip(floors)
        .map(|(offsets, &floor)| {
            scan_offsets(
                path,
                offsets,
                statistic,
                beta,
                min_guesses,
                floor,
                interrupt,
            )
            .map(|bound| bound.epsilon)
        })
        .collect()
}

/// Refuse offsets that are not one for each guess, or too large.
pub(crate) fn check(offsets: &[f64], guesses: u32) -> Result<(), AuditError> {
    if offsets.len() != guesses as usize {
        let (given, steps) = (offsets.len(), guesses as usize);
        return Err(AuditError::StepMismatch { given, steps });
    }
    let outside = |offset: &&f64| offset.is_nan() || offset.abs() > MAX_OFFSET;
    match offsets.iter().find(outside) {
        None => Ok(()),
        Some(&value) => out_of_range("offsets", value, "numbers between -300 and 300"),
    }
}

/// The mean probability of the guesses up to each cut.
pub(crate) fn means(
    offsets: &[f64],
    cuts: &[Cut],
    epsilon: f64,
) -> Result<Vec<Probability>, AuditError> {
    let mut sums = PrefixSums::new(offsets, epsilon);
    let mut means = room(cuts.len())?;
    for cut in cuts {
        means.push(sums.up_to(cut.guesses)?);
    }
    Ok(means)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_found_from_either_side() {
        let successes: Vec<bool> = (0..300).map(|i| i < 12 || (i * 37) % 10 < 2).collect();
        let path = Path::from_successes(&successes);
        let statistic = KlDivergence::for_level(0.05).unwrap();
        let bound = |offset: f64, floor: f64| {
            let offsets = vec![offset; 300];
            scan_offsets(
                &path,
                &offsets,
                &statistic,
                0.05,
                1,
                floor,
                &Interrupt::default(),
            )
            .unwrap()
        };
        let plain = bound(0.0, f64::NEG_INFINITY);
        for offset in [-20.0, -2.2, -0.3, 0.7, 3.0, 40.0] {
            let shifted = bound(offset, f64::NEG_INFINITY);
            assert_eq!(shifted.cut, plain.cut, "{offset}");
            assert!(
                (shifted.statistic + offset - plain.statistic).abs() < 1e-11,
                "{offset}"
            );
            assert!(
                (shifted.epsilon + offset - plain.epsilon).abs() < 1e-10,
                "{offset}"
            );
            for (apart, same) in [(-1.0, true), (-1e-9, true), (1e-9, false), (1.0, false)] {
                let floored = bound(offset, shifted.epsilon + apart);
                assert!(floored == shifted || !same && floored == OffsetBound::NONE);
                assert!(floored != shifted || apart < 1.0);
            }
        }
    }
}
