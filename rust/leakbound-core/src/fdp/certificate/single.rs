//! The best bound with one slope, for one number of guesses: where a search for more begins.

use leakbound_math::{Binomial, Probability};

use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// The slope is looked for on a grid down from the odds at c, and finer ones.
const WIDEST: f64 = 4.0;
const GRID: usize = 36;
const REFINED: usize = 3;

/// The one slope that costs least for a level: with one slope, κ is a tail T of a binomial law and
/// the highest price m T (1 − T)/(c P(W = c)).
#[derive(Clone, Copy)]
pub(super) struct Single {
    pub(super) cost: f64,
    /// ln λ.
    pub(super) log: f64,
    pub(super) highest: f64,
    pub(super) tail: f64,
}

impl Single {
    pub(super) fn new(level: &Counts, curve: &dyn TradeOff) -> Option<Self> {
        let (guesses, correct) = (level.guesses(), level.correct());
        let centre = (correct as f64 / (guesses - correct + 1) as f64).ln();
        let mut best: Option<(f64, Self)> = None;
        let (mut from, mut step) = (centre - WIDEST, WIDEST / (GRID - 4) as f64);
        for _ in 0..REFINED {
            for i in 0..GRID {
                let at = from + step * i as f64;
                if let Some(found) = Self::at(level, curve, at)
                    && best.is_none_or(|(_, best)| found.cost < best.cost)
                {
                    best = Some((at, found));
                }
            }
            from = best?.0 - step;
            step *= 2.0 / (GRID - 1) as f64;
        }
        best.map(|(_, best)| best)
    }

    fn at(level: &Counts, curve: &dyn TradeOff, log_odds: f64) -> Option<Self> {
        let (guesses, correct) = (level.guesses(), level.correct());
        let law = Binomial::new(guesses, Probability::from_logit(log_odds).ok()?);
        let ln_tail = law.ln_upper_tail(correct);
        let ratio = ln_tail + law.ln_lower_tail(correct - 1) - law.ln_pmf(correct);
        let highest = level.examples() * ratio.exp() / correct as f64;
        let log = log_odds + level.others().ln();
        let tail = ln_tail.exp();
        let cost = tail + highest * curve.delta(log);
        Some(Self {
            cost,
            log,
            highest,
            tail,
        })
    }
}
