//! How many guesses of each role, chosen by labels from the outside in.
//!
//! A state is a pair (a, b): "member" is guessed of the a highest scores, "non-member" of the b
//! lowest. Labels of all other examples have been looked at; they decide from which end the next
//! examples are given up, and whether to stop when a + b is a level. An example in the set that is
//! tested had no part in any decision, which is all that the joint bounds ask for; they know how
//! many guesses there are, and not of which role.

use super::form::{SPREAD, interpolated};
use super::models::EndModels;
use crate::guesses::path::Path;

/// From one level to the next so many times a few examples are given up.
const STEPS: u64 = 3;
/// Ways to share guesses between the ends for which the bound expected is kept; it is interpolated
/// between them. So many others are compared, and the one in proportion.
const SPLITS: usize = 17;
const COMPARED: u64 = 9;
/// Something smaller has to be better by this, relative and absolute.
const BETTER: f64 = 1e-4;
/// Another share than that in proportion has to be better by this, relative.
const OTHERWISE: f64 = 1e-6;
/// How much of what smaller levels would prove, if labels told all, counts beside what is known.
const HOPE: f64 = 0.3;
/// Accuracies of what is given up stay within.
const ACCURACY: (f64, f64) = (0.02, 0.998);
/// Models whose logarithm of belief is this far below the largest have no say; from the second on
/// they are left out.
const NEGLIGIBLE: f64 = 12.0;
const LEFT_OUT: f64 = 24.0;
/// Points at which the bound expected at a share of wrong guesses is looked up.
const LOOKED_UP: usize = 256;
/// Sums are made in so many parts, in one order on every machine.
const LANES: usize = 8;

/// What is known before labels are seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndsRule {
    m: f64,
    /// From the largest number of guesses to the smallest; every third is a level.
    stages: Vec<Stage>,
}

/// A number of guesses on the way from one level to the next, or at it.
#[derive(Debug, Clone, PartialEq)]
struct Stage {
    guesses: u32,
    /// The index of the level, where it is one.
    level: Option<usize>,
    /// For each split, the bound that each model leads one to expect.
    worth: [Vec<f32>; SPLITS],
    /// For each model, the bound expected of the best smaller level, however shared.
    hopes: Vec<f32>,
}

impl EndsRule {
    /// From ln of wrong guesses, and bounds, of each level.
    pub(super) fn new(examples: u32, levels: &[u32], bounds: &[Vec<(f64, f64)>]) -> Self {
        let m = f64::from(examples);
        let mut stages = Vec::with_capacity(levels.len() * STEPS as usize);
        let mut most = vec![0.0_f32; EndModels::all().beliefs.len()];
        for (level, (&n, bounds)) in levels.iter().zip(bounds).enumerate() {
            let expected = expected(n, bounds);
            let above = levels.get(level + 1).copied().unwrap_or(examples);
            for step in (1..=STEPS).rev() {
                let guesses = above - (u64::from(above - n) * step / STEPS) as u32;
                let stage = Stage {
                    guesses,
                    level: (step == STEPS).then_some(level),
                    worth: worth(m, guesses, &expected),
                    hopes: most.clone(),
                };
                stages.push(stage);
            }
            for worth in &stages[stages.len() - STEPS as usize].worth {
                for (most, worth) in most.iter_mut().zip(worth) {
                    *most = most.max(*worth);
                }
            }
        }
        stages.reverse();
        Self { m, stages }
    }

    /// The index of the level to test, and how many of its guesses are from the top.
    pub(super) fn choose(&self, top: &Path, bottom: &Path) -> (usize, u32) {
        let mut search = Search::new(self.m, [top, bottom]);
        for (place, stage) in self.stages.iter().enumerate() {
            if stage.guesses < search.left() {
                let (_, a) = search.best(stage);
                search.give_up(a, stage.guesses - a);
            }
            let Some(level) = stage.level else { continue };
            let least = search.worth(stage, search.a) * (1.0 + BETTER) + BETTER;
            let hope = HOPE * search.weighed(&stage.hopes);
            let smaller = self.stages[place + 1..].iter();
            let better = |stage: &Stage| (1.0 - HOPE) * search.best(stage).0 + hope > least;
            if !smaller.filter(|stage| stage.level.is_some()).any(better) {
                return (level, search.a);
            }
        }
        (0, search.a)
    }
}

/// The bound expected of n guesses at shares of wrong ones, by their roots.
fn expected(n: u32, bounds: &[(f64, f64)]) -> Vec<f64> {
    let n = f64::from(n);
    let at = |i: usize| {
        let wrong = (i as f64 / LOOKED_UP as f64).powi(2);
        let deviation = (wrong * (1.0 - wrong) / n).sqrt();
        let drawn = SPREAD.map(|score| (wrong + score * deviation).clamp(0.0, 1.0) * n);
        let each = drawn.map(|wrong| interpolated(bounds, (wrong + 0.5).ln()));
        each.iter().sum::<f64>() / SPREAD.len() as f64
    };
    (0..=LOOKED_UP).map(at).collect()
}

/// For each split of n guesses, the bound that each model leads one to expect.
fn worth(m: f64, n: u32, expected: &[f64]) -> [Vec<f32>; SPLITS] {
    let (n, models) = (f64::from(n), EndModels::all());
    std::array::from_fn(|split| {
        let a = n * split as f64 / (SPLITS - 1) as f64;
        let top = models.right(0, EndModels::place(a / m));
        let bottom = models.right(1, EndModels::place((n - a) / m));
        let each = (0..models.beliefs.len()).map(|model| {
            let right = (top(model) + bottom(model)) * m / n;
            let at = (1.0 - right).max(0.0).sqrt() * LOOKED_UP as f64;
            let low = (at as usize).min(LOOKED_UP - 1);
            let part = at - low as f64;
            (expected[low] + part * (expected[low + 1] - expected[low])) as f32
        });
        each.collect()
    })
}

/// What is left of the ends, and what has been learnt from the rest.
struct Search<'a> {
    m: f64,
    paths: [&'a Path; 2],
    a: u32,
    b: u32,
    /// Models, and how much they are believed, in logarithms.
    beliefs: Vec<(usize, f64)>,
    /// The weight of each model; 0 where it has no say.
    weights: Vec<f32>,
}

impl<'a> Search<'a> {
    fn new(m: f64, paths: [&'a Path; 2]) -> Self {
        let models = EndModels::all();
        let beliefs = models.beliefs.iter().map(|belief| belief.ln());
        let mut search = Self {
            m,
            paths,
            a: paths[0].guesses(),
            b: paths[1].guesses(),
            beliefs: beliefs.enumerate().collect(),
            weights: vec![0.0; models.beliefs.len()],
        };
        search.weigh();
        search
    }

    fn left(&self) -> u32 {
        self.a + self.b
    }

    fn weigh(&mut self) {
        let each = self.beliefs.iter().map(|&(_, belief)| belief);
        let most = each.fold(f64::NEG_INFINITY, f64::max);
        self.beliefs.retain(|&(_, belief)| most - belief < LEFT_OUT);
        let having_a_say = self.beliefs.iter().filter(|one| most - one.1 < NEGLIGIBLE);
        let weights = having_a_say.map(|&(model, belief)| (model, (belief - most).exp()));
        let weights: Vec<_> = weights.collect();
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        self.weights.fill(0.0);
        for (model, weight) in weights {
            self.weights[model] = (weight / sum) as f32;
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
            let [inner, outer] = [from, to]
                .map(|n| EndModels::all().right(end, EndModels::place(f64::from(n) / self.m)));
            for (model, belief) in &mut self.beliefs {
                let chance = (outer(*model) - inner(*model)) * self.m / f64::from(to - from);
                let chance = chance.clamp(ACCURACY.0, ACCURACY.1);
                *belief += right * chance.ln() + wrong * (-chance).ln_1p();
            }
        }
        (self.a, self.b) = (a, b);
        self.weigh();
    }

    /// The mean over models, as they are believed.
    fn weighed(&self, worth: &[f32]) -> f64 {
        let mut sums = [0.0_f32; LANES];
        let pairs = worth.chunks(LANES).zip(self.weights.chunks(LANES));
        for (worth, weights) in pairs {
            for ((sum, worth), weight) in sums.iter_mut().zip(worth).zip(weights) {
                *sum += worth * weight;
            }
        }
        sums.iter().map(|&sum| f64::from(sum)).sum()
    }

    /// The bound expected of a stage, if a guesses are from the top.
    fn worth(&self, stage: &Stage, a: u32) -> f64 {
        let (split, part) = between(stage.guesses, a);
        let [low, high] = [split, split + 1].map(|one| self.weighed(&stage.worth[one]));
        low + part * (high - low)
    }

    /// The best worth of a stage, however what is left is shared, and its guesses from the top.
    fn best(&self, stage: &Stage) -> (f64, u32) {
        let n = stage.guesses;
        let (low, high) = (n.saturating_sub(self.b), self.a.min(n));
        let needed = between(n, low).0..=between(n, high).0 + 1;
        let at: [f64; SPLITS] = std::array::from_fn(|split| {
            let needed = needed.contains(&split);
            if needed {
                self.weighed(&stage.worth[split])
            } else {
                0.0
            }
        });
        let worth = |a: u32| {
            let (split, part) = between(n, a);
            at[split] + part * (at[split + 1] - at[split])
        };
        let even = (u64::from(n) * u64::from(self.a) / u64::from(self.left())) as u32;
        let step = |i| (u64::from(high - low) * i / (COMPARED - 1)) as u32;
        let mut best = (worth(even), even);
        for a in (0..COMPARED).map(|i| low + step(i)) {
            if worth(a) > best.0 * (1.0 + OTHERWISE) {
                best = (worth(a), a);
            }
        }
        best
    }
}

/// The split of n guesses below the one that has a from the top, and what part beyond.
fn between(n: u32, a: u32) -> (usize, f64) {
    let at = f64::from(a) / f64::from(n) * (SPLITS - 1) as f64;
    let split = (at as usize).min(SPLITS - 2);
    (split, at - split as f64)
}
