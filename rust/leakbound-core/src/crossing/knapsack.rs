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

#[cfg(test)]
mod tests {
    use super::{by_failures, knapsack};

    #[test]
    fn a_knapsack_buys_the_cheapest_first() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        let reached = [0.1, 0.3, 0.35, 1.0];
        close(knapsack(by_failures(reached), 0.0), 0.1);
        close(knapsack(by_failures(reached), 0.1), 0.2);
        close(knapsack(by_failures(reached), 0.2 + 0.04), 0.3 + 0.02);
        close(knapsack(by_failures(reached), 0.3 + 0.3), 0.35 + 0.1);
        close(knapsack(by_failures(reached), 9.0), 1.0);
    }
}
