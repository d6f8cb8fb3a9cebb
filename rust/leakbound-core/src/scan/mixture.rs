//! A test of every cut that needs no correction: a likelihood ratio mixed over alternatives.

use leakbound_math::{Binomial, Probability, binomial};

use crate::error::{AuditError, check_level, out_of_range};
use crate::guesses::path::Cut;
use crate::halving::halve;
use crate::interrupt::Interrupt;
use crate::scan::statistic::{divergence_bounds, is_above};

/// Limits by Ville's inequality: refute p at a cut if M(p) ≥ 1/β, where
///
/// M(p) = ∫ (x/p)^w ((1−x)/(1−p))^{r−w} dx / (1−p), x from p to 1,
///
/// is the likelihood ratio of w correct guesses among r, averaged over all probabilities above p.
///
/// Along a path whose guesses are correct with probability at most p, given those before, M is a
/// nonnegative supermartingale that starts at 1, so it ever reaches 1/β with probability at most β
/// (Ville 1939, "Étude critique de la notion de collectif"). The largest limit over cuts is
/// therefore a lower confidence bound, also when the path is looked at after every guess and
/// stopped at will.
///
/// With x = p + (1−p)u the integrand is (1 + u(1−p)/p)^w (1−u)^{r−w}: it falls with p, is convex
/// in logit p, and is at most 1 where w ≤ r·p, so that M refutes nothing there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct VilleMixture {
    /// ln(1/β)
    strength: f64,
}

/// M(p) on the scale of logarithms.
struct Mixture {
    /// ln M(p).
    ln: f64,
    /// Its derivative in logit p.
    slope: f64,
    /// Upper bound on the error of `ln`.
    error: f64,
}

impl Mixture {
    /// Through P(Bin(r+1, p) ≤ w) and P(Bin(r, p) = w), for w above the mean: the first is then at
    /// least about a half, and nothing cancels.
    fn new(cut: Cut, p: Probability) -> Self {
        let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
        let guesses = u64::from(cut.guesses);
        let ln_pmf = Binomial::new(guesses, p).ln_pmf(cut.correct.into());
        let ln_tail = Binomial::new(guesses + 1, p).ln_lower_tail(cut.correct.into());
        let scale = (r + 1.0).ln() + p.ln_q();
        let ln = ln_tail - ln_pmf - scale;
        // A convex function of logit p; d/dp = (1 − 1/M)/(1−p) − (w − rp)/(p(1−p)).
        let slope = -p.p() * (-ln).exp_m1() - (w * p.q() - (r - w) * p.p());
        let error = binomial::relative_error(ln_pmf)
            + binomial::relative_error(ln_tail)
            + 4.0 * f64::EPSILON * (ln_pmf.abs() + scale.abs());
        Self { ln, slope, error }
    }
}

impl VilleMixture {
    /// Newton's steps from the left of a convex function stay there; the first step from the right
    /// lands left. Each then halves at least what is missing in ln M; as a rule six suffice.
    const MAX_STEPS: usize = 200;
    /// Excess of ln M over the threshold, in units of its error, at which the search may end.
    const NEAR: f64 = 4.0;

    /// Limits at error probability `beta`, all cuts together.
    fn new(beta: f64) -> Result<Self, AuditError> {
        Ok(Self {
            strength: -check_level("beta", beta)?.ln(),
        })
    }

    /// The largest probability refuted at this cut, rounded down; none if even 0 is not.
    fn limit(self, cut: Cut) -> Result<Option<Probability>, AuditError> {
        if cut.correct == 0 {
            return Ok(None);
        }
        let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
        // ln M ≤ r·KL(w/r ‖ p), of which a quadratic lower limit is good enough to start from.
        let (a, b) = (w + 0.5, r - w + 0.5);
        let mut logit = (a / b).ln() - (2.0 * self.strength / a + 2.0 * self.strength / b).sqrt();
        for _ in 0..Self::MAX_STEPS {
            let p = Probability::from_logit(logit)?;
            let step = if is_above(cut, p) {
                let mixture = Mixture::new(cut, p);
                let excess = mixture.ln - self.strength;
                // No step can be finer than the logit and the probability themselves.
                let finest = 2.0 * f64::EPSILON * (1.0 + logit.abs()) * mixture.slope.abs();
                let margin = mixture.error + finest;
                if excess >= mixture.error && excess <= Self::NEAR * margin {
                    return Ok(Some(p));
                }
                // Aim between the two ends of what is good enough.
                -(excess - 0.5 * (1.0 + Self::NEAR) * margin) / mixture.slope
            } else {
                -1.0
            };
            logit += step;
        }
        Ok(None)
    }
}

/// Limits by the mean of the mixtures of K sequences of guesses: refute p at a moment if
/// (M₁(p) + … + M_K(p))/K ≥ 1/β, with M of Ville's inequality, below, where each sequence then stands.
///
/// Where one order of visiting serves all sequences, each of which takes some of the guesses, the
/// mean of nonnegative supermartingales that start at 1 is another one. It refutes whatever
/// one of them does at the level β/K. Where w ≤ r·p a sequence counts as 0 instead of its M ≤ 1, so
/// that the mean still falls with p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanMixture {
    /// How many sequences there are.
    sequences: usize,
    /// ln(1/β)
    strength: f64,
    /// Limits of one sequence that all others say nothing beside.
    single: VilleMixture,
    /// Limits of one sequence where all others agree with it.
    unanimous: VilleMixture,
}

impl MeanMixture {
    /// The bracket is below 100 wide in logit p: 60 halvings take it to the rounding of the logit.
    const HALVINGS: usize = 60;
    /// Moments between two looks at the interrupt.
    const MOMENTS_PER_CHECK: usize = 1 << 14;

    /// Limits at error probability `beta` for so many sequences, all moments together.
    pub fn new(sequences: usize, beta: f64) -> Result<Self, AuditError> {
        if sequences == 0 {
            return out_of_range("sequences", 0.0, "at least 1");
        }
        let unanimous = VilleMixture::new(beta)?;
        Ok(Self {
            sequences,
            strength: unanimous.strength,
            single: VilleMixture::new(beta / sequences as f64)?,
            unanimous,
        })
    }

    /// Is the mean at least 1/β, rounding included?
    fn refutes(&self, moment: &[Cut], p: Probability) -> bool {
        let (mut largest, mut error) = (f64::NEG_INFINITY, 0.0_f64);
        let mut logs = Vec::with_capacity(moment.len());
        for &cut in moment.iter().filter(|&&cut| is_above(cut, p)) {
            let mixture = Mixture::new(cut, p);
            largest = largest.max(mixture.ln);
            error = error.max(mixture.error);
            logs.push(mixture.ln);
        }
        let sum: f64 = logs.iter().map(|ln| (ln - largest).exp()).sum();
        let ln_mean = largest + (sum / self.sequences as f64).ln();
        ln_mean - self.strength >= error + 16.0 * f64::EPSILON * (1.0 + largest.abs())
    }

    /// Could the limit exceed `level` at this moment? Says yes when in doubt, quickly.
    fn may_exceed(&self, moment: &[Cut], level: Probability) -> bool {
        let stands_out =
            |&cut: &Cut| is_above(cut, level) && divergence_bounds(cut, level).1 > self.strength;
        moment.iter().any(stands_out) && self.refutes(moment, level)
    }

    /// The largest p refuted where the sequences stand at `moment`, rounded down; none if not
    /// even 0 is.
    pub fn limit(&self, moment: &[Cut]) -> Result<Option<Probability>, AuditError> {
        let highest = |statistic: VilleMixture| -> Result<Option<f64>, AuditError> {
            let mut best: Option<f64> = None;
            for &cut in moment {
                if let Some(limit) = statistic.limit(cut)? {
                    best = Some(best.map_or(limit.logit(), |other| other.max(limit.logit())));
                }
            }
            Ok(best)
        };
        let (Some(low), Some(high)) = (highest(self.single)?, highest(self.unanimous)?) else {
            return Ok(None);
        };
        let mut verified = Probability::from_logit(low)?;
        halve((low, high), Self::HALVINGS, 0.0, |logit| {
            let p = Probability::from_logit(logit)?;
            let refuted = self.refutes(moment, p);
            verified = if refuted { p } else { verified };
            Ok(refuted)
        })?;
        Ok(Some(verified))
    }

    /// The moment with the largest limit, and that limit; `moments` holds the K cuts of each, one
    /// moment after the other.
    pub fn best(
        &self,
        moments: &[Cut],
        interrupt: &Interrupt,
    ) -> Result<Option<(usize, Probability)>, AuditError> {
        let mut best: Option<(usize, Probability)> = None;
        // From the last on: late moments are the strong ones as a rule, and rule out the others.
        for (index, moment) in moments.chunks_exact(self.sequences).enumerate().rev() {
            if index % Self::MOMENTS_PER_CHECK == 0 {
                interrupt.check()?;
            }
            if best.is_some_and(|(_, level)| !self.may_exceed(moment, level)) {
                continue;
            }
            match (self.limit(moment)?, best) {
                (Some(limit), Some((_, level))) if limit.logit() <= level.logit() => {}
                (Some(limit), _) => best = Some((index, limit)),
                (None, _) => {}
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_lies_between_the_best_alone_and_the_best_of_all() {
        let cut = |guesses, correct| Cut { guesses, correct };
        let moments = [
            cut(40, 35),
            cut(10, 10),
            cut(80, 50),
            cut(60, 50),
            cut(12, 9),
            cut(120, 70),
            cut(90, 77),
            cut(20, 19),
            cut(180, 111),
        ];
        let mean = MeanMixture::new(3, 0.05).unwrap();
        let one = |beta: f64, moment: &[Cut]| {
            let statistic = VilleMixture::new(beta).unwrap();
            let limits = moment
                .iter()
                .map(|&c| statistic.limit(c).unwrap().unwrap().logit());
            limits.fold(f64::NEG_INFINITY, f64::max)
        };
        let mut largest = (0, f64::NEG_INFINITY);
        for (index, moment) in moments.chunks(3).enumerate() {
            let limit = mean.limit(moment).unwrap().unwrap();
            assert!(mean.refutes(moment, limit));
            assert!(one(0.05 / 3.0, moment) <= limit.logit());
            assert!(limit.logit() <= one(0.05, moment));
            let p = limit.p() + 1e-9;
            let sum: f64 = moment
                .iter()
                .filter(|&&c| f64::from(c.correct) > f64::from(c.guesses) * p)
                .map(|&c| mixture(c, p))
                .sum();
            assert!(sum / 3.0 < 20.0 * (1.0 + 1e-5) && sum / 3.0 > 20.0 * (1.0 - 1e-5));
            if limit.logit() > largest.1 {
                largest = (index, limit.logit());
            }
        }
        let (index, limit) = mean.best(&moments, &Interrupt::default()).unwrap().unwrap();
        assert_eq!((index, limit.logit()), largest);
        assert!(
            mean.best(&[cut(5, 0); 3], &Interrupt::default())
                .unwrap()
                .is_none()
        );
    }

    /// The integral over u by the midpoint rule.
    fn mixture(cut: Cut, p: f64) -> f64 {
        let steps = 100_000;
        let (r, w) = (f64::from(cut.guesses), f64::from(cut.correct));
        let at = |i: u32| {
            let u = (f64::from(i) + 0.5) / f64::from(steps);
            (w * (u * (1.0 - p) / p).ln_1p() + (r - w) * (-u).ln_1p()).exp()
        };
        (0..steps).map(at).sum::<f64>() / f64::from(steps)
    }

    #[test]
    fn the_closed_form_is_the_integral() {
        for (guesses, correct, p) in [(1, 1, 0.4), (20, 15, 0.5), (20, 20, 0.9), (300, 280, 0.9)] {
            let cut = Cut { guesses, correct };
            let closed = Mixture::new(cut, Probability::new(p).unwrap()).ln;
            assert!((closed - mixture(cut, p).ln()).abs() < 1e-6, "{cut:?} {p}");
        }
    }

    #[test]
    fn one_right_guess_has_a_closed_limit() {
        // M = 1 + (1−p)/2p.
        let cut = Cut {
            guesses: 1,
            correct: 1,
        };
        for beta in [0.5, 0.05, 1e-9, 1e-250] {
            let limit = VilleMixture::new(beta).unwrap().limit(cut).unwrap();
            let expected = beta / (2.0 - beta);
            assert!(limit.unwrap().p() <= expected);
            assert!(limit.unwrap().p() >= expected * (1.0 - 1e-11), "{beta}");
        }
    }

    #[test]
    fn every_count_has_its_limit() {
        for beta in [0.999, 0.2, 1e-3, 1e-200] {
            let statistic = VilleMixture::new(beta).unwrap();
            for guesses in [1, 2, 7, 60, 1_000, 4_000_000_000] {
                let counts = [1, 2, guesses / 3, guesses / 2, guesses - 1, guesses];
                for correct in counts.into_iter().filter(|&w| (1..=guesses).contains(&w)) {
                    let cut = Cut { guesses, correct };
                    let limit = statistic.limit(cut).unwrap().unwrap();
                    assert!(
                        limit.p() < f64::from(correct) / f64::from(guesses),
                        "{cut:?}"
                    );
                    let above = Probability::from_logit(limit.logit() + 1e-6).unwrap();
                    let single = MeanMixture::new(1, beta).unwrap();
                    assert!(!single.refutes(&[cut], above), "{cut:?} {beta}");
                }
            }
        }
    }
}
