"""Attacks: against slow and obvious forms of themselves, and against the plain loss."""

import math
import subprocess
import sys
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import leakbound as lb
from leakbound.attacks import Scores, margin_threshold, offline_lira, rmia
from leakbound.errors import InputError, OptionError

Floats = NDArray[np.float64]


def slow_margins(logits: Floats, labels: Any) -> list[float]:
    found = []
    for row, label in zip(logits.tolist(), labels, strict=True):
        probabilities = [math.exp(z) for z in row]
        own = probabilities.pop(label)
        found.append(math.log(own / sum(probabilities)))
    return found


def slow_lira(margins: Floats, references: Floats, trained_on: Any) -> list[float]:
    """Return the paper's 1 - Pr[Z > φ], example by example."""
    outs = [
        [row[i] for row, seen in zip(references, trained_on, strict=True) if not seen[i]]
        for i in range(len(margins))
    ]
    means = [sum(out) / len(out) for out in outs]
    squares = [sum((x - mu) ** 2 for x in out) for out, mu in zip(outs, means, strict=True)]
    freedom = [len(out) - 1 for out in outs]
    pooled = math.sqrt(sum(squares) / sum(freedom))
    found = []
    for phi, mu in zip(margins, means, strict=True):
        found.append(NormalDist(mu, pooled).cdf(phi))
    return found


def slow_rmia(
    own: Floats, references: Floats, population: tuple[Floats, Floats], gamma: float, a: float
) -> list[float]:
    """Return the share of pairs won, pair by pair, in probabilities."""

    def ratio(p: float, outs: Floats) -> float:
        return p / (0.5 * ((1 + a) * float(np.mean(np.exp(outs))) + 1 - a))

    others = [ratio(math.exp(p), population[1][:, j]) for j, p in enumerate(population[0])]
    found = []
    for i, p in enumerate(own):
        mine = ratio(math.exp(p), references[:, i])
        found.append(sum(mine >= gamma * other for other in others) / len(others))
    return found


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.integers(0, 2**32 - 1))
def test_margins(seed: int) -> None:
    draw = rng(seed)
    logits = draw.normal(size=(20, 5)) * 3
    labels = draw.integers(5, size=20)
    found = margin_threshold(logits, labels)
    np.testing.assert_allclose(found.values, slow_margins(logits, labels), rtol=1e-9, atol=1e-9)
    assert found.signal == "margin_threshold"


@given(st.integers(0, 2**32 - 1))
def test_lira_orders_as_the_paper_does(seed: int) -> None:
    draw = rng(seed)
    margins, references = draw.normal(size=15), draw.normal(size=(6, 15)) + draw.normal(size=15)
    trained_on = draw.random((6, 15)) < 0.5
    trained_on[:2] = False
    found = offline_lira(margins, references, trained_on=trained_on)
    expected = slow_lira(margins, references, trained_on)
    np.testing.assert_allclose(lb.stats.normal_cdf(found.values), expected, rtol=1e-6, atol=1e-12)


def test_lira_stays_apart_where_the_papers_score_rounds_to_one() -> None:
    margins = np.linspace(10, 30, 50)
    references = np.tile([[-1.0], [1.0]], 50)
    trained_on = np.zeros((2, 50))
    assert set(slow_lira(margins, references, trained_on)[20:]) == {1.0}
    found = offline_lira(margins, references, trained_on=trained_on).values
    assert (np.diff(found) > 0).all()


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.3, 0.9])
)
def test_the_share_of_pairs_won_grows_with_rmia(seed: int, gamma: float, scale: float) -> None:
    draw = rng(seed)
    own, references = -draw.exponential(size=15), -draw.exponential(size=(4, 15))
    population = -draw.exponential(size=40), -draw.exponential(size=(4, 40))
    found = rmia(own, references, offline_scale=scale)
    won = np.array(slow_rmia(own, references, population, gamma, scale))
    assert (np.diff(won[np.argsort(found.values)]) >= 0).all()


def test_rmia_leaves_models_out_that_were_trained_on_the_example() -> None:
    own, references = -rng(0).exponential(size=8), -rng(1).exponential(size=(5, 8))
    trained_on = np.zeros((5, 8))
    trained_on[1:4] = 1
    found = rmia(own, references, trained_on=trained_on)
    np.testing.assert_allclose(found.values, rmia(own, references[[0, 4]]).values, rtol=1e-14)


def test_rmia_does_not_underflow() -> None:
    own = np.array([-2000.0, -1500.0, -np.inf, 0.0])
    references = np.full((2, 4), -3000.0)
    found = rmia(own, references)
    marginal = np.log(0.35)  # (1 - 0.3) / 2: all that is left of it
    np.testing.assert_allclose(found.values, own - marginal, rtol=1e-14)


ATTACKS: dict[str, Callable[..., Scores]] = {
    "margin_threshold": lambda **o: margin_threshold(np.eye(3), [0, 1, 1], **o),
    "offline_lira": lambda **o: offline_lira([1.0, 2.0, 4.0], [[0, 0, 0], [1, 1, 2]], **o),
    "rmia": lambda **o: rmia([-1.0, -2.0, -4.0], [-1.0, -1.0, -1.0], **o),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_all_return_scores(name: str) -> None:
    found = ATTACKS[name](ids=["x", "y", "z"])
    assert isinstance(found, Scores)
    assert found.signal == name
    assert found.ids.tolist() == ["x", "y", "z"]
    assert found.values.dtype == np.float64
    assert not found.values.flags.writeable
    assert ATTACKS[name]().ids.tolist() == [0, 1, 2]
    for ids, words in (([1, 2], "ids has 2 values"), ([1, 2, 2], "more than once")):
        with pytest.raises(InputError, match=words):
            ATTACKS[name](ids=ids)


BAD: list[tuple[Callable[[], Scores], type[Exception], str]] = [
    (lambda: margin_threshold([[1.0], [2.0]], [0, 0]), InputError, "at least two columns"),
    (lambda: margin_threshold(np.eye(2), [0, 2]), OptionError, r"labels must .* got 2 at index 1"),
    (lambda: margin_threshold(np.eye(2), [0]), InputError, "labels has 1 values"),
    (
        lambda: margin_threshold([[np.inf, np.inf]], [0]),
        InputError,
        "margin_threshold must not be NaN",
    ),
    (lambda: offline_lira([1.0], [[1.0, 2.0]]), InputError, "has 2 columns and there"),
    (lambda: offline_lira([1.0], [[np.inf], [0.0]]), OptionError, "finite, got ±inf in row 0"),
    (lambda: offline_lira([1.0], [[1.0]]), OptionError, "no spread about their means"),
    (lambda: offline_lira([1.0], [[1.0], [1.0]]), OptionError, "no spread about their means"),
    (
        lambda: offline_lira([1.0, 1.0], np.eye(2), trained_on=[[0, 1], [0, 1]]),
        OptionError,
        "every reference was trained on 1 of the examples, the first in column 1",
    ),
    (
        lambda: offline_lira([1.0, 1.0], np.eye(2), trained_on=[0, 1]),
        InputError,
        r"trained_on has shape \(1, 2\)",
    ),
    (lambda: rmia([0.5], [-1.0]), OptionError, "log_probabilities must be at most 0, got 0.5"),
    (lambda: rmia([-1.0], [0.1]), OptionError, "reference_log_probabilities must be at most 0"),
    (lambda: rmia([-1.0], [-1.0], offline_scale=1), OptionError, "offline_scale must be"),
    (lambda: rmia([-1.0], np.zeros((2, 2, 1))), InputError, "a row for each model"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input(case: int) -> None:
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()


def test_margins_do_not_overflow() -> None:
    found = margin_threshold([[1e4, 0.0, 1.0], [-1e4, 0.0, 0.0], [np.inf, 0.0, 0.0]], [0, 0, 0])
    expected = [1e4 - np.log1p(math.e), -1e4 - np.log(2), np.inf]
    np.testing.assert_allclose(found.values, expected, rtol=1e-15)


def test_no_torch_is_needed() -> None:
    code = "import sys; sys.modules['torch'] = None; import leakbound.attacks"
    subprocess.run([sys.executable, "-c", code], check=True)
