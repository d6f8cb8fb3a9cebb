//! The end of the range: all open trials succeed.

use leakbound_simd::{LogRatio, log_ratio};

use super::exact::{self, UNIT};
use super::tail_value::Tail;
use super::terms::Terms;
use crate::error::MathError;

/// ln G(u) is concave and increasing with slope in (0, 1], so Newton from any start is on one side
/// after a step and then converges quadratically; the range of u is below 2000.
const MOST_STEPS: u32 = 100;

/// The odds of failure 1/Eᵢ, from which P(all succeed) = exp(−G(−ε)), G(u) = Σ ln(1 + eᵘ/Eᵢ).
pub(super) struct AllSucceed<'a> {
    terms: &'a Terms,
    inverses: Vec<f64>,
    residuals: Vec<f32>,
}

impl<'a> AllSucceed<'a> {
    pub(super) fn of(terms: &'a Terms) -> Self {
        let inverses: Vec<f64> = terms.odds.iter().map(|e| e.recip()).collect();
        let residuals = (terms.odds.iter().zip(&inverses).zip(&terms.residuals))
            .map(|((e, inverse), residual)| (-inverse).mul_add(*e, 1.0) as f32 - residual)
            .collect();
        Self {
            terms,
            inverses,
            residuals,
        }
    }

    /// P(all succeed) at ε.
    pub(super) fn tail(&self, epsilon: f64) -> Tail {
        let log = -self.sum(-epsilon).0;
        Tail::from_log(log, 8.0 * UNIT * (1.0 + log.abs()))
    }

    /// The ε with ln P(all succeed) = `log_beta`, rounded down.
    pub(super) fn epsilon(&self, log_beta: f64) -> Result<f64, MathError> {
        let target = -log_beta;
        let per_trial = target / self.terms.trials as f64;
        let mut u = self.terms.typical_log_odds() + per_trial.exp_m1().ln();
        for _ in 0..MOST_STEPS {
            let (sum, slope) = self.sum(u);
            let step = (target / sum).ln() * sum / slope;
            // G is right to a few units in the last place: no step can be surer than this.
            if step.abs() <= 8.0 * UNIT * (1.0 + u.abs() + sum / slope) {
                let doubt = (16.0 * UNIT * target + (sum - target).abs()) / slope;
                return Ok((-u - 2.0 * doubt).next_down());
            }
            u += step.clamp(-50.0, 50.0);
        }
        Err(MathError::NotConverged {
            what: "the epsilon of the last tail",
            steps: MOST_STEPS,
        })
    }

    /// G(u) and its derivative.
    fn sum(&self, u: f64) -> (f64, f64) {
        let y = u.exp();
        let LogRatio { log, mean } = match &self.terms.counts {
            None => log_ratio(self.terms.level, &self.inverses, &self.residuals, 0.0, y),
            Some(counts) => {
                exact::counted_log_ratio(&self.inverses, &self.residuals, counts, 0.0, y)
            }
        };
        if !(log.0 + mean).is_finite() || y < f64::MIN_POSITIVE {
            return self.sum_of_logarithms(u);
        }
        let log_y = exact::log(y);
        let lacking = ((u - log_y.0) - log_y.1) * mean;
        (log.0 + (log.1 + lacking), mean)
    }

    /// G(u) and its derivative where eᵘ/Eᵢ may overflow.
    fn sum_of_logarithms(&self, u: f64) -> (f64, f64) {
        let (mut sum, mut error, mut slope) = (0.0, 0.0, 0.0);
        for (i, e) in self.terms.odds.iter().enumerate() {
            let count = self.terms.counts.as_ref().map_or(1.0, |counts| counts[i]);
            let logit = u - e.ln();
            let softplus = logit.max(0.0) + (-logit.abs()).exp().ln_1p();
            let (next, rounding) = exact::two_sum(sum, count * softplus);
            sum = next;
            if sum == f64::INFINITY {
                return (sum, self.terms.trials as f64);
            }
            error += rounding;
            slope += count / (1.0 + (-logit).exp());
        }
        (sum + error, slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tail_inverts_at_every_level() {
        for n in 1..40 {
            let offsets: Vec<f64> = (0..n)
                .map(|i| f64::from(i * 37 % 101) / 10.0 - 5.0)
                .collect();
            let terms = Terms::from_offsets(&offsets).unwrap();
            for log_beta in [-690.0_f64, -230.0, -99.5, -17.25, -1.0, -1e-3, -1e-9] {
                let epsilon = AllSucceed::of(&terms).epsilon(log_beta).unwrap();
                let log = AllSucceed::of(&terms).tail(epsilon).log;
                assert!(log <= log_beta * (1.0 - 1e-15), "{n} {log_beta}");
                assert!(
                    (log - log_beta).abs() <= 1e-13 * log_beta.abs(),
                    "{n} {log_beta}: {log}"
                );
            }
        }
    }
}
