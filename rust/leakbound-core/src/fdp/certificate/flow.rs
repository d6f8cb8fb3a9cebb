//! Prices of one number of guesses under given slopes, followed in a few dozen steps.
//!
//! With x = A and the inequalities of [`joint`](super::joint) tight, from one count to the one
//! below x ↦ G x + b, G = (c'−j) λ/((k−1) j); h such maps in a row are the flow of
//! dx/dt = ((G−1) x + b) ln G/(G−1) over a time h, integrated by the midpoint rule. Down where all
//! prices lie in the first segment, the law behind κ is binomial, and the least κ that will do is
//! (c'−J) Ψ(A_J) P(W = J)/(m (k−1) P(W ≤ J)).
//!
//! Below c the inequalities know of κ alone, and prices are followed up to that of c − 1: from the
//! first segment; or from nearer by, where a price that stands still, (c'−j) Ψ(A)/(k−1) = j A + m κ,
//! draws all others to itself and they have had the counts it takes. Above c they know of F − κ alone
//! (see [`shooting`](super::shooting)), and prices are followed down. Errors shrink on both ways.

use leakbound_math::{Binomial, Probability};

use super::adjoint::{Climb, Foot, Moved, Read, Step};
use super::slopes::{Slopes, pace};
use crate::fdp::counts::Counts;

/// How far from c prices are followed at most, in deviations; so many counts more down to where they
/// lie in the first segment.
const ABOVE: f64 = 5.5;
const BELOW: f64 = 7.0;
const BEYOND: f64 = 100.0;
/// Prices are followed from this distance from c, or from where the start is forgotten: that shrinks
/// by e to the minus this.
const NEAREST: f64 = 16.0;
const FORGOTTEN: f64 = 14.0;
/// A step is at most this share of the distance from c, and of a deviation.
const SHARE_OF_DISTANCE: f64 = 1.0 / 6.0;
const SHARE_OF_DEVIATION: f64 = 1.0 / 8.0;
/// Nor does a difference of prices grow or shrink by more in one step, in logarithm.
const TURN: f64 = 0.4;
/// In the middle of a step it may be this much.
const WILD: f64 = 1.0;
/// So many steps are too many.
const MOST_STEPS: usize = 6000;
/// The lowest price followed is at least this share of the first knot, where it can be.
const LOW_ENOUGH: f64 = 0.5;
/// Prices beyond this share of m are out of hand.
const OUT_OF_HAND: f64 = 1e6;

/// A number of guesses, the count whose tail is bounded, and the steps that prices were followed in.
#[derive(Clone)]
pub(super) struct Flow {
    guesses: f64,
    correct: f64,
    others: f64,
    examples: f64,
    deviation: f64,
    /// The count that prices were last followed up from, if in the first segment.
    count: f64,
    /// Steps up to c − 1, and down to it.
    pub(super) below: Vec<Step>,
    pub(super) above: Vec<Step>,
}

impl Flow {
    pub(super) fn new(counts: &Counts) -> Self {
        let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
        Self {
            guesses,
            correct,
            others: counts.others(),
            examples: counts.examples(),
            // Not 0 where all guesses are right.
            deviation: ((guesses - correct + 3.0) * correct / guesses).sqrt(),
            count: correct,
            below: Vec::new(),
            above: Vec::new(),
        }
    }

    /// How a price changes within one count, at about count j, whose share is known.
    fn change(
        &self,
        slopes: &Slopes<'_>,
        j: f64,
        share: f64,
        price: f64,
        gained: f64,
        at: usize,
    ) -> (f64, Read) {
        let area = slopes.area(price, at);
        let change = share * area + self.examples * gained / j - price;
        let read = Read {
            price,
            segment: at,
            weight: share,
            growth: share * slopes.values[at] - 1.0,
        };
        (change, read)
    }

    /// Over how many counts to step from the price next to count j.
    fn width(&self, j: f64, growth: f64, left: f64) -> f64 {
        let distance = (j + 1.0 - self.correct).abs();
        (distance * SHARE_OF_DISTANCE)
            .min(((self.guesses - j).max(1.0) * j / self.guesses).sqrt() * SHARE_OF_DEVIATION)
            .min(TURN / growth.abs())
            .floor()
            .clamp(1.0, left)
    }

    /// A step over `width` counts by the midpoint rule, upwards if it is negative: the inequality
    /// read first is that of count j. None if prices turn too fast in the middle.
    fn midpoint(
        &self,
        slopes: &Slopes<'_>,
        now: Moved,
        (j, width): (f64, f64),
        gained: f64,
        at: usize,
    ) -> Option<(Moved, Step)> {
        let half = 0.5 * width;
        let share = self.share(j);
        let growth = share * slopes.smooth(now.price, at) - 1.0;
        let slow = half * pace(growth);
        let (change, mut first) = self.change(slopes, j, share, now.price, gained, at);
        first.weight *= slow;
        first.growth *= slow;
        let by = slow * self.examples / j;
        let middle = Moved {
            price: now.price + slow * change,
            by_gained: now.by_gained * (1.0 + first.growth) + by,
        };
        let between = j - half + 0.5_f64.copysign(width);
        let at = slopes.segment(middle.price, at);
        let share = self.share(between);
        let growth = share * slopes.smooth(middle.price, at) - 1.0;
        let slow = width * pace(growth);
        let (change, mut second) = self.change(slopes, between, share, middle.price, gained, at);
        if second.growth.max(growth) * width.abs() > WILD {
            return None;
        }
        second.weight *= slow;
        second.growth *= slow;
        let by = slow * self.examples / between;
        let next = Moved {
            price: now.price + slow * change,
            by_gained: now.by_gained + second.growth * middle.by_gained + by,
        };
        let first = Some(first);
        Some((next, Step { first, second }))
    }

    /// Prices from where they lie in the first segment, or far below c, up to c − 1; none if they
    /// get out of hand. From one to the next, Ψ(A_j) = (j A_{j−1} + m κ) (k−1)/(c'−j).
    pub(super) fn climb(&mut self, slopes: &Slopes<'_>, kappa: f64) -> Option<Climb> {
        self.below.clear();
        let foot = if let Some(j) = self.near(slopes, kappa) {
            self.standing(slopes, kappa, j)?
        } else {
            self.first(slopes, kappa)?
        };
        let (mut j, mut at) = (foot.j, foot.bottom.segment);
        let mut now = Moved {
            price: foot.bottom.price,
            by_gained: -foot.by_kappa,
        };
        let limit = OUT_OF_HAND * self.examples;
        while j < self.correct - 1.0 {
            let next = j + 1.0;
            let share = self.share(next);
            let growth = share * slopes.smooth(now.price, at) - 1.0;
            let growth = growth.max(share * slopes.values[at] - 1.0);
            let mut width = self.width(next, growth, self.correct - 1.0 - j);
            let mut wide = None;
            while width > 1.0 {
                wide = self.midpoint(slopes, now, (next, -width), -kappa, at);
                if wide.is_some() {
                    break;
                }
                width = (0.5 * width).floor();
            }
            let step = if let Some((next, step)) = wide {
                now = next;
                at = slopes.segment(now.price, at);
                step
            } else {
                let area = (now.price + self.examples * kappa / next) / share;
                (now.price, at) = slopes.price(area, at);
                let slope = slopes.values[at];
                now.by_gained = (now.by_gained - self.examples / next) / (share * slope);
                Step {
                    first: None,
                    second: Read {
                        price: now.price,
                        segment: at,
                        weight: -slope.recip(),
                        growth: (share * slope).recip() - 1.0,
                    },
                }
            };
            self.below.push(step);
            if now.price.is_nan() || now.price >= limit || self.below.len() > MOST_STEPS {
                return None;
            }
            j += width;
        }
        (now.price > 0.0).then_some(Climb {
            foot,
            price: now.price,
            by_kappa: -now.by_gained,
        })
    }

    /// Where prices stand still at a count: they are reached from below and above alike.
    fn standing(&self, slopes: &Slopes<'_>, kappa: f64, j: f64) -> Option<Foot> {
        let share = (self.guesses - j) / self.others;
        let (price, segment) = slopes.still(share, j, self.examples * kappa)?;
        let pull = share * slopes.values[segment] - j;
        Some(Foot {
            j,
            bottom: Read {
                price,
                segment,
                weight: -share / pull,
                growth: 0.0,
            },
            direct: 0.0,
            by_kappa: self.examples / pull,
        })
    }

    /// A price in the first segment, where the law behind κ is binomial, or far below c.
    fn first(&mut self, slopes: &Slopes<'_>, kappa: f64) -> Option<Foot> {
        let slope = slopes.values[0];
        let odds = slope / self.others;
        let law = Binomial::new(
            self.guesses as u64,
            Probability::from_logit(odds.ln()).ok()?,
        );
        // Ψ at the price of count J, and P(W = J)/P(W ≤ J).
        let read = |count: f64| {
            let density = (law.ln_pmf(count as u64) - law.ln_lower_tail(count as u64)).exp();
            let per = self.others * self.examples;
            (kappa * per / ((self.guesses - count) * density), density)
        };
        let j = self.foot(slopes, |count| read(count).0);
        self.count = j;
        let (area, density) = read(j);
        if area > slopes.areas[1] {
            return self.standing(slopes, kappa, j);
        }
        let right = odds / (1.0 + odds);
        let below = self.guesses * right - (self.guesses - j) * right * density;
        let price = area / slope;
        Some(Foot {
            j,
            bottom: Read {
                price,
                segment: 0,
                weight: -slope.recip(),
                growth: 0.0,
            },
            direct: price * (below - j),
            by_kappa: price / kappa,
        })
    }

    /// A count near c from which on it is forgotten where prices were followed up from: they have come
    /// from 0 to the segment where they stand still, and drew together there for long enough.
    fn near(&self, slopes: &Slopes<'_>, kappa: f64) -> Option<f64> {
        let farthest = (BELOW * self.deviation).min(self.correct - 1.0);
        let rest = self.examples * kappa;
        let mut distance = NEAREST;
        while distance < farthest {
            let j = self.correct - 1.0 - distance;
            let share = (self.guesses - j) / self.others;
            let (_, at) = slopes.still(share, j, rest)?;
            let pull = share * slopes.values[at] / j - 1.0;
            let enough = slopes.arrival(share, j, rest, at) + FORGOTTEN / pull.ln_1p();
            if enough <= distance {
                return Some(j);
            }
            distance = enough.max(1.5 * distance).ceil();
        }
        None
    }

    /// The count that prices are followed up from: one whose price is in the first segment, but not
    /// far from its end, if that is not too far below c. `area` tells Ψ at the price of a count.
    fn foot(&self, slopes: &Slopes<'_>, area: impl Fn(f64) -> f64) -> f64 {
        let most = self.correct - 1.0;
        let least = (self.correct - BELOW * self.deviation - BEYOND)
            .floor()
            .max(0.0);
        let first = slopes.areas[1];
        let begin = self.count.clamp(least, most);
        let (mut low, mut high) = (least, most + 1.0);
        let mut step = (0.25 * self.deviation).ceil();
        let at = area(begin);
        if at <= first {
            low = begin;
            if at >= LOW_ENOUGH * first {
                return low;
            }
            while low + step < high {
                let next = area(low + step);
                if next > first {
                    high = low + step;
                    break;
                }
                low += step;
                if next >= LOW_ENOUGH * first {
                    return low;
                }
                step *= 2.0;
            }
        } else {
            high = begin;
            while high - step > low {
                let next = area(high - step);
                if next <= first {
                    low = high - step;
                    if next >= LOW_ENOUGH * first {
                        return low;
                    }
                    break;
                }
                high -= step;
                step *= 2.0;
            }
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            let found = area(middle);
            if found > first {
                high = middle;
            } else {
                low = middle;
                if found >= LOW_ENOUGH * first {
                    break;
                }
            }
        }
        low
    }

    /// Prices from far above c down to c − 1; none if they get out of hand.
    pub(super) fn fall(&mut self, slopes: &Slopes<'_>, gained: f64) -> Option<Moved> {
        self.above.clear();
        let limit = OUT_OF_HAND * self.examples;
        let mut at = slopes.values.len() - 1;
        let (top, mut now) = self.start(slopes, gained, &mut at)?;
        // The price of count j is known; the first inequality read next is that of j.
        let mut j = top - 1.0;
        while j >= self.correct {
            at = slopes.segment(now.price, at);
            let share = self.share(j);
            let growth = share * slopes.smooth(now.price, at) - 1.0;
            let mut width = self.width(j, growth, j + 1.0 - self.correct);
            let mut wide = None;
            while width > 1.0 {
                wide = self.midpoint(slopes, now, (j, width), gained, at);
                if wide.is_some() {
                    break;
                }
                width = (0.5 * width).floor();
            }
            let step = if let Some((next, step)) = wide {
                now = next;
                step
            } else {
                let (change, second) = self.change(slopes, j, share, now.price, gained, at);
                now.price += change;
                now.by_gained += second.growth * now.by_gained + self.examples / j;
                Step {
                    first: None,
                    second,
                }
            };
            self.above.push(step);
            if now.price.is_nan() || now.price.abs() >= limit || self.above.len() > MOST_STEPS {
                return None;
            }
            j -= width;
        }
        Some(now)
    }

    /// (c'−j)/(j (k−1)).
    fn share(&self, j: f64) -> f64 {
        (self.guesses - j) / (j * self.others)
    }

    /// A count above c whose price is that of a constant, nearly, or where all guesses are right;
    /// the price below it, and its derivatives.
    fn start(&self, slopes: &Slopes<'_>, gained: f64, at: &mut usize) -> Option<(f64, Moved)> {
        let farthest = (ABOVE * self.deviation + 6.0)
            .ceil()
            .min(self.guesses - self.correct);
        let mut distance = NEAREST.min(farthest);
        loop {
            let top = self.correct + distance;
            let base = self.examples * gained / top;
            let share = self.share(top);
            let mut price = base;
            let mut settled = share == 0.0;
            for _ in 0..60 {
                *at = slopes.segment(price, *at);
                // Newton's method, from below: Ψ is convex.
                let excess = base + share * slopes.area(price, *at) - price;
                let growth = share * slopes.values[*at] - 1.0;
                if excess <= 1e-9 * price {
                    settled = true;
                    break;
                }
                if growth >= 0.0 {
                    break;
                }
                price -= excess / growth;
                if price.is_nan() || price >= OUT_OF_HAND * self.examples {
                    break;
                }
            }
            let growth = share * slopes.values[*at] - 1.0;
            if settled && (distance >= farthest || distance * -growth > FORGOTTEN) {
                return Some((
                    top,
                    Moved {
                        price,
                        by_gained: -self.examples / top / growth,
                    },
                ));
            }
            if distance >= farthest {
                return None;
            }
            distance = (4.0 * distance).min(farthest);
        }
    }
}
