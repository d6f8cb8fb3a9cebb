//! One tilted law, from which the tails at every ε follow.
//!
//! Tilting by θ turns P_ε into the law with odds Eᵢe^{ε+θ}, so all ε share the tilted law and
//!
//! P_ε(S ≥ v) = e^{K(θ)−θv} Σ_{j≥0} e^{−θj} P̃(S = v+j), K(θ) = Σ ln\[(1+Eᵢe^{ε+θ})/(1+Eᵢe^ε)\],
//!
//! with the mirror image for P_ε(S < v) when θ < 0. That is why an inverse costs what one tail does.

use leakbound_simd::multiply_by_terms;

use super::base::{Base, log_ratio_less};
use super::contour::{Bounded, Contour};
use super::exact::{self, Sized, UNIT};
use super::terms::Terms;

/// Up to this many trials the probabilities are built term by term.
pub(super) const DIRECT: u64 = 96;

/// How the law around v is held.
enum Shape {
    Nodes {
        base: Box<Base>,
        contour: Contour,
        log_mgf: Sized,
    },
    /// All probabilities of at most [`DIRECT`] trials.
    Direct(Vec<f64>),
}

/// The law of the open terms tilted to a mean near v.
pub(super) struct Tilted<'a> {
    terms: &'a Terms,
    v: f64,
    x: f64,
    log_x: (f64, f64),
    d: f64,
    deviation: f64,
    shape: Shape,
}

/// ln of a factor, and the size of the parts it is the difference of.
#[derive(Clone, Copy)]
struct Factor {
    log: f64,
    size: f64,
}

/// ln P(S ≥ v) or, where that is smaller, ln P(S < v), with the relative error of that probability.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogTail {
    pub(super) log: f64,
    pub(super) relative_error: f64,
    pub(super) upper: bool,
}

impl LogTail {
    /// ln P(S ≥ v).
    pub(super) fn log_upper(self) -> f64 {
        if self.upper {
            self.log.min(0.0)
        } else {
            (-self.log.min(0.0).exp()).ln_1p()
        }
    }

    /// ln P(S < v).
    pub(super) fn log_lower(self) -> f64 {
        if self.upper {
            (-self.log.min(0.0).exp()).ln_1p()
        } else {
            self.log.min(0.0)
        }
    }
}

impl<'a> Tilted<'a> {
    /// The law with mean near `v`, 0 < v < open trials; `start` is ln x of an earlier one and
    /// `theta` guesses the tilt in use from (ln x, variance).
    pub(super) fn new(
        terms: &'a Terms,
        v: f64,
        start: Option<f64>,
        theta: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let base = Base::near(terms, v, start, theta);
        let (x, log_x, deviation) = (base.x, base.log_x, base.variance.sqrt());
        let (d, shape) = if terms.trials <= DIRECT {
            (0.0, Shape::Direct(probabilities(terms, x)))
        } else {
            let (d, contour) = (base.d, Contour::new(terms.level, &base, v));
            let log_mgf = base.log_mgf(d);
            let base = Box::new(base);
            let shape = Shape::Nodes {
                base,
                contour,
                log_mgf,
            };
            (d, shape)
        };
        Self {
            terms,
            v,
            x,
            log_x,
            d,
            deviation,
            shape,
        }
    }

    /// ln of the tilt: ε = this − θ.
    pub(super) fn origin(&self) -> (f64, f64) {
        let (high, low) = exact::two_sum(self.log_x.0, self.d);
        (high, low + self.log_x.1)
    }

    /// The standard deviation of the tilted law.
    pub(super) fn deviation(&self) -> f64 {
        self.deviation
    }

    /// The θ of the largest ε at which all odds can be held, and of the `lowest`.
    pub(super) fn range(&self, lowest: f64) -> (f64, f64) {
        let highest = self.terms.highest(f64::MAX);
        (self.theta(highest), self.theta(lowest))
    }

    /// θ for ε.
    pub(super) fn theta(&self, epsilon: f64) -> f64 {
        let (high, low) = exact::two_sum(self.log_x.0, -epsilon);
        high + (low + self.log_x.1 + self.d)
    }

    /// ln e^{K(θ)−θv} = \[F(d) − vd\] − \[F(z) − vz\], z = d − θ, F relative to x.
    fn factor(&self, theta: f64) -> Factor {
        let z = self.d - theta;
        if let Shape::Nodes { base, log_mgf, .. } = &self.shape {
            let mean = base.mean_less(self.v);
            if let Some(remainder) = base.remainder(z) {
                let at_z = base.log_mgf(z);
                let size = mean.size * theta.abs() + log_mgf.size + at_z.size;
                return Factor {
                    log: mean.value * theta + log_mgf.value - at_z.value,
                    size: size + remainder / UNIT,
                };
            }
            let (value, size) = log_ratio_less(self.terms, self.x, self.log_x, z, self.v);
            return Factor {
                log: mean.value * self.d + log_mgf.value - value,
                size: size + log_mgf.size + mean.size * self.d.abs(),
            };
        }
        let (value, size) = log_ratio_less(self.terms, self.x, self.log_x, z, self.v);
        Factor { log: -value, size }
    }

    /// The tail on the side of the mean where it is at most about a half: above for θ ≥ 0.
    pub(super) fn log_tail(&self, theta: f64) -> LogTail {
        let Factor { log, size } = self.factor(theta);
        let upper = theta >= 0.0;
        let sum = self.sum(theta).known();
        let relative_error = sum.error / sum.value + UNIT * (16.0 + 4.0 * size);
        LogTail {
            log: log + sum.value.ln(),
            relative_error,
            upper,
        }
    }

    /// As [`Self::log_tail`] without its error.
    pub(super) fn log_tail_only(&self, theta: f64) -> LogTail {
        let log = self.factor(theta).log;
        let upper = theta >= 0.0;
        let value = match &self.shape {
            Shape::Nodes { contour, .. } if upper => contour.above(theta),
            Shape::Nodes { contour, .. } => contour.below(-theta),
            Shape::Direct(_) => self.sum(theta).value,
        };
        LogTail {
            log: log + value.max(f64::MIN_POSITIVE).ln(),
            relative_error: 0.0,
            upper,
        }
    }

    fn sum(&self, theta: f64) -> Bounded {
        match &self.shape {
            Shape::Nodes { contour, .. } => contour.beyond(theta),
            Shape::Direct(pmf) => {
                let t = theta.abs();
                let v = self.v as usize;
                let value = if theta >= 0.0 {
                    discounted(pmf[v..].iter(), t)
                } else {
                    discounted(pmf[..v].iter().rev(), t) * (-t).exp()
                };
                Bounded {
                    value,
                    error: direct_error(self.terms.trials) * value,
                }
            }
        }
    }
}

/// Bounds the relative error of probabilities built from `trials` terms of one sign.
pub(super) fn direct_error(trials: u64) -> f64 {
    UNIT * (8 * trials + 16) as f64
}

/// Σⱼ e^{−tj} aⱼ, summed from the far end.
fn discounted<'a>(entries: impl DoubleEndedIterator<Item = &'a f64>, t: f64) -> f64 {
    let ratio = (-t).exp();
    entries.rev().fold(0.0, |sum, entry| sum * ratio + entry)
}

/// Divides by the sum: equal terms lose the same in p + q = 1, so that the sum is off more than the
/// shares are.
pub(super) fn normalise(pmf: &mut [f64]) {
    let total: f64 = pmf.iter().sum();
    for entry in pmf {
        *entry /= total;
    }
}

/// P(S = k) for every k, at odds multiplied by `x`; for few trials.
pub(super) fn probabilities(terms: &Terms, x: f64) -> Vec<f64> {
    let odds = terms.repeated_odds();
    let q: Vec<f64> = odds.iter().map(|e| 1.0 / (1.0 + e * x)).collect();
    let p: Vec<f64> = odds.iter().zip(&q).map(|(e, q)| e * x * q).collect();
    let mut pmf = vec![0.0; odds.len() + 1];
    pmf[0] = 1.0;
    multiply_by_terms(terms.level, &mut pmf, 0, &p, &q);
    normalise(&mut pmf);
    pmf
}
