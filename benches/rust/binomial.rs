//! Binomial tails beside a plain sum and statrs, and a sweep of Clopper–Pearson limits.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use leakbound_benches::Uniforms;
use leakbound_math::clopper_pearson::lower_limit;
use leakbound_math::{Binomial, Probability};
use statrs::distribution::DiscreteCDF;

const BETA: f64 = 0.05;

/// P(X ≥ v) by the ratios of neighbouring points, one at a time until they no longer count.
fn plain_sum(law: Binomial, trials: u64, p: f64, v: u64) -> f64 {
    let mut term = law.pmf(v);
    let mut sum = term;
    for k in v..trials {
        term *= (trials - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    sum
}

fn tails(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("binomial-tail");
    for trials in [1_000_u64, 100_000, 10_000_000] {
        let p = 0.47;
        let law = Binomial::new(trials, Probability::new(p).unwrap());
        let v = (trials as f64 * p + 2.0 * (trials as f64 * p * (1.0 - p)).sqrt()) as u64;
        let statrs = statrs::distribution::Binomial::new(p, trials).unwrap();
        let plain = plain_sum(law, trials, p, v);
        assert!((law.upper_tail(v) / plain - 1.0).abs() < 1e-11);
        group.bench_function(BenchmarkId::new("leakbound", trials), |bencher| {
            bencher.iter(|| law.upper_tail(black_box(v)));
        });
        group.bench_function(BenchmarkId::new("plain sum", trials), |bencher| {
            bencher.iter(|| plain_sum(law, trials, p, black_box(v)));
        });
        // statrs stops after 140 steps whatever they have reached: timed only where it is right.
        if (statrs.sf(v - 1) / plain - 1.0).abs() < 1e-9 {
            group.bench_function(BenchmarkId::new("statrs", trials), |bencher| {
                bencher.iter(|| statrs.sf(black_box(v) - 1));
            });
        }
    }
    group.finish();
}

/// Successes among the first r of `trials` fair guesses correct with probability 0.7, for every r.
fn path(trials: u64) -> Vec<(u64, u64)> {
    let mut successes = 0;
    let mut uniforms = Uniforms::new(7);
    (1..=trials)
        .map(|r| {
            successes += u64::from(uniforms.next().unwrap() < 0.7);
            (successes, r)
        })
        .collect()
}
fn best_limit(path: &[(u64, u64)]) -> Probability {
    let limits = path.iter().map(|&(v, n)| lower_limit(v, n, BETA).unwrap());
    limits.fold(
        Probability::ZERO,
        |best, limit| if limit > best { limit } else { best },
    )
}

/// Bisection on the plain sum: what the limits would cost without either method.
fn best_by_bisection(path: &[(u64, u64)]) -> f64 {
    path.iter().fold(0.0, |best, &(successes, trials)| {
        let (mut low, mut high) = (0.0, successes as f64 / trials as f64);
        for _ in 0..40 {
            let p = 0.5 * (low + high);
            let law = Binomial::new(trials, Probability::new(p).unwrap());
            if plain_sum(law, trials, p, successes) <= BETA {
                low = p
            } else {
                high = p
            }
        }
        f64::max(best, low)
    })
}

fn limits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("clopper-pearson-sweep");
    group.sample_size(10);
    for trials in [1_000_u64, 10_000, 100_000] {
        let path = path(trials);
        let best = best_limit(&path);
        group.throughput(Throughput::Elements(trials));
        group.bench_function(BenchmarkId::new("limits", trials), |bencher| {
            bencher.iter(|| best_limit(black_box(&path)));
        });
        if trials <= 10_000 {
            assert!((best_by_bisection(&path) / best.p() - 1.0).abs() < 1e-9);
            group.bench_function(BenchmarkId::new("bisection", trials), |bencher| {
                bencher.iter(|| best_by_bisection(black_box(&path)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, tails, limits);
criterion_main!(benches);
