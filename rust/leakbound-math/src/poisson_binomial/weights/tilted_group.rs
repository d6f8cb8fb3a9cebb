//! The terms of one weight under a tilt, and what they add to the contour.

use std::f64::consts::PI;

use leakbound_simd::{Nodes, PowerSums, multiply_nodes, series_at_nodes};

use crate::poisson_binomial::contour::Values;
use crate::poisson_binomial::exact::{UNIT, two_product};
use crate::poisson_binomial::terms::Terms;

/// Power sums per group.
pub(super) const TERMS: usize = 16;

/// A group under the tilt in use.
pub(super) struct TiltedGroup<'a> {
    pub(super) weight: f64,
    pub(super) terms: &'a Terms,
    pub(super) x: f64,
    /// ln x less ε + θt: what rounding left, corrected for by the mean.
    pub(super) excess: f64,
    pub(super) sums: PowerSums,
}

impl TiltedGroup<'_> {
    /// What the rounding of the tilt adds to the mean.
    pub(super) fn mean_correction(&self) -> f64 {
        self.sums.mean.1 - self.excess.clamp(-1.0, 1.0) * self.sums.even[0]
    }

    /// Whether the series serves all angles, whatever they are: the variance damps what it misses.
    fn has_series(&self) -> bool {
        self.sums.even[0] >= self.sums.largest * 120.0
    }

    /// Adds the centred ln ψ of this group to (re, im), or multiplies `factors` by its product.
    pub(super) fn add_to(
        &self,
        angles: &[f64],
        half: f64,
        kept: &[u64],
        (re, im): (&mut [f64], &mut [f64]),
        factors: &mut Option<Values>,
    ) -> f64 {
        let turn = 2.0 * PI;
        // tφ reduced to within half a turn, on the whole numbers behind the angle.
        let period = 2.0 * half;
        let (mut turns, mut reduced) = (vec![0.0; angles.len()], vec![0.0; angles.len()]);
        for (j, &k) in kept.iter().enumerate() {
            let (product, error) = two_product(self.weight, k as f64);
            turns[j] = (product / period).round();
            let rest = (-turns[j]).mul_add(period, product) + error;
            reduced[j] = rest * (PI / half);
        }
        // mean·tφ = mean·(reduced + turns·2π), and whole turns of it do not count.
        let (mean, mean_low) = (self.sums.mean.0, self.mean_correction());
        for (phase, &turns) in im.iter_mut().zip(&turns) {
            let (product, error) = two_product(mean, turns);
            *phase -= turn * ((product - product.round()) + error + mean_low * turns);
        }
        let nodes = Nodes::at(&reduced);
        let level = self.terms.level;
        if self.has_series() {
            let (mut a, mut b) = (vec![0.0; nodes.padded()], vec![0.0; nodes.padded()]);
            series_at_nodes(level, &self.sums, TERMS, 0.0, &nodes, &mut a, &mut b);
            for j in 0..angles.len() {
                re[j] += a[j];
                im[j] += b[j];
            }
            return 3e-16;
        }
        let (mut a, mut b) = (vec![1.0; nodes.padded()], vec![0.0; nodes.padded()]);
        let odds = self.terms.repeated_odds();
        let p: Vec<f64> = odds
            .iter()
            .map(|e| e * self.x / (1.0 + e * self.x))
            .collect();
        multiply_nodes(level, &p, &nodes, &mut a, &mut b);
        for j in 0..angles.len() {
            im[j] -= mean * reduced[j];
        }
        let Some((re, im)) = factors else {
            *factors = Some((a, b));
            return UNIT * odds.len() as f64;
        };
        for (((re, im), a), b) in re.iter_mut().zip(im).zip(a).zip(b) {
            (*re, *im) = (*re * a - *im * b, *re * b + *im * a);
        }
        UNIT * odds.len() as f64
    }
}
