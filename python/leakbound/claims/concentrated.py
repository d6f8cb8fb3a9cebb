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

# Orders of divergences. Fewer of them allow more, so that curves to test need not have all
_ORDERS = 1 + np.geomspace(1e-2, 500.0, 48)
# Those of curves that allow less, and by how much less, so that orders in between are obeyed
_FINE_ORDERS = 1 + np.geomspace(1e-3, 500.0, 160)
_LESS = (_FINE_ORDERS[-1] / _FINE_ORDERS[-2] - 1) ** 2 / 4
# Levels, in shares of the one at which both errors are alike; the smallest power is e^-28
_NEAR = np.geomspace(2e-2, 1.0, 40)
_FAR_POINTS = 80
_LN_SMALLEST = -28.0
# Halvings of a bracket of log-odds, and of one that has to be closed
_HALVINGS = 20
_CLOSED = 40
# Relative error of a divergence, by roundings of its exponentials
_ROUNDING = 1e-12


@lru_cache(maxsize=512)
def allowed(rho: float) -> TradeOff:
    """Return a curve that ρ-zCDP implies: it allows as much as some of its orders, or more.

    At a point outside of the border, the tangent of an order that is exceeded there has all tests
    that obey this order on one side: p - e^ε q is at most δ. Lines like this make the curve.
    """
    limits = rho * _ORDERS
    q = _levels(rho, limits)
    p = _border(q, rho, limits, _ORDERS, halvings=_HALVINGS)[1]
    # 1. The order that is exceeded most at each point, and by which of the two ways round
    both = [_renyi(p, q, _ORDERS), _renyi(q, p, _ORDERS)]
    excess = np.concatenate(both) - np.tile(limits, 2)[:, None]
    place = excess.argmax(axis=0)
    order = _ORDERS[place % _ORDERS.size]
    swapped = place >= _ORDERS.size
    # 2. The slope of its tangent there: of the divergence by q, over that by p
    up, along = _gradient(p, q, order)
    other_along, other_up = _gradient(q, p, order)
    slope = -np.where(swapped, other_along, along) / np.where(swapped, other_up, up)
    # 3. Lines of ε > 0, and mirrored, as members and others have the same curve
    steep = (excess.max(axis=0) >= 0) & (slope > 1)
    slope = slope[steep]
    power = _chance(p[steep])
    delta = power - slope * _chance(q[steep]) + _ROUNDING * power
    delta = np.clip(delta, 0.0, 1.0)
    mirrored = np.minimum(1 - (1 - delta) / slope + _ROUNDING, 1.0)
    epsilon = np.log(slope)
    return TradeOff.profile(np.concatenate([-epsilon, epsilon]), np.concatenate([mirrored, delta]))


@lru_cache(maxsize=512)
def attained(rho: float) -> TradeOff:
    """Return a curve that allows no more than ρ-zCDP: through tests that obey every order.

    With D the divergence, (a - 1) D is convex in a. Between two orders it is below its chord, and
    that of ρ a (a - 1) is above it by a share of at most `_LESS`. Below the first order D is at
    most as large as there, where it is at most ρ; above the last at most that of order ∞.
    """
    limits = rho * _FINE_ORDERS * (1 - _LESS)
    limits[0] = rho
    limits *= 1 - _ROUNDING
    q = _levels(rho, rho * _ORDERS)
    p = _border(q, rho, limits, _FINE_ORDERS, halvings=_CLOSED)[0]
    level = _chance(q)
    missed = _chance(-p)
    x = np.concatenate([[0.0], level, missed, [1.0]])
    y = np.concatenate([[1.0], missed, level, [0.0]])
    return TradeOff.table(*convex_hull(x, np.minimum(y, 1 - x)))


def _levels(rho: float, limits: FloatArray) -> FloatArray:
    """Return the log-odds of levels up to where both errors are alike: the rest is mirrored."""
    low = -(rho + 40.0)
    high = 0.0
    for _ in range(_CLOSED):
        middle = (low + high) / 2
        one = np.array([middle])
        if _obeys(-one, one, limits, _ORDERS)[0]:
            high = middle
        else:
            low = middle
    alike = float(_chance(np.array([high]))[0])
    farthest = _LN_SMALLEST - rho - 2 * math.sqrt(-rho * _LN_SMALLEST)
    far = np.exp(np.linspace(min(farthest, math.log(1e-4 * alike)), 0, _FAR_POINTS, endpoint=False))
    levels = np.concatenate([far[far < _NEAR[0] * alike], _NEAR * alike])
    odds: FloatArray = np.log(levels) - np.log1p(-levels)
    return odds


def _border(
    q: FloatArray, rho: float, limits: FloatArray, orders: FloatArray, *, halvings: int
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of the log-odds of the largest power at levels, by halves."""
    # Order 2 allows p²/q, and (1-q)²/(1-p), of at most the exponential of 2 rho.
    low = q
    root = rho + _ln_chance(q) / 2
    small = np.minimum(root, -1.0)
    odds = small - np.log1p(-np.exp(small))
    by_level = np.where(root < -1, odds, np.inf)
    high = np.minimum(by_level, 2 * rho - 2 * _ln_chance(-q))
    for _ in range(halvings):
        middle = (low + high) / 2
        inside = _obeys(middle, q, limits, orders)
        low = np.where(inside, middle, low)
        high = np.where(inside, high, middle)
    return low, high


def _obeys(p: FloatArray, q: FloatArray, limits: FloatArray, orders: FloatArray) -> BoolArray:
    """Return which pairs have divergences within limits, either way round, and at order ∞."""
    most = np.maximum(_renyi(p, q, orders), _renyi(q, p, orders))
    within: BoolArray = np.all(most <= limits[:, None], axis=0)
    if orders is _FINE_ORDERS:
        loss = _ln_chance(p) - _ln_chance(q)
        complement = _ln_chance(-q) - _ln_chance(-p)
        within &= np.maximum(loss, complement) <= limits[-1]
    return within


def _renyi(p: FloatArray, q: FloatArray, orders: FloatArray) -> FloatArray:
    """Return divergences of two coins, a row for each order."""
    a = orders[:, None]
    heads = a * _ln_chance(p) + (1 - a) * _ln_chance(q)
    tails = a * _ln_chance(-p) + (1 - a) * _ln_chance(-q)
    divergence: FloatArray = np.logaddexp(heads, tails) / (a - 1)
    return divergence


def _gradient(p: FloatArray, q: FloatArray, order: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return derivatives of the divergence of two coins, by the first and by the second."""
    heads = order * _ln_chance(p) + (1 - order) * _ln_chance(q)
    tails = order * _ln_chance(-p) + (1 - order) * _ln_chance(-q)
    share = _chance(heads - tails)
    rest = _chance(tails - heads)
    first = (share / _chance(p) - rest / _chance(-p)) * order / (order - 1)
    second = rest / _chance(-q) - share / _chance(q)
    return first, second


def _chance(odds: FloatArray) -> FloatArray:
    """Return probabilities of log-odds."""
    chance: FloatArray = np.exp(_ln_chance(odds))
    return chance


def _ln_chance(odds: FloatArray) -> FloatArray:
    """Return logarithms of probabilities of log-odds."""
    logarithm: FloatArray = -np.logaddexp(0, -odds)
    return logarithm
