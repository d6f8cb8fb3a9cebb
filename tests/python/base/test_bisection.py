"""Searches that halve a bracket end where they should, on the sides that they say."""

import math
from itertools import pairwise

import pytest

from leakbound._base.bisection import halved

ROOT = math.sqrt(2)


def is_below(x: float) -> bool:
    return x * x <= 2


def test_at_width_0_the_ends_are_neighbouring_doubles() -> None:
    low, high = halved(0.0, 2.0, is_below)
    assert is_below(low)
    assert not is_below(high)
    assert math.nextafter(low, 2.0) == high


def test_the_last_number_may_be_the_smallest_above_zero() -> None:
    low, high = halved(0.0, 1.0, lambda x: x < 1e-320)
    assert low < 1e-320 <= high
    assert halved(0.0, 1.0, lambda _: False) == (0.0, math.nextafter(0.0, 1.0))


@pytest.mark.parametrize("width", [1e-3, 1e-9])
def test_a_width_is_relative_to_the_high_end(width: float) -> None:
    low, high = halved(0.0, 2.0, is_below, width=width)
    assert low <= ROOT <= high
    assert 0.1 * width * high < high - low <= width * high


def test_halvings_are_at_most_so_many_and_each_asks_once() -> None:
    asked: list[float] = []

    def holds(x: float) -> bool:
        asked.append(x)
        return is_below(x)

    low, high = halved(0.0, 2.0, holds, most=5)
    assert len(asked) == 5
    assert high - low == 2 / 2**5


def test_another_middle_is_asked_about() -> None:
    asked: list[float] = []

    def geometric(low: float, high: float) -> float:
        asked.append(math.sqrt(low * high))
        return asked[-1]

    low, high = halved(1e-6, 1e6, lambda x: x <= 3.0, width=1e-9, middle=geometric)
    assert low <= 3.0 < high
    assert asked[0] == 1.0
    assert all(one != other for one, other in pairwise(asked))
