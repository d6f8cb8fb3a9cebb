//! What must hold for every argument, and slow obvious sums as oracles.
#![allow(clippy::unwrap_used)]

use leakbound_math::MathError;
use leakbound_math::binomial::{Binomial, RELATIVE_ERROR, relative_error};
use leakbound_math::clopper_pearson::{lower_limit, lower_limit_from, upper_limit};
use leakbound_math::probability::Probability;
use leakbound_math::{deviance, logistic, normal};
use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Discrete, DiscreteCDF, Normal};

/// Probabilities over the whole range, by logit.
fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![-3.0..3.0, -40.0..40.0, -700.0..700.0]
        .prop_map(|logit: f64| Probability::from_logit(logit).unwrap())
}

/// A law of up to ten million trials, and a count from 0 to one beyond them.
fn law_and_count() -> impl Strategy<Value = (u64, Probability, u64)> {
    (
        prop_oneof![1_u64..50, 1_u64..20_000, 1_u64..10_000_000],
        probability(),
        0.0..=1.0,
        any::<bool>(),
    )
        .prop_map(|(n, p, share, central): (u64, Probability, f64, bool)| {
            let deviation = (n as f64 * p.p() * p.q()).sqrt();
            let centre = n as f64 * p.p() + (20.0 * share - 10.0) * deviation;
            let v = if central {
                centre
            } else {
                share * (n + 1) as f64
            };
            (n, p, v.round().clamp(0.0, (n + 1) as f64) as u64)
        })
}

fn relative(got: f64, expected: f64) -> f64 {
    if got == expected {
        0.0
    } else {
        ((got - expected) / expected).abs()
    }
}

/// Absolute error that `relative_error` allows two logarithms of tails to differ by.
fn slack(ln: f64) -> f64 {
    2.0 * relative_error(ln)
}

/// A number as an unevaluated sum of two doubles: 32 digits for the slow oracle.
#[derive(Clone, Copy)]
struct Double {
    high: f64,
    low: f64,
}

impl Double {
    const ONE: Self = Self {
        high: 1.0,
        low: 0.0,
    };

    fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let other = high - a;
        Self {
            high,
            low: (a - (high - other)) + (b - other),
        }
    }

    fn plus(self, other: Self) -> Self {
        let s = Self::sum(self.high, other.high);
        Self::sum(s.high, s.low + self.low + other.low)
    }

    fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Self::sum(high, low + self.high * other.low + self.low * other.high)
    }
}

/// P(X ≥ v) and P(X ≤ v) for every v, by convolving one trial at a time in 32 digits: no logarithm,
/// no factorial, nothing subtracted.
fn tails_by_convolution(trials: usize, p: Probability) -> Vec<(f64, f64)> {
    let (p, q) = if p.p() <= p.q() {
        (
            Double {
                high: p.p(),
                low: 0.0,
            },
            Double::sum(1.0, -p.p()),
        )
    } else {
        (
            Double::sum(1.0, -p.q()),
            Double {
                high: p.q(),
                low: 0.0,
            },
        )
    };
    let mut pmf = vec![Double::ONE];
    for _ in 0..trials {
        pmf.push(Double {
            high: 0.0,
            low: 0.0,
        });
        for v in (0..pmf.len()).rev() {
            let stay = pmf[v].times(q);
            pmf[v] = if v == 0 {
                stay
            } else {
                stay.plus(pmf[v - 1].times(p))
            };
        }
    }
    let zero = Double {
        high: 0.0,
        low: 0.0,
    };
    let total = |terms: &[Double]| terms.iter().fold(zero, |sum, term| sum.plus(*term)).high;
    (0..pmf.len())
        .map(|v| (total(&pmf[v..]), total(&pmf[..=v])))
        .collect()
}

proptest! {
    #[test]
    fn binomial_tails_match_a_convolution(trials in 1_usize..400, logit in -4.0..4.0) {
        let p = Probability::from_logit(logit).unwrap();
        let law = Binomial::new(trials as u64, p);
        for (v, (upper, lower)) in tails_by_convolution(trials, p).into_iter().enumerate() {
            for (got, expected) in [(law.upper_tail(v as u64), upper), (law.lower_tail(v as u64), lower)] {
                // Points below 1e-290 have underflowed in the low halves of the oracle.
                if expected > 1e-280 {
                    prop_assert!(relative(got, expected) <= relative_error(expected.ln()), "{v}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn binomial_tails_are_complementary((n, p, v) in law_and_count()) {
        let law = Binomial::new(n, p);
        if v > 0 {
            prop_assert!((law.upper_tail(v) + law.lower_tail(v - 1) - 1.0).abs() <= 4e-14);
        }
        let mirror = Binomial::new(n, p.complement());
        prop_assert_eq!(law.ln_upper_tail(v), if v > n { f64::NEG_INFINITY } else { mirror.ln_lower_tail(n - v) });
        if v <= n {
            prop_assert!(relative(law.ln_pmf(v), mirror.ln_pmf(n - v)) <= 1e-14);
        }
    }

    #[test]
    fn binomial_tails_fall_with_the_count_and_rise_with_p((n, p, v) in law_and_count(), up in 0.0..0.1) {
        let (law, likelier) = (Binomial::new(n, p), Binomial::new(n, p.shift_logit(up)));
        let ln = law.ln_upper_tail(v);
        if v <= n {
            prop_assert!(law.ln_upper_tail(v + 1) <= ln + slack(ln));
            prop_assert!(likelier.ln_upper_tail(v) >= ln - slack(ln));
        }
    }

    #[test]
    fn binomial_tails_are_sums_of_points((n, p, v) in law_and_count()) {
        let law = Binomial::new(n, p);
        let (tail, next, point) = (law.upper_tail(v), law.upper_tail(v + 1), law.pmf(v));
        if tail > 1e-290 {
            prop_assert!((tail - next - point).abs() <= 3.0 * relative_error(tail.ln()) * tail);
        }
    }

    #[test]
    fn limits_are_certified_and_tight((n, _, v) in law_and_count(), ln_beta in -690.0..-0.694) {
        let v = v.min(n);
        let beta = f64::exp(ln_beta);
        let limit = lower_limit(v, n, beta).unwrap();
        if v == 0 {
            prop_assert_eq!(limit, Probability::ZERO);
        } else {
            let tail = |p: Probability| Binomial::new(n, p).upper_tail(v);
            let inflation = if v == 1 || v == n { 1.0 - RELATIVE_ERROR } else { 1.0 + RELATIVE_ERROR };
            prop_assert!(tail(limit) * inflation <= beta);
            // Twice the documented error above, the tail is over the level.
            let above = Probability::new(limit.p() * (1.0 + 2e-12)).unwrap_or(Probability::ONE);
            let over = limit.q() * (1.0 - 2e-12);
            let above = if limit.p() < 0.5 { above } else { Probability::from_complement(over).unwrap() };
            prop_assert!(tail(above) * (1.0 + RELATIVE_ERROR) > beta);
        }
    }

    #[test]
    fn limits_do_not_depend_on_the_guess((n, guess, v) in law_and_count(), ln_beta in -690.0..-0.694) {
        let (v, beta) = (v.min(n), f64::exp(ln_beta));
        let (cold, warm) = (lower_limit(v, n, beta).unwrap(), lower_limit_from(v, n, beta, guess).unwrap());
        prop_assert!(relative(warm.p(), cold.p()) <= 1e-12 && relative(warm.q(), cold.q()) <= 1e-12);
    }

    #[test]
    fn limits_are_ordered((n, _, v) in law_and_count(), ln_beta in -690.0..-0.694) {
        let (v, beta) = (v.min(n), f64::exp(ln_beta));
        let (low, high) = (lower_limit(v, n, beta).unwrap(), upper_limit(v, n, beta).unwrap());
        prop_assert!(low.p() <= v as f64 / n as f64 && v as f64 / n as f64 <= high.p());
        prop_assert_eq!(high, lower_limit(n - v, n, beta).unwrap().complement());
        prop_assert!(low <= lower_limit(v, n, 0.5 * (beta + 0.5)).unwrap());
        if v < n {
            prop_assert!(low < lower_limit(v + 1, n, beta).unwrap());
            prop_assert!(lower_limit(v, n + 1, beta).unwrap() <= low);
        }
    }

    #[test]
    fn a_divergence_lies_within_its_bounds(
        r in 1_u32..10_000_000, share in 0.0..=1.0, p in probability(), deviations in prop::option::of(-9.0..9.0),
    ) {
        let r = f64::from(r);
        // Anywhere, or within a few deviations of the mean.
        let near = |z: f64| r * p.p() + z * (r * p.p() * p.q()).sqrt();
        let w = deviations.map_or(share * r, near).round().clamp(0.0, r) + 0.0;
        let exact = deviance::binomial_divergence(w, r, p);
        let (low, high) = deviance::binomial_divergence_bounds(w, r, p);
        prop_assert!(low <= exact && exact <= high, "{low} {exact} {high}");
        // And near the mean they are close.
        let gap = (w / r - p.p()) / (p.p() * p.q());
        if gap.abs() < 0.3 && w > 0.0 && w < r {
            prop_assert!(high <= low * (1.0 + gap * gap / 2.0 + 1e-13), "{low} {high}");
        }
    }

    #[test]
    fn a_divergence_is_a_sum_of_two_deviances(r in 1.0..1e7, share in 0.0..=1.0, p in probability()) {
        let w = share * r;
        let sum = deviance::deviance(w, r * p.p()) + deviance::deviance(r - w, r * p.q());
        let whole = deviance::binomial_divergence(w, r, p);
        // The plain sum suffers from the rounding of r p, the closer w/r and p the more.
        let closeness = (w - r * p.p()).abs() / r;
        prop_assert!(relative(whole, sum) <= 1e-14 + 1e-15 / closeness, "{} {}", whole, sum);
        prop_assert!(whole >= 0.0);
        let mirrored = deviance::binomial_divergence(r - w, r, p.complement());
        prop_assert!(relative(whole, mirrored) <= 1e-14 + 1e-15 / closeness);
    }

    #[test]
    fn log1p_minus_matches_the_plain_difference(x in prop_oneof![-0.999..-0.4, 0.5..1e6]) {
        prop_assert!(relative(deviance::log1p_minus(x), x.ln_1p() - x) <= 4e-15);
    }

    #[test]
    fn deviance_is_convex_around_its_zero(mean in 1e-3..1e7, a in 0.0..3.0, b in 0.0..3.0) {
        let at = |share: f64| deviance::deviance(share * mean, mean);
        let middle = at(0.5 * (a + b));
        prop_assert!(middle <= 0.5 * (at(a) + at(b)) + 1e-15 * mean && middle >= 0.0);
    }

    #[test]
    fn logistic_functions_invert_each_other(x in -700.0..700.0) {
        let p = Probability::from_logit(x).unwrap();
        prop_assert!((p.logit() - x).abs() <= 1e-15 * x.abs().max(1.0));
        prop_assert_eq!(p.complement().logit(), -p.logit());
        prop_assert!(relative(logistic::log_expit(x), p.ln_p()) <= 1e-15);
        prop_assert!(relative(logistic::softplus(x), -p.ln_q()) <= 1e-15);
        prop_assert!(relative(logistic::expit(x), p.p()) <= 1e-15);
        if x.abs() < 30.0 {
            prop_assert!((logistic::logit(p.p()) - x).abs() <= 1e-15 * (1.0 + x.abs() + x.exp()));
        }
    }

    #[test]
    fn shifting_a_logit_adds_to_it(x in -300.0..300.0, step in prop_oneof![-1.0..1.0, -300.0..300.0]) {
        let shifted = Probability::from_logit(x).unwrap().shift_logit(step);
        prop_assert!((shifted.logit() - (x + step)).abs() <= 1e-13);
        let (p, down) = (shifted, shifted.next_down());
        prop_assert!(down < p);
        prop_assert!(relative(down.p(), p.p()) <= 2e-15 && relative(down.q(), p.q()) <= 2e-15);
    }

    #[test]
    fn normal_tails_and_quantiles_agree(p in probability()) {
        let x = normal::quantile(p);
        let smaller = p.p().min(p.q());
        // A quantile is rounded, and tails amplify that by x Φ'/Φ, about x².
        let allowed = 1e-15 * (2.0 + x * x);
        prop_assert!(relative(normal::sf(x.abs()), smaller) <= allowed);
        prop_assert!(relative(normal::ln_sf(x.abs()), smaller.ln()) <= 3e-15);
        prop_assert_eq!(normal::quantile(p.complement()), -x);
        let again = normal::quantile_from_ln(p.ln_p()).unwrap();
        prop_assert!((again - x).abs() <= 1e-15 * (1.0 + x.abs()) * (1.0 + 1.0 / p.q().max(1e-3)));
    }

    #[test]
    fn normal_log_quantiles_invert_log_tails(x in prop_oneof![-1e3..1.0, -1e150..-1e3]) {
        let ln = normal::ln_cdf(x);
        let back = normal::quantile_from_ln(ln).unwrap();
        prop_assert!((back - x).abs() <= 2e-15 * (1.0 + x.abs()), "{} {}", x, back);
    }

    #[test]
    fn normal_tails_are_monotone_and_complementary(x in -37.0..37.0, step in 1e-3..1.0) {
        prop_assert!(normal::sf(x + step) < normal::sf(x) || x < -7.0);
        prop_assert!(normal::ln_cdf(x + step) > normal::ln_cdf(x));
        prop_assert!((normal::sf(x) + normal::cdf(x) - 1.0).abs() <= 2.3e-16);
        prop_assert_eq!(normal::sf(x), normal::cdf(-x));
    }
}

/// Where statrs is accurate it agrees: the normal centre, binomial points and tails of few trials.
#[test]
fn statrs_agrees_where_it_is_accurate() {
    let standard = Normal::new(0.0, 1.0).unwrap();
    for x in (-40..=40).map(|k| 0.05 * f64::from(k)) {
        assert!(relative(normal::sf(x), standard.sf(x)) <= 1e-9, "{x}");
    }
    for (n, p) in [(1, 0.3), (20, 0.5), (60, 0.07), (100, 0.9)] {
        let theirs = statrs::distribution::Binomial::new(p, n).unwrap();
        let ours = Binomial::new(n, Probability::new(p).unwrap());
        for v in 1..=n {
            assert!(relative(ours.pmf(v), theirs.pmf(v)) <= 1e-11, "{n} {p} {v}");
            if theirs.sf(v - 1) > 1e-9 {
                assert!(
                    relative(ours.upper_tail(v), theirs.sf(v - 1)) <= 1e-9,
                    "{n} {p} {v}"
                );
            }
        }
    }
}

/// By symmetry, P(X ≥ n/2) = (1 + P(X = n/2))/2 for an even number n of fair coins.
#[test]
fn the_median_of_any_number_of_coins() {
    for half in [1, 50, 1500, 3199, 3201, 5_000_000, 1 << 52] {
        let coins = Binomial::new(2 * half, Probability::HALF);
        let exact = 0.5 * (1.0 + coins.pmf(half));
        assert!(relative(coins.upper_tail(half), exact) <= 1e-14, "{half}");
    }
}

/// Fair coins in numbers that are exact sums of binomial coefficients.
#[test]
fn tails_of_fair_coins_as_exact_rationals() {
    for trials in 1_u64..=120 {
        let coins = Binomial::new(trials, Probability::HALF);
        let (mut choices, mut total) = (1_u128, 0_u128);
        for v in (1..=trials).rev() {
            total += choices;
            let exact = total as f64 / 2.0_f64.powi(trials as i32);
            assert!(
                relative(coins.upper_tail(v), exact) <= 4e-14,
                "{trials} {v}"
            );
            choices = choices * u128::from(v) / u128::from(trials - v + 1);
        }
    }
}

#[test]
fn refused_arguments_are_named() {
    let message = |error: MathError| error.to_string();
    assert_eq!(
        message(lower_limit(3, 2, 0.05).unwrap_err()),
        "successes must be at most trials, got 3 successes in 2 trials"
    );
    for beta in [0.0, 1.0, -0.1, f64::NAN] {
        let error = upper_limit(1, 2, beta).unwrap_err();
        assert!(
            matches!(error, MathError::LevelOutOfRange { name: "beta", .. }),
            "{error}"
        );
    }
    for p in [-1e-300, 1.0 + 1e-15, f64::NAN] {
        assert!(matches!(
            Probability::new(p),
            Err(MathError::NotAProbability { name: "p", .. })
        ));
        let error = Probability::from_complement(p).unwrap_err();
        assert!(
            matches!(error, MathError::NotAProbability { name: "q", .. }),
            "{error}"
        );
    }
    assert_eq!(
        Probability::from_logit(f64::NAN),
        Err(MathError::NotANumber { name: "logit" })
    );
    let error = normal::quantile_from_ln(1e-300).unwrap_err();
    assert!(
        matches!(error, MathError::NotALogProbability { .. }),
        "{error}"
    );
}

/// A sweep over ten million trials, each limit the guess for the next, and guesses that mislead.
#[test]
fn limits_of_a_long_sweep_and_from_bad_guesses() {
    let mut guess = lower_limit(3_000, 6_000, 0.05).unwrap();
    for trials in (6_000..10_000_000).step_by(49_999) {
        guess = lower_limit_from(trials / 2, trials, 0.05, guess).unwrap();
        let cold = lower_limit(trials / 2, trials, 0.05).unwrap();
        assert!(relative(guess.p(), cold.p()) <= 1e-12);
    }
    for n in [1_000, 10_000_000, 1 << 53] {
        for beta in [0.5, 1e-3, 1e-300] {
            for v in [2, n / 1000, n / 2, n - 1] {
                let cold = lower_limit(v, n, beta).unwrap();
                for logit in [
                    f64::NEG_INFINITY,
                    -800.0,
                    -1.0,
                    0.0,
                    1.0,
                    800.0,
                    f64::INFINITY,
                ] {
                    let guess = Probability::from_logit(logit).unwrap();
                    let warm = lower_limit_from(v, n, beta, guess).unwrap();
                    assert!(
                        relative(warm.p(), cold.p()) <= 1e-12,
                        "{n} {v} {beta} {logit}"
                    );
                }
            }
        }
    }
}

/// One success and none missing have limits in closed form, which the search does not see.
#[test]
fn limits_in_closed_form_are_below_the_level() {
    for trials in [1_u64, 2, 7, 1_000, 10_000_000] {
        for beta in [1e-300, 1e-9, 0.05, 0.5, 0.999, 1.0 - f64::EPSILON] {
            let (one, all) = (
                lower_limit(1, trials, beta).unwrap(),
                lower_limit(trials, trials, beta).unwrap(),
            );
            // ln P(X = 0) ≥ ln(1 − β) and ln P(X = n) ≤ ln β.
            assert!(
                trials as f64 * one.ln_q() >= (-beta).ln_1p(),
                "{trials} {beta}"
            );
            assert!(trials as f64 * all.ln_p() <= beta.ln(), "{trials} {beta}");
            assert!(relative(trials as f64 * one.ln_q(), (-beta).ln_1p()) <= 4e-14);
            assert!(relative(trials as f64 * all.ln_p(), beta.ln()) <= 4e-14);
        }
    }
}

/// Certain outcomes: no rounding, no NaN.
#[test]
fn certain_outcomes_are_exact() {
    let (never, always) = (Probability::ZERO, Probability::ONE);
    for n in [0_u64, 1, 7, 10_000_000] {
        for v in [0, 1, n / 2, n, n + 1] {
            let certain = |yes: bool| {
                if yes {
                    (1.0, 0.0)
                } else {
                    (0.0, f64::NEG_INFINITY)
                }
            };
            for (p, sure) in [(never, 0), (always, n)] {
                let law = Binomial::new(n, p);
                assert_eq!((law.pmf(v), law.ln_pmf(v)), certain(v == sure), "{n} {v}");
                assert_eq!(
                    (law.upper_tail(v), law.ln_upper_tail(v)),
                    certain(v <= sure)
                );
                assert_eq!(
                    (law.lower_tail(v), law.ln_lower_tail(v)),
                    certain(v >= sure)
                );
            }
            if v <= n {
                let divergence = |p| deviance::binomial_divergence(v as f64, n as f64, p);
                assert_eq!(divergence(never), if v == 0 { 0.0 } else { f64::INFINITY });
                assert_eq!(divergence(always), if v == n { 0.0 } else { f64::INFINITY });
                for p in [never, always] {
                    let (low, high) = deviance::binomial_divergence_bounds(v as f64, n as f64, p);
                    assert!(low <= divergence(p) && divergence(p) <= high, "{v} of {n}");
                }
            }
        }
    }
}
