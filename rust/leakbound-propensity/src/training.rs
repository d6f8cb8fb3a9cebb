//! The rows that a propensity model learns from.

use leakbound_math::memory::{filled, listed, reserve};
use std::ops::Range;

use leakbound_math::stream::{Purpose, Stream};
use leakbound_simd::GROUP;

use crate::error::PropensityError;
use crate::panel::Panel;
use crate::resample::draw;

/// Rows of features with their classes, standardised and sorted by fold.
///
/// Features are centred and divided by their standard deviation, and the penalty is divided by its
/// square: the fit is the same as that of the features as given, its arithmetic is better.
#[derive(Debug, Clone)]
pub struct Training {
    /// Rows of 1 followed by the standardised features, sorted by fold, each fold padded.
    pub(crate) panel: Panel,
    /// 1 for members, 0 for non-members and padding, in the same order.
    pub(crate) targets: Vec<f64>,
    /// Penalty of each standardised coefficient; none of the intercept.
    pub(crate) penalty: Vec<f64>,
    /// The rows of each fold; empty without folds.
    pub(crate) folds: Vec<Range<usize>>,
    /// Position in the data as given of each row here; none of padding.
    slots: Vec<Option<usize>>,
    count: usize,
    centre: Vec<f64>,
    scale: Vec<f64>,
}

impl Training {
    /// Reads `columns` features of each row, its class, and the fold that it is held out in.
    ///
    /// Without folds there is no calibration. Folds are numbered from 0, each holds a row, and
    /// outside of each there are both classes.
    ///
    /// # Errors
    /// Lengths that differ, a feature that is not finite, a penalty below 0, or a class missing.
    pub fn new(
        features: &[f64],
        columns: usize,
        member: &[bool],
        folds: Option<&[u8]>,
        l2: f64,
    ) -> Result<Self, PropensityError> {
        let count = member.len();
        check_length("features", features.len(), count * columns)?;
        check_finite(features, columns)?;
        if !(l2 >= 0.0 && l2.is_finite()) {
            return Err(PropensityError::Penalty { value: l2 });
        }
        let (slots, ranges) = slots(count, folds)?;
        let (centre, scale) = moments(features, columns, count);
        let mut panel = Panel::zeros(slots.len(), columns + 1)?;
        let mut targets = filled(slots.len(), 0.0)?;
        for (slot, row) in slots.iter().enumerate() {
            let Some(row) = *row else { continue };
            targets[slot] = f64::from(u8::from(member[row]));
            let entries = features[row * columns..(row + 1) * columns].iter();
            let entries = entries.zip(centre.iter().zip(&scale));
            panel.set_row(slot, entries.map(|(x, (c, s))| (x - c) / s));
        }
        let penalty = std::iter::once(0.0)
            .chain(scale.iter().map(|s| l2 / (s * s)))
            .collect();
        let training = Self {
            panel,
            targets,
            penalty,
            folds: ranges,
            slots,
            count,
            centre,
            scale,
        };
        training.check_classes(&filled(count, 1)?)?;
        Ok(training)
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of coefficients, the intercept among them.
    pub fn width(&self) -> usize {
        self.penalty.len()
    }

    /// How often each row, in the order given, occurs in bootstrap resample number `replicate`.
    ///
    /// The resample has as many rows as the data, drawn independently with replacement; one that
    /// lacks a class outside of some fold is redrawn. It depends on the classes, the folds, the
    /// seed and the number alone.
    pub fn resample(&self, seed: u64, replicate: u64) -> Result<Vec<u32>, PropensityError> {
        let mut counts = filled(self.count, 0)?;
        draw(
            &mut Stream::new(Purpose::Resamples, seed, replicate),
            &mut counts,
            |counts| self.check_classes(counts).is_ok(),
        )?;
        Ok(counts)
    }

    /// Checks that counts of the rows as given can be fitted.
    pub(crate) fn check_counts(&self, counts: &[u32]) -> Result<(), PropensityError> {
        check_length("counts", counts.len(), self.count)?;
        self.check_classes(counts)
    }

    /// The weight of each row here, from counts of the rows as given.
    pub(crate) fn weights<'a>(&'a self, counts: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        (self.slots.iter()).map(|slot| slot.map_or(0, |row| counts[row]))
    }

    /// Intercept and slopes for the features as given, from those for standardised ones.
    pub(crate) fn unscaled(&self, beta: &[f64]) -> Vec<f64> {
        let slopes: Vec<f64> = beta[1..]
            .iter()
            .zip(&self.scale)
            .map(|(b, s)| b / s)
            .collect();
        let shift: f64 = slopes.iter().zip(&self.centre).map(|(b, c)| b * c).sum();
        std::iter::once(beta[0] - shift).chain(slopes).collect()
    }

    /// Checks that both classes occur, and do so outside of every fold.
    fn check_classes(&self, counts: &[u32]) -> Result<(), PropensityError> {
        let everywhere = 0..self.slots.len();
        let all = self.class_counts(counts, everywhere);
        for (total, member) in all.into_iter().zip([false, true]) {
            if total == 0 {
                return Err(PropensityError::ClassMissing { member, fold: None });
            }
        }
        for (fold, range) in self.folds.iter().enumerate() {
            let inside = self.class_counts(counts, range.clone());
            for ((inside, all), member) in inside.into_iter().zip(all).zip([false, true]) {
                if inside == all {
                    let fold = Some(fold);
                    return Err(PropensityError::ClassMissing { member, fold });
                }
            }
        }
        Ok(())
    }

    /// How many non-members and members some rows here stand for.
    fn class_counts(&self, counts: &[u32], rows: Range<usize>) -> [u64; 2] {
        let mut tally = [0; 2];
        for (slot, &target) in self.slots[rows.clone()].iter().zip(&self.targets[rows]) {
            tally[usize::from(target == 1.0)] += slot.map_or(0, |row| u64::from(counts[row]));
        }
        tally
    }
}

/// Which row as given lies at each place, if any, and where each fold lies.
type Slots = (Vec<Option<usize>>, Vec<Range<usize>>);

/// The rows as given sorted by fold, each fold padded to whole groups, and where the folds lie.
fn slots(count: usize, folds: Option<&[u8]>) -> Result<Slots, PropensityError> {
    let mut order: Vec<usize> = listed(count, 0..count)?;
    let Some(folds) = folds else {
        return Ok((padded(&order)?, Vec::new()));
    };
    check_length("folds", folds.len(), count)?;
    order.sort_by_key(|&row| folds[row]);
    let mut slots = Vec::new();
    let mut ranges = Vec::new();
    for fold in order.chunk_by(|&one, &next| folds[one] == folds[next]) {
        let start = slots.len();
        let fold = padded(fold)?;
        reserve(&mut slots, fold.len())?;
        slots.extend(fold);
        ranges.push(start..slots.len());
    }
    Ok((slots, ranges))
}

fn padded(rows: &[usize]) -> Result<Vec<Option<usize>>, PropensityError> {
    let mut slots = filled(rows.len().next_multiple_of(GROUP), None)?;
    for (slot, &row) in slots.iter_mut().zip(rows) {
        *slot = Some(row);
    }
    Ok(slots)
}

pub(crate) fn check_length(
    name: &'static str,
    given: usize,
    needed: usize,
) -> Result<(), PropensityError> {
    if given == needed {
        Ok(())
    } else {
        Err(PropensityError::LengthMismatch {
            name,
            given,
            needed,
        })
    }
}

pub(crate) fn check_finite(features: &[f64], columns: usize) -> Result<(), PropensityError> {
    match features.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(PropensityError::NotFinite {
            row: index / columns,
            column: index % columns,
            value: features[index],
        }),
    }
}

/// Mean and standard deviation of every column; the latter is 1 where a column is constant.
pub(crate) fn moments(features: &[f64], columns: usize, count: usize) -> (Vec<f64>, Vec<f64>) {
    let mut centre = vec![0.0; columns];
    let mut scale = vec![0.0; columns];
    if columns == 0 {
        return (centre, scale);
    }
    let n = count as f64;
    for row in features.chunks_exact(columns) {
        for (c, x) in centre.iter_mut().zip(row) {
            *c += x / n;
        }
    }
    for row in features.chunks_exact(columns) {
        for (s, (x, c)) in scale.iter_mut().zip(row.iter().zip(&centre)) {
            *s += (x - c).powi(2) / n;
        }
    }
    for (j, s) in scale.iter_mut().enumerate() {
        *s = s.sqrt();
        if features
            .iter()
            .skip(j)
            .step_by(columns)
            .all(|&x| x == features[j])
        {
            centre[j] = features[j];
            *s = 1.0;
        }
    }
    (centre, scale)
}
