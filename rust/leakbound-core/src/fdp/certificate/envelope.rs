//! f̄ from above, by straight lines.

use crate::fdp::tradeoff::function::TradeOff;

/// δ at a slope is taken at a slope lower by this, for the rounding of the exponential.
const SLOPE_ROUNDING: f64 = 8.0 * f64::EPSILON;
/// Lines that locate where a curve bends are at most this far apart in ε, and at least that far.
const WIDEST: f64 = 4.0;
const NARROWEST: f64 = 1e-9;
/// Levels below e to the minus this of the largest do not matter.
const DEEPEST: f64 = 690.0;
/// Slopes e^ε for |ε| up to here: beyond, they are no normal numbers.
const FARTHEST: f64 = 700.0;

/// A line f̄(x) ≤ height + slope x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) height: f64,
}

impl Line {
    /// The line of slope e^ε that touches a curve, or lies just above.
    fn tangent(curve: &dyn TradeOff, epsilon: f64) -> Self {
        Self {
            slope: epsilon.exp() * (1.0 + SLOPE_ROUNDING),
            height: curve.delta(epsilon),
        }
    }

    /// The x at which a flatter line takes over.
    fn crossing(self, flatter: Self) -> f64 {
        (flatter.height - self.height) / (self.slope - flatter.slope)
    }
}

/// The lower envelope of lines above f̄, the steepest first; the last is f̄ ≤ 1.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) lines: Vec<Line>,
    /// Where each line hands over to the next: increasing, the last infinite.
    pub(super) handovers: Vec<f64>,
}

impl Envelope {
    /// Lines of slopes e^ε that touch `curve`, `epsilons` in any order.
    pub(super) fn new(curve: &dyn TradeOff, mut epsilons: Vec<f64>) -> Self {
        epsilons.retain(|epsilon| epsilon.abs() <= FARTHEST);
        epsilons.sort_by(|a, b| b.total_cmp(a));
        epsilons.dedup();
        let ceiling = Line {
            slope: 0.0,
            height: 1.0,
        };
        let tangents = epsilons.iter().map(|&e| Line::tangent(curve, e));
        let mut lines: Vec<Line> = Vec::with_capacity(epsilons.len() + 1);
        for line in tangents.chain([ceiling]) {
            while lines.last().is_some_and(|last| last.height >= line.height) {
                lines.pop();
            }
            while let [.., a, b] = lines[..]
                && a.crossing(b) >= b.crossing(line)
            {
                lines.pop();
            }
            lines.push(line);
        }
        let crossings = lines.windows(2).map(|pair| pair[0].crossing(pair[1]));
        let handovers = crossings.chain([f64::INFINITY]).collect();
        Self { lines, handovers }
    }

    /// The envelope at x ≥ 0, and the line there.
    pub(super) fn at(&self, x: f64) -> (f64, usize) {
        let line = self.handovers.partition_point(|&handover| handover < x);
        let Line { slope, height } = self.lines[line];
        (height + slope * x, line)
    }
}

/// Values of ε between which a curve's tangents touch at levels not far apart, for levels from
/// 1e-300 of `largest` up to it: dense enough to find where to look closely.
pub(super) fn survey(curve: &dyn TradeOff, largest: f64) -> Vec<f64> {
    // How far below the largest level, in logarithms; −∞ … at least 0 where it does not matter.
    let depth = |epsilon: f64| (largest / curve.tangent(epsilon)).ln();
    let mut low = -1e-3;
    while depth(low) > 0.0 && low > -FARTHEST {
        low *= 2.0;
    }
    let mut high = 1e-3;
    while depth(high) < DEEPEST && high < FARTHEST {
        high *= 2.0;
    }
    let mut found = vec![low, high];
    let mut pending = vec![((low, depth(low)), (high, depth(high)))];
    while let Some((a, b)) = pending.pop() {
        let width = b.0 - a.0;
        let from = a.1.max(0.0);
        let close = b.1 - from <= 1.0 + 0.15 * from && width <= WIDEST;
        if b.1 <= 0.0
            || a.1 > DEEPEST
            || close
            || width <= NARROWEST + 1e-3 * a.0.abs().max(b.0.abs())
        {
            continue;
        }
        let middle = 0.5 * (a.0 + b.0);
        let middle = (middle, depth(middle));
        found.push(middle.0);
        pending.extend([(a, middle), (middle, b)]);
    }
    found
}
