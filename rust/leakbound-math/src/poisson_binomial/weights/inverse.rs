//! The largest ε of a weighted sum whose tail is still at most β.

use super::Weighted;
use crate::error::{MathError, check_level};
use crate::poisson_binomial::tail_value::Tail;

/// Secants, which may be short; the rest are bisections, of which 80 end any search.
const MOST_STEPS: u32 = 200;

impl Weighted {
    /// The largest ε with P_ε(S ≥ v) ≤ β, rounded down; −∞ and +∞ as
    /// [`Terms::epsilon`](crate::poisson_binomial::Terms::epsilon), and −∞ where it is below −900.
    /// Unlike there every ε has its own tilted law, so the cost is that of some eight tails.
    pub fn epsilon(&self, v: i64, beta: f64) -> Result<f64, MathError> {
        check_level("beta", beta)?;
        if v <= self.certain.cast_signed() {
            return Ok(f64::NEG_INFINITY);
        }
        if v.saturating_sub(self.certain.cast_signed()) > self.total.cast_signed() {
            return Ok(f64::INFINITY);
        }
        let log_beta = beta.ln();
        // −√(−2 ln P) is nearly linear and increasing in ε.
        let deviate = |tail: Tail| -(-2.0 * tail.log).max(0.0).sqrt();
        let target = -(-2.0 * log_beta).sqrt();
        let (lowest, highest) = (self.within(f64::MIN), self.within(f64::MAX));
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let (mut epsilon, mut slope): (f64, f64) = (0.0_f64.clamp(lowest, highest), 1.0);
        let mut earlier: Option<(f64, f64)> = None;
        for _ in 0..MOST_STEPS {
            let tail = self.tail(v, epsilon)?;
            let here = deviate(tail);
            if tail.log_upper() <= log_beta {
                low = epsilon
            } else {
                high = epsilon
            }
            if let Some((before, there)) = earlier {
                let secant = (here - there) / (epsilon - before);
                slope = if secant > 0.0 && secant.is_finite() {
                    secant
                } else {
                    slope
                };
            }
            earlier = Some((epsilon, here));
            let doubt = 2.0 * tail.relative_error / (target * slope).abs();
            let lacking = (target - here) / slope;
            let width = (1e-15 * (1.0 + epsilon.abs())).max(4.0 * doubt);
            let proved = low.to_bits() == epsilon.to_bits();
            let ends = if proved { highest } else { lowest };
            if proved && (lacking.abs() <= width || high - low <= width) || epsilon == ends {
                return Ok(low);
            }
            let next = epsilon + lacking - doubt;
            epsilon = if low < next && next < high {
                next
            } else {
                match (low.is_finite(), high.is_finite()) {
                    (true, true) => 0.5 * low + 0.5 * high,
                    (true, false) => (low + 1.0 + low.abs()).min(highest),
                    _ => (high - 1.0 - high.abs()).max(lowest),
                }
            };
        }
        // Rounding hides where the tail is β, as it may for β near 1: the last ε that was proved.
        Ok(low)
    }
}
