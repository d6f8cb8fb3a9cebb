//! The law of the number of correct guesses that is worst among those of one nesting.
//!
//! Let sets of edges grow from the edge c − 1 by one neighbour at a time, below or above, and let
//! a = f̄(b) for each: then b of the first set fixes all of p, step by step, and Σ p = 1 fixes that
//! b. The ratio a/b of each step is the slope of a chord of f̄, so the steps come in order of
//! decreasing likelihood ratio, and the inequalities hold for all other sets too.

use super::bracket::next_trial;
use super::envelope::Envelope;
use crate::error::AuditError;
use crate::fdp::counts::Counts;
use crate::interrupt::Interrupt;

/// A sum of the law so far above 1 is as good as infinite.
const TOO_LARGE: f64 = 1e6;
/// Points of the law below this share of the whole, or of the tail, do not matter.
const NEGLIGIBLE: f64 = 1e-17;
const NEGLIGIBLE_IN_TAIL: f64 = 1e-14;
/// |ln Σ p| that ends the search for b of the first set. What it leaves moves a bound by its square.
const CLOSE: f64 = 1e-8;
/// The smallest ln b looked at.
pub(super) const LOWEST: f64 = -700.0;
/// Two logarithms so close are one.
const NARROW: f64 = 1e-11;
const MOST_TRIALS: usize = 200;

/// Which neighbour a nested set takes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The edge below the lowest.
    Below,
    /// The edge above the highest.
    Above,
}

/// A step: the edge taken in, and the line of the envelope on which the set then lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) side: Side,
    pub(super) line: usize,
}

/// Nested sets, and the law that makes all their inequalities tight.
#[derive(Debug, Clone, Default)]
pub(super) struct Law {
    /// The line on which the set {c − 1} lies.
    pub(super) first: usize,
    /// All further steps that matter.
    pub(super) steps: Vec<Step>,
    /// Steps made so far, those of laws given up included.
    pub(super) work: usize,
}

/// Σ p and P(W ≥ c).
#[derive(Debug, Clone, Copy)]
pub(super) struct Mass {
    total: f64,
    pub(super) tail: f64,
}

const INFINITE: Mass = Mass {
    total: f64::INFINITY,
    tail: f64::INFINITY,
};

/// A point x of the envelope and the line there.
struct Place<'a> {
    envelope: &'a Envelope,
    x: f64,
    line: usize,
}

impl Place<'_> {
    /// How far f̄ rises over the next `width`.
    fn rise(&mut self, mut width: f64) -> f64 {
        let mut rise = 0.0;
        loop {
            let slope = self.envelope.lines[self.line].slope;
            let room = self.envelope.handovers[self.line] - self.x;
            if slope <= 0.0 {
                return rise;
            }
            if width.is_nan() || width <= room {
                self.x += width;
                return rise + slope * width;
            }
            rise += slope * room.max(0.0);
            width -= room.max(0.0);
            self.x = self.envelope.handovers[self.line];
            self.line += 1;
        }
    }

    /// Over what width f̄ rises by `rise`; none if it never does.
    fn width(&mut self, mut rise: f64) -> Option<f64> {
        let mut width = 0.0;
        loop {
            let slope = self.envelope.lines[self.line].slope;
            if slope <= 0.0 {
                return None;
            }
            let room = (self.envelope.handovers[self.line] - self.x).max(0.0);
            if rise <= slope * room {
                let rest = rise / slope;
                self.x += rest;
                return Some(width + rest);
            }
            rise -= slope * room;
            width += room;
            self.x = self.envelope.handovers[self.line];
            self.line += 1;
        }
    }
}

impl Law {
    /// How many edges above c − 1 matter.
    pub(super) fn edges_above(&self) -> u64 {
        let aboves = self.steps.iter().filter(|step| step.side == Side::Above);
        aboves.count() as u64
    }

    /// The law of total mass 1 for this order of sides; after its end all steps are below. The
    /// search for b of the first set starts from `start`, its logarithm. Gives P(W ≥ c) and ln b.
    pub(super) fn solve(
        &mut self,
        counts: &Counts,
        envelope: &Envelope,
        order: &[Side],
        start: f64,
        interrupt: &Interrupt,
    ) -> Result<(f64, f64), AuditError> {
        let (mut low, mut high) = ((f64::NEG_INFINITY, 0.0), (f64::INFINITY, 0.0));
        let (mut at, mut stride) = (start, 0.125);
        // How often in a row the lower end has moved, or less than zero: the upper.
        let mut run = 0_i32;
        for _ in 0..MOST_TRIALS {
            interrupt.check()?;
            let mass = self.extend(counts, envelope, order, at.exp());
            let excess = mass.total.ln().min(TOO_LARGE.ln());
            if excess.abs() <= CLOSE {
                return Ok((mass.tail, at));
            }
            if excess < 0.0 {
                (low, run) = ((at, excess), run.max(0) + 1);
            } else {
                (high, run) = ((at, excess), run.min(0) - 1);
            }
            at = if low.0 == f64::NEG_INFINITY {
                at - stride
            } else if high.0 == f64::INFINITY {
                at + stride
            } else {
                if high.0 - low.0 < NARROW {
                    break;
                }
                if high.1 >= TOO_LARGE.ln() {
                    0.5 * (low.0 + high.0)
                } else {
                    next_trial(low, high, run)
                }
            };
            stride *= 2.0;
            if at <= low.0.max(LOWEST) || at >= high.0 {
                break;
            }
        }
        let at = low.0.max(LOWEST);
        Ok((self.extend(counts, envelope, order, at.exp()).tail, at))
    }

    /// Take in edges from the first set's b = `first` on, until the rest does not matter.
    pub(super) fn extend(
        &mut self,
        counts: &Counts,
        envelope: &Envelope,
        order: &[Side],
        first: f64,
    ) -> Mass {
        let mass = self.take_in(counts, envelope, order, first);
        self.work += self.steps.len();
        mass
    }

    /// The sides in turn.
    fn take_in(
        &mut self,
        counts: &Counts,
        envelope: &Envelope,
        order: &[Side],
        first: f64,
    ) -> Mass {
        let (c, guesses, m) = (counts.correct(), counts.guesses(), counts.examples());
        let wrong = m * counts.others();
        self.steps.clear();
        let (power, line) = envelope.at(first);
        let top = m * power / c as f64;
        let mut place = Place {
            envelope,
            x: first,
            line,
        };
        let (mut lowest, mut highest) = (c - 1, c - 1);
        let (mut bottom, mut peak) = (wrong * first / (guesses - lowest) as f64, top);
        let mut mass = Mass {
            total: top + bottom,
            tail: top,
        };
        self.first = line;
        let mut sides = order.iter().copied();
        while lowest > 0 {
            let side = sides.next().unwrap_or(Side::Below);
            if side == Side::Above {
                if highest + 1 == guesses || peak < NEGLIGIBLE_IN_TAIL * mass.tail {
                    continue;
                }
                highest += 1;
                let rise = place.rise((guesses - highest) as f64 * peak / wrong);
                peak = m * rise / (highest + 1) as f64;
                mass.tail += peak;
                mass.total += peak;
            } else {
                let Some(width) = place.width(lowest as f64 * bottom / m) else {
                    return INFINITE;
                };
                lowest -= 1;
                let before = bottom;
                bottom = wrong * width / (guesses - lowest) as f64;
                mass.total += bottom;
                if mass.total > TOO_LARGE {
                    return INFINITE;
                }
                if bottom < NEGLIGIBLE * mass.total && bottom <= before {
                    break;
                }
            }
            let line = place.line;
            self.steps.push(Step { side, line });
        }
        mass
    }
}
