//! What each edge of a worst law is worth: the dual of the inequalities that are tight.
//!
//! Let ν be the multiplier of a nested set, λ the slope of f̄ there, and for an edge s let y_s and
//! Ψ_s be the sums of ν and λ ν over the sets that hold it. The law of [`Law`] is worst among all
//! that its inequalities allow if multipliers ν ≥ 0 and κ, that of Σ p = 1, satisfy for every j
//!
//! (j/c') y_{j−1} − ((c'−j)/(c'(k−1))) Ψ_j = 1{j ≥ c} − κ.
//!
//! From the largest set inwards each equation has one new unknown. All are affine in κ, which the
//! last equation gives.

use super::envelope::Envelope;
use super::law::{Law, Side};
use crate::fdp::counts::Counts;

/// u + v κ.
#[derive(Debug, Clone, Copy, Default)]
struct Affine {
    u: f64,
    v: f64,
}

impl Affine {
    fn new(u: f64, v: f64) -> Self {
        Self { u, v }
    }

    /// self + scale · other.
    fn plus(self, scale: f64, other: Self) -> Self {
        Self::new(self.u + scale * other.u, self.v + scale * other.v)
    }

    fn times(self, scale: f64) -> Self {
        Self::new(self.u * scale, self.v * scale)
    }
}

/// y of the edges of a law, and κ.
#[derive(Debug, Clone)]
pub(super) struct Prices {
    pub(super) kappa: f64,
    /// That of the edge c − 1, then those of the steps.
    pub(super) values: Vec<f64>,
}

impl Prices {
    /// Solve for the prices; none if they are no numbers.
    pub(super) fn new(counts: &Counts, envelope: &Envelope, law: &Law) -> Option<Self> {
        let (guesses, correct) = (counts.guesses() as f64, counts.correct() as f64);
        let wrong = counts.others();
        let aboves = law.steps.iter().filter(|step| step.side == Side::Above);
        let aboves = aboves.count();
        let mut above = correct - 1.0 + aboves as f64;
        let mut below = correct - 1.0 - (law.steps.len() - aboves) as f64;
        // y and Ψ of the set reached; y of the edge below, Ψ of the edge above.
        let (mut y, mut psi) = (Affine::default(), Affine::default());
        let (mut y_below, mut psi_above) = (Affine::default(), None);
        let price_below = |s: f64, y_below: Affine| {
            let right = Affine::new(0.0, 1.0).plus(s / guesses, y_below);
            right.times(guesses * wrong / (guesses - s))
        };
        let price_above = |j: f64, psi: Affine| {
            let right = Affine::new(guesses, -guesses).plus((guesses - j) / wrong, psi);
            right.times(1.0 / j)
        };
        let mut values = Vec::with_capacity(law.steps.len() + 1);
        for step in law.steps.iter().rev() {
            let slope = envelope.lines[step.line].slope;
            if step.side == Side::Below {
                let next = price_below(below, y_below);
                y = y.plus(1.0 / slope, next.plus(-1.0, psi));
                (psi, y_below) = (next, y);
                below += 1.0;
            } else {
                // Above the highest edge that matters Ψ is that of the set outside.
                let next = price_above(above + 1.0, psi_above.unwrap_or(psi));
                psi = psi.plus(slope, next.plus(-1.0, y));
                (y, psi_above) = (next, Some(psi));
                above -= 1.0;
            }
            values.push(y);
        }
        let slope = envelope.lines[law.first].slope;
        let next = price_below(correct - 1.0, y_below);
        let top = y.plus(1.0 / slope, next.plus(-1.0, psi));
        values.push(top);
        let gap = top.plus(-1.0, price_above(correct, psi_above.unwrap_or(psi)));
        let kappa = -gap.u / gap.v;
        let values: Vec<f64> = values.iter().rev().map(|y| y.u + y.v * kappa).collect();
        let sound = kappa < 1.0 && values.iter().all(|y| y.is_finite());
        sound.then_some(Self { kappa, values })
    }

    /// The prices of the edges on one side, from c − 1 outwards.
    fn on(&self, law: &Law, side: Side) -> impl Iterator<Item = f64> {
        let steps = law.steps.iter().zip(&self.values[1..]);
        steps
            .filter(move |(step, _)| step.side == side)
            .map(|(_, &y)| y)
    }
}

/// The order in which sets take in edges: how many below come before each above, which never falls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    before: Vec<f64>,
}

impl Order {
    /// Sides by turns, so many of each.
    pub(super) fn alternating(aboves: usize) -> Self {
        Self {
            before: (0..aboves).map(|i| i as f64).collect(),
        }
    }

    /// The order by decreasing price; where a law ends, that of `self` goes on.
    pub(super) fn by_price(&self, law: &Law, prices: &Prices) -> Self {
        let mut below = prices.on(law, Side::Below).peekable();
        let mut count = 0.0;
        let mut before: Vec<f64> = Vec::with_capacity(self.before.len());
        for y in prices.on(law, Side::Above) {
            while below.next_if(|&other| other > y).is_some() {
                count += 1.0;
            }
            before.push(count);
        }
        let rest = self.before.get(before.len()..).unwrap_or_default();
        before.extend(rest.iter().map(|&known| known.max(count)));
        Self { before }
    }

    /// The order `share` of the way from here to another.
    pub(super) fn towards(&self, other: &Self, share: f64) -> Self {
        let pairs = self.before.iter().zip(&other.before);
        Self {
            before: pairs.map(|(a, b)| a + share * (b - a)).collect(),
        }
    }

    /// Sides in order, up to the last above.
    pub(super) fn sides(&self) -> Vec<Side> {
        let mut sides = Vec::with_capacity(2 * self.before.len());
        let mut below = 0;
        for &before in &self.before {
            let wanted = before.round() as usize;
            sides.extend((below..wanted).map(|_| Side::Below));
            sides.push(Side::Above);
            below = below.max(wanted);
        }
        sides
    }
}
