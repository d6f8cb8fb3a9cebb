//! Logistic sums of many replicates against plain loops, on every vector level.

use leakbound_simd::{
    GROUP, Level, LineSums, REPLICATES, line_sums, linear_scores, logistic_gradient,
};

type Lanes = [f64; REPLICATES];

const WIDTH: usize = 12;
/// Nine groups; Miri, which interprets, has two.
const ROWS: usize = if cfg!(miri) { 2 * GROUP } else { 9 * GROUP };

/// Numbers in (−1, 1) that look random.
fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn lanes(count: usize, seed: u64) -> Vec<Lanes> {
    let flat = noise(count * REPLICATES, seed);
    flat.as_chunks::<REPLICATES>().0.to_vec()
}

fn entry(panel: &[f64], row: usize, column: usize) -> f64 {
    panel[(row / GROUP * WIDTH + column) * GROUP + row % GROUP]
}

struct Case {
    panel: Vec<f64>,
    coefficients: Vec<Lanes>,
    targets: Vec<f64>,
    weights: Vec<[f32; REPLICATES]>,
}

fn case() -> Case {
    Case {
        panel: noise(ROWS * WIDTH, 1),
        coefficients: lanes(WIDTH, 2),
        targets: noise(ROWS, 3)
            .iter()
            .map(|x| f64::from(u8::from(*x > 0.0)))
            .collect(),
        weights: lanes(ROWS, 4)
            .iter()
            .map(|row| row.map(|x| (3.0 * x.abs()).floor() as f32))
            .collect(),
    }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-13 * other.abs().max(1.0)
}

#[test]
fn gradients_are_sums_over_rows() {
    let case = case();
    for level in Level::available() {
        let mut gradient = lanes(WIDTH, 5);
        let before = gradient.clone();
        logistic_gradient(
            level,
            &case.panel,
            WIDTH,
            &case.coefficients,
            &case.targets,
            &case.weights,
            &mut gradient,
        );
        for (column, k) in (0..WIDTH).flat_map(|c| (0..REPLICATES).map(move |k| (c, k))) {
            let sum: f64 = (0..ROWS)
                .map(|row| {
                    let score: f64 = (0..WIDTH)
                        .map(|c| entry(&case.panel, row, c) * case.coefficients[c][k])
                        .sum();
                    let residual = 1.0 / (1.0 + (-score).exp()) - case.targets[row];
                    f64::from(case.weights[row][k]) * residual * entry(&case.panel, row, column)
                })
                .sum();
            assert!(
                close(gradient[column][k], before[column][k] + sum),
                "{level}"
            );
        }
    }
}

#[test]
fn scores_are_products() {
    let case = case();
    for level in Level::available() {
        let mut scores = vec![[0.0; REPLICATES]; ROWS];
        linear_scores(level, &case.panel, WIDTH, &case.coefficients, &mut scores);
        for (row, k) in (0..ROWS).flat_map(|r| (0..REPLICATES).map(move |k| (r, k))) {
            let score: f64 = (0..WIDTH)
                .map(|c| entry(&case.panel, row, c) * case.coefficients[c][k])
                .sum();
            assert!(close(scores[row][k], score), "{level}");
        }
    }
}

#[test]
fn line_sums_are_sums_over_rows() {
    let case = case();
    let scores: Vec<Lanes> = lanes(ROWS, 6)
        .iter()
        .map(|row| row.map(|x| 9.0 * x))
        .collect();
    let line = [lanes(1, 7)[0], lanes(1, 8)[0]];
    let ends = [[0.1; REPLICATES], [0.8; REPLICATES]];
    for level in Level::available() {
        let mut sums = LineSums::default();
        line_sums(
            level,
            &scores,
            &case.targets,
            &case.weights,
            &line,
            &ends,
            &mut sums,
        );
        for k in 0..REPLICATES {
            let mut wanted = [0.0; 5];
            let rows = scores.iter().zip(case.targets.iter().zip(&case.weights));
            for (scores, (target, weights)) in rows {
                let (eta, w) = (scores[k], f64::from(weights[k]));
                let p = 1.0 / (1.0 + (-(line[0][k] * eta + line[1][k])).exp());
                let residual = w * (p - (0.1 + 0.7 * target));
                let curvature = w * p * (1.0 - p);
                let terms = [
                    residual * eta,
                    residual,
                    curvature * eta * eta,
                    curvature * eta,
                    curvature,
                ];
                for (sum, term) in wanted.iter_mut().zip(terms) {
                    *sum += term;
                }
            }
            let got = sums
                .gradient
                .iter()
                .chain(&sums.hessian)
                .map(|lanes| lanes[k]);
            assert!(
                got.zip(wanted).all(|(got, wanted)| close(got, wanted)),
                "{level}"
            );
        }
    }
}

#[test]
fn the_logistic_function_is_right_everywhere() {
    let points = [
        0.0, 1e-9, 0.3, -0.3, 5.5, -20.0, 36.8, -36.8, 650.0, -650.0, 1e9, -1e9,
    ];
    for level in Level::available() {
        for x in points {
            // One row of one, so that its gradient is σ(x).
            let mut panel = vec![0.0; GROUP * GROUP];
            panel[0] = 1.0;
            let mut coefficients = vec![[0.0; REPLICATES]; GROUP];
            coefficients[0] = [x; REPLICATES];
            let mut weights = vec![[0.0; REPLICATES]; GROUP];
            weights[0] = [1.0; REPLICATES];
            let mut gradient = vec![[0.0; REPLICATES]; GROUP];
            let targets = [0.0; GROUP];
            logistic_gradient(
                level,
                &panel,
                GROUP,
                &coefficients,
                &targets,
                &weights,
                &mut gradient,
            );
            let wanted = 1.0 / (1.0 + (-x.clamp(-700.0, 700.0)).exp());
            let error = (gradient[0][0] / wanted - 1.0).abs();
            assert!(error < 4e-15, "{level}: {x} {error:e}");
        }
    }
}
