//! Refits against exact fits of the same resamples, and what cannot be fitted.

#![allow(clippy::unwrap_used)]

use leakbound_propensity::{LogisticFit, PropensityError, Training, log_odds};
use model::never;
use proptest::prelude::*;

mod model;

/// Features of which the first alone says something about membership.
fn data(rows: usize, columns: usize, seed: u64) -> (Vec<f64>, Vec<bool>) {
    let mut theta = vec![0.0; columns + 1];
    theta[..2].copy_from_slice(&[0.2, 1.5]);
    model::data(rows, &theta, seed)
}

fn folds(rows: usize, folds: u8) -> Vec<u8> {
    (0..rows)
        .map(|row| (row % usize::from(folds)) as u8)
        .collect()
}

/// The largest difference of log-odds between refits and exact fits of the same resamples.
fn error(features: &[f64], columns: usize, member: &[bool], folds: Option<&[u8]>, l2: f64) -> f64 {
    let training = Training::new(features, columns, member, folds, l2).unwrap();
    let base = LogisticFit::new(&training, None).unwrap();
    let refits = base.bootstrap(&training, 5, 3, 20, &never).unwrap();
    let exact: Vec<f64> = (3..23)
        .flat_map(|number| {
            let counts = training.resample(5, number).unwrap();
            LogisticFit::new(&training, Some(&counts))
                .unwrap()
                .coefficients(&training)
        })
        .collect();
    let [fast, slow] = [refits, exact].map(|c| log_odds(&c, features, columns, &never).unwrap());
    (fast.iter().zip(slow)).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()))
}

#[test]
fn refits_are_exact_fits_of_the_resamples() {
    let (features, member) = data(1500, 7, 1);
    assert!(error(&features, 7, &member, None, 1.0) < 1e-6);
    assert!(error(&features, 7, &member, Some(&folds(1500, 5)), 1.0) < 1e-6);
    assert!(error(&features, 7, &member, Some(&folds(1500, 3)), 0.0) < 1e-6);
}

/// Where features say nothing, the calibration of a resample may be far from that of all rows, and
/// Newton's method from there diverges.
#[test]
fn calibrations_that_run_away_are_begun_anew() {
    for seed in 0..12 {
        let (features, member) = model::data(150, &[0.0, 0.0], seed);
        assert!(error(&features, 1, &member, Some(&folds(150, 5)), 1.0) < 1e-6);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Few rows, where chords do not shrink errors and Newton's method takes over.
    #[test]
    fn refits_of_few_rows_are_exact(
        rows in 30_usize..90,
        columns in 1_usize..12,
        seed in 0_u64..1000,
        l2 in 0.01_f64..10.0,
    ) {
        let (features, member) = data(rows, columns, seed);
        let members = member.iter().filter(|&&m| m).count();
        prop_assume!(members > 5 && members + 5 < rows);
        prop_assert!(error(&features, columns, &member, Some(&folds(rows, 4)), l2) < 2e-6);
    }
}

#[test]
fn replicates_do_not_depend_on_their_block_or_thread() {
    let (features, member) = data(400, 3, 2);
    let folds = folds(400, 5);
    let training = Training::new(&features, 3, &member, Some(&folds), 1.0).unwrap();
    let base = LogisticFit::new(&training, None).unwrap();
    let all = base.bootstrap(&training, 9, 0, 40, &never).unwrap();
    let one_by_one: Vec<f64> = (0..40)
        .flat_map(|number| base.bootstrap(&training, 9, number, 1, &never).unwrap())
        .collect();
    assert_eq!(all, one_by_one);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let again = pool.install(|| {
            let base = LogisticFit::new(&training, None).unwrap();
            base.bootstrap(&training, 9, 0, 40, &never).unwrap()
        });
        assert_eq!(all, again);
    }
    assert_ne!(all, base.bootstrap(&training, 10, 0, 40, &never).unwrap());
}

#[test]
fn features_that_depend_on_one_another_need_the_penalty() {
    let (single, member) = data(200, 1, 3);
    let features: Vec<f64> = single.iter().flat_map(|x| [*x, 2.0 * x, 1.0]).collect();
    let fit = |l2| {
        let training = Training::new(&features, 3, &member, None, l2).unwrap();
        LogisticFit::new(&training, None).map(|fit| fit.coefficients(&training))
    };
    assert_eq!(fit(0.0), Err(PropensityError::Unidentified));
    let slopes = fit(1.0).unwrap();
    // The penalty shares the slope in proportion to the scales, and gives a constant none.
    assert!((slopes[2] - 2.0 * slopes[1]).abs() < 1e-9);
    assert_eq!(slopes[3], 0.0);
}

#[test]
fn a_quasi_separating_feature_is_not_taken_for_a_fit() {
    // Where the feature is 1 there are members alone; elsewhere both.
    let features: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i < 10))).collect();
    let member: Vec<bool> = (0..40).map(|i| i < 10 || i % 2 == 0).collect();
    let training = Training::new(&features, 1, &member, None, 0.0).unwrap();
    assert!(LogisticFit::new(&training, None).is_err());
    let training = Training::new(&features, 1, &member, None, 1.0).unwrap();
    assert!(LogisticFit::new(&training, None).is_ok());
}

#[test]
fn bad_input_is_named() {
    let member = [true, false, true, false];
    let mut features = [0.0, 1.0, 2.0, 3.0];
    let read = |features: &[f64], member: &[bool], folds: Option<&[u8]>, l2: f64| {
        Training::new(features, 1, member, folds, l2).map(|_| ())
    };
    assert!(read(&features, &member, None, 1.0).is_ok());
    assert!(read(&features[..3], &member, None, 1.0).is_err());
    assert!(read(&features, &member, None, -1.0).is_err());
    assert_eq!(
        read(&features, &[true; 4], None, 1.0),
        Err(PropensityError::ClassMissing {
            member: false,
            fold: None
        })
    );
    assert_eq!(
        read(
            &features,
            &[true, true, false, true],
            Some(&[0, 0, 1, 1]),
            1.0
        ),
        Err(PropensityError::ClassMissing {
            member: false,
            fold: Some(1)
        })
    );
    features[2] = f64::NAN;
    assert!(matches!(
        read(&features, &member, None, 1.0),
        Err(PropensityError::NotFinite {
            row: 2,
            column: 0,
            ..
        })
    ));
}

#[test]
fn a_bootstrap_stops_when_asked_to() {
    let (features, member) = data(100, 2, 4);
    let training = Training::new(&features, 2, &member, None, 1.0).unwrap();
    let base = LogisticFit::new(&training, None).unwrap();
    let stopped = base.bootstrap(&training, 0, 0, 50, &|| true);
    assert_eq!(stopped, Err(PropensityError::Interrupted));
}

#[test]
fn a_class_of_two_rows_is_resampled_until_it_is_there() {
    let member: Vec<bool> = (0..60).map(|i| i < 2).collect();
    let (features, _) = data(60, 1, 6);
    let training = Training::new(&features, 1, &member, Some(&folds(60, 2)), 1.0).unwrap();
    for number in 0..20 {
        let counts = training.resample(0, number).unwrap();
        assert!(counts[0] > 0 && counts[1] > 0);
    }
}
