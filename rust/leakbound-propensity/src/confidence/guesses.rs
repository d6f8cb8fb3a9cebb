//! What an audit maximises over a confidence set: how much features alone may explain of guesses.

use leakbound_math::memory::spare;
use leakbound_math::poisson_binomial::Terms;
use leakbound_simd::GROUP;
use rayon::prelude::*;

use super::ascent::{FEW, Maximum, Slope};
use super::saddle::{ball, spread, tail_slopes, tilt};
use super::set::ConfidenceSet;
use crate::cholesky::dot;
use crate::error::PropensityError;
use crate::panel::Panel;

/// Log-odds beyond which a guess is certain, as [`Terms`] can hold them.
const CERTAIN: f64 = 250.0;
/// Multiplications that find the direction of largest curvature.
const POWERS: usize = 25;
/// What is added to the largest log-odds found, as a share of what the set adds to its estimate.
const ASCENT_MARGIN: f64 = 1e-4;
/// Rows whose largest log-odds are found in one go.
const BATCH: usize = 32;
/// Vectors of all guesses, and of all rows, that a search holds at once on a thread.
pub(super) const SEARCH_VECTORS: usize = 6;
/// A tail that is evidence of nothing, and is not looked into further.
const LIKELY: f64 = 0.5;
/// A guess about an audited row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    /// The row, counted from the first audited one.
    pub row: usize,
    /// Whether it is guessed a member.
    pub member: bool,
}

/// A member of the set, and what is least there.
#[derive(Debug, Clone, PartialEq)]
pub struct Least {
    /// The value.
    pub value: f64,
    /// Coefficients of the features as given.
    pub coefficients: Vec<f64>,
    /// Log-odds of the audited rows.
    pub log_odds: Vec<f64>,
}

/// Coefficients of the features as given and log-odds of the audited rows, of some members.
type Members = Vec<(Vec<f64>, Vec<f64>)>;

/// Guesses with their rows: zᵢ = Tᵢλᵢ = `base` + `panel`·w.
pub(super) struct GuessRows {
    panel: Panel,
    base: Vec<f64>,
    pub(super) correct: Vec<bool>,
}

impl GuessRows {
    pub(super) fn log_odds(&self, place: &[f64]) -> Vec<f64> {
        let mut log_odds = self.panel.times(0..self.panel.rows(), place);
        log_odds.truncate(self.base.len());
        for (z, base) in log_odds.iter_mut().zip(&self.base) {
            *z += base;
        }
        log_odds
    }

    /// Σ slopeᵢ ∂zᵢ/∂w.
    pub(super) fn gradient(&self, mut slopes: Vec<f64>) -> Vec<f64> {
        slopes.resize(self.panel.rows(), 0.0);
        let mut gradient = vec![0.0; self.panel.padded()];
        self.panel.add_weighted(&slopes, &mut gradient);
        gradient.truncate(self.panel.width());
        gradient
    }

    fn correct_count(&self) -> i64 {
        self.correct.iter().map(|&correct| i64::from(correct)).sum()
    }

    /// The directions in which Σ cᵢ(xᵢ·u)² is most positive, both ways.
    pub(super) fn curvature_directions(&self, mut curvature: Vec<f64>) -> [Vec<f64>; 2] {
        curvature.resize(self.panel.rows(), 0.0);
        let rows = 0..self.panel.rows();
        let width = self.panel.width();
        let gram = self.panel.gram(rows, &curvature);
        // By Gershgorin all eigenvalues are above −shift, so that powers find the largest.
        let entry = |j: usize, k: usize| gram[j.max(k) * width + j.min(k)];
        let shift = (0..width)
            .map(|j| (0..width).map(|k| entry(j, k).abs()).sum::<f64>())
            .fold(0.0, f64::max);
        // A start that no symmetry of the columns is blind to.
        let mut direction: Vec<f64> = (0..width).map(|j| 1.0 + (j as f64 + 1.0).sin()).collect();
        for _ in 0..POWERS {
            let next: Vec<f64> = (0..width)
                .map(|j| {
                    shift * direction[j]
                        + (0..width).map(|k| entry(j, k) * direction[k]).sum::<f64>()
                })
                .collect();
            let size = dot(&next, &next).sqrt();
            if !(size > 0.0 && size.is_finite()) {
                break;
            }
            direction = next.into_iter().map(|x| x / size).collect();
        }
        let opposite = direction.iter().map(|x| -x).collect();
        [direction, opposite]
    }
}

impl ConfidenceSet {
    /// The least ε, over the set, at which P(correct guesses ≥ those observed) exceeds `level`.
    ///
    /// Under ε-DP and log-odds λ, correct guesses are stochastically fewer than independent ones
    /// with log-odds ε + Tᵢλᵢ: a Poisson-binomial tail, exact. The search follows the slope of a
    /// saddle-point formula; values are exact. −∞ where no guess is correct. It ends once 0 is
    /// reached.
    pub fn least_epsilon(
        &self,
        guesses: &[Guess],
        level: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Least, PropensityError> {
        if !(level > 0.0 && level < 1.0) {
            return Err(PropensityError::Level { value: level });
        }
        let guess_rows = self.guess_rows(guesses)?;
        let correct = guess_rows.correct_count();
        if correct == 0 {
            let found = Maximum {
                value: f64::NEG_INFINITY,
                place: vec![0.0; self.width()],
            };
            return Ok(self.least(&found));
        }
        let epsilon = |log_odds: &[f64]| {
            let terms = Terms::from_offsets(&clip(log_odds));
            let epsilon = terms.and_then(|terms| terms.epsilon(correct, level));
            epsilon.unwrap_or(f64::NEG_INFINITY)
        };
        let rows = &guess_rows;
        let function = |place: &[f64]| -> (f64, Slope<'_>) {
            let log_odds = rows.log_odds(place);
            let epsilon = epsilon(&log_odds);
            let slope = move || {
                let tilted = tilt(&log_odds, correct);
                let mut slopes = tail_slopes(&log_odds, tilted, epsilon);
                let total: f64 = slopes.iter().sum();
                for slope in &mut slopes {
                    *slope /= total;
                }
                rows.gradient(slopes)
            };
            (-epsilon, Box::new(slope))
        };
        let centre = guess_rows.log_odds(&vec![0.0; self.width()]);
        let (at, tilted) = (epsilon(&centre), tilt(&centre, correct));
        let curvature = centre
            .iter()
            .map(|z| spread(tilted + z) - spread(at + z))
            .collect();
        let found = self.search(&guess_rows, curvature, &function, 0.0, stop)?;
        Ok(self.least(&Maximum {
            value: -found.value,
            ..found
        }))
    }

    /// The largest ln P(correct guesses ≥ those observed), over the set, if membership owes nothing
    /// to training: then a guess is correct with probability σ(Tᵢλᵢ). From ½ on a probability counts
    /// as 1, which ends the search.
    pub fn largest_log_tail(
        &self,
        guesses: &[Guess],
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<f64, PropensityError> {
        let guess_rows = self.guess_rows(guesses)?;
        let correct = guess_rows.correct_count();
        if correct == 0 {
            return Ok(0.0);
        }
        let rows = &guess_rows;
        let function = |place: &[f64]| -> (f64, Slope<'_>) {
            let log_odds = rows.log_odds(place);
            let terms = Terms::from_offsets(&clip(&log_odds));
            let tail = terms.map_or(0.0, |terms| terms.tail(correct, 0.0).log_upper());
            let slope = move || {
                let tilted = tilt(&log_odds, correct);
                rows.gradient(tail_slopes(&log_odds, tilted, 0.0))
            };
            (tail, Box::new(slope))
        };
        let centre = guess_rows.log_odds(&vec![0.0; self.width()]);
        let tilted = tilt(&centre, correct);
        let curvature = centre
            .iter()
            .map(|z| spread(tilted + z) - spread(*z))
            .collect();
        let enough = LIKELY.ln();
        let found = self.search(&guess_rows, curvature, &function, enough, stop)?;
        Ok(if found.value >= enough {
            0.0
        } else {
            found.value
        })
    }

    /// Members of the set near one: steps of `reach` times the set's radius in random directions,
    /// every other one taken to the boundary, as is one that leads out, where the boundary is found.
    /// `draw` tells draws apart. Coefficients of the features as given, and log-odds of the audited
    /// rows.
    pub fn members_near(
        &self,
        coefficients: &[f64],
        reach: f64,
        count: u64,
        draw: u64,
    ) -> Result<Members, PropensityError> {
        let from = self.place(coefficients)?;
        let reach = reach * self.squared_radius().sqrt();
        if reach == 0.0 {
            return Ok(Vec::new());
        }
        self.spare(SEARCH_VECTORS, self.audited())?;
        spare::<f64>(self.audited().saturating_mul(count as usize))?;
        let near = (0..count).into_par_iter().filter_map(|index| {
            let direction = self.random_direction(draw, index);
            let mut place: Vec<f64> = (from.iter().zip(direction))
                .map(|(w, u)| w + reach * u)
                .collect();
            if index % 2 == 0 || !self.holds(&place) {
                place = self.edge(&place).ok()?.place;
            }
            Some((self.coefficients(&place), self.log_odds(&place)))
        });
        Ok(near.collect())
    }

    /// The member of the set under which tampering leaves fewest correct guesses on average; the
    /// value is that mean.
    ///
    /// A correct guess stands with probability min(1, (1 + e^(−ε−z)) / (1 + e^−ε)), z = Tλ.
    pub fn least_surviving(
        &self,
        guesses: &[Guess],
        epsilon: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Least, PropensityError> {
        let correct: Vec<Guess> = (guesses.iter().zip(self.guess_rows(guesses)?.correct))
            .filter_map(|(guess, correct)| correct.then_some(*guess))
            .collect();
        let guess_rows = self.guess_rows(&correct)?;
        let odds = (-epsilon).exp();
        let rows = &guess_rows;
        let function = |place: &[f64]| -> (f64, Slope<'_>) {
            let log_odds = rows.log_odds(place);
            let survive = |z: f64| (1.0 + odds * (-z.max(0.0)).exp()) / (1.0 + odds);
            let value = -log_odds.iter().map(|&z| survive(z)).sum::<f64>();
            let slope = move |z: &f64| {
                if *z > 0.0 {
                    odds * (-z).exp() / (1.0 + odds)
                } else {
                    0.0
                }
            };
            let slopes = move || rows.gradient(log_odds.iter().map(slope).collect());
            (value, Box::new(slopes))
        };
        let centre = guess_rows.log_odds(&vec![0.0; self.width()]);
        let curvature = (centre.iter())
            .map(|&z| if z > 0.0 { -(-z).exp() } else { 0.0 })
            .collect();
        let found = self.search(&guess_rows, curvature, &function, f64::INFINITY, stop)?;
        Ok(self.least(&found))
    }

    /// The largest log-odds Tλ of each guess over the set: a linear function over a convex set,
    /// whose maximum is where its gradient is opposed to that of ℓ, which the ascent finds.
    fn largest_log_odds(
        &self,
        guesses: &[Guess],
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<f64>, PropensityError> {
        guesses
            .par_iter()
            .map(|&guess| {
                let guess_rows = self.guess_rows(&[guess])?;
                let gradient = guess_rows.gradient(vec![1.0]);
                let (rows, slope) = (&guess_rows, &gradient);
                let function = |place: &[f64]| -> (f64, Slope<'_>) {
                    (rows.log_odds(place)[0], Box::new(|| slope.clone()))
                };
                let starts = std::slice::from_ref(&gradient);
                let found = self.maximise(&function, starts, f64::INFINITY, stop)?;
                // What an ascent may have left.
                Ok(found.value + ASCENT_MARGIN * (found.value - guess_rows.base[0]))
            })
            .collect()
    }

    /// The largest |λ| of any audited row over the set.
    ///
    /// Rows are looked at in the order of |λ| at θ̂ plus R‖xᵢ‖, until those that are left cannot
    /// exceed the largest found: C lies in the ball of radius r with e^−ρr + ρr − 1 = ρ²R²/2, ρ the
    /// largest ‖xᵢ‖ of all rows, because the curvature of the loss falls along a ray at most as fast
    /// as e^−|xᵢ·u| (F. Bach, "Self-concordant analysis for logistic regression", 2010, Lemma 1).
    pub fn largest_shift(&self, stop: &(impl Fn() -> bool + Sync)) -> Result<f64, PropensityError> {
        self.spare(SEARCH_VECTORS, self.audited())?;
        let sizes = self.sizes();
        let longest = sizes.iter().copied().fold(0.0, f64::max);
        let reach = ball(longest, self.squared_radius());
        let radius = self.squared_radius().sqrt();
        let mut left: Vec<(f64, f64, Guess)> = (0..self.audited())
            .map(|row| {
                let slot = self.slot(row);
                let (odds, size) = (self.scores[slot], sizes[slot]);
                let guess = Guess {
                    row,
                    member: odds > 0.0,
                };
                (odds.abs() + radius * size, odds.abs() + reach * size, guess)
            })
            .collect();
        left.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut largest = 0.0_f64;
        while !left.is_empty() {
            let some: Vec<Guess> = (left.drain(..left.len().min(BATCH)))
                .flat_map(|(.., guess)| {
                    let member = !guess.member;
                    [guess, Guess { member, ..guess }]
                })
                .collect();
            let found = self.largest_log_odds(&some, stop)?;
            largest = found.into_iter().fold(largest, f64::max);
            left.retain(|row| row.1 > largest);
        }
        Ok(largest)
    }

    fn search<'f>(
        &self,
        guess_rows: &GuessRows,
        curvature: Vec<f64>,
        function: &(impl Fn(&[f64]) -> (f64, Slope<'f>) + Sync),
        enough: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Maximum, PropensityError> {
        let centre = vec![0.0; self.width()];
        let (value, slope) = function(&centre);
        if value >= enough {
            return Ok(Maximum {
                value,
                place: centre,
            });
        }
        let mut own = vec![slope()];
        own.extend(guess_rows.curvature_directions(curvature));
        let starts = self.directions(function, own, FEW);
        self.maximise(function, &starts, enough, stop)
    }

    pub(super) fn least(&self, found: &Maximum) -> Least {
        Least {
            value: found.value,
            coefficients: self.coefficients(&found.place),
            log_odds: self.log_odds(&found.place),
        }
    }

    pub(super) fn guess_rows(&self, guesses: &[Guess]) -> Result<GuessRows, PropensityError> {
        let width = self.width();
        self.spare(SEARCH_VECTORS, guesses.len())?;
        let mut panel = Panel::zeros(guesses.len().next_multiple_of(GROUP), width)?;
        let (mut base, mut correct) = (Vec::new(), Vec::new());
        let mut entries = vec![0.0; width];
        for (index, guess) in guesses.iter().enumerate() {
            if guess.row >= self.audited() {
                return Err(PropensityError::Guess {
                    index,
                    row: guess.row,
                    rows: self.audited(),
                });
            }
            let slot = self.slot(guess.row);
            let sign = if guess.member { 1.0 } else { -1.0 };
            self.panel.copy_row(slot, &mut entries);
            for (column, entry) in entries.iter().enumerate() {
                panel.set(index, column, sign * entry);
            }
            base.push(sign * self.scores[slot]);
            correct.push(self.is_member(slot) == guess.member);
        }
        Ok(GuessRows {
            panel,
            base,
            correct,
        })
    }
}

fn clip(log_odds: &[f64]) -> Vec<f64> {
    log_odds
        .iter()
        .map(|z| z.clamp(-CERTAIN, CERTAIN))
        .collect()
}
