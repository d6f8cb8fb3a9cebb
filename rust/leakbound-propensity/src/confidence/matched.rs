//! The members of a confidence set under which matching leaves fewest guesses correct.

use super::ascent::{Maximum, Slope};
use super::guesses::{Guess, Least};
use super::set::ConfidenceSet;
use crate::error::PropensityError;

impl ConfidenceSet {
    /// Members of the set under which matching leaves few of `kept` guesses correct: θ̂, and where
    /// each ascent ended, lowest first. Values are mean numbers of correct guesses, less `price` for
    /// each example that is kept, of which a bound knows that more of them prove less.
    ///
    /// `guesses` are all that could be made, most confident first. Matching keeps a correct one
    /// with probability min(1, e^−z) and a wrong one with min(1, e^z), z = Tλ; the first ⌈kept/2⌉
    /// "member" and ⌊kept/2⌋ "non-member" of those it keeps are made, or `kept` where all say
    /// "member".
    pub fn least_matched(
        &self,
        guesses: &[Guess],
        kept: usize,
        price: f64,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<Least>, PropensityError> {
        let (members, others): (Vec<Guess>, Vec<Guess>) =
            guesses.iter().partition(|guess| guess.member);
        let top = if others.is_empty() {
            kept
        } else {
            kept.div_ceil(2)
        };
        let first = members.len();
        let ordered = self.guess_rows(&[members, others].concat())?;
        let sides = [(0..first, top), (first..guesses.len(), kept - top)];
        let priced = |log_odds: &[f64]| {
            let (value, mut worths) = expected_matched_correct(&ordered.correct, log_odds, &sides);
            let chances = (log_odds.iter().zip(&ordered.correct)).map(|(&z, &c)| keeps(z, c));
            for worth in &mut worths {
                *worth -= price;
            }
            (value - price * chances.sum::<f64>(), worths)
        };
        let rows = &ordered;
        let function = |place: &[f64]| -> (f64, Slope<'_>) {
            let log_odds = rows.log_odds(place);
            let (value, worths) = priced(&log_odds);
            let slope = move || {
                let slopes = (log_odds.iter().zip(&rows.correct).zip(worths))
                    .map(|((&z, &correct), worth)| match correct {
                        true if z > 0.0 => worth * (-z).exp(),
                        false if z < 0.0 => -worth * z.exp(),
                        _ => 0.0,
                    })
                    .collect();
                rows.gradient(slopes)
            };
            (-value, Box::new(slope))
        };
        let centre = vec![0.0; self.width()];
        let log_odds = ordered.log_odds(&centre);
        let (value, worths) = priced(&log_odds);
        let curvature = (log_odds.iter().zip(&ordered.correct).zip(worths))
            .map(|((&z, &correct), worth)| {
                let chance = keeps(z, correct);
                if chance < 1.0 { -worth * chance } else { 0.0 }
            })
            .collect();
        let mut own = vec![function(&centre).1()];
        own.extend(ordered.curvature_directions(curvature));
        let starts = self.directions(&function, own);
        let mut found = self.ascents(&function, &starts, f64::INFINITY, stop)?;
        found.sort_by(|a, b| b.value.total_cmp(&a.value));
        if let Some(outer) = found.first() {
            let inside = self.inside(&function, outer, f64::INFINITY, stop)?;
            found.extend(inside);
        }
        let estimate = Maximum {
            value: -value,
            place: centre,
        };
        let all = std::iter::once(&estimate).chain(&found);
        Ok(all
            .map(|found| Least {
                value: -found.value,
                ..self.least(found)
            })
            .collect())
    }
}

/// The probability that matching keeps a guess with z = Tλ.
fn keeps(z: f64, correct: bool) -> f64 {
    let against = if correct { z } else { -z };
    (-against.max(0.0)).exp()
}

/// How many of the guesses that matching keeps first are correct on average, and what each guess
/// adds to that if it is kept for sure, as its slope in the probability that it is kept.
///
/// A side makes r guesses, r spread evenly over its own number ± its square root, as draws of what is
/// kept would spread its last guess over the ranking. With cₗ the mean number kept before guess l,
/// S(x) = P(r > x) and G(x) = E(r − x)₊, the correct ones number Σ correctₗ (G(cₗ) − G(cₗ₊₁)).
fn expected_matched_correct(
    correct: &[bool],
    log_odds: &[f64],
    sides: &[(std::ops::Range<usize>, usize)],
) -> (f64, Vec<f64>) {
    let mut total = 0.0;
    let mut worths = vec![0.0; correct.len()];
    for (range, number) in sides {
        let number = *number as f64;
        let (low, high) = (number - number.sqrt(), number + number.sqrt());
        let beyond = |x: f64| ((high - x) / (high - low)).clamp(0.0, 1.0);
        let room = |x: f64| {
            if x <= low {
                number - x
            } else {
                (high - x).max(0.0).powi(2) / (2.0 * (high - low))
            }
        };
        if number == 0.0 {
            continue;
        }
        let mut before = 0.0;
        // S(cₗ₊₁) for each guess of the side.
        let mut chances = Vec::with_capacity(range.len());
        for index in range.clone() {
            let after = before + keeps(log_odds[index], correct[index]);
            if correct[index] {
                total += room(before) - room(after);
            }
            chances.push(beyond(after));
            before = after;
        }
        let (mut worth, mut next) = (0.0, 0.0);
        for (index, chance) in range.clone().zip(chances).rev() {
            let is = f64::from(u8::from(correct[index]));
            worth += chance * (is - next);
            next = is;
            worths[index] = worth;
        }
    }
    (total, worths)
}
