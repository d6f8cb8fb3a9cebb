//! The tails of all nested prefixes at one ε, by a window of probabilities that moves with the mean.

use leakbound_simd::{dot, multiply_by_terms};

use super::base::{Base, log_ratio_to};
use super::contour::Contour;
use super::exact::{self, two_product, two_sum};
use super::terms::Terms;
use super::tilted::DIRECT;
use crate::error::MathError;

/// The window reaches this many standard deviations (and `MARGIN` more) beyond mean and v: what
/// Bennett's inequality leaves outside is below e⁻³⁶.
const REACH: f64 = 8.8;
const MARGIN: f64 = 30.0;
/// A window serves while v is this near the tilted mean and the law this little wider than at first.
const NEAR: f64 = 2.5;
const WIDER: f64 = 1.6;

/// The tilted law of a prefix: its probabilities around the mean, and how to undo the tilt.
struct Window<'a> {
    terms: &'a Terms,
    /// Terms taken in.
    length: usize,
    /// All odds are multiplied by x, and by y = e^ε untilted.
    x: f64,
    y: f64,
    theta: f64,
    /// ln Π (1+Ex)/(1+Ey) over the terms taken in, with its error.
    log_factor: (f64, f64),
    /// P̃(S = low + k).
    pmf: Vec<f64>,
    low: i64,
    mean: f64,
    variance: f64,
    first_variance: f64,
    /// e^{−|θ|j}, and the same from the far end.
    discounts: Vec<f64>,
    reversed: Vec<f64>,
}

/// ln P(Σ_{i<r} Xᵢ ≥ `v[r−1]`) for r = 1…n, P(Xᵢ = 1) = σ(ε + `offsets[i]`).
///
/// # Accuracy
/// About 10⁻¹³·(1 + |ln P|). A window of tilted probabilities is convolved with one term after the
/// other; once v has left it, it is built anew from the contour of that prefix. Reweighting the old
/// window instead would be wrong by O(1): what was trimmed from it matters under another tilt.
///
/// # Cost
/// O(n·√n) where v follows the mean at a distance that grows like √r, as it does at a fixed level;
/// one pass more over the prefix for every jump of v by more than some standard deviations.
///
/// # Errors
/// [`MathError::LengthMismatch`]; those of [`Terms::from_offsets`]; [`MathError::NotFiniteAt`] for
/// an infinite offset.
///
/// # Examples
/// ```
/// use leakbound_math::poisson_binomial::prefix_log_tails;
///
/// let log_tails = prefix_log_tails(&[0.0, 0.0, 0.0], &[1, 1, 3], 0.0)?;
/// for (log, tail) in log_tails.iter().zip([0.5_f64, 0.75, 0.125]) {
///     assert!((log - tail.ln()).abs() < 1e-15);
/// }
/// # Ok::<(), leakbound_math::MathError>(())
/// ```
pub fn prefix_log_tails(offsets: &[f64], v: &[i64], epsilon: f64) -> Result<Vec<f64>, MathError> {
    let (expected, got) = (offsets.len(), v.len());
    if expected != got {
        return Err(MathError::LengthMismatch {
            name: "v",
            like: "offsets",
            expected,
            got,
        });
    }
    if let Some(index) = offsets.iter().position(|a| a.is_infinite()) {
        return Err(MathError::NotFiniteAt {
            name: "offsets",
            index,
            value: offsets[index],
        });
    }
    let terms = Terms::from_offsets(offsets)?;
    let epsilon = epsilon + terms.shift;
    let mut start = None;
    let mut window: Option<Window> = None;
    let mut logs = Vec::with_capacity(v.len());
    for (i, &v) in v.iter().enumerate() {
        if let Some(window) = &mut window {
            window.take_in();
        }
        if v <= 0 || v as u64 > i as u64 + 1 {
            logs.push(if v <= 0 { 0.0 } else { f64::NEG_INFINITY });
            continue;
        }
        if v as u64 == i as u64 + 1 {
            logs.push(terms.prefix(i + 1).tail(v, epsilon - terms.shift).log);
            continue;
        }
        if window.as_ref().is_none_or(|window| !window.serves(v)) {
            let prefix = terms.prefix(i + 1);
            window = Window::new(&terms, &prefix, v, epsilon, start);
            start = window.as_ref().map(|window| window.x.ln());
            if window.is_none() {
                logs.push(prefix.tail(v, epsilon - terms.shift).log);
                continue;
            }
        }
        logs.push(
            window
                .as_ref()
                .map_or(f64::NAN, |window| window.log_tail(v)),
        );
    }
    Ok(logs)
}

impl Terms {
    /// The first `length` terms.
    fn prefix(&self, length: usize) -> Self {
        Self {
            level: self.level,
            odds: self.odds[..length].to_vec(),
            residuals: self.residuals[..length].to_vec(),
            counts: None,
            trials: length as u64,
            certain: 0,
            shift: self.shift,
            raised: self.raised,
        }
    }
}

impl<'a> Window<'a> {
    /// The window around `v` for `prefix`; none where the prefix is short or ε extreme.
    fn new(
        terms: &'a Terms,
        prefix: &Terms,
        v: i64,
        epsilon: f64,
        start: Option<f64>,
    ) -> Option<Self> {
        if prefix.trials <= DIRECT || epsilon.abs() > 600.0 {
            return None;
        }
        let centre = v as f64;
        let base = Base::near(prefix, centre, start, |_, _| 0.0);
        let contour = Contour::new(prefix.level, &base, centre);
        let x = base.x * base.d.exp();
        let log_x = exact::log(x);
        let theta = (log_x.0 - epsilon) + log_x.1;
        let log = log_ratio_to(prefix, x, (epsilon, 0.0)).log;
        let reach = (REACH * base.variance.sqrt() + MARGIN)
            .min(contour.reach() - 1.0)
            .floor();
        let low = (centre - reach).max(0.0);
        let high = (centre + reach).min(prefix.trials as f64);
        let mut pmf = vec![0.0; (high - low) as usize + 1];
        contour.window(low - centre, &mut pmf);
        let mut window = Self {
            terms,
            length: prefix.odds.len(),
            x,
            y: epsilon.exp(),
            theta,
            log_factor: (-log.0, -log.1),
            pmf,
            low: low as i64,
            mean: centre,
            variance: base.variance,
            first_variance: base.variance,
            discounts: Vec::new(),
            reversed: Vec::new(),
        };
        window.set_discounts();
        Some(window)
    }

    /// e^{−|θ|j} as far as it is above e⁻⁴⁴ or a window can reach.
    fn set_discounts(&mut self) {
        let steepness = self.theta.abs();
        let widest = WIDER * (2.0 * REACH + NEAR) * self.first_variance.sqrt() + 4.0 * MARGIN;
        let length = (44.0 / steepness).min(widest) as usize + 2;
        self.discounts = (0..length).map(|j| (-steepness * j as f64).exp()).collect();
        self.reversed = self.discounts.iter().rev().copied().collect();
    }

    /// Takes in the next term.
    fn take_in(&mut self) {
        let e = self.terms.odds[self.length];
        self.length += 1;
        let (o, u) = (e * self.x, e * self.y);
        let q = 1.0 / (1.0 + o);
        let p = o * q;
        let degree = self.pmf.len() - 1;
        self.pmf.push(0.0);
        multiply_by_terms(self.terms.level, &mut self.pmf, degree, &[p], &[q]);
        self.mean += p;
        self.variance += p * q;
        self.trim();
        let log = if (o - u).abs() < 0.5 * (1.0 + u) {
            ((o - u) / (1.0 + u)).ln_1p()
        } else {
            o.ln_1p() - u.ln_1p()
        };
        let (sum, error) = two_sum(self.log_factor.0, log);
        self.log_factor = (sum, self.log_factor.1 + error);
    }

    /// Cuts what lies beyond reach of the mean.
    fn trim(&mut self) {
        let reach = (NEAR + REACH) * self.variance.sqrt() + MARGIN;
        let low = ((self.mean - reach) as i64).max(0);
        // In batches, since cutting moves all that is kept.
        if low > self.low + 64 {
            self.pmf
                .drain(..((low - self.low) as usize).min(self.pmf.len() - 1));
            self.low = low;
        }
        let high = (self.mean + reach) as i64;
        let kept = (high - self.low + 1).max(1) as usize;
        self.pmf.truncate(kept);
    }

    /// Whether the tail at `v` keeps its relative accuracy in this window.
    fn serves(&self, v: i64) -> bool {
        let deviation = self.variance.sqrt();
        (v as f64 - self.mean).abs() <= NEAR * deviation + 1.0
            && self.variance <= WIDER * WIDER * self.first_variance
    }

    fn log_tail(&self, v: i64) -> f64 {
        let (product, error) = two_product(self.theta, v as f64);
        let (high, rounding) = two_sum(self.log_factor.0, -product);
        let log_factor = high + (rounding + self.log_factor.1 - error);
        let split = ((v - self.low).max(0) as usize).min(self.pmf.len());
        if self.theta >= 0.0 {
            let sum = dot(self.terms.level, &self.pmf[split..], &self.discounts);
            return (log_factor + sum.ln()).min(0.0);
        }
        let below = &self.pmf[..split];
        let used = below.len().min(self.reversed.len());
        let (below, weights) = (
            &below[below.len() - used..],
            &self.reversed[self.reversed.len() - used..],
        );
        let sum = dot(self.terms.level, below, weights) * self.theta.exp();
        let lower = (log_factor + sum.ln()).min(0.0).exp();
        (-lower).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every prefix tail against a tail computed from scratch.
    fn assert_prefixes(offsets: &[f64], v: &[i64], epsilon: f64) {
        let logs = prefix_log_tails(offsets, v, epsilon).unwrap();
        for (i, &log) in logs.iter().enumerate() {
            let exact = Terms::from_offsets(&offsets[..=i])
                .unwrap()
                .tail(v[i], epsilon)
                .log;
            let allowed = 2e-13 * (1.0 + exact.abs());
            assert!(
                (log - exact).abs() <= allowed || log == exact,
                "{i}: {log} {exact}"
            );
        }
    }

    fn offsets(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| ((i * 7919) % 101) as f64 / 25.0 - 2.0)
            .collect()
    }

    #[test]
    fn targets_that_follow_the_mean_above_and_below() {
        for z in [-4.0, -1.0, 0.0, 1.0, 3.0, 8.0] {
            let at = |r: f64| (0.62 * r + z * 0.45 * r.sqrt()).round() as i64;
            let v: Vec<i64> = (1..=1500).map(|r| at(f64::from(r))).collect();
            assert_prefixes(&offsets(1500), &v, 0.5);
        }
    }

    #[test]
    fn targets_that_jump() {
        let v: Vec<i64> = (1..=600).map(|r| (r * (37 * r % 11)) / 10).collect();
        assert_prefixes(&offsets(600), &v, -0.25);
    }

    #[test]
    fn targets_beyond_the_ends() {
        let v: Vec<i64> = (0..200)
            .map(|r| if r % 2 == 0 { -1 } else { r + 2 })
            .collect();
        let logs = prefix_log_tails(&offsets(200), &v, 0.0).unwrap();
        for (r, &log) in logs.iter().enumerate() {
            assert_eq!(log, if r % 2 == 0 { 0.0 } else { f64::NEG_INFINITY });
        }
    }

    #[test]
    fn infinite_offsets_are_named() {
        let error = prefix_log_tails(&[0.0, f64::INFINITY], &[1, 1], 0.0).unwrap_err();
        assert!(matches!(
            error,
            MathError::NotFiniteAt {
                name: "offsets",
                index: 1,
                ..
            }
        ));
    }
}
