"""Which features give generated examples away by their extremes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.formatting import down
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound._base.validation import (
    check_length,
    check_scores,
    complement,
    numbers,
)
from leakbound.errors import LengthMismatchError, ShapeError
from leakbound.stats import kl_scan

__all__ = ["FeatureExtreme", "feature_extremes"]

Side: TypeAlias = Literal["high", "low"]
_SIDES: tuple[Side, ...] = ("high", "low")


@dataclass(frozen=True)
class FeatureExtreme:
    """One end of one feature: what lies beyond everything that was generated.

    Parameters
    ----------
    name : str
        The feature.
    side : str
        "high" or "low".
    limit : float
        The most extreme generated value.
    beyond : int
        How many members are beyond it.
    c_lb : float
        What this end alone proves: a lower bound on how close the generator is, with the feature as
        the baseline's score, at the joint confidence for all features and both ends.
    guesses : int or None
        How many of the baseline's guesses at its best cut are beyond the limit; None without a
        baseline.
    """

    name: str
    side: Side
    limit: float
    beyond: int
    c_lb: float
    guesses: int | None

    def __str__(self) -> str:
        sign = ">" if self.side == "high" else "<"
        text = f"{self.name} {sign} {self.limit:g}: {self.beyond} members, nothing generated"
        if self.guesses is not None:
            text += f"; {self.guesses} of the baseline's guesses"
        return f"{text}; alone c >= {down(self.c_lb)}"


def feature_extremes(
    values: ArrayInput,
    member: ArrayInput,
    *,
    names: Sequence[str] | None = None,
    baseline_scores: ArrayInput | None = None,
    confidence: float = 0.95,
    seed: int | None = None,
) -> tuple[FeatureExtreme, ...]:
    """Find the features whose extremes tell members from generated examples.

    With heavy tails a few members are further out than anything a generator made, and a baseline
    that finds them is right every time: its bound jumps, and varies from run to run with the few
    largest values. This names the features and the values. It is a diagnosis of the generator: what
    it says of members says nothing of the target.

    Parameters
    ----------
    values : array-like, shape (m, features)
        The examples of the audit. More axes are taken as features too.
    member : array-like of shape (m,)
        True for members, False for generated examples.
    names : sequence of str, optional
        Names of the features; by default "feature 0" and so on.
    baseline_scores : array-like of shape (m,), optional
        The baseline's scores: then each end says how many of its guesses it explains.
    confidence : float
        Joint confidence of all the bounds.
    seed : int, optional
        Seed of the order of equal values; by default a new one.

    Returns
    -------
    tuple of FeatureExtreme
        Both ends of all features, those that prove most first.

    Raises
    ------
    ArrayTypeError, ShapeError, LengthMismatchError, MembershipError, NaNScoresError, OptionError
        If values, membership, names and scores are not of the same examples and features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> member = rng.random(2000) < 0.5
    >>> income = np.where(member, np.exp(rng.normal(0, 2, 2000)), rng.uniform(0, 20, 2000))
    >>> age = rng.normal(size=2000)
    >>> found = feature_extremes(np.column_stack([age, income]), member, names=["age", "income"])
    >>> found[0].name, found[0].side, found[0].beyond > 50
    ('income', 'high', True)
    """
    alike = ExampleOrder()
    table = numbers(alike.placed(values, "values"), "values").astype(np.float64)
    coins = alike.member(member, len(table) if table.ndim else 0)
    if baseline_scores is not None:
        baseline_scores = alike.placed(baseline_scores, "baseline_scores")
    if table.ndim < 2 or coins.all() or not coins.any():
        message = (
            f"values of shape {table.shape} must have a row for each example and a feature in it, "
            "of members and of generated examples"
        )
        raise ShapeError(message)
    rows = table.reshape(len(table), -1)
    labels = _names(names, rows.shape[1])
    order = Purpose.EXTREMES.rng(seed_of(seed)).permutation(len(rows))
    beta = complement(confidence)
    guessed = _guessed(baseline_scores, coins, order, beta / 2)
    each = beta / (2 * rows.shape[1])
    found = [
        _end(labels[j], side, rows[:, j], coins, order, each, guessed)
        for j in range(rows.shape[1])
        for side in _SIDES
    ]
    return tuple(sorted(found, key=lambda end: (-end.c_lb, -end.beyond)))


def _names(names: Sequence[str] | None, features: int) -> list[str]:
    labels = [f"feature {j}" for j in range(features)] if names is None else list(names)
    if len(labels) != features:
        message = f"there are {len(labels)} names for {features} features; give one for each"
        raise LengthMismatchError(message)
    return labels


def _path(scores: FloatArray, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return examples by falling score, equal ones in a random order."""
    return order[np.argsort(-scores[order], kind="stable")]


def _guessed(
    scores: ArrayInput | None, coins: BoolArray, order: NDArray[np.intp], beta: float
) -> BoolArray | None:
    """Return which examples the baseline calls members at its best cut."""
    if scores is None:
        return None
    certain = check_scores(scores, "baseline_scores")
    check_length(certain, coins.size, "baseline_scores")
    path = _path(certain, order)
    guessed = np.zeros(coins.size, dtype=np.bool_)
    guessed[path[: kl_scan(coins[path], beta=beta).cut]] = True
    return guessed


def _end(
    name: str,
    side: Side,
    column: FloatArray,
    coins: BoolArray,
    order: NDArray[np.intp],
    beta: float,
    guessed: BoolArray | None,
) -> FeatureExtreme:
    scores = column if side == "high" else -column
    most = scores[~coins].max()
    beyond = scores > most
    bound = kl_scan(coins[_path(scores, order)], beta=beta)
    return FeatureExtreme(
        name=name,
        side=side,
        limit=float(most if side == "high" else -most),
        beyond=int(np.count_nonzero(beyond)),
        c_lb=max(0.0, bound.logit),
        guesses=None if guessed is None else int(np.count_nonzero(guessed & beyond)),
    )
