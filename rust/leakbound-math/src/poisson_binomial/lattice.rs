//! Weighted sums Σ tᵢXᵢ with real weights in [0, 1], bracketed by whole ones.

use super::tail_value::Tail;
use super::weights::Weighted;
use crate::error::MathError;

/// Steps of the lattice per unit: a power of two, so that scaling by it is exact.
const STEPS: f64 = 4096.0;

/// P(Σ tᵢXᵢ ≥ v) between two tails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BracketedTail {
    /// With the weights rounded down: at most the tail.
    pub lower: Tail,
    /// With the weights rounded up: at least the tail. This is the one to report as a p-value.
    pub upper: Tail,
}

/// Independent Bernoulli terms with real weights in \[0, 1\]: S = Σ tᵢXᵢ.
///
/// Rounding every tᵢ up to a multiple of 1/4096 can only enlarge S, rounding down only shrink it; the
/// two tails are exact and enclose P(S ≥ v). They agree when all weights are such multiples. (There
/// is no saddle-point series whose error is proved for weights without a lattice.)
///
/// # Examples
/// ```
/// use leakbound_math::poisson_binomial::RealWeighted;
///
/// let sum = RealWeighted::from_probabilities(&[0.5, 0.5], &[1.0 / 3.0, 2.0 / 3.0])?;
/// let tail = sum.tail(0.99, 0.0)?;
/// assert_eq!((tail.lower.value, tail.upper.value), (0.25, 0.25));
/// # Ok::<(), leakbound_math::MathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RealWeighted {
    down: Weighted,
    up: Weighted,
}

impl RealWeighted {
    /// Terms with probabilities `p` and weights `weights`.
    ///
    /// # Errors
    /// [`MathError::WeightOutOfRange`] names the first weight outside \[0, 1\]; else those of
    /// [`Weighted::from_probabilities`].
    pub fn from_probabilities(p: &[f64], weights: &[f64]) -> Result<Self, MathError> {
        let (down, up) = on_lattice(weights)?;
        Ok(Self {
            down: Weighted::from_probabilities(p, &down)?,
            up: Weighted::from_probabilities(p, &up)?,
        })
    }

    /// Terms with pᵢ = σ(ε + `offsets[i]`) for an ε named later.
    ///
    /// # Errors
    /// [`MathError::WeightOutOfRange`]; else those of [`Weighted::from_offsets`].
    pub fn from_offsets(offsets: &[f64], weights: &[f64]) -> Result<Self, MathError> {
        let (down, up) = on_lattice(weights)?;
        Ok(Self {
            down: Weighted::from_offsets(offsets, &down)?,
            up: Weighted::from_offsets(offsets, &up)?,
        })
    }

    /// P(S ≥ v) at ε, from below and from above.
    ///
    /// # Errors
    /// [`MathError::NotANumber`] if v is NaN; [`MathError::NotConverged`], a defect.
    pub fn tail(&self, v: f64, epsilon: f64) -> Result<BracketedTail, MathError> {
        let v = steps(v)?;
        Ok(BracketedTail {
            lower: self.down.tail(v, epsilon)?,
            upper: self.up.tail(v, epsilon)?,
        })
    }

    /// An ε with P_ε(S ≥ v) ≤ β for certain: the largest one for the weights rounded up.
    ///
    /// # Errors
    /// [`MathError::NotANumber`] if v is NaN; else those of [`Weighted::epsilon`].
    pub fn epsilon(&self, v: f64, beta: f64) -> Result<f64, MathError> {
        self.up.epsilon(steps(v)?, beta)
    }
}

/// The smallest number of steps that is at least v.
fn steps(v: f64) -> Result<i64, MathError> {
    if v.is_nan() {
        return Err(MathError::NotANumber { name: "v" });
    }
    Ok((v * STEPS).ceil() as i64)
}

/// The weights rounded down and up, in steps.
fn on_lattice(weights: &[f64]) -> Result<(Vec<u64>, Vec<u64>), MathError> {
    if let Some(index) = weights.iter().position(|t| !(0.0..=1.0).contains(t)) {
        return Err(MathError::WeightOutOfRange {
            index,
            value: weights[index],
        });
    }
    let scaled = weights.iter().map(|t| t * STEPS);
    Ok(scaled.map(|t| (t.floor() as u64, t.ceil() as u64)).unzip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracket_encloses_the_tail_of_a_finer_lattice() {
        let n: usize = 40;
        let weights: Vec<f64> = (0..n).map(|i| ((i * 37) % 100) as f64 / 100.0).collect();
        let hundredths: Vec<u64> = (0..n as u64).map(|i| (i * 37) % 100).collect();
        let p: Vec<f64> = (0..n).map(|i| 0.1 + 0.02 * i as f64).collect();
        let exact = Weighted::from_probabilities(&p, &hundredths).unwrap();
        let bracket = RealWeighted::from_probabilities(&p, &weights).unwrap();
        for v in [500, 900, 1100, 1300, 1600] {
            let tail = exact.tail(v, 0.0).unwrap().value;
            let BracketedTail { lower, upper } = bracket.tail(v as f64 / 100.0, 0.0).unwrap();
            assert!(lower.value <= tail * (1.0 + 1e-14), "{v}");
            assert!(tail.ln() <= upper.log_upper(), "{v}");
            assert!(
                upper.value - lower.value < 0.02,
                "{v}: {} {}",
                lower.value,
                upper.value
            );
        }
    }

    #[test]
    fn the_inverse_is_proved() {
        let weights: Vec<f64> = (0..200).map(|i| f64::from(i % 11) / 10.0).collect();
        let offsets: Vec<f64> = (0..200).map(|i| f64::from(i % 7) / 4.0 - 0.75).collect();
        let sum = RealWeighted::from_offsets(&offsets, &weights).unwrap();
        let epsilon = sum.epsilon(70.0, 1e-3).unwrap();
        assert!(sum.tail(70.0, epsilon).unwrap().upper.log_upper() <= 1e-3_f64.ln());
        assert!(sum.tail(70.0, epsilon + 1e-9).unwrap().upper.value > 1e-3);
    }

    #[test]
    fn the_offending_weight_is_named() {
        let error = RealWeighted::from_probabilities(&[0.5; 3], &[0.5, 1.25, 2.0]).unwrap_err();
        assert_eq!(
            error,
            MathError::WeightOutOfRange {
                index: 1,
                value: 1.25
            }
        );
    }
}
