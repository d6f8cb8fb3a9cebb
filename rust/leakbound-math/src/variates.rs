//! Gamma and binomial numbers of a stream.
//!
//! Both are drawn by rejection, so that their law is exact but for the rounding of a double, at a
//! cost that does not grow with shape or trials.

use crate::binomial::Binomial;
use crate::probability::Probability;
use crate::stream::Stream;

/// Gamma numbers of at most this shape are sums of exponential ones.
const FEW: u64 = 4;
/// Binomial numbers whose mean is smaller are inverted term by term: rejection needs this mean.
const SMALL_MEAN: f64 = 10.0;

/// A gamma number of a whole shape and scale 1: the sum of so many exponential ones.
///
/// Domain: every shape; 0 gives 0. Cost: about 20 ns. Source: G. Marsaglia and W. W. Tsang, "A
/// simple method for generating gamma variables" (2000); up to shape 4 minus the logarithm of a
/// product of uniform numbers.
pub fn gamma(stream: &mut Stream, shape: u64) -> f64 {
    if shape <= FEW {
        let product: f64 = (0..shape).map(|_| stream.uniform()).product();
        return -product.ln();
    }
    let d = shape as f64 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let (v, square, u) = (root * root * root, x * x, stream.uniform());
        // The second condition is the exact one, and the first implies it.
        if u < 1.0 - 0.0331 * square * square || u.ln() < 0.5 * square + d * (1.0 - v + v.ln()) {
            return d * v;
        }
    }
}

/// A binomial number: how many of `trials` independent trials of probability `p` succeed.
///
/// Domain: p in [0, 1]; what is below counts as 0 and what is above as 1. Cost: about 20 ns, up to
/// 100 where the mean of the rarer outcome is below 10. Source: W. Hörmann, "The generation of
/// binomial random variates" (1993), algorithm BTRS; for small means the recursion of probabilities
/// (V. Kachitvichyanukul and B. W. Schmeiser, "Binomial random variate generation", 1988, BINV).
pub fn binomial(stream: &mut Stream, trials: u64, p: f64) -> u64 {
    if trials == 0 || p <= 0.0 {
        return 0;
    }
    if p >= 1.0 {
        return trials;
    }
    if p > 0.5 {
        return trials - rarer(stream, trials, 1.0 - p);
    }
    rarer(stream, trials, p)
}

/// The same for p in (0, ½].
fn rarer(stream: &mut Stream, trials: u64, p: f64) -> u64 {
    if trials == 1 {
        return u64::from(stream.uniform() < p);
    }
    if trials as f64 * p < SMALL_MEAN {
        inverted(stream, trials, p)
    } else {
        transformed(stream, trials, p)
    }
}

/// One uniform number less P(X = 0), P(X = 1), … until it is used up.
fn inverted(stream: &mut Stream, trials: u64, p: f64) -> u64 {
    let n = trials as f64;
    let odds = p / (1.0 - p);
    let none = (n * (-p).ln_1p()).exp();
    loop {
        let (mut left, mut chance) = (stream.uniform(), none);
        for count in 0..=trials {
            if left < chance {
                return count;
            }
            left -= chance;
            chance *= odds * (n - count as f64) / (count as f64 + 1.0);
        }
        // Rounding alone leads here.
    }
}

/// A ratio of uniform numbers, accepted in proportion to P(X = k); it needs a mean of 10 or more.
fn transformed(stream: &mut Stream, trials: u64, p: f64) -> u64 {
    let n = trials as f64;
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let centre = n * p + 0.5;
    let squeeze = 0.92 - 4.2 / b;
    loop {
        let (u, v) = (stream.uniform() - 0.5, stream.uniform());
        let side = 0.5 - u.abs();
        let k = ((2.0 * a / side + b) * u + centre).floor();
        if side >= 0.07 && v <= squeeze {
            return k as u64;
        }
        if k < 0.0 || k > n {
            continue;
        }
        let alpha = (2.83 + 5.1 / b) * deviation;
        let scaled = v * alpha / (a / (side * side) + b);
        if scaled.ln() <= ln_ratio_to_mode(trials, p, k as u64) {
            return k as u64;
        }
    }
}

/// ln P(X = k) less its value at the mode.
fn ln_ratio_to_mode(trials: u64, p: f64, k: u64) -> f64 {
    let Ok(p) = Probability::new(p) else {
        return 0.0;
    };
    let law = Binomial::new(trials, p);
    let mode = ((trials as f64 + 1.0) * p.p()).floor() as u64;
    law.ln_pmf(k) - law.ln_pmf(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;

    fn stream(index: u64) -> Stream {
        Stream::new(Purpose::Rankings, 0, index)
    }

    /// Largest distance of the distribution of `draws` from `cdf`, in units of 1/√n.
    fn distance(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        draws.sort_by(f64::total_cmp);
        let n = draws.len() as f64;
        let gaps = draws.iter().enumerate().map(|(i, &x)| {
            let (below, at) = (i as f64 / n, (i + 1) as f64 / n);
            (cdf(x) - below).abs().max((cdf(x) - at).abs())
        });
        gaps.fold(0.0, f64::max) * n.sqrt()
    }

    /// P(Gamma(shape) ≤ x): that a Poisson number of mean x is at least the shape.
    fn gamma_cdf(shape: u64, x: f64) -> f64 {
        let terms = (0..shape).scan(1.0, |term, i| {
            let here = *term;
            *term *= x / (i + 1) as f64;
            Some(here)
        });
        1.0 - (-x).exp() * terms.sum::<f64>()
    }

    #[test]
    fn gamma_numbers_have_their_distribution() {
        for shape in [1, 2, 3, 4, 5, 6, 9, 30, 200] {
            let mut stream = stream(shape);
            let draws = (0..100_000).map(|_| gamma(&mut stream, shape)).collect();
            // Kolmogorov's limit: 2.2 is exceeded once in 8,000; wrong constants give 10 and more.
            let far = distance(draws, |x| gamma_cdf(shape, x));
            assert!(far < 2.2, "{shape}: {far}");
        }
        assert_eq!(gamma(&mut stream(0), 0), 0.0);
    }

    #[test]
    fn binomial_numbers_have_their_law() {
        for trials in [1, 2, 5, 19, 40, 300, 5_000] {
            for p in [1e-3, 0.03, 0.25, 0.5, 0.6, 0.98] {
                let mut stream = stream(trials);
                let mut seen = vec![0_u32; trials as usize + 1];
                for _ in 0..100_000 {
                    seen[binomial(&mut stream, trials, p) as usize] += 1;
                }
                let law = Binomial::new(trials, Probability::new(p).unwrap());
                let (mut square, mut cells) = (0.0, 0.0);
                let (mut pooled, mut expected) = (0.0, 0.0);
                for (count, &times) in (0..).zip(&seen) {
                    pooled += f64::from(times);
                    expected += 1e5 * law.pmf(count);
                    if expected >= 20.0 {
                        square += (pooled - expected) * (pooled - expected) / expected;
                        cells += 1.0;
                        (pooled, expected) = (0.0, 0.0);
                    }
                }
                // χ² of about `cells` degrees: five standard deviations above its mean.
                assert!(
                    square < cells + 5.0 * (2.0 * cells + 4.0_f64).sqrt(),
                    "{trials} {p}: {square} of {cells}"
                );
            }
        }
    }

    #[test]
    fn millions_of_trials_have_their_mean_and_variance() {
        for (trials, p) in [(4_000_000_000, 0.3), (50_000_000, 1e-7), (1 << 40, 0.999)] {
            let (mut stream, n) = (stream(trials), trials as f64);
            let (mean, variance) = (n * p, n * p * (1.0 - p));
            let scaled: Vec<f64> = (0..20_000)
                .map(|_| (binomial(&mut stream, trials, p) as f64 - mean) / variance.sqrt())
                .collect();
            let average = scaled.iter().sum::<f64>() / 2e4;
            let square = scaled.iter().map(|x| x * x).sum::<f64>() / 2e4;
            assert!(average.abs() < 0.035, "{average}");
            assert!((square - 1.0).abs() < 0.05, "{square}");
        }
    }

    #[test]
    fn what_is_certain_is_drawn() {
        let mut stream = stream(1);
        assert_eq!(binomial(&mut stream, 0, 0.3), 0);
        assert_eq!(binomial(&mut stream, 7, 0.0), 0);
        assert_eq!(binomial(&mut stream, 7, 1.0), 7);
        assert_eq!(binomial(&mut stream, 7, 1.5), 7);
        assert_eq!(binomial(&mut stream, 7, -0.5), 0);
        assert!(binomial(&mut stream, u64::MAX, 0.5) > 1 << 62);
    }
}
