//! The pure-ε audit of raw scores over all cuts, beside sorting an index by the same scores.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;

use criterion::{
    BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use leakbound_benches::scored_examples;
use leakbound_core::{CutBound, EqualLevel, Grid, Interrupt, Order, Ranking, Scan, best_cut};

const BETA: f64 = 0.05;

fn argsort(scores: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    order
}

fn audit_by_scan(scores: &[f64], member: &[bool]) -> CutBound {
    let path = Ranking::new(scores, member, &Interrupt::default())
        .unwrap()
        .path(Order::Member)
        .unwrap();
    let scan = Scan {
        grid: Grid::Auto,
        ..Scan::at_level(BETA).unwrap()
    };
    scan.bound(&path, &Interrupt::default()).unwrap()
}

fn audit_by_union(scores: &[f64], member: &[bool]) -> CutBound {
    let path = Ranking::new(scores, member, &Interrupt::default())
        .unwrap()
        .path(Order::Member)
        .unwrap();
    let statistic = EqualLevel::new(BETA / f64::from(path.guesses())).unwrap();
    best_cut(
        &path.cuts(&Grid::All, 1).unwrap(),
        &statistic,
        &Interrupt::default(),
    )
    .unwrap()
}

fn one_run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one-run");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for examples in [10_000, 100_000, 1_000_000, 10_000_000] {
        let (scores, member) = scored_examples(examples);
        let (by_scan, by_union) = (
            audit_by_scan(&scores, &member),
            audit_by_union(&scores, &member),
        );
        assert!(by_scan.probability.p() > by_union.probability.p());
        assert!(argsort(&scores).is_sorted_by(|&a, &b| scores[a as usize] >= scores[b as usize]));
        group.throughput(Throughput::Elements(examples as u64));
        group.bench_function(BenchmarkId::new("argsort", examples), |bencher| {
            bencher.iter(|| argsort(black_box(&scores)));
        });
        group.bench_function(BenchmarkId::new("scan", examples), |bencher| {
            bencher.iter(|| audit_by_scan(black_box(&scores), &member));
        });
        group.bench_function(BenchmarkId::new("union", examples), |bencher| {
            bencher.iter(|| audit_by_union(black_box(&scores), &member));
        });
    }
    group.finish();
    report_ratios();
}

/// Median time of each audit over the sort's, read from the estimates that criterion just wrote.
fn report_ratios() {
    for examples in [10_000, 100_000, 1_000_000, 10_000_000] {
        let median = |work: &str| leakbound_benches::median_nanoseconds("one-run", work, examples);
        let Some(sort) = median("argsort") else {
            continue;
        };
        for work in ["scan", "union"] {
            if let Some(time) = median(work) {
                let ratio = time / sort;
                println!("one-run/{work}/{examples}: {ratio:.3} of an argsort of the same scores");
            }
        }
    }
}

criterion_group!(benches, one_run);
criterion_main!(benches);
