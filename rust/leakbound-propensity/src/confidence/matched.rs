//! The members of a confidence set under which matching leaves fewest guesses correct.

use rayon::prelude::*;

use super::ascent::{MANY, Maximum, Slope};
use super::draws::{count_law, more_than, reached};
use super::guesses::{Guess, Least};
use super::set::ConfidenceSet;
use crate::error::PropensityError;

/// Standard deviations by which the number kept is put above its mean.
const ABOVE: f64 = 3.0;

/// What is guessed of what matching keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matching {
    /// The guesses that may be made, of all that are given, the most confident first.
    pub inside: usize,
    /// How many of them are made, where so many are kept.
    pub made: usize,
    /// The share of draws of what is kept that must have so many correct guesses.
    pub share: f64,
}

/// What a share of all draws reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matched {
    /// More examples than this are hardly ever kept; that they may be is reckoned with.
    pub kept: f64,
    /// No more guesses are made where no more are kept.
    pub made: f64,
    /// Correct ones in so large a share of draws; what is beyond a whole number tells members apart.
    pub correct: f64,
}

/// How many correct guesses make up for one example kept more, and for one guess more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// Of an example kept.
    pub kept: f64,
    /// Of a guess made.
    pub made: f64,
}

impl ConfidenceSet {
    /// Members of the set under which matching leaves few guesses correct in a share of all draws: θ̂,
    /// and where each ascent ended, lowest first. Values are those numbers, less what is kept and made
    /// at its price.
    ///
    /// `guesses` are all that could be made, most confident first. Matching keeps a correct one
    /// with probability min(1, e^−z) and a wrong one with min(1, e^z), z = Tλ; the first ⌈r/2⌉
    /// "member" and ⌊r/2⌋ "non-member" of those it keeps are made, or r where all say "member". A
    /// guess that is missing because too few are kept counts as wrong.
    pub fn least_matched(
        &self,
        guesses: &[Guess],
        matching: Matching,
        prices: Prices,
        stop: &(impl Fn() -> bool + Sync),
    ) -> Result<Vec<Least>, PropensityError> {
        let (ordered, sides) = Sides::of(guesses, matching);
        let rows = &self.guess_rows(&ordered)?;
        let sides = &sides;
        let function = |place: &[f64]| -> (f64, Slope<'_>) {
            let log_odds = rows.log_odds(place);
            let law = Law::of(&rows.correct, &log_odds);
            let value = -law.matched(sides, &rows.correct).worth(prices);
            let slope = move || rows.gradient(law.slopes(sides, &rows.correct, &log_odds, prices));
            (value, Box::new(slope))
        };
        let centre = vec![0.0; self.width()];
        let log_odds = rows.log_odds(&centre);
        let law = Law::of(&rows.correct, &log_odds);
        let value = law.matched(sides, &rows.correct).worth(prices);
        let worths = law.worths(sides, &rows.correct);
        let curvature = (law.chances.iter().zip(worths))
            .map(|(&chance, worth)| {
                if chance < 1.0 {
                    (prices.kept - worth) * chance
                } else {
                    0.0
                }
            })
            .collect();
        let mut own = vec![function(&centre).1()];
        own.extend(rows.curvature_directions(curvature));
        let starts = self.directions(&function, own, MANY);
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

    /// What a share of draws reaches for each row of log-odds of the audited rows.
    pub fn matched(
        &self,
        log_odds: &[f64],
        guesses: &[Guess],
        matching: Matching,
    ) -> Result<Vec<Matched>, PropensityError> {
        let (ordered, sides) = Sides::of(guesses, matching);
        let correct = self.guess_rows(&ordered)?.correct;
        let of_row = |row: &[f64]| {
            let toward = |guess: &Guess| {
                if guess.member {
                    row[guess.row]
                } else {
                    -row[guess.row]
                }
            };
            let log_odds: Vec<f64> = ordered.iter().map(toward).collect();
            Law::of(&correct, &log_odds).matched(&sides, &correct)
        };
        Ok(log_odds
            .par_chunks_exact(self.audited())
            .map(of_row)
            .collect())
    }
}

impl Matched {
    fn worth(self, prices: Prices) -> f64 {
        self.correct - prices.kept * self.kept - prices.made * self.made
    }
}

/// "Member" guesses and the others, each a range of all, most confident first, with how many of the
/// first may be made, and how many are.
struct Sides {
    sides: [(std::ops::Range<usize>, usize, usize); 2],
    share: f64,
}

impl Sides {
    /// Guesses in the order of their sides.
    fn of(guesses: &[Guess], matching: Matching) -> (Vec<Guess>, Self) {
        let (members, others): (Vec<Guess>, Vec<Guess>) =
            guesses.iter().partition(|guess| guess.member);
        let halved = |number: usize| {
            if others.is_empty() {
                (number, 0)
            } else {
                (number.div_ceil(2), number / 2)
            }
        };
        let (inside, made) = (halved(matching.inside), halved(matching.made));
        let first = members.len();
        let sides = [
            (0..first, inside.0.min(first), made.0),
            (first..guesses.len(), inside.1.min(others.len()), made.1),
        ];
        let share = matching.share;
        ([members, others].concat(), Self { sides, share })
    }

    fn made(&self) -> usize {
        self.sides.iter().map(|side| side.2).sum()
    }

    /// The guesses of each side that may be made.
    fn inside(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let start = |(range, inside, _): &(std::ops::Range<usize>, usize, usize)| {
            range.start..range.start + inside
        };
        self.sides.iter().map(start)
    }
}

/// What is kept at one member.
struct Law {
    /// The probability that each guess is.
    chances: Vec<f64>,
    /// How many are, hardly ever exceeded,
    kept: f64,
    /// no less than the probability that it is,
    exceeded: f64,
    /// and the standard deviation of the number.
    deviation: f64,
}

impl Law {
    fn of(correct: &[bool], log_odds: &[f64]) -> Self {
        let chances = (log_odds.iter().zip(correct)).map(|(&z, &correct)| keeps(z, correct));
        let chances: Vec<f64> = chances.collect();
        let mean: f64 = chances.iter().sum();
        let variance: f64 = chances.iter().map(|p| p * (1.0 - p)).sum();
        let deviation = variance.sqrt();
        let kept = mean + ABOVE * deviation;
        Self {
            exceeded: more_than(&chances, kept, ABOVE / deviation),
            chances,
            kept,
            deviation,
        }
    }

    fn matched(&self, sides: &Sides, correct: &[bool]) -> Matched {
        let mut laws = sides.inside().zip(&sides.sides).map(|(inside, side)| {
            count_law(&correct[inside.clone()], &self.chances[inside], side.2)
        });
        let both = [laws.next(), laws.next()].map(Option::unwrap_or_default);
        Matched {
            kept: self.kept,
            made: self.kept.min(sides.made() as f64),
            correct: reached(&both, sides.share + self.exceeded),
        }
    }

    /// What each guess adds to the mean number of correct ones if it is kept for sure, as its slope in
    /// the probability that it is kept.
    ///
    /// A side makes r guesses, r spread evenly over its own number ± its square root, as draws of what
    /// is kept would spread its last guess over the ranking. With cₗ the mean number kept before guess
    /// l, S(x) = P(r > x) and G(x) = E(r − x)₊, the correct ones number Σ correctₗ (G(cₗ) − G(cₗ₊₁)).
    fn worths(&self, sides: &Sides, correct: &[bool]) -> Vec<f64> {
        let mut worths = vec![0.0; correct.len()];
        for (inside, &(.., made)) in sides.inside().zip(&sides.sides) {
            let number = made as f64;
            let (low, high) = (number - number.sqrt(), number + number.sqrt());
            let beyond = |x: f64| ((high - x) / (high - low)).clamp(0.0, 1.0);
            if made == 0 {
                continue;
            }
            let mut before = 0.0;
            // S(cₗ₊₁) for each guess of the side.
            let mut chances = Vec::with_capacity(inside.len());
            for chance in &self.chances[inside.clone()] {
                before += chance;
                chances.push(beyond(before));
            }
            let (mut worth, mut next) = (0.0, 0.0);
            for (index, chance) in inside.zip(chances).rev() {
                let is = f64::from(u8::from(correct[index]));
                worth += chance * (is - next);
                next = is;
                worths[index] = worth;
            }
        }
        worths
    }

    /// The slope of −`Matched::worth` in each z, nearly.
    fn slopes(
        &self,
        sides: &Sides,
        correct: &[bool],
        log_odds: &[f64],
        prices: Prices,
    ) -> Vec<f64> {
        let short = self.kept < sides.made() as f64;
        let price = prices.kept + if short { prices.made } else { 0.0 };
        let worths = self.worths(sides, correct);
        let rows = log_odds.iter().zip(correct).zip(worths);
        rows.zip(&self.chances)
            .map(|(((&z, &correct), worth), chance)| {
                let wider = 1.0 + 0.5 * ABOVE * (1.0 - 2.0 * chance) / self.deviation.max(1.0);
                let own = (worth - price * wider) * chance;
                match correct {
                    true if z > 0.0 => own,
                    false if z < 0.0 => -own,
                    _ => 0.0,
                }
            })
            .collect()
    }
}

/// The probability that matching keeps a guess with z = Tλ.
fn keeps(z: f64, correct: bool) -> f64 {
    let against = if correct { z } else { -z };
    (-against.max(0.0)).exp()
}
