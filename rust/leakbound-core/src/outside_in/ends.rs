//! How many guesses of each role, chosen by labels from the outside in.
//!
//! A state is a pair (a, b): "member" is guessed of the a highest scores, "non-member" of the b
//! lowest. Labels of all other examples have been looked at; they decide from which end the next
//! examples are given up, and whether to stop when a + b is a level. An example in the set that is
//! tested had no part in any decision, which is all that the joint bounds ask for; they know how
//! many guesses there are, and not of which role.

use super::form::{SPREAD, interpolated};
use super::models::Ends;
use crate::guesses::path::Path;

/// From one level to the next so many times a few examples are given up.
const STEPS: u64 = 3;
/// So many ways to share guesses between the ends are compared, and the one in proportion.
const SPLITS: u32 = 9;
/// Something smaller has to be better by this, relative and absolute.
const BETTER: f64 = 1e-4;
/// How much of what smaller levels would prove, if labels told all, counts beside what is known.
const HOPE: f64 = 0.3;
/// Accuracies of what is given up stay within.
const ACCURACY: (f64, f64) = (0.02, 0.998);
/// Models that are less likely by this factor than the likeliest have no say.
const NEGLIGIBLE: f64 = 16.0;
/// Points at which what wrong guesses leave of a bound is looked up.
const LOOKED_UP: usize = 256;

/// What is known of levels before labels are seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndsRule {
    m: f64,
    /// For each level the bound at shares of wrong guesses, by their roots.
    bounds: Vec<Vec<f64>>,
    /// For each model and level, the bound expected of the best smaller level, however shared.
    hopes: Vec<Vec<f64>>,
}

impl EndsRule {
    /// From ln of wrong guesses, and bounds, of each level.
    pub(super) fn new(examples: u32, levels: &[u32], bounds: &[Vec<(f64, f64)>]) -> Self {
        let looked_up = |(&n, bounds): (&u32, &Vec<(f64, f64)>)| {
            let at = |i: usize| (i as f64 / LOOKED_UP as f64).powi(2) * f64::from(n);
            let each = (0..=LOOKED_UP).map(|i| interpolated(bounds, (at(i) + 0.5).ln()));
            each.collect()
        };
        let mut rule = Self {
            m: f64::from(examples),
            bounds: levels.iter().zip(bounds).map(looked_up).collect(),
            hopes: Vec::new(),
        };
        for model in 0..Ends::all().len() {
            let (mut most, mut hopes) = (0.0_f64, Vec::with_capacity(levels.len()));
            for (index, &n) in levels.iter().enumerate() {
                hopes.push(most);
                for a in splits(0, n) {
                    most = most.max(rule.worth(index, a, n - a, &[(model, 1.0)]));
                }
            }
            rule.hopes.push(hopes);
        }
        rule
    }

    /// The bound expected of a level, in which a guesses are from the top and b from the bottom.
    fn worth(&self, index: usize, a: u32, b: u32, models: &[(usize, f64)]) -> f64 {
        let (n, bounds) = (f64::from(a + b), &self.bounds[index]);
        let places = [a, b].map(|n| Ends::place(f64::from(n) / self.m));
        let mut sum = 0.0;
        for &(model, weight) in models {
            let (model, _) = &Ends::all()[model];
            let right = model.right(0, places[0]) + model.right(1, places[1]);
            let accuracy = (right * self.m / n).min(1.0);
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

    /// The index of the level to test, and how many of its guesses are from the top.
    pub(super) fn choose(&self, levels: &[u32], top: &Path, bottom: &Path) -> (usize, u32) {
        let mut search = Search::new(self, top, bottom);
        for (index, &level) in levels.iter().enumerate().rev() {
            let start = search.left();
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
            let here = self.worth(index, search.a, search.b, &search.weights);
            let least = here * (1.0 + BETTER) + BETTER;
            let hope = HOPE * search.hope(index);
            let better = |smaller: usize| {
                let known = search.best(smaller, levels[smaller]).0;
                (1.0 - HOPE) * known + hope > least
            };
            if !(0..index).rev().any(better) {
                return (index, search.a);
            }
        }
        (0, search.a.min(levels[0]))
    }
}

/// Ways to share guesses between the ends, from so many to so many at the top.
fn splits(low: u32, high: u32) -> impl Iterator<Item = u32> {
    let part = move |i| u64::from(high - low) * u64::from(i) / u64::from(SPLITS - 1);
    (0..SPLITS).map(move |i| low + part(i) as u32)
}

/// What is left of the ends, and what has been learnt from the rest.
struct Search<'a> {
    rule: &'a EndsRule,
    paths: [&'a Path; 2],
    a: u32,
    b: u32,
    /// How much models are believed, in logarithms; those that have a say, and their weights.
    beliefs: Vec<f64>,
    weights: Vec<(usize, f64)>,
}

impl<'a> Search<'a> {
    fn new(rule: &'a EndsRule, top: &'a Path, bottom: &'a Path) -> Self {
        let mut search = Self {
            rule,
            paths: [top, bottom],
            a: top.guesses(),
            b: bottom.guesses(),
            beliefs: Ends::all().iter().map(|(_, belief)| belief.ln()).collect(),
            weights: Vec::new(),
        };
        search.weigh();
        search
    }

    fn left(&self) -> u32 {
        self.a + self.b
    }

    fn weigh(&mut self) {
        let beliefs = &self.beliefs;
        let most = beliefs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let having_a_say = |&i: &usize| most - beliefs[i] < NEGLIGIBLE;
        let kept = (0..beliefs.len()).filter(having_a_say);
        self.weights = kept.map(|i| (i, (beliefs[i] - most).exp())).collect();
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
            let shares = [from, to].map(|n| Ends::place(f64::from(n) / self.rule.m));
            for (belief, (model, _)) in self.beliefs.iter_mut().zip(Ends::all()) {
                let [inner, outer] = shares.map(|place| model.right(end, place));
                let chance = (outer - inner) * self.rule.m / f64::from(to - from);
                let chance = chance.clamp(ACCURACY.0, ACCURACY.1);
                *belief += right * chance.ln() + wrong * (-chance).ln_1p();
            }
        }
        (self.a, self.b) = (a, b);
        self.weigh();
    }

    /// The bound expected of smaller levels, if the labels on the way told which model is true.
    fn hope(&self, index: usize) -> f64 {
        let each = self.weights.iter();
        each.map(|&(model, weight)| weight * self.rule.hopes[model][index])
            .sum()
    }

    /// The best worth of n guesses, at a level's bounds, and how many of them are from the top.
    fn best(&self, index: usize, n: u32) -> (f64, u32) {
        let (low, high) = (n.saturating_sub(self.b), self.a.min(n));
        let even = (u64::from(n) * u64::from(self.a) / u64::from(self.left())) as u32;
        let mut best = (0.0, even);
        let mut seen = Vec::with_capacity(SPLITS as usize + 1);
        for a in std::iter::once(even).chain(splits(low, high)) {
            if seen.contains(&a) {
                continue;
            }
            seen.push(a);
            let worth = self.rule.worth(index, a, n - a, &self.weights);
            if seen.len() == 1 || worth > best.0 * (1.0 + 1e-6) {
                best = (worth, a);
            }
        }
        best
    }
}
