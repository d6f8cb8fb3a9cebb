//! Sums of many numbers of one sign.

/// A running sum that carries its rounding errors along (Neumaier 1974): within an ulp or two of
/// the exact sum of numbers of one sign, however many.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CompensatedSum {
    total: f64,
    carried: f64,
}

impl CompensatedSum {
    pub(crate) fn add(&mut self, term: f64) {
        let total = self.total + term;
        self.carried += if self.total.abs() >= term.abs() {
            (self.total - total) + term
        } else {
            (term - total) + self.total
        };
        self.total = total;
    }

    pub(crate) fn value(self) -> f64 {
        self.total + self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::CompensatedSum;

    #[test]
    fn small_terms_survive_beside_a_large_sum() {
        let mut sum = CompensatedSum::default();
        sum.add(1.0);
        for _ in 0..1000 {
            sum.add(1e-17);
        }
        assert!((sum.value() - (1.0 + 1e-14)).abs() <= f64::EPSILON);
    }
}
