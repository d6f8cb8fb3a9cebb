//! Poisson-binomial tails as functions of log-odds, nearly: where they fall, and how fast.

use leakbound_math::logistic::expit;

/// Solutions of Σ σ(x + zᵢ) = v by Newton's method; each is bracketed, so all settle.
const TILTS: usize = 60;

/// The r with (e^−ρr + ρr − 1)/ρ² = R²/2, rounded up.
pub(super) fn ball(longest: f64, squared_radius: f64) -> f64 {
    if longest == 0.0 {
        return 0.0;
    }
    let target = 0.5 * longest * longest * squared_radius;
    // e^−t + t − 1 is convex and above t − 1, so Newton's steps from t = target + 1 go down.
    let mut t = target + 1.0;
    for _ in 0..TILTS {
        t -= ((-t).exp_m1() + t - target) / -(-t).exp_m1();
    }
    t * (1.0 + 1e-9) / longest
}

/// σ′.
pub(super) fn spread(x: f64) -> f64 {
    expit(x) * expit(-x)
}

/// The x with Σ σ(x + zᵢ) = v, or half a guess less where all are correct.
pub(super) fn tilt(log_odds: &[f64], correct: i64) -> f64 {
    let number = log_odds.len() as f64;
    let target = (correct as f64).min(number - 0.5);
    let level = (target / (number - target)).ln();
    let extremes = log_odds
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &z| {
            (low.min(z), high.max(z))
        });
    let (mut low, mut high) = (level - extremes.1, level - extremes.0);
    let mut x = level - log_odds.iter().sum::<f64>() / number;
    for _ in 0..TILTS {
        let (mut sum, mut slope) = (0.0, 0.0);
        for z in log_odds {
            let chance = expit(x + z);
            sum += chance;
            slope += chance * (1.0 - chance);
        }
        if sum > target {
            high = x
        } else {
            low = x
        }
        let step = (target - sum) / slope;
        if step.abs() <= 1e-7 {
            return x + step;
        }
        let next = x + step;
        x = if next > low && next < high {
            next
        } else {
            f64::midpoint(low, high)
        };
    }
    x
}

/// The slope of ln P(S ≥ v) in each zᵢ, for the x with Σ σ(x + zᵢ) = v: that of the lattice form of
/// the saddle-point formula (Daniels 1987), with a = x − ε, V = Σ vᵢ and vᵢ = σ′(x + zᵢ),
///
/// ```text
/// P(S ≥ v) ≈ e^{K(a) − av} / ((1 − e^−a) √(2πV)).
/// ```
pub(super) fn tail_slopes(log_odds: &[f64], tilted: f64, epsilon: f64) -> Vec<f64> {
    let (mut spread, mut skew) = (0.0, 0.0);
    for z in log_odds {
        let chance = expit(tilted + z);
        let variance = chance * (1.0 - chance);
        spread += variance;
        skew += variance * (1.0 - 2.0 * chance);
    }
    let tilt = tilted - epsilon;
    // Nearer to its mean a tail is not of this form; the tilted cumulant alone still leads uphill.
    let far = f64::from(u8::from(tilt * spread.sqrt() > 0.5));
    let common = far * (1.0 / tilt.exp_m1() + 0.5 * skew / spread) / spread;
    (log_odds.iter())
        .map(|z| {
            let chance = expit(tilted + z);
            let variance = chance * (1.0 - chance);
            let own = far * 0.5 * (1.0 - 2.0 * chance) / spread;
            chance - expit(epsilon + z) + variance * (common - own)
        })
        .collect()
}
