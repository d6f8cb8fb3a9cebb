"""What tests may do under zero-concentrated DP: Rényi divergences of all orders at once.

A test with power p at level q is two-valued post-processing. Under ρ-zCDP the divergence of order a
of these two coins is at most ρ a for all a > 1, whichever of them comes first (Bun and Steinke
2016). Pairs (q, p) that obey one order are a convex set, since p^a q^(1-a) is jointly convex: so is
what obeys all of them, and its border is the trade-off function. Coins are written as log-odds.
"""

import math
from functools import lru_cache

import numpy as np

from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims.tradeoff import TradeOff, convex_hull

# Rényi orders. Fewer of them allow more, so that curves to test need not have all
_RENYI_ORDERS = 1 + np.geomspace(1e-2, 500.0, 48)
# Those of curves that allow less, and by how much less, so that orders in between are obeyed
_FINE_RENYI_ORDERS = 1 + np.geomspace(1e-3, 500.0, 160)
_SHARE_BELOW_CHORD = (_FINE_RENYI_ORDERS[-1] / _FINE_RENYI_ORDERS[-2] - 1) ** 2 / 4
# Levels, in shares of the one at which both errors are alike; the smallest power is e^-28
_NEAR_SHARES = np.geomspace(2e-2, 1.0, 40)
_FAR_POINTS = 80
_LN_SMALLEST_POWER = -28.0
# Halvings of a bracket of log-odds, and of one that has to be closed
_HALVINGS = 20
_HALVINGS_TO_CLOSE = 40
# Relative error of a divergence, by roundings of its exponentials
_ROUNDING = 1e-12


@lru_cache(maxsize=512)
def zcdp_curve(rho: float) -> TradeOff:
    """Return a curve that ρ-zCDP implies: it allows as much as some of its orders, or more.

    At a point outside of the border, the tangent of an order that is exceeded there has all tests
    that obey this order on one side: p - e^ε q is at most δ. Lines like this make the curve.
    """
    divergence_limits = rho * _RENYI_ORDERS
    level_odds = _level_log_odds(rho, divergence_limits)
    _, power_odds = _power_log_odds_brackets(
        level_odds, rho, divergence_limits, _RENYI_ORDERS, halvings=_HALVINGS
    )
    # 1. The order that is exceeded most at each point, and by which of the two ways round
    divergences = np.concatenate(
        [
            _renyi_divergences(power_odds, level_odds, _RENYI_ORDERS),
            _renyi_divergences(level_odds, power_odds, _RENYI_ORDERS),
        ]
    )
    excess_divergences = divergences - np.tile(divergence_limits, 2)[:, None]
    most_exceeded = excess_divergences.argmax(axis=0)
    tangent_order = _RENYI_ORDERS[most_exceeded % _RENYI_ORDERS.size]
    is_swapped = most_exceeded >= _RENYI_ORDERS.size
    # 2. The slope of its tangent there: of the divergence by q, over that by p
    by_power, by_level = _renyi_gradient(power_odds, level_odds, tangent_order)
    swapped_by_level, swapped_by_power = _renyi_gradient(level_odds, power_odds, tangent_order)
    level_derivative = np.where(is_swapped, swapped_by_level, by_level)
    power_derivative = np.where(is_swapped, swapped_by_power, by_power)
    tangent_slope = -level_derivative / power_derivative
    # 3. Lines of ε > 0, and mirrored, as members and others have the same curve
    is_outside = excess_divergences.max(axis=0) >= 0
    is_steep = is_outside & (tangent_slope > 1)
    tangent_slope = tangent_slope[is_steep]
    levels = _probability(level_odds[is_steep])
    powers = _probability(power_odds[is_steep])
    delta_of_line = powers - tangent_slope * levels + _ROUNDING * powers
    delta_of_line = np.clip(delta_of_line, 0.0, 1.0)
    delta_of_mirrored_line = 1 - (1 - delta_of_line) / tangent_slope + _ROUNDING
    delta_of_mirrored_line = np.minimum(delta_of_mirrored_line, 1.0)
    epsilon_of_line = np.log(tangent_slope)
    return TradeOff.profile(
        epsilon=np.concatenate([-epsilon_of_line, epsilon_of_line]),
        delta=np.concatenate([delta_of_mirrored_line, delta_of_line]),
    )


@lru_cache(maxsize=512)
def attained_zcdp_curve(rho: float) -> TradeOff:
    """Return a curve that allows no more than ρ-zCDP: through tests that obey every order.

    With D the divergence, (a - 1) D is convex in a. Between two orders it is below its chord, and
    that of ρ a (a - 1) is above it by a share of at most `_SHARE_BELOW_CHORD`. Below the first
    order D is at most as large as there, where it is at most ρ; above the last at most that of
    order ∞.
    """
    divergence_limits = rho * _FINE_RENYI_ORDERS * (1 - _SHARE_BELOW_CHORD)
    divergence_limits[0] = rho
    divergence_limits *= 1 - _ROUNDING
    level_odds = _level_log_odds(rho, rho * _RENYI_ORDERS)
    power_odds, _ = _power_log_odds_brackets(
        level_odds, rho, divergence_limits, _FINE_RENYI_ORDERS, halvings=_HALVINGS_TO_CLOSE
    )
    levels = _probability(level_odds)
    miss_probabilities = _probability(-power_odds)
    # The curve is its own mirror image: each test also has its two errors exchanged.
    table_levels = np.concatenate([[0.0], levels, miss_probabilities, [1.0]])
    f = np.concatenate([[1.0], miss_probabilities, levels, [0.0]])
    return TradeOff.table(*convex_hull(table_levels, np.minimum(f, 1 - table_levels)))


def _level_log_odds(rho: float, divergence_limits: FloatArray) -> FloatArray:
    """Return the log-odds of levels up to where both errors are alike: the rest is mirrored."""
    # 1. The level at which the two errors of the best test are alike, by halves.
    lowest_log_odds = -(rho + 40.0)
    highest_log_odds = 0.0
    for _ in range(_HALVINGS_TO_CLOSE):
        middle_log_odds = (lowest_log_odds + highest_log_odds) / 2
        level_odds = np.array([middle_log_odds])
        is_obeyed = _obeys_orders(-level_odds, level_odds, divergence_limits, _RENYI_ORDERS)
        if is_obeyed[0]:
            highest_log_odds = middle_log_odds
        else:
            lowest_log_odds = middle_log_odds
    equal_error_level = float(_probability(np.array([highest_log_odds]))[0])
    # 2. Levels near it, and far ones down to where the power is the smallest.
    near_levels = _NEAR_SHARES * equal_error_level
    ln_smallest_level = _LN_SMALLEST_POWER - rho - 2 * math.sqrt(-rho * _LN_SMALLEST_POWER)
    ln_farthest_level = min(ln_smallest_level, math.log(1e-4 * equal_error_level))
    far_levels = np.exp(np.linspace(ln_farthest_level, 0, _FAR_POINTS, endpoint=False))
    far_levels = far_levels[far_levels < _NEAR_SHARES[0] * equal_error_level]
    levels = np.concatenate([far_levels, near_levels])
    log_odds: FloatArray = np.log(levels) - np.log1p(-levels)
    return log_odds


def _power_log_odds_brackets(
    level_odds: FloatArray,
    rho: float,
    divergence_limits: FloatArray,
    renyi_orders: FloatArray,
    *,
    halvings: int,
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of the log-odds of the largest power at levels, by halves."""
    # Order 2 allows p²/q, and (1-q)²/(1-p), of at most the exponential of 2 rho.
    ln_power_limit = rho + _ln_probability(level_odds) / 2
    ln_small_power = np.minimum(ln_power_limit, -1.0)
    small_power_odds = ln_small_power - np.log1p(-np.exp(ln_small_power))
    limit_by_power = np.where(ln_power_limit < -1, small_power_odds, np.inf)
    limit_by_complement = 2 * rho - 2 * _ln_probability(-level_odds)
    lowest_power_odds = level_odds
    highest_power_odds = np.minimum(limit_by_power, limit_by_complement)
    for _ in range(halvings):
        middle_power_odds = (lowest_power_odds + highest_power_odds) / 2
        is_obeyed = _obeys_orders(middle_power_odds, level_odds, divergence_limits, renyi_orders)
        lowest_power_odds = np.where(is_obeyed, middle_power_odds, lowest_power_odds)
        highest_power_odds = np.where(is_obeyed, highest_power_odds, middle_power_odds)
    return lowest_power_odds, highest_power_odds


def _obeys_orders(
    power_odds: FloatArray,
    level_odds: FloatArray,
    divergence_limits: FloatArray,
    renyi_orders: FloatArray,
) -> BoolArray:
    """Return which pairs have divergences within limits, either way round, and at order ∞."""
    largest_divergences = np.maximum(
        _renyi_divergences(power_odds, level_odds, renyi_orders),
        _renyi_divergences(level_odds, power_odds, renyi_orders),
    )
    is_within: BoolArray = np.all(largest_divergences <= divergence_limits[:, None], axis=0)
    if renyi_orders is not _FINE_RENYI_ORDERS:
        return is_within
    # The divergence of order ∞ is the largest privacy loss.
    loss_of_heads = _ln_probability(power_odds) - _ln_probability(level_odds)
    loss_of_tails = _ln_probability(-level_odds) - _ln_probability(-power_odds)
    largest_loss = np.maximum(loss_of_heads, loss_of_tails)
    is_within &= largest_loss <= divergence_limits[-1]
    return is_within


def _renyi_divergences(
    first_odds: FloatArray, second_odds: FloatArray, renyi_orders: FloatArray
) -> FloatArray:
    """Return Rényi divergences of the first coin from the second, a row for each order."""
    order_column = renyi_orders[:, None]
    ln_heads, ln_tails = _ln_renyi_terms(first_odds, second_odds, order_column)
    divergences: FloatArray = np.logaddexp(ln_heads, ln_tails) / (order_column - 1)
    return divergences


def _renyi_gradient(
    first_odds: FloatArray, second_odds: FloatArray, renyi_order: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return derivatives of the divergence of two coins, by the first and by the second."""
    ln_heads, ln_tails = _ln_renyi_terms(first_odds, second_odds, renyi_order)
    share_of_heads = _probability(ln_heads - ln_tails)
    share_of_tails = _probability(ln_tails - ln_heads)
    first_score = share_of_heads / _probability(first_odds) - share_of_tails / _probability(
        -first_odds
    )
    derivative_by_first = first_score * renyi_order / (renyi_order - 1)
    derivative_by_second = share_of_tails / _probability(
        -second_odds
    ) - share_of_heads / _probability(second_odds)
    return derivative_by_first, derivative_by_second


def _ln_renyi_terms(
    first_odds: FloatArray, second_odds: FloatArray, renyi_order: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return logarithms of p^a q^(1-a) for heads and for tails of two coins."""
    remainder = 1 - renyi_order
    ln_heads = renyi_order * _ln_probability(first_odds) + remainder * _ln_probability(second_odds)
    ln_tails = renyi_order * _ln_probability(-first_odds) + remainder * _ln_probability(
        -second_odds
    )
    return ln_heads, ln_tails


def _probability(log_odds: FloatArray) -> FloatArray:
    """Return probabilities of log-odds."""
    probability: FloatArray = np.exp(_ln_probability(log_odds))
    return probability


def _ln_probability(log_odds: FloatArray) -> FloatArray:
    """Return logarithms of probabilities of log-odds."""
    ln_probability: FloatArray = -np.logaddexp(0, -log_odds)
    return ln_probability
