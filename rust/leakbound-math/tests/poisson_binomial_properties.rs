//! Poisson-binomial tails: what must hold whatever the terms, and exact rationals on few of them.
#![allow(clippy::unwrap_used)]

use leakbound_math::MathError;
use leakbound_math::poisson_binomial::{Level, Tail, Terms, Weighted, replicate_epsilons};
use proptest::collection::vec;
use proptest::prelude::*;

/// Whether two tails agree to within what they claim, and twice that.
fn agree(a: Tail, b: Tail) -> bool {
    a.log.to_bits() == b.log.to_bits()
        || (a.log - b.log).abs() <= 2.0 * (a.relative_error + b.relative_error)
}

/// P(Σ tᵢXᵢ ≥ v) · 2^{16n} for pᵢ = kᵢ/2¹⁶, exactly.
fn exact_tail(k: &[u16], weights: &[u64], v: u64) -> u128 {
    (0..1_u32 << k.len())
        .filter(|pattern| {
            (0..k.len())
                .filter(|i| pattern >> i & 1 == 1)
                .map(|i| weights[i])
                .sum::<u64>()
                >= v
        })
        .map(|pattern| {
            (0..k.len())
                .map(|i| {
                    let k = u128::from(k[i]);
                    if pattern >> i & 1 == 1 { k } else { 65_536 - k }
                })
                .product::<u128>()
        })
        .sum()
}

fn two_to_the_16(n: usize) -> f64 {
    2f64.powi(16 * i32::try_from(n).unwrap())
}

/// ln P(S ≥ 82) from 60 digits, at a law whose 85 terms of large variance are multiplied out.
#[test]
fn the_error_covers_terms_that_are_multiplied_out() {
    let groups = [
        (-2.016_211_062_163_677, 46),
        (1.417_296_165_351_267_7, 24),
        (-2.866_194_855_563_312_3, 39),
    ];
    let mut offsets: Vec<f64> = groups
        .iter()
        .flat_map(|&(a, count)| std::iter::repeat_n(a, count))
        .collect();
    for _ in 0..2 {
        let tail = Terms::from_offsets(&offsets)
            .unwrap()
            .tail(82, 1.536_744_755_100_255_3);
        let error = (tail.log - -30.119_886_680_471_613).abs();
        assert!(error <= tail.relative_error + 4e-15, "{tail:?}");
        assert!(tail.relative_error < 5e-13);
        offsets.reverse();
    }
}

proptest! {
    #[test]
    fn tails_of_few_terms_are_the_exact_rationals(k in vec(any::<u16>(), 1..=7), v in 0_u64..9) {
        let p: Vec<f64> = k.iter().map(|&k| f64::from(k) / 65_536.0).collect();
        let exact = exact_tail(&k, &[1; 7], v) as f64 / two_to_the_16(k.len());
        let tail = Terms::from_probabilities(&p).unwrap().tail(v.cast_signed(), 0.0);
        prop_assert!((tail.value - exact).abs() <= 2e-15 * exact, "{} {exact}", tail.value);
    }

    #[test]
    fn weighted_tails_of_few_terms_are_the_exact_rationals(
        terms in vec((any::<u16>(), 0_u64..40), 1..=7),
        v in 0_u64..200,
    ) {
        let (k, weights): (Vec<u16>, Vec<u64>) = terms.into_iter().unzip();
        let p: Vec<f64> = k.iter().map(|&k| f64::from(k) / 65_536.0).collect();
        let exact = exact_tail(&k, &weights, v) as f64 / two_to_the_16(k.len());
        let sum = Weighted::from_probabilities(&p, &weights).unwrap();
        let tail = sum.tail(v.cast_signed(), 0.0).unwrap();
        prop_assert!((tail.value - exact).abs() <= 2e-15 * exact, "{} {exact}", tail.value);
    }

    #[test]
    fn tails_fall_with_v_and_rise_with_epsilon(
        offsets in vec(-5.0..5.0, 97..300),
        epsilon in -3.0..3.0,
    ) {
        let terms = Terms::from_offsets(&offsets).unwrap();
        let mut above = Tail { value: 1.0, log: 0.0, relative_error: 0.0 };
        for v in 0..=i64::try_from(offsets.len()).unwrap() {
            let tail = terms.tail(v, epsilon);
            prop_assert!(tail.log <= above.log + above.relative_error);
            let raised = terms.tail(v, epsilon + 0.01);
            prop_assert!(tail.log <= raised.log + raised.relative_error);
            above = tail;
        }
    }

    #[test]
    fn failures_complement_successes(
        offsets in vec(-6.0..6.0, 1..250),
        share in 0.0..1.0,
        epsilon in -2.0..2.0,
    ) {
        let n = i64::try_from(offsets.len()).unwrap();
        let v = (share * n as f64) as i64;
        let failures: Vec<f64> = offsets.iter().map(|a| -a).collect();
        let upper = Terms::from_offsets(&offsets).unwrap().tail(v, epsilon);
        let lower = Terms::from_offsets(&failures).unwrap().tail(n - v + 1, -epsilon);
        let sum = upper.value + lower.value;
        prop_assert!((sum - 1.0).abs() <= upper.relative_error + lower.relative_error + 1e-15);
    }

    #[test]
    fn order_and_grouping_do_not_matter(
        groups in vec((-4.0..4.0, 1_u64..60), 1..12),
        share in 0.0..1.0,
        epsilon in -2.0..2.0,
    ) {
        let (offsets, counts): (Vec<f64>, Vec<u64>) = groups.into_iter().unzip();
        let mut listed: Vec<f64> = offsets.iter().zip(&counts)
            .flat_map(|(&a, &count)| std::iter::repeat_n(a, count as usize))
            .collect();
        let v = (share * listed.len() as f64) as i64 + 1;
        let tail = Terms::from_offsets(&listed).unwrap().tail(v, epsilon);
        listed.reverse();
        prop_assert!(agree(tail, Terms::from_offsets(&listed).unwrap().tail(v, epsilon)));
        let grouped = Terms::from_grouped_offsets(&offsets, Some(&counts)).unwrap();
        prop_assert!(agree(tail, grouped.tail(v, epsilon)));
        let weighted = Weighted::from_offsets(&listed, &vec![3; listed.len()]).unwrap();
        prop_assert!(agree(tail, weighted.tail(3 * v - 2, epsilon).unwrap()));
    }

    #[test]
    fn every_level_agrees(offsets in vec(-20.0..20.0, 97..700), share in 0.0..1.0) {
        let v = (share * offsets.len() as f64) as i64 + 1;
        let terms = Terms::from_offsets(&offsets).unwrap();
        let tail = terms.tail(v, 0.0);
        for level in Level::available() {
            prop_assert!(agree(tail, terms.clone().at_level(level).tail(v, 0.0)), "{level}");
        }
    }

    #[test]
    fn inverses_are_proved_and_tight(
        offsets in vec(-5.0..5.0, 1..400),
        share in 0.0..1.0,
        log_beta in -300.0..-0.001,
    ) {
        let v = (share * offsets.len() as f64) as i64 + 1;
        let v = v.min(i64::try_from(offsets.len()).unwrap());
        let beta = f64::exp(log_beta);
        let terms = Terms::from_offsets(&offsets).unwrap();
        let epsilon = terms.epsilon(v, beta).unwrap();
        let tail = terms.tail(v, epsilon);
        prop_assert!(tail.log <= beta.ln() + 2e-15, "{} above {}", tail.log, beta.ln());
        let above = terms.tail(v, epsilon + 2e-12 * (1.0 + epsilon.abs()) / (1.0 - beta));
        prop_assert!(above.log >= beta.ln() - above.relative_error, "{epsilon}");
    }

    #[test]
    fn batches_and_replicates_are_the_single_inverses(
        offsets in vec(-3.0..3.0, 100..200),
        v in vec(1_i64..100, 1..40),
    ) {
        let terms = Terms::from_offsets(&offsets).unwrap();
        let singles: Vec<f64> = v.iter().map(|&v| terms.epsilon(v, 0.01).unwrap()).collect();
        let batch = terms.epsilons(&v, 0.01).unwrap();
        let replicates =
            replicate_epsilons(v.len(), 0.01, |k| Ok((terms.clone(), v[k]))).unwrap();
        for ((single, batch), replicate) in singles.iter().zip(&batch).zip(&replicates) {
            prop_assert!((single - batch).abs() <= 1e-13 * (1.0 + single.abs()));
            prop_assert_eq!(batch.to_bits(), replicate.to_bits());
        }
    }
}

#[test]
fn the_smallest_probabilities_are_bounded_from_above_and_say_so() {
    let tiny = Terms::from_probabilities(&[1e-300, 0.5]).unwrap();
    assert!((tiny.tail(1, 0.0).value - 0.5).abs() < 1e-15);
    let tail = tiny.tail(2, 0.0);
    assert!(tail.log >= (0.5e-300_f64).ln() && tail.relative_error.is_infinite());
}

#[test]
fn extreme_offsets_keep_their_logarithms() {
    for (offset, epsilon) in [(-1000.0, 0.0), (-250.0, -750.0), (250.0, -1250.0)] {
        let terms = Terms::from_offsets(&[offset; 150]).unwrap();
        let expected = 2.0 * (offset + epsilon) + (150.0_f64 * 149.0 / 2.0).ln();
        let log = terms.tail(2, epsilon).log;
        assert!(
            (log - expected).abs() <= 5e-15 * expected.abs(),
            "{log} {expected}"
        );
    }
    let sure = Terms::from_offsets(&[1000.0; 150]).unwrap().tail(150, 0.0);
    assert!(sure.value > 1.0 - 1e-15 && sure.relative_error < 1e-13);
}

#[test]
fn counts_and_weights_beyond_all_doubles_are_refused() {
    let error = Terms::from_grouped_offsets(&[0.0], Some(&[u64::MAX])).unwrap_err();
    assert!(matches!(error, MathError::TooManyTrials { .. }));
    let error = Weighted::from_offsets(&[0.0], &[u64::MAX]).unwrap_err();
    assert!(matches!(error, MathError::WeightsTooLarge { .. }));
}
