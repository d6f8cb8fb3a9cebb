//! Rows in the layout of the vector kernels.

use leakbound_math::memory::filled;
use std::ops::Range;

use leakbound_simd::GROUP;

use crate::error::PropensityError;
use rayon::prelude::*;

use crate::cholesky::dot;

/// Rows of a unit of parallel work.
const CHUNK: usize = 256 * GROUP;
/// Rows whose products are added to a Gram matrix in one pass over it.
const TOGETHER: usize = 4;

/// A table of rows in groups of six, each group column by column, padded with zeros.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    entries: Vec<f64>,
    rows: usize,
    width: usize,
    padded: usize,
}

impl Panel {
    /// `rows` rows (a multiple of six) of `width` zeros.
    pub(crate) fn zeros(rows: usize, width: usize) -> Result<Self, PropensityError> {
        let padded = width.next_multiple_of(GROUP);
        Ok(Self {
            entries: filled(rows.saturating_mul(padded), 0.0)?,
            rows,
            width,
            padded,
        })
    }

    /// Number of rows, those of padding included.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, without padding.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Number of columns, those of padding included.
    pub(crate) fn padded(&self) -> usize {
        self.padded
    }

    /// The entries of some rows, from and to multiples of six.
    pub(crate) fn entries(&self, rows: Range<usize>) -> &[f64] {
        &self.entries[rows.start * self.padded..rows.end * self.padded]
    }

    pub(crate) fn set(&mut self, row: usize, column: usize, value: f64) {
        let index = self.index(row, column);
        self.entries[index] = value;
    }

    /// Writes a row of 1 followed by `entries`.
    pub(crate) fn set_row(&mut self, row: usize, entries: impl Iterator<Item = f64>) {
        for (column, entry) in std::iter::once(1.0).chain(entries).enumerate() {
            self.set(row, column, entry);
        }
    }

    /// Copies a row to the first entries of `to`.
    pub(crate) fn copy_row(&self, row: usize, to: &mut [f64]) {
        let first = self.index(row, 0);
        for (to, from) in to[..self.width]
            .iter_mut()
            .zip(self.entries[first..].iter().step_by(GROUP))
        {
            *to = *from;
        }
    }

    /// The product of each of some rows, from and to multiples of six, with `vector`.
    pub(crate) fn times(&self, rows: Range<usize>, vector: &[f64]) -> Vec<f64> {
        let mut products = Vec::with_capacity(rows.len());
        for group in self.entries(rows).chunks_exact(GROUP * self.padded) {
            let mut sums = [0.0; GROUP];
            for (column, factor) in group.as_chunks::<GROUP>().0.iter().zip(vector) {
                for (sum, entry) in sums.iter_mut().zip(column) {
                    *sum += entry * factor;
                }
            }
            products.extend(sums);
        }
        products
    }

    /// The sum of all rows, each times its weight, to the first entries of `sum`.
    pub(crate) fn add_weighted(&self, weights: &[f64], sum: &mut [f64]) {
        let groups = self.entries.chunks_exact(GROUP * self.padded);
        for (group, weights) in groups.zip(weights.chunks_exact(GROUP)) {
            for (sum, column) in sum.iter_mut().zip(group.chunks_exact(GROUP)) {
                *sum += dot(column, weights);
            }
        }
    }

    /// Σ wᵢ zᵢ zᵢᵀ over some rows zᵢ, from and to multiples of six: the lower triangle in a square.
    /// `weights` has an entry for each of these rows.
    pub(crate) fn gram(&self, rows: Range<usize>, weights: &[f64]) -> Vec<f64> {
        let width = self.width;
        let parts: Vec<Vec<f64>> = weights
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, weights)| {
                let start = rows.start + chunk * CHUNK;
                let mut gram = vec![0.0; width * width];
                let mut together = vec![0.0; TOGETHER * width];
                let mut factors = [0.0; TOGETHER];
                let mut used = 0;
                for (offset, &weight) in weights.iter().enumerate() {
                    if weight == 0.0 {
                        continue;
                    }
                    factors[used] = weight;
                    self.copy_row(start + offset, &mut together[used * width..]);
                    used += 1;
                    if used == TOGETHER {
                        add_products(&mut gram, &together, factors, width);
                        used = 0;
                    }
                }
                factors[used..].fill(0.0);
                add_products(&mut gram, &together, factors, width);
                gram
            })
            .collect();
        sums(parts, width * width)
    }

    fn index(&self, row: usize, column: usize) -> usize {
        (row / GROUP * self.padded + column) * GROUP + row % GROUP
    }
}

/// Adds Σ wᵢ zᵢ zᵢᵀ of a few rows to the lower triangle.
fn add_products(gram: &mut [f64], rows: &[f64], weights: [f64; TOGETHER], width: usize) {
    let [first, second, third, fourth] = std::array::from_fn(|i| &rows[i * width..(i + 1) * width]);
    for (j, line) in gram.chunks_exact_mut(width).enumerate() {
        let [a, b, c, d] = std::array::from_fn(|i| weights[i] * rows[i * width + j]);
        let entries = line[..=j].iter_mut().zip(first.iter().zip(second));
        for ((sum, (x, y)), (z, w)) in entries.zip(third.iter().zip(fourth)) {
            *sum += (a * x + b * y) + (c * z + d * w);
        }
    }
}

/// The sum of vectors, in their order.
fn sums(parts: Vec<Vec<f64>>, length: usize) -> Vec<f64> {
    let mut total = vec![0.0; length];
    for part in parts {
        for (sum, term) in total.iter_mut().zip(&part) {
            *sum += term;
        }
    }
    total
}
