"""Canaries: examples of the user's data, streams of their own, a fair coin for each."""

from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import canaries, errors

X = np.random.default_rng(0).normal(size=(90, 2, 3)).astype(np.float32)
Y = np.arange(90) % 3 * 5  # classes are 0, 5 and 10
TEXT = np.random.default_rng(1).integers(50, size=(40, 6))


MAKERS = {
    "mislabelled": lambda seed: canaries.mislabelled(X, Y, 40, seed=seed),
    "random pixels": lambda seed: canaries.random_pixels(X, Y, 40, seed=seed),
    "random tokens": lambda seed: canaries.random_tokens(40, 6, vocabulary=50, seed=seed),
    "new tokens": lambda seed: canaries.new_tokens(TEXT, vocabulary=50, seed=seed),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_seed_gives_examples_and_the_coins_of_a_plan(kind: str) -> None:
    made, again, other = (MAKERS[kind](seed) for seed in (3, 3, 4))
    assert (made.kind, len(made), len(made.plan)) == (kind, 40, 40)
    np.testing.assert_array_equal(made.x, again.x)
    np.testing.assert_array_equal(made.y, again.y)
    assert made.plan == again.plan == lb.InclusionPlan.create(40, seed=3)
    assert made.plan != other.plan
    assert MAKERS[kind](None).plan != MAKERS[kind](None).plan
    assert kind == "new tokens" or not np.array_equal(made.x, other.x)
    x, y = made.included
    np.testing.assert_array_equal(x, made.x[made.plan.member])
    np.testing.assert_array_equal(y, made.y[made.plan.member])


@pytest.mark.parametrize("kind", MAKERS)
def test_examples_do_not_depend_on_coins(kind: str) -> None:
    """The first coins of a seed are those of every plan of it: examples must not follow them."""
    drawn = [MAKERS[kind](seed) for seed in range(12)]
    labels = np.concatenate([one.y.reshape(40, -1)[:, -1] for one in drawn]).astype(float)
    coins = np.concatenate([one.plan.member for one in drawn])
    # |r| sqrt(480) is below 4 but once in 15,000
    assert abs(np.corrcoef(labels, coins)[0, 1]) * np.sqrt(coins.size) < 4


def test_mislabelled_examples_are_the_users_with_another_class() -> None:
    made = MAKERS["mislabelled"](0)
    (taken,) = made.taken.T
    assert np.unique(taken).size == 40
    np.testing.assert_array_equal(made.x, X[taken])
    assert (made.y != Y[taken]).all()
    assert set(made.y) == {0, 5, 10}
    assert made.x.dtype == np.float32


def test_random_pixels_have_the_shape_and_range_of_the_data() -> None:
    made = MAKERS["random pixels"](0)
    assert made.x.shape == (40, 2, 3)
    assert made.taken.shape == (40, 0)
    assert X.min() <= made.x.min() < made.x.max() <= X.max()
    whole = canaries.random_pixels(np.arange(256, dtype=np.uint8)[:, None], np.arange(256) % 2, 9)
    assert whole.x.dtype == np.uint8


def test_new_tokens_stand_once_and_are_all_that_counts() -> None:
    made = MAKERS["new tokens"](0)
    assert made.x[:, -1].tolist() == list(range(50, 90))
    np.testing.assert_array_equal(made.x[:, :-1], TEXT[:, :-1])
    assert (made.y[:, :-1] == -100).all()
    np.testing.assert_array_equal(made.y[:, -1], made.x[:, -1])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: canaries.mislabelled(X, Y, 91), errors.OptionError, "n must be"),
        (lambda: canaries.mislabelled(X, Y[:-1], 9), errors.InputError, "y"),
        (lambda: canaries.mislabelled(X, Y * 0, 9), errors.InputError, "two classes"),
        (lambda: canaries.mislabelled(X * np.inf, Y, 9), errors.OptionError, "x must be"),
        (lambda: canaries.mislabelled(Y, Y, 9), errors.InputError, "a row for each"),
        (lambda: canaries.mislabelled(X, Y + 0.5, 9), errors.OptionError, "whole"),
        (lambda: canaries.random_tokens(3, 1, vocabulary=9), errors.OptionError, "length"),
        (lambda: canaries.new_tokens(TEXT, vocabulary=9), errors.OptionError, "prefixes"),
        (lambda: canaries.new_tokens([1, 2], vocabulary=9), errors.InputError, "table"),
        (lambda: canaries.mislabelled(X, Y, 9, seed=-1), errors.OptionError, "seed"),
    ],
)
def test_what_cannot_be_made(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
