//! (ε, δ)-differential privacy at one number of guesses: how likely are so many correct guesses?

use std::ops::Range;

use leakbound_math::{Binomial, Probability, binomial};

use crate::crossing::knapsack::{envelope, knapsack};
use crate::error::{AuditError, check_delta, out_of_range};
use crate::guesses::path::Cut;

/// Roundings of a tail that is put together from three.
const INFLATION: f64 = 1.0 + 4.0 * binomial::RELATIVE_ERROR;
/// Counts whose probability is below this share of a result do not matter.
const NEGLIGIBLE: f64 = 1e-20;
/// Up to so many correct guesses every count is visited.
const SHORT: u64 = 512;

/// Which upper bound on P(W ≥ v) is used, W the number of correct guesses among r.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApproxForm {
    /// The largest probability that the count laws of Mahloujifar et al. (2025), Theorem 3.1, allow
    /// with f̄(x) = e^ε x + δ, in closed form: with W' ~ Bin(r, p) and T = P(W' ≥ v),
    /// T + m δ T (1 − T) / (v P(W' = v)). For guesses of "member" only, m/2 stands for m.
    ///
    /// It also bounds tampered guesses about given members and non-members, where membership has
    /// the odds e^λᵢ given features: there Σ 2 min(πᵢ, 1 − πᵢ), or m, stands for m. A guess stands
    /// with probability b = min(1, (1 + e^(−ε−s))/(1 + e^−ε)), s = max(0, Tλ), or less. With E an
    /// event of the other guesses, π ≥ ½ (or its mirror image), P(E, T = 1 | S = 1) ≤ e^ε a + δ,
    /// P(E, T = −1 | S = −1) ≤ e^ε c + δ, q = P(E, T ≠ 0), p' = P(E, T = S, T stands):
    /// b (1 + e^ε) − e^ε = e^−λ and π e^−λ = 1 − π give p' ≤ e^ε (q − p') + 2 (1 − π) δ, which
    /// added up over examples is Theorem 3.1 with this number of examples.
    Exact,
    /// Steinke, Nasr and Jagielski (2023), Theorem 5.2, as published: T + 2 m δ α with α the
    /// largest P(v − i ≤ W' < v)/i. Above ½ it can be false, so there it counts as 1.
    Steinke,
    /// W ≤ W' + F with E F ≤ g m δ / (2(1 + e^ε)), g = 1 for guesses of "member" only and else 2;
    /// whatever the dependence of F on W', the knapsack bounds P(W ≥ v).
    Coupling,
    /// Guesses about given members and non-members, tampered with: Ceberé, Even, Bleistein and
    /// Bellet, "Privacy auditing with zero (0) training run", Theorem 5.1 (1), as published:
    /// T + m δ (1 + e^−ε) Σᵢ P(W' = v − i)/i. It takes failures to be independent of the coins;
    /// above ½ it can be false, so there it counts as 1.
    ZeroRun,
    /// Guesses about members and generated points: Kazmi et al. (2024), Propositions 3 and 4, as
    /// published, with F independent of W' and E F ≤ 2 m δ, δ standing for γ + δ − γδ: the upper
    /// concave envelope of k ↦ P(W' ≥ v − k) at 2 m δ. Failures can depend on the coins, and above
    /// ½ that matters, so there it counts as 1.
    Panoramia,
}

/// Upper tails of the number of correct guesses under (ε, δ)-DP.
///
/// The parameter is p = e^ε/(e^ε + k − 1), the probability of a correct guess at δ = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApproxTail {
    form: ApproxForm,
    examples: f64,
    delta: f64,
    arms: f64,
    one_sided: bool,
}

impl ApproxTail {
    /// Tails for `examples` examples, each of which had one of `arms` equally likely values, two for
    /// inclusion. `one_sided` if no guess but "member" is ever made.
    ///
    /// # Errors
    /// `examples` not positive, `delta` outside [0, 1), fewer than two `arms`, or more than two
    /// with one-sided guesses or a form other than [`ApproxForm::Exact`].
    pub fn new(
        form: ApproxForm,
        examples: f64,
        delta: f64,
        arms: u32,
        one_sided: bool,
    ) -> Result<Self, AuditError> {
        if !(examples > 0.0 && examples.is_finite()) {
            return out_of_range("m", examples, "a positive number");
        }
        check_delta(delta)?;
        if arms < 2 {
            return out_of_range("k", arms.into(), "at least 2");
        }
        if arms > 2 && (one_sided || form != ApproxForm::Exact) {
            let range = "2 for one-sided guesses, and for every bound but the exact one";
            return out_of_range("k", arms.into(), range);
        }
        Ok(Self {
            form,
            examples,
            delta,
            arms: arms.into(),
            one_sided,
        })
    }

    /// p = e^ε/(e^ε + k − 1).
    pub fn success_probability(&self, epsilon: f64) -> Result<Probability, AuditError> {
        Ok(Probability::from_logit(epsilon - (self.arms - 1.0).ln())?)
    }

    /// ε = logit p + ln(k − 1).
    pub fn epsilon(&self, p: Probability) -> f64 {
        p.logit() + (self.arms - 1.0).ln()
    }

    /// Upper bound on the probability that at least `cut.correct` of `cut.guesses` guesses are
    /// correct, for any mechanism that is (ε, δ)-DP; p as in
    /// [`success_probability`](Self::success_probability).
    ///
    /// Direction: rounded up, by about 2e-12 of itself.
    pub fn upper_tail(&self, cut: Cut, p: Probability) -> f64 {
        if cut.correct == 0 {
            return 1.0;
        }
        if cut.correct > cut.guesses {
            return 0.0;
        }
        if p.q() == 0.0 {
            return 1.0;
        }
        let value = match self.form {
            ApproxForm::Exact => self.exact_bound(cut, p),
            ApproxForm::Steinke | ApproxForm::ZeroRun => {
                let value = self.published_bound(cut, p);
                if value > 0.5 { 1.0 } else { value }
            }
            ApproxForm::Panoramia => {
                let mean = 2.0 * self.examples * self.delta;
                let value = envelope(shifted_tails(cut, p, mean), mean);
                if value > 0.5 { 1.0 } else { value }
            }
            ApproxForm::Coupling => {
                let budget = self.failures() * p.q() * INFLATION;
                knapsack(shifted_tails(cut, p, budget), budget)
            }
        };
        if value.is_nan() {
            // An allowance for failures beyond the largest double, times a mass of 0.
            return 1.0;
        }
        (value * INFLATION).clamp(f64::MIN_POSITIVE, 1.0)
    }

    /// E Σ F ≤ this times 1 − p: see [`ApproxForm::Coupling`].
    fn failures(&self) -> f64 {
        let roles = if self.one_sided { 0.5 } else { 1.0 };
        roles * self.examples * self.delta
    }

    fn exact_bound(&self, cut: Cut, p: Probability) -> f64 {
        let law = Binomial::new(cut.guesses.into(), p);
        let v = u64::from(cut.correct);
        let ln_tail = law.ln_upper_tail(v);
        let halved = if self.one_sided { 0.5 } else { 1.0 };
        let mass = halved * self.examples * self.delta / v as f64;
        // T (1 − T)/P(W' = v), each factor to its own precision.
        let ratio = ln_tail + law.ln_lower_tail(v - 1) - law.ln_pmf(v);
        ln_tail.exp()
            + if mass > 0.0 {
                (mass.ln() + ratio).exp()
            } else {
                0.0
            }
    }

    fn published_bound(&self, cut: Cut, p: Probability) -> f64 {
        let law = Binomial::new(cut.guesses.into(), p);
        let v = u64::from(cut.correct);
        let tail = law.upper_tail(v);
        if tail > 0.5 {
            // As good as 1, and the counts below v may all be too rare to add up.
            return 1.0;
        }
        let gained = match self.form {
            ApproxForm::ZeroRun => mean_of_inverses(&law, v),
            _ => largest_mean(&law, v),
        };
        let failures = match self.form {
            ApproxForm::Steinke => 2.0,
            // 1 + e^−ε
            _ => p.p().recip(),
        };
        tail + failures * self.examples * self.delta * gained
    }
}

/// The largest P(v − i ≤ W' < v)/i, rounded up.
fn largest_mean(law: &Binomial, v: u64) -> f64 {
    let (end, rare) = matters_below(law, v);
    // Means of P(W' = v − 1), …, P(W' = v − i) grow while the next term is above them.
    let (mut sum, mut largest) = (0.0, 0.0);
    for count in (0..end).rev() {
        sum += law.pmf(count);
        let mean = sum / (v - count) as f64;
        if mean < largest {
            break;
        }
        largest = mean;
    }
    largest + rare
}

/// Σᵢ P(W' = v − i)/i, rounded up.
fn mean_of_inverses(law: &Binomial, v: u64) -> f64 {
    let (end, rare) = matters_below(law, v);
    // The same share again for the rare counts at the lower end.
    let start = partition(0..end, |count| law.lower_tail(count) <= rare);
    let weighed = (start..end).map(|count| law.pmf(count) / (v - count) as f64);
    weighed.rev().sum::<f64>() + 2.0 * rare
}

/// The count below v from which on W' is too rare to matter, and a bound on P(W' ≥ it): a negligible
/// share of P(W' < v)/v, which is below both sums above. Up to [`SHORT`] all counts matter.
fn matters_below(law: &Binomial, v: u64) -> (u64, f64) {
    if v <= SHORT {
        return (v, 0.0);
    }
    let rare = NEGLIGIBLE * law.lower_tail(v - 1) / v as f64;
    (partition(0..v, |count| law.upper_tail(count) > rare), rare)
}

/// The first of `counts` at which `holds` is false, if it is true up to there.
fn partition(counts: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (counts.start, counts.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Numbers of failures k and P(W' ≥ v − k), rounded up, for k = 0, 1, …, v.
///
/// Small k at which it does not matter are left out, and the probability at k = 0 is raised to that
/// at the last of them: what a mean number of failures `mean` can reach is at least `mean`/v.
fn shifted_tails(cut: Cut, p: Probability, mean: f64) -> impl Iterator<Item = (f64, f64)> {
    let law = Binomial::new(cut.guesses.into(), p);
    let v = u64::from(cut.correct);
    let reached = move |k: u64| (law.upper_tail(v - k) * INFLATION).min(1.0);
    let least = NEGLIGIBLE * (mean / v as f64).min(1.0);
    let next = match v {
        ..=SHORT => 1,
        _ => partition(1..v, |k| reached(k) <= least),
    };
    let rest = (next..=v).map(move |k| (k as f64, reached(k)));
    std::iter::once((0.0, reached(next - 1))).chain(rest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::crossing::knapsack::by_failures;

    fn tail(form: ApproxForm, m: f64, delta: f64) -> ApproxTail {
        ApproxTail::new(form, m, delta, 2, false).unwrap()
    }

    /// The forms that go through counts.
    const FORMS: [ApproxForm; 4] = [
        ApproxForm::Steinke,
        ApproxForm::Coupling,
        ApproxForm::ZeroRun,
        ApproxForm::Panoramia,
    ];

    /// Every form that goes through counts one by one, over all of them.
    fn one_by_one(tail: ApproxTail, cut: Cut, p: Probability) -> f64 {
        let law = Binomial::new(cut.guesses.into(), p);
        let v = u64::from(cut.correct);
        let mass = tail.examples * tail.delta;
        let reached = || by_failures((0..=v).map(|k| law.upper_tail(v - k)));
        match tail.form {
            ApproxForm::Coupling => knapsack(reached(), mass * p.q()),
            ApproxForm::Panoramia => envelope(reached(), 2.0 * mass),
            ApproxForm::ZeroRun => {
                let sum: f64 = (1..=v).map(|i| law.pmf(v - i) / i as f64).sum();
                law.upper_tail(v) + mass / p.p() * sum
            }
            _ => {
                let below = |i: u64| (v - i..v).map(|count| law.pmf(count)).sum::<f64>();
                let means = (1..=v).map(|i| below(i) / i as f64);
                law.upper_tail(v) + 2.0 * mass * means.fold(0.0, f64::max)
            }
        }
    }

    #[test]
    fn counts_left_out_do_not_matter() {
        for (guesses, correct) in [(1500, 1500), (1500, 1300), (1500, 1120), (900, 560)] {
            for (form, delta) in FORMS
                .into_iter()
                .flat_map(|form| [0.0, 1e-300, 1e-12, 1e-6, 1e-4].map(|delta| (form, delta)))
            {
                let (tail, cut) = (tail(form, 2000.0, delta), Cut { guesses, correct });
                for epsilon in [0.0, 0.5, 3.0] {
                    let p = tail.success_probability(epsilon).unwrap();
                    let ours = tail.upper_tail(cut, p);
                    let expected = one_by_one(tail, cut, p).max(f64::MIN_POSITIVE);
                    let published = form != ApproxForm::Coupling && expected > 0.5;
                    let expected = if published { 1.0 } else { expected };
                    let same = ours >= expected * (1.0 - 1e-12) && ours <= expected * (1.0 + 1e-11);
                    assert!(
                        same,
                        "{form:?} {cut:?} {delta} {epsilon}: {ours} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_largest_counts_take_no_longer_than_their_spread() {
        let guesses = u32::MAX;
        for form in FORMS.into_iter().chain([ApproxForm::Exact]) {
            let tail = tail(form, f64::from(guesses), 1e-5);
            for correct in [guesses, guesses / 4 * 3, guesses / 2 + 1_000_000, 1] {
                let cut = Cut { guesses, correct };
                let value = tail.upper_tail(cut, tail.success_probability(1.0).unwrap());
                assert!(value > 0.0 && value <= 1.0, "{form:?} {value}");
            }
        }
    }
}
