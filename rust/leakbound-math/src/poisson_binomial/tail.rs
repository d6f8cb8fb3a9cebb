//! P(S ≥ v).

use super::all_succeed::AllSucceed;
use super::tail_value::Tail;
use super::terms::{OFFSET_REACH, RAISED_MATTERS, Terms};
use super::tilted::{self, DIRECT, Tilted};

/// Untilted probabilities are used for few trials down to tails of this size.
const SMALLEST_DIRECT: f64 = 1e-200;
/// Probabilities are built one by one down to this ε, where e^ε is still a normal number.
const LOWEST_DIRECT: f64 = -700.0;
/// Odds stay below e to this, 10²⁹⁸, under every ε: products that are split into halves overflow
/// beyond.
const LARGEST_LOG_ODDS: f64 = 688.0;
/// ln v stays finite down to this ε; below it the tail here is an upper bound.
const LOWEST_EPSILON: f64 = -1e200;

impl Terms {
    /// P(S ≥ v) for S = ΣXᵢ, P(Xᵢ = 1) = Eᵢe^ε/(1+Eᵢe^ε): σ(ε + aᵢ) for terms made from offsets aᵢ,
    /// and pᵢ itself at ε = 0 for terms made from probabilities.
    ///
    /// # Domain
    /// Any v; ε finite. Where some odds would exceed e⁶⁸⁸ (above ε = 388 at the earliest) the value
    /// at the last ε before is returned, a lower bound that says how far off it may be, since the
    /// tail grows with ε; below −10²⁰⁰ the value there, an upper bound.
    ///
    /// # Accuracy
    /// The relative error is bounded by `relative_error`, typically 10⁻¹⁵·(1 + |ln P|): two terms
    /// of e⁻³⁸ for aliasing and for dropped nodes, the remainder of the power series, and rounding,
    /// bounded by the sizes of what was added. Cost O(n), one or two passes.
    ///
    /// # Source
    /// A saddle-point contour integral (Daniels 1954) by the trapezoidal rule, whose error is
    /// bounded by Bennett's inequality (Bennett 1962) instead of estimated.
    pub fn tail(&self, v: i64, epsilon: f64) -> Tail {
        self.tail_from(v, epsilon, None).0
    }

    /// As [`Self::tail`], starting the search for the tilt at `start`, and returning where to start
    /// the next one.
    pub(super) fn tail_from(
        &self,
        v: i64,
        epsilon: f64,
        start: Option<f64>,
    ) -> (Tail, Option<f64>) {
        let Some(open) = self.open_successes(v) else {
            return (Tail::ONE, start);
        };
        if open > self.trials {
            return (Tail::ZERO, start);
        }
        let shifted = epsilon + self.shift;
        let within = self.highest(shifted).max(LOWEST_EPSILON);
        let (tail, next) = self.open_tail(open, within, start);
        (self.with_caveats(tail, shifted, within), next)
    }

    /// The largest ε up to `epsilon` at which all odds can be held.
    pub(super) fn highest(&self, epsilon: f64) -> f64 {
        // No term has odds above e³⁰⁰.
        if epsilon <= LARGEST_LOG_ODDS - OFFSET_REACH {
            return epsilon;
        }
        let largest = self.odds.iter().copied().fold(1.0, f64::max);
        epsilon.min(LARGEST_LOG_ODDS - largest.ln())
    }

    /// The successes asked of the open trials; none if the certain ones suffice.
    pub(super) fn open_successes(&self, v: i64) -> Option<u64> {
        let v = u64::try_from(v).ok()?;
        v.checked_sub(self.certain).filter(|&open| open > 0)
    }

    /// Widens the error for raised probabilities and for ε `shifted` out of reach.
    fn with_caveats(&self, mut tail: Tail, shifted: f64, within: f64) -> Tail {
        if (self.raised && tail.log < RAISED_MATTERS) || shifted < within {
            tail.relative_error = f64::INFINITY;
        }
        if shifted > within {
            tail.relative_error += (-tail.log).exp_m1();
        }
        tail
    }

    fn open_tail(&self, v: u64, epsilon: f64, start: Option<f64>) -> (Tail, Option<f64>) {
        if self.trials <= DIRECT
            && epsilon > LOWEST_DIRECT
            && let Some(tail) = self.direct(v as usize, epsilon.exp())
        {
            return (tail, start);
        }
        if v == self.trials {
            return (AllSucceed::of(self).tail(epsilon), start);
        }
        let law = Tilted::new(self, v as f64, start, |log_x, _| log_x - epsilon);
        let tail = law.log_tail(law.theta(epsilon));
        let next = Some(law.origin().0);
        if tail.upper {
            (Tail::from_log(tail.log.min(0.0), tail.relative_error), next)
        } else {
            (
                Tail::from_log_complement(tail.log, tail.relative_error),
                next,
            )
        }
    }

    /// The tail from all probabilities, unless it is too small for them.
    fn direct(&self, v: usize, x: f64) -> Option<Tail> {
        let pmf = tilted::probabilities(self, x);
        let lower: f64 = pmf[..v].iter().sum();
        let upper: f64 = pmf[v..].iter().rev().sum();
        let relative_error = tilted::direct_error(self.trials);
        if lower < upper {
            let tail = Tail::from_log_complement(lower.ln(), relative_error);
            return Some(Tail {
                value: 1.0 - lower,
                log: (-lower).ln_1p(),
                ..tail
            });
        }
        (upper > SMALLEST_DIRECT).then(|| Tail::from_value(upper, relative_error))
    }
}
