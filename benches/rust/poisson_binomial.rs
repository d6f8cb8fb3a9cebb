//! Poisson-binomial tails on every vector level, the inverse beside a tail, and both beside the
//! Python packages that are installed (`LEAKBOUND_PYTHON` names the interpreter).
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, Throughput};
use leakbound_math::poisson_binomial::{Level, Terms};

const SIZES: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The law of `benches/python/poisson_binomial_peers.py`.
fn law(size: usize) -> (Vec<f64>, i64) {
    let p: Vec<f64> = (0..size)
        .map(|i| 0.05 + 0.9 * (i as f64 * 0.618_033_988_749_894_9 % 1.0))
        .collect();
    let mean: f64 = p.iter().sum();
    let variance: f64 = p.iter().map(|p| p * (1.0 - p)).sum();
    (p, (mean + 3.0 * variance.sqrt()) as i64)
}

fn tails(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("poisson-binomial");
    group.sample_size(20);
    for size in SIZES {
        let (p, v) = law(size);
        let terms = Terms::from_probabilities(&p).unwrap();
        let tail = terms.tail(v, 0.0);
        let epsilon = terms.epsilon(v, tail.value * 0.5).unwrap();
        let halved = terms.tail(v, epsilon).value / tail.value;
        assert!((halved - 0.5).abs() < 1e-10 && halved <= 0.5);
        group.throughput(Throughput::Elements(size as u64));
        for level in Level::available() {
            let terms = terms.clone().at_level(level);
            let here = terms.tail(v, 0.0);
            assert!((here.log - tail.log).abs() <= here.relative_error + tail.relative_error);
            group.bench_function(
                BenchmarkId::new(format!("tail, {level}"), size),
                |bencher| {
                    bencher.iter(|| terms.tail(black_box(v), 0.0));
                },
            );
        }
        group.bench_function(BenchmarkId::new("inverse", size), |bencher| {
            bencher.iter(|| terms.epsilon(black_box(v), 0.05).unwrap());
        });
    }
    group.finish();
}

/// The median of many timings, in seconds.
fn median(mut work: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = Vec::new();
    let start = Instant::now();
    while seconds.len() < 9 || (start.elapsed().as_secs_f64() < 0.5 && seconds.len() < 2001) {
        let start = Instant::now();
        work();
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_unstable_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// The value of a number in a line of JSON.
fn number(line: &str, key: &str) -> f64 {
    let after = line.split(&format!("\"{key}\": ")).nth(1).unwrap();
    after.split([',', '}']).next().unwrap().parse().unwrap()
}

fn beside_peers() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let own = format!("{folder}/../.venv/bin/python");
    let python = std::env::var("LEAKBOUND_PYTHON").unwrap_or(own);
    let peers = Command::new(python)
        .arg(format!("{folder}/python/poisson_binomial_peers.py"))
        .args(SIZES[..4].iter().map(ToString::to_string))
        .output();
    let lines = peers
        .map(|output| String::from_utf8(output.stdout).unwrap())
        .unwrap_or_default();
    for size in SIZES {
        let (p, v) = law(size);
        let terms = Terms::from_probabilities(&p).unwrap();
        let ours = median(|| {
            black_box(terms.tail(black_box(v), 0.0));
        });
        let inverse = median(|| {
            black_box(terms.epsilon(black_box(v), 0.05)).unwrap();
        });
        println!(
            "n = {size}: tail {:.2} µs, inverse {:.2} tails",
            ours * 1e6,
            inverse / ours
        );
        for level in Level::available() {
            let terms = terms.clone().at_level(level);
            let seconds = median(|| {
                black_box(terms.tail(black_box(v), 0.0));
            });
            println!("  {level}: {:.2} µs", seconds * 1e6);
        }
        let size = format!("\"size\": {size},");
        for line in lines.lines().filter(|line| line.contains(&size)) {
            let theirs = terms.tail(v, 0.0).value / number(line, "tail") - 1.0;
            assert!(theirs.abs() < 1e-7, "{line}");
            let peer = line.split('"').nth(3).unwrap();
            println!("  1/{:.0} of {peer}", number(line, "seconds") / ours);
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    tails(&mut criterion);
    criterion.final_summary();
    beside_peers();
}
