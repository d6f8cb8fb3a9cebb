//! The largest ε whose tail is still at most β.

use rayon::prelude::*;

use super::all_succeed::AllSucceed;
use super::exact::UNIT;
use super::terms::Terms;
use super::tilted::{LogTail, Tilted};
use crate::error::{MathError, check_level};

/// The secant roughly squares its error once near. Where rounding leads it astray the bracket is
/// halved from [`MOST_SECANTS`] on: 3000 in θ down to the narrowest is 73 halvings.
const MOST_STEPS: u32 = 200;
const MOST_SECANTS: u32 = 100;
/// A bracket about θ = 0 is narrow enough where it would be about this θ.
const SMALLEST_THETA: f64 = 1e-3;
/// No ε that is looked for is lower: β is above e^−745, the largest odds above e^−576 and 2⁵³ trials
/// add 37.
const LOWEST_EPSILON: f64 = -2000.0;
/// Steps down until the tail is proved: each twice the last.
const MOST_DOUBLINGS: u32 = 80;
/// Neighbours in a batch start from each other in runs of this length, whatever the thread count.
pub const RUN: usize = 16;

/// Where an earlier search ended: ln x, and the share v/n it was for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    log_x: f64,
    logit: f64,
}

impl Start {
    pub(super) fn new(log_x: f64, v: f64, n: f64) -> Self {
        Self {
            log_x,
            logit: (v / (n - v)).ln(),
        }
    }

    /// ln x for `v` of `n`, as if all terms were alike.
    pub(super) fn log_x(self, v: f64, n: f64) -> f64 {
        self.log_x + ((v / (n - v)).ln() - self.logit)
    }
}

/// What P(S ≥ v) is compared with: β itself up to a half, 1−β against P(S < v) above.
#[derive(Clone, Copy)]
struct Level {
    log: f64,
    upper: bool,
}

impl Level {
    fn new(beta: f64) -> Self {
        if beta <= 0.5 {
            Self {
                log: beta.ln(),
                upper: true,
            }
        } else {
            Self {
                log: (1.0 - beta).ln(),
                upper: false,
            }
        }
    }

    /// Whether P(S ≥ v) ≤ β for certain, rounding errors included.
    fn is_proved(self, tail: LogTail) -> bool {
        let size = tail.log.min(0.0).exp();
        let (most, least) = (1.0 + tail.relative_error, 1.0 - tail.relative_error);
        match (tail.upper, self.upper) {
            (true, true) => tail.log + tail.relative_error.ln_1p() <= self.log,
            (true, false) => (-size * most).ln_1p() >= self.log,
            (false, true) => (-size * least).ln_1p() <= self.log,
            (false, false) => tail.log + (-tail.relative_error).ln_1p() >= self.log,
        }
    }

    /// The logarithm to hold against ours.
    fn same_side(self, tail: LogTail) -> f64 {
        if self.upper {
            tail.log_upper()
        } else {
            tail.log_lower()
        }
    }

    /// ±√(−2 ln P): nearly linear and increasing in θ.
    fn deviate(self, log: f64) -> f64 {
        let deviate = (-2.0 * log).max(0.0).sqrt();
        if self.upper { deviate } else { -deviate }
    }

    /// About the normal quantile: where to look first, in standard deviations.
    fn guess(self) -> f64 {
        let y = (-2.0 * self.log).sqrt();
        let z = (y - ((2.5 * y).ln() / y).min(0.8 * y)).max(0.05);
        if self.upper { z } else { -z }
    }
}

impl Terms {
    /// The largest ε with P_ε(S ≥ v) ≤ β, rounded down: the tail at the value returned is at most β,
    /// its rounding errors included.
    ///
    /// −∞ if certain terms alone make v (the tail is 1 for every ε); +∞ if v exceeds the number of
    /// trials. Right to 10⁻¹³, at the cost of about one tail: the tilted law does not depend on ε.
    pub fn epsilon(&self, v: i64, beta: f64) -> Result<f64, MathError> {
        check_level("beta", beta)?;
        Ok(self.epsilon_from(v, beta, None)?.0)
    }

    /// [`Self::epsilon`] for every v, in parallel on the current pool. Neighbours share their search,
    /// in runs that do not depend on the number of threads; neither does any bit of the result.
    pub fn epsilons(&self, v: &[i64], beta: f64) -> Result<Vec<f64>, MathError> {
        check_level("beta", beta)?;
        let runs: Result<Vec<Vec<f64>>, MathError> = v
            .par_chunks(RUN)
            .map(|run| {
                let mut start = None;
                let one = |&v: &i64| {
                    let (epsilon, next) = self.epsilon_from(v, beta, start)?;
                    start = next;
                    Ok(epsilon)
                };
                run.iter().map(one).collect()
            })
            .collect();
        Ok(runs?.concat())
    }

    /// As [`Self::epsilon`] from an earlier start, with the start for a later one.
    fn epsilon_from(
        &self,
        v: i64,
        beta: f64,
        start: Option<Start>,
    ) -> Result<(f64, Option<Start>), MathError> {
        let Some(open) = self.open_successes(v) else {
            return Ok((f64::NEG_INFINITY, start));
        };
        if open > self.trials {
            return Ok((f64::INFINITY, start));
        }
        if open == self.trials {
            return Ok((self.down(AllSucceed::of(self).epsilon(beta.ln())?), start));
        }
        let (v, n) = (open as f64, self.trials as f64);
        let level = Level::new(beta);
        let guess = level.guess();
        let from = start.map(|start| start.log_x(v, n));
        let law = Tilted::new(self, v, from, |_, variance| 1.1 * guess / variance.sqrt());
        let epsilon = solve(&law, level, guess / law.deviation())?;
        let next = Start::new(law.origin().0, v, n);
        Ok((self.down(epsilon), Some(next)))
    }

    /// ε for the offsets as given, rounded down.
    fn down(&self, epsilon: f64) -> f64 {
        if self.shift == 0.0 {
            epsilon
        } else {
            (epsilon - self.shift).next_down()
        }
    }
}

/// [`Terms::epsilon`] for `count` replicates, the k-th made by `replicate(k)` as terms and v, in
/// parallel on the current pool. Each replicate starts its search where the one before ended, in runs
/// that do not depend on the number of threads: one pass over the data per replicate.
pub fn replicate_epsilons(
    count: usize,
    beta: f64,
    replicate: impl Fn(usize) -> Result<(Terms, i64), MathError> + Sync,
) -> Result<Vec<f64>, MathError> {
    check_level("beta", beta)?;
    let runs: Result<Vec<Vec<f64>>, MathError> = (0..count.div_ceil(RUN))
        .into_par_iter()
        .map(|run| {
            let mut start = None;
            (run * RUN..count.min((run + 1) * RUN))
                .map(|k| {
                    let (terms, v) = replicate(k)?;
                    let (epsilon, next) = terms.epsilon_from(v, beta, start)?;
                    start = next;
                    Ok(epsilon)
                })
                .collect()
        })
        .collect();
    Ok(runs?.concat())
}
/// The ε at which `law` has the tail `level`, rounded to the side where the tail is smaller, by a
/// bracketed secant on √(−2 ln P).
fn solve(law: &Tilted, level: Level, guess: f64) -> Result<f64, MathError> {
    let target = level.deviate(level.log);
    let (mut low, mut high) = law.range(LOWEST_EPSILON);
    let mut theta = guess.clamp(low, high);
    let (mut earlier, mut slope) = (None, law.deviation());
    for step in 0..MOST_STEPS {
        let deviate = level.deviate(level.same_side(law.log_tail_only(theta)));
        let lacking = target - deviate;
        if let Some((theta_before, before)) = earlier {
            let secant: f64 = (deviate - before) / (theta - theta_before);
            if secant > 0.0 && secant.is_finite() {
                slope = secant;
            }
        }
        earlier = Some((theta, deviate));
        if lacking > 0.0 {
            low = theta;
        } else {
            high = theta;
        }
        let next = theta + lacking / slope;
        let settled = (lacking * target).abs() <= UNIT * (1.0 - level.log)
            || (next - theta).abs() <= UNIT * theta.abs();
        if settled || high - low <= 2.0 * UNIT * theta.abs().max(SMALLEST_THETA) {
            return Ok(certified(law, level, theta, slope));
        }
        theta = if step < MOST_SECANTS && low < next && next < high {
            next
        } else {
            0.5 * (low + high)
        };
    }
    Err(MathError::NotConverged {
        what: "the inverse of the tail",
        steps: MOST_STEPS,
    })
}

/// ε at θ, lowered until the tail with its error is certain to be at most the level; −∞ if it never
/// is.
fn certified(law: &Tilted, level: Level, theta: f64, slope: f64) -> f64 {
    let tail = law.log_tail(theta);
    let log = level.same_side(tail);
    // d ln P/dε = deviate·slope; an error of the other tail weighs by the ratio of the two.
    let steepness = (level.deviate(log) * slope).abs();
    let weight = if tail.upper == level.upper {
        1.0
    } else {
        (tail.log - log).exp()
    };
    let doubt = (weight * tail.relative_error + 4.0 * UNIT + (log - level.log).abs()) / steepness;
    let (high, low) = law.origin();
    let mut below = 2.0 * doubt;
    for _ in 0..MOST_DOUBLINGS {
        if level.is_proved(law.log_tail(theta + below)) {
            return (high - (theta + below - low)).next_down();
        }
        below = (2.0 * below).max(UNIT * (1.0 + theta.abs()));
    }
    f64::NEG_INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trial_has_the_logit_of_beta() {
        let terms = Terms::from_offsets(&[0.75]).unwrap();
        for beta in [1e-300_f64, 1e-9, 0.25, 0.5, 0.75, 1.0 - 1e-9] {
            let expected = (beta / (1.0 - beta)).ln() - 0.75;
            let epsilon = terms.epsilon(1, beta).unwrap();
            assert!(
                (epsilon - expected).abs() <= 1e-13 * (1.0 + expected.abs()),
                "{beta}"
            );
            assert!(epsilon <= expected);
        }
    }

    #[test]
    fn the_ends_need_no_search() {
        let terms = Terms::from_offsets(&[0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0]).unwrap();
        assert_eq!(terms.epsilon(1, 0.1).unwrap(), f64::NEG_INFINITY);
        assert_eq!(terms.epsilon(-5, 0.1).unwrap(), f64::NEG_INFINITY);
        assert_eq!(terms.epsilon(4, 0.1).unwrap(), f64::INFINITY);
        assert!(terms.epsilon(3, 0.1).unwrap().is_finite());
    }

    #[test]
    fn a_group_that_alone_makes_up_the_successes_is_inverted() {
        // Found by random replicates: v is the number of terms whose odds dwarf all others.
        let offsets = [27.006_903_135_327_06, 70.820_563_177_060_46];
        let all = [
            -46.309_860_262_895_44,
            5.758_453_124_160_948,
            2.675_880_067_756_426_5,
            -35.666_220_128_487_61,
            15.615_510_570_852_383,
            3.734_482_795_764_158,
            27.006_903_135_327_06,
            -24.534_066_147_370_446,
            70.820_563_177_060_46,
            -46.022_159_005_410_35,
        ];
        let counts = [65, 54, 87, 20, 87, 41, 94, 56, 5, 29];
        let terms = Terms::from_grouped_offsets(&all, Some(&counts)).unwrap();
        let epsilon = terms.epsilon(5, 0.7).unwrap();
        let tail = |epsilon: f64| terms.tail(5, epsilon).log.exp();
        assert!(tail(epsilon) <= 0.7 && tail(epsilon + 1e-9) > 0.7);
        let alike = Terms::from_grouped_offsets(&offsets, Some(&[94, 5])).unwrap();
        assert!((alike.epsilon(5, 0.7).unwrap() - epsilon).abs() < 1e-3);
    }
}
