//! Every vector level against plain loops, at lengths around the widths of the vectors.
#![allow(clippy::unwrap_used)]

use leakbound_simd::{
    Level, Nodes, log_ratio, multiply_by_terms, multiply_nodes, odds_from_logits,
    odds_from_probabilities, power_sums, rough_power_sums, series_at_nodes,
};
use proptest::prelude::*;

fn logits(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| ((i * 7919 + 13) % 101) as f64 / 12.0 - 4.0)
        .collect()
}

fn odds(level: Level, logits: &[f64]) -> (Vec<f64>, Vec<f32>) {
    let (mut odds, mut residuals) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
    odds_from_logits(level, logits, 0.0, &mut odds, &mut residuals);
    (odds, residuals)
}

fn close(a: f64, b: f64, scale: f64) -> bool {
    (a - b).abs() <= 1e-14 * scale
}

/// Lengths below, at and above whole vectors and whole blocks; Miri, which interprets, has vectors
/// alone.
const LENGTHS: &[usize] = if cfg!(miri) {
    &[0, 1, 3, 4, 9, 33]
} else {
    &[0, 1, 3, 4, 7, 8, 9, 511, 513, 1100]
};

#[test]
fn odds_are_exponentials_and_carry_their_rounding() {
    for level in Level::available() {
        for &n in LENGTHS {
            let logits = logits(n);
            let (odds, residuals) = odds(level, &logits);
            for ((a, e), r) in logits.iter().zip(&odds).zip(&residuals) {
                assert!((e / a.exp() - 1.0).abs() <= 4e-16, "{level} {a}");
                assert!(r.abs() <= 1.2e-16, "{level} {a}");
            }
        }
        // e^a · e^−a = 1 to 60 bits once the residuals are counted.
        let a = logits(if cfg!(miri) { 50 } else { 1000 });
        let minus: Vec<f64> = a.iter().map(|a| -a).collect();
        let ((up, up_rest), (down, down_rest)) = (odds(level, &a), odds(level, &minus));
        for i in 0..a.len() {
            let product = up[i].mul_add(down[i], -1.0);
            let rest = f64::from(up_rest[i]) + f64::from(down_rest[i]);
            assert!((product + rest).abs() < 2e-18, "{level} {}", a[i]);
        }
    }
}

#[test]
fn odds_of_probabilities_carry_their_rounding() {
    for level in Level::available() {
        for &n in LENGTHS {
            let p: Vec<f64> = (0..n).map(|i| (i + 1) as f64 / (n + 1) as f64).collect();
            let (mut odds, mut residuals) = (vec![0.0; n], vec![0.0; n]);
            odds_from_probabilities(level, &p, &mut odds, &mut residuals);
            for i in 0..n {
                // E(1−p) − p + rE(1−p) = 0, the first difference exactly
                let lost = odds[i].mul_add(1.0 - p[i], -p[i]) / p[i] + f64::from(residuals[i]);
                let complement_error = (1.0 - (1.0 - p[i]) - p[i]) / (1.0 - p[i]);
                assert!(
                    (lost + complement_error).abs() < 1e-22 + 1e-7 * lost.abs(),
                    "{level}"
                );
            }
        }
    }
}

#[test]
fn power_sums_match_plain_sums() {
    for level in Level::available() {
        for &n in LENGTHS {
            let (odds, residuals) = odds(level, &logits(n));
            let counts: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
            for (weights, counts) in [(vec![1.0; n], None), (counts.clone(), Some(&counts[..]))] {
                for terms in [2, 4, 6, 24] {
                    let sums = power_sums(level, &odds, &residuals, counts, 0.75, terms);
                    assert_eq!(sums.terms, terms);
                    let (mut mean, mut largest) = (0.0, 0.0_f64);
                    for (e, c) in odds.iter().zip(&weights) {
                        let o = e * 0.75;
                        mean += c * (o / (1.0 + o));
                        largest = largest.max(o / (1.0 + o) / (1.0 + o));
                    }
                    assert!(close(sums.mean.0, mean, 1.0 + mean), "{level} {n}");
                    assert!(close(sums.largest, largest, 1.0));
                    let rough = rough_power_sums(level, &odds, counts, 0.75);
                    assert!(close(rough.mean.0, mean, 1.0 + mean));
                    assert!(close(rough.even[1], sums.even[1], 1.0 + sums.even[1]));
                    for m in 0..terms {
                        let (mut even, mut odd) = (0.0, 0.0);
                        for (e, c) in odds.iter().zip(&weights) {
                            let p = e * 0.75 / (1.0 + e * 0.75);
                            let power = (p * (1.0 - p)).powi(i32::try_from(m).unwrap() + 1);
                            even += c * power;
                            odd += c * power * (1.0 - 2.0 * p);
                        }
                        assert!(close(sums.even[m], even, 1.0 + even), "{level} {n} {m}");
                        assert!(close(sums.odd[m], odd, 1.0 + even), "{level} {n} {m}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_mean_has_more_bits_than_a_double() {
    // p and 1 − p from e^a and e^−a: the means add up to n far below one unit in the last place.
    let half: u16 = if cfg!(miri) { 32 } else { 2048 };
    let a = logits(2 * usize::from(half) + 1);
    let minus: Vec<f64> = a.iter().map(|a| -a).collect();
    for level in Level::available() {
        let ((up, up_rest), (down, down_rest)) = (odds(level, &a), odds(level, &minus));
        let sums = power_sums(level, &up, &up_rest, None, 1.0, 4);
        let mirrored = power_sums(level, &down, &down_rest, None, 1.0, 4);
        // Means near half of all: both differences are exact.
        let (low, high) = (f64::from(half), f64::from(half) + 1.0);
        let total = (sums.mean.0 - low) + (mirrored.mean.0 - high);
        let total = total + (sums.mean.1 + mirrored.mean.1);
        assert!(total.abs() < 1e-15, "{level}: {total:e}");
    }
}

#[test]
fn log_ratios_match_plain_sums_and_their_inverse() {
    for level in Level::available() {
        for &n in LENGTHS {
            let (odds, residuals) = odds(level, &logits(n));
            for (x, y) in [
                (0.5, 0.75),
                (2.0, 1e-3),
                (1e-3, 1e200),
                (1.0, 0.0),
                (0.0, 3.0),
            ] {
                let ratio = log_ratio(level, &odds, &residuals, x, y);
                let plain: f64 = odds.iter().map(|e| (e * y).ln_1p() - (e * x).ln_1p()).sum();
                let mean: f64 = odds.iter().map(|e| e * y / (1.0 + e * y)).sum();
                assert!(
                    close(ratio.log.0, plain, 1.0 + plain.abs()),
                    "{level} {n} {x} {y}"
                );
                assert!(close(ratio.mean, mean, 1.0 + mean));
                let back = log_ratio(level, &odds, &residuals, y, x).log;
                let sum = (ratio.log.0 + back.0) + (ratio.log.1 + back.1);
                assert!(sum.abs() <= 4e-15, "{level} {n}: {sum:e}");
            }
        }
    }
}

#[test]
fn the_series_is_the_product_at_the_nodes() {
    let p: Vec<f64> = (0..203).map(|i| f64::from(i) / 1500.0).collect();
    for level in Level::available() {
        let (mut odds, mut residuals) = (vec![0.0; p.len() - 1], vec![0.0; p.len() - 1]);
        odds_from_probabilities(level, &p[1..], &mut odds, &mut residuals);
        let sums = power_sums(level, &odds, &residuals, None, 1.0, 24);
        for nodes in [
            Nodes::equispaced(0.07, 13),
            Nodes::at(&[0.1, -1.1, 2.0, 3.1]),
        ] {
            let (mut re, mut im) = (vec![0.0; nodes.padded()], vec![0.0; nodes.padded()]);
            series_at_nodes(level, &sums, 24, 0.0, &nodes, &mut re, &mut im);
            let (mut a, mut b) = (vec![1.0; nodes.padded()], vec![0.0; nodes.padded()]);
            multiply_nodes(level, &p, &nodes, &mut a, &mut b);
            for (k, angle) in nodes.angles().iter().enumerate() {
                let (size, phase) = (re[k].exp(), im[k] + sums.mean.0 * angle);
                assert!((size * phase.cos() - a[k]).abs() < 1e-14, "{level} {angle}");
                assert!((size * phase.sin() - b[k]).abs() < 1e-14, "{level} {angle}");
            }
        }
    }
}

proptest! {
    #[test]
    fn convolutions_match_plain_loops(
        p in proptest::collection::vec(0.0..1.0, 0..70),
    ) {
        let q: Vec<f64> = p.iter().map(|p| 1.0 - p).collect();
        let mut plain = vec![1.0];
        for (p, q) in p.iter().zip(&q) {
            plain.push(0.0);
            for k in (1..plain.len()).rev() {
                plain[k] = p * plain[k - 1] + q * plain[k];
            }
            plain[0] *= q;
        }
        for level in Level::available() {
            let mut pmf = vec![0.0; p.len() + 1];
            pmf[0] = 1.0;
            multiply_by_terms(level, &mut pmf, 0, &p, &q);
            for (a, b) in pmf.iter().zip(&plain) {
                prop_assert!((a - b).abs() <= 1e-13 * b, "{level}");
            }
        }
    }
}
