//! A low order statistic of bounds under many rows of offsets, most of which are never computed.

use std::borrow::Cow;

use leakbound_math::MathError;
use leakbound_math::memory::{filled, listed, reserve};
use rayon::prelude::*;

use crate::crossing::success_probabilities::LogitFamily;
use crate::error::{AuditError, out_of_range};
use crate::guesses::grid::Grid;
use crate::guesses::path::{Cut, Path};
use crate::interrupt::Interrupt;
use crate::scan::calibration::boundary;
use crate::scan::deviation::Search;
use crate::scan::offsets::{OffsetBound, check, means, scan_offsets};
use crate::scan::statistic::KlDivergence;

/// Guesses that are scanned under offsets of their own: all of them, or also every other one, from the
/// first and from the second, where the largest of three bounds counts, or 0.
#[derive(Debug, Clone)]
pub struct Replicated {
    successes: Vec<bool>,
    /// Those paths that are long enough.
    paths: Vec<Part>,
    statistic: KlDivergence,
    beta: f64,
    min_guesses: u32,
}

/// A path through some of the guesses: `first`, `first + stride`, …
#[derive(Debug, Clone)]
struct Part {
    first: usize,
    stride: usize,
    path: Path,
    cuts: Vec<Cut>,
}

/// What one row of offsets said of a part: where its statistic was found, and how far its bound was
/// from that.
struct Model<'a> {
    part: &'a Part,
    cut: Cut,
    level: f64,
    gap: f64,
}

/// About how large the bound of a row is, by the model that says most, and a level that its statistic
/// there is not below.
#[derive(Clone, Copy)]
struct Guess {
    bound: f64,
    model: usize,
    level: f64,
}

impl Guess {
    /// Where no model says anything.
    const NONE: Self = Self {
        bound: f64::NEG_INFINITY,
        model: 0,
        level: f64::NEG_INFINITY,
    };
}

impl Part {
    fn new(
        successes: &[bool],
        first: usize,
        stride: usize,
        min_guesses: u32,
    ) -> Result<Self, AuditError> {
        let taken = successes[first..].iter().step_by(stride).copied();
        let own = listed(successes.len().div_ceil(stride), taken)?;
        let path = Path::from_successes(&own);
        let cuts = path.cuts(&Grid::All, min_guesses)?;
        Ok(Self {
            first,
            stride,
            path,
            cuts,
        })
    }

    fn offsets<'a>(&self, row: &'a [f64]) -> Result<Cow<'a, [f64]>, MathError> {
        if self.stride == 1 {
            return Ok(Cow::Borrowed(&row[self.first..]));
        }
        let own = row[self.first..].iter().step_by(self.stride);
        Ok(Cow::Owned(listed(
            row.len().div_ceil(self.stride),
            own.copied(),
        )?))
    }
}

impl Replicated {
    /// Guesses in order, and whether both halves are paths too; each path has `beta` to itself.
    ///
    /// # Errors
    /// No guesses, or no memory.
    pub fn new(
        successes: &[bool],
        halves: bool,
        statistic: KlDivergence,
        beta: f64,
        min_guesses: u32,
    ) -> Result<Self, AuditError> {
        if successes.len() < if halves { 2 } else { 1 } {
            return Err(AuditError::Empty);
        }
        let strides: &[(usize, usize)] = if halves {
            &[(0, 1), (0, 2), (1, 2)]
        } else {
            &[(0, 1)]
        };
        let paths = strides
            .iter()
            .map(|&(first, stride)| Part::new(successes, first, stride, min_guesses))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            successes: listed(successes.len(), successes.iter().copied())?,
            paths: paths
                .into_iter()
                .filter(|part| part.path.guesses() >= min_guesses)
                .collect(),
            statistic,
            beta,
            min_guesses,
        })
    }

    /// The `rank`-th smallest of the bounds of all rows, each as long as there are guesses.
    ///
    /// Bounds are computed of the rows whose statistic at one cut is lowest, and then of those only
    /// for which a walk at the largest of these does not show that theirs is as large. The largest ε at
    /// which one cut deviates by κ is at most the statistic, and at a lower statistic the boundary is
    /// crossed no less: if its probability is at most β at some ε, the bound is no less than ε.
    ///
    /// The result is that of sorting all bounds, whatever the number of threads.
    ///
    /// # Errors
    /// Rows of another length, offsets that [`scan_offsets`] refuses, a rank that is not between 1 and
    /// the number of rows, or an interrupt.
    pub fn lowest(
        &self,
        rows: &[f64],
        rank: usize,
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let steps = self.successes.len();
        if rows.is_empty() || !rows.len().is_multiple_of(steps) {
            let given = rows.len();
            return Err(AuditError::StepMismatch { given, steps });
        }
        let rows = listed(rows.len() / steps, rows.chunks_exact(steps))?;
        if rank == 0 || rank > rows.len() {
            return out_of_range("rank", rank as f64, "1 to the number of rows");
        }
        let models = self.models(rows[0], interrupt)?;
        let mut guesses = filled(rows.len(), Guess::NONE)?;
        (guesses.par_iter_mut().zip(&rows)).try_for_each(|(guess, row)| {
            *guess = self.guess(&models, row, interrupt)?;
            Ok::<_, AuditError>(())
        })?;
        let mut order = listed(rows.len(), 0..rows.len())?;
        let bound = |row: usize| guesses[row].bound;
        order.sort_unstable_by(|&a, &b| bound(a).total_cmp(&bound(b)).then(a.cmp(&b)));
        let (low, rest) = order.split_at(rank);
        let mut bounds = filled(rank, 0.0)?;
        (bounds.par_iter_mut().zip(low)).try_for_each(|(bound, &index)| {
            *bound = self.bound(rows[index], interrupt)?;
            Ok::<_, AuditError>(())
        })?;
        let pivot = bounds.iter().copied().fold(0.0, f64::max);
        let mut doubtful = filled(rest.len(), None)?;
        (doubtful.par_iter_mut().zip(rest)).try_for_each(|(bound, &index)| {
            if !self.is_at_least(pivot, &models, guesses[index], rows[index], interrupt)? {
                *bound = Some(self.bound(rows[index], interrupt)?);
            }
            Ok::<_, AuditError>(())
        })?;
        reserve(&mut bounds, rest.len())?;
        bounds.extend(doubtful.into_iter().flatten());
        bounds.sort_unstable_by(f64::total_cmp);
        Ok(bounds[rank - 1])
    }

    /// The bound of a part at a row, if it is above a floor.
    fn scan(
        &self,
        part: &Part,
        row: &[f64],
        floor: f64,
        interrupt: &Interrupt,
    ) -> Result<OffsetBound, AuditError> {
        scan_offsets(
            &part.path,
            &part.offsets(row)?,
            &self.statistic,
            self.beta,
            self.min_guesses,
            floor,
            interrupt,
        )
    }

    /// The largest bound of a row, or 0.
    fn bound(&self, row: &[f64], interrupt: &Interrupt) -> Result<f64, AuditError> {
        let mut largest = 0.0;
        for part in &self.paths {
            let found = self.scan(part, row, largest, interrupt)?;
            largest = found.epsilon.max(largest);
        }
        Ok(largest)
    }

    /// The model that a row gives for each part in which a cut stands out.
    fn models(&self, row: &[f64], interrupt: &Interrupt) -> Result<Vec<Model<'_>>, AuditError> {
        let mut models = Vec::new();
        for part in &self.paths {
            let found = self.scan(part, row, f64::NEG_INFINITY, interrupt)?;
            if let Some(cut) = found.cut.filter(|_| found.epsilon.is_finite()) {
                models.push(Model {
                    part,
                    cut,
                    level: found.statistic,
                    gap: found.epsilon - found.statistic,
                });
            }
        }
        Ok(models)
    }

    /// About how large the bound of a row is: the cuts of the models are looked at alone.
    fn guess(
        &self,
        models: &[Model<'_>],
        row: &[f64],
        interrupt: &Interrupt,
    ) -> Result<Guess, AuditError> {
        check(row, self.successes.len() as u32)?;
        let mut best = Guess::NONE;
        for (index, model) in models.iter().enumerate() {
            let search = Search {
                offsets: &model.part.offsets(row)?,
                cuts: &[model.cut],
                target: self.target(),
            };
            let Some((level, _)) = search.best_from(model.level, interrupt)? else {
                continue;
            };
            if level + model.gap > best.bound {
                best = Guess {
                    bound: level + model.gap,
                    model: index,
                    level,
                };
            }
        }
        Ok(best)
    }

    /// Whether the bound of a row is shown to be at least `pivot` by one walk.
    fn is_at_least(
        &self,
        pivot: f64,
        models: &[Model<'_>],
        guess: Guess,
        row: &[f64],
        interrupt: &Interrupt,
    ) -> Result<bool, AuditError> {
        if pivot <= 0.0 {
            return Ok(true);
        }
        if guess.bound < pivot {
            return Ok(false);
        }
        let model = &models[guess.model];
        let offsets = model.part.offsets(row)?;
        let cuts = &model.part.cuts;
        let means = means(&offsets, cuts, guess.level)?;
        let boundary = boundary(self.statistic, cuts, |index| means[index], model.cut)?;
        boundary.is_crossed_at_most(LogitFamily::Offset(&offsets), pivot, self.beta, interrupt)
    }

    fn target(&self) -> f64 {
        (2.0 * self.statistic.kappa()).sqrt()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn an_order_statistic_is_that_of_all_bounds(
            noise in prop::collection::vec(-1.0_f64..1.0, 2400),
            advantage in -0.3_f64..2.5,
            spread in prop::sample::select(vec![0.0_f64, 0.1, 1.0, 3.0]),
            halves in any::<bool>(),
            min_guesses in prop::sample::select(vec![1_u32, 20, 45]),
        ) {
            let steps = 80;
            let successes: Vec<bool> = noise[..steps].iter().map(|x| *x < advantage).collect();
            let rows: Vec<f64> = noise.iter().map(|x| spread * x).collect();
            let statistic = KlDivergence::for_level(0.05).unwrap();
            let replicated =
                Replicated::new(&successes, halves, statistic, 0.05, min_guesses).unwrap();
            let interrupt = Interrupt::default();
            let mut all: Vec<f64> = rows
                .chunks_exact(steps)
                .map(|row| replicated.bound(row, &interrupt).unwrap())
                .collect();
            all.sort_by(f64::total_cmp);
            for rank in [1, 2, 15, 30] {
                let found = replicated.lowest(&rows, rank, &interrupt).unwrap();
                prop_assert_eq!(found.to_bits(), all[rank - 1].to_bits(), "{}", rank);
            }
        }
    }
}
