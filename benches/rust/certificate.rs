//! The critical μ by the tight count test, beside Algorithm 3 and beside as many normal tails as
//! there are guesses: what a look at every count would cost at least.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use leakbound_benches::median_nanoseconds;
use leakbound_core::Interrupt;
use leakbound_core::fdp::tradeoff::Gaussian;
use leakbound_core::fdp::{Counts, certificate, recursion};
use leakbound_math::normal;

/// Examples, guesses and correct guesses: what is expected of Gaussian scores of μ = 1.
const GAMES: [(f64, u64, u64); 4] = [
    (1e3, 100, 85),
    (1e5, 700, 673),
    (1e5, 2000, 1894),
    (1e6, 20_000, 18_590),
];
const TAU: f64 = 0.05;

fn critical(counts: &Counts, tight: bool) -> f64 {
    let (family, no) = (|mu| Gaussian::new(mu, 0.0), Interrupt::default());
    let found = if tight {
        certificate::critical(counts, family, TAU, &no)
    } else {
        recursion::critical(counts, family, TAU, &no)
    };
    found.unwrap().unwrap()
}

fn tails(guesses: u64) -> f64 {
    let places = (0..guesses).map(|i| i as f64 / guesses as f64 - 0.5);
    places.map(|x| normal::cdf(8.0 * x)).sum()
}

fn critical_mu(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fdp-critical");
    group.sample_size(20);
    for (m, guesses, correct) in GAMES {
        let counts = Counts::new(m, guesses, correct, 2, false).unwrap();
        let (tight, published) = (critical(&counts, true), critical(&counts, false));
        assert!(tight >= published && tight < 1.1 * published);
        let at = |mu| {
            let curve = Gaussian::new(mu, 0.0).unwrap();
            certificate::p_value(&counts, &curve, &Interrupt::default()).unwrap()
        };
        assert!(at(0.999 * tight) <= TAU && at(1.005 * tight) > TAU);
        assert!((tails(guesses) / guesses as f64 - 0.5).abs() < 0.01);
        group.bench_function(BenchmarkId::new("tight", guesses), |bencher| {
            bencher.iter(|| critical(black_box(&counts), true));
        });
        group.bench_function(BenchmarkId::new("recursion", guesses), |bencher| {
            bencher.iter(|| critical(black_box(&counts), false));
        });
        group.bench_function(BenchmarkId::new("normal tails", guesses), |bencher| {
            bencher.iter(|| tails(black_box(guesses)));
        });
    }
    group.finish();
    report_ratios();
}

fn report_ratios() {
    for (_, guesses, _) in GAMES {
        let median = |work: &str| median_nanoseconds("fdp-critical", work, guesses as usize);
        let Some(tight) = median("tight") else {
            continue;
        };
        for peer in ["recursion", "normal tails"] {
            if let Some(time) = median(peer) {
                let (ratio, milliseconds) = (tight / time, tight * 1e-6);
                println!(
                    "fdp-critical/tight/{guesses}: {milliseconds:.2} ms, {ratio:.1} of {peer}"
                );
            }
        }
    }
}

criterion_group!(benches, critical_mu);
criterion_main!(benches);
