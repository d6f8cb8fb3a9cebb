//! Guesses that lean on no feature.

#![allow(clippy::unwrap_used)]

use leakbound_propensity::{Balance, balanced};
use model::{Noise, data, never};

mod model;

/// Scores that are the log-odds: guesses by size lean on the features, balanced ones do not.
#[test]
fn balanced_guesses_lean_on_no_feature() {
    let theta = [0.2, 1.0, -0.5, 0.3];
    let (features, _) = data(2000, &theta, 10);
    let mut noise = Noise(11);
    let scores: Vec<f64> = (features.chunks(3))
        .map(|x| x[0] - 0.5 * x[1] + 0.3 * x[2] + noise.normal())
        .collect();
    for (one_sided, number) in [(false, 2000.0), (false, 400.0), (true, 400.0)] {
        let balance = Balance {
            features: &features,
            columns: 3,
            weights: &[0.25; 2000],
            odd: &[],
            counts: &[],
            guesses: number,
            labels: 1.0,
            one_sided,
        };
        let lean = |values: &[f64]| {
            let mut order: Vec<usize> = (0..2000).collect();
            let rank = |x: f64| if one_sided { x } else { x.abs() };
            order.sort_by(|&a, &b| rank(values[b]).total_cmp(&rank(values[a])));
            let centre = |j: usize| features.iter().skip(j).step_by(3).sum::<f64>() / 2000.0;
            let sums: Vec<f64> = (0..3)
                .map(|j| {
                    let made = order[..number as usize].iter();
                    made.map(|&row| {
                        let sign = if one_sided { 1.0 } else { values[row].signum() };
                        let middle = if one_sided { centre(j) } else { 0.0 };
                        sign * (features[3 * row + j] - middle)
                    })
                    .sum()
                })
                .collect();
            sums.iter().map(|s| s * s).sum::<f64>().sqrt()
        };
        let residuals = balanced(&scores, balance, &never).unwrap();
        assert!(
            lean(&residuals) < 0.03 * lean(&scores),
            "{} {}",
            lean(&residuals),
            lean(&scores)
        );
    }
    // Columns that depend on one another do no harm.
    let twice: Vec<f64> = features.chunks(3).flat_map(|x| [x[0], x[0], 1.0]).collect();
    let balance = Balance {
        features: &twice,
        columns: 3,
        weights: &[0.25; 2000],
        odd: &[],
        counts: &[],
        guesses: 2000.0,
        labels: 1.0,
        one_sided: false,
    };
    assert!(
        balanced(&scores, balance, &never)
            .unwrap()
            .iter()
            .all(|x| x.is_finite())
    );
}
