//! Slopes λ(A) in segments, their integral Ψ, and derivatives by them.

/// Slopes e^{`logs[i]`} from A = `from[i]` on, the first from 0.
pub(super) struct Slopes<'a> {
    pub(super) from: &'a [f64],
    pub(super) values: Vec<f64>,
    pub(super) areas: Vec<f64>,
    /// Middles of all segments but the last.
    middles: Vec<f64>,
}

impl<'a> Slopes<'a> {
    pub(super) fn new(from: &'a [f64], logs: &[f64]) -> Self {
        let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let mut areas = vec![0.0; values.len()];
        for i in 1..values.len() {
            areas[i] = areas[i - 1] + values[i - 1] * (from[i] - from[i - 1]);
        }
        let middles = from.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        Self {
            from,
            values,
            areas,
            middles: middles.collect(),
        }
    }

    /// The segment of a price, starting the search at another one.
    pub(super) fn segment(&self, price: f64, mut at: usize) -> usize {
        while self.from.get(at + 1).is_some_and(|&next| next <= price) {
            at += 1;
        }
        while at > 0 && self.from[at] > price {
            at -= 1;
        }
        at
    }

    /// Ψ(A); linear below 0.
    pub(super) fn area(&self, price: f64, at: usize) -> f64 {
        self.areas[at] + self.values[at] * (price - self.from[at])
    }

    /// The price at which Ψ is so large, and its segment, starting the search at another one.
    pub(super) fn price(&self, area: f64, mut at: usize) -> (f64, usize) {
        while self.areas.get(at + 1).is_some_and(|&next| next <= area) {
            at += 1;
        }
        while at > 0 && self.areas[at] > area {
            at -= 1;
        }
        (
            self.from[at] + (area - self.areas[at]) / self.values[at],
            at,
        )
    }

    /// The least price A at which `share` Ψ(A) is `count` A + `rest`, and its segment, if there is one.
    pub(super) fn still(&self, share: f64, count: f64, rest: f64) -> Option<(f64, usize)> {
        let excess = |i: usize| share * self.areas[i] - count * self.from[i] - rest;
        let last = self.values.len() - 1;
        let at = (0..last).find(|&i| excess(i + 1) > 0.0).unwrap_or(last);
        let pull = share * self.values[at] - count;
        (pull > 0.0).then(|| (self.from[at] - excess(at) / pull, at))
    }

    /// About so many counts it takes prices from 0 to the segment where they stand still.
    pub(super) fn arrival(&self, share: f64, count: f64, rest: f64, at: usize) -> f64 {
        let speed = |i: usize| rest + count * self.from[i] - share * self.areas[i];
        let times = (0..at).map(|i| {
            let length = self.from[i + 1] - self.from[i];
            let (begin, end) = (speed(i), speed(i + 1));
            let growth = share * self.values[i] / count - 1.0;
            // Within a segment speed changes in proportion to the way.
            count * length * pace(end / begin - 1.0) / (begin * pace(growth))
        });
        times.sum()
    }

    /// A slope that does not jump: linear between the middles of segments.
    pub(super) fn smooth(&self, price: f64, at: usize) -> f64 {
        let last = self.values.len() - 1;
        if at == last {
            return self.values[last];
        }
        let (a, b) = if price < self.middles[at] {
            if at == 0 {
                return self.values[0];
            }
            (at - 1, at)
        } else if at + 1 == last {
            return self.values[at];
        } else {
            (at, at + 1)
        };
        let share = (price - self.middles[a]) / (self.middles[b] - self.middles[a]);
        self.values[a] + share * (self.values[b] - self.values[a])
    }
}

/// ln G/(G − 1), by which a step of several counts is slower than so many single ones; G − 1 given.
pub(super) fn pace(growth: f64) -> f64 {
    if growth.abs() < 1e-4 {
        1.0 - 0.5 * growth
    } else {
        growth.max(-0.999).ln_1p() / growth
    }
}
