//! Poisson-binomial tails against reference values of 22 digits and more, on every vector level.
#![allow(clippy::unwrap_used, clippy::panic)]

use leakbound_math::poisson_binomial::{Level, Tail, Terms, Weighted};

const GOLDEN: &str = include_str!("../../../tests/golden/poisson_binomial.csv");

/// One row of the table; its first line defines the families.
struct Row<'a> {
    text: &'a str,
    kind: &'a str,
    family: &'a str,
    n: usize,
    param: &'a str,
    weights: &'a str,
    v: i64,
    tail: f64,
    ln_tail: f64,
}

fn rows() -> impl Iterator<Item = Row<'static>> {
    GOLDEN.lines().skip(2).map(|text| {
        let [kind, family, n, param, weights, v, tail, ln_tail, _] =
            text.split(',').collect::<Vec<_>>().try_into().unwrap();
        Row {
            text,
            kind,
            family,
            n: n.parse().unwrap(),
            param,
            weights,
            v: v.parse().unwrap(),
            tail: tail.parse().unwrap(),
            ln_tail: ln_tail.parse().unwrap_or(f64::NAN),
        }
    })
}

/// Entry i of a family: probabilities, or offsets.
enum Entries {
    Probabilities(Vec<f64>),
    Offsets(Vec<f64>),
}

fn entries(family: &str, n: usize, param: f64) -> Entries {
    let fill = |entry: &dyn Fn(usize) -> f64| (0..n).map(entry).collect();
    let near_zero = 2f64.powi(-40);
    match family {
        "unif" => Entries::Probabilities(fill(&|i| (2 * i + 1) as f64 / (2 * n) as f64)),
        "const" => Entries::Probabilities(vec![param; n]),
        "rare" => {
            Entries::Probabilities(fill(&|i| (1 + 7919 * i % 101) as f64 / f64::from(1 << 20)))
        }
        "mix" => Entries::Probabilities(fill(&|i| {
            [near_zero, 1.0 - near_zero, 0.3125, 2f64.powi(-10)][i % 4]
        })),
        "edge" => Entries::Probabilities(fill(&|i| [0.0, 1.0, 0.5, 0.25][i % 4])),
        "sig" => Entries::Offsets(fill(&|i| ((i % 17) as f64 - 8.0) / 4.0)),
        "sigw" => Entries::Offsets(fill(&|i| ((i % 33) as f64 - 16.0) / 4.0)),
        "sig0" => Entries::Offsets(vec![0.0; n]),
        _ => panic!("unknown family {family}"),
    }
}

/// The terms of a family and the ε that goes with them.
fn terms(row: &Row) -> (Terms, f64) {
    let param = row.param.parse().unwrap_or(0.0);
    match entries(row.family, row.n, param) {
        Entries::Probabilities(p) => (Terms::from_probabilities(&p).unwrap(), 0.0),
        Entries::Offsets(a) => (Terms::from_offsets(&a).unwrap(), param),
    }
}

/// The same terms with equal entries grouped.
fn grouped(row: &Row) -> (Terms, f64) {
    let param = row.param.parse().unwrap_or(0.0);
    let group = |entries: &[f64]| {
        let mut sorted = entries.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let runs: Vec<(f64, u64)> = sorted
            .chunk_by(|a, b| a == b)
            .map(|run| (run[0], run.len() as u64))
            .collect();
        runs.into_iter().unzip::<f64, u64, Vec<_>, Vec<_>>()
    };
    match entries(row.family, row.n, param) {
        Entries::Probabilities(p) => {
            let (p, counts) = group(&p);
            (
                Terms::from_grouped_probabilities(&p, Some(&counts)).unwrap(),
                0.0,
            )
        }
        Entries::Offsets(a) => {
            let (a, counts) = group(&a);
            (
                Terms::from_grouped_offsets(&a, Some(&counts)).unwrap(),
                param,
            )
        }
    }
}

/// Asserts that `tail` is within `allowed`·max(1, |ln P|) and within its own claim.
fn assert_matches(tail: Tail, row: &Row, level: Level, allowed: f64) {
    if tail.log.to_bits() == row.ln_tail.to_bits() {
        return;
    }
    let (log, claimed) = (tail.log, tail.relative_error);
    let error = (log - row.ln_tail).abs();
    let allowed = allowed * row.ln_tail.abs().max(1.0);
    assert!(
        error <= allowed,
        "{level}: {log} off by {error:e}, {}",
        row.text
    );
    assert!(
        error <= claimed,
        "{level}: off by {error:e}, {claimed:e} claimed, {}",
        row.text
    );
    let relative = (tail.value / row.tail - 1.0).abs();
    assert!(
        row.tail < 1e-300 || relative <= claimed,
        "{level}: {relative:e}, {}",
        row.text
    );
}

#[test]
fn tails_match_on_every_level() {
    for row in rows().filter(|row| row.kind == "tail") {
        let (terms, epsilon) = terms(&row);
        for level in Level::available() {
            let tail = terms.clone().at_level(level).tail(row.v, epsilon);
            assert_matches(tail, &row, level, 5e-15);
        }
    }
}

#[test]
fn grouped_tails_match_on_every_level() {
    for row in rows().filter(|row| row.kind == "tail") {
        let (terms, epsilon) = grouped(&row);
        for level in Level::available() {
            let tail = terms.clone().at_level(level).tail(row.v, epsilon);
            assert_matches(tail, &row, level, 1e-14);
        }
    }
}

#[test]
fn inverses_match_on_every_level_from_below() {
    for row in rows().filter(|row| row.kind == "inverse") {
        let beta: f64 = row.param.strip_prefix("beta=").unwrap().parse().unwrap();
        for (terms, _) in [terms(&row), grouped(&row)] {
            for level in Level::available() {
                let epsilon = terms.clone().at_level(level).epsilon(row.v, beta).unwrap();
                let error = row.tail - epsilon;
                assert!(
                    error.abs() <= 1e-13,
                    "{level}: {epsilon} off by {error:e}, {}",
                    row.text
                );
                assert!(
                    error >= 0.0,
                    "{level}: {epsilon} above by {:e}, {}",
                    -error,
                    row.text
                );
            }
        }
    }
}

/// The weights of a family, `1+(i*i)%m`.
fn weights(row: &Row) -> Vec<u64> {
    let modulus: u64 = row
        .weights
        .strip_prefix("1+(i*i)%")
        .unwrap()
        .parse()
        .unwrap();
    (0..row.n as u64).map(|i| 1 + i * i % modulus).collect()
}

#[test]
fn weighted_tails_match_on_every_level() {
    for row in rows().filter(|row| row.kind == "wtail") {
        let Entries::Offsets(offsets) = entries(row.family, row.n, 0.0) else {
            panic!()
        };
        let weighted = Weighted::from_offsets(&offsets, &weights(&row)).unwrap();
        for level in Level::available() {
            let tail = weighted.clone().at_level(level);
            let tail = tail.tail(row.v, row.param.parse().unwrap()).unwrap();
            assert_matches(tail, &row, level, 5e-15);
        }
    }
}

#[test]
fn unit_weights_match_the_unweighted_inverses() {
    for row in rows().filter(|row| row.kind == "inverse" && row.n <= 1000) {
        let beta: f64 = row.param.strip_prefix("beta=").unwrap().parse().unwrap();
        let Entries::Offsets(offsets) = entries(row.family, row.n, 0.0) else {
            panic!()
        };
        let weighted = Weighted::from_offsets(&offsets, &vec![1; row.n]).unwrap();
        let error = row.tail - weighted.epsilon(row.v, beta).unwrap();
        assert!(
            (0.0..=1e-13).contains(&error),
            "off by {error:e}, {}",
            row.text
        );
    }
}
