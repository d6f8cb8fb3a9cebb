//! The law of a Bernoulli walk that has not crossed its boundary yet.

use std::ops::Range;

use leakbound_math::Probability;
use leakbound_simd::{Level, bernoulli_step, correlate};
use rayon::prelude::*;

/// Products below this are computed on one thread; above, outputs are shared out in tiles.
const PARALLEL_PRODUCTS: usize = 1 << 20;
/// Outputs of one parallel task.
const TILE: usize = 1 << 11;
/// Half an ulp of 1: the relative error of one rounding.
const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// P(so many correct guesses, boundary not crossed) for a window of counts.
///
/// Every operation adds and multiplies nonnegative numbers, so the relative error only grows with
/// the number of roundings, which is counted in `rounding`. States dropped as negligible are
/// collected in `lost`: crossing probability ≤ (what was absorbed + `lost`)·(1 + `rounding`).
///
/// `lost` also bounds the dropped paths at every probability whose logit differs by at most
/// `reach`: with a shift s, a path with w correct guesses where μ were expected changes its
/// likelihood by exp(s·w − Σ[A(θ+s) − A(θ)]) ≤ exp(s·(w − μ)), because A = softplus is convex.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The count that `mass[live.start]` belongs to.
    lowest: u32,
    mass: Vec<f64>,
    live: Range<usize>,
    spare: Vec<f64>,
    /// Upper bound on the probability of everything dropped so far.
    pub(crate) lost: f64,
    /// Upper bound on the relative rounding error of every mass.
    pub(crate) rounding: f64,
    /// Mass that one operation may drop.
    allowance: f64,
    /// Shifts of the logit for which `lost` must hold.
    reach: f64,
    /// Expected number of correct guesses so far.
    expected: f64,
}

impl Walk {
    /// A walk at zero guesses; each operation may drop states of total mass `allowance`, accounted
    /// for at shifts of the logit up to `reach`.
    pub(crate) fn new(allowance: f64, reach: f64) -> Self {
        Self {
            lowest: 0,
            mass: vec![1.0],
            live: 0..1,
            spare: Vec::new(),
            lost: 0.0,
            rounding: 0.0,
            allowance,
            reach,
            expected: 0.0,
        }
    }

    /// Has all mass been absorbed or dropped?
    pub(crate) fn is_over(&self) -> bool {
        self.live.is_empty()
    }

    /// One more guess, correct with probability `p`.
    pub(crate) fn step(&mut self, p: Probability) {
        if self.is_over() {
            return;
        }
        let live = &self.mass[self.live.clone()];
        self.spare.resize(live.len() + 1, 0.0);
        bernoulli_step(Level::best(), live, p.p(), p.q(), &mut self.spare);
        // p and q carry one rounding each; a product and a sum add two more.
        self.advance(0, p.p(), 3.0 * UNIT_ROUNDOFF);
    }

    /// `guesses` more guesses at once, each correct with probability `p`.
    pub(crate) fn leap(&mut self, guesses: u32, p: Probability) {
        if guesses == 1 || self.is_over() {
            return self.step(p);
        }
        let kernel = Kernel::new(guesses, p, self.allowance, self.reach);
        self.lost += kernel.lost * self.likelihood_factor(self.live.clone());
        let live = &self.mass[self.live.clone()];
        let outputs = live.len() + kernel.reversed.len() - 1;
        let margin = kernel.reversed.len() - 1;
        let mut padded = vec![0.0; live.len() + 2 * margin];
        padded[margin..margin + live.len()].copy_from_slice(live);
        self.spare.clear();
        self.spare.resize(outputs, 0.0);
        correlate_in_tiles(&padded, &kernel.reversed, &mut self.spare);
        self.advance(kernel.lowest, f64::from(guesses) * p.p(), kernel.rounding);
    }

    /// Make the spare buffer current.
    fn advance(&mut self, lowest_shift: u32, expected: f64, rounding: f64) {
        std::mem::swap(&mut self.mass, &mut self.spare);
        self.live = 0..self.mass.len();
        self.lowest += lowest_shift;
        self.expected += expected;
        self.rounding += rounding;
        self.trim();
    }

    /// By how much a shift within reach can change the likelihood of these states at most.
    fn likelihood_factor(&self, states: Range<usize>) -> f64 {
        let lowest = f64::from(self.lowest) - self.live.start as f64;
        let deviation = |state: usize| (lowest + state as f64 - self.expected).abs();
        (self.reach * deviation(states.start).max(deviation(states.end))).exp()
    }

    /// Drop negligible states at both ends.
    fn trim(&mut self) {
        let states = self.live.clone();
        let mut budget = self.allowance;
        let mut drop = |mass: f64| {
            let fits = mass <= budget;
            if fits {
                budget -= mass;
            }
            fits
        };
        while !self.live.is_empty() && drop(self.mass[self.live.start]) {
            self.live.start += 1;
            self.lowest += 1;
        }
        while !self.live.is_empty() && drop(self.mass[self.live.end - 1]) {
            self.live.end -= 1;
        }
        let dropped = self.allowance - budget;
        if dropped > 0.0 {
            self.lost += dropped * self.likelihood_factor(states);
        }
    }

    /// Move the states with at least `threshold` correct guesses to the end of `absorbed`; returns
    /// the count of the first of them.
    pub(crate) fn absorb(&mut self, threshold: u32, absorbed: &mut Vec<f64>) -> u32 {
        let kept = threshold.saturating_sub(self.lowest) as usize;
        let first = (self.live.start + kept).min(self.live.end);
        absorbed.extend_from_slice(&self.mass[first..self.live.end]);
        self.live.end = first;
        threshold.max(self.lowest)
    }
}

/// `output[i]` = Σₖ `kernel[k]`·`input[i + k]`, shared out between threads where that pays.
pub(crate) fn correlate_in_tiles(input: &[f64], kernel: &[f64], output: &mut [f64]) {
    if output.len() * kernel.len() < PARALLEL_PRODUCTS {
        return correlate(Level::best(), input, kernel, output);
    }
    let tiles = output.par_chunks_mut(TILE).enumerate();
    tiles.for_each(|(tile, outputs)| {
        let inputs = &input[tile * TILE..tile * TILE + outputs.len() + kernel.len() - 1];
        correlate(Level::best(), inputs, kernel, outputs);
    });
}

/// The law of several guesses at once, without its negligible tails.
pub(crate) struct Kernel {
    /// The fewest correct guesses kept.
    pub(crate) lowest: u32,
    /// Probabilities, from the most correct guesses kept down to the fewest.
    pub(crate) reversed: Vec<f64>,
    /// Upper bound on the probability left out, at every shift within reach.
    pub(crate) lost: f64,
    /// Upper bound on the relative error of one product with it.
    pub(crate) rounding: f64,
}

impl Kernel {
    /// Bin(`guesses`, `p`), leaving out tails of mass at most `allowance`.
    pub(crate) fn new(guesses: u32, p: Probability, allowance: f64, reach: f64) -> Self {
        let n = f64::from(guesses);
        let mode = ((n + 1.0) * p.p()).floor().min(n) as u32;
        // P(k+1)/P(k) = (n−k)/(k+1) · p/q falls with k, so what lies beyond a term is at most a
        // geometric series of its ratio. Terms are relative to the mode's until all are known.
        let odds = p.p() / p.q();
        let rising = |k: u32| f64::from(guesses - k) / (f64::from(k) + 1.0) * odds;
        let falling = |k: u32| f64::from(k) / (f64::from(guesses - k) + 1.0) / odds;
        let tails = Tails {
            allowance: allowance / 2.0,
            reach,
            offset: (f64::from(mode) - n * p.p()).abs(),
        };
        let (above, lost_above) = tails.terms((mode..guesses).map(rising));
        let (below, lost_below) = tails.terms((1..=mode).rev().map(falling));
        let lowest = mode - below.len() as u32;
        let steps = above.len().max(below.len()) as f64;
        let mut reversed: Vec<f64> = above
            .into_iter()
            .rev()
            .chain(std::iter::once(1.0))
            .chain(below)
            .collect();
        // Dividing by the sum of what is kept, not of all, rounds every term up.
        let total: f64 = reversed.iter().sum();
        for term in &mut reversed {
            *term /= total;
        }
        // Five roundings per ratio and one per product and division, in the terms and their sum;
        // one per addition, here and in a correlation.
        let rounding = UNIT_ROUNDOFF * (14.0 * steps + 2.0 * reversed.len() as f64 + 4.0);
        Self {
            lowest,
            reversed,
            lost: (lost_above + lost_below) / total,
            rounding,
        }
    }
}

/// How far to follow the tails of a kernel.
struct Tails {
    allowance: f64,
    reach: f64,
    /// Distance of the first term from the mean.
    offset: f64,
}

impl Tails {
    /// Successive terms from 1 by falling `ratios`, until all that would follow is negligible;
    /// with an upper bound on what follows, at every shift within reach.
    fn terms(&self, ratios: impl Iterator<Item = f64>) -> (Vec<f64>, f64) {
        let growth = self.reach.exp();
        let mut terms = Vec::new();
        let mut term = 1.0;
        for ratio in ratios {
            let shifted = ratio * growth;
            if shifted < 1.0 && term * ratio <= self.allowance * (1.0 - ratio) {
                let distance = self.offset + terms.len() as f64;
                let rest = term * (self.reach * distance).exp() * shifted / (1.0 - shifted);
                return (terms, rest);
            }
            term *= ratio;
            terms.push(term);
        }
        (terms, 0.0)
    }
}
