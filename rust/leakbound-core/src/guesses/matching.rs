//! Audits of matched examples, replicate by replicate: how many are kept, and how many guesses of
//! a fixed number are correct.
//!
//! Members and non-members are given, and example i is a member with log-odds λᵢ given its
//! features. A member is kept with probability min(1, e^−λ), a non-member with min(1, e^λ): given
//! the features and the flags of what is kept, the membership of the kept examples is independent
//! and fair, since π e^−λ = 1 − π. Any audit of one run then applies to them.

use leakbound_math::MathError;
use leakbound_math::memory::{filled, listed, room};
use rayon::prelude::*;

use crate::error::{AuditError, check_examples};
use crate::interrupt::Interrupt;

/// Examples whose membership is given, in an order that says nothing about it.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Higher for likelier members; ±∞ allowed.
    pub scores: &'a [f64],
    /// Membership of each.
    pub member: &'a [bool],
}

/// How the kept examples are guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guessing {
    /// Guesses to make, all where fewer examples are kept.
    pub guesses: u32,
    /// Guess members only: the top `guesses`. Otherwise the top ⌈r/2⌉ are guessed members and the
    /// bottom ⌊r/2⌋ not.
    pub one_sided: bool,
    /// Rank by the residual of the scores on λ, fitted by least squares to the kept examples,
    /// instead of the scores.
    pub residual: bool,
}

/// What a fixed number of guesses about the kept examples gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchedCounts {
    /// Examples kept.
    pub kept: u32,
    /// Guesses made.
    pub guesses: u32,
    /// Correct ones among them.
    pub correct: u32,
}

impl MatchedCounts {
    /// Where nothing is kept.
    const NONE: Self = Self {
        kept: 0,
        guesses: 0,
        correct: 0,
    };
}

/// Counts for every row of log-odds (a replicate of the propensity model) and every row of
/// uniforms (a draw of what is kept), the draws of a replicate side by side.
///
/// Tied examples come in the order given. Domain: log-odds and uniforms hold whole rows of as many
/// numbers as there are examples; no NaN. The result does not depend on the number of threads.
/// Cost: O(m) for each pair of rows.
///
/// # Errors
/// No example, lengths that do not fit, no memory, or an interrupt.
pub fn matched_counts(
    observed: Observed<'_>,
    log_odds: &[f64],
    uniforms: &[f64],
    guessing: Guessing,
    interrupt: &Interrupt,
) -> Result<Vec<MatchedCounts>, AuditError> {
    let examples = observed.scores.len();
    check_examples(examples, observed.member.len())?;
    for given in [log_odds.len(), uniforms.len()] {
        if !given.is_multiple_of(examples) {
            return Err(AuditError::StepMismatch {
                given,
                steps: examples,
            });
        }
    }
    // U < e^−Sλ, without an exponential for each replicate. Unless the residual ranks, what is kept
    // changes no order, so that examples are ranked once.
    let order = if guessing.residual {
        listed(examples, 0..examples)?
    } else {
        ranking(observed.scores)?
    };
    let in_order = |values: &[f64]| listed(examples, order.iter().map(|&place| values[place]));
    let scores = in_order(observed.scores)?;
    let member = listed(examples, order.iter().map(|&place| observed.member[place]))?;
    let mut margins = filled(uniforms.len(), 0.0)?;
    margins
        .par_chunks_exact_mut(examples)
        .zip(uniforms.par_chunks_exact(examples))
        .for_each(|(margins, drawn)| {
            for (margin, &place) in margins.iter_mut().zip(&order) {
                *margin = -drawn[place].ln();
            }
        });
    let draws = uniforms.len() / examples;
    let mut counts = filled(log_odds.len() / examples * draws, MatchedCounts::NONE)?;
    // Without draws there are no rows of counts.
    (counts.par_chunks_exact_mut(draws.max(1)))
        .zip(log_odds.par_chunks_exact(examples))
        .try_for_each(|(counts, odds)| {
            let odds = in_order(odds)?;
            let towards = |(&odds, &member): (&f64, &bool)| if member { odds } else { -odds };
            let against = listed(examples, odds.iter().zip(&member).map(towards))?;
            let mut kept = room(examples)?;
            for (found, drawn) in counts.iter_mut().zip(margins.chunks_exact(examples)) {
                interrupt.check()?;
                kept.clear();
                kept.extend((0..examples).filter(|&place| against[place] < drawn[place]));
                if guessing.residual {
                    rank_by_residual(&mut kept, &scores, &odds)?;
                }
                *found = count(&kept, &member, guessing);
            }
            Ok::<_, AuditError>(())
        })?;
    Ok(counts)
}

/// The places of all examples, the likeliest member first, and of equal scores the first.
fn ranking(scores: &[f64]) -> Result<Vec<usize>, MathError> {
    let mut order = listed(scores.len(), 0..scores.len())?;
    order.sort_unstable_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    Ok(order)
}

/// Ranks places by what scores say beyond λ, as a line through them has it.
fn rank_by_residual(kept: &mut [usize], scores: &[f64], log_odds: &[f64]) -> Result<(), MathError> {
    let slope = slope(kept, scores, log_odds);
    let beyond = |&place: &usize| (scores[place] - slope * log_odds[place], place);
    let mut ranked = listed(kept.len(), kept.iter().map(beyond))?;
    ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (place, (_, next)) in kept.iter_mut().zip(ranked) {
        *place = next;
    }
    Ok(())
}

/// The least-squares slope of scores on log-odds where scores are finite; 0 where it is undefined.
fn slope(kept: &[usize], scores: &[f64], log_odds: &[f64]) -> f64 {
    let finite = || kept.iter().filter(|&&place| scores[place].is_finite());
    let (mut number, mut odds, mut total) = (0.0_f64, 0.0, 0.0);
    for &place in finite() {
        number += 1.0;
        odds += log_odds[place];
        total += scores[place];
    }
    let (centre, level) = (odds / number, total / number);
    let (mut spread, mut both) = (0.0, 0.0);
    for &place in finite() {
        let off = log_odds[place] - centre;
        spread += off * off;
        both += off * (scores[place] - level);
    }
    // Below this the log-odds are all the same but for rounding.
    if spread > 1e-24 * number {
        both / spread
    } else {
        0.0
    }
}

/// Guesses about places in order, the likeliest members first.
fn count(kept: &[usize], member: &[bool], guessing: Guessing) -> MatchedCounts {
    let guesses = kept.len().min(guessing.guesses as usize);
    let top = if guessing.one_sided {
        guesses
    } else {
        guesses.div_ceil(2)
    };
    let members = |part: &[usize]| part.iter().filter(|&&place| member[place]).count();
    let bottom = &kept[kept.len() - (guesses - top)..];
    let correct = members(&kept[..top]) + bottom.len() - members(bottom);
    // At most the number of examples, which was checked to fit.
    let [kept, guesses, correct] = [kept.len(), guesses, correct].map(|number| number as u32);
    MatchedCounts {
        kept,
        guesses,
        correct,
    }
}

#[cfg(test)]
mod tests {
    use leakbound_math::stream::{Purpose, Stream};
    use proptest::prelude::*;

    use super::*;

    fn plain(guesses: u32, one_sided: bool) -> Guessing {
        Guessing {
            guesses,
            one_sided,
            residual: false,
        }
    }

    fn once(
        scores: &[f64],
        member: &[bool],
        log_odds: &[f64],
        uniforms: &[f64],
        guessing: Guessing,
    ) -> MatchedCounts {
        let observed = Observed { scores, member };
        matched_counts(
            observed,
            log_odds,
            uniforms,
            guessing,
            &Interrupt::default(),
        )
        .unwrap()[0]
    }

    #[test]
    fn ranks_that_do_not_move_are_counted_as_those_that_might() {
        // With equal log-odds the line is flat, so that both ways rank by the scores, ties included.
        let mut stream = Stream::new(Purpose::Games, 0, 0);
        for examples in [1, 2, 7, 50] {
            let scores: Vec<f64> = (0..examples)
                .map(|_| (4.0 * stream.uniform()).floor())
                .collect();
            let member: Vec<bool> = (0..examples).map(|_| stream.coin()).collect();
            let uniforms: Vec<f64> = (0..examples).map(|_| stream.uniform()).collect();
            for odds in [-1.5, 0.0, 0.4] {
                for guesses in [1, 3, 40] {
                    for one_sided in [false, true] {
                        let count = |residual| {
                            let guessing = Guessing {
                                guesses,
                                one_sided,
                                residual,
                            };
                            once(&scores, &member, &vec![odds; examples], &uniforms, guessing)
                        };
                        assert_eq!(count(false), count(true));
                    }
                }
            }
        }
    }

    #[test]
    fn a_residual_is_free_of_the_shift() {
        // Scores are 10 λ, but for one unit on members: only the residual sees them.
        let log_odds: Vec<f64> = (0..200).map(|i| f64::from(i % 20) / 10.0 - 1.0).collect();
        let member: Vec<bool> = (0..200).map(|i| (i / 20) % 2 == 0).collect();
        let unit = |&is: &bool| if is { 1.0 } else { 0.0 };
        let scores: Vec<f64> = log_odds
            .iter()
            .zip(&member)
            .map(|(odds, is)| 10.0 * odds + unit(is))
            .collect();
        let uniforms = [0.2; 200];
        let raw = once(&scores, &member, &log_odds, &uniforms, plain(100, false));
        let guessing = Guessing {
            residual: true,
            ..plain(100, false)
        };
        let residual = once(&scores, &member, &log_odds, &uniforms, guessing);
        assert_eq!(residual.correct, 100);
        assert!(raw.correct < 60);
        assert_eq!(raw.kept, residual.kept);
    }

    #[test]
    fn infinite_scores_lead_and_do_not_spoil_the_line() {
        let scores = [f64::INFINITY, 1.0, 2.0, 3.0, f64::NEG_INFINITY];
        let member = [true, false, true, true, false];
        let guessing = Guessing {
            residual: true,
            ..plain(2, false)
        };
        let odds = [0.1, -0.3, 0.2, 0.3, -0.4];
        assert_eq!(
            once(&scores, &member, &odds, &[0.1; 5], guessing).correct,
            2
        );
    }

    #[test]
    fn fewer_kept_than_guesses_means_that_all_are_guessed() {
        let counts = once(
            &[2.0, 1.0],
            &[true, true],
            &[50.0, 0.0],
            &[0.5; 2],
            plain(9, true),
        );
        assert_eq!((counts.kept, counts.guesses, counts.correct), (1, 1, 1));
    }

    #[test]
    fn lengths_must_fit() {
        let observed = Observed {
            scores: &[1.0, 2.0],
            member: &[true, false],
        };
        let run = |odds: &[f64], uniforms: &[f64]| {
            matched_counts(
                observed,
                odds,
                uniforms,
                plain(1, true),
                &Interrupt::default(),
            )
        };
        assert!(matches!(
            run(&[0.0; 3], &[0.5; 2]),
            Err(AuditError::StepMismatch { given: 3, steps: 2 })
        ));
        assert_eq!(run(&[0.0; 6], &[0.5; 4]).unwrap().len(), 6);
        let stopped = Interrupt::default();
        stopped.request();
        let counts = matched_counts(observed, &[0.0; 2], &[0.5; 2], plain(1, true), &stopped);
        assert_eq!(counts, Err(AuditError::Interrupted));
    }

    proptest! {
        /// The slow and obvious way: keep, sort, guess, count.
        #[test]
        fn counts_are_those_of_a_sort(
            rows in prop::collection::vec((0_i8..6, any::<bool>(), -3.0..3.0_f64, 0.0..1.0_f64), 1..60),
            guesses in 0_u32..70,
            one_sided: bool,
        ) {
            let scores: Vec<f64> = rows.iter().map(|row| f64::from(row.0)).collect();
            let member: Vec<bool> = rows.iter().map(|row| row.1).collect();
            let odds: Vec<f64> = rows.iter().map(|row| row.2).collect();
            let uniforms: Vec<f64> = rows.iter().map(|row| row.3).collect();
            let found = once(&scores, &member, &odds, &uniforms, plain(guesses, one_sided));
            let mut kept: Vec<_> = rows
                .iter()
                .filter(|row| row.3 < (if row.1 { -row.2 } else { row.2 }).exp().min(1.0))
                .collect();
            kept.sort_by_key(|row| -row.0);
            let made = kept.len().min(guesses as usize);
            let top = if one_sided { made } else { made.div_ceil(2) };
            let right = kept[..top].iter().filter(|row| row.1).count()
                + kept[kept.len() - (made - top)..].iter().filter(|row| !row.1).count();
            prop_assert_eq!(found.kept as usize, kept.len());
            prop_assert_eq!(found.guesses as usize, made);
            prop_assert_eq!(found.correct as usize, right);
        }
    }
}
