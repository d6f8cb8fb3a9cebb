//! The members of a confidence set under which matching leaves fewest guesses correct.

use rayon::prelude::*;

use super::ascent::{MANY, Maximum, Slope};
use super::guesses::{Guess, Least};
use super::set::ConfidenceSet;
use crate::error::PropensityError;

/// Standard deviations by which the number kept is put above its mean.
const ABOVE: f64 = 2.5;
/// Probabilities that are left out, always to the side that proves less.
const TINY: f64 = 1e-13;

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

/// No less than the probability that more are kept, by Chernoff's bound.
fn more_than(chances: &[f64], kept: f64, tilt: f64) -> f64 {
    if !tilt.is_finite() {
        return 0.0;
    }
    let cumulant = chances.iter().map(|p| (p * tilt.exp_m1()).ln_1p());
    (cumulant.sum::<f64>() - tilt * kept).exp()
}

/// The probability that matching keeps a guess with z = Tλ.
fn keeps(z: f64, correct: bool) -> f64 {
    let against = if correct { z } else { -z };
    (-against.max(0.0)).exp()
}

/// P(V = v) for v from 0 to `made`, V how many are correct of the first `made` guesses kept, from below
/// as regards large V.
///
/// V ≥ v if and only if v correct ones are kept before `made` − v + 1 wrong ones are. What is kept of
/// the correct guesses is independent of what is kept of the wrong ones, so that with N correct
/// and M wrong ones kept among the first l, and W the wrong ones, the probability is
///
/// ```text
/// Σ_{l ∈ W} P(M_{l−1} = made − v) kₗ P(N_l ≥ v) + P(M ≤ made − v) P(N ≥ v).
/// ```
fn count_law(correct: &[bool], chances: &[f64], made: usize) -> Vec<f64> {
    if made == 0 {
        return vec![1.0];
    }
    // P(V ≥ v), P(N ≥ v) and P(M = j). Outside of their windows tails are 1 and 0 and M has no mass.
    let mut reached = vec![0.0; made + 2];
    let (mut tail, mut mass) = (vec![0.0; made + 2], vec![0.0; made + 2]);
    (tail[0], mass[0]) = (1.0, 1.0);
    let (mut sure, mut most) = (0, 0);
    let (mut fewest, mut widest) = (0, 0);
    for (&correct, &chance) in correct.iter().zip(chances) {
        if sure + fewest >= made {
            break;
        }
        if correct {
            for v in (sure + 1..=(most + 1).min(made)).rev() {
                tail[v] += chance * (tail[v - 1] - tail[v]);
            }
            if most < made && tail[most + 1] > TINY {
                most += 1;
            }
            while sure < most && tail[sure + 1] > 1.0 - TINY {
                sure += 1;
            }
        } else {
            for j in fewest..=widest.min(made - 1) {
                let v = made - j;
                reached[v] += mass[j] * chance * tail[v];
            }
            for j in (fewest + 1..=(widest + 1).min(made)).rev() {
                mass[j] += chance * (mass[j - 1] - mass[j]);
            }
            mass[fewest] *= 1.0 - chance;
            if widest < made && mass[widest + 1] > TINY {
                widest += 1;
            }
            while fewest < widest && mass[fewest] < TINY {
                fewest += 1;
            }
        }
    }
    let mut at_most = 0.0;
    let mut law = vec![0.0; made + 1];
    for j in fewest..=made {
        at_most += mass[j];
        reached[made - j] += at_most * tail[made - j];
    }
    reached[0] = 1.0;
    for v in 0..=made {
        law[v] = (reached[v] - reached[v + 1]).max(0.0);
    }
    law
}

/// The largest v with P(V ≥ v) ≥ `share`, V the sum of two independent numbers, and the part of the way
/// to v + 1 on which the probability falls to that.
fn reached(laws: &[Vec<f64>; 2], share: f64) -> f64 {
    let [first, second] = laws.each_ref().map(|law| {
        let low = law.iter().position(|&p| p > TINY).unwrap_or(0);
        let high = law
            .iter()
            .rposition(|&p| p > TINY)
            .map_or(low, |last| last + 1);
        (low, &law[low..high.min(law.len())])
    });
    let mut sums = vec![0.0; first.1.len() + second.1.len()];
    for (i, p) in first.1.iter().enumerate() {
        for (j, q) in second.1.iter().enumerate() {
            sums[i + j] += p * q;
        }
    }
    let mut tail = 0.0;
    for (index, mass) in sums.iter().enumerate().rev() {
        if tail + mass >= share {
            let part = (tail + mass - share) / mass;
            return (first.0 + second.0 + index) as f64 + part.min(1.0 - f64::EPSILON);
        }
        tail += mass;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECT: [bool; 9] = [true, false, true, true, false, true, false, true, true];
    const CHANCES: [f64; 9] = [0.9, 0.2, 1.0, 0.4, 0.7, 0.1, 1.0, 0.6, 0.3];

    /// Each way to keep some of the guesses, with its probability.
    fn ways() -> impl Iterator<Item = (Vec<bool>, f64)> {
        (0..1 << CHANCES.len()).map(|way: usize| {
            let kept: Vec<bool> = (0..CHANCES.len()).map(|i| way >> i & 1 == 1).collect();
            let chances = kept.iter().zip(CHANCES);
            let chance: f64 = chances
                .map(|(&is, p)| if is { p } else { 1.0 - p })
                .product();
            (kept, chance)
        })
    }

    fn law(made: usize) -> Vec<f64> {
        let mut law = vec![0.0; made + 1];
        for (kept, chance) in ways() {
            let correct = CORRECT.iter().zip(kept).filter(|(_, kept)| *kept);
            law[correct.take(made).filter(|(correct, _)| **correct).count()] += chance;
        }
        law
    }

    #[test]
    fn the_law_of_correct_guesses_is_that_of_all_ways_to_keep_some() {
        for made in 0..=CHANCES.len() {
            let found = count_law(&CORRECT, &CHANCES, made);
            assert_eq!(found.len(), made + 1);
            for (found, expected) in found.iter().zip(law(made)) {
                assert!(
                    (found - expected).abs() < 1e-11,
                    "{made}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn two_sides_reach_what_all_ways_reach() {
        let laws = [
            count_law(&CORRECT, &CHANCES, 3),
            count_law(&CORRECT, &CHANCES, 4),
        ];
        let (first, second) = (law(3), law(4));
        for share in [0.001, 0.2, 0.5, 0.9, 0.999] {
            let found = reached(&laws, share);
            let tail = |least: usize| -> f64 {
                let pairs = (0..first.len()).flat_map(|i| (0..second.len()).map(move |j| (i, j)));
                let here = pairs.filter(|(i, j)| i + j >= least);
                here.map(|(i, j)| first[i] * second[j]).sum()
            };
            let whole = found as usize;
            assert!(
                tail(whole) >= share - 1e-9 && tail(whole + 1) < share,
                "{share}: {found}"
            );
        }
        assert_eq!(reached(&laws, 1.5), 0.0);
    }

    #[test]
    fn more_are_kept_no_more_often_than_is_reckoned_with() {
        let often = |most: f64| -> f64 {
            let more =
                ways().filter(|(kept, _)| kept.iter().filter(|&&is| is).count() as f64 > most);
            more.map(|(_, chance)| chance).sum()
        };
        for (most, tilt) in [(4.0, 0.1), (5.2, 0.5), (6.5, 1.0), (8.5, 2.0)] {
            assert!(often(most) <= more_than(&CHANCES, most, tilt));
        }
        assert!(more_than(&CHANCES, 8.5, 2.0) < 0.1);
        assert_eq!(more_than(&[1.0, 1.0], 2.0, f64::INFINITY), 0.0);
    }
}
