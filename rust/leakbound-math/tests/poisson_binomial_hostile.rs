//! Unlike terms of every size: no tail is NaN or panics, and every inverse is proved by its tail.
#![allow(clippy::unwrap_used)]

use leakbound_math::MathError;
use leakbound_math::poisson_binomial::{Tail, Terms, Weighted};
use proptest::prelude::*;

/// Sizes that offsets, probabilities and ε come in.
const SIZES: [f64; 24] = [
    0.0, 5e-324, 1e-310, 1e-250, 1e-17, 1e-3, 0.5, 1.0, 2.5, 10.0, 37.0, 100.0, 250.0, 299.0,
    300.0, 388.0, 600.0, 689.0, 700.0, 746.0, 1e4, 1e17, 1e300, 1e308,
];
const LEVELS: [f64; 8] = [
    5e-324,
    1e-300,
    1e-12,
    0.05,
    0.5,
    0.7,
    1.0 - 1e-9,
    1.0 - f64::EPSILON / 2.0,
];

fn size() -> impl Strategy<Value = f64> {
    (prop::sample::select(&SIZES[..]), any::<bool>())
        .prop_map(|(x, minus)| if minus { -x } else { x })
}

fn offset() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -300.0..300.0_f64,
        4 => prop::sample::select(&[-10.0, 10.0, -300.0, 300.0, 0.0][..]),
        1 => size(),
        1 => prop::sample::select(&[f64::INFINITY, f64::NEG_INFINITY][..]),
    ]
}

/// All offsets of one or two sizes, or each of its own; few, or too many for single probabilities.
fn offsets() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(offset(), 1..50),
        (offset(), offset(), 1..150_usize)
            .prop_map(|(a, b, n)| (0..n).map(|i| if i % 2 == 0 { a } else { b }).collect()),
        (
            -30.0..30.0_f64,
            prop::collection::vec(-1.0..1.0_f64, 1..130)
        )
            .prop_map(|(scale, x)| x.into_iter().map(|x| scale * x).collect()),
    ]
}

fn probabilities() -> impl Strategy<Value = Vec<f64>> {
    let one = prop_oneof![
        0.0..=1.0_f64,
        prop::sample::select(
            &[
                0.0,
                -0.0,
                1.0,
                5e-324,
                1e-310,
                1e-250,
                1.0 - f64::EPSILON / 2.0
            ][..]
        ),
        (-740.0..0.0_f64).prop_map(f64::exp),
    ];
    prop::collection::vec(one, 1..130)
}

fn assert_sound(tail: Tail) {
    assert!((0.0..=1.0).contains(&tail.value), "{tail:?}");
    assert!(tail.log <= 0.0 && tail.relative_error >= 0.0, "{tail:?}");
    assert!(tail.log_upper() <= 0.0, "{tail:?}");
}

/// A legal refusal, and no search that gave up.
fn assert_refused(error: MathError) {
    assert!(!matches!(error, MathError::NotConverged { .. }), "{error}");
}

/// That P(S ≥ v) ≤ β at `epsilon` for certain, and not much above it.
fn assert_proved(tail: impl Fn(f64) -> Tail, epsilon: f64, beta: f64) {
    assert!(!epsilon.is_nan());
    if !epsilon.is_finite() {
        return;
    }
    let below = tail(epsilon);
    // A hair: the tail here may lose more than the inverse, which knew where it was going.
    let hair = 1e-12 * (1.0 - beta.ln()) + 4.0 * below.relative_error.min(1.0);
    assert!(below.log <= beta.ln() + hair, "{epsilon} {beta}: {below:?}");
}

fn check_offsets(offsets: &[f64], v: i64, epsilon: f64, beta: f64) {
    let terms = match Terms::from_offsets(offsets) {
        Ok(terms) => terms,
        Err(error) => return assert_refused(error),
    };
    assert_sound(terms.tail(v, epsilon));
    assert_proved(|e| terms.tail(v, e), terms.epsilon(v, beta).unwrap(), beta);
}

/// P(S = k) for every k, one term after the other.
fn convolution(p: &[f64]) -> Vec<f64> {
    let mut pmf = vec![1.0];
    for p in p {
        pmf.push(0.0);
        for k in (1..pmf.len()).rev() {
            pmf[k] = p * pmf[k - 1] + (1.0 - p) * pmf[k];
        }
        pmf[0] *= 1.0 - p;
    }
    pmf
}

fn check_probabilities(p: &[f64], v: i64, beta: f64) {
    let terms = Terms::from_probabilities(p).unwrap();
    let tail = terms.tail(v, 0.0);
    assert_sound(tail);
    // Straight from all probabilities, as far down as they are normal numbers.
    let all = convolution(p);
    let from = usize::try_from(v.max(0)).unwrap().min(all.len());
    let plain: f64 = all[from..].iter().rev().sum();
    if plain > 1e-290 {
        let allowed = 1e-12 + tail.relative_error;
        assert!(
            (tail.value / plain - 1.0).abs() <= allowed,
            "{tail:?} {plain}"
        );
    }
    assert!(!terms.epsilon(v, beta).unwrap().is_nan());
}

fn check_weighted(offsets: &[f64], weights: &[u64], v: i64, epsilon: f64, beta: f64) {
    let sum = match Weighted::from_offsets(offsets, weights) {
        Ok(sum) => sum,
        Err(error) => return assert_refused(error),
    };
    match sum.tail(v, epsilon) {
        Ok(tail) => assert_sound(tail),
        Err(error) => assert_refused(error),
    }
    match sum.epsilon(v, beta) {
        Ok(found) => assert_proved(
            |e| {
                sum.tail(v, e).unwrap_or(Tail {
                    value: 0.0,
                    log: f64::NEG_INFINITY,
                    relative_error: 0.0,
                })
            },
            found,
            beta,
        ),
        Err(error) => assert_refused(error),
    }
}

macro_rules! hostile {
    ($cases:literal, $($attribute:meta)?) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases($cases) })]

            #[test]
            $(#[$attribute])?
            fn offsets_of_every_size(
                a in offsets(), share in -0.1..1.1_f64, epsilon in size(),
                beta in prop::sample::select(&LEVELS[..]),
            ) {
                check_offsets(&a, (share * a.len() as f64).round() as i64, epsilon, beta);
            }

            #[test]
            $(#[$attribute])?
            fn probabilities_of_every_size(
                p in probabilities(), share in -0.1..1.1_f64,
                beta in prop::sample::select(&LEVELS[..]),
            ) {
                check_probabilities(&p, (share * p.len() as f64).round() as i64, beta);
            }

            #[test]
            $(#[$attribute])?
            fn weights_of_every_size(
                terms in prop::collection::vec((offset(), 0..12_u64, any::<bool>()), 1..40),
                large in prop::sample::select(&[1_u64, 7, 1 << 20, 1 << 40][..]),
                share in -0.1..1.1_f64, epsilon in size(),
                beta in prop::sample::select(&LEVELS[..]),
            ) {
                let a: Vec<f64> = terms.iter().map(|term| term.0).collect();
                let t: Vec<u64> = terms
                    .iter()
                    .map(|&(_, t, is_large)| if is_large && a.len() < 17 { t * large } else { t })
                    .collect();
                let v = (share * t.iter().sum::<u64>() as f64).round() as i64;
                check_weighted(&a, &t, v, epsilon, beta);
            }
        }
    };
}

mod few {
    use super::*;
    hostile!(1000,);
}

mod many {
    use super::*;
    hostile!(100_000, ignore = "minutes: make validity runs it");
}

#[test]
fn raised_probabilities_say_how_far_off_they_are() {
    let tiny = vec![5e-324; 1_000_000];
    let single = Terms::from_probabilities(&tiny).unwrap().tail(1, 0.0);
    let sum = Weighted::from_probabilities(&tiny[..1000], &vec![2; 1000]).unwrap();
    for (tail, exact) in [(single, 5e-318), (sum.tail(2, 0.0).unwrap(), 5e-321)] {
        assert!(tail.value >= exact);
        assert!((tail.value - exact).abs() <= tail.relative_error * exact);
    }
}

#[test]
fn weights_that_fill_no_contour_are_refused() {
    let weights: Vec<u64> = (0..40).map(|i| (1 << 45) + i * i).collect();
    let sum = Weighted::from_offsets(&[0.0; 40], &weights).unwrap();
    let error = sum.tail(20 << 45, 0.0).unwrap_err();
    assert!(
        matches!(error, MathError::WeightsTooUnlike { .. }),
        "{error}"
    );
    // Few terms have few sums, however unlike.
    let few = Weighted::from_offsets(&[0.0; 3], &[1, 1 << 40, 7]).unwrap();
    assert!((few.tail(8, 0.0).unwrap().value - 0.625).abs() < 1e-15);
}
