"""Results know what was audited, however the caller's arrays change afterwards."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

import leakbound as lb
from leakbound._base.scores import Scores
from leakbound.audits import Stream

rng = np.random.default_rng(5)
M = 240
MEMBER = rng.random(M) < 0.5
SCORE = rng.normal(size=M) + 1.5 * MEMBER
OTHER = rng.normal(size=M) + 0.5 * MEMBER
CHANCE = rng.uniform(0.2, 0.8, M)
FEATURES = rng.normal(size=(M, 2))

Inputs = SimpleNamespace
Audit = Callable[[Inputs], Any]


def streamed(given: Inputs) -> Any:
    stream = Stream()
    stream.update(given.score, given.member)
    for values in vars(given).values():
        scramble(values)
    return stream.result()


AUDITS: dict[str, Audit] = {
    "coins": lambda x: lb.audit(x.score, lb.Coins(x.member), ids=x.ids),
    "attacks": lambda x: lb.audit({"a": x.score, "b": x.other}, lb.Coins(x.member)),
    "rows of attacks": lambda x: lb.audit(x.rows, lb.Coins(x.member)),
    "biased coins": lambda x: lb.audit(x.score, lb.Coins(x.member, prior=x.chance)),
    "stream": streamed,
    "PANORAMIA": lambda x: lb.audit(
        x.score, lb.Panoramia(x.member, baseline=x.other, features=x.x), ids=x.ids
    ),
    "Zero-Run": lambda x: lb.audit(x.score, lb.ZeroRun(x.member, x.chance)),
    "matching": lambda x: lb.audit(x.score, lb.ZeroRun(x.member, x.chance), claim=lb.GaussianDP()),
    "limits": lambda x: lb.audit(x.score, lb.ZeroRun(x.member, (x.chance, x.chance))),
    "features": lambda x: lb.audit(x.score, lb.ZeroRun(x.member, x.chance, features=x.x)),
}


def inputs() -> Inputs:
    """New arrays of one game."""
    rows, ids = np.array([SCORE, OTHER]), np.arange(M)
    given = {"score": SCORE, "other": OTHER, "member": MEMBER, "chance": CHANCE, "x": FEATURES}
    return Inputs(**{key: one.copy() for key, one in given.items()}, rows=rows, ids=ids)


def scramble(values: NDArray[Any]) -> None:
    values[...] = values[..., ::-1].copy() if values.ndim == 1 else 0.5
    values.flat[:17] = values.flat[17]


def read(result: Any) -> str:
    """Everything that a result says, each part asked for."""
    assert result.provenance.sha256
    ranking = getattr(result, "attack", result)
    assert ranking.histogram.members.sum() > 0
    assert ranking.roc.members.size > 0
    assert ranking.curve.guesses.size > 0
    text: str = result.to_json()
    return text


@pytest.mark.parametrize("audit", AUDITS.values(), ids=AUDITS)
def test_a_result_does_not_follow_what_becomes_of_its_inputs(audit: Audit) -> None:
    given = inputs()
    result = audit(given)
    for values in vars(given).values():
        scramble(values)
    assert read(result) == read(audit(inputs()))


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "torch": (torch.tensor, lambda x: x.zero_()),
    "pandas": (pd.Series, lambda x: x.__setitem__(slice(None), x.iloc[0])),
    "view": (lambda x: np.array([x, x])[1], lambda x: x.base.fill(x[0])),
    "read-only": (frozen, lambda x: (x.setflags(write=True), x.fill(x[0]))),
    "buffer": (
        lambda x: np.frombuffer(bytearray(x.tobytes()), x.dtype),
        lambda x: memoryview(x).cast("B").__setitem__(slice(8, 16), memoryview(x).cast("B")[:8]),
    ),
}


@pytest.mark.parametrize(("make", "change"), KINDS.values(), ids=KINDS)
def test_arrays_of_every_kind_are_copied(
    make: Callable[[Any], Any], change: Callable[[Any], Any]
) -> None:
    score, member = make(SCORE), make(MEMBER)
    result = lb.audit(score, lb.Coins(member))
    change(score)
    change(member)
    assert read(result) == read(lb.audit(SCORE, lb.Coins(MEMBER)))


def test_scores_are_copies_and_leave_the_callers_array_writable() -> None:
    values, ids = SCORE.copy(), np.arange(M)
    scores = Scores(values, ids, "loss")
    values[:] = 0
    ids[:] = 0
    np.testing.assert_array_equal(scores.values, SCORE)
    np.testing.assert_array_equal(scores.ids, np.arange(M))
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 1
