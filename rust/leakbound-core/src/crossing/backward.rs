//! How likely is a crossing from every head start? One pass, from the last cut back to the first.

use leakbound_math::Probability;
use leakbound_simd::{Level, bernoulli_step};

use crate::crossing::walk::{Kernel, correlate_in_tiles};

/// Probabilities below this are not told apart from it.
const NEGLIGIBLE: f64 = 1e-25;
/// Paths that stray further than their mean has a chance of at most e to minus this: not followed.
const STRAY: f64 = 40.0;
/// What the tails of a kernel may leave out.
const KERNEL_LOSS: f64 = 1e-25;
/// Half an ulp of 1: the relative error of one rounding.
const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Upper bounds on P(cross from here on), for a window of counts of correct guesses.
///
/// A state above the window counts as a crossing, one below it like the lowest state of the window:
/// both can only raise the answer, since more correct guesses make a crossing likelier.
#[derive(Debug)]
pub(crate) struct Backward {
    p: Probability,
    /// Guesses made so far.
    guesses: u32,
    /// The head start up to which states are followed.
    ahead: f64,
    /// The count that `crossing[0]` belongs to; it and all above have crossed, with probability 1.
    top: i64,
    /// From the top down, one count after another.
    crossing: Vec<f64>,
    spare: Vec<f64>,
    lost: f64,
    rounding: f64,
}

impl Backward {
    /// After the last cut, where `threshold` correct guesses cross.
    pub(crate) fn new(p: Probability, guesses: u32, threshold: u32, ahead: f64) -> Self {
        let mut backward = Self {
            p,
            guesses,
            ahead,
            top: i64::from(guesses) + 1,
            crossing: vec![1.0, 0.0],
            spare: Vec::new(),
            lost: 0.0,
            rounding: 0.0,
        };
        backward.cut(threshold);
        backward
    }

    /// Where a path of `guesses` guesses may stray to, either way of its mean.
    fn stray(&self, guesses: u32) -> (f64, f64) {
        // Bernstein's inequality: P(|W − μ| ≥ d) ≤ 2 exp(−d²/2(σ² + d/3)).
        let mean = f64::from(guesses) * self.p.p();
        let third = STRAY / 3.0;
        let distance = third + (third * third + 2.0 * STRAY * mean * self.p.q()).sqrt();
        (mean - distance, mean + distance)
    }

    fn bottom(&self) -> i64 {
        self.top - i64::from(self.crossing.len() as u32) + 1
    }

    /// Here `threshold` correct guesses cross.
    pub(crate) fn cut(&mut self, threshold: u32) {
        let highest = (self.stray(self.guesses).1 + self.ahead).ceil() as i64;
        let top = self.top.min(i64::from(threshold)).min(highest);
        let last = self.last();
        let crossed = ((self.top - top) as usize).min(self.crossing.len() - 1);
        self.crossing.drain(..crossed);
        self.crossing[0] = 1.0;
        if self.crossing.len() == 1 {
            self.crossing.push(last);
        }
        self.top = top;
        self.trim();
    }

    /// Go back to when `guesses` guesses were made.
    pub(crate) fn back_to(&mut self, guesses: u32) {
        let leap = self.guesses - guesses;
        self.guesses = guesses;
        if leap == 1 {
            self.step();
        } else {
            self.leap(leap);
        }
        self.crossing[0] = 1.0;
        self.trim();
    }

    fn step(&mut self) {
        self.spare.resize(self.crossing.len() + 1, 0.0);
        bernoulli_step(
            Level::best(),
            &self.crossing,
            self.p.p(),
            self.p.q(),
            &mut self.spare,
        );
        // A wrong guess in the state below the window leaves it below, a correct one leads to its
        // end.
        let last = self.last();
        self.spare[self.crossing.len()] = last;
        std::mem::swap(&mut self.crossing, &mut self.spare);
        self.rounding += 3.0 * UNIT_ROUNDOFF;
    }

    fn leap(&mut self, guesses: u32) {
        let kernel = Kernel::new(guesses, self.p, KERNEL_LOSS, 0.0);
        let width = kernel.reversed.len() as u32;
        let (fewest, most) = (
            i64::from(kernel.lowest),
            i64::from(kernel.lowest + width - 1),
        );
        // From a state at the lowest that matters, even the fewest correct guesses; and likewise.
        let bottom = self.lowest().min(self.top);
        let outputs = (self.top - bottom + 1) as usize;
        let at = |count: i64| match self.top - count {
            ..=0 => 1.0,
            below => {
                let last = self.crossing.len() - 1;
                self.crossing[(below as usize).min(last)]
            }
        };
        let padded: Vec<f64> = (bottom + fewest..=self.top + most).rev().map(at).collect();
        self.spare.clear();
        self.spare.resize(outputs, 0.0);
        correlate_in_tiles(&padded, &kernel.reversed, &mut self.spare);
        std::mem::swap(&mut self.crossing, &mut self.spare);
        self.lost += kernel.lost;
        self.rounding += kernel.rounding;
    }

    /// The lowest state that a path without head start may be at.
    fn lowest(&self) -> i64 {
        self.stray(self.guesses).0.floor().max(0.0) as i64
    }

    fn last(&self) -> f64 {
        self.crossing.last().copied().unwrap_or(1.0)
    }

    /// Forget states that are out of reach, or told apart from nothing.
    fn trim(&mut self) {
        let excess = (self.lowest() - self.bottom()).max(0) as usize;
        let mut length = (self.crossing.len() - excess.min(self.crossing.len())).max(2);
        while length > 2 && self.crossing[length - 2] <= NEGLIGIBLE {
            length -= 1;
        }
        self.crossing.truncate(length);
    }

    /// Upper bounds on P(cross) from a head start of 0, 1, … correct guesses before the first
    /// guess, none smaller than the one before; the last is 1.
    pub(crate) fn into_crossing_probabilities(mut self) -> Vec<f64> {
        self.back_to(0);
        let inflation = 1.0 + self.rounding;
        let lowest = self.last();
        let mut largest = 0.0_f64;
        (0..=self.top.max(0))
            .map(|start| {
                let below = (self.top - start).max(0) as usize;
                let probability = self.crossing.get(below).copied().unwrap_or(lowest);
                largest = largest.max(((probability + self.lost) * inflation).min(1.0));
                largest
            })
            .collect()
    }
}
