//! Algorithm 3 for f-DP: independently computed decisions, and the order of its answers.
#![allow(clippy::unwrap_used, clippy::panic)]

use leakbound_core::fdp::recursion::{Decision, critical, decide, p_value};
use leakbound_core::fdp::tradeoff::{Approx, Gaussian, Laplace};
use leakbound_core::fdp::{Counts, TradeOff};
use leakbound_core::{AuditError, Interrupt};
use leakbound_math::{Binomial, Probability};
use proptest::prelude::*;

/// `tests/golden/fdp_recursion.csv`, whose header says what each column is.
const ROWS: &str = include_str!("../../../tests/golden/fdp_recursion.csv");

fn gaussian(mu: f64) -> Result<Gaussian, AuditError> {
    Gaussian::new(mu, 0.0)
}

fn rejects(counts: &Counts, curve: &dyn TradeOff, tau: f64) -> bool {
    decide(counts, curve, tau, &Interrupt::default())
        .unwrap()
        .rejected()
}

#[test]
fn golden_decisions_and_critical_parameters() {
    let rows: Vec<Vec<&str>> = ROWS
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| line.split(',').collect())
        .collect();
    assert!(rows.len() > 20);
    for row in rows {
        let float = |i: usize| row[i].parse::<f64>().unwrap();
        let integer = |i: usize| row[i].parse::<u64>().unwrap();
        let counts =
            Counts::new(float(0), integer(1), integer(2), integer(3) as u32, false).unwrap();
        let (tau, interrupt) = (float(5), Interrupt::default());
        let wanted = match row[10].parse() {
            Ok(exit) => Decision::Rejected { exit },
            Err(_) => Decision::Kept,
        };
        let curve = gaussian(float(4)).unwrap();
        let decision = decide(&counts, &curve, tau, &interrupt).unwrap();
        assert_eq!(decision, wanted, "{row:?}");
        assert_eq!(row[11] == "1", decision.rejected(), "{row:?}");
        let mu = critical(&counts, gaussian, tau, &interrupt).unwrap();
        let error = mu.unwrap_or(0.0) - float(12);
        assert!(error.abs() <= 1e-10, "{row:?}: {mu:?}");
    }
}

#[test]
fn the_critical_parameter_is_rejected_and_a_little_more_is_not() {
    let counts = Counts::new(1e6, 2000, 1900, 2, false).unwrap();
    let mu = critical(&counts, gaussian, 0.05, &Interrupt::default())
        .unwrap()
        .unwrap();
    assert!(rejects(&counts, &gaussian(mu).unwrap(), 0.05));
    assert!(!rejects(
        &counts,
        &gaussian(mu * (1.0 + 1e-12)).unwrap(),
        0.05
    ));
}

#[test]
fn nothing_to_reject() {
    let counts = Counts::new(100.0, 50, 25, 2, false).unwrap();
    let interrupt = Interrupt::default();
    assert_eq!(critical(&counts, gaussian, 0.05, &interrupt).unwrap(), None);
    let none = Counts::new(100.0, 50, 0, 2, false).unwrap();
    assert_eq!(
        p_value(&none, &gaussian(0.0).unwrap(), &interrupt).unwrap(),
        1.0
    );
}

#[test]
fn guesses_of_members_only_count_half_the_examples() {
    let (all, members) = (
        Counts::new(500.0, 80, 70, 2, false).unwrap(),
        Counts::new(1000.0, 80, 70, 2, true).unwrap(),
    );
    assert_eq!(all, members);
    // More guesses than half the examples: r itself may pass 1.
    let most = Counts::new(100.0, 90, 90, 2, true).unwrap();
    assert!(rejects(&most, &gaussian(0.0).unwrap(), 0.6));
}

#[test]
fn bad_input() {
    let message = |m, guesses, correct, k, one_sided| {
        Counts::new(m, guesses, correct, k, one_sided)
            .unwrap_err()
            .to_string()
    };
    assert!(message(100.0, 50, 51, 2, false).contains("correct = 51"));
    assert!(message(0.0, 50, 40, 2, false).contains("m = 0"));
    assert!(message(f64::NAN, 50, 40, 2, false).contains("m = NaN"));
    assert!(message(100.0, 0, 0, 2, false).contains("guesses = 0"));
    assert!(message(100.0, 50, 40, 1, false).contains("k = 1"));
    assert!(message(100.0, 50, 40, 3, true).contains("k = 3"));
    let counts = Counts::new(100.0, 50, 40, 2, false).unwrap();
    for tau in [0.0, 1.0, f64::NAN] {
        let error = decide(&counts, &gaussian(1.0).unwrap(), tau, &Interrupt::default());
        assert!(error.unwrap_err().to_string().contains("tau"));
    }
}

#[test]
fn an_interruption_is_heard() {
    let interrupt = Interrupt::default();
    interrupt.request();
    let counts = Counts::new(1e9, 1 << 20, 1 << 16, 50, false).unwrap();
    let answer = p_value(&counts, &gaussian(0.0).unwrap(), &interrupt);
    assert_eq!(answer.unwrap_err(), AuditError::Interrupted);
}

fn settings() -> impl Strategy<Value = (f64, u64, u64, u32)> {
    (2_u64..400, 0.0..1.0, 0.5..1.0, 2_u32..6).prop_map(|(m, share, right, arms)| {
        let guesses = 1 + (share * (m - 1) as f64) as u64;
        (m as f64, guesses, (right * guesses as f64) as u64, arms)
    })
}

proptest! {
    #[test]
    fn decisions_are_monotone(setting in settings(), mu in 0.0..2.0, tau in 0.01..0.5) {
        let (m, guesses, correct, arms) = setting;
        let counts = Counts::new(m, guesses, correct, arms, false).unwrap();
        if rejects(&counts, &gaussian(mu).unwrap(), tau) {
            prop_assert!(rejects(&counts, &gaussian(0.9 * mu).unwrap(), tau));
            prop_assert!(rejects(&counts, &gaussian(mu).unwrap(), 1.1 * tau));
            let more = Counts::new(m, guesses, (correct + 1).min(guesses), arms, false).unwrap();
            prop_assert!(rejects(&more, &gaussian(mu).unwrap(), tau));
        }
    }

    /// At μ = 0 guesses are independent of inclusion; under (ε, 0)-DP they are dominated.
    #[test]
    fn p_values_are_above_the_binomial_tail(setting in settings(), epsilon in 0.0..2.0) {
        let (m, guesses, correct, arms) = setting;
        let counts = Counts::new(m, guesses, correct, arms, false).unwrap();
        let interrupt = Interrupt::default();
        for (epsilon, curve) in [
            (0.0, Box::new(gaussian(0.0).unwrap()) as Box<dyn TradeOff>),
            (epsilon, Box::new(Approx::new(epsilon, 0.0).unwrap())),
        ] {
            let p = p_value(&counts, curve.as_ref(), &interrupt).unwrap();
            let odds = Probability::from_logit(epsilon - f64::from(arms - 1).ln()).unwrap();
            let tail = Binomial::new(guesses, odds).upper_tail(correct);
            prop_assert!(p >= tail * (1.0 - 1e-9), "{} {}", p, tail);
        }
    }

    /// The Laplace mechanism is ε-DP, and so obeys every bound for it.
    #[test]
    fn a_smaller_family_is_refuted_more(setting in settings(), epsilon in 0.0..3.0) {
        let (m, guesses, correct, arms) = setting;
        let counts = Counts::new(m, guesses, correct, arms, false).unwrap();
        if rejects(&counts, &Approx::new(epsilon, 0.0).unwrap(), 0.05) {
            prop_assert!(rejects(&counts, &Laplace::new(epsilon).unwrap(), 0.05));
        }
    }
}
