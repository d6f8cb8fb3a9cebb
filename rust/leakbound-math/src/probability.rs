//! A probability that knows its complement as well as itself.

use std::cmp::Ordering;

use crate::error::MathError;
use crate::logistic::{expit_both, logit_of_smaller};

/// A probability p together with q = 1 − p, each to full relative precision.
///
/// A double near 1 holds 1 − p to 16 decimals only; a bound on ε = logit p needs more. The smaller
/// of the two numbers *is* the probability, exactly; the other is it rounded.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Probability {
    p: f64,
    q: f64,
}

/// Ulps that [`Probability::next_down`] moves by: more than the rounding of a short formula with
/// two elementary functions in it, each within an ulp.
const OUTWARD_ULPS: u32 = 8;

impl Probability {
    /// The probability 0.
    pub const ZERO: Self = Self { p: 0.0, q: 1.0 };
    /// The probability ½.
    pub const HALF: Self = Self { p: 0.5, q: 0.5 };
    /// The probability 1.
    pub const ONE: Self = Self { p: 1.0, q: 0.0 };

    /// The probability p; q = 1 − p, rounded.
    pub fn new(p: f64) -> Result<Self, MathError> {
        check("p", p)?;
        Ok(Self { p, q: 1.0 - p })
    }

    /// The probability 1 − q; for q near 0 it holds what a double p cannot.
    pub fn from_complement(q: f64) -> Result<Self, MathError> {
        check("q", q)?;
        Ok(Self { p: 1.0 - q, q })
    }

    /// The probability σ(x) = 1 / (1 + e^{−x}); ±∞ give 1 and 0. p and q are within 4e-16,
    /// relative, of σ(x) and σ(−x).
    pub fn from_logit(x: f64) -> Result<Self, MathError> {
        if x.is_nan() {
            return Err(MathError::NotANumber { name: "logit" });
        }
        let (p, q) = expit_both(x);
        Ok(Self { p, q })
    }

    /// The probability of which p and q are both known to full relative precision: the smaller one
    /// is kept.
    pub(crate) fn from_parts(p: f64, q: f64) -> Self {
        if p <= q {
            Self { p, q: 1.0 - p }
        } else {
            Self { p: 1.0 - q, q }
        }
    }

    /// p.
    pub const fn p(self) -> f64 {
        self.p
    }

    /// q = 1 − p, to full relative precision.
    pub const fn q(self) -> f64 {
        self.q
    }

    /// The probability of the other outcome: p and q change places.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self {
            p: self.q,
            q: self.p,
        }
    }

    /// logit p = ln p − ln q, to 5e-16 relative for every p, near ½ and near 1 too; ±∞ at the ends.
    pub fn logit(self) -> f64 {
        if self.p <= self.q {
            logit_of_smaller(self.p, self.q)
        } else {
            -logit_of_smaller(self.q, self.p)
        }
    }

    /// ln p to 2e-16 relative, for p near 1 too.
    pub fn ln_p(self) -> f64 {
        if self.p <= self.q {
            self.p.ln()
        } else {
            (-self.q).ln_1p()
        }
    }

    /// ln q to 2e-16 relative, for p near 0 too.
    pub fn ln_q(self) -> f64 {
        self.complement().ln_p()
    }

    /// σ(logit p + step): the odds p/q times e^step. 0 and 1 stay.
    ///
    /// Domain: every step, ±∞ included. Accuracy: p and q within 5e-16, relative,
    /// for |step| ≤ 1, however large logit p is; 4e-16 · (1 + |logit p| + |step|) beyond. Nearest,
    /// no direction.
    #[must_use]
    pub fn shift_logit(self, step: f64) -> Self {
        if self == Self::ZERO || self == Self::ONE {
            return self;
        }
        if step.abs() > 1.0 {
            let logit = self.logit() + step;
            let (p, q) = expit_both(logit);
            return Self::from_parts(p, q);
        }
        let growth = step.exp_m1();
        let scale = 1.0 + self.p * growth;
        Self::from_parts((self.p + self.p * growth) / scale, self.q / scale)
    }

    /// A probability eight ulps (of the smaller of p and q) below this one: what rounds a computed
    /// lower limit outward. 0 stays 0.
    #[must_use]
    pub fn next_down(self) -> Self {
        if self.p <= self.q {
            let p = (0..OUTWARD_ULPS)
                .fold(self.p, |p, _| p.next_down())
                .max(0.0);
            Self { p, q: 1.0 - p }
        } else {
            let q = (0..OUTWARD_ULPS).fold(self.q, |q, _| q.next_up());
            let p = 1.0 - q;
            // 1 − p is exact for p ≥ ½, so it tells whether p was rounded up.
            let p = if 1.0 - p < q { p.next_down() } else { p };
            Self { p, q }
        }
    }
}

/// By p, and where doubles cannot tell two p apart, by q.
impl PartialOrd for Probability {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let by_p = self.p.partial_cmp(&other.p)?;
        Some(by_p.then(other.q.partial_cmp(&self.q)?))
    }
}

fn check(name: &'static str, value: f64) -> Result<(), MathError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(MathError::NotAProbability { name, value })
    }
}
