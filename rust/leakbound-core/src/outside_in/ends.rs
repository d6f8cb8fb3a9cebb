//! How many guesses of each role, chosen by labels from the outside in.
//!
//! A state is a pair (a, b): "member" is guessed of the a highest scores, "non-member" of the b
//! lowest. Labels of all other examples have been looked at; they decide from which end the next
//! examples are given up, and whether to stop when a + b is a level. An example in the set that is
//! tested had no part in any decision, which is all that the joint bounds ask for; they know how
//! many guesses there are, and not of which role.

use std::sync::OnceLock;

use super::models::{DISTANCE_WEIGHT, DISTANCES, Ends};
use super::plan::{OutsideIn, SPREAD, interpolated};
use crate::guesses::path::Path;

/// From one level to the next so many times a few examples are given up.
const STEPS: u64 = 3;
/// So many ways to share guesses between the ends are compared, and the one in proportion.
const SPLITS: u32 = 9;
/// Something smaller has to be better by this, relative and absolute.
const BETTER: f64 = 1e-4;
/// Shares of examples that scores identify for sure, at an end: the least and the largest.
const TAILS: (f64, f64) = (0.001, 0.2);
const TAIL_COUNT: usize = 25;
/// Tails at both ends are so many steps of the shares above apart, at most.
const APART: usize = 3;
/// How often tails at one end, at the other, and at both are believed, together.
const TAIL_WEIGHT: f64 = 1.2;
/// What scores tell about the others.
const BEYOND: [f64; 2] = [0.0, 0.75];
/// Shares of members, or of others, that stand out by so many deviations, and how often all of
/// these are believed.
const STANDING_OUT: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
const BY: [f64; 3] = [2.5, 4.0, 6.0];
const STANDING_WEIGHT: f64 = 0.6;
/// Accuracies of what is given up stay within.
const ACCURACY: (f64, f64) = (0.02, 0.998);
/// Models that are so much less likely than the likeliest have no say.
const NEGLIGIBLE: f64 = 16.0;
/// Points at which what wrong guesses leave of a bound is looked up.
const LOOKED_UP: usize = 256;

/// All models, and how much each is believed; made once.
fn models() -> &'static [(Ends, f64)] {
    static MODELS: OnceLock<Vec<(Ends, f64)>> = OnceLock::new();
    MODELS.get_or_init(|| {
        let mut found: Vec<(Ends, f64)> = DISTANCES
            .iter()
            .map(|&(mu, belief)| (Ends::tails(0.0, 0.0, mu), DISTANCE_WEIGHT * belief))
            .collect();
        let part = |i: usize| i as f64 / (TAIL_COUNT - 1) as f64;
        let share = |i: usize| TAILS.0 * (TAILS.1 / TAILS.0).powf(part(i));
        let shares: Vec<f64> = (0..TAIL_COUNT).map(share).collect();
        let near = |i: usize, j: usize| i.abs_diff(j) <= APART;
        let both = (0..TAIL_COUNT).flat_map(|i| (0..TAIL_COUNT).map(move |j| (i, j)));
        let both: Vec<(usize, usize)> = both.filter(|&(i, j)| near(i, j)).collect();
        let third = TAIL_WEIGHT / (3 * BEYOND.len()) as f64;
        for mu in BEYOND {
            for &share in &shares {
                let each = third / TAIL_COUNT as f64;
                found.push((Ends::tails(share, 0.0, mu), each));
                found.push((Ends::tails(0.0, share, mu), each));
            }
            for &(i, j) in &both {
                let model = Ends::tails(shares[i], shares[j], mu);
                found.push((model, third / both.len() as f64));
            }
        }
        let each = STANDING_WEIGHT / (2 * STANDING_OUT.len() * BY.len()) as f64;
        for share in STANDING_OUT {
            for by in BY {
                let model = Ends::standing_out(share, by);
                found.push((model.mirrored(), each));
                found.push((model, each));
            }
        }
        found
    })
}

impl OutsideIn {
    /// The index of the level to test, and how many of its guesses are of "member", from the top.
    ///
    /// `top` guesses members of the upper half, from above, `bottom` others of the lower half.
    pub fn choose_ends(&self, top: &Path, bottom: &Path) -> (usize, u32) {
        let mut search = Search::new(self, top, bottom);
        for index in (0..self.levels.len()).rev() {
            let (level, start) = (self.levels[index], search.left());
            if level > start {
                continue;
            }
            let beyond = u64::from(start - level);
            for step in 1..=STEPS {
                let left = start - (beyond * step / STEPS) as u32;
                if left < search.left() {
                    let (_, a) = search.best(index, left);
                    search.give_up(a, left - a);
                }
            }
            let here = search.worth(index, search.a, search.b) * (1.0 + BETTER) + BETTER;
            let better = |smaller: usize| search.best(smaller, self.levels[smaller]).0 > here;
            if !(0..index).rev().any(better) {
                return (index, search.a);
            }
        }
        (0, search.a.min(self.levels[0]))
    }
}

/// What is left of the ends, and what has been learnt from the rest.
struct Search<'a> {
    plan: &'a OutsideIn,
    paths: [&'a Path; 2],
    a: u32,
    b: u32,
    m: f64,
    /// Models by how much they are believed, in logarithms; weights of those that have a say.
    beliefs: Vec<f64>,
    weights: Vec<(&'static Ends, f64)>,
    /// For each level the bound at shares of wrong guesses, by their roots.
    bounds: Vec<Vec<f64>>,
}

impl<'a> Search<'a> {
    fn new(plan: &'a OutsideIn, top: &'a Path, bottom: &'a Path) -> Self {
        let looked_up = |(&n, bounds): (&u32, &Vec<(f64, f64)>)| {
            let at = |i: usize| (i as f64 / LOOKED_UP as f64).powi(2) * f64::from(n);
            let each = (0..=LOOKED_UP).map(|i| interpolated(bounds, (at(i) + 0.5).ln()));
            each.collect()
        };
        let mut search = Self {
            plan,
            paths: [top, bottom],
            a: top.guesses(),
            b: bottom.guesses(),
            m: f64::from(top.guesses() + bottom.guesses()),
            beliefs: models().iter().map(|(_, belief)| belief.ln()).collect(),
            weights: Vec::new(),
            bounds: plan
                .levels
                .iter()
                .zip(&plan.bounds)
                .map(looked_up)
                .collect(),
        };
        search.weigh();
        search
    }

    fn left(&self) -> u32 {
        self.a + self.b
    }

    fn weigh(&mut self) {
        let most = self
            .beliefs
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        let each = models().iter().zip(&self.beliefs);
        let kept = each.filter(|(_, belief)| most - **belief < NEGLIGIBLE);
        self.weights = kept
            .map(|(model, belief)| (&model.0, (belief - most).exp()))
            .collect();
        let sum: f64 = self.weights.iter().map(|(_, weight)| weight).sum();
        for (_, weight) in &mut self.weights {
            *weight /= sum;
        }
    }

    /// Look at labels of the innermost examples of both ends, so that a and b are left.
    fn give_up(&mut self, a: u32, b: u32) {
        for (end, from, to) in [(0, a, self.a), (1, b, self.b)] {
            if from == to {
                continue;
            }
            let (made, right) = self.paths[end].between(from, to);
            let (right, wrong) = (f64::from(right), f64::from(made - right));
            let shares = [from, to].map(|n| Ends::place(f64::from(n) / self.m));
            for (belief, (model, _)) in self.beliefs.iter_mut().zip(models()) {
                let [inner, outer] = shares.map(|place| model.right(end, place));
                let chance = (outer - inner) * self.m / f64::from(to - from);
                let chance = chance.clamp(ACCURACY.0, ACCURACY.1);
                *belief += right * chance.ln() + wrong * (-chance).ln_1p();
            }
        }
        (self.a, self.b) = (a, b);
        self.weigh();
    }

    /// The bound expected of a level, in which a guesses are from the top.
    fn worth(&self, index: usize, a: u32, b: u32) -> f64 {
        let n = f64::from(self.plan.levels[index]);
        let places = [a, b].map(|n| Ends::place(f64::from(n) / self.m));
        let (made, bounds) = (f64::from(a + b) / self.m, &self.bounds[index]);
        let mut sum = 0.0;
        for &(model, weight) in &self.weights {
            let right = model.right(0, places[0]) + model.right(1, places[1]);
            let accuracy = (right / made).min(1.0);
            let deviation = (accuracy * (1.0 - accuracy) / n).sqrt();
            for score in SPREAD {
                let wrong = (1.0 - accuracy + score * deviation).clamp(0.0, 1.0);
                let at = wrong.sqrt() * LOOKED_UP as f64;
                let low = (at as usize).min(LOOKED_UP - 1);
                let part = at - low as f64;
                sum += weight * (bounds[low] + part * (bounds[low + 1] - bounds[low]));
            }
        }
        sum / SPREAD.len() as f64
    }

    /// The best worth of n guesses, at a level's bounds, and how many of them are from the top.
    fn best(&self, index: usize, n: u32) -> (f64, u32) {
        let (low, high) = (n.saturating_sub(self.b), self.a.min(n));
        let part =
            |i: u32| low + (u64::from(high - low) * u64::from(i) / u64::from(SPLITS - 1)) as u32;
        let even = (u64::from(n) * u64::from(self.a) / u64::from(self.left())) as u32;
        let mut best = (0.0, even);
        let mut seen = Vec::with_capacity(SPLITS as usize + 1);
        for a in std::iter::once(even).chain((0..SPLITS).map(part)) {
            if seen.contains(&a) {
                continue;
            }
            seen.push(a);
            let worth = self.worth(index, a, n - a);
            if seen.len() == 1 || worth > best.0 * (1.0 + 1e-6) {
                best = (worth, a);
            }
        }
        best
    }
}
