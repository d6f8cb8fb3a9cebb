//! The worst that failures of a bounded mean can add to the probability of a crossing.

/// The most that P(F ≥ K) can be if E F ≤ `budget` and P(K ≤ k) is at most what stands by k in the
/// increasing `reached`: paths are bought, k of the budget for each unit of probability that needs
/// k failures, the cheapest first.
pub(crate) fn knapsack(reached: impl IntoIterator<Item = (f64, f64)>, budget: f64) -> f64 {
    let (mut value, mut left) = (0.0, budget);
    for (price, reached) in reached {
        let increment = (reached - value).max(0.0);
        if increment * price > left {
            return value + left / price;
        }
        left -= increment * price;
        value = value.max(reached);
        if value >= 1.0 {
            break;
        }
    }
    value
}

/// Each value with its number k = 0, 1, … of failures.
pub(crate) fn by_failures(
    reached: impl IntoIterator<Item = f64>,
) -> impl Iterator<Item = (f64, f64)> {
    let numbered = reached.into_iter().enumerate();
    numbered.map(|(failures, value)| (failures as f64, value))
}

/// The upper concave envelope at `mean` of an increasing function, given by points from 0 on; beyond
/// the last, and where it is 1, it is constant.
pub(crate) fn envelope(reached: impl Iterator<Item = (f64, f64)>, mean: f64) -> f64 {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for next in reached {
        while let [.., before, last] = hull[..] {
            // `last` lies on or below the line from `before` to `next`.
            if (last.1 - before.1) * (next.0 - before.0) > (next.1 - before.1) * (last.0 - before.0)
            {
                break;
            }
            hull.pop();
        }
        hull.push(next);
        if next.1 >= 1.0 || (mean == 0.0 && next.0 == 0.0) {
            break;
        }
    }
    let after = hull.partition_point(|point| point.0 <= mean);
    let left = hull[after.max(1) - 1];
    hull.get(after).map_or(left.1, |right| {
        left.1 + (right.1 - left.1) * (mean - left.0) / (right.0 - left.0)
    })
}

#[cfg(test)]
mod tests {
    use super::{by_failures, envelope};

    #[test]
    fn an_envelope_is_the_best_mixture_of_two_values() {
        let reached = [0.1, 0.15, 0.6, 0.7, 1.0];
        for mean in [0.0, 0.3, 1.0, 1.9, 2.0, 3.5, 4.0, 7.0] {
            let at = |k: usize| (k as f64, reached[k]);
            let mut best = if mean >= 4.0 { 1.0_f64 } else { 0.0 };
            for (i, j) in (0..5).flat_map(|i| (i..5).map(move |j| (i, j))) {
                let ((a, low), (b, high)) = (at(i), at(j));
                if a <= mean && mean <= b {
                    let share = if b > a { (mean - a) / (b - a) } else { 0.0 };
                    best = best.max(low + share * (high - low));
                }
            }
            let ours = envelope(by_failures(reached), mean);
            assert!((ours - best).abs() < 1e-15, "{mean}: {ours} {best}");
        }
    }
}
