//! A convex curve through given points.

use leakbound_math::error::{check_length, check_probabilities};

use super::function::TradeOff;
use crate::error::AuditError;

/// How far a table may bend the wrong way, by rounding, before it is refused.
const TOLERANCE: f64 = 1e-9;
/// Roundings of an interpolation between values of order 1.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// A trade-off function given at some levels: the straight lines between the points.
///
/// Where points bend the wrong way by less than 1e-9, as rounding makes them, the largest convex
/// curve below them is taken: it allows more.
#[derive(Debug, Clone, PartialEq)]
pub struct Tabulated {
    /// Corners (x, f̄(x)): x increases from 0 to where f̄ is 1.
    corners: Vec<(f64, f64)>,
    /// Slopes from each corner to the next; they decrease.
    slopes: Vec<f64>,
}

impl Tabulated {
    /// The curve with f(`alpha[i]`) = `f[i]`, straight between.
    ///
    /// # Errors
    /// Lengths differ or are below 2; `alpha` does not increase from 0 to 1; `f` leaves [0, 1],
    /// increases, is not convex, or lies above 1 − `alpha`.
    pub fn new(alpha: &[f64], f: &[f64]) -> Result<Self, AuditError> {
        check(alpha, f)?;
        let mut corners: Vec<(f64, f64)> = Vec::with_capacity(alpha.len());
        for (&x, &f) in alpha.iter().zip(f) {
            let point = (x, (1.0 - f).max(x));
            while let [.., a, b] = corners[..]
                && slope(a, b) <= slope(b, point)
            {
                corners.pop();
            }
            corners.push(point);
        }
        // f̄ stays at its largest value, 1.
        while let [.., a, b] = corners[..]
            && a.1 >= b.1
        {
            corners.pop();
        }
        let slopes = corners.windows(2).map(|pair| slope(pair[0], pair[1]));
        let slopes = slopes.collect();
        Ok(Self { corners, slopes })
    }

    /// The last corner before the first for which `passed` is true, and that one.
    fn segment_at(&self, passed: impl Fn(&(f64, f64)) -> bool) -> ((f64, f64), (f64, f64)) {
        let next = self.corners.partition_point(|corner| !passed(corner));
        let next = next.min(self.corners.len() - 1);
        (self.corners[next.saturating_sub(1)], self.corners[next])
    }

    /// The corner touched by a line of slope e^ε.
    fn tangent_corner(&self, epsilon: f64) -> (f64, f64) {
        let steepness = epsilon.exp();
        self.corners[self.slopes.partition_point(|&slope| slope > steepness)]
    }
}

fn slope(a: (f64, f64), b: (f64, f64)) -> f64 {
    (b.1 - a.1) / (b.0 - a.0)
}

fn check(alpha: &[f64], f: &[f64]) -> Result<(), AuditError> {
    check_length("f", f.len(), "alpha", alpha.len())?;
    check_probabilities("alpha", alpha)?;
    check_probabilities("f", f)?;
    let ends = alpha.len() >= 2 && alpha[0] == 0.0 && alpha[alpha.len() - 1] == 1.0;
    if !ends {
        return Err(AuditError::TableEnds);
    }
    if let Some(i) = (1..alpha.len()).find(|&i| alpha[i] <= alpha[i - 1]) {
        return Err(AuditError::LevelsNotIncreasing { index: i });
    }
    let wrong = |index: usize, what: &'static str| Err(AuditError::NotATradeOff { index, what });
    if let Some(i) = (0..f.len()).find(|&i| f[i] > 1.0 - alpha[i] + TOLERANCE) {
        return wrong(i, "lies above 1 - alpha, so that guessing would beat it");
    }
    if let Some(i) = (1..f.len()).find(|&i| f[i] > f[i - 1] + TOLERANCE) {
        return wrong(i, "is larger than the value before it: f must not increase");
    }
    let above_chord = |&i: &usize| {
        let share = (alpha[i] - alpha[i - 1]) / (alpha[i + 1] - alpha[i - 1]);
        f[i] > f[i - 1] + share * (f[i + 1] - f[i - 1]) + TOLERANCE
    };
    if let Some(i) = (1..f.len() - 1).find(above_chord) {
        return wrong(
            i,
            "lies above the line between its neighbours: f must be convex",
        );
    }
    Ok(())
}

impl TradeOff for Tabulated {
    fn f(&self, alpha: f64) -> f64 {
        let x = alpha.clamp(0.0, 1.0);
        let (a, b) = self.segment_at(|corner| corner.0 >= x);
        if x >= b.0 {
            return 1.0 - b.1;
        }
        1.0 - (a.1 + slope(a, b) * (x - a.0))
    }

    fn inverse(&self, x: f64) -> f64 {
        let y = x.clamp(0.0, 1.0);
        if y <= self.corners[0].1 {
            return 0.0;
        }
        let (a, b) = self.segment_at(|corner| corner.1 >= y);
        let level = (a.0 + (y - a.1) / (b.1 - a.1) * (b.0 - a.0)).min(b.0);
        level * (1.0 - ROUNDING)
    }

    fn delta_between(&self, epsilon: f64) -> (f64, f64) {
        let (x, y) = self.tangent_corner(epsilon);
        // At x = 0 the line is level however steep.
        let fall = if x == 0.0 { 0.0 } else { epsilon.exp() * x };
        let error = ROUNDING * (y + fall);
        (
            (y - fall - error).max(0.0),
            (y - fall + error).clamp(0.0, 1.0),
        )
    }

    fn linear_slopes(&self) -> Vec<f64> {
        let rising = self.slopes.iter().filter(|&&slope| slope > 0.0);
        rising.map(|slope| slope.ln()).collect()
    }

    fn tangent(&self, epsilon: f64) -> f64 {
        self.tangent_corner(epsilon).0
    }
}
