//! Bounds cut by cut, for plots: what the audit would say had each cut been the best one.

use leakbound_math::Probability;
use leakbound_math::memory::listed;

use crate::error::AuditError;
use crate::guesses::grid::Grid;
use crate::guesses::path::{Cut, Path, geometric_positions};
use crate::interrupt::Interrupt;
use crate::scan::best_cut::best_cut;
use crate::scan::calibration::Scan;
use crate::scan::statistic::CutStatistic;

/// Levels at which a scan is calibrated for a curve; between them the calibration is interpolated.
const NODES: usize = 9;

/// One cut of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CurvePoint {
    /// The cut.
    pub cut: Cut,
    /// The logit of its bound; −∞ if it refutes nothing.
    pub logit: f64,
}

/// A statistic's limits at no more than `points` cuts and at its best one.
pub fn pointwise_curve(
    path: &Path,
    statistic: &(impl CutStatistic + ?Sized),
    grid: &Grid,
    points: usize,
    interrupt: &Interrupt,
) -> Result<Vec<CurvePoint>, AuditError> {
    let cuts = path.cuts(grid, 1)?;
    let best = best_cut(&cuts, statistic, interrupt)?;
    sample(&cuts, best.cut, points)?
        .into_iter()
        .map(|cut| point(cut, statistic, interrupt))
        .collect()
}

/// The scan's bound at no more than `points` cuts, each as if it had been the best one.
///
/// The bound is an increasing function of the statistic alone. It is computed at a few levels, the
/// observed maximum among them, and its distance from the statistic is interpolated between: the
/// largest value of the curve is the bound itself, the others are exact to the width of a line.
pub fn scan_curve(
    scan: &Scan,
    path: &Path,
    points: usize,
    interrupt: &Interrupt,
) -> Result<Vec<CurvePoint>, AuditError> {
    let (cuts, best) = scan.observed(path, interrupt)?;
    let mut curve = sample(&cuts, best.cut, points)?
        .into_iter()
        .map(|cut| point(cut, &scan.statistic, interrupt))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(best_cut) = best.cut else {
        return Ok(curve);
    };
    let top = best.statistic.logit();
    let bottom = top.min(0.0) - 0.5;
    let mut corrections = Vec::with_capacity(NODES);
    for node in 0..NODES {
        let logit = bottom + (top - bottom) * node as f64 / (NODES - 1) as f64;
        let (level, observed) = if node == NODES - 1 {
            (best.statistic, best_cut)
        } else {
            // Below the maximum any cut may be the observed one; the first is never crossed by it.
            (Probability::from_logit(logit)?, Cut::default())
        };
        let bound = scan.calibrate(&cuts, level, observed, interrupt)?;
        corrections.push(bound.map_or(f64::NEG_INFINITY, |bound| bound.logit() - logit));
    }
    for point in &mut curve {
        let position = (point.logit - bottom) / (top - bottom) * (NODES - 1) as f64;
        point.logit += interpolate(&corrections, position);
    }
    Ok(curve)
}

/// At most `points` of the cuts, about geometric in the number of guesses, the best one included.
fn sample(cuts: &[Cut], best: Option<Cut>, points: usize) -> Result<Vec<Cut>, AuditError> {
    let longest = cuts.last().map_or(0, |cut| cut.guesses as usize);
    if cuts.len() <= points {
        return Ok(listed(cuts.len(), cuts.iter().copied())?);
    }
    let mut sample: Vec<Cut> = geometric_positions(longest, points.saturating_sub(1).max(1))?
        .into_iter()
        .filter_map(|position| {
            let after = cuts.partition_point(|cut| cut.guesses as usize <= position);
            after.checked_sub(1).map(|last| cuts[last])
        })
        .collect();
    sample.dedup();
    if let Some(best) = best
        && let Err(index) = sample.binary_search_by_key(&best.guesses, |cut| cut.guesses)
    {
        sample.insert(index, best);
    }
    Ok(sample)
}

fn point(
    cut: Cut,
    statistic: &(impl CutStatistic + ?Sized),
    interrupt: &Interrupt,
) -> Result<CurvePoint, AuditError> {
    let logit = statistic
        .limit(cut, interrupt)?
        .map_or(f64::NEG_INFINITY, Probability::logit);
    Ok(CurvePoint { cut, logit })
}

/// Linear between nodes, constant beyond the ends.
fn interpolate(values: &[f64], position: f64) -> f64 {
    let last = values.len() - 1;
    let position = position.clamp(0.0, last as f64);
    let node = (position as usize).min(last - 1);
    let weight = position - node as f64;
    if weight == 1.0 {
        values[last]
    } else if values[node].is_infinite() {
        // Below the first level that refutes anything nothing does.
        values[node]
    } else {
        values[node] * (1.0 - weight) + values[node + 1] * weight
    }
}
