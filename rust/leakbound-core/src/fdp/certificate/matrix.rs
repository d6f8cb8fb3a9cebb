//! The inverse of second derivatives, as steps of a descent tell it.

/// A square matrix: the inverse of the second derivatives, about.
pub(super) struct Matrix {
    size: usize,
    entries: Vec<f64>,
}

impl Matrix {
    pub(super) fn identity(size: usize) -> Self {
        let mut entries = vec![0.0; size * size];
        (0..size).for_each(|i| entries[i * size + i] = 1.0);
        Self { size, entries }
    }

    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.entries
            .chunks(self.size)
            .map(|row| dot(row, vector))
            .collect()
    }

    pub(super) fn update(&mut self, moved: &[f64], turned: &[f64], fresh: bool) {
        let along = dot(moved, turned);
        if along <= 1e-14 {
            return;
        }
        if fresh {
            let scale = along / dot(turned, turned);
            self.entries.iter_mut().for_each(|x| *x *= scale);
        }
        let image = self.times(turned);
        let curvature = 1.0 + dot(turned, &image) / along;
        for i in 0..self.size {
            for j in 0..self.size {
                self.entries[i * self.size + j] += curvature * moved[i] * moved[j] / along
                    - (image[i] * moved[j] + moved[i] * image[j]) / along;
            }
        }
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}
