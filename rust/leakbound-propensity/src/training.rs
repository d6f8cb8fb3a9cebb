//! The rows that a propensity model learns from.

use std::ops::Range;

use crate::PropensityError;
use crate::resample::{Stream, draw};

/// Rows of features with their classes, standardised and sorted by fold.
///
/// Features are centred and divided by their standard deviation, and the penalty is divided by its
/// square: the fit is the same as that of the features as given, its arithmetic is better.
#[derive(Debug, Clone)]
pub struct Training {
    /// Rows of 1 followed by the standardised features, sorted by fold.
    pub(crate) rows: Vec<f64>,
    /// 1 for members, 0 for non-members, in the same order.
    pub(crate) targets: Vec<f64>,
    /// Penalty of each standardised coefficient; none of the intercept.
    pub(crate) penalty: Vec<f64>,
    /// The rows of each fold; empty without folds.
    pub(crate) folds: Vec<Range<usize>>,
    /// Position in the data as given of each row here.
    order: Vec<usize>,
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
        let mut order: Vec<usize> = (0..count).collect();
        let mut ranges = Vec::new();
        if let Some(folds) = folds {
            check_length("folds", folds.len(), count)?;
            order.sort_by_key(|&row| folds[row]);
            ranges = order
                .chunk_by(|&one, &next| folds[one] == folds[next])
                .scan(0, |end, chunk| {
                    let start = *end;
                    *end += chunk.len();
                    Some(start..*end)
                })
                .collect();
        }
        let (centre, scale) = moments(features, columns, count);
        let mut rows = Vec::with_capacity(count * (columns + 1));
        for &row in &order {
            rows.push(1.0);
            let line = &features[row * columns..(row + 1) * columns];
            rows.extend(
                line.iter()
                    .enumerate()
                    .map(|(j, x)| (x - centre[j]) / scale[j]),
            );
        }
        let penalty = std::iter::once(0.0)
            .chain(scale.iter().map(|s| l2 / (s * s)))
            .collect();
        let targets = order
            .iter()
            .map(|&row| f64::from(u8::from(member[row])))
            .collect();
        let training = Self {
            rows,
            targets,
            penalty,
            folds: ranges,
            order,
            centre,
            scale,
        };
        training.check_classes(&vec![1; count])?;
        Ok(training)
    }

    /// Number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.targets.len()
    }

    /// Number of coefficients, the intercept among them.
    #[must_use]
    pub fn width(&self) -> usize {
        self.penalty.len()
    }

    /// How often each row, in the order given, occurs in bootstrap resample number `replicate`.
    ///
    /// The resample has as many rows as the data, drawn independently with replacement; one that
    /// lacks a class outside of some fold is drawn anew. It depends on the classes, the folds, the
    /// seed and the number alone.
    ///
    /// # Errors
    /// [`PropensityError::ClassTooRare`] if a thousand resamples lack a class.
    pub fn resample(&self, seed: u64, replicate: u64) -> Result<Vec<u32>, PropensityError> {
        let mut counts = vec![0; self.count()];
        let mut sorted = vec![0; self.count()];
        draw(&mut Stream::new(seed, replicate), &mut counts, |counts| {
            self.sort(counts, &mut sorted);
            self.check_classes(&sorted).is_ok()
        })?;
        Ok(counts)
    }

    /// Checks that counts of the rows as given can be fitted.
    pub(crate) fn check_counts(&self, counts: &[u32]) -> Result<(), PropensityError> {
        check_length("counts", counts.len(), self.count())?;
        let mut sorted = vec![0; counts.len()];
        self.sort(counts, &mut sorted);
        self.check_classes(&sorted)
    }

    /// Puts counts of the rows as given, as weights, in the order of the rows here.
    pub(crate) fn weigh(&self, counts: &[u32], weights: &mut [f64]) {
        for (weight, &row) in weights.iter_mut().zip(&self.order) {
            *weight = f64::from(counts[row]);
        }
    }

    /// Puts counts of the rows as given in the order of the rows here.
    pub(crate) fn sort(&self, counts: &[u32], sorted: &mut [u32]) {
        for (to, &row) in sorted.iter_mut().zip(&self.order) {
            *to = counts[row];
        }
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
        for member in [true, false] {
            let tally = |range: Range<usize>| -> u64 {
                (counts[range.clone()].iter().zip(&self.targets[range]))
                    .filter(|&(_, &target)| (target == 1.0) == member)
                    .map(|(&count, _)| u64::from(count))
                    .sum()
            };
            let all = tally(0..self.count());
            if all == 0 {
                return Err(PropensityError::ClassMissing { member, fold: None });
            }
            for (fold, range) in self.folds.iter().enumerate() {
                if tally(range.clone()) == all {
                    let fold = Some(fold);
                    return Err(PropensityError::ClassMissing { member, fold });
                }
            }
        }
        Ok(())
    }
}

fn check_length(name: &'static str, given: usize, needed: usize) -> Result<(), PropensityError> {
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
fn moments(features: &[f64], columns: usize, count: usize) -> (Vec<f64>, Vec<f64>) {
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
    for (s, c) in scale.iter_mut().zip(&centre) {
        *s = s.sqrt();
        // The rounding error of the mean of a constant column.
        if *s <= 1e-14 * c.abs() || *s == 0.0 {
            *s = 1.0;
        }
    }
    (centre, scale)
}
