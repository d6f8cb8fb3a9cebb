//! The probabilities around the target, as the tilted characteristic function at equispaced nodes.
//!
//! With P̃ the law tilted to mean v and ψ(φ) = Σⱼ P̃(S = v+j)e^{iφj}, the M-point rule gives
//!
//! Σ_{0≤j<J} e^{−θj} P̃(S = v+j) = (1/M) Σₖ ψ(φₖ)(1−zₖᴶ)/(1−zₖ), φₖ = 2πk/M, zₖ = e^{−θ−iφₖ}, J = M/2,
//!
//! up to what aliasing folds in. Bennett's inequality makes P̃(|S−v| ≥ J) ≤ 2e^{−τ} for
//! var·h(J/var) = τ, h(u) = (1+u)ln(1+u) − u, and |ψ(φ)| ≤ e^{−var(1−cos φ)} lets all nodes with
//! var(1−cos φ) > τ be dropped: about 25 remain, whatever n.

use std::f64::consts::PI;

use leakbound_simd::{Level, Nodes, multiply_nodes, series_at_nodes};

use super::base::Base;
use super::exact::UNIT;

/// e⁻³⁸ = 3·10⁻¹⁷.
pub(super) const TAU: f64 = 38.0;

/// A value and a bound on its absolute error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub(super) value: f64,
    pub(super) error: f64,
}

impl Bounded {
    /// The same, or the upper bound with an error of its own size where that much is not known.
    pub(super) fn known(self) -> Self {
        if self.value > self.error {
            return self;
        }
        let most = (self.value.max(0.0) + self.error).max(f64::MIN_POSITIVE);
        Self {
            value: most,
            error: most,
        }
    }
}

/// Complex numbers at the nodes, as real and imaginary parts.
pub(super) type Values = (Vec<f64>, Vec<f64>);

/// ψ at the nodes, the weights 1/M (first) and 2/M (others) multiplied in.
#[derive(Clone, Debug)]
pub(super) struct Contour {
    nodes: Nodes,
    re: Vec<f64>,
    im: Vec<f64>,
    /// (−1)ᵏ: what z_kᴶ is times e^{−θJ}.
    signs: Vec<f64>,
    /// J = M/2.
    half: f64,
    /// Bounds the sum of |ψ|·weight over the dropped nodes.
    dropped: f64,
    /// sin(φ/2) is at least this at the dropped nodes.
    gap: f64,
    /// Bounds the relative error of ψ that rounding leaves.
    rounding: f64,
    /// Bounds the relative error of ψ that the series leaves, before the weights.
    remainder: f64,
}

/// The t with var·h(t/var) = τ, from above: Newton on a convex increasing function.
pub(super) fn bennett(variance: f64, tau: f64) -> f64 {
    let mut t = (2.0 * tau * variance).sqrt() + tau / 3.0;
    for _ in 0..6 {
        let log = (t / variance).ln_1p();
        t -= ((variance + t) * log - t - tau) / log;
    }
    t
}

/// Nodes φₖ = 2πk/M, k ≥ 0, with `variance`·(1−cos φₖ) ≤ τ, and a bound for those left out.
fn kept_nodes(variance: f64, half: f64) -> (Nodes, f64) {
    let step = PI / half;
    let sine = (0.5 * TAU / variance).sqrt();
    let last = if sine >= 1.0 {
        half
    } else {
        (2.0 * sine.asin() / step).floor().min(half)
    };
    let nodes = Nodes::equispaced(step, last as usize + 1);
    if last >= half {
        return (nodes, 0.0);
    }
    // The exponents var(1−cos φ) grow by at least their first increment up to φ = π/2; beyond it,
    // every one is at least var.
    let exponent = |k: f64| 2.0 * variance * (0.5 * step * k).sin().powi(2);
    let (first, second) = (exponent(last + 1.0), exponent(last + 2.0));
    let ratio = (first - second).exp().min(1.0 - 0.5 / half);
    let dropped = (-first).exp() / (1.0 - ratio) / half + (-variance.max(TAU)).exp();
    (nodes, dropped)
}

/// Π (1 + p(e^{iφ}−1)) over the unlikely large terms and Π (1 + q(e^{−iφ}−1)) over the likely ones,
/// and the number of the latter: each through its rarer outcome, which keeps small probabilities
/// accurate on both sides.
fn large_products(level: Level, base: &Base, nodes: &Nodes) -> (usize, Vec<Values>) {
    if base.large.is_empty() {
        return (0, Vec::new());
    }
    let shift = base.d.exp();
    let (mut p, mut q) = (Vec::new(), Vec::new());
    for odds in base.large.iter().map(|o| o * shift) {
        if odds < 1.0 {
            p.push(odds / (1.0 + odds))
        } else {
            q.push(1.0 / (1.0 + odds))
        }
    }
    let product = |probabilities: &[f64], sign: f64| {
        let (mut re, mut im) = (vec![1.0; nodes.padded()], vec![0.0; nodes.padded()]);
        multiply_nodes(level, probabilities, nodes, &mut re, &mut im);
        for im in &mut im {
            *im *= sign;
        }
        (re, im)
    };
    (q.len(), vec![product(&p, 1.0), product(&q, -1.0)])
}

impl Contour {
    /// The contour through the tilt ln x + d of `base`, around `v`.
    pub(super) fn new(level: Level, base: &Base, v: f64) -> Self {
        let half = (bennett(base.variance, TAU) + 2.0).ceil();
        let (nodes, dropped) = kept_nodes(base.variance, half);
        let (mut re, mut im) = (vec![0.0; nodes.padded()], vec![0.0; nodes.padded()]);
        let terms = base.sums.terms;
        series_at_nodes(level, &base.sums, terms, base.d, &nodes, &mut re, &mut im);
        let at_zero = re[0];
        let (likely, products) = large_products(level, base, &nodes);
        // The mean less v is small only with the large terms; without them, what is whole about it is
        // taken off as whole turns, and the rest multiplied by the angle.
        let target = v - likely as f64;
        let near = base.series_mean_less(0.0).round();
        let near = if products.is_empty() { target } else { near };
        let (mean, whole) = (base.series_mean_less(near), target - near);
        for (k, &angle) in nodes.angles().iter().enumerate() {
            let size = (re[k] - at_zero).exp();
            let turns = (whole * k as f64) % (2.0 * half);
            let (sine, cosine) = (mean * angle - PI * (turns / half) + im[k]).sin_cos();
            let weight = if k == 0 || angle >= PI {
                0.5 / half
            } else {
                1.0 / half
            };
            (re[k], im[k]) = (size * cosine * weight, size * sine * weight);
            for (a, b) in &products {
                (re[k], im[k]) = (re[k] * a[k] - im[k] * b[k], re[k] * b[k] + im[k] * a[k]);
            }
        }
        let signs = (0..nodes.count())
            .map(|k| if k % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let gap = nodes.half_sines().last().copied().unwrap_or(1.0);
        let remainder = base.node_remainder();
        let rounding = UNIT * (24.0 + base.large.len() as f64);
        Self {
            nodes,
            re,
            im,
            signs,
            half,
            dropped,
            gap,
            rounding,
            remainder,
        }
    }

    /// A contour of values that carry their weights, at the nodes φ = πk/`half` for the `kept` k.
    /// `bounds` are those of `dropped` and `remainder`.
    pub(super) fn from_parts(
        nodes: Nodes,
        (re, im): Values,
        kept: &[u64],
        half: f64,
        (dropped, remainder): (f64, f64),
    ) -> Self {
        let signs = kept
            .iter()
            .map(|k| if k % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        let first = kept.iter().zip(0..).take_while(|(k, j)| *k == j).count();
        let gap = (0.5 * PI / half * first as f64).sin();
        let rounding = 32.0 * UNIT;
        Self {
            nodes,
            re,
            im,
            signs,
            half,
            dropped,
            gap,
            rounding,
            remainder,
        }
    }

    /// Σ_{j≥0} e^{−tj} P̃(S = v+j), t ≥ 0.
    pub(super) fn above(&self, t: f64) -> f64 {
        self.sum::<true>(t).0
    }

    /// Σ_{j≥1} e^{−tj} P̃(S = v−j), t ≥ 0.
    pub(super) fn below(&self, t: f64) -> f64 {
        self.sum::<false>(t).0
    }

    /// The sum on one side of v at tilt θ, with a bound on its error: above for θ ≥ 0.
    pub(super) fn beyond(&self, theta: f64) -> Bounded {
        let t = theta.abs();
        let value = if theta >= 0.0 {
            self.above(t)
        } else {
            self.below(t)
        };
        Bounded {
            value,
            error: self.error(t),
        }
    }

    /// Bounds the error of [`Self::above`] and [`Self::below`] at `t`.
    fn error(&self, t: f64) -> f64 {
        // Mass at distance s from v is below e^{−τs/J} beyond J, and folds to a weight e^{−t(M−s)}
        // or smaller; what lies beyond J on the summed side was dropped with weight e^{−tJ}.
        let reach = t * self.half;
        let aliased = (3.0 + reach) * ((-reach - TAU).exp() + (-2.0 * TAU).exp());
        let decay = -(-t).exp_m1();
        let dropped = 3.0 * self.dropped / decay.max(self.gap);
        let rounding = self.rounding + 2.0 * self.remainder;
        aliased + dropped + rounding * self.sum::<true>(t).1
    }

    /// The sum and the sum of the sizes of its parts.
    fn sum<const ABOVE: bool>(&self, t: f64) -> (f64, f64) {
        let complement = -(-t).exp_m1(); // 1 − e^{−t}
        let keep = 1.0 - complement;
        let decay = (-t * self.half).exp();
        let (mut sum, mut size) = (0.0, 0.0);
        let sines = &self.nodes.half_sines()[1..];
        let cosines = &self.nodes.half_cosines()[1..];
        let values = self.re[1..].iter().zip(&self.im[1..]).zip(&self.signs[1..]);
        for ((&sine, &cosine), ((&re, &im), &sign)) in sines.iter().zip(cosines).zip(values) {
            // 1 − z = a + ib without cancellation
            let a = complement + 2.0 * keep * sine * sine;
            let b = 2.0 * keep * sine * cosine;
            let norm = a * a + b * b;
            let numerator = (1.0 - sign * decay) / norm;
            let part = if ABOVE {
                re * a + im * b
            } else {
                re * (a - norm) - im * b
            };
            sum += part * numerator;
            size += (re * a).abs().max((im * b).abs()) * numerator;
        }
        let first = if complement > 0.0 {
            -(-t * self.half).exp_m1() / complement
        } else {
            self.half
        };
        let first = self.re[0] * first * if ABOVE { 1.0 } else { keep };
        (sum + first, size + first)
    }
}
