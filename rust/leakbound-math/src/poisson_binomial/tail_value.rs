//! A tail probability with a bound on its error.

use super::exact::UNIT;

/// An upper tail P(S ≥ v) and what is certain about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// P(S ≥ v); 0 where it is below the smallest double.
    pub value: f64,
    /// ln P(S ≥ v), relatively accurate also where the tail is near 1 or far below 10⁻³⁰⁸.
    pub log: f64,
    /// P(S ≥ v) lies within this relative distance of e^`log`.
    pub relative_error: f64,
}

impl Tail {
    pub(super) const ONE: Self = Self {
        value: 1.0,
        log: 0.0,
        relative_error: 0.0,
    };
    pub(super) const ZERO: Self = Self {
        value: 0.0,
        log: f64::NEG_INFINITY,
        relative_error: 0.0,
    };

    pub(super) fn from_log(log: f64, relative_error: f64) -> Self {
        let relative_error = relative_error + 4.0 * UNIT * (1.0 + log.abs());
        Self {
            value: log.exp(),
            log,
            relative_error,
        }
    }

    pub(super) fn from_value(value: f64, relative_error: f64) -> Self {
        let log = value.ln();
        Self {
            value,
            log,
            relative_error: relative_error + 2.0 * UNIT * log.abs(),
        }
    }

    /// 1 − e^`log`, whose complement has the relative error given.
    pub(super) fn from_log_complement(log: f64, relative_error: f64) -> Self {
        let lower = log.exp();
        let value = 1.0 - lower;
        let absolute_error = if lower > 0.0 {
            lower * relative_error
        } else {
            0.0
        };
        let relative_error = absolute_error / value + 4.0 * UNIT;
        Self {
            value,
            log: (-lower).ln_1p(),
            relative_error,
        }
    }

    /// An upper bound on ln P(S ≥ v).
    pub fn log_upper(&self) -> f64 {
        (self.log + self.relative_error).min(0.0).next_up().min(0.0)
    }
}
