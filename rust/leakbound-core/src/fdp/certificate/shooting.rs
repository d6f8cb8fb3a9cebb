//! What slopes common to several numbers of guesses cost, nearly, and how that changes with them.
//!
//! A search for slopes need not be exact: whatever it ends with is proved by
//! [`common`](super::common).
//!
//! Where dependence matters more than chance, κ is next to nothing and turns to 1 all at once as
//! slopes grow. So κ is given, and the largest *force* F is looked for that inequalities with F 1{j ≥
//! c} in the place of 1{j ≥ c} allow: it changes smoothly, and prices and κ divided by F satisfy the
//! original ones.
//!
//! Below c the inequalities know of κ alone. So prices are followed up ([`flow`](super::flow)) to the
//! price of c − 1, the highest, which is the largest that κ allows; F is the force whose prices,
//! followed down from far above c, meet it there. Prices followed down below c would leave the ones
//! looked for faster and faster. Above c inequalities know of F − κ alone, which is what is looked for:
//! where κ is a tail near 1, F − κ is too small a part of F to be told from it. Prices there are about
//! proportional to it, so one whose own force is F_l has about the highest price
//! A_{l,c−1} (F − κ)/(F_l − κ) at the force F of all.

use rayon::prelude::*;

use super::adjoint::{Climb, Moved, propagate};
use super::flow::Flow;
use super::slopes::Slopes;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// Trials for the force of one number of guesses, and how close prices are to meet before the last
/// step of Newton's method.
const TRIALS: usize = 60;
const CLOSE: f64 = 1e-4;
/// Nor are forces told apart that differ by so small a share.
const JUMP: f64 = 1e-6;
/// A force is not trusted to move by more from one shot to the next, in logarithm.
const FARTHEST: f64 = 0.7;
/// The power of the mean that stands for the least force.
const POWER: f64 = 60.0;

/// The last shot of a rung, from which the next one begins.
#[derive(Clone)]
struct Last {
    left: f64,
    price: f64,
    /// ln λ and ln κ, and the derivatives of ln `left` by them; nothing if knots have moved.
    logs: Vec<f64>,
    by_log: Vec<f64>,
}

/// One number of guesses and the count whose tail is bounded.
#[derive(Clone)]
pub(super) struct Rung {
    flow: Flow,
    last: Last,
}

/// Where prices from above and below meet.
struct Meeting {
    /// F − κ, and its derivative by the price.
    left: f64,
    by_price: f64,
    climb: Climb,
}

/// The force of one rung less κ, its highest price, and their derivatives by ln λ and, last, ln κ.
struct Shot {
    left: f64,
    left_by: Vec<f64>,
    price: f64,
    price_by: Vec<f64>,
}

impl Rung {
    pub(super) fn new(counts: &Counts) -> Self {
        let last = Last {
            left: 1.0,
            // That of c − 1 if the others were nothing.
            price: counts.examples() / counts.correct() as f64,
            logs: Vec::new(),
            by_log: Vec::new(),
        };
        Self {
            flow: Flow::new(counts),
            last,
        }
    }

    /// Knots have moved: derivatives by slopes between others tell nothing.
    pub(super) fn forget(&mut self) {
        self.last.logs.clear();
        self.last.by_log.clear();
    }

    /// The largest force at which the inequalities can be satisfied, less κ; none if prices get out of
    /// hand, or κ is a tail of 1 but for less than can be told.
    fn shoot(&mut self, slopes: &Slopes<'_>, logs: &[f64]) -> Option<Meeting> {
        let kappa = logs.last()?.exp();
        let climb = self.flow.climb(slopes, kappa)?;
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut left = self.last.guess(logs, climb.price);
        for _ in 0..TRIALS {
            let mut next = f64::NAN;
            if let Some(found) = self.flow.fall(slopes, left) {
                let ratio = climb.price / found.price;
                // Newton's method for logarithms.
                let growth = (left * found.by_gained / found.price).max(1.0);
                next = left * ratio.powf(growth.recip());
                if (found.price - climb.price).abs() <= CLOSE * climb.price {
                    return self.met(climb, next, found);
                }
                if ratio > 1.0 {
                    low = left;
                } else {
                    high = left;
                }
            } else {
                high = left;
            }
            if high.is_finite() && high - low <= JUMP * high {
                break;
            }
            left = if next > low && next < high {
                next
            } else if low == 0.0 {
                0.1 * high
            } else if high.is_finite() {
                0.5 * (low + high)
            } else {
                2.0 * left
            };
        }
        // Other steps are taken on either side of a force, and prices jump there.
        if low == 0.0 {
            return None;
        }
        let found = self.flow.fall(slopes, low)?;
        self.met(climb, low, found)
    }

    fn met(&mut self, climb: Climb, left: f64, found: Moved) -> Option<Meeting> {
        if left.is_nan() || left <= 0.0 {
            return None;
        }
        (self.last.left, self.last.price) = (left, climb.price);
        Some(Meeting {
            left,
            by_price: found.by_gained.recip(),
            climb,
        })
    }

    /// The same with derivatives.
    fn shot(&mut self, slopes: &Slopes<'_>, logs: &[f64]) -> Option<Shot> {
        let Meeting {
            left,
            by_price,
            climb,
        } = self.shoot(slopes, logs)?;
        let kappa = logs.last()?.exp();
        let (mut price_by, first) = propagate(&self.flow.below, Some(&climb.foot.bottom), slopes);
        price_by[0] += first * climb.foot.direct;
        price_by.push(climb.by_kappa * kappa);
        let (mut above_by, _) = propagate(&self.flow.above, None, slopes);
        above_by.push(0.0);
        let pairs = price_by.iter().zip(&above_by);
        let left_by: Vec<f64> = pairs
            .map(|(below, above)| by_price * (below - above))
            .collect();
        self.last.logs.clear();
        self.last.logs.extend(logs);
        self.last.by_log.clear();
        self.last.by_log.extend(left_by.iter().map(|by| by / left));
        Some(Shot {
            left,
            left_by,
            price: climb.price,
            price_by,
        })
    }
}

impl Last {
    /// What the force less κ may be: by derivatives, or else prices are about proportional to it.
    fn guess(&self, logs: &[f64], price: f64) -> f64 {
        if self.logs.is_empty() {
            return self.left * price / self.price;
        }
        let moved = logs.iter().zip(&self.logs).map(|(now, then)| now - then);
        let by: f64 = moved.zip(&self.by_log).map(|(by, slope)| by * slope).sum();
        self.left * by.clamp(-FARTHEST, FARTHEST).exp()
    }
}

/// About what slopes and κ prove, and derivatives of its logarithm by ln λ and, last, ln κ.
pub(super) struct Cost {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// By how much prices and κ are to be divided.
    pub(super) force: f64,
    pub(super) highest: f64,
    /// The force of each rung.
    pub(super) forces: Vec<f64>,
}

/// The shots of all rungs, on all threads; else their forces, 0 where one has none.
fn shots(
    rungs: &mut [Rung],
    slopes: &Slopes<'_>,
    logs: &[f64],
    kappa: f64,
) -> Result<Vec<Shot>, Vec<f64>> {
    let found: Vec<Option<Shot>> = rungs
        .par_iter_mut()
        .map(|rung| rung.shot(slopes, logs))
        .collect();
    let force = |shot: &Option<Shot>| shot.as_ref().map_or(0.0, |shot| kappa + shot.left);
    let forces: Vec<f64> = found.iter().map(force).collect();
    let shots: Option<Vec<Shot>> = found.into_iter().collect();
    shots.ok_or(forces)
}

/// (κ + ∫ D(λ(A)) dA)/F, F the largest number that all rungs allow in the place of 1{j ≥ c}: prices
/// and κ divided by F prove this much. Given are ln λ and, last, ln κ. Where nothing is proved, the forces.
pub(super) fn cost(
    rungs: &mut [Rung],
    from: &[f64],
    logs: &[f64],
    curve: &dyn TradeOff,
) -> Result<Cost, Vec<f64>> {
    let n = from.len();
    let slopes = Slopes::new(from, &logs[..n]);
    let kappa = logs[n].exp();
    let shots = shots(rungs, &slopes, logs, kappa)?;
    let forces: Vec<f64> = shots.iter().map(|shot| kappa + shot.left).collect();
    let least = forces.iter().copied().fold(f64::INFINITY, f64::min);
    let total: f64 = forces.iter().map(|one| (least / one).powf(POWER)).sum();
    let force = least * total.powf(-1.0 / POWER);
    let left = force - kappa;
    if left <= 0.0 {
        return Err(forces);
    }
    // d ln F.
    let mut force_by = vec![0.0; n + 1];
    for (shot, one) in shots.iter().zip(&forces) {
        let weight = (force / one).powf(POWER) / one;
        for (slot, by) in force_by.iter_mut().zip(&shot.left_by) {
            *slot += weight * by;
        }
        force_by[n] += weight * kappa;
    }
    // The highest price at the common force.
    let lowered = |shot: &Shot| shot.price * (left / shot.left);
    let by_price = |a: &&Shot, b: &&Shot| lowered(a).total_cmp(&lowered(b));
    let Some(top) = shots.iter().max_by(by_price) else {
        return Err(forces);
    };
    let highest = lowered(top);
    let mut price = kappa;
    let mut gradient = vec![0.0; n + 1];
    gradient[n] = kappa;
    let mut last = 0.0;
    for i in 0..n {
        let end = from.get(i + 1).copied().unwrap_or(f64::INFINITY);
        let length = end.min(highest) - from[i];
        if length <= 0.0 {
            break;
        }
        last = curve.delta(logs[i]);
        price += length * last;
        gradient[i] -= length * curve.tangent(logs[i]) * slopes.values[i];
    }
    let share = last * highest / price;
    for (i, slot) in gradient.iter_mut().enumerate() {
        let own = if i == n { kappa } else { 0.0 };
        let left_by = (force * force_by[i] - own) / left;
        let highest_by = top.price_by[i] / top.price + left_by - top.left_by[i] / top.left;
        *slot = *slot / price + share * highest_by - force_by[i];
    }
    Ok(Cost {
        value: price / force,
        gradient,
        force,
        highest,
        forces,
    })
}
