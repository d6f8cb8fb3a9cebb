//! How likely each guess is correct: all alike, or each with an offset of its own.

use leakbound_math::{MathError, Probability};

use crate::crossing::walk::Walk;
use crate::sum::CompensatedSum;

/// A family of laws with one parameter θ: guess i is correct with probability σ(θ + aᵢ).
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogitFamily<'a> {
    /// Without offsets; θ is the logit of every probability.
    Equal,
    /// The offsets aᵢ, in path order.
    Offset(&'a [f64]),
}

impl LogitFamily<'_> {
    /// The law at one value of the parameter.
    pub(crate) fn at(self, theta: f64) -> Result<SuccessProbabilities, MathError> {
        Ok(match self {
            Self::Equal => SuccessProbabilities::Equal(Probability::from_logit(theta)?),
            Self::Offset(offsets) => SuccessProbabilities::Each(
                offsets
                    .iter()
                    .map(|offset| Probability::from_logit(theta + offset))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

/// The probabilities of correct guesses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SuccessProbabilities {
    /// One for all.
    Equal(Probability),
    /// One for each guess, in path order.
    Each(Vec<Probability>),
}

/// What a shift of all logits by s does to the first guesses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tilt {
    /// Σ ln(1 + pᵢ(e^s − 1)): a path with w correct guesses is reweighted by exp(s·w) over e to
    /// this.
    pub(crate) cumulant: f64,
    /// Expected correct guesses after the shift.
    pub(crate) mean: f64,
}

impl SuccessProbabilities {
    /// Carry a walk from `from` guesses to `to`.
    pub(crate) fn advance(&self, walk: &mut Walk, from: u32, to: u32) {
        match self {
            Self::Equal(p) => walk.leap(to - from, *p),
            Self::Each(each) => {
                for &p in &each[from as usize..to as usize] {
                    walk.step(p);
                }
            }
        }
    }

    /// The operations of a walk to `longest` that looks at `cuts` cuts.
    pub(crate) fn operations(&self, cuts: usize, longest: u32) -> usize {
        match self {
            Self::Equal(_) => cuts,
            Self::Each(_) => longest as usize,
        }
    }

    /// One standard deviation of the parameter, as estimated from `guesses` guesses.
    pub(crate) fn deviation(&self, guesses: u32) -> f64 {
        let information = match self {
            Self::Equal(p) => f64::from(guesses) * p.p() * p.q(),
            Self::Each(each) => each[..guesses as usize].iter().map(|p| p.p() * p.q()).sum(),
        };
        1.0 / information.sqrt()
    }

    /// The effect of a shift on the first guesses, at increasing numbers of them.
    pub(crate) fn tilts(&self, shift: f64, guesses: impl Iterator<Item = u32>) -> Vec<Tilt> {
        let growth = shift.exp_m1();
        let of_one = |p: Probability| {
            let cumulant = (p.p() * growth).ln_1p();
            let mean = p.p() * (shift - cumulant).exp();
            Tilt { cumulant, mean }
        };
        match self {
            Self::Equal(p) => {
                let one = of_one(*p);
                let times = |r: u32| Tilt {
                    cumulant: f64::from(r) * one.cumulant,
                    mean: f64::from(r) * one.mean,
                };
                guesses.map(times).collect()
            }
            Self::Each(each) => {
                let (mut cumulant, mut mean) =
                    (CompensatedSum::default(), CompensatedSum::default());
                let mut done = 0;
                let mut up_to = |r: u32| {
                    for &p in &each[done..r as usize] {
                        let one = of_one(p);
                        cumulant.add(one.cumulant);
                        mean.add(one.mean);
                    }
                    done = r as usize;
                    Tilt {
                        cumulant: cumulant.value(),
                        mean: mean.value(),
                    }
                };
                guesses.map(&mut up_to).collect()
            }
        }
    }
}
