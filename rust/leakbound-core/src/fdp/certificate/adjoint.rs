//! How the last of some prices changes with slopes: derivatives propagated backwards through steps.

use super::slopes::Slopes;

/// A place where Ψ was read, and by how much its value moves the next price.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub(super) price: f64,
    pub(super) segment: usize,
    pub(super) weight: f64,
    /// The derivative of the change by the price itself.
    pub(super) growth: f64,
}

/// One step: a midpoint, unless it is over one count, and the next price from there.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) first: Option<Read>,
    pub(super) second: Read,
}

/// A price, and its derivative by what stands for the force less κ: 1 − κ above c, −κ below.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    pub(super) price: f64,
    pub(super) by_gained: f64,
}

/// The price that others are followed up from.
pub(super) struct Foot {
    /// Its count.
    pub(super) j: f64,
    pub(super) bottom: Read,
    /// The derivative by ln λ of the first segment, beside that of Ψ.
    pub(super) direct: f64,
    pub(super) by_kappa: f64,
}

/// Where prices start below c, and the highest, that of c − 1.
pub(super) struct Climb {
    pub(super) foot: Foot,
    pub(super) price: f64,
    pub(super) by_kappa: f64,
}

/// Derivatives by Ψ at prices, to be turned into derivatives by slopes.
struct Sums<'a> {
    partial: Vec<f64>,
    whole: Vec<f64>,
    from: &'a [f64],
    slopes: &'a [f64],
}

impl<'a> Sums<'a> {
    fn new(slopes: &'a Slopes<'_>) -> Self {
        let zeros = vec![0.0; slopes.from.len()];
        Self {
            partial: zeros.clone(),
            whole: zeros,
            from: slopes.from,
            slopes: &slopes.values,
        }
    }

    fn add(&mut self, read: &Read, adjoint: f64) {
        let weight = adjoint * read.weight;
        self.partial[read.segment] += weight * (read.price - self.from[read.segment]);
        self.whole[read.segment] += weight;
    }

    /// Derivatives by ln λ.
    fn by_log(&self) -> Vec<f64> {
        let mut found = self.partial.clone();
        let mut later = 0.0;
        for i in (0..found.len()).rev() {
            if i + 1 < found.len() {
                found[i] += later * (self.from[i + 1] - self.from[i]);
            }
            later += self.whole[i];
        }
        for (slot, slope) in found.iter_mut().zip(self.slopes) {
            *slot *= slope;
        }
        found
    }
}

/// Derivatives of the last price of some steps by ln λ, those by a read before the first included,
/// and the derivative by what that read gave.
pub(super) fn propagate(
    steps: &[Step],
    before: Option<&Read>,
    slopes: &Slopes<'_>,
) -> (Vec<f64>, f64) {
    let mut sums = Sums::new(slopes);
    let mut adjoint = 1.0;
    for step in steps.iter().rev() {
        sums.add(&step.second, adjoint);
        let middle = adjoint * step.second.growth;
        adjoint += middle;
        if let Some(first) = &step.first {
            sums.add(first, middle);
            adjoint += middle * first.growth;
        }
    }
    if let Some(read) = before {
        sums.add(read, adjoint);
    }
    (sums.by_log(), adjoint)
}
