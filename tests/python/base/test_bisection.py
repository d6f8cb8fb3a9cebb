"""Searches that halve a bracket end where they should, on the sides that they say."""

import math
from itertools import pairwise

import pytest

from leakbound._base.numerics import doubled_and_halved, halved

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


@pytest.mark.parametrize("root", [0.3, 1.0, 1e-9, 5.7, 1e6])
def test_a_doubled_bracket_ends_where_one_from_zero_does(root: float) -> None:
    """Nothing is lost by leaving out the lower half of the bracket, where it is known to hold."""

    def holds(x: float) -> bool:
        return x <= root

    high = 2.0 ** math.ceil(math.log2(max(root, 1.0)) + 1)
    low_end, high_end = doubled_and_halved(holds)
    assert low_end == root
    assert (low_end, high_end) == halved(0.0, high, holds)


def test_a_doubled_bracket_stops_at_the_width_or_the_halvings_asked_for() -> None:
    low, high = doubled_and_halved(lambda x: x <= 5.7, most=3)
    assert (low, high) == (5.5, 6.0)
    low, high = doubled_and_halved(lambda x: x <= 5.7, width=0.1)
    assert high - low <= 0.1 * high
    assert doubled_and_halved(lambda _: False, most=1) == (0.0, 0.5)
