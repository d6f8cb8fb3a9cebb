//! What pairs (ε, δ) allow together.

use leakbound_math::error::{check_length, check_probabilities};

use super::function::{TradeOff, perfect_privacy_delta};
use crate::error::AuditError;

/// e^ε must be a normal number, and so must e^{−ε}.
const FARTHEST: f64 = 700.0;
/// How far δ may lie below that of perfect privacy, by rounding, before it is refused.
const TOLERANCE: f64 = 1e-9;
/// Roundings of an exponential, a product and a sum.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// The trade-off function of a privacy profile: (ε, δ)-DP at each of finitely many pairs.
///
/// f̄(x) = min(1, min over pairs of e^ε x + δ), so f̄⁻¹(y) = max(0, max over pairs of
/// (y − δ) e^{−ε}). Whatever the grid of ε, negative ones included, every mechanism with this
/// profile obeys it: a coarser grid only allows more. Between two ε of the grid δ(ε) is the chord
/// in e^ε, which lies above the convex profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// (e^ε, δ) on the lower convex hull, from (0, 1) on, with e^ε increasing and δ decreasing.
    hull: Vec<(f64, f64)>,
    /// −dδ/dλ between neighbours of the hull: decreasing levels.
    tangents: Vec<f64>,
    /// The powers at which the line of a hull point, of the second or later, hands over to the line
    /// of the next: decreasing too.
    handovers: Vec<f64>,
}

impl Profile {
    /// The curve of a mechanism that is (`epsilon[i]`, `delta[i]`)-DP for every i, in any order.
    ///
    /// # Errors
    /// Lengths differ, there is no pair, an ε is beyond ±700, or a δ is outside [0, 1] or below
    /// 1 − e^ε, which perfect privacy has.
    pub fn new(epsilon: &[f64], delta: &[f64]) -> Result<Self, AuditError> {
        check(epsilon, delta)?;
        let mut points: Vec<(f64, f64)> = epsilon
            .iter()
            .zip(delta)
            .map(|(&epsilon, &delta)| (epsilon.exp(), delta.max(perfect_privacy_delta(epsilon))))
            .collect();
        points.push((0.0, 1.0));
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut hull: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for point in points {
            // A δ holds for every larger ε too.
            if hull.last().is_some_and(|last| last.1 <= point.1) {
                continue;
            }
            while let [.., a, b] = hull[..]
                && slope(a, b) >= slope(b, point)
            {
                hull.pop();
            }
            hull.push(point);
        }
        let pairs = hull.windows(2);
        let tangents = pairs.clone().map(|pair| -slope(pair[0], pair[1])).collect();
        let handovers = pairs
            .skip(1)
            .map(|pair| crossing(pair[0], pair[1]))
            .collect();
        Ok(Self {
            hull,
            tangents,
            handovers,
        })
    }

    /// How many hull points lie at or below e^ε.
    fn points_up_to(&self, steepness: f64) -> usize {
        self.hull.partition_point(|point| point.0 <= steepness)
    }
}

fn slope(a: (f64, f64), b: (f64, f64)) -> f64 {
    (b.1 - a.1) / (b.0 - a.0)
}

/// The y at which the lines x = (y − δ)/λ of two pairs cross.
fn crossing(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.1 * b.0 - b.1 * a.0) / (b.0 - a.0)
}

fn check(epsilon: &[f64], delta: &[f64]) -> Result<(), AuditError> {
    check_length("delta", delta.len(), "epsilon", epsilon.len())?;
    if epsilon.is_empty() {
        return Err(AuditError::EmptyProfile);
    }
    if let Some(index) = epsilon
        .iter()
        .position(|x| !(-FARTHEST..=FARTHEST).contains(x))
    {
        return Err(AuditError::EpsilonTooFar {
            index,
            value: epsilon[index],
        });
    }
    check_probabilities("delta", delta)?;
    for (index, (&epsilon, &delta)) in epsilon.iter().zip(delta).enumerate() {
        let least = perfect_privacy_delta(epsilon);
        if delta < least - TOLERANCE {
            return Err(AuditError::DeltaTooSmall {
                index,
                delta,
                least,
            });
        }
    }
    Ok(())
}

impl TradeOff for Profile {
    fn f(&self, alpha: f64) -> f64 {
        let x = alpha.clamp(0.0, 1.0);
        // Each line is the lowest up to where the next one crosses it.
        let lowest = self.tangents.partition_point(|&crossing| crossing > x);
        let (steepness, delta) = self.hull[lowest];
        (1.0 - delta - steepness * x).clamp(0.0, 1.0 - x)
    }

    fn inverse(&self, x: f64) -> f64 {
        let y = x.clamp(0.0, 1.0);
        let highest = 1 + self.handovers.partition_point(|&power| power > y);
        self.hull.get(highest).map_or(0.0, |(steepness, delta)| {
            // 1 − δ has few digits where δ is near 1: no power is above y at a level above y.
            ((y - delta) / steepness * (1.0 - ROUNDING)).clamp(0.0, y)
        })
    }

    fn delta_between(&self, epsilon: f64) -> (f64, f64) {
        let steepness = epsilon.exp();
        let next = self.points_up_to(steepness);
        let a = self.hull[next - 1];
        let (value, error) = self.hull.get(next).map_or((a.1, 0.0), |b| {
            let value = (a.1 * (b.0 - steepness) + b.1 * (steepness - a.0)) / (b.0 - a.0);
            (value, value + steepness * self.tangents[next - 1])
        });
        let error = ROUNDING * error;
        ((value - error).max(0.0), (value + error).min(1.0))
    }

    fn linear_slopes(&self) -> Vec<f64> {
        let rising = self.hull.iter().filter(|point| point.0 > 0.0);
        rising.map(|point| point.0.ln()).collect()
    }

    fn tangent(&self, epsilon: f64) -> f64 {
        let next = self.points_up_to(epsilon.exp());
        self.tangents.get(next - 1).copied().unwrap_or(0.0)
    }
}
