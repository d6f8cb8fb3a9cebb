//! How likely each guess is correct: all alike, or each with an offset of its own.

use leakbound_math::logistic::expit_both;
use leakbound_math::{MathError, Probability};

use crate::crossing::walk::Walk;
use crate::sum::CompensatedSum;

/// Offsets that stand for all where an estimate will do.
const SAMPLED: usize = 1 << 12;

/// A family of laws with one parameter θ: guess i is correct with probability σ(θ + aᵢ).
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogitFamily<'a> {
    /// Without offsets; θ is the logit of every probability.
    Equal,
    /// The offsets aᵢ, in path order.
    Offset(&'a [f64]),
    /// The same, roughly: guesses between the given numbers of them count as binomial ones.
    Grouped(&'a [f64], &'a [u32]),
}

impl<'a> LogitFamily<'a> {
    /// About the same family, for walks that are looked at after these numbers of guesses only.
    pub(crate) fn roughly(self, guesses: &'a [u32]) -> Self {
        match self {
            Self::Offset(offsets) => Self::Grouped(offsets, guesses),
            other => other,
        }
    }

    /// About one standard deviation of the parameter, as estimated from `guesses` guesses: by some
    /// thousands of the offsets.
    pub(crate) fn deviation(self, theta: f64, guesses: u32) -> Result<f64, MathError> {
        let (Self::Offset(offsets) | Self::Grouped(offsets, _)) = self else {
            return Ok(self.at(theta)?.deviation(guesses));
        };
        let offsets = &offsets[..guesses as usize];
        let looked_at = offsets
            .iter()
            .step_by(offsets.len().div_ceil(SAMPLED).max(1));
        let (mut information, mut sampled) = (0.0, 0.0);
        for offset in looked_at {
            let (p, q) = expit_both(theta + offset);
            information += p * q;
            sampled += 1.0;
        }
        Ok((sampled / (information * f64::from(guesses))).sqrt())
    }

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
            Self::Grouped(offsets, ends) => SuccessProbabilities::Groups(
                ends.iter()
                    .enumerate()
                    .map(|(index, &end)| {
                        let start = if index == 0 { 0 } else { ends[index - 1] };
                        let group = &offsets[start as usize..end as usize];
                        Ok((end, Group::of(group, theta)?))
                    })
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
    /// Groups of guesses, and the number of guesses at the end of each.
    Groups(Vec<(u32, Group)>),
}

/// A binomial law in the place of several guesses, with their mean and about their variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Group {
    guesses: u32,
    p: Probability,
}

impl Group {
    fn of(offsets: &[f64], theta: f64) -> Result<Self, MathError> {
        let (mut right, mut wrong, mut variance) = (0.0, 0.0, 0.0);
        for offset in offsets {
            let (p, q) = expit_both(theta + offset);
            right += p;
            wrong += q;
            variance += p * q;
        }
        // n p = Σ pᵢ and n p q = Σ pᵢqᵢ
        let size = offsets.len() as f64;
        let fewest = (right * right / (right - variance).max(f64::MIN_POSITIVE)).round();
        let guesses = fewest.clamp(right.ceil().max(1.0), size);
        let p = if guesses == size && wrong < right {
            Probability::from_complement(wrong / size)?
        } else {
            Probability::new((right / guesses).min(1.0))?
        };
        Ok(Self {
            guesses: guesses as u32,
            p,
        })
    }
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
            Self::Groups(groups) => {
                for (_, group) in within(groups, from, to) {
                    walk.leap(group.guesses, group.p);
                }
            }
        }
    }

    /// The operations of a walk to `longest` that looks at `cuts` cuts.
    pub(crate) fn operations(&self, cuts: usize, longest: u32) -> usize {
        match self {
            Self::Equal(_) | Self::Groups(_) => cuts,
            Self::Each(_) => longest as usize,
        }
    }

    /// One standard deviation of the parameter, as estimated from `guesses` guesses.
    pub(crate) fn deviation(&self, guesses: u32) -> f64 {
        let information = match self {
            Self::Equal(p) => f64::from(guesses) * p.p() * p.q(),
            Self::Each(each) => each[..guesses as usize].iter().map(|p| p.p() * p.q()).sum(),
            Self::Groups(groups) => within(groups, 0, guesses)
                .iter()
                .map(|(_, group)| f64::from(group.guesses) * group.p.p() * group.p.q())
                .sum(),
        };
        1.0 / information.sqrt()
    }

    /// The effect of a shift on the first guesses, at increasing numbers of them.
    pub(crate) fn tilts(&self, shift: f64, guesses: impl Iterator<Item = u32>) -> Vec<Tilt> {
        let growth = shift.exp_m1();
        let factor = shift.exp();
        let of_one = |p: Probability| {
            let excess = p.p() * growth;
            Tilt {
                cumulant: excess.ln_1p(),
                mean: p.p() * factor / (1.0 + excess),
            }
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
            Self::Groups(groups) => {
                let (mut so_far, mut done) = (Tilt::default(), 0);
                let mut up_to = |r: u32| {
                    for (_, group) in within(groups, done, r) {
                        let one = of_one(group.p);
                        so_far.cumulant += f64::from(group.guesses) * one.cumulant;
                        so_far.mean += f64::from(group.guesses) * one.mean;
                    }
                    done = r;
                    so_far
                };
                guesses.map(&mut up_to).collect()
            }
        }
    }
}

/// The groups that lie between two numbers of guesses.
fn within(groups: &[(u32, Group)], from: u32, to: u32) -> &[(u32, Group)] {
    let first = groups.partition_point(|&(end, _)| end <= from);
    let last = groups.partition_point(|&(end, _)| end <= to);
    &groups[first..last]
}
