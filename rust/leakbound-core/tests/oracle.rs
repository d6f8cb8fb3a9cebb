//! Slow and obvious re-implementations, compared on small inputs.
#![allow(clippy::unwrap_used)]

use leakbound_core::{
    Boundary, CutStatistic, EqualLevel, Grid, Interrupt, KlDivergence, Path, Ranking, Scan,
    best_cut,
};
use leakbound_math::Probability;
use proptest::prelude::*;

/// P(∃ r: W_r ≥ boundary[r−1]) over all 2^m outcomes.
fn crossing_by_enumeration(boundary: &[u32], p: &[f64]) -> f64 {
    let m = boundary.len();
    (0_u32..1 << m)
        .filter(|outcome| {
            (1..=m).any(|r| (outcome & ((1 << r) - 1)).count_ones() >= boundary[r - 1])
        })
        .map(|outcome| {
            (0..m)
                .map(|i| {
                    if outcome >> i & 1 == 1 {
                        p[i]
                    } else {
                        1.0 - p[i]
                    }
                })
                .product::<f64>()
        })
        .sum()
}

/// The largest limit over all cuts of an outcome, compared on the logit scale.
fn largest_limit(outcome: u32, m: usize, statistic: &impl CutStatistic) -> f64 {
    let successes: Vec<bool> = (0..m).map(|i| outcome >> i & 1 == 1).collect();
    let cuts = Path::from_successes(&successes)
        .cuts(&Grid::All, 1)
        .unwrap();
    cuts.iter()
        .filter_map(|&cut| statistic.limit(cut, &Interrupt::default()).unwrap())
        .map(Probability::logit)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// The largest p at which outcomes as extreme as the observed one have probability at most beta.
fn scan_by_enumeration(successes: &[bool], statistic: &impl CutStatistic, beta: f64) -> f64 {
    let m = successes.len();
    let observed = (0..m).map(|i| u32::from(successes[i]) << i).sum();
    let level = largest_limit(observed, m, statistic);
    let extreme: Vec<u32> = (0_u32..1 << m)
        .filter(|&outcome| largest_limit(outcome, m, statistic) >= level - 1e-11)
        .map(u32::count_ones)
        .collect();
    let probability = |p: f64| -> f64 {
        let weight = |&ones: &u32| {
            let (right, wrong) = (f64::from(ones), m as f64 - f64::from(ones));
            p.powf(right) * (1.0 - p).powf(wrong)
        };
        extreme.iter().map(weight).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if probability(middle) <= beta {
            low = middle
        } else {
            high = middle
        }
    }
    low
}

fn agrees_with_enumeration(successes: &[bool], statistic: KlDivergence, beta: f64) {
    let path = Path::from_successes(successes);
    let scan = Scan {
        statistic,
        ..Scan::at_level(beta).unwrap()
    };
    let ours = scan.bound(&path, &Interrupt::default()).unwrap();
    if ours.cut.is_none() {
        assert!(successes.iter().all(|&right| !right));
        return;
    }
    let expected = scan_by_enumeration(successes, &statistic, beta);
    let error = (ours.probability.p() - expected).abs();
    assert!(
        error <= 1e-9 * expected.max(1e-3),
        "{successes:?} {ours:?} {expected}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn scans_agree_with_the_enumeration_of_all_outcomes(
        successes in prop::collection::vec(prop::bool::weighted(0.7), 1..10),
        beta in prop::sample::select(vec![0.2, 0.05, 1e-3]),
    ) {
        agrees_with_enumeration(&successes, KlDivergence::for_level(beta).unwrap(), beta);
        agrees_with_enumeration(&successes, KlDivergence::new(1.0).unwrap(), beta);
    }

    #[test]
    fn crossing_probabilities_agree_with_the_enumeration_of_all_outcomes(
        steps in prop::collection::vec((1_u32..14, 0.01..0.99_f64), 1..12),
    ) {
        let (boundary, p): (Vec<u32>, Vec<f64>) = steps.into_iter().unzip();
        let levels: Vec<_> = p.iter().map(|&p| Probability::new(p).unwrap()).collect();
        let guesses: Vec<u32> = (1..=boundary.len() as u32).collect();
        let crossed = Boundary::new(&guesses, &boundary).unwrap();
        let crossing = |p: &[Probability]| {
            crossed.crossing_probability(p, &Interrupt::default()).unwrap()
        };
        let varying = crossing(&levels);
        let expected = crossing_by_enumeration(&boundary, &p);
        prop_assert!((varying - expected).abs() <= 1e-12 * expected + 1e-300);
        let constant = crossing(&levels[..1]);
        let expected = crossing_by_enumeration(&boundary, &vec![p[0]; p.len()]);
        prop_assert!((constant - expected).abs() <= 1e-12 * expected + 1e-300, "{} {}", constant, expected);
    }

    #[test]
    fn the_best_cut_is_the_largest_limit(
        successes in prop::collection::vec(prop::bool::weighted(0.6), 1..700),
        alpha in 1e-6..0.6_f64,
    ) {
        let cuts = Path::from_successes(&successes).cuts(&Grid::All, 1).unwrap();
        let statistic = EqualLevel::new(alpha).unwrap();
        let best = best_cut(&cuts, &statistic, &Interrupt::default()).unwrap();
        let largest = cuts
            .iter()
            .filter_map(|&cut| statistic.limit(cut, &Interrupt::default()).unwrap())
            .map(Probability::p)
            .fold(0.0, f64::max);
        prop_assert!((best.statistic.p() - largest).abs() <= 1e-12 * largest);
    }

    #[test]
    fn summaries_agree_with_counting(
        examples in prop::collection::vec((-6_i32..6, prop::bool::ANY), 1..40),
    ) {
        let scores: Vec<f64> = examples.iter().map(|&(score, _)| f64::from(score)).collect();
        let member: Vec<bool> = examples.iter().map(|&(_, member)| member).collect();
        let ranking = Ranking::new(&scores, &member, &Interrupt::default()).unwrap();
        let tied = scores.iter().filter(|&s| scores.iter().filter(|&t| s == t).count() > 1);
        prop_assert_eq!(ranking.tied(), tied.count());
        let mut distinct = scores.clone();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        prop_assert_eq!(ranking.blocks(), distinct.len());
        let roc = ranking.roc(1_000).unwrap();
        let ends: Vec<usize> = distinct
            .iter()
            .map(|floor| scores.iter().filter(|&score| score >= floor).count())
            .collect();
        prop_assert!(roc.iter().all(|cut| ends.contains(&(cut.guesses as usize))));
        prop_assert_eq!(roc.last().map(|cut| cut.correct as usize), Some(ranking.members()));
    }
}

proptest! {
    #[test]
    fn failures_agree_with_buying_the_cheapest_outcomes(
        steps in prop::collection::vec(0_u32..4, 2..12),
        p in 0.3..0.95_f64,
        failures in 0.0..2.0_f64,
    ) {
        // A threshold above half of the guesses, or none.
        let m = steps.len();
        let threshold = |r: usize| r as u32 / 2 + 1 + steps[r - 1];
        let boundary: Vec<u32> = (1..=m).map(threshold).collect();
        let mut outcomes: Vec<(u32, f64)> = (0_u32..1 << m)
            .filter_map(|outcome| {
                let right = |r: usize| (outcome & ((1 << r) - 1)).count_ones();
                let reachable = (1..=m).filter(|&r| boundary[r - 1] <= r as u32);
                let missing = reachable.map(|r| boundary[r - 1].saturating_sub(right(r))).min()?;
                let ones = f64::from(outcome.count_ones());
                Some((missing, p.powf(ones) * (1.0 - p).powf(m as f64 - ones)))
            })
            .collect();
        outcomes.sort_by_key(|&(missing, _)| missing);
        let (mut left, mut expected) = (failures * (1.0 - p), 0.0);
        for (missing, probability) in outcomes {
            let cost = f64::from(missing) * probability;
            let share = if cost <= left { 1.0 } else { left / cost };
            expected += share * probability;
            left -= share * cost;
        }
        let guesses: Vec<u32> = (1..=m as u32).collect();
        let ours = Boundary::new(&guesses, &boundary)
            .unwrap()
            .crossing_with_failures(
                Probability::new(p).unwrap(),
                failures,
                f64::INFINITY,
                &Interrupt::default(),
            )
            .unwrap();
        prop_assert!((ours - expected).abs() < 1e-12, "{} {}", ours, expected);
    }
}
