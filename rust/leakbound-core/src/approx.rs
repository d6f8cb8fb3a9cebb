//! (ε, δ)-differential privacy at one number of guesses: how likely are so many correct guesses?

use leakbound_math::{Binomial, Probability, binomial, clopper_pearson};

use crate::crossing::knapsack::knapsack;
use crate::error::{AuditError, check_level};
use crate::guesses::path::Cut;
use crate::scan::statistic::CutStatistic;

/// Roundings of a tail that is put together from three.
const INFLATION: f64 = 1.0 + 4.0 * binomial::RELATIVE_ERROR;
/// A bracket of width 1400 shrinks to 1e-13 in 54 halvings.
const HALVINGS: usize = 60;

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
    ///
    /// ```
    /// use leakbound_core::{ApproxForm, ApproxTail, Cut};
    /// let tail = ApproxTail::new(ApproxForm::Exact, 50.0, 1e-3, 2, false)?;
    /// let cut = Cut { guesses: 20, correct: 17 };
    /// assert!((tail.upper_tail(cut, tail.success_probability(1.0)?) - 0.176583).abs() < 1e-6);
    /// # Ok::<(), leakbound_core::AuditError>(())
    /// ```
    pub fn new(
        form: ApproxForm,
        examples: f64,
        delta: f64,
        arms: u32,
        one_sided: bool,
    ) -> Result<Self, AuditError> {
        let wrong =
            |name, value, range| Err(AuditError::ParameterOutOfRange { name, value, range });
        if !(examples > 0.0 && examples.is_finite()) {
            return wrong("m", examples, "a positive number");
        }
        if !(0.0..1.0).contains(&delta) {
            return wrong("delta", delta, "at least 0 and below 1");
        }
        if arms < 2 {
            return wrong("k", arms.into(), "at least 2");
        }
        if arms > 2 && (one_sided || form != ApproxForm::Exact) {
            let range = "2 for one-sided guesses, and for every bound but the exact one";
            return wrong("k", arms.into(), range);
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
    ///
    /// # Errors
    /// `epsilon` is NaN.
    pub fn success_probability(&self, epsilon: f64) -> Result<Probability, AuditError> {
        Ok(Probability::from_logit(epsilon - (self.arms - 1.0).ln())?)
    }

    /// ε = logit p + ln(k − 1).
    #[must_use]
    pub fn epsilon(&self, p: Probability) -> f64 {
        p.logit() + (self.arms - 1.0).ln()
    }

    /// Upper bound on the probability that at least `cut.correct` of `cut.guesses` guesses are
    /// correct, for any mechanism that is (ε, δ)-DP; p as in
    /// [`success_probability`](Self::success_probability).
    ///
    /// Direction: rounded up, by about 2e-12 of itself.
    #[must_use]
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
                let value = envelope(shifted_tails(cut, p), 2.0 * self.examples * self.delta);
                if value > 0.5 { 1.0 } else { value }
            }
            ApproxForm::Coupling => {
                knapsack(shifted_tails(cut, p), self.failures() * p.q() * INFLATION)
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
        let gained = match self.form {
            ApproxForm::ZeroRun => (1..=v).map(|i| law.pmf(v - i) / i as f64).sum(),
            _ => largest_mean(&law, v),
        };
        let failures = match self.form {
            ApproxForm::Steinke => 2.0,
            // 1 + e^−ε
            _ => p.p().recip(),
        };
        law.upper_tail(v) + failures * self.examples * self.delta * gained
    }
}

/// The largest P(v − i ≤ W' < v)/i.
fn largest_mean(law: &Binomial, v: u64) -> f64 {
    // Means of P(W' = v − 1), …, P(W' = v − i) grow while the next term is above them.
    let (mut sum, mut largest) = (0.0, 0.0);
    for i in 1..=v {
        sum += law.pmf(v - i);
        let mean = sum / i as f64;
        if mean < largest {
            break;
        }
        largest = mean;
    }
    largest
}

/// P(W' ≥ v − k), rounded up, for k = 0, 1, …, v.
fn shifted_tails(cut: Cut, p: Probability) -> impl Iterator<Item = f64> {
    let law = Binomial::new(cut.guesses.into(), p);
    (0..=cut.correct)
        .rev()
        .map(move |v| (law.upper_tail(v.into()) * INFLATION).min(1.0))
}

/// The upper concave envelope at `mean` of the values of an increasing function at 0, 1, …; beyond
/// the last it is constant.
fn envelope(reached: impl Iterator<Item = f64>, mean: f64) -> f64 {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for (k, value) in reached.enumerate() {
        let next = (k as f64, value);
        while let [.., before, last] = hull[..] {
            // `last` lies on or below the line from `before` to `next`.
            if (last.1 - before.1) * (next.0 - before.0) > (next.1 - before.1) * (last.0 - before.0)
            {
                break;
            }
            hull.pop();
        }
        hull.push(next);
    }
    let after = hull.partition_point(|point| point.0 <= mean);
    let left = hull[after.max(1) - 1];
    hull.get(after).map_or(left.1, |right| {
        left.1 + (right.1 - left.1) * (mean - left.0) / (right.0 - left.0)
    })
}

/// Limits under (ε, δ)-DP at one pointwise level: refute ε if the bound on P(W ≥ w) is at most α.
///
/// The bound need not rise with ε, since the budget of failures falls with it. Any ε at which it is
/// at most α will do nevertheless, because the claims are nested. Let ε* be the truth, and A the
/// counts w at which some ε ≥ ε* is refuted. What is (ε*, δ)-DP is (ε, δ)-DP for each such ε, so
/// P(W ≥ w) ≤ α for every w in A; and A has a least element w₀, so P(W ∈ A) ≤ P(W ≥ w₀) ≤ α.
///
/// The limits are on p = e^ε/(e^ε + k − 1), and only of ε ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApproxLimit {
    tail: ApproxTail,
    alpha: f64,
}

impl ApproxLimit {
    /// Limits at the pointwise level `alpha`.
    ///
    /// # Errors
    /// `alpha` is not in (0, 1).
    pub fn new(tail: ApproxTail, alpha: f64) -> Result<Self, AuditError> {
        let alpha = check_level("alpha", alpha)?;
        Ok(Self { tail, alpha })
    }

    fn refutes(&self, cut: Cut, p: Probability) -> bool {
        // Every form adds to what δ = 0 allows, which is quick to compute.
        let pure = Binomial::new(cut.guesses.into(), p).upper_tail(cut.correct.into());
        pure <= self.alpha && self.tail.upper_tail(cut, p) <= self.alpha
    }
}

impl CutStatistic for ApproxLimit {
    fn limit(&self, cut: Cut) -> Result<Option<Probability>, AuditError> {
        let (guesses, correct) = (cut.guesses.into(), cut.correct.into());
        // Failures only add to what δ = 0 allows.
        let highest = clopper_pearson::lower_limit(correct, guesses, self.alpha)?;
        let lowest = self.tail.success_probability(0.0)?;
        if highest.p() < lowest.p() || !self.refutes(cut, lowest) {
            return Ok(None);
        }
        let (mut low, mut high) = (lowest.logit(), highest.logit());
        let mut verified = lowest;
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            let p = Probability::from_logit(middle)?;
            if self.refutes(cut, p) {
                (low, verified) = (middle, p);
            } else {
                high = middle;
            }
        }
        Ok(Some(verified.next_down()))
    }

    fn may_exceed(&self, cut: Cut, level: Probability) -> bool {
        // The quick part: half of the law lies above its mean less one.
        let mean = f64::from(cut.guesses) * level.p();
        (f64::from(cut.correct) + 1.0 > mean || self.alpha >= 0.5) && self.refutes(cut, level)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tail(form: ApproxForm, m: f64, delta: f64, k: u32) -> ApproxTail {
        ApproxTail::new(form, m, delta, k, false).unwrap()
    }

    const FORMS: [ApproxForm; 4] = [
        ApproxForm::Exact,
        ApproxForm::Steinke,
        ApproxForm::Coupling,
        ApproxForm::ZeroRun,
    ];

    #[test]
    fn printed_values() {
        let rows = [
            (50.0, 20, 17, 1.0, 1e-3, 0.176_583, 0.191_056),
            (100.0, 60, 45, 0.5, 1e-4, 0.026_410, 0.027_482),
            (1000.0, 80, 75, 1.5, 1e-5, 0.002_023_0, 0.003_175),
            (200.0, 40, 40, 2.0, 1e-4, 0.006_734_7, 0.011_573),
        ];
        for (m, guesses, correct, epsilon, delta, exact, published) in rows {
            let cut = Cut { guesses, correct };
            for (form, expected) in [(ApproxForm::Exact, exact), (ApproxForm::Steinke, published)] {
                let tail = tail(form, m, delta, 2);
                let ours = tail.upper_tail(cut, tail.success_probability(epsilon).unwrap());
                assert!((ours - expected).abs() < 6e-7, "{form:?} {ours} {expected}");
            }
        }
        let three = tail(ApproxForm::Exact, 60.0, 1e-3, 3);
        let cut = Cut {
            guesses: 20,
            correct: 12,
        };
        let ours = three.upper_tail(cut, three.success_probability(1.0).unwrap());
        assert!((ours - 0.515_814).abs() < 6e-7, "{ours}");
    }

    #[test]
    fn tampered_guesses() {
        let cut = Cut {
            guesses: 60,
            correct: 45,
        };
        let tail = |form| {
            let tail = tail(form, 100.0, 1e-4, 2);
            tail.upper_tail(cut, tail.success_probability(0.5).unwrap())
        };
        let (published, exact) = (tail(ApproxForm::ZeroRun), tail(ApproxForm::Exact));
        // By the formulas, with P(W' = w) added up one by one.
        let p = 1.0 / (1.0 + (-0.5_f64).exp());
        let mut pmf = vec![(1.0 - p).powi(60)];
        for w in 0..60 {
            pmf.push(pmf[w] * (60 - w) as f64 / (w + 1) as f64 * p / (1.0 - p));
        }
        let above: f64 = pmf[45..].iter().sum();
        let sum: f64 = (1..=45).map(|i| pmf[45 - i] / i as f64).sum();
        assert!((published - (above + 1e-2 / p * sum)).abs() < 1e-12);
        assert!(exact < published && published < tail(ApproxForm::Steinke) * 1.5);
    }

    #[test]
    fn the_published_form_says_nothing_above_one_half() {
        let published = tail(ApproxForm::Steinke, 3.0, 0.005, 2);
        let cut = Cut {
            guesses: 3,
            correct: 1,
        };
        assert_eq!(
            published.upper_tail(cut, published.success_probability(1.0).unwrap()),
            1.0
        );
    }

    #[test]
    fn without_failures_every_form_is_the_binomial_tail() {
        for form in FORMS {
            let tail = tail(form, 100.0, 0.0, 2);
            for (guesses, correct) in [(100, 80), (5, 5), (60, 35)] {
                let cut = Cut { guesses, correct };
                let p = tail.success_probability(0.3).unwrap();
                let exact = Binomial::new(guesses.into(), p).upper_tail(correct.into());
                let ours = tail.upper_tail(cut, p);
                assert!(ours >= exact && ours <= exact * (1.0 + 1e-11), "{form:?}");
                let alpha = exact * (1.0 + 1e-9);
                let limit = ApproxLimit::new(tail, alpha).unwrap().limit(cut).unwrap();
                assert!((limit.unwrap().logit() - 0.3).abs() < 1e-8, "{form:?}");
            }
        }
    }

    #[test]
    fn limits_lie_on_the_verified_side() {
        for form in FORMS {
            for delta in [1e-9, 1e-6, 1e-4] {
                for (guesses, correct) in [(300, 280), (20, 20), (1000, 620), (4, 3)] {
                    let cut = Cut { guesses, correct };
                    let statistic = ApproxLimit::new(tail(form, 1000.0, delta, 2), 0.05).unwrap();
                    let Some(limit) = statistic.limit(cut).unwrap() else {
                        assert!(!statistic.refutes(cut, Probability::HALF));
                        continue;
                    };
                    assert!(statistic.refutes(cut, limit));
                    let above = Probability::from_logit(limit.logit() + 1e-10).unwrap();
                    assert!(!statistic.refutes(cut, above), "{form:?} {delta} {cut:?}");
                    assert!(!statistic.may_exceed(cut, above));
                }
            }
        }
    }

    #[test]
    fn an_envelope_is_the_best_mixture_of_two_values() {
        let reached = [0.1, 0.15, 0.6, 0.7, 1.0];
        for mean in [0.0, 0.3, 1.0, 1.9, 2.0, 3.5, 4.0, 7.0] {
            let at = |k: usize| (k as f64, reached[k]);
            let mut best = if mean >= 4.0 { 1.0_f64 } else { 0.0 };
            for (i, j) in (0..5).flat_map(|i| (i..5).map(move |j| (i, j))) {
                let ((a, low), (b, high)) = (at(i), at(j));
                if a <= mean && mean <= b {
                    let share = if b > a { (mean - a) / (b - a) } else { 0.0 };
                    best = best.max(low + share * (high - low));
                }
            }
            let ours = envelope(reached.into_iter(), mean);
            assert!((ours - best).abs() < 1e-15, "{mean}: {ours} {best}");
        }
    }
}
