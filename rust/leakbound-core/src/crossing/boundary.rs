//! When does a Bernoulli walk cross a boundary, and for which probabilities rarely enough?

use leakbound_math::Probability;

use crate::crossing::backward::Backward;
use crate::crossing::first_crossing::{FirstCrossing, Passage};
use crate::crossing::knapsack::{by_failures, knapsack};
use crate::crossing::success_probabilities::{LogitFamily, SuccessProbabilities};
use crate::crossing::walk::Walk;
use crate::error::{AuditError, check_level, out_of_range};
use crate::interrupt::Interrupt;

/// What a calibration may drop, relative to its level.
const CALIBRATION_LOSS: f64 = 1e-14;
/// The same for the rough calibration that finds where to start the fine one.
const ROUGH_LOSS: f64 = 1e-5;
/// The rough calibration looks at every cut up to here, and then at those that lie apart by this share
/// of what is beyond.
const ROUGH_FROM: u32 = 512;
const ROUGH_SPACING: f64 = 1.0 / 32.0;
/// −ζ(½)/√(2π), the mean overshoot of a Gaussian walk, in deviations of a step.
const OVERSHOOT: f64 = 0.582_597_157_939_010_7;
/// How far a solution may lie from the base of its walk at most, in standard deviations of the
/// logit at the longest cut.
const REACH: f64 = 0.5;
/// And so near that what is dropped weighs at most about e to this times its probability there.
const DROPPED_WEIGHT: f64 = 6.0;
/// How far to move the base at once, in the same unit.
const TRUST: f64 = 32.0;
/// Steps of the walk between two looks at the interrupt.
const STEPS_PER_CHECK: usize = 256;
/// A calibration halves its bracket at the latest every so many passes.
const PASSES_PER_HALVING: u32 = 4;
/// Passes of a calibration. A start at the statistic itself arrives in two or three; sixty halvings
/// exhaust a double.
const MAX_PASSES: u32 = 1_000;

/// Passes of a calibration with failures: secants need six or so, halvings under fifty.
const MAX_SECANTS: usize = 100;
/// How near to β, relative, a calibration with failures comes.
const NEAR: f64 = 1e-12;

/// A boundary: at increasing numbers of guesses, the number of correct ones that crosses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary {
    guesses: Vec<u32>,
    thresholds: Vec<u32>,
}

impl Boundary {
    /// Cross when, after `guesses[i]` guesses, at least `thresholds[i]` are correct.
    ///
    /// Cuts that no walk can cross (threshold above the number of guesses) are dropped.
    ///
    /// # Errors
    /// Lengths that differ, or `guesses` that do not increase from 1 on.
    pub fn new(guesses: &[u32], thresholds: &[u32]) -> Result<Self, AuditError> {
        if guesses.len() != thresholds.len() {
            let (given, steps) = (thresholds.len(), guesses.len());
            return Err(AuditError::StepMismatch { given, steps });
        }
        if guesses.first() == Some(&0) || !guesses.is_sorted_by(|a, b| a < b) {
            let first = guesses.first().copied().map_or(f64::NAN, f64::from);
            return out_of_range("guesses", first, "strictly increasing from 1 on");
        }
        let (guesses, thresholds) = guesses
            .iter()
            .zip(thresholds)
            .filter(|(guesses, threshold)| threshold <= guesses)
            .unzip();
        Ok(Self {
            guesses,
            thresholds,
        })
    }

    /// Upper bound on P(cross) when guess i is correct with probability `p[i]`, independently, or
    /// each with `p[0]` if that is the only one.
    ///
    /// The relative excess over the exact value is about 1e-13 and the rounding of as many
    /// additions as there are guesses, at any size of the answer down to 1e-280.
    pub fn crossing_probability(
        &self,
        p: &[Probability],
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let steps = self.guesses.last().copied().unwrap_or(0) as usize;
        let probabilities = match p {
            &[p] => SuccessProbabilities::Equal(p),
            p if p.len() >= steps => SuccessProbabilities::Each(p.to_vec()),
            p => {
                let given = p.len();
                return Err(AuditError::StepMismatch { given, steps });
            }
        };
        // Repeat with a smaller loss until the loss no longer matters beside the answer.
        let mut loss = 1e-25;
        loop {
            let crossing =
                self.first_crossing(f64::NAN, probabilities.clone(), loss, 0.0, interrupt)?;
            let value = crossing.probability();
            // The smallest loss leaves room for the probabilities of single states above underflow.
            if loss <= CALIBRATION_LOSS * value || loss <= 1e-295 {
                return Ok(value);
            }
            loss = (CALIBRATION_LOSS * value).min(loss * 1e-30).max(1e-295);
        }
    }

    /// The largest p at which P(cross) ≤ `beta` was certified, to about 1e-13 in logit p.
    ///
    /// One walk at a base p₀ gives the crossing probability at every p near it (first crossings
    /// are reweighted by likelihood ratios, all terms positive). Rough walks over a few of the
    /// cuts find the base; as a rule a single fine walk then certifies the solution.
    ///
    /// None if the boundary is crossed with certainty at every p, or cannot be crossed.
    pub fn calibrate(
        &self,
        beta: f64,
        start: Probability,
        interrupt: &Interrupt,
    ) -> Result<Option<Probability>, AuditError> {
        let start = start.logit();
        let solution = self.calibrate_family(LogitFamily::Equal, beta, start, interrupt)?;
        Ok(solution.map(Probability::from_logit).transpose()?)
    }

    /// [`calibrate`](Self::calibrate) for any family: the largest parameter, of which none is
    /// returned where that would be.
    pub(crate) fn calibrate_family(
        &self,
        family: LogitFamily<'_>,
        beta: f64,
        start: f64,
        interrupt: &Interrupt,
    ) -> Result<Option<f64>, AuditError> {
        check_level("beta", beta)?;
        if self.guesses.is_empty() || self.thresholds.contains(&0) {
            return Ok(None);
        }
        let start = start.clamp(-FirstCrossing::MAX_LOGIT, FirstCrossing::MAX_LOGIT);
        let longest = self.guesses.last().copied().unwrap_or(1);
        let deviation = family.deviation(start, longest)?;
        let rough = self.every_few_cuts(1.0 / (deviation * f64::from(longest).sqrt()));
        let roughly = family.roughly(&rough.guesses);
        let base = rough.follow(roughly, beta, start, ROUGH_LOSS, interrupt)?;
        let base = if base.is_finite() { base } else { start };
        let solution = self.follow(family, beta, base, CALIBRATION_LOSS, interrupt)?;
        Ok(Some(solution))
    }

    /// Upper bound on P(some count plus F reaches its threshold) for any F ≥ 0 with
    /// E F ≤ `failures`·(1 − p), whatever its dependence on the walk. Head starts are followed up to
    /// `ahead`.
    ///
    /// With g(k) the probability of a crossing from a head start of k, that is the knapsack of g:
    /// F must be at least the smallest k that would have crossed.
    pub fn crossing_with_failures(
        &self,
        p: Probability,
        failures: f64,
        ahead: f64,
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let mut cuts = self.guesses.iter().zip(&self.thresholds).rev();
        let Some((&last, &threshold)) = cuts.next() else {
            return Ok(0.0);
        };
        let mut backward = Backward::new(p, last, threshold, ahead);
        for (step, (&guesses, &threshold)) in cuts.enumerate() {
            if step % STEPS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            backward.back_to(guesses);
            backward.cut(threshold);
        }
        let budget = failures * p.q() * (1.0 + 4.0 * f64::EPSILON);
        Ok(knapsack(
            by_failures(backward.into_crossing_probabilities()),
            budget,
        ))
    }

    /// The largest p of at least ½ at which P(cross) ≤ `beta` was certified, failures and all, to
    /// about 1e-12 in logit p; none if that is not so at ½.
    ///
    /// `highest` is the solution without failures, which only add to the probability.
    pub(crate) fn calibrate_with_failures(
        &self,
        beta: f64,
        highest: Probability,
        failures: f64,
        interrupt: &Interrupt,
    ) -> Result<Option<Probability>, AuditError> {
        // Where P(cross) is β, failures cost no more than failures/β on average.
        let ahead = 4.0 * failures / beta + 64.0;
        let excess = |logit: f64| -> Result<f64, AuditError> {
            let p = Probability::from_logit(logit)?;
            Ok((self.crossing_with_failures(p, failures, ahead, interrupt)? / beta).ln())
        };
        let (mut low, mut high) = (0.0, highest.logit());
        if high < low || excess(low)? > 0.0 {
            return Ok(None);
        }
        let longest = self.guesses.last().copied().unwrap_or(1);
        let deviation = SuccessProbabilities::Equal(highest)
            .deviation(longest)
            .min(1.0);
        let (mut last, mut last_excess) = (high, excess(high)?);
        if last_excess <= 0.0 {
            return Ok(Some(highest));
        }
        let mut next = high - deviation;
        for _ in 0..MAX_SECANTS {
            if !(next > low && next < high) {
                next = 0.5 * (low + high);
            }
            let next_excess = excess(next)?;
            if next_excess <= 0.0 {
                low = next;
            } else {
                high = next;
            }
            let is_near = (-2.0 * NEAR..=0.0).contains(&next_excess);
            if is_near || high - low <= 1e-13 * high.max(1.0) {
                break;
            }
            let slope = (next_excess - last_excess) / (next - last);
            (last, last_excess) = (next, next_excess);
            // A hair inside the solution.
            next -= (next_excess + NEAR) / slope;
        }
        Ok(Some(Probability::from_logit(low)?))
    }

    /// The parameter at which P(cross) ≤ `beta` holds with what is dropped, relative to `beta`,
    /// accounted for: walks from base to base until the solution is within reach of one. Where none
    /// is, as for `beta` within rounding of 1, the largest base at which it was certified, or −∞.
    fn follow(
        &self,
        family: LogitFamily<'_>,
        beta: f64,
        start: f64,
        relative_loss: f64,
        interrupt: &Interrupt,
    ) -> Result<f64, AuditError> {
        let longest = self.guesses.last().copied().unwrap_or(1);
        let loss = beta * relative_loss;
        let mut base = start;
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for pass in 1..=MAX_PASSES {
            let probabilities = family.at(base)?;
            let deviation = probabilities.deviation(longest);
            let reach = (REACH * deviation).min(DROPPED_WEIGHT / farthest(deviation, loss));
            let crossing = self.first_crossing(base, probabilities, loss, reach, interrupt)?;
            let shift = crossing.largest_shift(beta, TRUST * deviation.min(1.0));
            if shift.abs() <= reach {
                return Ok(base + shift);
            }
            // Far from the base a reweighted walk may mislead; the sign at the base does not.
            if crossing.probability() <= beta {
                low = base;
            } else {
                high = base;
            }
            let next = base + shift;
            let is_bracketed = low.is_finite() && high.is_finite();
            let is_between = next > low && next < high;
            let halves = !is_between || pass.is_multiple_of(PASSES_PER_HALVING);
            base = if is_bracketed && halves {
                0.5 * (low + high)
            } else {
                next
            };
            if base.abs() > FirstCrossing::MAX_LOGIT {
                break;
            }
        }
        Ok(low)
    }

    /// Whether P(cross) is above `beta` at this parameter, so that the solution is below it; the walk
    /// ends as soon as that is sure.
    pub(crate) fn is_crossed_above(
        &self,
        family: LogitFamily<'_>,
        parameter: f64,
        beta: f64,
        interrupt: &Interrupt,
    ) -> Result<bool, AuditError> {
        let enough = beta * (1.0 + ROUGH_LOSS);
        Ok(self.crossed(family, parameter, beta, enough, interrupt)?.0 > enough)
    }

    /// Whether P(cross) is sure to be at most `beta` at this parameter, so that the solution is not
    /// below it; says no where it is within 1e-5 of `beta`, relatively.
    pub(crate) fn is_crossed_at_most(
        &self,
        family: LogitFamily<'_>,
        parameter: f64,
        beta: f64,
        interrupt: &Interrupt,
    ) -> Result<bool, AuditError> {
        let (absorbed, dropped) = self.crossed(family, parameter, beta, beta, interrupt)?;
        Ok(absorbed + dropped <= beta)
    }

    /// P(cross) at this parameter, up to where it is above `enough`, and what it may be too small by.
    fn crossed(
        &self,
        family: LogitFamily<'_>,
        parameter: f64,
        beta: f64,
        enough: f64,
        interrupt: &Interrupt,
    ) -> Result<(f64, f64), AuditError> {
        let probabilities = family.at(parameter)?;
        let longest = self.guesses.last().copied().unwrap_or(1);
        let operations = probabilities.operations(self.guesses.len(), longest).max(1);
        let mut walk = Walk::new(beta * ROUGH_LOSS / (2 * operations) as f64, 0.0);
        let (mut absorbed, mut states, mut last) = (0.0, Vec::new(), 0);
        for (step, (&guesses, &threshold)) in self.guesses.iter().zip(&self.thresholds).enumerate()
        {
            if step % STEPS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            probabilities.advance(&mut walk, last, guesses);
            last = guesses;
            states.clear();
            walk.absorb(threshold, &mut states);
            absorbed += states.iter().sum::<f64>();
            if absorbed > enough || walk.is_over() {
                break;
            }
        }
        let terms = f64::from(longest) + self.guesses.len() as f64;
        let rounding = walk.rounding + f64::EPSILON * terms;
        Ok((absorbed, walk.lost + (absorbed + walk.lost) * rounding))
    }

    /// Cuts that lie ever farther apart, with lower thresholds where some are left out, so that they
    /// are crossed about as often as all together.
    ///
    /// A walk looked at every s guesses crosses a line as one looked at always crosses one that is
    /// higher by [`OVERSHOOT`] of the `deviation` of s guesses (Siegmund 1985, chapter X).
    fn every_few_cuts(&self, deviation: f64) -> Self {
        let last = self.guesses.len() - 1;
        let (mut kept, mut before, mut next) = (0, 0, 0);
        let (mut guesses, mut thresholds) = (Vec::new(), Vec::new());
        for (index, (&cut, &threshold)) in self.guesses.iter().zip(&self.thresholds).enumerate() {
            if cut >= next || index == last {
                let wider = f64::from(cut - kept).sqrt() - f64::from(cut - before).sqrt();
                let lower = (OVERSHOOT * deviation * wider).round() as u32;
                guesses.push(cut);
                thresholds.push(threshold.saturating_sub(lower).max(1));
                let beyond = f64::from(cut.saturating_sub(ROUGH_FROM));
                next = cut.saturating_add((beyond * ROUGH_SPACING).ceil() as u32);
                kept = cut;
            }
            before = cut;
        }
        Self {
            guesses,
            thresholds,
        }
    }

    /// The law of the first crossing at the parameter `base`, dropping mass at most `loss` on the
    /// way, accounted for at shifts of the logits up to `reach`.
    fn first_crossing(
        &self,
        base: f64,
        probabilities: SuccessProbabilities,
        loss: f64,
        reach: f64,
        interrupt: &Interrupt,
    ) -> Result<FirstCrossing, AuditError> {
        // Each operation drops at most a kernel's tails and one trim.
        let longest = self.guesses.last().copied().unwrap_or(1);
        let operations = probabilities.operations(self.guesses.len(), longest).max(1);
        let mut walk = Walk::new(loss / (2 * operations) as f64, reach);
        let mut crossing = FirstCrossing::new(base, probabilities);
        let mut last = 0;
        for (step, (&guesses, &threshold)) in self.guesses.iter().zip(&self.thresholds).enumerate()
        {
            if step % STEPS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            crossing
                .success_probabilities()
                .advance(&mut walk, last, guesses);
            last = guesses;
            let start = crossing.masses.len();
            let lowest = walk.absorb(threshold, &mut crossing.masses);
            if crossing.masses.len() > start {
                crossing.passages.push(Passage {
                    guesses,
                    lowest,
                    start,
                });
            }
            if walk.is_over() {
                break;
            }
        }
        crossing.close(walk.lost, walk.rounding);
        Ok(crossing)
    }
}

/// How many correct guesses from their mean paths of probability `loss` lie, by Bernstein's
/// inequality exp(−d²/(2v + 2d/3)), where the logit has the given standard deviation 1/√v.
fn farthest(deviation: f64, loss: f64) -> f64 {
    let (rarity, variance) = (-loss.ln(), deviation.powi(-2));
    rarity / 3.0 + (rarity * rarity / 9.0 + 2.0 * rarity * variance).sqrt()
}
