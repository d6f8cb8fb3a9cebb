//! Confidence sets of the log-odds of membership, and guesses that they say little about.

use leakbound_core::Interrupt;
use leakbound_propensity::{Balance, ConfidenceSet, Guess, Labelled, Least, Matching, Prices};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;

use crate::convert::{Flags, Table, Vector, reshaped};
use crate::propensity::run;

type Answer<'py> = Bound<'py, PyArray1<f64>>;
type Answers<'py> = Bound<'py, PyArray2<f64>>;

/// A confidence set of the coefficients of a logistic model of membership.
#[pyclass(frozen)]
pub(crate) struct LogOddsSet {
    set: ConfidenceSet,
    #[pyo3(get)]
    squared_radius: f64,
}

#[pymethods]
impl LogOddsSet {
    #[new]
    #[pyo3(signature = (features, member, offsets, *, reference, own_intercept, level, seed))]
    #[allow(clippy::too_many_arguments)] // columns of one table, and how it is read
    fn new(
        py: Python<'_>,
        features: Table<'_, f64>,
        member: Flags<'_>,
        offsets: Vector<'_, f64>,
        reference: usize,
        own_intercept: bool,
        level: f64,
        seed: u64,
    ) -> PyResult<Self> {
        let columns = features.columns();
        let (features, member, offsets) = (features.entries(), member.read()?, &*offsets);
        let set = run(py, |interrupt| {
            let rows = Labelled {
                features,
                columns,
                member: &member,
                offsets,
                reference,
                own_intercept,
            };
            ConfidenceSet::new(rows, level, seed, &stop(interrupt))
        })?;
        let squared_radius = set.squared_radius();
        Ok(Self {
            set,
            squared_radius,
        })
    }

    /// The coefficients of largest likelihood: intercept, slopes, and the difference of intercepts
    /// where there is one.
    fn estimate<'py>(&self, py: Python<'py>) -> Answer<'py> {
        PyArray1::from_vec(py, self.set.estimate())
    }

    fn contains(&self, py: Python<'_>, coefficients: Vector<'_, f64>) -> PyResult<bool> {
        let coefficients = &*coefficients;
        run(py, |_| self.set.contains(coefficients))
    }

    /// Where the ray from the estimate in a direction leaves the set.
    fn leaves<'py>(&self, py: Python<'py>, direction: Vector<'_, f64>) -> PyResult<Answer<'py>> {
        let direction = &*direction;
        let edge = run(py, |_| self.set.leaves(direction))?;
        Ok(PyArray1::from_vec(py, edge))
    }

    /// The least ε that the correct ones among some guesses refute, over the set, with the
    /// coefficients and the log-odds of the audited rows that it was found at.
    #[pyo3(signature = (rows, guesses, *, level))]
    fn least_epsilon<'py>(
        &self,
        py: Python<'py>,
        rows: Vector<'_, i64>,
        guesses: Vector<'_, i64>,
        level: f64,
    ) -> PyResult<(f64, Answer<'py>, Answer<'py>)> {
        let guesses = guess_list(&rows, &guesses);
        let least = run(py, |interrupt| {
            self.set.least_epsilon(&guesses, level, &stop(interrupt))
        })?;
        Ok(answer(py, least))
    }

    /// The largest logarithm of the chance of so many correct guesses, over the set, at ε = 0.
    fn largest_log_tail(
        &self,
        py: Python<'_>,
        rows: Vector<'_, i64>,
        guesses: Vector<'_, i64>,
    ) -> PyResult<f64> {
        let guesses = guess_list(&rows, &guesses);
        run(py, |interrupt| {
            self.set.largest_log_tail(&guesses, &stop(interrupt))
        })
    }

    /// Coefficients, and log-odds of the audited rows, at the estimate and where matching leaves
    /// fewest guesses correct in a share of draws, less examples kept and guesses made at their prices:
    /// a row for each.
    #[pyo3(signature = (rows, guesses, *, inside, made, share, prices))]
    #[allow(clippy::too_many_arguments)] // columns of one table, and how it is read
    fn least_matched<'py>(
        &self,
        py: Python<'py>,
        rows: Vector<'_, i64>,
        guesses: Vector<'_, i64>,
        inside: usize,
        made: usize,
        share: f64,
        prices: (f64, f64),
    ) -> PyResult<(Answers<'py>, Answers<'py>)> {
        let guesses = guess_list(&rows, &guesses);
        let matching = Matching {
            inside,
            made,
            share,
        };
        let (kept, made) = prices;
        let prices = Prices { kept, made };
        let found = run(py, |interrupt| {
            self.set
                .least_matched(&guesses, matching, prices, &stop(interrupt))
        })?;
        let found = found
            .into_iter()
            .map(|least| (least.coefficients, least.log_odds));
        self.members(py, found.collect())
    }

    /// What a share of draws reaches, for each row of log-odds of the audited rows: the number kept
    /// that is hardly ever exceeded, guesses made and correct ones.
    #[pyo3(signature = (log_odds, rows, guesses, *, inside, made, share))]
    #[allow(clippy::too_many_arguments)] // columns of one table, and how it is read
    fn matched<'py>(
        &self,
        py: Python<'py>,
        log_odds: Table<'_, f64>,
        rows: Vector<'_, i64>,
        guesses: Vector<'_, i64>,
        inside: usize,
        made: usize,
        share: f64,
    ) -> PyResult<Answers<'py>> {
        let guesses = guess_list(&rows, &guesses);
        let matching = Matching {
            inside,
            made,
            share,
        };
        let log_odds = log_odds.entries();
        let found = run(py, |_| self.set.matched(log_odds, &guesses, matching))?;
        let numbers = found
            .iter()
            .flat_map(|one| [one.kept, one.made, one.correct]);
        reshaped(py, numbers.collect(), found.len(), 3)
    }

    /// Members of the set near one, as steps of `reach` radii in random directions lead to them, or
    /// from there to the boundary: a row for each.
    #[pyo3(signature = (coefficients, *, reach, count, draw))]
    fn members_near<'py>(
        &self,
        py: Python<'py>,
        coefficients: Vector<'_, f64>,
        reach: f64,
        count: u64,
        draw: u64,
    ) -> PyResult<(Answers<'py>, Answers<'py>)> {
        let coefficients = &*coefficients;
        let found = run(py, |_| {
            self.set.members_near(coefficients, reach, count, draw)
        })?;
        self.members(py, found)
    }

    /// The least mean number of correct guesses that survive tampering for an ε, over the set, with
    /// coefficients and log-odds.
    #[pyo3(signature = (rows, guesses, *, epsilon))]
    fn least_surviving<'py>(
        &self,
        py: Python<'py>,
        rows: Vector<'_, i64>,
        guesses: Vector<'_, i64>,
        epsilon: f64,
    ) -> PyResult<(f64, Answer<'py>, Answer<'py>)> {
        let guesses = guess_list(&rows, &guesses);
        let least = run(py, |interrupt| {
            self.set
                .least_surviving(&guesses, epsilon, &stop(interrupt))
        })?;
        Ok(answer(py, least))
    }

    /// The largest |log-odds| of any audited row over the set.
    fn largest_shift(&self, py: Python<'_>) -> PyResult<f64> {
        run(py, |interrupt| self.set.largest_shift(&stop(interrupt)))
    }
}

impl LogOddsSet {
    /// Coefficients and log-odds of some members, a row for each.
    fn members<'py>(
        &self,
        py: Python<'py>,
        found: Vec<(Vec<f64>, Vec<f64>)>,
    ) -> PyResult<(Answers<'py>, Answers<'py>)> {
        let count = found.len();
        let (coefficients, log_odds): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let coefficients = reshaped(py, coefficients.concat(), count, self.set.width())?;
        let log_odds = reshaped(py, log_odds.concat(), count, self.set.audited())?;
        Ok((coefficients, log_odds))
    }
}

/// Scores less a linear function of features, chosen without labels: guesses ranked by the result
/// leave a confidence set little to say.
#[pyfunction]
#[pyo3(signature = (scores, features, weights, odd, counts, *, guesses, labels, one_sided))]
#[allow(clippy::too_many_arguments)] // columns of one table, and how it is read
pub(crate) fn balanced_scores<'py>(
    py: Python<'py>,
    scores: Vector<'_, f64>,
    features: Table<'_, f64>,
    weights: Vector<'_, f64>,
    odd: Vector<'_, f64>,
    counts: Vector<'_, f64>,
    guesses: f64,
    labels: f64,
    one_sided: bool,
) -> PyResult<Answer<'py>> {
    let columns = features.columns();
    let (scores, features, weights) = (&*scores, features.entries(), &*weights);
    let (odd, counts) = (&*odd, &*counts);
    let balanced = run(py, |interrupt| {
        let balance = Balance {
            features,
            columns,
            weights,
            odd,
            counts,
            guesses,
            labels,
            one_sided,
        };
        leakbound_propensity::balanced(scores, balance, &stop(interrupt))
    })?;
    Ok(PyArray1::from_vec(py, balanced))
}

fn stop(interrupt: &Interrupt) -> impl Fn() -> bool + Sync + '_ {
    || interrupt.check().is_err()
}

fn guess_list(rows: &Vector<'_, i64>, guesses: &Vector<'_, i64>) -> Vec<Guess> {
    (rows.iter().zip(guesses.iter()))
        .map(|(&row, &guess)| Guess {
            // A negative row is out of range, and so is what becomes of it.
            row: usize::try_from(row).unwrap_or(usize::MAX),
            member: guess > 0,
        })
        .collect()
}

fn answer(py: Python<'_>, least: Least) -> (f64, Answer<'_>, Answer<'_>) {
    (
        least.value,
        PyArray1::from_vec(py, least.coefficients),
        PyArray1::from_vec(py, least.log_odds),
    )
}
