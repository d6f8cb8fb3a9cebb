//! Trade-off functions: closed forms at high precision, and the relations between their parts.
#![allow(clippy::unwrap_used, clippy::panic)]

use leakbound_core::AuditError;
use leakbound_core::fdp::TradeOff;
use leakbound_core::fdp::tradeoff::{Approx, Gaussian, Laplace, Profile, Tabulated};
use proptest::prelude::*;

/// Every family at parameters of order 1.
fn families(x: f64, delta: f64) -> Vec<Box<dyn TradeOff>> {
    let gaussian = Gaussian::new(x, 0.0).unwrap();
    let grid: Vec<f64> = (-80..=80)
        .map(|i| f64::from(i) * 0.1 * x.max(0.1))
        .collect();
    let profile: Vec<f64> = grid
        .iter()
        .map(|&epsilon| gaussian.delta(epsilon))
        .collect();
    let levels: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    let table: Vec<f64> = levels.iter().map(|&level| gaussian.f(level)).collect();
    vec![
        Box::new(gaussian),
        Box::new(Gaussian::new(x, delta).unwrap()),
        Box::new(Laplace::new(x).unwrap()),
        Box::new(Approx::new(x, delta).unwrap()),
        Box::new(Tabulated::new(&levels, &table).unwrap()),
        Box::new(Profile::new(&grid, &profile).unwrap()),
    ]
}

#[test]
fn gaussian_delta_at_high_precision() {
    for (mu, epsilon, delta) in [
        (1.0, 1.0, 0.126_936_737_506_643_95),
        (1.0, 0.0, 0.382_924_922_548_026_2),
        (0.001, 0.001, 8.335_713_212_520_85e-5),
        (0.25, 9.0, 2.590_333_251_534_509e-284),
        (3.0, 2.0, 0.685_874_165_716_049_4),
        (2.0, -1.5, 0.870_400_121_319_261_8),
        (10.0, 40.0, 0.814_779_437_760_081_7),
        (1.0, 36.5, 1.128_770_736_999_731e-285),
        (1e-5, 0.0, 3.989_422_803_997_704e-6),
    ] {
        let (low, high) = Gaussian::new(mu, 0.0).unwrap().delta_between(epsilon);
        assert!(
            low <= delta && delta <= high,
            "{mu} {epsilon}: {low} {delta} {high}"
        );
        assert!(high - low <= 1e-9 * delta, "{mu} {epsilon}: {low} {high}");
    }
    let curve = Gaussian::new(1.0, 0.0).unwrap();
    assert!((curve.epsilon(1e-300) / 37.448_847_912_139_1 - 1.0).abs() < 1e-12);
    assert_eq!(curve.epsilon(0.0), f64::INFINITY);
}

#[test]
fn no_privacy_loss_at_all() {
    for curve in families(0.0, 0.0) {
        for y in [0.0, 1e-200, 0.3, 0.999, 1.0] {
            assert!((curve.inverse(y) - y).abs() <= 1e-6 * y, "{curve:?} {y}");
        }
        assert!(curve.epsilon(1e-3) == 0.0, "{curve:?}");
    }
}

#[test]
fn full_power_needs_full_level() {
    let curve = Gaussian::new(1.0, 0.0).unwrap();
    assert!((curve.inverse(1.0) - 1.0).abs() < 1e-11);
    assert!((curve.inverse(1.0 - 1e-15) - 1.0).abs() < 1e-11);
}

#[test]
fn failures_come_first() {
    let (curve, plain) = (
        Gaussian::new(1.0, 0.1).unwrap(),
        Gaussian::new(1.0, 0.0).unwrap(),
    );
    assert_eq!(curve.inverse(0.1), 0.0);
    assert!((curve.inverse(0.55) - 0.9 * plain.inverse(0.5)).abs() < 1e-12);
    assert!((curve.inverse(1.0) - 0.9).abs() < 1e-11);
    assert!((curve.delta(2.0) - (0.1 + 0.9 * plain.delta(2.0))).abs() < 1e-14);
    assert_eq!(curve.epsilon(0.1), f64::INFINITY);
    assert!((curve.epsilon(0.1 + 0.9 * plain.delta(2.0)) - 2.0).abs() < 1e-9);
}

#[test]
fn profiles_of_one_pair_and_of_none() {
    let pure = Profile::new(&[1.0], &[0.0]).unwrap();
    assert!((pure.inverse(0.5) - 0.5 * (-1.0_f64).exp()).abs() < 1e-14);
    assert!((pure.epsilon(0.0) - 1.0).abs() < 1e-14);
    let nothing = Profile::new(&[1.0], &[1.0]).unwrap();
    assert_eq!((nothing.inverse(1.0), nothing.f(0.0)), (0.0, 0.0));
    assert_eq!(
        Profile::new(&[], &[]).unwrap_err(),
        AuditError::EmptyProfile
    );
    assert!(Profile::new(&[f64::NAN], &[0.1]).is_err());
    assert!(Profile::new(&[701.0], &[0.1]).is_err());
    assert!(Profile::new(&[1.0], &[1.1]).is_err());
    assert!(Profile::new(&[1.0, 2.0], &[0.1]).is_err());
}

#[test]
fn profiles_below_perfect_privacy_are_refused() {
    let perfect: f64 = -(-1.0_f64).exp_m1();
    let steps = [-30.0, -1.0, 0.0];
    let exact = steps.map(|epsilon: f64| -epsilon.exp_m1());
    let private = Profile::new(&steps, &exact).unwrap();
    for y in [0.0, 1e-3, 0.5, 1.0 - 1e-14, 1.0] {
        assert!(private.inverse(y) <= y, "{y}");
        assert!(y - private.inverse(y) < 1e-9, "{y}");
        assert!(private.f(y) <= 1.0 - y, "{y}");
    }
    assert!(Profile::new(&[-1.0], &[perfect - 1e-10]).unwrap().f(1.0) <= 0.0);
    assert_eq!(
        Profile::new(&[1.0, -1.0], &[0.5, 0.6]).unwrap_err(),
        AuditError::DeltaTooSmall {
            index: 1,
            delta: 0.6,
            least: perfect,
        }
    );
}

#[test]
fn laplace_noise_of_any_scale() {
    for epsilon in [0.0, 1.0, 700.0, 701.0, 744.0, 745.0, 746.0, 1e300] {
        let curve = Laplace::new(epsilon).unwrap();
        assert_eq!((curve.f(0.0), curve.f(1.0)), (1.0, 0.0), "{epsilon}");
        assert!(
            curve.inverse(1.0) <= 1.0 && curve.inverse(1.0) > 0.999,
            "{epsilon}"
        );
        for x in [5e-324, 1e-308, 1e-300, 0.25, 0.5, 0.75] {
            assert!((0.0..=1.0 - x).contains(&curve.f(x)), "{epsilon} {x}");
        }
    }
    // e^ε x is 1/4, on both sides of where e^{-ε} is a normal number.
    for epsilon in [699.0_f64, 701.0] {
        let level = (-epsilon).exp() / 4.0;
        assert!((Laplace::new(epsilon).unwrap().f(level) - 0.75).abs() < 1e-12);
        assert!((Laplace::new(epsilon).unwrap().f(4.0 * level) - 0.25).abs() < 1e-12);
    }
}

proptest! {
    #[test]
    fn the_inverse_inverts_and_is_below(x in 0.0..4.0, delta in 0.0..0.2, y in 0.0..1.0) {
        for curve in families(x, delta) {
            let level = curve.inverse(y);
            prop_assert!((0.0..=y).contains(&level), "{:?} {}", curve, level);
            let power = 1.0 - curve.f(level);
            // A jump at level 0 reaches more.
            let at_jump = level == 0.0 && power > y;
            prop_assert!(at_jump || (power - y).abs() < 1e-9, "{:?} {} {}", curve, power, y);
            prop_assert!(curve.inverse(0.5 * y) <= level);
        }
    }

    #[test]
    fn delta_is_the_largest_excess(x in 0.0..4.0, delta in 0.0..0.2, epsilon in -5.0..5.0, at in 0.0..1.0) {
        for curve in families(x, delta) {
            let (low, high) = curve.delta_between(epsilon);
            let excess = |level: f64| 1.0 - curve.f(level) - epsilon.exp() * level;
            prop_assert!(excess(at) <= high + 1e-12, "{:?}", curve);
            let best = excess(curve.tangent(epsilon));
            prop_assert!((best - high).abs() < 1e-9, "{:?} {} {}", curve, best, high);
            prop_assert!(0.0 <= low && low <= high && high <= 1.0);
            prop_assert!(high >= -epsilon.exp_m1() - 1e-12);
        }
    }

    #[test]
    fn epsilon_is_the_least(x in 0.0..4.0, delta in 0.0..0.2, at in 0.0..0.9) {
        for curve in families(x, delta) {
            let epsilon = curve.epsilon(at);
            if epsilon.is_finite() {
                prop_assert!(curve.delta_between(epsilon * (1.0 + 1e-9) + 1e-9).0 <= at);
            }
            if epsilon > 0.0 {
                prop_assert!(curve.delta(epsilon.min(600.0)) > at, "{:?} {}", curve, epsilon);
            }
        }
    }

    #[test]
    fn coarser_descriptions_allow_more(x in 0.1..4.0, y in 0.0..1.0) {
        let curves = families(x, 0.0);
        let (exact, table, profile) = (&curves[0], &curves[4], &curves[5]);
        prop_assert!(profile.inverse(y) <= exact.inverse(y) + 1e-12);
        // Straight lines between points of a convex f lie above it.
        prop_assert!(table.inverse(y) >= exact.inverse(y) - 1e-12);
        prop_assert!((profile.inverse(y) - exact.inverse(y)).abs() < 0.01);
    }

    #[test]
    fn curves_order_by_their_parameter(x in 0.0..3.0, step in 0.0..1.0, delta in 0.0..0.2, y in 0.0..1.0) {
        for (weak, strong) in families(x + step, delta).iter().zip(families(x, delta)).take(4) {
            prop_assert!(weak.inverse(y) <= strong.inverse(y) + 1e-11);
            prop_assert!(weak.delta(x) >= strong.delta(x) - 1e-12);
        }
    }
}
