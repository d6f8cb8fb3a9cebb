"""Thresholds between scores of few values, chosen from the labels of a part of each value."""

import math

import numpy as np

import leakbound._core as _core
from leakbound._base.types import FloatArray, IntArray

# So many values are few, of 1,000 examples; twice as many of ten times the examples.
_FEW, _LEAST, _MOST = 5, 4, 20
# Labels seen of the examples of a value: the first share up to a number, from there the second.
_SEEN, _ENOUGH, _SEEN_OF_MANY = 8, 60, 20
# Log-odds that guesses of a value may have, all as likely.
_SIZES = np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 9])
_LOG_ODDS = np.concatenate([-_SIZES[::-1], _SIZES])
_CHANCES = 1 / (1 + np.exp(-_LOG_ODDS))
# How often two values at opposite ends have opposite log-odds, if they are as frequent.
_MIRRORED = 0.7
# How much a model counts in which a higher score is less often a member's.
_FALLING = 0.1
# Points in a unit cube, spread evenly, one coordinate for each pair of opposite values.
_POINTS = np.outer(np.arange(64) + 0.5, np.sqrt([2, 3, 5, 7, 11, 13, 17, 19, 23, 29])) % 1


def guessed_values(
    scored: _core.Ranking, ranking: _core.Ranking, level: float
) -> tuple[int, int, int] | None:
    """Return guesses, correct ones, and those of "member".

    `ranking` has the ties of `scored` broken. Of each value the labels of its first examples are
    seen; guesses are about the others, of whole values from either end. None if values are many.
    """
    few = _FEW * 2 ** math.log10(scored.examples / 1000)
    if scored.blocks > max(_LEAST, min(_MOST, few)):
        return None
    path, ends = scored.path("member"), [0]
    while ends[-1] < scored.examples:
        ends.append(path.count(ends[-1] + 1)[0])
    if scored.blocks % 2:  # a value of no example makes their number even
        ends.insert(len(ends) // 2, ends[len(ends) // 2])
    start, end = np.array(ends[:-1]), np.array(ends[1:])
    sizes, order = end - start, ranking.path("member")
    seen = np.minimum(sizes // _SEEN, np.maximum(sizes // _SEEN_OF_MANY, _ENOUGH))

    def members(first: IntArray, last: IntArray) -> IntArray:
        above = [[order.count(int(n))[1] if n else 0 for n in ranks] for ranks in (first, last)]
        return np.subtract(above[1], above[0])

    top, bottom = chosen(sizes, seen, members(start, start + seen), level)
    left = sizes - seen
    # No label of these examples had a part in the choice.
    right = members(start + seen, end)
    named, others = int(left[:top].sum()), int(left[bottom:].sum())
    correct = int(right[:top].sum() + (left - right)[bottom:].sum())
    return named + others, correct, named


def chosen(sizes: IntArray, seen: IntArray, members: IntArray, level: float) -> tuple[int, int]:
    """Return how many values from the top are guessed "member", and the first guessed not to be.

    Known are the examples of an even number of values, the highest first, and the members among
    those that were `seen` of each. The choice has the largest bound expected, by Wilson's limit,
    over models of how often each value is a member's.
    """
    left, values, odds = sizes - seen, sizes.size, _LOG_ODDS.size
    place = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    prior = np.repeat(np.stack([place, 1 - place], axis=1) / _SIZES.size, _SIZES.size, axis=1)
    fit = np.outer(members, np.log(_CHANCES)) + np.outer(seen - members, np.log1p(-_CHANCES))
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    opposite = np.fliplr(np.diag(np.repeat([0, 1 / _SIZES.size], _SIZES.size)))
    chance: FloatArray = np.empty((len(_POINTS), values))
    for one, points in zip(range(values // 2), _POINTS.T, strict=False):
        other = values - 1 - one
        pair = sizes[[one, other]]
        share = _MIRRORED * pair.min() / pair.max()
        belief = share * opposite + (1 - share) * np.outer(prior[one], prior[other])
        sums = np.cumsum(belief * np.outer(fit[one], fit[other]))
        drawn = np.searchsorted(sums, points * sums[-1])
        chance[:, one], chance[:, other] = _CHANCES[drawn // odds], _CHANCES[drawn % odds]
    rising = (np.diff(chance[:, sizes > 0]) <= 0).all(axis=1)
    # Examples, and members expected, above the end of each value.
    above, held = (np.cumsum(np.insert(each, 0, 0, -1), -1) for each in (left, left * chance))
    top, bottom = np.triu_indices(values + 1)
    guesses = above[top] + above[-1] - above[bottom]
    top, bottom, guesses = top[guesses > 0], bottom[guesses > 0], guesses[guesses > 0]
    others = guesses - above[top]
    right = (held[:, top] + others - held[:, -1:] + held[:, bottom]) / guesses
    spread = np.maximum(0, -_core.normal_quantile(np.array([level]))) ** 2 / guesses
    root = np.sqrt(right * (1 - right) * spread + spread**2 / 4)
    limit = (right + spread / 2 - root) / (1 + spread)
    bounds = np.maximum(np.log(limit / (1 - limit)), 0)
    best = (np.where(rising, 1, _FALLING) @ bounds).argmax()
    return int(top[best]), int(bottom[best])
