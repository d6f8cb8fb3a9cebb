"""The released noise itself: its squares are too small if there is less of it than claimed.

What is released along a canary, less a prediction from all before, is Gaussian under the claim:
its standard deviation is at least the noise multiplier s, whatever its mean. So

    exp(-λ (R_1² + … + R_k²)) (1 + 2 λ s²)^(k/2)

is a nonnegative supermartingale for any λ > 0 fixed beforehand: it ever reaches 1/level with
probability at most level (Ville 1939), whenever the run ends. docs/theory/dp-sgd.md has the proof.
"""

import math

import numpy as np

from leakbound.audits.dp_sgd.canaries import LARGEST, Observed
from leakbound.results.dp_sgd import NoiseResult

# Relative allowance for rounding of what is released, in single precision, and of its squares.
_SLACK = 1e-6
# Standard errors by which what canaries add may be short of the clipping norm.
_SHORT = 3.0


def audit_noise(observed: Observed, level: float) -> NoiseResult:
    """Bound the noise multiplier of some step by the squares of the released noise."""
    design = observed.design
    evidence = -math.log(level)
    steps = np.arange(1, observed.steps + 1)
    # For many values 2 (evidence / values)^(1/2) is the best, of noise as planned.
    tilt = min(1.0, 2 * math.sqrt(evidence / (design.size * design.max_steps)))
    penalty = tilt / (2 * observed.planned_noise**2)
    squares = np.cumsum(observed.squares)
    with np.errstate(over="ignore"):
        logs = (evidence + penalty * squares * (1 + _SLACK)) * 2 / (design.size * steps)
        bounds = np.sqrt(np.expm1(logs) / (2 * penalty))
    deviation = math.sqrt(float(squares[-1]) / (design.size * observed.steps))
    added, error = _added(observed)
    reason = ""
    if not added >= 1 - _SHORT * error:
        reason = (
            f"canaries add {added:.3g} clipping norms to what is released, not 1: the scale "
            "differs from the optimizer's, or canaries were clipped with other examples"
        )
    return NoiseResult(
        bound=math.inf if reason else float(bounds.min()),
        values=design.size * observed.steps,
        penalty=penalty,
        deviation=deviation,
        added=added,
        reason=reason,
        confidence=1 - level,
    )


def _added(observed: Observed) -> tuple[float, float]:
    """Return what step canaries add on average, in clipping norms, and its standard error."""
    coins = observed.design.step_coins()[: observed.steps]
    heads = int(np.count_nonzero(coins))
    if heads in {0, coins.size}:
        return 1.0, 0.0
    noise = np.clip(observed.released, -LARGEST, LARGEST) - coins
    within = noise.mean(where=coins, dtype=np.float64)
    others = noise.mean(where=~coins, dtype=np.float64)
    square = float(np.einsum("ij,ij->", noise, noise, dtype=np.float64)) / coins.size
    return float(1 + within - others), math.sqrt(square / heads + square / (coins.size - heads))
