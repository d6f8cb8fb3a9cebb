//! Rows in the layout of the vector kernels.

use std::ops::Range;

use leakbound_simd::GROUP;

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
    pub(crate) fn zeros(rows: usize, width: usize) -> Self {
        let padded = width.next_multiple_of(GROUP);
        Self {
            entries: vec![0.0; rows * padded],
            rows,
            width,
            padded,
        }
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

    fn index(&self, row: usize, column: usize) -> usize {
        (row / GROUP * self.padded + column) * GROUP + row % GROUP
    }
}
