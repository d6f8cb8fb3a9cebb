//! Confidence sets against brute force, and how often they miss.

#![allow(clippy::unwrap_used)]

use leakbound_math::poisson_binomial::Terms;
use leakbound_propensity::{ConfidenceSet, Guess, Labelled, Matching, Prices, PropensityError};
use model::{Noise, data, never};

mod model;

/// Neither examples kept nor guesses made cost anything.
const FREE: Prices = Prices {
    kept: 0.0,
    made: 0.0,
};

fn rows<'a>(features: &'a [f64], member: &'a [bool]) -> Labelled<'a> {
    Labelled {
        features,
        columns: features.len() / member.len(),
        member,
        offsets: &[],
        reference: 0,
        own_intercept: false,
    }
}

fn set(features: &[f64], member: &[bool], level: f64) -> ConfidenceSet {
    ConfidenceSet::new(rows(features, member), level, 0, &never).unwrap()
}

fn guess(row: usize, member: bool) -> Guess {
    Guess { row, member }
}

/// Guesses by the first feature, as if it were a score.
fn guesses(features: &[f64], columns: usize) -> Vec<Guess> {
    (features.chunks(columns).enumerate())
        .map(|(row, x)| guess(row, x[0] > 0.0))
        .collect()
}

/// How many guesses are correct.
fn right_ones(made: &[Guess], member: &[bool]) -> i64 {
    made.iter()
        .map(|guess| i64::from(member[guess.row] == guess.member))
        .sum()
}

/// Points of a grid of two coefficients around the estimate that the set holds.
fn grid(set: &ConfidenceSet, steps: i32) -> Vec<[f64; 2]> {
    let centre = set.estimate();
    let ends = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]].map(|u| set.leaves(&u).unwrap());
    let reach = |j: usize| {
        ends.iter()
            .map(|end| (end[j] - centre[j]).abs())
            .fold(0.0_f64, f64::max)
            * 1.5
    };
    let mut held = Vec::new();
    for i in -steps..=steps {
        for j in -steps..=steps {
            let point = [
                centre[0] + reach(0) * f64::from(i) / f64::from(steps),
                centre[1] + reach(1) * f64::from(j) / f64::from(steps),
            ];
            if set.contains(&point).unwrap() {
                held.push(point);
            }
        }
    }
    assert!(held.len() > 100);
    held
}

/// 600 sets at level .2 of 60 labels and three coefficients, one class rare in a third of them:
/// more than 154 misses have probability 1e-3 where each has .2.
#[test]
fn the_truth_is_outside_as_rarely_as_promised() {
    let mut missed = 0;
    for seed in 0..600 {
        let theta = [[0.0, 0.0, 0.0], [0.5, 1.0, -1.0], [-2.0, 0.5, 0.0]][seed as usize % 3];
        let (features, member) = data(60, &theta, seed);
        match ConfidenceSet::new(rows(&features, &member), 0.2, seed, &never) {
            Ok(set) => missed += i32::from(!set.contains(&theta).unwrap()),
            // Nothing is claimed where there is no set, but an empty one misses.
            Err(PropensityError::EmptySet) => missed += 1,
            Err(PropensityError::Separated) => {}
            Err(other) => unreachable!("{other}"),
        }
    }
    assert!(missed <= 154, "{missed} of 600");
}

/// Log-odds of the guesses at a point, towards being correct.
fn toward(made: &[Guess], features: &[f64], point: &[f64; 2]) -> Vec<f64> {
    let odds = |guess: &Guess| {
        let odds = point[0] + point[1] * features[guess.row];
        if guess.member { odds } else { -odds }
    };
    made.iter().map(odds).collect()
}

/// Guesses by the feature itself, and by scores that owe nothing to it and are right in four cases
/// of five. Once 0 is reached, the search ends: nothing is proved.
#[test]
fn no_point_of_a_grid_has_a_lower_epsilon() {
    let mut proved = 0;
    for seed in 0..14 {
        let by_feature = seed < 8;
        let (features, member) = data(if by_feature { 80 } else { 150 }, &[0.3, 1.0], seed % 8);
        let set = set(&features, &member, 0.05);
        let mut noise = Noise(seed % 8 + 99);
        let made: Vec<Guess> = if by_feature {
            guesses(&features, 1)
        } else {
            let scored = |(row, &is)| guess(row, is == (noise.uniform() < 0.85));
            member.iter().enumerate().map(scored).collect()
        };
        let right = right_ones(&made, &member);
        let found = set.least_epsilon(&made, 0.05, &never).unwrap();
        let lowest = (grid(&set, 40).iter())
            .map(|point| Terms::from_offsets(&toward(&made, &features, point)).unwrap())
            .map(|terms| terms.epsilon(right, 0.05).unwrap())
            .fold(f64::INFINITY, f64::min);
        let value = found.value;
        assert!(
            value.max(0.0) <= lowest.max(0.0) + 1e-4,
            "{seed}: {value} {lowest}"
        );
        assert!(set.deviance(&found.coefficients).unwrap() <= set.squared_radius() * (1.0 + 1e-6));
        proved += i32::from(!by_feature && value > 0.0);
    }
    assert!(proved >= 4, "{proved}");
}

#[test]
fn no_point_of_a_grid_lets_fewer_guesses_survive_or_makes_a_log_odds_larger() {
    let (features, member) = data(100, &[0.3, 1.0], 5);
    let set = set(&features, &member, 0.05);
    let made = guesses(&features, 1);
    let found = set.least_surviving(&made, 0.5, &never).unwrap();
    let shift = set.largest_shift(&never).unwrap();
    let mut most = 0.0_f64;
    for point in grid(&set, 30) {
        let toward = toward(&made, &features, &point);
        let survive: f64 = (made
            .iter()
            .zip(&toward)
            .filter(|(g, _)| member[g.row] == g.member))
        .map(|(_, z)| (1.0 + (-0.5 - z.max(0.0)).exp()) / (1.0 + (-0.5_f64).exp()))
        .sum();
        assert!(found.value <= survive + 1e-3, "{} {survive}", found.value);
        most = toward.iter().fold(most, |most, z| most.max(z.abs()));
    }
    assert!(most <= shift + 1e-9 && most > 0.9 * shift, "{most} {shift}");
}

#[test]
fn no_point_of_a_grid_makes_so_many_right_guesses_likelier() {
    let (features, member) = data(100, &[0.3, 1.0], 6);
    let set = set(&features, &member, 0.05);
    let made: Vec<Guess> = (0..100)
        .map(|row| guess(row, member[row] || row % 4 == 0))
        .collect();
    let right = right_ones(&made, &member);
    let found = set.largest_log_tail(&made, &never).unwrap();
    for point in grid(&set, 30) {
        let terms = Terms::from_offsets(&toward(&made, &features, &point)).unwrap();
        let tail = terms.tail(right, 0.0).log;
        assert!(tail <= found + 1e-4, "{tail} {found}");
    }
}

/// The number of correct guesses among those kept, by drawing.
#[test]
fn matching_leaves_few_right_at_the_places_reported() {
    let (features, member) = data(200, &[0.3, 1.5], 7);
    let set = set(&features, &member, 0.05);
    let mut order: Vec<usize> = (0..200).collect();
    order.sort_by(|&a, &b| features[b].total_cmp(&features[a]));
    let made: Vec<Guess> = (0..100)
        .flat_map(|i| [guess(order[i], true), guess(order[199 - i], false)])
        .collect();
    let matching = Matching {
        inside: made.len(),
        made: 30,
        share: 0.5,
    };
    let found = set.least_matched(&made, matching, FREE, &never).unwrap();
    assert!(found.len() > 1);
    assert!(found[1..].iter().all(|least| least.value < found[0].value));
    let mut noise = Noise(3);
    let mut mean = |theta: &[f64], draws: i32| {
        let mut total = 0;
        for _ in 0..draws {
            for side in [true, false] {
                let kept = made.iter().filter(|g| g.member == side).filter(|g| {
                    let odds = theta[0] + theta[1] * features[g.row];
                    let against = if member[g.row] { odds } else { -odds };
                    noise.uniform() < (-against).exp()
                });
                let right = kept.take(15).map(|g| i32::from(member[g.row] == side));
                total += right.sum::<i32>();
            }
        }
        f64::from(total) / f64::from(draws)
    };
    // Means of 2,000 draws of at most 30 have a standard error below .08; the rest is what a middle
    // number differs by from a mean, which is halfway to the next whole number.
    assert!((mean(&found[0].coefficients, 2000) + 0.5 - found[0].value).abs() < 0.5);
    let lowest = mean(&found[1].coefficients, 2000);
    // Means of 200 have one below .25, of which four are exceeded by one in 3e4.
    for point in grid(&set, 10) {
        assert!(mean(&point, 200) > lowest - 1.0);
    }
}

#[test]
fn members_near_one_are_in_the_set() {
    let (features, member) = data(200, &[0.3, 1.5, -0.5], 8);
    let set = set(&features, &member, 0.05);
    let from = set.leaves(&[1.0, 0.0, 0.0]).unwrap();
    let near = set.members_near(&from, 0.5, 8, 1).unwrap();
    assert_eq!(near.len(), 8);
    let mut inside = 0;
    for (coefficients, log_odds) in &near {
        let deviance = set.deviance(coefficients).unwrap();
        assert!(deviance <= set.squared_radius() * (1.0 + 1e-6));
        inside += i32::from(deviance < 0.99 * set.squared_radius());
        let first = coefficients[0]
            + (features[..3].iter().zip(&coefficients[1..]))
                .map(|(x, t)| x * t)
                .sum::<f64>();
        assert!((log_odds[0] - first).abs() < 1e-9);
    }
    assert!(inside < 4);
    let halfway = set.members_near(&set.estimate(), 0.5, 8, 1).unwrap();
    let inner = halfway
        .iter()
        .filter(|(one, _)| set.deviance(one).unwrap() < 0.5 * set.squared_radius());
    assert_eq!(inner.count(), 4);
    assert_eq!(near, set.members_near(&from, 0.5, 8, 1).unwrap());
    assert_ne!(near, set.members_near(&from, 0.5, 8, 2).unwrap());
}

#[test]
fn what_allows_no_set_is_refused() {
    let (features, member) = data(100, &[0.0, 1.0], 1);
    let all = ConfidenceSet::new(rows(&features, &[true; 100]), 0.05, 0, &never).err();
    assert_eq!(all, Some(PropensityError::Separated));
    let broken = ConfidenceSet::new(rows(&features, &member), 1.0, 0, &never).err();
    assert_eq!(broken, Some(PropensityError::Level { value: 1.0 }));
    let stopped = ConfidenceSet::new(rows(&features, &member), 0.5, 0, &|| true).err();
    assert_eq!(stopped, Some(PropensityError::Interrupted));
    let set = set(&features, &member, 0.05);
    let nowhere = [guess(100, true)];
    assert_eq!(
        set.least_epsilon(&nowhere, 0.05, &never).err(),
        Some(PropensityError::Guess {
            index: 0,
            row: 100,
            rows: 100
        })
    );
}

#[test]
fn units_and_origins_of_features_do_not_matter() {
    let (features, member) = data(300, &[0.3, 1.0, -0.5], 2);
    let moved: Vec<f64> = features
        .chunks(2)
        .flat_map(|x| [1e3 * x[0] - 7.0, 1e-3 * x[1] + 2.0])
        .collect();
    let (one, other) = (set(&features, &member, 0.05), set(&moved, &member, 0.05));
    assert!((one.squared_radius() / other.squared_radius() - 1.0).abs() < 1e-6);
    let (a, b) = (one.estimate(), other.estimate());
    assert!((a[1] / (1e3 * b[1]) - 1.0).abs() < 1e-7 && (a[2] / (1e-3 * b[2]) - 1.0).abs() < 1e-7);
}

#[test]
fn the_boundary_is_where_the_set_ends() {
    let (features, member) = data(300, &[3.0, 1.0, -0.5], 3);
    let set = set(&features, &member, 0.01);
    let centre = set.estimate();
    assert!(set.deviance(&centre).unwrap().abs() < 1e-9);
    for direction in [[1.0, 0.0, 0.0], [-0.1, 5.0, 2.0], [0.0, -1.0, 1.0]] {
        let edge = set.leaves(&direction).unwrap();
        let scaled = |share: f64| -> Vec<f64> {
            centre
                .iter()
                .zip(&edge)
                .map(|(c, e)| c + share * (e - c))
                .collect()
        };
        assert!(set.contains(&scaled(0.9999)).unwrap());
        assert!(!set.contains(&scaled(1.0001)).unwrap());
    }
}

#[test]
fn known_parts_and_another_share_of_members_are_reckoned_with() {
    let (features, member) = data(400, &[0.0, 1.0], 4);
    let offsets: Vec<f64> = features.iter().map(|x| 0.6 * x + 0.2).collect();
    let plain = set(&features, &member, 0.05).estimate();
    let known = Labelled {
        offsets: &offsets,
        ..rows(&features, &member)
    };
    let with = ConfidenceSet::new(known, 0.05, 0, &never)
        .unwrap()
        .estimate();
    assert!((plain[0] - with[0] - 0.2).abs() < 1e-7 && (plain[1] - with[1] - 0.6).abs() < 1e-7);
    // Members of D' thinned to a third.
    let mut noise = Noise(8);
    let kept: Vec<usize> = (0..400)
        .filter(|&row| row >= 200 || !member[row] || noise.uniform() < 0.33)
        .collect();
    let thinned: Vec<f64> = kept.iter().map(|&row| features[row]).collect();
    let labels: Vec<bool> = kept.iter().map(|&row| member[row]).collect();
    let reference = kept.iter().filter(|&&row| row < 200).count();
    let two = Labelled {
        reference,
        own_intercept: true,
        ..rows(&thinned, &labels)
    };
    let set = ConfidenceSet::new(two, 0.05, 0, &never).unwrap();
    assert_eq!((set.width(), set.audited()), (3, 200));
    assert!(set.estimate()[2] < -0.5);
}

#[test]
fn every_bit_is_the_same_on_any_number_of_threads() {
    let (features, member) = data(3000, &[0.2, 1.0, -0.5, 0.3], 9);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            let set = set(&features, &member, 0.05);
            let made = guesses(&features, 3);
            let least = set.least_epsilon(&made[..500], 0.05, &never).unwrap();
            let matching = Matching {
                inside: 2500,
                made: 200,
                share: 0.5,
            };
            let matched = set.least_matched(&made, matching, FREE, &never).unwrap();
            (set.squared_radius().to_bits(), least, matched)
        })
    };
    assert_eq!(on(1), on(4));
}
