//! Data that a logistic model of membership explains.

pub(crate) fn never() -> bool {
    false
}

/// Numbers in (0, 1) that look random.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Features and labels of a logistic model with these coefficients, the intercept first.
pub(crate) fn data(rows: usize, theta: &[f64], seed: u64) -> (Vec<f64>, Vec<bool>) {
    let mut noise = Noise(seed.wrapping_mul(2).wrapping_add(1));
    let (mut features, mut member) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> = theta[1..].iter().map(|_| noise.normal()).collect();
        let score: f64 = theta[0] + row.iter().zip(&theta[1..]).map(|(x, t)| x * t).sum::<f64>();
        member.push(noise.uniform() < 1.0 / (1.0 + (-score).exp()));
        features.extend(row);
    }
    (features, member)
}
