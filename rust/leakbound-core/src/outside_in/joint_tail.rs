//! (ε, δ)-DP: the joint certificate in closed form.

use leakbound_math::{Binomial, Probability, binomial};

use crate::error::{AuditError, check_delta, check_level};
use crate::fdp::counts::Counts;
use crate::halving::halve;

/// Roundings of a tail and of a few products of such.
const INFLATION: f64 = 1.0 + 8.0 * binomial::RELATIVE_ERROR;
/// A bracket of width 1400 shrinks to 1e-13 in 54 halvings.
const HALVINGS: usize = 60;
/// Log-odds between which ε is looked for.
const FARTHEST: f64 = 700.0;

/// Limits on ε that hold whatever level was chosen from the outside in.
///
/// With one slope λ = e^ε the joint certificate has closed forms. Let W' ~ Bin(c', p), p =
/// e^ε/(e^ε + k − 1), T = P(W' ≥ v), and T_l ≤ κ at all levels. The smallest prices that satisfy
/// (1/m) v A_{v−1} ≥ … from c' down are A_{v−1} = (1 − κ) m T/(v P(W' = v)), the largest of them,
/// and below v they fall to 0, as κ ≥ T. Since D(e^ε) = δ,
///
/// P(W ≥ v_L) ≤ κ + δ (1 − κ) max_l m T_l/(v_l P(W'_l = v_l)).
///
/// A level refutes ε where T ≤ κ = (1 − φ) β and δ (1 − κ) m T/(v P(W' = v)) ≤ φ β, φ fixed in
/// advance. Both grow with ε and fall as v grows (the binomial law is log-concave), so the least
/// counts v_l(ε) never fall with ε: an ε below the limit of the count seen is refuted by every such
/// count, and a limit above the truth ε₀ means W ≥ v_L(ε₀). For guesses of "member" only, m/2 stands
/// for m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointTail {
    delta: f64,
    kappa: f64,
    /// At most this much may stand for failures: φ β/(1 − κ).
    failures: f64,
}

impl JointTail {
    /// Limits at level β, of which a share φ is for failures.
    pub fn new(delta: f64, level: f64, share: f64) -> Result<Self, AuditError> {
        check_delta(delta)?;
        let (level, share) = (check_level("beta", level)?, check_level("share", share)?);
        let kappa = (1.0 - share) * level;
        // β − κ, rounded down.
        let rest = (level - kappa) * (1.0 - 4.0 * f64::EPSILON);
        Ok(Self {
            delta,
            kappa,
            failures: rest / (1.0 - kappa) * (1.0 - 4.0 * f64::EPSILON),
        })
    }

    /// Whether so many correct guesses refute the ε behind p.
    fn refutes(&self, counts: &Counts, p: Probability) -> bool {
        let (guesses, correct) = (counts.guesses(), counts.correct());
        if correct == 0 {
            return false;
        }
        let law = Binomial::new(guesses, p);
        let tail = law.ln_upper_tail(correct);
        if tail.exp() * INFLATION > self.kappa {
            return false;
        }
        let price = counts.examples() / correct as f64;
        self.delta * price * (tail - law.ln_pmf(correct)).exp() * INFLATION <= self.failures
    }

    /// The largest ε that is refuted, rounded down; none if not even every ε below −700.
    pub fn limit(&self, counts: &Counts) -> Option<f64> {
        self.largest_limit(std::slice::from_ref(counts))
    }

    /// The largest of the limits of several counts, of guesses among the same number of values.
    ///
    /// The bisection of `limit`, for all counts at once: where some of them refute a middle, the
    /// others have smaller limits and are left out from there on.
    pub fn largest_limit(&self, counts: &[Counts]) -> Option<f64> {
        let others = counts.first()?.others();
        debug_assert!(counts.iter().all(|one| one.others() == others));
        let mut left: Vec<&Counts> = counts.iter().collect();
        let mut refutes = |logit: f64| {
            let Ok(p) = Probability::from_logit(logit) else {
                return false;
            };
            let refuting: Vec<_> = left
                .iter()
                .copied()
                .filter(|one| self.refutes(one, p))
                .collect();
            if refuting.is_empty() {
                return false;
            }
            left = refuting;
            true
        };
        if !refutes(-FARTHEST) {
            return None;
        }
        let ends = (-FARTHEST, FARTHEST);
        let largest = halve(ends, HALVINGS, 0.0, |logit| Ok(refutes(logit))).ok()?;
        Some((largest + others.ln()).next_down())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_failures_it_is_clopper_and_pearson_at_a_share() {
        let tail = JointTail::new(0.0, 0.05, 0.2).unwrap();
        for (guesses, correct) in [(10, 10), (80, 75), (1000, 620)] {
            let counts = Counts::new(1000.0, guesses, correct, 2, false).unwrap();
            let expected = leakbound_math::clopper_pearson::lower_limit(correct, guesses, 0.04);
            let found = tail.limit(&counts).unwrap();
            assert!((found - expected.unwrap().logit()).abs() < 1e-9);
        }
    }

    #[test]
    fn more_correct_guesses_never_prove_less() {
        for delta in [1e-6, 1e-4, 1e-3] {
            let tail = JointTail::new(delta, 0.05, 0.1).unwrap();
            for guesses in [5, 40, 300] {
                let limit = |correct| {
                    let counts = Counts::new(500.0, guesses, correct, 2, false).unwrap();
                    tail.limit(&counts).unwrap_or(f64::NEG_INFINITY)
                };
                for correct in 1..guesses {
                    assert!(
                        limit(correct + 1) >= limit(correct),
                        "{delta} {guesses} {correct}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_largest_of_several_limits_is_found_at_once() {
        for (delta, share) in [(0.0, 0.2), (1e-5, 0.04), (1e-3, 0.5)] {
            let tail = JointTail::new(delta, 0.05, share).unwrap();
            for accuracy in [0.1, 0.55, 0.8, 1.0] {
                let counts: Vec<_> = (0..10)
                    .map(|power| {
                        let guesses = 1u64 << power;
                        let correct = (accuracy * guesses as f64).floor() as u64;
                        Counts::new(1000.0, guesses, correct, 3, false).unwrap()
                    })
                    .collect();
                let each = counts.iter().filter_map(|one| tail.limit(one));
                let largest = each.fold(None, |most: Option<f64>, one| {
                    Some(most.map_or(one, |other| other.max(one)))
                });
                assert_eq!(tail.largest_limit(&counts), largest);
            }
        }
        let tail = JointTail::new(0.0, 0.05, 0.2).unwrap();
        assert_eq!(tail.largest_limit(&[]), None);
    }
}
