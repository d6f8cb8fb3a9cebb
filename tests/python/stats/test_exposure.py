"""The certified count of exposed guesses, against exact sums and all laws of six coins."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import betainc, betaln

from leakbound.stats.exposure import PairGuesses, log_evidence, surely_seen_from
from programmes import best_law_of_coins

LEVEL = 0.05 / 6


def guesses(hits: object, ends: object = None) -> PairGuesses:
    """Return guesses that are right or wrong, the most confident first, in blocks of ties."""
    right = np.asarray(hits, dtype=bool)
    size = np.arange(right.size, 0, -1) if ends is None else ranks(np.asarray(ends))
    return PairGuesses.of(np.where(right, size, -size).astype(float))


def ranks(ends: np.ndarray) -> np.ndarray:
    """Return sizes, of which those of one block are equal; `ends` says where a block ends."""
    block = np.append(0, np.cumsum(ends)[:-1])
    found: np.ndarray = block.max() + 1 - block
    return found


@cache
def f(wrong: int, level: float) -> int:
    """Return the most right guesses that no count is certified from, one after the other."""
    right = wrong
    while exact(right + 1, wrong) * Fraction(level) < 1:
        right += 1
    return right


@cache
def exact(right: int, wrong: int) -> Fraction:
    """Return the evidence by integration by parts, from e(0, i) = 1/(2i + 1) on."""
    found = Fraction(1, 2 * wrong + 1)
    for w in range(right):
        found = (1 + 4 * (w + 1) * found) / (2 * w + 2 * wrong + 3)
    return found


@pytest.mark.parametrize("wrong", [0, 1, 2, 5, 17, 60, 200, 400])
def test_evidence_is_the_integral_rounded_down(wrong: int) -> None:
    right = np.arange(wrong + 1, wrong + 160, 7)
    found = log_evidence(right, np.full_like(right, wrong))
    for w, log in zip(right.tolist(), found.tolist(), strict=True):
        value = exact(w, wrong)
        true = math.log(value.numerator) - math.log(value.denominator)
        assert log <= true <= log + 4e-9


def test_evidence_of_many_guesses_is_that_of_beta_laws() -> None:
    """And is zero where wrong guesses are as many, at any size: no underflow counts as evidence."""
    wrong = np.array([1900, 20_000, 1_000_000, 5_000_000])
    right = wrong + 5 * np.sqrt(wrong).astype(int)
    tail = np.log(betainc(wrong + 0.5, right + 1, 0.5)) + betaln(right + 1, wrong + 0.5)
    expected = tail + (right + wrong) * math.log(2) - math.log(math.sqrt(2))
    expected -= math.log(betainc(0.5, 1, 0.5) * math.exp(betaln(1, 0.5))) - math.log(math.sqrt(2))
    assert log_evidence(right, wrong) == pytest.approx(expected, abs=1e-6)
    assert np.isneginf(log_evidence(wrong, right)).all()
    assert np.isneginf(log_evidence(np.append(0, wrong), np.append(2000, wrong))).all()


def test_numbers_right_by_chance() -> None:
    """The published row, and with so many right guesses more one is certified, never before."""
    row = {0: 8, 1: 12, 2: 15, 5: 22, 10: 32, 30: 65, 60: 108, 1000: 1191, 20_000: 20_898}
    for wrong, most in row.items():
        level = -math.log(LEVEL)
        at_most, above = log_evidence(np.array([most, most + 1]), np.full(2, wrong))
        assert at_most < level <= above
    assert surely_seen_from(LEVEL) == 9
    assert [surely_seen_from(level) - 1 for level in (0.05, 0.3)] == [f(0, 0.05), f(0, 0.3)]


@pytest.mark.parametrize("level", [0.5, 0.3, 0.05, LEVEL])
def test_the_count_is_the_largest_over_thresholds(level: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        hits, ends = rng.random(60) < rng.uniform(0.5, 1), rng.random(60) < 0.6
        ends[-1] = True
        right = np.cumsum(hits)
        wrong = np.arange(1, 61) - right
        counts = [int(right[j]) - f(int(wrong[j]), level) for j in np.flatnonzero(ends)]
        found = guesses(hits, ends)
        assert found.certified(level) == max(*counts, 0)
        assert (found.certified(level) > 0) == (found.p_value <= level)


@pytest.mark.parametrize("right", [1, 7, 40, 300])
def test_one_is_certified_from_the_p_value_on(right: int) -> None:
    """Equality included, which rounding must not decide in two ways."""
    found = guesses(np.ones(right))
    assert found.certified(found.p_value) >= 1
    assert found.certified(np.nextafter(found.p_value, 0)) == 0


def test_no_guess_certifies_nothing() -> None:
    none = PairGuesses.of(np.zeros(5))
    assert (none.certified(0.3), none.p_value, none.listed(0.5).tolist()) == (0, 1.0, [])
    assert guesses(np.ones(4000)).p_value > 0


def reached(level: float, exposed: int, first: int, of: int, *, claimed: int) -> float:
    """Return the chance that more than `claimed` are certified where only `exposed` ones are told.

    Before them and after them guesses are as coins fall; sums are exact, state by state.
    """
    chances, hit = {(0, 0): 1.0}, 0.0
    for step in range(of):
        told = first <= step < first + exposed
        following: dict[tuple[int, int], float] = {}
        for (right, wrong), chance in chances.items():
            for w, i, p in ((right + 1, wrong, 1.0 if told else 0.5), (right, wrong + 1, 0.5)):
                if told and i > wrong:
                    continue
                if w - f(i, level) > claimed:
                    hit += chance * p
                else:
                    following[w, i] = following.get((w, i), 0.0) + chance * p
        chances = following
    return hit


@pytest.mark.parametrize("level", [0.3, 0.05, LEVEL])
def test_coins_are_certified_no_more_often_than_stated(level: float) -> None:
    """By exact sums over 60 guesses; at three times the level, thresholds are reached too often."""
    assert 0.1 * level < reached(level, 0, 0, 60, claimed=0) <= level
    assert reached(3 * level, 0, 0, 60, claimed=0) > level
    for exposed, first in ((1, 0), (4, 0), (4, 6), (12, 3)):
        assert reached(level, exposed, first, 60, claimed=exposed) <= level


def test_of_few_exposed_one_is_seldom_certified() -> None:
    """The chances that the page states, at the best place among chance guesses."""
    best = {
        x: max(reached(LEVEL, x, first, 60, claimed=0) for first in range(6)) for x in (2, 4, 6, 8)
    }
    assert best == pytest.approx({2: 0.013, 4: 0.044, 6: 0.15, 8: 0.53}, rel=0.05)
    assert all(chance <= 2**x * LEVEL for x, chance in best.items())
    assert reached(LEVEL, 9, 0, 60, claimed=0) == pytest.approx(1.0)


COINS = list(product((False, True), repeat=6))
PLACE = {coins: place for place, coins in enumerate(COINS)}
TIES = ([True] * 6, [False, True, True, False, False, True])


def turned(coins: tuple[bool, ...], j: int) -> int:
    """Return the place of the outcome in which guess j is not as it was."""
    return PLACE[*coins[:j], not coins[j], *coins[j + 1 :]]


def unexposed_sets() -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Yield every set of guesses but the empty one, and which outcomes are no likelier than which.

    A guess is unexposed if, whatever the others are, "right" is no likelier than "wrong".
    """
    for mask in range(1, 64):
        unexposed = [j for j in range(6) if mask >> j & 1]
        bounds = [(PLACE[c], turned(c, j)) for c in COINS for j in unexposed if c[j]]
        yield unexposed, bounds


@pytest.mark.parametrize("ends", TIES)
def test_no_law_of_six_coins_is_certified_too_often(ends: list[bool]) -> None:
    """Over all laws: more certified than are exposed among the right guesses, of each set.

    At three times the level, some law is.
    """
    for level, most in {0.3: 0.3, 0.15: 0.15, 0.05: 0.05, 0.45: 1.0}.items():
        counts = [guesses(c, ends).certified(level) for c in COINS]
        chances = [0.0]
        for unexposed, bounds in unexposed_sets():
            exposed = [sum(c) - sum(c[j] for j in unexposed) for c in COINS]
            false = np.greater(counts, exposed).astype(float)
            if false.any():
                chances.append(best_law_of_coins(false, bounds))
        assert 0 < max(chances) <= most + 1e-7
    assert max(chances) > 0.45 / 3


def test_the_realised_coins_do_not_bound_the_count() -> None:
    """All of nine right or one wrong, equally likely: no guess is favoured where all are right.

    That is certified in one case of ten, which is why "exposed" asks for some coins of the others.
    """
    outcomes = [np.arange(9) != j for j in range(10)]
    certified = [guesses(hits).certified(LEVEL) for hits in outcomes]
    assert certified == [0] * 9 + [1]


@pytest.mark.parametrize("rate", [0.5, 0.34])
def test_no_law_of_six_coins_gives_a_list_with_more_false_ones(rate: float) -> None:
    """Over all laws, for sets of false guesses that depend on the other coins as they fell.

    A list at twice the rate has more.
    """
    rng = np.random.default_rng(2)
    worst = {rate: 0.0, 2 * rate: 0.0}
    for trial in range(24):
        share = (1.0, 0.8, 0.5)[trial % 3]
        keys = {(j, c[:j] + c[j + 1 :]) for j in range(6) for c in COINS}
        false = {key: rng.random() < share for key in sorted(keys)}

        told = {(c, j): c[j] and false[j, c[:j] + c[j + 1 :]] for c in COINS for j in range(6)}
        bounds = [(PLACE[c], turned(c, j)) for (c, j), is_false in told.items() if is_false]
        for at, before in worst.items():
            gain = np.zeros(64)
            for place, c in enumerate(COINS):
                listed = guesses(c, TIES[trial % 2]).listed(at).tolist()
                gain[place] = sum(told[c, j] for j in listed) / max(1, len(listed))
            worst[at] = max(before, best_law_of_coins(gain, bounds))
    assert worst[rate] <= rate + 1e-7
    assert worst[2 * rate] > rate
