//! What must hold for every input: limits, monotonicity, invariance, reproducibility.
#![allow(clippy::unwrap_used)]

use leakbound_core::{
    AuditError, Boundary, CutBound, EqualLevel, Grid, Interrupt, KlDivergence, Path, Scan,
    best_cut, scan_curve,
};
use leakbound_math::Probability;
use proptest::prelude::*;

fn crossing(boundary: &[u32], p: Probability, interrupt: &Interrupt) -> Result<f64, AuditError> {
    let guesses: Vec<u32> = (1..=boundary.len() as u32).collect();
    Boundary::new(&guesses, boundary)?.crossing_probability(&[p], interrupt)
}

fn bound(scan: &Scan, successes: &[bool]) -> CutBound {
    let path = Path::from_successes(successes);
    scan.bound(&path, &Interrupt::default()).unwrap()
}

fn kl_scan(successes: &[bool], beta: f64, grid: Grid) -> CutBound {
    let scan = Scan::at_level(beta).unwrap();
    bound(&Scan { grid, ..scan }, successes)
}

/// A long path whose guesses are correct about 55 % of the time, by a fixed recurrence.
fn long_path(length: usize) -> Vec<bool> {
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..length).map(|_| next() % 100 < 55).collect()
}

#[test]
fn all_right_gives_the_root_of_beta() {
    for m in [1_usize, 2, 10, 1_000, 100_000] {
        for beta in [0.3, 0.05, 1e-9, 1e-100] {
            let bound = kl_scan(&vec![true; m], beta, Grid::Auto);
            let expected = (beta.ln() / m as f64).exp();
            let error = (bound.probability.p() - expected).abs() / expected;
            assert!(error < 1e-10, "m {m} beta {beta}: {error:e}");
            assert_eq!(bound.cut.unwrap().guesses as usize, m);
        }
    }
}

#[test]
fn all_wrong_refutes_nothing() {
    assert_eq!(kl_scan(&[false; 50], 0.05, Grid::All), CutBound::NONE);
    let scan = Scan {
        min_guesses: 6,
        ..Scan::at_level(0.05).unwrap()
    };
    assert_eq!(bound(&scan, &[true; 5]), CutBound::NONE);
}

#[test]
fn a_sparse_grid_costs_little() {
    let successes = long_path(100_000);
    let every = kl_scan(&successes, 0.05, Grid::All).probability.logit();
    let auto = kl_scan(&successes, 0.05, Grid::Auto).probability.logit();
    assert!((every - auto).abs() < 0.01, "{every} {auto}");
}

#[test]
fn an_interrupt_ends_every_long_loop() {
    let interrupt = Interrupt::default();
    interrupt.request();
    let path = Path::from_successes(&long_path(1_000));
    let scan = Scan::at_level(0.05).unwrap();
    let cuts = path.cuts(&Grid::All, 1).unwrap();
    let stopped = AuditError::Interrupted;
    assert_eq!(
        best_cut(&cuts, &scan.statistic, &interrupt),
        Err(stopped.clone())
    );
    assert_eq!(scan.bound(&path, &interrupt), Err(stopped.clone()));
    let p = Probability::new(0.5).unwrap();
    assert_eq!(crossing(&[5; 10], p, &interrupt), Err(stopped));
}

#[test]
fn parameters_are_checked_with_their_names() {
    let message = |result: Result<(), AuditError>| result.unwrap_err().to_string();
    assert!(message(KlDivergence::new(0.0).map(drop)).contains("kappa"));
    assert!(message(KlDivergence::for_level(1.0).map(drop)).contains("beta"));
    assert!(message(EqualLevel::new(f64::NAN).map(drop)).contains("alpha"));
    assert!(message(Boundary::new(&[2, 2], &[1, 1]).map(drop)).contains("increasing"));
    assert!(message(Boundary::new(&[1, 2], &[1]).map(drop)).contains("one per step"));
}

#[test]
fn crossing_is_exact_deep_in_the_tail() {
    // Only the last cut counts: all correct, p^m.
    for (m, p) in [(40_u32, 1e-7_f64), (200, 0.05), (900, 0.5)] {
        let boundary: Vec<u32> = (1..=m).map(|r| if r == m { r } else { r + 1 }).collect();
        let level = Probability::new(p).unwrap();
        let ours = crossing(&boundary, level, &Interrupt::default()).unwrap();
        let expected = p.powi(m.cast_signed());
        assert!(
            (ours / expected - 1.0).abs() < 1e-11,
            "m {m} p {p}: {ours:e} {expected:e}"
        );
    }
}

#[test]
fn a_curve_peaks_at_the_bound() {
    let path = Path::from_successes(&long_path(5_000));
    let interrupt = Interrupt::default();
    for failures in [0.0, 0.01, 0.5] {
        let scan = Scan {
            min_guesses: 50,
            failures,
            ..Scan::at_level(0.05).unwrap()
        };
        let bound = scan.bound(&path, &interrupt).unwrap();
        let curve = scan_curve(&scan, &path, 200, &interrupt).unwrap();
        assert!(curve.len() <= 200 && curve.iter().all(|point| !point.logit.is_nan()));
        if bound.probability == Probability::ZERO {
            assert!(curve.iter().all(|point| point.logit == f64::NEG_INFINITY));
            continue;
        }
        let peak = curve
            .iter()
            .max_by(|a, b| a.logit.total_cmp(&b.logit))
            .unwrap();
        assert_eq!(Some(peak.cut), bound.cut);
        assert!((peak.logit - bound.probability.logit()).abs() < 1e-12);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_more_right_guess_never_lowers_a_bound(
        successes in prop::collection::vec(prop::bool::weighted(0.6), 1..120),
        at in any::<prop::sample::Index>(),
    ) {
        let before = kl_scan(&successes, 0.05, Grid::All).probability.p();
        let mut better = successes.clone();
        better[at.index(successes.len())] = true;
        let after = kl_scan(&better, 0.05, Grid::All).probability.p();
        prop_assert!(after >= before * (1.0 - 1e-11));
    }

    #[test]
    fn crossing_is_monotone_in_p_and_in_the_boundary(
        boundary in prop::collection::vec(1_u32..30, 1..60),
        p in 0.05..0.9_f64,
    ) {
        let at = |boundary: &[u32], p: f64| {
            let p = Probability::new(p).unwrap();
            crossing(boundary, p, &Interrupt::default()).unwrap()
        };
        let base = at(&boundary, p);
        prop_assert!(at(&boundary, p + 0.05) >= base * (1.0 - 1e-12));
        let higher: Vec<u32> = boundary.iter().map(|threshold| threshold + 1).collect();
        prop_assert!(at(&higher, p) <= base * (1.0 + 1e-12));
    }

    #[test]
    fn a_calibrated_level_is_the_last_one_certified(
        boundary in prop::collection::vec(1_u32..30, 5..60),
        beta in 1e-8..0.3_f64,
    ) {
        let guesses: Vec<u32> = (1..=boundary.len() as u32).collect();
        let boundary = Boundary::new(&guesses, &boundary).unwrap();
        let start = Probability::new(0.5).unwrap();
        let interrupt = Interrupt::default();
        if let Some(p) = boundary.calibrate(beta, start, &interrupt).unwrap() {
            let at = |p| boundary.crossing_probability(&[p], &interrupt).unwrap();
            prop_assert!(at(p) <= beta * (1.0 + 1e-12));
            let further = Probability::from_logit(p.logit() + 1e-9 * (1.0 + p.logit().abs()));
            prop_assert!(at(further.unwrap()) > beta);
        }
    }

    #[test]
    fn every_scan_ends_whatever_its_options(
        successes in prop::collection::vec(prop::bool::weighted(0.8), 1..400),
        repeats in 1_usize..40,
        ln_beta in -500.0..-0.05_f64,
        kappa in 0.01..800.0_f64,
    ) {
        let statistic = KlDivergence::new(kappa).unwrap();
        let scan = Scan { statistic, ..Scan::at_level(ln_beta.exp()).unwrap() };
        let bound = bound(&scan, &successes.repeat(repeats));
        prop_assert!(bound.probability.p() < 1.0);
        prop_assert!(bound.cut.is_some() == successes.contains(&true));
    }
}
