//! What slopes common to several numbers of guesses cost, nearly, and how that changes with them.
//!
//! A search for slopes need not be exact: whatever it ends with is proved by
//! [`common`](super::common). So prices of thousands of counts are followed in a few dozen steps.
//! With x = A and the inequalities of [`joint`](super::joint) tight, from one count to the one
//! below x ↦ G x + b, G = (c'−j) λ/((k−1) j); h such maps in a row are the flow of
//! dx/dt = ((G−1) x + b) ln G/(G−1) over a time h, integrated by the midpoint rule. Down where all
//! prices lie in the first segment, the law behind κ is binomial, and the least κ that will do is
//! (c'−J) Ψ(A_J) P(W = J)/(m (k−1) P(W ≤ J)).
//!
//! Where dependence matters more than chance, κ is next to nothing and turns to 1 all at once as
//! slopes grow. So κ is given, and the largest *force* F is looked for that inequalities with F 1{j ≥
//! c} in the place of 1{j ≥ c} allow: it changes smoothly, and prices and κ divided by F satisfy the
//! original ones. Derivatives by slopes are propagated backwards through the steps.

use leakbound_math::{Binomial, Probability};
use rayon::prelude::*;

use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;

/// How far from c prices are followed at most, in deviations.
const ABOVE: f64 = 5.5;
const BELOW: f64 = 7.0;
/// And from the mean under the first slope.
const BELOW_LAW: f64 = 4.0;
/// Distances from c, in counts, of which the first is taken from which on the start is forgotten:
/// that shrinks by e to the minus this.
const NEAREST: f64 = 16.0;
const FORGOTTEN: f64 = 14.0;
/// A step is at most this share of the distance from c, and of a deviation.
const SHARE_OF_DISTANCE: f64 = 1.0 / 16.0;
const SHARE_OF_DEVIATION: f64 = 1.0 / 8.0;
/// Nor does a difference of prices grow or shrink by more in one step, in logarithm.
const TURN: f64 = 0.4;
/// So many steps say that prices stand still.
const MOST_STEPS: usize = 600;
/// Trials for the largest force of one number of guesses, how close it is found, and the first step.
const TRIALS: usize = 60;
const CLOSE: f64 = 1e-5;
const FIRST_STEP: f64 = 1e-3;
/// The power of the mean that stands for the least force.
const POWER: f64 = 60.0;
/// Prices beyond this share of m are out of hand.
const OUT_OF_HAND: f64 = 1e6;

/// Slopes e^{`logs[i]`} from A = `from[i]` on, the first from 0.
pub(super) struct Slopes<'a> {
    from: &'a [f64],
    values: Vec<f64>,
    areas: Vec<f64>,
    /// Middles of all segments but the last.
    middles: Vec<f64>,
}

impl<'a> Slopes<'a> {
    pub(super) fn new(from: &'a [f64], logs: &[f64]) -> Self {
        let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let mut areas = vec![0.0; values.len()];
        for i in 1..values.len() {
            areas[i] = areas[i - 1] + values[i - 1] * (from[i] - from[i - 1]);
        }
        let middles = from.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        Self {
            from,
            values,
            areas,
            middles: middles.collect(),
        }
    }

    /// The segment of a price, starting the search at another one.
    fn segment(&self, price: f64, mut at: usize) -> usize {
        while self.from.get(at + 1).is_some_and(|&next| next <= price) {
            at += 1;
        }
        while at > 0 && self.from[at] > price {
            at -= 1;
        }
        at
    }

    /// Ψ(A); linear below 0.
    fn area(&self, price: f64, at: usize) -> f64 {
        self.areas[at] + self.values[at] * (price - self.from[at])
    }

    /// A slope that does not jump: linear between the middles of segments.
    fn smooth(&self, price: f64, at: usize) -> f64 {
        let last = self.values.len() - 1;
        if at == last {
            return self.values[last];
        }
        let (a, b) = if price < self.middles[at] {
            if at == 0 {
                return self.values[0];
            }
            (at - 1, at)
        } else if at + 1 == last {
            return self.values[at];
        } else {
            (at, at + 1)
        };
        let share = (price - self.middles[a]) / (self.middles[b] - self.middles[a]);
        self.values[a] + share * (self.values[b] - self.values[a])
    }
}

/// A place where Ψ was read, and by how much its value moves the next price.
#[derive(Clone, Copy, Default)]
struct Read {
    price: f64,
    segment: usize,
    weight: f64,
    /// The derivative of the change by the price itself.
    growth: f64,
}

/// One step: a midpoint (if `half` is above 0), and the next price from there.
#[derive(Clone, Copy, Default)]
struct Step {
    half: f64,
    first: Read,
    second: Read,
}

/// One number of guesses and the count whose tail is bounded.
pub(super) struct Rung {
    guesses: f64,
    correct: f64,
    others: f64,
    examples: f64,
    deviation: f64,
    force: f64,
    steps: Vec<Step>,
}

/// A number, and its derivatives by the force and by κ.
#[derive(Clone, Copy)]
struct Dual {
    value: f64,
    by_force: f64,
    by_kappa: f64,
}

/// Prices followed down.
struct Descent {
    last: Dual,
    /// The count of the last price.
    count: f64,
    highest: Dual,
    /// After so many steps the price was highest.
    highest_at: usize,
}

/// The largest force of one rung, its highest price, and what derivatives need.
struct Shot {
    force: f64,
    highest: Dual,
    highest_at: usize,
    bottom: Read,
    /// Minus the derivative of the force by Ψ at the bottom, and by κ and ln λ of the first segment.
    gain: f64,
    by_kappa: f64,
    direct: f64,
}

impl Rung {
    pub(super) fn new(counts: &Counts) -> Self {
        let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
        Self {
            guesses,
            correct,
            others: counts.others(),
            examples: counts.examples(),
            // Not 0 where all guesses are right.
            deviation: ((guesses - correct + 3.0) * correct / guesses).sqrt(),
            force: 1.0,
            steps: Vec::new(),
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

    /// Prices from far above c down to where they lie in the first segment; none if they get out of
    /// hand.
    fn follow(&mut self, slopes: &Slopes<'_>, force: f64, kappa: f64) -> Option<Descent> {
        self.steps.clear();
        let limit = OUT_OF_HAND * self.examples;
        let first = slopes.from[1];
        let bottom = self.bottom(slopes);
        let mut at = slopes.values.len() - 1;
        let (top, mut now) = self.start(slopes, force, kappa, &mut at)?;
        let (mut highest, mut highest_at) = (now, 0);
        // The price of count j is known; the first inequality read next is that of j.
        let mut j = top - 1.0;
        loop {
            let above = j >= self.correct;
            if j <= bottom || (!above && now.value <= first) {
                break;
            }
            let (end, gained, forced) = if above {
                (self.correct - 1.0, force - kappa, 1.0)
            } else {
                (bottom, -kappa, 0.0)
            };
            at = slopes.segment(now.value, at);
            let share = self.share(j);
            let growth = share * slopes.smooth(now.value, at) - 1.0;
            let distance = (j + 1.0 - self.correct).abs();
            let width = (distance * SHARE_OF_DISTANCE)
                .min(((self.guesses - j).max(1.0) * j / self.guesses).sqrt() * SHARE_OF_DEVIATION)
                .min(TURN / growth.abs())
                .floor()
                .clamp(1.0, j - end);
            if width > 1.0 {
                let half = 0.5 * width;
                let slow = half * pace(growth);
                let (change, mut first) = self.change(slopes, j, share, now.value, gained, at);
                first.weight *= slow;
                first.growth *= slow;
                let by = slow * self.examples / j;
                let middle = Dual {
                    value: now.value + slow * change,
                    by_force: now.by_force * (1.0 + first.growth) + by * forced,
                    by_kappa: now.by_kappa * (1.0 + first.growth) - by,
                };
                let between = j - half + 0.5;
                let at_middle = slopes.segment(middle.value, at);
                let share = self.share(between);
                let growth = share * slopes.smooth(middle.value, at_middle) - 1.0;
                let slow = width * pace(growth);
                let (change, mut second) =
                    self.change(slopes, between, share, middle.value, gained, at_middle);
                second.weight *= slow;
                second.growth *= slow;
                let by = slow * self.examples / between;
                now.value += slow * change;
                now.by_force += second.growth * middle.by_force + by * forced;
                now.by_kappa += second.growth * middle.by_kappa - by;
                self.steps.push(Step {
                    half,
                    first,
                    second,
                });
            } else {
                let (change, second) = self.change(slopes, j, share, now.value, gained, at);
                let by = self.examples / j;
                now.value += change;
                now.by_force += second.growth * now.by_force + by * forced;
                now.by_kappa += second.growth * now.by_kappa - by;
                self.steps.push(Step {
                    half: 0.0,
                    first: Read::default(),
                    second,
                });
            }
            let wild = now.value.is_nan()
                || now.value.abs() >= limit
                || (!above && now.value > highest.value);
            if wild || self.steps.len() > MOST_STEPS {
                return None;
            }
            j -= width;
            if now.value > highest.value {
                (highest, highest_at) = (now, self.steps.len());
            }
        }
        Some(Descent {
            last: now,
            count: j,
            highest,
            highest_at,
        })
    }

    /// The count where prices are left at the latest: far below c, and below most of the law that
    /// the first slope would lead to.
    fn bottom(&self, slopes: &Slopes<'_>) -> f64 {
        let odds = slopes.values[0] / self.others;
        let mean = self.guesses * odds / (1.0 + odds);
        let law = mean - BELOW_LAW * (mean / (1.0 + odds)).sqrt();
        let far = self.correct - BELOW * self.deviation - 4.0;
        far.min(law).floor().max(0.0)
    }

    /// (c'−j)/(j (k−1)).
    fn share(&self, j: f64) -> f64 {
        (self.guesses - j) / (j * self.others)
    }

    /// A count above c whose price is that of a constant, nearly, or where all guesses are right;
    /// the price below it, and its derivatives.
    fn start(
        &self,
        slopes: &Slopes<'_>,
        force: f64,
        kappa: f64,
        at: &mut usize,
    ) -> Option<(f64, Dual)> {
        let farthest = (ABOVE * self.deviation + 6.0)
            .ceil()
            .min(self.guesses - self.correct);
        let mut distance = NEAREST.min(farthest);
        loop {
            let top = self.correct + distance;
            let base = self.examples * (force - kappa) / top;
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
                let by = -self.examples / top / growth;
                return Some((
                    top,
                    Dual {
                        value: price,
                        by_force: by,
                        by_kappa: -by,
                    },
                ));
            }
            if distance >= farthest {
                return None;
            }
            distance = (4.0 * distance).min(farthest);
        }
    }

    /// The largest force at which the inequalities can be satisfied with this κ.
    fn shoot(&mut self, slopes: &Slopes<'_>, kappa: f64) -> Option<Shot> {
        let odds = slopes.values[0] / self.others;
        let law = Binomial::new(
            self.guesses as u64,
            Probability::from_logit(odds.ln()).ok()?,
        );
        // (c' − J) P(W = J)/(P(W ≤ J) m (k−1)), and P(W = J)/P(W ≤ J).
        let scaled = |count: f64, guesses: f64, per: f64| {
            let density = (law.ln_pmf(count as u64) - law.ln_lower_tail(count as u64)).exp();
            ((guesses - count) / per * density, density)
        };
        let (guesses, per) = (self.guesses, self.others * self.examples);
        let (mut low, mut high) = (kappa, f64::INFINITY);
        let (mut force, mut step) = (self.force.max(2.0 * kappa), FIRST_STEP);
        let mut kept: Option<f64> = None;
        // That of the force kept, as long as it is the last one followed.
        let mut last: Option<Descent> = None;
        for _ in 0..TRIALS {
            let mut next = f64::NAN;
            last = None;
            if let Some(found) = self.follow(slopes, force, kappa) {
                let (scale, _) = scaled(found.count, guesses, per);
                let segment = slopes.segment(found.last.value, 0);
                let excess = scale * slopes.area(found.last.value, segment) - kappa;
                next = force - excess / (scale * slopes.values[segment] * found.last.by_force);
                if excess <= 0.0 {
                    low = force;
                    kept = Some(force);
                    last = Some(found);
                    if excess > -CLOSE * kappa {
                        break;
                    }
                } else {
                    high = force;
                }
            } else {
                high = force;
            }
            if high.is_finite() && high - low <= CLOSE * high {
                break;
            }
            let wide = high.is_infinite() || kept.is_none();
            if wide {
                let farther = if high.is_infinite() {
                    force * (1.0 + step)
                } else {
                    (force / (1.0 + step)).max(0.5 * (low + force))
                };
                step *= 3.0;
                force = if next > low && next < high && (next / force).ln().abs() < step {
                    next
                } else {
                    farther
                };
            } else {
                force = if next > low && next < high {
                    next
                } else {
                    0.5 * (low + high)
                };
            }
        }
        let force = kept?;
        self.force = force;
        let found = match last {
            Some(found) => found,
            None => self.follow(slopes, force, kappa)?,
        };
        let (scale, density) = scaled(found.count, guesses, per);
        let segment = slopes.segment(found.last.value, 0);
        let area = slopes.area(found.last.value, segment);
        let gain = 1.0 / (slopes.values[segment] * found.last.by_force);
        let bound = (scale * area - kappa).abs() < 1e-2 * kappa;
        let target = if bound { kappa / scale } else { 0.0 };
        let mean = guesses * odds / (1.0 + odds);
        let below = mean - (guesses - found.count) * odds / (1.0 + odds) * density;
        Some(Shot {
            force,
            highest: found.highest,
            highest_at: found.highest_at,
            bottom: Read {
                price: found.last.value,
                segment,
                weight: 1.0,
                growth: slopes.values[segment],
            },
            gain,
            by_kappa: gain * (slopes.values[segment] * found.last.by_kappa - target / kappa),
            direct: gain * target * (found.count - below),
        })
    }

    /// Add `weight` times the derivative of the price after so many steps to `sums`.
    fn propagate(&self, upto: usize, weight: f64, sums: &mut Sums) {
        let mut adjoint = weight;
        for step in self.steps[..upto].iter().rev() {
            sums.add(&step.second, adjoint);
            let middle = adjoint * step.second.growth;
            if step.half > 0.0 {
                sums.add(&step.first, middle);
                adjoint += middle * (1.0 + step.first.growth);
            } else {
                adjoint += middle;
            }
        }
    }
}

/// ln G/(G − 1), by which a step of several counts is slower than so many single ones; G − 1 given.
fn pace(growth: f64) -> f64 {
    if growth.abs() < 1e-4 {
        1.0 - 0.5 * growth
    } else {
        growth.max(-0.999).ln_1p() / growth
    }
}

/// Derivatives by Ψ at prices, to be turned into derivatives by slopes.
struct Sums {
    partial: Vec<f64>,
    whole: Vec<f64>,
    from: Vec<f64>,
}

impl Sums {
    fn new(from: &[f64]) -> Self {
        let zeros = vec![0.0; from.len()];
        Self {
            partial: zeros.clone(),
            whole: zeros,
            from: from.to_vec(),
        }
    }

    fn add(&mut self, read: &Read, adjoint: f64) {
        let weight = adjoint * read.weight;
        self.partial[read.segment] += weight * (read.price - self.from[read.segment]);
        self.whole[read.segment] += weight;
    }

    /// Derivatives by the slopes.
    fn by_slope(&self) -> Vec<f64> {
        let mut found = self.partial.clone();
        let mut later = 0.0;
        for i in (0..found.len()).rev() {
            if i + 1 < found.len() {
                found[i] += later * (self.from[i + 1] - self.from[i]);
            }
            later += self.whole[i];
        }
        found
    }
}

/// About what slopes and κ prove, and derivatives of its logarithm by ln λ and, last, ln κ.
pub(super) struct Cost {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// By how much prices and κ are to be divided.
    pub(super) force: f64,
    pub(super) highest: f64,
}

/// The shots of all rungs, on all threads; none if one has none.
///
/// Rungs after the first that has none are as if they had not been asked.
fn shots(rungs: &mut [Rung], slopes: &Slopes<'_>, kappa: f64) -> Option<Vec<Shot>> {
    let forces: Vec<f64> = rungs.iter().map(|rung| rung.force).collect();
    let found: Vec<Option<Shot>> = rungs
        .par_iter_mut()
        .map(|rung| rung.shoot(slopes, kappa))
        .collect();
    if let Some(failed) = found.iter().position(Option::is_none) {
        for (rung, force) in rungs.iter_mut().zip(forces).skip(failed) {
            rung.force = force;
        }
    }
    found.into_iter().collect()
}

/// (κ + ∫ D(λ(A)) dA)/F, F the largest number that all rungs allow in the place of 1{j ≥ c}: prices
/// and κ divided by F prove so much. None if nothing is proved.
pub(super) fn cost(
    rungs: &mut [Rung],
    from: &[f64],
    logs: &[f64],
    kappa: f64,
    curve: &dyn TradeOff,
) -> Option<Cost> {
    let slopes = Slopes::new(from, logs);
    let shots = shots(rungs, &slopes, kappa)?;
    let least = shots
        .iter()
        .map(|shot| shot.force)
        .fold(f64::INFINITY, f64::min);
    let total: f64 = shots
        .iter()
        .map(|shot| (least / shot.force).powf(POWER))
        .sum();
    let force = least * total.powf(-1.0 / POWER);
    let (top, highest) = shots
        .iter()
        .map(|shot| shot.highest.value)
        .enumerate()
        .fold(
            (0, 0.0),
            |best, one| {
                if one.1 > best.1 { one } else { best }
            },
        );
    let mut price = kappa;
    let mut gradient = vec![0.0; logs.len()];
    let mut last = 0.0;
    for i in 0..logs.len() {
        let end = from
            .get(i + 1)
            .copied()
            .unwrap_or(f64::INFINITY)
            .min(highest);
        let length = end - from[i];
        if length <= 0.0 {
            break;
        }
        last = curve.delta(logs[i]);
        price += length * last;
        gradient[i] -= length * curve.tangent(logs[i]) * slopes.values[i];
    }
    for x in &mut gradient {
        *x /= price;
    }
    let mut by_kappa = kappa / price;
    let mut sums = Sums::new(from);
    let mut direct = 0.0;
    for (index, (rung, shot)) in rungs.iter().zip(&shots).enumerate() {
        // d ln cost = d ln price − d ln force.
        let mut weight = -(force / shot.force).powf(POWER) / shot.force;
        if index == top {
            rung.propagate(shot.highest_at, last / price, &mut sums);
            weight += last / price * shot.highest.by_force;
            by_kappa += last / price * shot.highest.by_kappa * kappa;
        }
        // The force falls by `gain` for each unit that Ψ at the bottom is raised.
        let gain = -weight * shot.gain;
        sums.add(&shot.bottom, gain);
        rung.propagate(rung.steps.len(), gain * shot.bottom.growth, &mut sums);
        by_kappa -= weight * shot.by_kappa * kappa;
        direct -= weight * shot.direct;
    }
    for (slot, (by_slope, slope)) in gradient
        .iter_mut()
        .zip(sums.by_slope().iter().zip(&slopes.values))
    {
        *slot += by_slope * slope;
    }
    gradient[0] += direct;
    gradient.push(by_kappa);
    Some(Cost {
        value: price / force,
        gradient,
        force,
        highest,
    })
}
