//! Independent trials under (ε, δ)-DP: an allowance for failures.

use leakbound_math::{Binomial, Probability, binomial, clopper_pearson};

use super::models::Model;
use crate::error::{AuditError, check_delta, check_level, out_of_range};
use crate::halving::halve;

/// Roundings of a tail and of a sum of such.
const INFLATION: f64 = 1.0 + 64.0 * binomial::RELATIVE_ERROR;
/// Numbers of failures beyond which nothing is asked: all of them have this share of β at most.
const FORGONE: f64 = 0.02;
/// Failures of about so many numbers have levels of their own; of more, groups have them.
const GROUPS: u64 = 32;
/// Numbers of guesses that the reference is one of.
const CANDIDATES: u32 = 48;
/// Log-odds between which the reference is looked for: 80 shrinks to 1e-13 in 50 halvings.
const FARTHEST: f64 = 40.0;
const HALVINGS: usize = 52;

/// Limits on ε that hold whichever guesses about independent trials were chosen, by outputs and by
/// coins outside them.
///
/// Of m trials with fair coins each is (ε, δ)-DP in both directions. Let p = e^ε/(1 + e^ε),
/// F ~ Bin(m, δ), and κ₀, κ₁, …, κ_m be fixed in advance. Of the n guesses chosen W are right. Then
///
/// P(for all k: P(k + Bin(n − k, p) ≥ W) ≤ κ_k) ≤ Σ P(F = k) κ_k.
///
/// *Proof.* The trade-off function of (ε, δ)-DP is that of a pair of laws which tells its coin with
/// probability δ, and is randomised response at ε otherwise (Kairouz, Oh and Viswanath 2015). By
/// Blackwell's theorem the output of each trial is a random function of an output of this pair.
/// F of the m trials tell, F ~ Bin(m, δ), whatever the coins. Given F, all outputs and the coins
/// outside the guesses, which fix the guesses, the coins within are independent: a guess about a
/// trial that tells may be right, each other one is with probability p at most. So with F = k, W
/// has at most the law of k + Bin(n − k, p), and reaches the least count whose tail is at most κ_k
/// with probability κ_k at most. Average over F. ∎
///
/// The limit is the least over k of Clopper and Pearson's for W − k of n − k at κ_k, and
/// Σ P(F = k) κ_k ≤ β. It grows with W, and conditions are monotone in ε. Where k ≥ n nothing is
/// refuted unless κ_k = 1, which asks for nothing.
///
/// *The choice of κ* reads m, δ and β only. It is P(k + Bin(n₀ − k, p₀) ≥ v₀), with κ_k = 1 beyond
/// the k that all but a fiftieth of β allows for, and p₀ such that the sum is β. The reference
/// (n₀, v₀) is the number of guesses that proves most of scores N(±½, 1), and the right ones
/// expected; or m of m, where it proves nothing. So at the reference the limit is that of the law of
/// F + Bin(n₀ − F, p₀). If F may have many values, some that follow each other have one κ, which is
/// asked for at the largest of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    /// Numbers of failures, increasing, and κ below 1 for each and those after the one before.
    kappas: Vec<(u64, f64)>,
}

impl Allowance {
    /// For m trials at level β.
    ///
    /// # Errors
    /// No trial, δ outside [0, 1) or β outside (0, 1).
    pub fn new(trials: u32, delta: f64, level: f64) -> Result<Self, AuditError> {
        let (delta, level) = (check_delta(delta)?, check_level("beta", level)?);
        if trials == 0 {
            return out_of_range("trials", 0.0, "at least 1");
        }
        let failures = Failures::new(trials, delta, level)?;
        Ok(Self {
            kappas: failures.kappas(trials, level)?,
        })
    }

    /// Numbers of failures, increasing, and κ for each and those after the one before it. Beyond
    /// the last κ is 1.
    pub fn kappas(&self) -> &[(u64, f64)] {
        &self.kappas
    }

    /// The log-odds below which each ε is refuted by so many correct guesses, rounded down; none if
    /// not even the smallest is.
    ///
    /// # Errors
    /// More correct guesses than guesses.
    pub fn limit(&self, guesses: u64, correct: u64) -> Result<Option<f64>, AuditError> {
        let mut least = f64::INFINITY;
        for &(failures, kappa) in &self.kappas {
            let rest = guesses.saturating_sub(failures);
            let right = correct.saturating_sub(failures);
            least = least.min(clopper_pearson::lower_limit(right, rest, kappa)?.logit());
        }
        Ok((least > f64::NEG_INFINITY).then(|| least.next_down()))
    }
}

/// How many trials may fail, in groups: the largest number of each, and P(F ≥ its least).
struct Failures {
    groups: Vec<(u64, f64)>,
    /// P(F > the last one).
    beyond: f64,
}

impl Failures {
    fn new(trials: u32, delta: f64, level: f64) -> Result<Self, AuditError> {
        let law = Binomial::new(trials.into(), Probability::new(delta)?);
        let at_least = |count: u64| (INFLATION * law.upper_tail(count)).min(1.0);
        let (mut none, mut most) = (0, u64::from(trials));
        while none < most {
            let middle = none.midpoint(most);
            if at_least(middle + 1) <= FORGONE * level {
                most = middle;
            } else {
                none = middle + 1;
            }
        }
        // As far below the mean as the last one is above it, one group has all of them.
        let mean = f64::from(trials) * delta;
        let first = (2.0 * mean - most as f64).max(0.0) as u64;
        let parts = (most - first).min(GROUPS);
        let mut groups = vec![(first, 1.0)];
        for part in 1..=parts {
            let (last, _) = groups[groups.len() - 1];
            groups.push((first + (most - first) * part / parts, at_least(last + 1)));
        }
        Ok(Self {
            groups,
            beyond: at_least(most + 1),
        })
    }

    /// κ of each group at a reference; they increase.
    fn tails(&self, (guesses, correct): (u64, u64), p: Probability) -> Vec<f64> {
        let mut least = f64::MIN_POSITIVE;
        let tail = |&(failures, _): &(u64, f64)| {
            if failures < correct {
                let law = Binomial::new(guesses - failures, p);
                least = least.max(law.upper_tail(correct - failures).min(1.0));
            } else {
                least = 1.0;
            }
            least
        };
        self.groups.iter().map(tail).collect()
    }

    /// Σ P(F = k) κ_k, rounded up: a sum of positive terms, as κ increases.
    fn spent(&self, kappas: &[f64]) -> f64 {
        let (mut sum, mut before) = (0.0, 0.0);
        for (&kappa, &(_, mass)) in kappas.iter().zip(&self.groups) {
            sum += (kappa - before) * mass;
            before = kappa;
        }
        INFLATION * (sum + (1.0 - before) * self.beyond)
    }

    /// The largest log-odds at which a reference spends β at most.
    fn solved(&self, reference: (u64, u64), level: f64) -> Result<Option<f64>, AuditError> {
        let allowed = |logit: f64| self.allowed(reference, logit, level);
        if !allowed(-FARTHEST)? {
            return Ok(None);
        }
        halve((-FARTHEST, FARTHEST), HALVINGS, 0.0, allowed).map(Some)
    }

    fn allowed(&self, reference: (u64, u64), logit: f64, level: f64) -> Result<bool, AuditError> {
        let p = Probability::from_logit(logit)?;
        Ok(self.spent(&self.tails(reference, p)) <= level)
    }

    fn kappas(&self, trials: u32, level: f64) -> Result<Vec<(u64, f64)>, AuditError> {
        let (model, m) = (Model::reference(2, false), f64::from(trials));
        let (mut best, mut proved) = ((trials.into(), trials.into()), 0.0);
        for i in 1..=CANDIDATES {
            let guesses = m.powf(f64::from(i) / f64::from(CANDIDATES)).round();
            let correct = (model.right(guesses / m) * m).round().min(guesses);
            let reference = (guesses as u64, correct as u64);
            if self.allowed(reference, proved, level)?
                && let Some(logit) = self.solved(reference, level)?
            {
                (best, proved) = (reference, logit);
            }
        }
        let Some(logit) = self.solved(best, level)? else {
            // Not even a perfect attack proves anything.
            return Ok(vec![(trials.into(), level)]);
        };
        let kappas = self.tails(best, Probability::from_logit(logit)?);
        let groups = self.groups.iter().map(|&(last, _)| last);
        Ok(groups.zip(kappas).filter(|one| one.1 < 1.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_failures_it_is_clopper_and_pearson() {
        for delta in [0.0, 1e-16] {
            let allowance = Allowance::new(1000, delta, 0.05).unwrap();
            for (guesses, correct) in [(10, 10), (80, 75), (1000, 620)] {
                let expected = clopper_pearson::lower_limit(correct, guesses, 0.05).unwrap();
                let found = allowance.limit(guesses, correct).unwrap().unwrap();
                assert!((found - expected.logit()).abs() < 1e-9, "{delta} {found}");
            }
        }
    }

    #[test]
    fn more_correct_guesses_never_prove_less() {
        for (m, delta) in [(50, 0.02), (1000, 3e-4), (1000, 0.3), (100_000, 0.01)] {
            let allowance = Allowance::new(m, delta, 0.05).unwrap();
            let limit = |correct| allowance.limit(50, correct).unwrap();
            for correct in 0..50 {
                assert!(limit(correct + 1) >= limit(correct), "{m} {delta}");
            }
        }
    }

    #[test]
    fn as_many_right_guesses_as_may_fail_prove_nothing() {
        let allowance = Allowance::new(1000, 0.01, 0.05).unwrap();
        let (most, _) = allowance.kappas()[allowance.kappas().len() - 1];
        assert_eq!(allowance.limit(most, most).unwrap(), None);
        assert!(allowance.limit(most + 1, most + 1).unwrap().is_some());
        let hopeless = Allowance::new(10, 0.9, 0.05).unwrap();
        assert_eq!(hopeless.limit(10, 10).unwrap(), None);
        assert_eq!(hopeless.kappas(), [(10, 0.05)]);
    }
}
