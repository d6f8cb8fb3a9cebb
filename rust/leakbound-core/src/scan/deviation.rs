//! The largest deviation of a cut from odds of its own, and where it reaches a target.

use leakbound_math::logistic::expit_both;
use leakbound_math::{MathError, Probability};

use crate::error::AuditError;
use crate::guesses::path::Cut;
use crate::interrupt::Interrupt;
use crate::scan::statistic::{divergence, divergence_bounds, is_above};
use crate::sum::CompensatedSum;

/// Values of ε looked at: every probability is then a normal number.
const MAX_EPSILON: f64 = 400.0;
/// Newton's steps and bisections: the bracket alone needs sixty.
const MAX_STEPS: usize = 128;
/// Where the search for the statistic stops, in units of ε.
const TOLERANCE: f64 = 1e-15;
/// Share of the target that the largest deviation is thought to have at least, after a first step.
const LIKELY: f64 = 0.95;
/// Values of ε so near to each other that few cuts can have the largest deviation at both.
const NEAR: f64 = 1e-6;
/// Guesses whose probabilities are computed at once.
const BLOCK: usize = 64;
/// The start of a search looks at every cut up to here, and then at those that lie apart by this share
/// of what is beyond.
const ROUGH_FROM: u32 = 128;
const ROUGH_SPACING: f64 = 1.0 / 16.0;
/// Guesses between two of them whose offsets stand for all.
const SAMPLED: usize = 16;
/// How near to its end, in units of ε, the start of a search comes, in how many steps at most.
const ROUGH_TOLERANCE: f64 = 1e-3;
const ROUGH_STEPS: usize = 16;

/// Sums over the first guesses of a path, at one ε.
pub(crate) struct PrefixSums<'a> {
    offsets: &'a [f64],
    epsilon: f64,
    done: usize,
    /// pᵢ and 1 − pᵢ of the guesses around `done`.
    block: [(f64, f64); BLOCK],
    /// Σ pᵢ and Σ (1 − pᵢ).
    right: CompensatedSum,
    wrong: CompensatedSum,
    /// Σ pᵢ(1 − pᵢ), the derivative of the first in ε.
    variance: f64,
}

impl<'a> PrefixSums<'a> {
    pub(crate) fn new(offsets: &'a [f64], epsilon: f64) -> Self {
        Self {
            offsets,
            epsilon,
            done: 0,
            block: [(0.0, 0.0); BLOCK],
            right: CompensatedSum::default(),
            wrong: CompensatedSum::default(),
            variance: 0.0,
        }
    }

    /// The mean probability of the first `guesses` guesses, no fewer than asked for before.
    pub(crate) fn up_to(&mut self, guesses: u32) -> Result<Probability, MathError> {
        for index in self.done..guesses as usize {
            let place = index % BLOCK;
            if place == 0 {
                let ahead = self.block.iter_mut().zip(&self.offsets[index..]);
                ahead.for_each(|(both, offset)| *both = expit_both(self.epsilon + offset));
            }
            let (p, q) = self.block[place];
            self.right.add(p);
            self.wrong.add(q);
            self.variance += p * q;
        }
        self.done = guesses as usize;
        mean_of(self.right.value(), self.wrong.value(), guesses)
    }
}

/// The largest ε that some cut refutes at deviation κ.
pub(crate) struct Search<'a> {
    pub(crate) offsets: &'a [f64],
    pub(crate) cuts: &'a [Cut],
    /// √(2κ)
    pub(crate) target: f64,
}

/// The cut that deviates most at one ε.
#[derive(Clone, Copy)]
struct Deviation {
    /// √(2 r·KL); it falls with ε, nearly linearly.
    root: f64,
    slope: f64,
    cut: Cut,
}

/// The largest deviation at one ε, and the cuts that can have it within [`NEAR`] of there.
struct Largest {
    epsilon: f64,
    deviation: Option<Deviation>,
    /// Those cuts, in order; none if they are not known.
    rivals: Vec<Cut>,
}

/// Where the largest deviation reaches the target: at `low` it does, at `high` it does not.
struct Bracket {
    low: f64,
    high: f64,
    /// How far a step over the solution goes, in units of the tolerance.
    back: f64,
}

impl Default for Bracket {
    fn default() -> Self {
        Self {
            low: -MAX_EPSILON,
            high: MAX_EPSILON,
            back: 1.0,
        }
    }
}

impl Bracket {
    /// Narrows the bracket by what was found at ε; the next ε to look at, or none if that was it.
    fn next(&mut self, epsilon: f64, largest: Option<Deviation>, target: f64) -> Option<f64> {
        if largest.is_some_and(|deviation| deviation.root >= target) {
            self.low = epsilon;
        } else {
            self.high = epsilon;
        }
        let newton = largest.map_or(f64::NAN, |deviation| {
            epsilon + (target - deviation.root) / deviation.slope
        });
        let middle = 0.5 * (self.low + self.high);
        let hair = TOLERANCE * epsilon.abs().max(1.0);
        let stays = (newton - epsilon).abs() <= hair;
        let is_inside = newton > self.low && newton < self.high;
        let next = if stays || is_inside { newton } else { middle };
        if (next - epsilon).abs() > hair {
            return Some(next);
        }
        if epsilon == self.low || self.high - self.low <= hair {
            return None;
        }
        // Newton's steps have come from above and stay there: step over the solution.
        let over = self.high - self.back * hair;
        self.back *= 2.0;
        Some(over.max(middle))
    }
}

impl Search<'_> {
    /// The statistic and its cut, by Newton's method on the largest deviation, held in a bracket.
    pub(crate) fn best(&self, interrupt: &Interrupt) -> Result<Option<(f64, Cut)>, AuditError> {
        self.best_from(self.start()?, interrupt)
    }

    /// The same from a start near the statistic, which takes fewer steps.
    pub(crate) fn best_from(
        &self,
        start: f64,
        interrupt: &Interrupt,
    ) -> Result<Option<(f64, Cut)>, AuditError> {
        let mut bracket = Bracket::default();
        let mut epsilon = start;
        let mut found = None;
        let mut around = self.largest(epsilon, LIKELY * self.target)?;
        for _ in 0..MAX_STEPS {
            interrupt.check()?;
            let largest = if epsilon == around.epsilon {
                around.deviation
            } else if (epsilon - around.epsilon).abs() <= NEAR && !around.rivals.is_empty() {
                self.largest_of(&around.rivals, epsilon)?
            } else {
                around = self.largest(epsilon, LIKELY * self.target)?;
                around.deviation
            };
            if let Some(deviation) = largest.filter(|deviation| deviation.root >= self.target) {
                found = Some(deviation);
            }
            let next = bracket.next(epsilon, largest, self.target);
            if found.is_none() {
                // Deviations fall with ε: if none is large enough at the least, none is anywhere.
                let at_least = self.largest(bracket.low, self.target)?.deviation;
                found = at_least.filter(|deviation| deviation.root >= self.target);
                if found.is_none() {
                    return Ok(None);
                }
            }
            let Some(next) = next else { break };
            epsilon = next;
        }
        Ok(found.map(|deviation| (bracket.low, deviation.cut)))
    }

    /// About the statistic, by the same method on a few of the cuts, and of the offsets; 0 where none
    /// of these cuts stands out.
    fn start(&self) -> Result<f64, AuditError> {
        let samples = self.samples();
        let mut bracket = Bracket::default();
        let mut epsilon = 0.0;
        let mut last = None;
        for _ in 0..ROUGH_STEPS {
            last = self.largest_sampled(&samples, epsilon)?;
            let Some(next) = bracket.next(epsilon, last, self.target) else {
                break;
            };
            let step = next - epsilon;
            epsilon = next;
            if step.abs() <= ROUGH_TOLERANCE {
                break;
            }
        }
        Ok(if last.is_some() { epsilon } else { 0.0 })
    }

    /// A few of the cuts, and how far apart the guesses lie that are looked at before each.
    fn samples(&self) -> Vec<(Cut, usize)> {
        let (mut samples, mut before, mut next) = (Vec::new(), 0, 0);
        for (index, &cut) in self.cuts.iter().enumerate() {
            if cut.guesses >= next || index + 1 == self.cuts.len() {
                let stride = (cut.guesses as usize - before).div_ceil(SAMPLED).max(1);
                samples.push((cut, stride));
                before = cut.guesses as usize;
                let beyond = f64::from(cut.guesses.saturating_sub(ROUGH_FROM));
                next = cut
                    .guesses
                    .saturating_add((beyond * ROUGH_SPACING).ceil() as u32);
            }
        }
        samples
    }

    /// About the largest deviation of some cuts.
    fn largest_sampled(
        &self,
        samples: &[(Cut, usize)],
        epsilon: f64,
    ) -> Result<Option<Deviation>, AuditError> {
        let (mut right, mut wrong, mut variance, mut done) = (0.0, 0.0, 0.0, 0);
        let mut largest: Option<Deviation> = None;
        for &(cut, stride) in samples {
            let between = &self.offsets[done..cut.guesses as usize];
            done = cut.guesses as usize;
            let looked_at = between.len().div_ceil(stride);
            let weight = between.len() as f64 / looked_at as f64;
            for offset in between.iter().step_by(stride) {
                let (p, q) = expit_both(epsilon + offset);
                right += weight * p;
                wrong += weight * q;
                variance += weight * p * q;
            }
            let mean = mean_of(right, wrong, cut.guesses)?;
            if !is_above(cut, mean) {
                continue;
            }
            let deviation = deviation_of(cut, mean, variance);
            if largest.is_none_or(|largest| deviation.root > largest.root) {
                largest = Some(deviation);
            }
        }
        Ok(largest)
    }

    /// The largest deviation of any cut with more correct guesses than expected; `likely` is what
    /// it is thought to be at least, for speed.
    fn largest(&self, epsilon: f64, likely: f64) -> Result<Largest, AuditError> {
        let largest = self.largest_above(epsilon, likely)?;
        match largest.deviation {
            Some(deviation) if deviation.root >= likely => Ok(largest),
            _ if likely > 0.0 => self.largest_above(epsilon, 0.0),
            _ => Ok(largest),
        }
    }

    /// The same, right where the largest is at least `floor`.
    ///
    /// Rivals: r·KL changes with ε at a rate of at most w − r p̄, as the sum of the pᵢqᵢ is r p̄ q̄
    /// at most, and by Pinsker's inequality √(2 r·KL) is at least 2(w − r p̄)/√r. So it changes at a
    /// rate of at most √r/2, and two of them that are more than √r·δ apart do not change places
    /// within δ.
    fn largest_above(&self, epsilon: f64, floor: f64) -> Result<Largest, AuditError> {
        let longest = self.cuts.last().map_or(0, |cut| cut.guesses);
        let margin = f64::from(longest).sqrt() * NEAR + 1e-9;
        let mut sums = PrefixSums::new(self.offsets, epsilon);
        let mut largest: Option<Deviation> = None;
        let mut rivals: Vec<(f64, Cut)> = Vec::new();
        let mut least = floor - margin;
        for &cut in self.cuts {
            let mean = sums.up_to(cut.guesses)?;
            if !is_above(cut, mean) || is_below(cut, mean, least) {
                continue;
            }
            let deviation = sums.deviation(cut, mean);
            if deviation.root >= least {
                rivals.push((deviation.root, cut));
            }
            if largest.is_none_or(|largest| deviation.root > largest.root) {
                largest = Some(deviation);
                least = least.max(deviation.root - margin);
            }
        }
        rivals.retain(|&(root, _)| root >= least);
        if largest.is_none_or(|largest| largest.root <= 2.0 * margin) {
            // Cuts without an excess may be rivals too.
            rivals.clear();
        }
        Ok(Largest {
            epsilon,
            deviation: largest,
            rivals: rivals.into_iter().map(|(_, cut)| cut).collect(),
        })
    }

    /// The largest deviation of some of the cuts.
    fn largest_of(&self, cuts: &[Cut], epsilon: f64) -> Result<Option<Deviation>, AuditError> {
        let mut sums = PrefixSums::new(self.offsets, epsilon);
        let mut largest: Option<Deviation> = None;
        for &cut in cuts {
            let mean = sums.up_to(cut.guesses)?;
            if !is_above(cut, mean) {
                continue;
            }
            let deviation = sums.deviation(cut, mean);
            if largest.is_none_or(|largest| deviation.root > largest.root) {
                largest = Some(deviation);
            }
        }
        Ok(largest)
    }
}

impl PrefixSums<'_> {
    /// How far a cut deviates from its mean, which was asked for last.
    fn deviation(&self, cut: Cut, mean: Probability) -> Deviation {
        deviation_of(cut, mean, self.variance)
    }
}

/// The mean of so many probabilities, of which the sum is `right` and that of their complements
/// `wrong`.
fn mean_of(right: f64, wrong: f64, guesses: u32) -> Result<Probability, MathError> {
    if right <= wrong {
        Probability::new(right / f64::from(guesses))
    } else {
        Probability::from_complement(wrong / f64::from(guesses))
    }
}

/// How far a cut deviates from its mean, `variance` being Σ pᵢ(1 − pᵢ).
fn deviation_of(cut: Cut, mean: Probability, variance: f64) -> Deviation {
    let root = (2.0 * divergence(cut, mean)).sqrt();
    let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
    // d(r·KL)/dp̄ = (r p̄ − w)/(p̄ q̄), and dp̄/dε is the mean of pᵢqᵢ.
    let excess = w * mean.q() - (r - w) * mean.p();
    let slope = -excess * variance / (r * mean.p() * mean.q() * root);
    Deviation { root, slope, cut }
}

/// Is √(2 r·KL) certainly below `root`? Says no when in doubt, without a logarithm.
///
/// Where neither p nor q is below 10⁻⁶ and the root not below 10⁻³, what rounding does to the bound
/// is a few millionths of it at most.
fn is_below(cut: Cut, mean: Probability, root: f64) -> bool {
    root > 1e-3
        && mean.p().min(mean.q()) > 1e-6
        && divergence_bounds(cut, mean).1 * (1.0 + 1e-4) < 0.5 * root * root
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use leakbound_math::logistic::expit;
    use proptest::prelude::*;

    use super::*;
    use crate::guesses::grid::Grid;
    use crate::guesses::path::Path;

    /// The same search over all cuts at every step, with the probabilities computed one by one.
    fn plain_search(offsets: &[f64], cuts: &[Cut], target: f64, start: f64) -> Option<(f64, Cut)> {
        let largest = |epsilon: f64| {
            let mut sums = PrefixSums::new(offsets, epsilon);
            let mut largest: Option<Deviation> = None;
            for &cut in cuts {
                for &offset in &offsets[sums.done..cut.guesses as usize] {
                    let (p, q) = (expit(epsilon + offset), expit(-epsilon - offset));
                    sums.right.add(p);
                    sums.wrong.add(q);
                    sums.variance += p * q;
                }
                sums.done = cut.guesses as usize;
                let mean = sums.up_to(cut.guesses).unwrap();
                if is_above(cut, mean) {
                    let deviation = sums.deviation(cut, mean);
                    if largest.is_none_or(|largest| deviation.root > largest.root) {
                        largest = Some(deviation);
                    }
                }
            }
            largest
        };
        let mut found = largest(-MAX_EPSILON).filter(|deviation| deviation.root >= target)?;
        let mut bracket = Bracket::default();
        let mut epsilon = start;
        for _ in 0..MAX_STEPS {
            let largest = largest(epsilon);
            if let Some(deviation) = largest.filter(|deviation| deviation.root >= target) {
                found = deviation;
            }
            let Some(next) = bracket.next(epsilon, largest, target) else {
                break;
            };
            epsilon = next;
        }
        Some((bracket.low, found.cut))
    }

    proptest! {
        #[test]
        fn newton_ends_where_it_arrives(
            solution in -9.0_f64..9.0, slope in 1.0_f64..300.0, bend in -0.3_f64..0.3,
        ) {
            let target = 3.0;
            let cut = Cut { guesses: 2, correct: 2 };
            let (mut bracket, mut epsilon, mut steps) = (Bracket::default(), 0.0, 0);
            loop {
                let (above, turn) = (solution - epsilon, bend / (1.0 + slope.abs()));
                let root = target + slope * above * (1.0 + turn * above).max(0.1);
                let deviation = Deviation { root, slope: -slope, cut };
                steps += 1;
                match bracket.next(epsilon, Some(deviation), target) {
                    Some(next) => epsilon = next,
                    None => break,
                }
            }
            prop_assert!(steps < 30, "{steps}");
            prop_assert!((bracket.low - solution).abs() < 1e-13, "{}", bracket.low);
        }

        #[test]
        fn what_is_skipped_changes_no_bit(
            guesses in prop::collection::vec((any::<bool>(), -3.0_f64..3.0), 1..400),
            advantage in -1.0_f64..6.0,
            scale in prop::sample::select(vec![0.0_f64, 1.0, 90.0]),
            kappa in prop::sample::select(vec![1e-7_f64, 0.3, 4.0, 40.0]),
            stride in 1_usize..5,
        ) {
            let offsets: Vec<f64> = guesses.iter().map(|(_, offset)| scale * offset).collect();
            let successes: Vec<bool> = guesses
                .iter()
                .map(|&(coin, offset)| coin || offset < advantage)
                .collect();
            let path = Path::from_successes(&successes);
            let cuts: Vec<Cut> = path.cuts(&Grid::All, 1).unwrap();
            let cuts: Vec<Cut> = cuts.into_iter().step_by(stride).collect();
            let target = (2.0 * kappa).sqrt();
            let search = Search { offsets: &offsets, cuts: &cuts, target };
            let found = search.best(&Interrupt::default()).unwrap();
            let plain = plain_search(&offsets, &cuts, target, search.start().unwrap());
            let bits = |(epsilon, cut): (f64, Cut)| (epsilon.to_bits(), cut);
            prop_assert_eq!(found.map(bits), plain.map(bits));
            let far = plain_search(&offsets, &cuts, target, 0.0);
            let apart = found.zip(far).map_or(0.0, |(one, other)| (one.0 - other.0).abs());
            prop_assert!(apart <= 1e-11 * (1.0 + found.map_or(0.0, |one| one.0.abs())));
        }
    }
}
