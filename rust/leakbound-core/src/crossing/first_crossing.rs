//! The law of the first crossing, at one probability and, reweighted, at those near it.

use crate::crossing::success_probabilities::{SuccessProbabilities, Tilt};

/// States absorbed after the same number of guesses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    pub(crate) guesses: u32,
    /// Correct guesses of the first state; the others follow in steps of one.
    pub(crate) lowest: u32,
    /// Where its states start in [`FirstCrossing::masses`]; they end where the next passage starts.
    pub(crate) start: usize,
}

/// First crossings of a boundary by a walk whose guesses are correct with base probabilities.
#[derive(Debug)]
pub(crate) struct FirstCrossing {
    /// The parameter of the family at the base.
    base: f64,
    probabilities: SuccessProbabilities,
    pub(crate) passages: Vec<Passage>,
    pub(crate) masses: Vec<f64>,
    /// Upper bound on the probability of dropped paths, at the base and at shifts within reach.
    lost: f64,
    /// Factor that turns a computed sum into an upper bound.
    inflation: f64,
}

/// A sum over crossings at a shifted probability.
struct Reweighting {
    /// ln P(cross), an upper bound at shifts within the walk's reach.
    ln_probability: f64,
    /// Its derivative in the shift.
    slope: f64,
}

impl FirstCrossing {
    /// Logits beyond have a probability or complement below the smallest double.
    pub(crate) const MAX_LOGIT: f64 = 700.0;
    /// Newton iterations and bisections; a bracket of width 1400 shrinks to 1e-15 in 61 halvings.
    const MAX_ITERATIONS: usize = 128;

    pub(crate) fn new(base: f64, probabilities: SuccessProbabilities) -> Self {
        Self {
            base,
            probabilities,
            passages: Vec::new(),
            masses: Vec::new(),
            lost: 0.0,
            inflation: 1.0,
        }
    }

    /// The probabilities at the base.
    pub(crate) fn success_probabilities(&self) -> &SuccessProbabilities {
        &self.probabilities
    }

    /// Record what the finished walk dropped and how it rounded.
    pub(crate) fn close(&mut self, lost: f64, rounding: f64) {
        self.lost = lost;
        // Reweighting and summing add one rounding per term and a few per passage.
        let terms = (self.masses.len() + 8 * self.passages.len()) as f64;
        self.inflation = (1.0 + rounding) * (1.0 + 2.0 * f64::EPSILON * terms.max(1.0));
    }

    /// Upper bound on the probability of crossing at the base.
    pub(crate) fn probability(&self) -> f64 {
        let absorbed: f64 = self.masses.iter().sum();
        ((absorbed + self.lost) * self.inflation).min(1.0)
    }

    /// The largest shift of the logit, up to `limit` either way, found with an upper bound of at
    /// most `beta`.
    pub(crate) fn largest_shift(&self, beta: f64, limit: f64) -> f64 {
        let target = beta.ln();
        let room = |end: f64| (end - self.base).clamp(-limit, limit);
        let (mut low, mut high) = (room(-Self::MAX_LOGIT), room(Self::MAX_LOGIT));
        let mut shift = 0.0;
        let mut verified = low;
        for _ in 0..Self::MAX_ITERATIONS {
            let Reweighting {
                ln_probability,
                slope,
            } = self.at(shift);
            if ln_probability <= target {
                (low, verified) = (shift, shift);
            } else {
                high = shift;
            }
            if high - low <= 1e-15 * (1.0 + self.base.abs()) {
                break;
            }
            let newton = shift + (target - ln_probability) / slope;
            // A hair inside the solution, so that rounding does not leave it on the wrong side.
            let next = newton - 2e-14 * newton.abs().max(1.0 / (1.0 + slope.abs()));
            let done = (next - shift).abs() <= 4e-14 * (1.0 + shift.abs()) / (1.0 + slope.abs());
            if done && verified == shift {
                break;
            }
            shift = if next > low && next < high {
                next
            } else {
                0.5 * (low + high)
            };
        }
        verified
    }

    /// ln P(cross) and its slope with the parameter shifted from the base.
    ///
    /// A path with w correct guesses is reweighted by exp(s·w − Σᵢ ln(1 + pᵢ(e^s − 1))) for a shift
    /// s, which for guesses all alike is (p/p₀)^w (q/q₀)^{r−w}.
    fn at(&self, shift: f64) -> Reweighting {
        let step = shift.exp();
        let guesses = self.passages.iter().map(|passage| passage.guesses);
        let tilts = self.probabilities.tilts(shift, guesses);
        let exponent =
            |passage: &Passage, tilt: &Tilt| f64::from(passage.lowest) * shift - tilt.cumulant;
        let scale = self
            .passages
            .iter()
            .zip(&tilts)
            .map(|(passage, tilt)| exponent(passage, tilt))
            .fold(f64::NEG_INFINITY, f64::max)
            .max(0.0);
        let ends = self
            .passages
            .iter()
            .skip(1)
            .map(|next| next.start)
            .chain([self.masses.len()]);
        let (mut total, mut weighted) = (0.0, 0.0);
        for ((passage, tilt), end) in self.passages.iter().zip(&tilts).zip(ends) {
            // Horner from the largest count down: Σ mass_j e^{js} and Σ j mass_j e^{js}.
            let (mut sum, mut moment) = (0.0, 0.0);
            for &mass in self.masses[passage.start..end].iter().rev() {
                moment = moment * step + sum * step;
                sum = sum * step + mass;
            }
            let factor = (exponent(passage, tilt) - scale).exp();
            let excess = f64::from(passage.lowest) - tilt.mean;
            total += factor * sum;
            weighted += factor * (moment + excess * sum);
        }
        let dropped = self.lost * (-scale).exp();
        Reweighting {
            ln_probability: scale + ((total + dropped) * self.inflation_at(shift)).ln(),
            slope: weighted / total,
        }
    }

    /// The inflation at a shift: exponents are differences of numbers up to |s|·r.
    fn inflation_at(&self, shift: f64) -> f64 {
        let longest = self.passages.last().map_or(0, |passage| passage.guesses);
        self.inflation * (1.0 + 4.0 * f64::EPSILON * shift.abs() * f64::from(longest))
    }
}
