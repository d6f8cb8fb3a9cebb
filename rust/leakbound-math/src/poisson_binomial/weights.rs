//! Weighted sums Σ tᵢXᵢ with whole weights, grouped by weight.

mod inverse;
mod nodes;
mod tilted_group;

use std::collections::BTreeMap;
use std::f64::consts::PI;

use nodes::{DROPPED, MOST_NODES, kept_nodes};
use tilted_group::{TERMS, TiltedGroup};

use leakbound_simd::{Level, Nodes, power_sums, rough_power_sums};

use super::base::{SMALLEST_VARIANCE, log_ratio_to};
use super::contour::{Contour, TAU, Values, bennett};
use super::exact::{self, UNIT, two_product, two_sum};
use super::points;
use super::tail_value::Tail;
use super::terms::{RAISED_MATTERS, Terms};
use super::tilted::normalise;
use crate::error::{MathError, check_length};

/// A tilt below this makes a group certain, to e⁻³⁸⁸ and better.
const REACH: f64 = 688.0;
/// The tilt reaches the mean down to this ε; below it the tail here is an upper bound.
const LOWEST_EPSILON: f64 = -900.0;
/// Weights times counts stay exact in doubles.
const LARGEST_TOTAL: u64 = 1 << 52;
/// Up to this many trials times total weight, probabilities are built term by term.
const DIRECT: u64 = 1 << 17;
/// Untilted probabilities are used down to tails of this size.
const SMALLEST_DIRECT: f64 = 1e-200;
/// Newton's steps, which may be short; the rest are bisections, of which 80 end any search.
const MOST_NEWTONS: u32 = 60;
const MOST_STEPS: u32 = 200;

/// Independent Bernoulli terms with whole weights: S = Σ tᵢXᵢ.
#[derive(Clone, Debug)]
pub struct Weighted {
    groups: Vec<Group>,
    /// What the certain terms add up to.
    certain: u64,
    /// What the open terms can add up to.
    total: u64,
    trials: u64,
}

/// The open terms of one weight.
#[derive(Clone, Debug)]
struct Group {
    weight: u64,
    terms: Terms,
    /// The largest tilt of all odds that can be held.
    highest: f64,
}

impl Weighted {
    /// Terms with probabilities `p` and weights `weights`.
    ///
    /// # Errors
    /// [`MathError::NotAProbabilityAt`]; [`MathError::LengthMismatch`]; [`MathError::WeightsTooLarge`]
    /// if the weights add up to more than 2⁵².
    pub fn from_probabilities(p: &[f64], weights: &[u64]) -> Result<Self, MathError> {
        Terms::from_probabilities(p)?;
        Self::grouped(p, weights, "p", Terms::from_probabilities)
    }

    /// Terms with pᵢ = σ(ε + `offsets[i]`) for an ε named later.
    pub fn from_offsets(offsets: &[f64], weights: &[u64]) -> Result<Self, MathError> {
        Terms::from_offsets(offsets)?;
        Self::grouped(offsets, weights, "offsets", Terms::from_offsets)
    }

    /// The same terms with every kernel run at `level`; for tests and benchmarks.
    #[must_use]
    pub fn at_level(mut self, level: Level) -> Self {
        for group in &mut self.groups {
            group.terms.level = level;
        }
        self
    }

    fn grouped(
        entries: &[f64],
        weights: &[u64],
        like: &'static str,
        make: impl Fn(&[f64]) -> Result<Terms, MathError>,
    ) -> Result<Self, MathError> {
        check_length("weights", weights.len(), like, entries.len())?;
        let largest = LARGEST_TOTAL;
        let sum = weights.iter().try_fold(0_u64, |sum, &t| sum.checked_add(t));
        if sum.is_none_or(|sum| sum > largest) {
            return Err(MathError::WeightsTooLarge { largest });
        }
        let mut by_weight: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (&entry, &weight) in entries.iter().zip(weights) {
            if weight > 0 {
                by_weight.entry(weight).or_default().push(entry);
            }
        }
        let mut weighted = Self {
            groups: Vec::new(),
            certain: 0,
            total: 0,
            trials: 0,
        };
        for (weight, entries) in by_weight {
            let terms = make(&entries)?;
            weighted.certain += weight * terms.certain;
            weighted.total += weight * terms.trials;
            weighted.trials += terms.trials;
            if terms.trials > 0 {
                let highest = terms.highest(f64::MAX);
                weighted.groups.push(Group {
                    weight,
                    terms,
                    highest,
                });
            }
        }
        Ok(weighted)
    }

    /// P(S ≥ v) at ε, as [`Terms::tail`].
    ///
    /// # Errors
    /// [`MathError::WeightsTooUnlike`] where the law has too many points to be held;
    /// [`MathError::NotConverged`] if no tilt was found, a defect.
    pub fn tail(&self, v: i64, epsilon: f64) -> Result<Tail, MathError> {
        let Some(v) = u64::try_from(v)
            .ok()
            .and_then(|v| v.checked_sub(self.certain))
        else {
            return Ok(Tail::ONE);
        };
        if v == 0 {
            return Ok(Tail::ONE);
        }
        if v > self.total {
            return Ok(Tail::ZERO);
        }
        if v == self.total {
            return Ok(self.all(epsilon));
        }
        let within = self.within(epsilon);
        let mut tail = self.open_tail(v, within)?;
        if (self.raised() && tail.log < RAISED_MATTERS) || epsilon < within {
            tail.relative_error = f64::INFINITY;
        }
        if epsilon > within {
            tail.relative_error += (-tail.log).exp_m1();
        }
        Ok(tail)
    }

    fn open_tail(&self, v: u64, epsilon: f64) -> Result<Tail, MathError> {
        if self.trials.saturating_mul(self.total) <= DIRECT
            && let Some(tail) = self.direct(v as usize, epsilon)
        {
            return Ok(tail);
        }
        if self.trials <= points::MOST_TRIALS {
            return Ok(points::tail(self.logits(epsilon), v));
        }
        self.contour_tail(v as f64, epsilon, self.saddle(v as f64, epsilon)?)
    }

    /// The ε nearest to `epsilon` at which all odds can be held and the tilt reaches the mean.
    fn within(&self, epsilon: f64) -> f64 {
        let mut within = epsilon;
        for Group { terms, .. } in &self.groups {
            let shifted = epsilon + terms.shift;
            let highest = terms.highest(shifted);
            if highest < shifted {
                within = within.min(highest - terms.shift);
            }
            if shifted < LOWEST_EPSILON {
                within = within.max(LOWEST_EPSILON - terms.shift);
            }
        }
        within
    }

    /// Weight and log-odds of every trial at ε.
    fn logits(&self, epsilon: f64) -> impl Iterator<Item = (u64, f64)> {
        self.groups
            .iter()
            .flat_map(move |Group { weight, terms, .. }| {
                let shifted = epsilon + terms.shift;
                let odds = terms.repeated_odds().into_iter();
                odds.map(move |e| (*weight, e.ln() + shifted))
            })
    }

    fn raised(&self) -> bool {
        self.groups.iter().any(|group| group.terms.raised)
    }

    /// Every term succeeds: the product over the groups.
    fn all(&self, epsilon: f64) -> Tail {
        let (mut log, mut relative_error) = (0.0, 0.0);
        for Group { terms, .. } in &self.groups {
            let tail = terms.tail(terms.possible().cast_signed(), epsilon);
            log += tail.log;
            relative_error += tail.relative_error;
        }
        Tail::from_log(log, relative_error)
    }

    /// The tail from all probabilities, unless it is too small for them.
    fn direct(&self, v: usize, epsilon: f64) -> Option<Tail> {
        let mut pmf = vec![0.0; self.total as usize + 1];
        pmf[0] = 1.0;
        let mut degree = 0;
        for Group { weight, terms, .. } in &self.groups {
            let x = (epsilon + terms.shift).exp();
            let weight = *weight as usize;
            for e in terms.repeated_odds() {
                let q = 1.0 / (1.0 + e * x);
                let p = e * x * q;
                degree += weight;
                for k in (weight..=degree).rev() {
                    pmf[k] = p * pmf[k - weight] + q * pmf[k];
                }
                for entry in &mut pmf[..weight] {
                    *entry *= q;
                }
            }
        }
        normalise(&mut pmf);
        let lower: f64 = pmf[..v].iter().sum();
        let upper: f64 = pmf[v..].iter().rev().sum();
        let relative_error = UNIT * (8 * self.trials + 16 + 2 * self.total) as f64;
        if lower < upper {
            return Some(Tail::from_log_complement(lower.ln(), relative_error));
        }
        (upper > SMALLEST_DIRECT).then(|| Tail::from_value(upper, relative_error))
    }

    fn largest_weight(&self) -> f64 {
        self.groups.last().map_or(1.0, |group| group.weight as f64)
    }

    /// θ with the tilted mean near v, and how near, by Newton in a bracket.
    fn saddle(&self, v: f64, epsilon: f64) -> Result<f64, MathError> {
        let largest = self.largest_weight();
        let (mut low, mut high) = (-1600.0, 1600.0);
        let mut theta = 0.0;
        for step in 0..MOST_STEPS {
            let (mut lacking, mut variance, mut third) = (v, SMALLEST_VARIANCE, 0.0);
            for group in &self.groups {
                let (t, terms) = (group.weight as f64, &group.terms);
                let log_x = (epsilon + terms.shift + theta * t).clamp(-REACH, group.highest);
                let counts = terms.counts.as_deref();
                let sums = rough_power_sums(terms.level, &terms.odds, counts, log_x.exp());
                lacking -= t * sums.mean.0;
                variance += t * t * sums.even[0];
                third += t * t * t * sums.odd[0];
            }
            if lacking * lacking <= 0.25 * variance || high - low < 1e-12 {
                return Ok(theta);
            }
            if lacking > 0.0 {
                low = theta
            } else {
                high = theta
            }
            let newton = lacking / variance;
            let curved = newton * (1.0 - (0.5 * third * newton / variance).clamp(-0.5, 0.5));
            let next = theta + curved.clamp(-3.0 / largest, 3.0 / largest);
            theta = if step < MOST_NEWTONS && low < next && next < high {
                next
            } else {
                0.5 * (low + high)
            };
        }
        Err(MathError::NotConverged {
            what: "the tilt of a weighted tail",
            steps: MOST_STEPS,
        })
    }

    /// The groups at tilt θ.
    fn tilted(&self, epsilon: f64, theta: f64) -> Vec<TiltedGroup<'_>> {
        self.groups
            .iter()
            .map(|group| {
                let (weight, terms) = (group.weight as f64, &group.terms);
                let (product, product_error) = two_product(theta, weight);
                let (shifted, shift_error) = two_sum(epsilon, terms.shift);
                let (high, error) = two_sum(shifted, product);
                let low = error + shift_error + product_error;
                let x = high.clamp(-REACH, group.highest).exp();
                let log_x = exact::log(x);
                let excess = (log_x.0 - high) + (log_x.1 - low);
                let counts = terms.counts.as_deref();
                let sums = power_sums(terms.level, &terms.odds, &terms.residuals, counts, x, TERMS);
                TiltedGroup {
                    weight,
                    terms,
                    x,
                    excess,
                    sums,
                }
            })
            .collect()
    }

    /// The tail by the contour at tilt θ.
    fn contour_tail(&self, v: f64, epsilon: f64, theta: f64) -> Result<Tail, MathError> {
        let groups = self.tilted(epsilon, theta);
        let contour = self.contour(&groups, v)?;
        // ln e^{K(θ)−θv}: minus the sum over the groups of ln Π (1+Ey)/(1+Ex), minus θv.
        let (product, product_error) = two_product(theta, v);
        let (mut high, mut low, mut size) = (-product, -product_error, product.abs());
        for group in &groups {
            let shifted = two_sum(epsilon, group.terms.shift);
            let log = log_ratio_to(group.terms, group.x, shifted).log;
            let (sum, error) = two_sum(high, -log.0);
            high = sum;
            low += error - log.1 - group.excess * group.sums.mean.0;
            size += log.0.abs();
        }
        let sum = contour.beyond(theta).known();
        // Every group has its own rounded tilt; the first-order correction leaves this.
        let relative_error = sum.error / sum.value + UNIT * (16.0 + 4.0 * size);
        let log = (high + low + sum.value.ln()).min(0.0);
        Ok(if theta >= 0.0 {
            Tail::from_log(log, relative_error)
        } else {
            Tail::from_log_complement(log, relative_error)
        })
    }

    /// ψ at the nodes that matter.
    fn contour(&self, groups: &[TiltedGroup], v: f64) -> Result<Contour, MathError> {
        let mut variance = SMALLEST_VARIANCE;
        let (mut mean, mut mean_low) = (-v, 0.0);
        for group in groups {
            variance += group.weight * group.weight * group.sums.even[0];
            let (product, error) = two_product(group.weight, group.sums.mean.0);
            let (sum, rounding) = two_sum(mean, product);
            mean = sum;
            mean_low += rounding + error + group.weight * group.mean_correction();
        }
        let mean = mean + mean_low;
        let largest = self.largest_weight();
        let reach = largest * bennett(variance / (largest * largest), TAU) + mean.abs();
        let half = (reach + 2.0).ceil().min(self.total as f64 + 1.0);
        let kept = kept_nodes(groups, half).ok_or(MathError::WeightsTooUnlike {
            largest: self.groups.last().map_or(1, |group| group.weight),
            most: MOST_NODES,
        })?;
        let angles: Vec<f64> = kept.iter().map(|&k| PI / half * k as f64).collect();
        let nodes = Nodes::at(&angles);
        let (mut re, mut im) = (vec![0.0; nodes.padded()], vec![0.0; nodes.padded()]);
        let mut factors: Option<Values> = None;
        let mut remainder = 0.0;
        for (k, phase) in im.iter_mut().enumerate().take(angles.len()) {
            *phase = mean * angles[k];
        }
        for group in groups {
            remainder += group.add_to(&angles, half, &kept, (&mut re, &mut im), &mut factors);
        }
        let weight = |k: u64| {
            if k == 0 || k as f64 >= half {
                0.5 / half
            } else {
                1.0 / half
            }
        };
        for (j, &k) in kept.iter().enumerate() {
            let (sine, cosine) = im[j].sin_cos();
            let size = re[j].exp() * weight(k);
            (re[j], im[j]) = (size * cosine, size * sine);
            if let Some((factor_re, factor_im)) = &factors {
                let (a, b) = (factor_re[j], factor_im[j]);
                (re[j], im[j]) = (re[j] * a - im[j] * b, re[j] * b + im[j] * a);
            }
        }
        // At most J nodes were dropped, each with |ψ|·weight below this over J.
        let dropped = if kept.len() as f64 > half {
            0.0
        } else {
            (-DROPPED).exp()
        };
        let bounds = (dropped, remainder);
        Ok(Contour::from_parts(nodes, (re, im), &kept, half, bounds))
    }
}
