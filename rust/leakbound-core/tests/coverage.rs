//! The rate of false claims at the boundary of the null: every guess correct with probability p,
//! independently, and a bound above p counted as false.
#![allow(clippy::unwrap_used)]

use leakbound_core::{
    Cut, CutStatistic, EqualLevel, Grid, Hoeffding, Interrupt, KlDivergence, MeanMixture, Path,
    Scan, best_cut, scan_offsets,
};
use leakbound_math::{Binomial, Probability};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

/// Nominal rate of false claims.
const BETA: f64 = 0.025;
const PROBABILITIES: [f64; 4] = [0.5, 0.73, 0.95, 0.993];
/// A valid procedure fails one of all tests of this file with at most this probability.
const FAMILY_WISE: f64 = 1e-3;
/// Procedures × probabilities.
const TESTS: f64 = 8.0 * 4.0;

const QUICK: u64 = 2_000;
const LONG: u64 = 40_000;
const GUESSES: usize = 400;

/// How often `bound` exceeds the truth in simulated audits.
fn false_claims(p: f64, audits: u64, bound: &(impl Fn(&Path) -> Probability + Sync)) -> u64 {
    (0..audits)
        .into_par_iter()
        .filter(|&audit| {
            let mut coins = Pcg64Mcg::seed_from_u64(audit ^ p.to_bits());
            let successes: Vec<bool> = (0..GUESSES).map(|_| coins.random_bool(p)).collect();
            bound(&Path::from_successes(&successes)).p() > p
        })
        .count() as u64
}

/// Exact one-sided binomial test of a rate of at most `BETA`: the chance of so many false claims.
fn chance(count: u64, audits: u64) -> f64 {
    Binomial::new(audits, Probability::new(BETA).unwrap()).upper_tail(count)
}

fn assert_few(count: u64, audits: u64, truth: f64) {
    assert!(
        chance(count, audits) > FAMILY_WISE / TESTS,
        "truth {truth}: {count} false claims in {audits} audits"
    );
}

fn holds_its_level(audits: u64, bound: impl Fn(&Path) -> Probability + Sync) {
    for p in PROBABILITIES {
        assert_few(false_claims(p, audits, &bound), audits, p);
    }
}

fn kl_scan(path: &Path) -> Probability {
    let scan = Scan::at_level(BETA).unwrap();
    scan.bound(path, &Interrupt::default()).unwrap().probability
}

fn ville_mixture(path: &Path) -> Probability {
    let cuts: Vec<Cut> = path.cuts(&Grid::All, 1).unwrap();
    let mixture = MeanMixture::new(1, BETA).unwrap();
    let best = mixture.best(&cuts, &Interrupt::default()).unwrap();
    best.map_or(Probability::ZERO, |(_, limit)| limit)
}

fn best(statistic: impl CutStatistic, grid: Grid) -> impl Fn(&Path) -> Probability + Sync {
    move |path| {
        let cuts = path.cuts(&grid, 1).unwrap();
        best_cut(&cuts, &statistic, &Interrupt::default())
            .unwrap()
            .probability
    }
}

fn every_policy_holds_its_level(audits: u64) {
    holds_its_level(audits, kl_scan);
    let per_cut = BETA / GUESSES as f64;
    holds_its_level(audits, best(EqualLevel::new(per_cut).unwrap(), Grid::All));
    holds_its_level(audits, best(Hoeffding::new(per_cut).unwrap(), Grid::All));
    let grid = Grid::Geometric { ratio: 1.5 };
    let per_cut = BETA / grid.size(GUESSES as u32).unwrap() as f64;
    holds_its_level(audits, best(EqualLevel::new(per_cut).unwrap(), grid));
    holds_its_level(audits, ville_mixture);
    let fixed = Grid::Listed(vec![GUESSES as u32 / 2]);
    holds_its_level(audits, best(EqualLevel::new(BETA).unwrap(), fixed));
}

/// Guess i is correct with probability σ(ε + aᵢ), aᵢ between −2 and 2, not in order of size.
fn offsets_hold_their_level(audits: u64) {
    let offsets: Vec<f64> = (0..GUESSES)
        .map(|i| (i * 37 % 101) as f64 / 25.0 - 2.0)
        .collect();
    let statistic = KlDivergence::for_level(BETA).unwrap();
    for epsilon in [-1.0, 0.0, 0.7, 3.0] {
        let errs = |&audit: &u64| {
            let mut coins = Pcg64Mcg::seed_from_u64(audit);
            let right = |offset: &f64| {
                coins.random_bool(Probability::from_logit(epsilon + offset).unwrap().p())
            };
            let path = Path::from_successes(&offsets.iter().map(right).collect::<Vec<_>>());
            let any = f64::NEG_INFINITY;
            let run = Interrupt::default();
            let bound = scan_offsets(&path, &offsets, &statistic, BETA, 1, any, &run).unwrap();
            bound.epsilon > epsilon
        };
        let count = (0..audits).into_par_iter().filter(errs).count() as u64;
        assert_few(count, audits, epsilon);
    }
}

/// What an (ε, δ)-DP release says about one example: the truth with probability δ, else the
/// randomised response of ε with a strength that says nothing. Positive for "member".
fn release(member: bool, p: f64, delta: f64, coins: &mut Pcg64Mcg) -> f64 {
    let (strength, honest) = if coins.random_bool(delta) {
        (2.0 + coins.random::<f64>(), true)
    } else {
        (coins.random::<f64>(), coins.random_bool(p))
    };
    if member == honest {
        strength
    } else {
        -strength
    }
}

/// Correct guesses in order of score, or of its size where both roles are guessed.
fn released_path(p: f64, delta: f64, one_sided: bool, seed: u64) -> Path {
    let mut coins = Pcg64Mcg::seed_from_u64(seed);
    let mut guesses: Vec<(f64, bool)> = (0..GUESSES)
        .map(|_| {
            let member = coins.random_bool(0.5);
            let score = release(member, p, delta, &mut coins);
            if one_sided {
                (score, member)
            } else {
                (score.abs(), member == (score > 0.0))
            }
        })
        .collect();
    guesses.sort_by(|a, b| b.0.total_cmp(&a.0));
    Path::from_successes(&guesses.iter().map(|guess| guess.1).collect::<Vec<_>>())
}

/// Twenty examples of four hundred are given away.
fn failures_hold_their_level(audits: u64) {
    const DELTA: f64 = 0.05;
    for (one_sided, p) in [(true, 0.6), (true, 0.8), (false, 0.6), (false, 0.8)] {
        let roles = if one_sided { 1.0 } else { 2.0 };
        let claims = |failures: f64| {
            let scan = Scan {
                min_guesses: 10,
                failures,
                ..Scan::at_level(BETA).unwrap()
            };
            let errs = |&audit: &u64| {
                let path = released_path(p, DELTA, one_sided, audit);
                let bound = scan.bound(&path, &Interrupt::default());
                bound.unwrap().probability.p() > p
            };
            (0..audits).into_par_iter().filter(errs).count() as u64
        };
        assert_few(claims(roles * GUESSES as f64 * DELTA / 2.0), audits, p);
        // Without them the same games are lost.
        assert!(chance(claims(0.0), audits) < 1e-6, "p = {p}");
    }
}

#[test]
fn policies_hold_their_level() {
    every_policy_holds_its_level(QUICK);
    offsets_hold_their_level(QUICK / 4);
    failures_hold_their_level(QUICK / 4);
}

#[test]
#[ignore = "the long form: make validity"]
fn policies_hold_their_level_long() {
    every_policy_holds_its_level(LONG);
    offsets_hold_their_level(LONG / 2);
    failures_hold_their_level(LONG / 2);
}

#[test]
fn a_scan_spends_most_of_its_level() {
    let rate = false_claims(0.73, QUICK, &kl_scan) as f64 / QUICK as f64;
    assert!(rate > 0.6 * BETA, "only {rate} of {BETA} is used");
}

#[test]
fn the_best_of_all_cuts_at_full_level_is_invalid() {
    let uncorrected = best(EqualLevel::new(BETA).unwrap(), Grid::All);
    // At .993 even 400 correct guesses of 400 do not refute the truth.
    for p in [0.5, 0.73, 0.95] {
        let rate = false_claims(p, QUICK, &uncorrected) as f64 / QUICK as f64;
        assert!(rate > 3.0 * BETA, "p = {p}: rate {rate}");
    }
}
