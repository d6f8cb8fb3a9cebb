//! The search for slopes that cost least, for several numbers of guesses together.

use leakbound_math::{Binomial, Probability};
use rayon::prelude::*;

use super::common::CommonProof;
use super::shooting::{Cost, Rung, cost};
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// Segments of constant slope.
const SEGMENTS: usize = 32;
/// The first knot, in units of the smallest highest price of a level.
const FIRST_KNOT: f64 = 0.03;
/// How far starts are tilted: by so much lower at the lowest prices, and higher at the highest.
const LOWERED: [f64; 5] = [0.0, 0.1, 0.25, 0.5, 1.0];
const RAISED: [f64; 3] = [0.0, 0.15, 0.4];
/// How much steeper, in logarithm, the last slope is: prices stay below.
const WALL: f64 = 1.5;
/// Searches on with other knots, at most, and what share one must gain for another.
const AGAIN: usize = 3;
const ENOUGH: f64 = 2e-3;
/// So many levels are searched with, as neighbours cost little; and so many starts.
const FEW: usize = 10;
const FOLLOWED: usize = 3;
const FIRST_STEPS: usize = 6;
/// Steps with all levels, in the end.
const LAST_STEPS: usize = 12;
/// A κ so small costs nothing.
const LEAST_KAPPA: f64 = 1e-6;
/// The slope of a single level is looked for on a grid down from the odds at c, and finer ones.
const WIDEST: f64 = 4.0;
const GRID: usize = 36;
const REFINED: usize = 3;
/// Steps of one search.
const STEPS: usize = 50;
/// A step moves no logarithm by more.
const LONGEST: f64 = 0.7;
/// Three steps in a row that gain less than this share end the search.
const IDLE: f64 = 1e-4;
/// A point of the search.
#[derive(Clone)]
struct Point {
    logs: Vec<f64>,
    gradient: Vec<f64>,
    /// ln of the cost.
    height: f64,
    force: f64,
    highest: f64,
}

struct Search<'a> {
    rungs: Vec<Rung>,
    from: Vec<f64>,
    curve: &'a dyn TradeOff,
}

impl Search<'_> {
    fn at(&mut self, logs: Vec<f64>) -> Option<Point> {
        let (slopes, kappa) = logs.split_at(self.from.len());
        let kappa = kappa[0].exp();
        let Cost {
            value,
            mut gradient,
            force,
            highest,
        } = cost(&mut self.rungs, &self.from, slopes, kappa, self.curve)?;
        if !(value > 0.0 && value.is_finite()) {
            return None;
        }
        // The last slope is a wall.
        gradient[self.from.len() - 1] = 0.0;
        gradient.iter().all(|x| x.is_finite()).then_some(Point {
            logs,
            gradient,
            height: value.ln(),
            force,
            highest,
        })
    }

    /// Broyden, Fletcher, Goldfarb and Shanno's method, from one point.
    fn descend(
        &mut self,
        mut point: Point,
        steps: usize,
        interrupt: &Interrupt,
    ) -> Result<Point, AuditError> {
        let n = point.logs.len();
        let mut inverse = Matrix::identity(n);
        let (mut fresh, mut idle) = (true, 0);
        for _ in 0..steps {
            interrupt.check()?;
            let mut direction = inverse.times(&point.gradient);
            for x in &mut direction {
                *x = -*x;
            }
            let mut slope = dot(&direction, &point.gradient);
            if slope >= 0.0 {
                if fresh {
                    break;
                }
                inverse = Matrix::identity(n);
                fresh = true;
                direction = point.gradient.iter().map(|x| -x).collect();
                slope = dot(&direction, &point.gradient);
            }
            let longest = direction.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
            let mut share = if longest > LONGEST {
                LONGEST / longest
            } else {
                1.0
            };
            let mut next = None;
            for _ in 0..14 {
                let moved = point.logs.iter().zip(&direction);
                if let Some(found) = self.at(moved.map(|(log, by)| log + share * by).collect())
                    && found.height < point.height + 1e-4 * share * slope
                {
                    next = Some(found);
                    break;
                }
                share *= 0.35;
            }
            let Some(next) = next else {
                if fresh {
                    break;
                }
                inverse = Matrix::identity(n);
                fresh = true;
                continue;
            };
            let moved: Vec<f64> = next
                .logs
                .iter()
                .zip(&point.logs)
                .map(|(a, b)| a - b)
                .collect();
            let turned: Vec<f64> = next
                .gradient
                .iter()
                .zip(&point.gradient)
                .map(|(a, b)| a - b)
                .collect();
            inverse.update(&moved, &turned, fresh);
            fresh = false;
            let gained = point.height - next.height;
            point = next;
            idle = if gained < IDLE { idle + 1 } else { 0 };
            if idle >= 3 {
                break;
            }
        }
        Ok(point)
    }
}

/// A proof, and what the search for it ended with.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) proof: CommonProof,
    from: Vec<f64>,
    logs: Vec<f64>,
}

impl<'a> Search<'a> {
    /// A search with a few of the levels.
    fn of_few(levels: &[Counts], from: Vec<f64>, curve: &'a dyn TradeOff) -> Self {
        let last = levels.len() - 1;
        let few = levels.len().min(FEW);
        let each = (0..few).map(|i| i * last / (few - 1).max(1));
        let rungs = each.map(|i| Rung::new(&levels[i])).collect();
        Self { rungs, from, curve }
    }

    /// Search on from a point with other knots, and prove what is found for all levels.
    fn settle(
        mut self,
        mut best: Point,
        levels: &[Counts],
        interrupt: &Interrupt,
    ) -> Result<Option<Found>, AuditError> {
        for _ in 0..AGAIN {
            let next = self.again(best.clone(), interrupt)?;
            let gained = best.height - next.height;
            best = next;
            if gained < ENOUGH {
                break;
            }
        }
        self.rungs = levels.iter().map(Rung::new).collect();
        let few = best.height;
        let Some(mut best) = self.at(best.logs) else {
            return Ok(None);
        };
        if best.height > few + ENOUGH {
            best = self.descend(best, LAST_STEPS, interrupt)?;
        }
        let from = self.from.iter().copied();
        let starts: Vec<(f64, f64)> = best.logs.iter().map(|log| log.exp()).zip(from).collect();
        let kappa = best.logs[SEGMENTS].exp();
        let proof = CommonProof::of(&starts, kappa, best.force, levels, interrupt)?;
        Ok(proof.map(|proof| Found {
            proof,
            from: self.from,
            logs: best.logs,
        }))
    }
}

impl Search<'_> {
    /// Search on with knots where the prices of a point are, and keep the better one.
    fn again(&mut self, point: Point, interrupt: &Interrupt) -> Result<Point, AuditError> {
        let next = knots(self.from[1], 1.01 * point.highest);
        let mut moved = carried(&self.from, &point.logs, &next);
        moved[SEGMENTS - 1] = moved[SEGMENTS - 2] + WALL;
        moved.extend(&point.logs[self.from.len()..]);
        let before = std::mem::replace(&mut self.from, next);
        if let Some(start) = self.at(moved) {
            let found = self.descend(start, STEPS, interrupt)?;
            if found.height < point.height {
                return Ok(found);
            }
        }
        self.from = before;
        Ok(point)
    }
}

/// A square matrix: the inverse of the second derivatives, about.
struct Matrix {
    size: usize,
    entries: Vec<f64>,
}

impl Matrix {
    fn identity(size: usize) -> Self {
        let mut entries = vec![0.0; size * size];
        (0..size).for_each(|i| entries[i * size + i] = 1.0);
        Self { size, entries }
    }

    fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.entries
            .chunks(self.size)
            .map(|row| dot(row, vector))
            .collect()
    }

    fn update(&mut self, moved: &[f64], turned: &[f64], fresh: bool) {
        let along = dot(moved, turned);
        if along <= 1e-14 {
            return;
        }
        if fresh {
            let scale = along / dot(turned, turned);
            self.entries.iter_mut().for_each(|x| *x *= scale);
        }
        let image = self.times(turned);
        let curvature = 1.0 + dot(turned, &image) / along;
        for i in 0..self.size {
            for j in 0..self.size {
                self.entries[i * self.size + j] += curvature * moved[i] * moved[j] / along
                    - (image[i] * moved[j] + moved[i] * image[j]) / along;
            }
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Knots whose roots are evenly spaced, from the first to the last, and 0.
fn knots(first: f64, last: f64) -> Vec<f64> {
    let (low, high) = (first.sqrt(), last.sqrt());
    let step = (high - low) / (SEGMENTS - 2) as f64;
    let inner = (0..SEGMENTS - 1).map(|i| (low + step * i as f64).powi(2));
    std::iter::once(0.0).chain(inner).collect()
}

/// ln λ at the knots of `next`, nowhere above slopes that increase from knot to knot of `from`.
fn carried(from: &[f64], logs: &[f64], next: &[f64]) -> Vec<f64> {
    let read = |price: f64| logs[from.partition_point(|&knot| knot <= price).max(1) - 1];
    next.iter().map(|&knot| read(knot)).collect()
}

/// The one slope that costs least for a level: with one slope, κ is a tail T of a binomial law and
/// the highest price m T (1 − T)/(c P(W = c)).
#[derive(Clone, Copy)]
struct Single {
    cost: f64,
    /// ln λ.
    log: f64,
    highest: f64,
    tail: f64,
}

impl Single {
    fn new(level: &Counts, curve: &dyn TradeOff) -> Option<Self> {
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

/// The best proof found for several numbers of guesses together; none if no slopes are found.
pub(super) fn common_proof(
    levels: &[Counts],
    curve: &dyn TradeOff,
    interrupt: &Interrupt,
) -> Result<Option<Found>, AuditError> {
    interrupt.check()?;
    let singles: Option<Vec<Single>> = levels
        .par_iter()
        .map(|level| Single::new(level, curve))
        .collect();
    let Some(singles) = singles else {
        return Ok(None);
    };
    let of = |value: fn(&Single) -> f64| singles.iter().map(value);
    let lowest = of(|one| one.highest).fold(f64::INFINITY, f64::min);
    let highest = of(|one| one.highest).fold(0.0, f64::max);
    let steepest = of(|one| one.log).fold(f64::NEG_INFINITY, f64::max);
    let from = knots(FIRST_KNOT * lowest, 1.05 * highest);
    // The least slope that any level with such a price wants.
    let wanted: Vec<f64> = from
        .iter()
        .map(|&knot| {
            let above = singles.iter().filter(|one| one.highest > knot);
            above.map(|one| one.log).fold(steepest, f64::min)
        })
        .collect();
    let mut search = Search::of_few(levels, from, curve);
    let kappa = of(|one| one.tail).fold(LEAST_KAPPA, f64::max);
    let mut starts: Vec<Point> = Vec::new();
    for low in LOWERED {
        for high in RAISED {
            interrupt.check()?;
            let logs = wanted.iter().enumerate();
            let tilted = logs.map(|(i, log)| log - low + (low + high) * i as f64 / SEGMENTS as f64);
            let mut tilted: Vec<f64> = tilted.collect();
            tilted[SEGMENTS - 1] = tilted[SEGMENTS - 2] + WALL;
            tilted.push(kappa.ln());
            starts.extend(search.at(tilted));
        }
    }
    starts.sort_by(|a, b| a.height.total_cmp(&b.height));
    starts.truncate(FOLLOWED);
    let mut best: Option<Point> = None;
    for start in starts {
        let found = search.descend(start, FIRST_STEPS, interrupt)?;
        if best.as_ref().is_none_or(|best| found.height < best.height) {
            best = Some(found);
        }
    }
    let Some(best) = best else {
        return Ok(None);
    };
    let best = search.descend(best, STEPS, interrupt)?;
    search.settle(best, levels, interrupt)
}

/// A proof for another curve, its slopes looked for from those of a proof that was found.
pub(super) fn common_proof_from(
    found: &Found,
    levels: &[Counts],
    curve: &dyn TradeOff,
    interrupt: &Interrupt,
) -> Result<Option<Found>, AuditError> {
    let mut search = Search::of_few(levels, found.from.clone(), curve);
    let Some(start) = search.at(found.logs.clone()) else {
        return Ok(None);
    };
    let best = search.descend(start, STEPS, interrupt)?;
    search.settle(best, levels, interrupt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fdp::tradeoff::gaussian::Gaussian;

    /// Examples, μ, and levels with their counts.
    type Case = (f64, f64, &'static [(u64, u64)]);

    const CASES: [Case; 4] = [
        (1000.0, 0.55, &[(94, 80)]),
        (1000.0, 0.55, &[(950, 640)]),
        (1e5, 0.76, &[(41_509, 37_000)]),
        (1000.0, 0.55, &[(29, 29), (94, 84), (950, 700)]),
    ];

    fn levels_of(m: f64, pairs: &[(u64, u64)]) -> Vec<Counts> {
        let each = pairs.iter();
        let counts = each.map(|&(guesses, correct)| Counts::new(m, guesses, correct, 2, false));
        counts.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn gradients_are_differences() {
        for (m, mu, pairs) in CASES {
            let curve = Gaussian::new(mu, 0.0).unwrap();
            let levels = levels_of(m, pairs);
            let singles: Vec<Single> = levels
                .iter()
                .filter_map(|level| Single::new(level, &curve))
                .collect();
            let highest = singles.iter().map(|one| one.highest).fold(0.0, f64::max);
            let least = singles.iter().map(|one| one.log).fold(9.0, f64::min);
            let tail = singles.iter().map(|one| one.tail).fold(1e-6, f64::max);
            let mut logs: Vec<f64> = (0..SEGMENTS)
                .map(|i| least - 0.2 + 0.01 * i as f64)
                .collect();
            logs[SEGMENTS - 1] += WALL;
            logs.push(tail.ln());
            let mut search = Search {
                rungs: levels.iter().map(Rung::new).collect(),
                from: knots(0.03 * highest, 1.05 * highest),
                curve: &curve,
            };
            let gradient = search.at(logs.clone()).unwrap().gradient;
            // The wall is held fixed.
            for i in (0..logs.len()).filter(|&i| i != SEGMENTS - 1) {
                let mut height = |by: f64| {
                    let mut moved = logs.clone();
                    moved[i] += by;
                    search.at(moved).unwrap().height
                };
                let difference = (height(5e-3) - height(-5e-3)) / 1e-2;
                assert!(
                    (difference - gradient[i]).abs() < 5e-3 + 0.02 * difference.abs(),
                    "{m} {i}: {difference} {}",
                    gradient[i]
                );
            }
        }
    }

    #[test]
    fn the_search_ends_where_its_proof_says() {
        for (m, mu, pairs) in CASES {
            let curve = Gaussian::new(mu, 0.0).unwrap();
            let levels = levels_of(m, pairs);
            let proof = common_proof(&levels, &curve, &Interrupt::default()).unwrap();
            let bound = proof.unwrap().proof.bound(&curve);
            let singles = levels.iter().filter_map(|level| Single::new(level, &curve));
            let alone = singles.map(|one| one.cost).fold(0.0, f64::max);
            assert!(bound > 0.0 && bound < 2.0 * alone, "{m}: {bound} {alone}");
        }
    }
}
