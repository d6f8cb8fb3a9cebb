//! Bounds against independently computed reference values (`tests/golden/thresholds.csv`).
#![allow(clippy::unwrap_used, clippy::panic)]

use leakbound_core::{
    Boundary, CutBound, EqualLevel, Grid, Interrupt, KlDivergence, MeanMixture, Path, Scan,
    best_cut, scan_offsets,
};
use leakbound_math::{Probability, deviance::binomial_divergence};

/// Reference values carry twelve digits.
const TOLERANCE: f64 = 1e-9;

const ROWS: &str = include_str!("../../../tests/golden/thresholds.csv");

struct Row {
    path: Path,
    ones: u32,
    beta: f64,
    method: String,
    r_star: u32,
    w_star: u32,
    statistic: f64,
    p: f64,
    logit: f64,
}

/// Rows of plain fields; the quoted ones describe other computations.
fn rows() -> Vec<Row> {
    let plain = ROWS.lines().skip(1).filter(|line| !line.contains('"'));
    plain
        .map(|line| row(&line.split(',').collect::<Vec<_>>()))
        .collect()
}

fn row(fields: &[&str]) -> Row {
    let integer = |i: usize| fields[i].parse().unwrap_or(0);
    let float = |i: usize| fields[i].parse().unwrap_or(f64::NAN);
    let (m, k): (u64, u64) = (integer(0), integer(1));
    let right = |j: u64| {
        let threshold = if j <= k { integer(2) } else { integer(3) };
        (j * 2_654_435_761) % (1 << 32) < threshold
    };
    Row {
        path: Path::from_successes(&(1..=m).map(right).collect::<Vec<_>>()),
        ones: integer(4) as u32,
        beta: float(5),
        method: fields[6].to_owned(),
        r_star: integer(8) as u32,
        w_star: integer(9) as u32,
        statistic: float(10),
        p: float(11),
        logit: float(12),
    }
}

fn agrees(row: &Row, bound: &CutBound) {
    let cut = bound.cut.unwrap();
    let name = format!("{} m={} beta={}", row.method, row.path.guesses(), row.beta);
    assert_eq!(row.path.correct(), row.ones, "{name}: path");
    assert_eq!(
        (cut.guesses, cut.correct),
        (row.r_star, row.w_star),
        "{name}: cut"
    );
    let close = |ours: f64, theirs: f64, what: &str| {
        let error = (ours - theirs).abs();
        assert!(
            error <= TOLERANCE * theirs.abs().max(1e-3),
            "{name}: {what} {ours} {theirs}"
        );
    };
    close(bound.statistic.p(), row.statistic, "statistic");
    close(bound.probability.p(), row.p, "p");
    close(bound.probability.logit(), row.logit, "logit");
}

fn check(method: &str, bound: impl Fn(&Row) -> CutBound) {
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|row| row.method == method)
        .collect();
    assert!(rows.len() > 3, "{method}: {} rows", rows.len());
    for row in rows {
        agrees(&row, &bound(&row));
    }
}

fn union(row: &Row, grid: &Grid) -> CutBound {
    let tests = grid.size(row.path.guesses()).unwrap();
    let statistic = EqualLevel::new(row.beta / tests as f64).unwrap();
    best_cut(
        &row.path.cuts(grid, 1).unwrap(),
        &statistic,
        &Interrupt::default(),
    )
    .unwrap()
}

fn scan_of(row: &Row, min_guesses: u32, failures: f64) -> CutBound {
    let scan = Scan {
        min_guesses,
        failures,
        ..Scan::at_level(row.beta).unwrap()
    };
    scan.bound(&row.path, &Interrupt::default()).unwrap()
}

#[test]
fn union_over_all_cuts() {
    check("union_all", |row| union(row, &Grid::All));
}

#[test]
fn union_over_a_geometric_grid() {
    check("union_geom1.5", |row| {
        union(row, &Grid::Geometric { ratio: 1.5 })
    });
}

#[test]
fn kl_scan() {
    check("scan_kl", |row| scan_of(row, 1, 0.0));
}

/// Of these rows only the bound is recorded.
fn agrees_in_the_bound(row: &Row, p: f64, logit: f64) {
    let name = format!("{} m={} beta={}", row.method, row.path.guesses(), row.beta);
    assert!((p - row.p).abs() <= TOLERANCE * row.p, "{name}: p {p}");
    assert!(
        (logit - row.logit).abs() <= TOLERANCE,
        "{name}: logit {logit}"
    );
}

#[test]
fn ville_mixture() {
    let rows = rows()
        .into_iter()
        .filter(|row| row.method.starts_with("ville_mix"));
    let count = rows
        .map(|row| {
            let cuts = row.path.cuts(&Grid::All, 1).unwrap();
            let mixture = MeanMixture::new(1, row.beta).unwrap();
            let best = mixture.best(&cuts, &Interrupt::default()).unwrap();
            let bound = best.map_or(Probability::ZERO, |(_, limit)| limit);
            agrees_in_the_bound(&row, bound.p(), bound.logit());
        })
        .count();
    assert!(count > 10, "{count} rows");
}

#[test]
fn kl_scan_with_offsets() {
    let rows = rows()
        .into_iter()
        .filter(|row| row.method == "scan_hetero_eps");
    let count = rows
        .map(|row| {
            let offset = |j: u32| (f64::from(7919 * j % 1000) / 1000.0 - 0.5).abs();
            let offsets: Vec<f64> = (1..=row.path.guesses()).map(offset).collect();
            let statistic = KlDivergence::new(4.5).unwrap();
            let bound = scan_offsets(
                &row.path,
                &offsets,
                &statistic,
                row.beta,
                1,
                f64::NEG_INFINITY,
                &Interrupt::default(),
            )
            .unwrap();
            let p = Probability::from_logit(bound.epsilon).unwrap();
            agrees_in_the_bound(&row, p.p(), bound.epsilon);
        })
        .count();
    assert!(count > 3, "{count} rows");
}

#[test]
fn kl_scan_with_failures() {
    let quoted = ROWS.lines().filter(|line| line.contains("scan_kl_delta"));
    let count = quoted
        .map(|line| {
            // The name of the method holds a comma.
            let line = line.replace("knapsack, positive guesses", "knapsack");
            let row = row(&line.split(',').collect::<Vec<_>>());
            let (delta, min_guesses) = if row.path.guesses() == 1000 {
                (1e-4, 50)
            } else {
                (1e-5, 100)
            };
            let failures = 0.5 * f64::from(row.path.guesses()) * delta;
            agrees(&row, &scan_of(&row, min_guesses, failures));
        })
        .count();
    assert_eq!(count, 2);
}

#[test]
fn crossing_of_a_kl_boundary() {
    let row = ROWS
        .lines()
        .find(|line| line.contains("P(exists r"))
        .unwrap();
    let expected: f64 = row.rsplit(',').nth(1).unwrap().parse().unwrap();
    let (p, kappa) = (Probability::new(0.9).unwrap(), 5.0);
    let threshold = |r: u32| {
        let crosses = |w: u32| {
            let (w, r) = (f64::from(w), f64::from(r));
            w > r * p.p() && binomial_divergence(w, r, p) >= kappa
        };
        let (mut low, mut high) = (0, r + 1);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if crosses(middle) {
                high = middle
            } else {
                low = middle
            }
        }
        high
    };
    let boundary: Vec<u32> = (1..=100_000).map(threshold).collect();
    let guesses: Vec<u32> = (1..=100_000).collect();
    let boundary = Boundary::new(&guesses, &boundary).unwrap();
    let crossing = |p: &[Probability]| boundary.crossing_probability(p, &Interrupt::default());
    let ours = crossing(&[p]).unwrap();
    assert!(
        (ours / expected - 1.0).abs() < TOLERANCE,
        "{ours} {expected}"
    );
    let again = crossing(&vec![p; guesses.len()]).unwrap();
    assert!((again / ours - 1.0).abs() < 1e-10, "{again} {ours}");
}
