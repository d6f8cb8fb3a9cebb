//! All probabilities of few terms.

use leakbound_simd::{Level, multiply_by_terms};

use crate::error::MathError;

/// Coefficients times terms between two checks, about.
const AT_ONCE: usize = 1 << 24;

/// P(S = k) for k = 0…n, S = Σ Xᵢ with P(Xᵢ = 1) = `p[i]`.
///
/// # Accuracy
/// Every probability above 10⁻³⁰⁰ is relatively accurate to about 2n units in the last place at
/// worst, tails included: one term after the other is folded in, and nothing is ever subtracted.
///
/// # Cost
/// O(n²): a millisecond at n = 2000, a second at n = 60 000. For a tail use
/// [`Terms`](super::Terms), O(n).
///
/// # Errors
/// [`MathError::NotAProbabilityAt`] names the first entry outside \[0, 1\] or NaN.
///
/// # Source
/// The direct convolution; see Biscarri, Zhao & Brunner (2018), A simple and fast method for
/// computing the Poisson binomial distribution function, section 2.
///
/// # Examples
/// ```
/// use leakbound_math::poisson_binomial::pmf;
///
/// assert_eq!(pmf(&[0.5, 0.5, 1.0])?, [0.0, 0.25, 0.5, 0.25]);
/// # Ok::<(), leakbound_math::MathError>(())
/// ```
pub fn pmf(p: &[f64]) -> Result<Vec<f64>, MathError> {
    pmf_until(p, || Ok(()))
}

/// The same as [`pmf`], unless `check` fails, which is asked every few hundredths of a second.
///
/// # Errors
/// [`MathError::NotAProbabilityAt`] as in [`pmf`], or that of `check`.
///
/// # Examples
/// ```
/// use leakbound_math::MathError;
/// use leakbound_math::poisson_binomial::pmf_until;
///
/// let mut looks = 0;
/// let found = pmf_until(&[0.5; 10_000], || {
///     looks += 1;
///     Ok::<(), MathError>(())
/// })?;
/// assert_eq!(found.len(), 10_001);
/// assert!(looks > 1);
/// # Ok::<(), MathError>(())
/// ```
pub fn pmf_until<E: From<MathError>>(
    p: &[f64],
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Vec<f64>, E> {
    for (index, &value) in p.iter().enumerate() {
        if !(0.0..=1.0).contains(&value) {
            return Err(MathError::NotAProbabilityAt {
                name: "p",
                index,
                value,
            }
            .into());
        }
    }
    let q: Vec<f64> = p.iter().map(|p| 1.0 - p).collect();
    let mut pmf = vec![0.0; p.len() + 1];
    pmf[0] = 1.0;
    let size = (AT_ONCE / p.len().max(1)).max(1);
    for (index, (p, q)) in p.chunks(size).zip(q.chunks(size)).enumerate() {
        check()?;
        multiply_by_terms(Level::best(), &mut pmf, index * size, p, q);
    }
    Ok(pmf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terms_give_certainty_of_zero() {
        assert_eq!(pmf(&[]).unwrap(), [1.0]);
    }

    #[test]
    fn equal_terms_give_the_binomial() {
        let pmf = pmf(&[0.25; 40]).unwrap();
        let mut expected = 0.75_f64.powi(40);
        for (k, &probability) in pmf.iter().enumerate() {
            assert!((probability / expected - 1.0).abs() < 1e-13, "{k}");
            expected *= (40 - k) as f64 / (k + 1) as f64 / 3.0;
        }
    }

    #[test]
    fn the_offending_entry_is_named() {
        let error = pmf(&[0.5, 0.5, 1.5]).unwrap_err();
        assert_eq!(
            error,
            MathError::NotAProbabilityAt {
                name: "p",
                index: 2,
                value: 1.5
            }
        );
        assert!(matches!(
            pmf(&[f64::NAN]),
            Err(MathError::NotAProbabilityAt { index: 0, .. })
        ));
    }
}
