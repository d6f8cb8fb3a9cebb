//! Symmetric positive definite systems of a few dozen unknowns.

use leakbound_simd::REPLICATES;

/// A factor L of A = L·Lᵀ, by rows, lower triangle in a square.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    factor: Vec<f64>,
    size: usize,
}

impl Cholesky {
    /// Factors the square matrix whose lower triangle is given; `None` where a pivot is not above
    /// the rounding error of its own diagonal entry, 2⁻⁵² times the size.
    pub(crate) fn new(mut matrix: Vec<f64>, size: usize) -> Option<Self> {
        let noise = f64::EPSILON * size as f64;
        for row in 0..size {
            let (above, rest) = matrix.split_at_mut(row * size);
            let this = &mut rest[..size];
            for column in 0..row {
                let other = &above[column * size..=column * size + column];
                let dot = dot(&this[..column], &other[..column]);
                this[column] = (this[column] - dot) / other[column];
            }
            let diagonal = this[row];
            let pivot = diagonal - dot(&this[..row], &this[..row]);
            if pivot.is_nan() || pivot <= noise * diagonal {
                return None;
            }
            this[row] = pivot.sqrt();
        }
        Some(Self {
            factor: matrix,
            size,
        })
    }

    /// Replaces b by the x with A·x = b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        self.solve_lower(b);
        self.solve_upper(b);
    }

    /// Replaces b by the x with L·x = b.
    pub(crate) fn solve_lower(&self, b: &mut [f64]) {
        let size = self.size;
        for row in 0..size {
            let line = &self.factor[row * size..=row * size + row];
            b[row] = (b[row] - dot(&line[..row], &b[..row])) / line[row];
        }
    }

    /// Replaces b by the x with Lᵀ·x = b.
    pub(crate) fn solve_upper(&self, b: &mut [f64]) {
        let size = self.size;
        for row in (0..size).rev() {
            let line = &self.factor[row * size..=row * size + row];
            b[row] /= line[row];
            let value = b[row];
            for (target, factor) in b[..row].iter_mut().zip(line) {
                *target -= factor * value;
            }
        }
    }

    /// Lᵀ·x.
    pub(crate) fn times_transposed(&self, x: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.size];
        for (row, &value) in x.iter().enumerate() {
            let line = &self.factor[row * self.size..=row * self.size + row];
            for (sum, factor) in product.iter_mut().zip(line) {
                *sum += factor * value;
            }
        }
        product
    }

    /// Replaces sixteen right-hand sides side by side by the solutions.
    pub(crate) fn solve_lanes(&self, b: &mut [[f64; REPLICATES]]) {
        let size = self.size;
        for row in 0..size {
            let line = &self.factor[row * size..=row * size + row];
            let (above, rest) = b.split_at_mut(row);
            for (other, factor) in above.iter().zip(line) {
                subtract(&mut rest[0], other, *factor);
            }
            rest[0] = rest[0].map(|x| x / line[row]);
        }
        for row in (0..size).rev() {
            let line = &self.factor[row * size..=row * size + row];
            let (above, rest) = b.split_at_mut(row);
            rest[0] = rest[0].map(|x| x / line[row]);
            for (target, factor) in above.iter_mut().zip(line) {
                subtract(target, &rest[0], *factor);
            }
        }
    }
}

/// Subtracts `factor` times `other`, lane by lane.
fn subtract(from: &mut [f64; REPLICATES], other: &[f64; REPLICATES], factor: f64) {
    for (x, y) in from.iter_mut().zip(other) {
        *x -= factor * y;
    }
}

pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::{Cholesky, REPLICATES};

    #[test]
    fn solves_a_small_system() {
        let factor = Cholesky::new(vec![4.0, 0.0, 2.0, 3.0], 2).unwrap();
        let mut b = [2.0, 5.0];
        factor.solve(&mut b);
        assert!((4.0 * b[0] + 2.0 * b[1] - 2.0).abs() < 1e-14);
        assert!((2.0 * b[0] + 3.0 * b[1] - 5.0).abs() < 1e-14);
    }

    #[test]
    fn solves_lane_by_lane() {
        let factor = Cholesky::new(vec![4.0, 0.0, 2.0, 3.0], 2).unwrap();
        let mut lanes = [[0.0; REPLICATES]; 2];
        lanes[0] = std::array::from_fn(|k| k as f64);
        lanes[1] = [1.0; REPLICATES];
        let before = lanes;
        factor.solve_lanes(&mut lanes);
        let columns = before[0].iter().zip(before[1]).enumerate();
        for (k, (&first, second)) in columns {
            let mut alone = [first, second];
            factor.solve(&mut alone);
            assert!((0..2).all(|j| (lanes[j][k] - alone[j]).abs() < 1e-13));
        }
    }

    #[test]
    fn refuses_a_singular_matrix() {
        assert!(Cholesky::new(vec![1.0, 0.0, 1.0, 1.0], 2).is_none());
        assert!(Cholesky::new(vec![f64::NAN], 1).is_none());
    }
}
