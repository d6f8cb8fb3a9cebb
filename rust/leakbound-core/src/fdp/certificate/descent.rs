//! The search for slopes that cost least, for several numbers of guesses together.

use rayon::prelude::*;

use super::common::CommonProof;
use super::matrix::{Matrix, difference, dot};
use super::point::{Point, SEGMENTS, carried, knots, lower, point};
use super::shooting::Rung;
use super::single::Single;
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::fdp::tradeoff::function::TradeOff;
use crate::interrupt::Interrupt;

/// The first knot, in units of the smallest highest price of a level.
const FIRST_KNOT: f64 = 0.03;
/// How far starts are tilted: by this much lower at the lowest prices, and higher at the highest.
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
/// So many more are searched with where all levels cost more by this share after all, and so often.
const MISSED: f64 = 6e-3;
const ADDED: usize = 4;
const ROUNDS: usize = 5;
/// A κ so small costs nothing.
const LEAST_KAPPA: f64 = 1e-6;
/// Steps of one search.
const STEPS: usize = 50;
/// A step moves no logarithm by more.
const LONGEST: f64 = 0.7;
/// Three steps in a row that gain less than this share end the search; more with more levels.
const IDLE: f64 = 3e-5;

struct Search<'a> {
    /// All levels, and the few that slopes are looked for with.
    all: Vec<Rung>,
    rungs: Vec<Rung>,
    /// Which those few are.
    few: Vec<usize>,
    from: Vec<f64>,
    curve: &'a dyn TradeOff,
}

impl Search<'_> {
    fn at(&mut self, logs: Vec<f64>) -> Option<Point> {
        point(&mut self.rungs, &self.from, logs, self.curve).0
    }

    /// The same with all levels, and their forces.
    fn at_all(&mut self, logs: Vec<f64>) -> (Option<Point>, Vec<f64>) {
        point(&mut self.all, &self.from, logs, self.curve)
    }

    /// Other knots from here on; returned are those before.
    fn replace_knots(&mut self, from: Vec<f64>) -> Vec<f64> {
        let rungs = self.rungs.iter_mut().chain(&mut self.all);
        rungs.for_each(Rung::forget);
        std::mem::replace(&mut self.from, from)
    }

    /// Search with more levels from here on: of those left out, the ones whose forces are least.
    fn add(&mut self, forces: &[f64]) {
        let mut others: Vec<usize> = (0..forces.len()).collect();
        others.retain(|i| !self.few.contains(i));
        others.sort_by(|&a, &b| forces[a].total_cmp(&forces[b]));
        others.truncate(ADDED);
        for &i in &others {
            self.rungs.push(self.all[i].clone());
        }
        self.few.extend(others);
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
        let least = IDLE * (self.rungs.len() as f64 / FEW as f64).max(1.0);
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
            let moved = difference(&next.logs, &point.logs);
            let turned = difference(&next.gradient, &point.gradient);
            inverse.update(&moved, &turned, fresh);
            fresh = false;
            let gained = point.height - next.height;
            point = next;
            idle = if gained < least { idle + 1 } else { 0 };
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
    few: Vec<usize>,
}

impl<'a> Search<'a> {
    /// A search with a few of the levels.
    fn new(levels: &[Counts], few: Vec<usize>, from: Vec<f64>, curve: &'a dyn TradeOff) -> Self {
        Self {
            all: levels.iter().map(Rung::new).collect(),
            rungs: few.iter().map(|&i| Rung::new(&levels[i])).collect(),
            few,
            from,
            curve,
        }
    }

    /// Search from a point, then on with other knots, and prove what is found for all levels.
    fn settle(
        mut self,
        start: &Point,
        levels: &[Counts],
        interrupt: &Interrupt,
    ) -> Result<Option<Found>, AuditError> {
        let Some(mut best) = self.descend_all(start, interrupt)? else {
            return Ok(None);
        };
        for _ in 0..AGAIN {
            let next = self.again(best.clone(), interrupt)?;
            let gained = best.height - next.height;
            best = next;
            if gained < ENOUGH {
                break;
            }
        }
        let from = self.from.iter().copied();
        let starts: Vec<(f64, f64)> = best.logs.iter().map(|log| log.exp()).zip(from).collect();
        let kappa = best.logs[SEGMENTS].exp();
        let proof = CommonProof::of(&starts, kappa, best.force, levels, interrupt)?;
        Ok(proof.map(|proof| Found {
            proof,
            from: self.from,
            logs: best.logs,
            few: self.few,
        }))
    }
}

impl Search<'_> {
    /// The best point found from one, as all levels see it. Those that cost more than the few
    /// searched with are added to these.
    fn descend_all(
        &mut self,
        start: &Point,
        interrupt: &Interrupt,
    ) -> Result<Option<Point>, AuditError> {
        let mut best: Option<Point> = None;
        let mut from = start.clone();
        for _ in 0..ROUNDS {
            let found = self.descend(from, STEPS, interrupt)?;
            let (whole, forces) = self.at_all(found.logs.clone());
            let enough = found.height + MISSED;
            let done = whole.as_ref().is_some_and(|whole| whole.height <= enough);
            best = lower(best, whole);
            if done || self.few.len() == self.all.len() {
                break;
            }
            self.add(&forces);
            let logs = [start, &found].into_iter().chain(&best);
            let logs: Vec<Vec<f64>> = logs.map(|point| point.logs.clone()).collect();
            let seen = logs.into_iter().filter_map(|logs| self.at(logs));
            let Some(next) = seen.min_by(|a, b| a.height.total_cmp(&b.height)) else {
                break;
            };
            from = next;
        }
        Ok(best)
    }

    /// Search on with knots where the prices of a point are, and keep the better one.
    fn again(&mut self, point: Point, interrupt: &Interrupt) -> Result<Point, AuditError> {
        let next = knots(self.from[1], 1.01 * point.highest);
        let mut moved = carried(&self.from, &point.logs, &next);
        moved[SEGMENTS - 1] = moved[SEGMENTS - 2] + WALL;
        moved.extend(&point.logs[self.from.len()..]);
        let before = self.replace_knots(next);
        if let Some(start) = self.at(moved)
            && let Some(found) = self.descend_all(&start, interrupt)?
            && found.height < point.height
        {
            return Ok(found);
        }
        self.replace_knots(before);
        Ok(point)
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
    // The least slope that any level with this price wants.
    let wanted: Vec<f64> = from
        .iter()
        .map(|&knot| {
            let above = singles.iter().filter(|one| one.highest > knot);
            above.map(|one| one.log).fold(steepest, f64::min)
        })
        .collect();
    let few = levels.len().min(FEW);
    let few = (0..few).map(|i| i * (levels.len() - 1) / (few - 1).max(1));
    let mut search = Search::new(levels, few.collect(), from, curve);
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
        best = lower(best, Some(found));
    }
    best.map_or(Ok(None), |best| search.settle(&best, levels, interrupt))
}

/// A proof for another curve, its slopes looked for from those of a proof that was found.
pub(super) fn common_proof_from(
    found: &Found,
    levels: &[Counts],
    curve: &dyn TradeOff,
    interrupt: &Interrupt,
) -> Result<Option<Found>, AuditError> {
    let mut search = Search::new(levels, found.few.clone(), found.from.clone(), curve);
    let start = search.at(found.logs.clone());
    start.map_or(Ok(None), |start| search.settle(&start, levels, interrupt))
}

#[cfg(test)]
mod tests {
    use super::super::inequalities::{highest_price, segments_of};
    use super::super::window::edges_above;
    use super::*;
    use crate::fdp::certificate::shooting::cost;
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

    /// Slopes that increase, about where a search begins.
    fn beginning(levels: &[Counts], curve: &Gaussian) -> (Vec<f64>, Vec<f64>) {
        let singles = levels.iter().filter_map(|level| Single::new(level, curve));
        let singles: Vec<Single> = singles.collect();
        let highest = singles.iter().map(|one| one.highest).fold(0.0, f64::max);
        let least = singles.iter().map(|one| one.log).fold(9.0, f64::min);
        let tail = singles.iter().map(|one| one.tail).fold(1e-6, f64::max);
        let mut logs: Vec<f64> = (0..SEGMENTS)
            .map(|i| least - 0.2 + 0.01 * i as f64)
            .collect();
        logs[SEGMENTS - 1] += WALL;
        logs.push(tail.ln());
        (knots(0.03 * highest, 1.05 * highest), logs)
    }

    #[test]
    fn gradients_are_differences() {
        for (m, mu, pairs) in CASES {
            let curve = Gaussian::new(mu, 0.0).unwrap();
            let levels = levels_of(m, pairs);
            let (from, logs) = beginning(&levels, &curve);
            let few = (0..levels.len()).collect();
            let mut search = Search::new(&levels, few, from, &curve);
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

    /// Forces are those that the inequalities allow, here where few guesses are wrong: slopes within
    /// reach differ by e², and prices come from far below c.
    #[test]
    fn forces_are_those_that_inequalities_allow() {
        let m = 1e5;
        let pairs = [(1172, 1172), (1461, 1460), (1819, 1817), (6800, 6783)];
        let levels = levels_of(m, &pairs);
        let from = knots(0.1, 90.0);
        let rise = |i: usize| 4.15 + 2.05 * (i as f64 / SEGMENTS as f64).sqrt();
        let mut logs: Vec<f64> = (0..SEGMENTS).map(rise).collect();
        logs[SEGMENTS - 1] += WALL;
        let kappa: f64 = 3e-4;
        logs.push(kappa.ln());
        let mut rungs: Vec<Rung> = levels.iter().map(Rung::new).collect();
        let curve = Gaussian::new(1.444, 0.0).unwrap();
        let forces = cost(&mut rungs, &from, &logs, &curve).map(|cost| cost.forces);
        for (level, force) in levels.iter().zip(forces.unwrap()) {
            let allows = |force: f64| {
                let starts = logs.iter().map(|log| log.exp()).zip(&from);
                let segments = segments_of(starts.map(|(slope, at)| (slope, at / force)));
                let above = edges_above(level) as u64;
                highest_price(level, &segments, m, kappa / force, above).is_some()
            };
            let (below, above) = (0.999 * force, 1.001 * force);
            assert!(allows(below) && !allows(above), "{level:?}: {force}");
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
