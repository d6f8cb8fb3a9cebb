//! What must hold for every argument, and slow obvious sums as oracles.
#![allow(clippy::unwrap_used)]

use leakbound_math::MathError;
use leakbound_math::binomial::{Binomial, RELATIVE_ERROR, relative_error};
use leakbound_math::clopper_pearson::lower_limit;
use leakbound_math::probability::Probability;
use leakbound_math::{deviance, logistic, normal};
use proptest::prelude::*;
use wide::{Wide, tails};

mod wide;

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

/// P(X ≥ v) and P(X ≤ v) for every v, by convolving one trial at a time in 32 digits.
fn tails_by_convolution(trials: usize, p: Probability) -> Vec<(f64, f64)> {
    let exact = |x: f64| Wide::new(x, 0.0, 0);
    let smaller = p.p().min(p.q());
    let both = (exact(smaller), Wide::ONE.plus(exact(-smaller)));
    let (p, q) = if p.p() <= p.q() {
        both
    } else {
        (both.1, both.0)
    };
    let tails = tails(std::iter::repeat_n((p, q), trials));
    let values = tails
        .windows(2)
        .map(|pair| (pair[0].0.ln().exp(), pair[1].1.ln().exp()));
    values.collect()
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
    fn limits_are_ordered((n, _, v) in law_and_count(), ln_beta in -690.0..-0.694) {
        let (v, beta) = (v.min(n), f64::exp(ln_beta));
        let low = lower_limit(v, n, beta).unwrap();
        prop_assert!(low.p() <= v as f64 / n as f64);
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
    }

    #[test]
    fn normal_tails_are_monotone_and_complementary(x in -37.0..37.0, step in 1e-3..1.0) {
        prop_assert!(normal::sf(x + step) < normal::sf(x) || x < -7.0);
        prop_assert!(normal::ln_cdf(x + step) > normal::ln_cdf(x));
        prop_assert!((normal::sf(x) + normal::cdf(x) - 1.0).abs() <= 2.3e-16);
        prop_assert_eq!(normal::sf(x), normal::cdf(-x));
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

#[test]
fn refused_arguments_are_named() {
    let message = |error: MathError| error.to_string();
    assert_eq!(
        message(lower_limit(3, 2, 0.05).unwrap_err()),
        "successes must be at most trials, got 3 successes in 2 trials"
    );
    for beta in [0.0, 1.0, -0.1, f64::NAN] {
        let error = lower_limit(1, 2, beta).unwrap_err();
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
