//! Certified upper bounds of tails at a fixed ε, at O(1) each after one pass.

use rayon::prelude::*;

use leakbound_simd::power_sums;

use super::base::Base;
use super::terms::Terms;

/// Terms of the power series: the bound stays below its remainder for θ up to about 1.
const TERMS: usize = 12;
/// Bounds are widened by this, relatively and absolutely: well above their rounding errors.
const SLACK: f64 = 1e-12;

/// Upper bounds of ln P(S ≥ v) for many v at one ε.
///
/// The smaller of two bounds, both proved:
///
/// - P(S ≥ v) ≤ e^{K(θ)−θv} min(1, m/(1−e^{−θ})) for every θ > 0, where m = e^{−var} I₀(var) bounds
///   every probability of the tilted law, var its variance: |E e^{iφS}| ≤ e^{−var(1−cos φ)},
///   integrated over φ. About 13 % above the tail at 10⁻², 0.4 % at 10⁻⁵⁰.
/// - For v ≥ E S + 1, the tail of Bin(n, E S/n): Hoeffding (1956), On the distribution of the number
///   of successes in independent trials, theorem 5.
///
/// # Examples
/// ```
/// use leakbound_math::poisson_binomial::{Bounds, Terms};
///
/// let terms = Terms::from_probabilities(&[0.1, 0.2, 0.3, 0.4].repeat(100))?;
/// let (bound, tail) = (Bounds::new(&terms, 0.0).log_upper(150), terms.tail(150, 0.0));
/// assert!(tail.log <= bound && bound < tail.log + 0.1);
/// # Ok::<(), leakbound_math::MathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The law at ε itself; none if no trial is open.
    base: Option<Base>,
    mean: f64,
    trials: u64,
    certain: u64,
}

impl Bounds {
    /// Bounds for the law of `terms` at ε: one pass.
    #[must_use]
    pub fn new(terms: &Terms, epsilon: f64) -> Self {
        let (trials, certain) = (terms.trials, terms.certain);
        if trials == 0 {
            return Self {
                base: None,
                mean: 0.0,
                trials,
                certain,
            };
        }
        let log_x = (epsilon + terms.shift).clamp(-300.0, 300.0);
        let counts = terms.counts.as_deref();
        let (odds, residuals) = (&terms.odds, &terms.residuals);
        let sums = power_sums(terms.level, odds, residuals, counts, log_x.exp(), TERMS);
        let mean = sums.mean.0;
        // Beyond ±300 the law at ±300 stands in, which is only right as a bound from above.
        let usable = epsilon + terms.shift <= 300.0;
        let base = usable.then(|| Base::at(log_x, sums));
        Self {
            base,
            mean,
            trials,
            certain,
        }
    }

    /// An upper bound of ln P(S ≥ v).
    #[must_use]
    pub fn log_upper(&self, v: i64) -> f64 {
        let Some(v) = u64::try_from(v)
            .ok()
            .and_then(|v| v.checked_sub(self.certain))
        else {
            return 0.0;
        };
        if v > self.trials {
            return f64::NEG_INFINITY;
        }
        let Some(base) = self.base.as_ref().filter(|_| v as f64 > self.mean) else {
            return 0.0;
        };
        let log = self.tilted(base, v as f64).min(self.binomial(v));
        (log + SLACK * (1.0 + log.abs())).min(0.0)
    }

    /// K(θ) − θv + ln min(1, m/(1−e^{−θ})) at the θ that the first cumulants suggest.
    fn tilted(&self, base: &Base, v: f64) -> f64 {
        let theta = base.towards(v).clamp(0.0, 1.0);
        let Some(remainder) = base.bound_remainder(theta) else {
            return 0.0;
        };
        if theta <= 0.0 {
            return 0.0;
        }
        let factor = (log_largest_probability(base.least_variance(theta))
            - (-(-theta).exp_m1()).ln())
        .min(0.0);
        (self.mean - v) * theta + base.log_mgf(theta).value + remainder + factor
    }

    /// The binomial tail with the same mean.
    fn binomial(&self, v: u64) -> f64 {
        let share = (self.mean / self.trials as f64 * (1.0 + SLACK)).min(1.0);
        if (v as f64) < self.mean * (1.0 + SLACK) + 1.0 {
            return 0.0;
        }
        Terms::from_grouped_probabilities(&[share], Some(&[self.trials]))
            .map_or(0.0, |terms| terms.tail(v.cast_signed(), 0.0).log_upper())
    }

    /// Whether P(S ≥ v) is at least a half, by the median: it lies within 1 of the mean, at or above
    /// its integer part (Jogdeo & Samuels 1968).
    fn is_central(&self, v: i64) -> bool {
        let floor = (self.mean * (1.0 - SLACK)).floor() as i64;
        self.base.is_some() && v <= floor + self.certain.cast_signed()
    }
}

impl Terms {
    /// For each v, whether P(S ≥ v) ≤ β for certain, rounding errors included; exact work is done
    /// only where the [`Bounds`] do not decide. In parallel on the current pool.
    #[must_use]
    pub fn at_most(&self, v: &[i64], epsilon: f64, beta: f64) -> Vec<bool> {
        let bounds = Bounds::new(self, epsilon);
        let log_beta = beta.ln();
        v.par_iter()
            .map(|&v| {
                if beta < 0.5 && bounds.is_central(v) {
                    return false;
                }
                bounds.log_upper(v) <= log_beta || self.tail(v, epsilon).log_upper() <= log_beta
            })
            .collect()
    }
}

/// Nodes of the trapezoidal rule for I₀.
const NODES: u32 = 64;

/// ln of e^{−x}I₀(x), from above.
fn log_largest_probability(x: f64) -> f64 {
    if x > 50.0 {
        // 1/√(2πx)·(1 + 1/(8x) + 9/(128x²) + …), the rest below 0.1/x².
        let series = 1.0 + 0.125 / x + 0.1 / (x * x);
        return series.ln() - 0.5 * (2.0 * std::f64::consts::PI * x).ln();
    }
    // The trapezoidal rule for I₀ errs upwards, by 2 Σ I_{kM}.
    let sum: f64 = (0..NODES)
        .map(|k| {
            let half_sine = (std::f64::consts::PI * f64::from(k) / f64::from(NODES)).sin();
            (-2.0 * x * half_sine * half_sine).exp()
        })
        .sum();
    (sum / f64::from(NODES)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_probability_is_continuous_and_above_the_asymptote() {
        let (below, above) = (
            log_largest_probability(50.0),
            log_largest_probability(50.000_001),
        );
        assert!((below - above).abs() < 1e-4 && below <= above);
        for x in [0.0, 0.5, 3.0, 40.0, 60.0, 1e6] {
            assert!(log_largest_probability(x) <= 0.0);
            let asymptote = -0.5 * (2.0 * std::f64::consts::PI * x).ln();
            assert!(log_largest_probability(x) > asymptote || x < 0.2);
        }
    }

    #[test]
    fn bounds_hold_and_are_close_in_the_tail() {
        let p: Vec<f64> = (0..2000)
            .map(|i| f64::from(2 * i + 1) / 4000.0 * 0.6)
            .collect();
        let terms = Terms::from_probabilities(&p).unwrap();
        let bounds = Bounds::new(&terms, 0.0);
        for v in [0, 300, 600, 601, 640, 700, 800, 1000, 1999, 2000, 2001] {
            let (bound, exact) = (bounds.log_upper(v), terms.tail(v, 0.0).log);
            assert!(exact <= bound, "{v}: {exact} above {bound}");
            assert!(
                !(660..900).contains(&v) || bound - exact < 0.15,
                "{v}: {exact} {bound}"
            );
        }
    }

    #[test]
    fn decisions_are_those_of_the_exact_tail() {
        let offsets: Vec<f64> = (0..500).map(|i| f64::from(i % 9) / 4.0 - 1.0).collect();
        let terms = Terms::from_offsets(&offsets).unwrap();
        let v: Vec<i64> = (-2..503).collect();
        for beta in [0.7, 0.05, 1e-9, 1e-200] {
            let decided = terms.at_most(&v, 0.25, beta);
            for (&v, &at_most) in v.iter().zip(&decided) {
                assert_eq!(
                    at_most,
                    terms.tail(v, 0.25).log_upper() <= beta.ln(),
                    "{v} {beta}"
                );
            }
        }
    }
}
