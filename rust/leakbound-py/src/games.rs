//! Simulated games.

use leakbound_core::Leak;
use pyo3::prelude::*;

use crate::audits::Ranking;
use crate::enter::enter;

/// Play `count` games from number `first`: Gaussian of μ = `value` or, where a fraction is given,
/// randomised response of ε = `value`.
#[pyfunction]
#[pyo3(signature = (value, *, fraction, examples, seed, first, count))]
pub(crate) fn play(
    py: Python<'_>,
    value: f64,
    fraction: Option<f64>,
    examples: usize,
    seed: u64,
    first: u64,
    count: u64,
) -> PyResult<Vec<Ranking>> {
    let leak = match fraction {
        None => Leak::Gaussian { mu: value },
        Some(fraction) => Leak::Response {
            epsilon: value,
            fraction,
        },
    };
    let rankings = enter(py, |interrupt| {
        let games = first..first.saturating_add(count);
        leakbound_core::play(leak, examples, seed, games, interrupt)
    })?;
    Ok(rankings.into_iter().map(Ranking).collect())
}
