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
_ROUNDING_ALLOWANCE = 1e-6
# Standard errors by which what canaries add may be short of the clipping norm.
_ALLOWED_STANDARD_ERRORS = 3.0


def audit_noise(observed: Observed, level: float) -> NoiseResult:
    """Bound the noise multiplier of some step by the squares of the released noise."""
    design = observed.design
    log_inverse_level = -math.log(level)
    step_numbers = np.arange(1, observed.steps + 1)
    # For many values 2 (evidence / values)^(1/2) is the best, of noise as planned.
    planned_values = design.size * design.max_steps
    relative_penalty = min(1.0, 2 * math.sqrt(log_inverse_level / planned_values))
    penalty = relative_penalty / (2 * observed.planned_noise**2)
    sums_of_squares = np.cumsum(observed.squares)
    with np.errstate(over="ignore"):
        penalties_of_steps = penalty * sums_of_squares * (1 + _ROUNDING_ALLOWANCE)
        log_growths = (log_inverse_level + penalties_of_steps) * 2 / (design.size * step_numbers)
        bounds_of_steps = np.sqrt(np.expm1(log_growths) / (2 * penalty))
    released_values = design.size * observed.steps
    standard_deviation = math.sqrt(float(sums_of_squares[-1]) / released_values)
    contribution, standard_error = _mean_contribution(observed)
    reason = ""
    if not contribution >= 1 - _ALLOWED_STANDARD_ERRORS * standard_error:
        reason = (
            f"canaries add {contribution:.3g} clipping norms to what is released, not 1: the scale "
            "differs from the optimizer's, or canaries were clipped with other examples"
        )
    return NoiseResult(
        bound=math.inf if reason else float(bounds_of_steps.min()),
        values=released_values,
        penalty=penalty,
        deviation=standard_deviation,
        added=contribution,
        reason=reason,
        confidence=1 - level,
    )


def _mean_contribution(observed: Observed) -> tuple[float, float]:
    """Return what step canaries add on average, in clipping norms, and its standard error."""
    step_coins = observed.design.step_coins()[: observed.steps]
    steps_included = int(np.count_nonzero(step_coins))
    if steps_included in {0, step_coins.size}:
        return 1.0, 0.0
    released_less_coins = np.clip(observed.released, -LARGEST, LARGEST) - step_coins
    mean_with = released_less_coins.mean(where=step_coins, dtype=np.float64)
    mean_without = released_less_coins.mean(where=~step_coins, dtype=np.float64)
    mean_square = (
        float(np.einsum("ij,ij->", released_less_coins, released_less_coins, dtype=np.float64))
        / step_coins.size
    )
    contribution = float(1 + mean_with - mean_without)
    steps_excluded = step_coins.size - steps_included
    standard_error = math.sqrt(mean_square / steps_included + mean_square / steps_excluded)
    return contribution, standard_error
