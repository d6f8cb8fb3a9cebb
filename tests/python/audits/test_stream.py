"""A stream's bound: the same as a batch's where there is one, and right at the worst moment."""

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import errors
from leakbound._base.scores import Scores

Batch = tuple[np.ndarray, np.ndarray]


def batches(shift: float, sizes: list[int], seed: int = 0) -> list[Batch]:
    rng = np.random.default_rng(seed)
    coins = [rng.random(size) < 0.5 for size in sizes]
    return [(rng.normal(size=member.size) + shift * member, member) for member in coins]


def fed(stream: lb.Stream, data: list[Batch]) -> lb.Stream:
    for scores, member in data:
        stream.update(scores, member)
    return stream


def mixture(r: int, w: int, p: float) -> float:
    """M(p) of docs/theory/streaming.md, by a rule that is exact for this polynomial."""
    nodes, weights = np.polynomial.legendre.leggauss(r + 1)
    x = p + (1 - p) * (nodes + 1) / 2
    return float(weights / 2 @ ((x / p) ** w * ((1 - x) / (1 - p)) ** (r - w)))


def walked(data: list[Batch], shares: list[float]) -> list[list[tuple[int, int]]]:
    """Where nine sequences stand after every guess, guess by guess; no scores are tied."""
    roles = ("top", "bottom", "turn")
    stands = {(role, share): (0, 0) for role in roles for share in shares}
    moments = []
    for scores, member in data:
        order = np.argsort(-scores)
        top = order[: scores.size // 2]
        bottom = order[top.size :][::-1]
        sizes = {"top": top.size, "bottom": bottom.size, "turn": scores.size}
        made = dict.fromkeys(roles, 0)
        left, rest = list(top), list(bottom)
        while left or rest:
            role = "top" if left and (not rest or made["top"] <= made["bottom"]) else "bottom"
            row = (left if role == "top" else rest).pop(0)
            right = bool(member[row]) == (role == "top")
            for taken in (role, "turn"):
                made[taken] += 1
                for share in shares:
                    if made[taken] <= math.ceil(share * sizes[taken]):
                        r, w = stands[taken, share]
                        stands[taken, share] = (r + 1, w + right)
            moments.append(list(stands.values()))
    return moments


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_is_taken_along_one_order_of_visiting(seed: int) -> None:
    data, shares = batches(3.0, [12, 9, 10], seed), [1.0, 0.25]
    stream = fed(lb.Stream(shares=shares), data)
    moments = walked(data, shares)

    def refuted(p: float) -> bool:
        return any(
            np.mean([mixture(r, w, p) if w > r * p else 0.0 for r, w in moment]) >= 20
            for moment in moments
        )

    p = 1 / (1 + math.exp(-stream.bound))
    assert stream.bound > 0
    assert refuted(p - 1e-9)
    assert not refuted(p + 1e-7)


def test_the_sequences_go_on_from_batch_to_batch() -> None:
    data = batches(1.5, [60, 33, 100])
    stream = fed(lb.Stream(sides="member", shares=[1.0, 0.25]), data)
    bounds = []
    for share in (1.0, 0.25):
        path = [
            member[np.argsort(-scores)][: math.ceil(share * scores.size)] for scores, member in data
        ]
        together = np.concatenate(path)
        moments = np.arange(1, together.size + 1), np.cumsum(together)
        found = [
            _core.ville_bound_of_moments(*moments, sequences=1, beta=beta) for beta in (0.025, 0.05)
        ]
        bounds.append([best[1] for best in found if best])
    shared, whole = np.max(bounds, axis=0)
    assert max(0.0, shared) <= stream.bound <= whole
    assert (stream.m, stream.batches) == (193, 3)


def test_the_bound_never_falls_and_says_what_it_is() -> None:
    stream, seen = lb.Stream(), [0.0]
    assert "m=0, batches=0" in repr(stream)
    for scores, member in batches(2.0, [50] * 12):
        seen.append(stream.update(scores, member).bound)
    assert seen == sorted(seen)
    assert seen[-1] > 0.5
    result = stream.result()
    assert (result.kind, result.confidence, result.m) == ("lower_bound", 0.95, 600)
    assert result.curve.bound.max() == result.bound < result.ceiling
    assert result.histogram.members.sum() == result.members


def test_a_stream_is_kept_in_a_pickle() -> None:
    data = batches(1.5, [60, 1, 70])
    stream = lb.Stream(confidence=0.9, sides="member", shares=(0.5, 1.0))
    stream.update(*data[0], ids=np.arange(60))
    fed(stream, data[1:])
    again = pickle.loads(pickle.dumps(stream))
    assert again.result() == stream.result()
    with pytest.raises(errors.InputError, match="such as 3"):
        again.update([0.1, 0.2], [0, 1], ids=[3, 99])
    ((scores, member),) = batches(1.5, [50], seed=7)
    assert again.update(scores, member).m == 181
    assert stream.m == 131
    empty = pickle.loads(pickle.dumps(lb.Stream()))
    assert (empty.m, empty.bound) == (0, 0.0)
    with pytest.raises(errors.OptionError, match="before the first batch"):
        empty.result()


@pytest.mark.parametrize("carrier", ["plan", "scores", "index"])
def test_ids_that_a_batch_carries_are_checked_for_repetition(carrier: str) -> None:
    ((scores, coins),) = batches(2.0, [60])
    ids = np.arange(60) + 40

    def batch() -> tuple[Any, Any]:
        if carrier == "plan":
            return scores, lb.InclusionPlan(coins, ids=ids)
        if carrier == "scores":
            return Scores(scores, ids, "loss"), coins
        return pd.Series(scores, index=ids), coins

    stream = lb.Stream().update(*batch())
    with pytest.raises(errors.InputError, match="60 ids of this batch"):
        stream.update(*batch())
    assert stream.m == 60


def test_numbers_of_rows_tell_no_batches_apart() -> None:
    stream = lb.Stream()
    for scores, coins in batches(2.0, [60, 60]):
        stream.update(scores, lb.InclusionPlan(coins))
        stream.update(Scores(scores, np.arange(60), "loss"), coins)
        stream.update(pd.Series(scores).sort_values(), pd.Series(coins))
    assert stream.m == 360


def test_ids_are_of_one_type_in_all_batches() -> None:
    stream = lb.Stream().update([1.0, 2.0], [0, 1], ids=[3, 4])
    with pytest.raises(errors.InputTypeError, match="'3' in this batch"):
        stream.update([1.0, 2.0], [0, 1], ids=["3", "4"])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"confidence": 1.0}, errors.OptionError, "confidence"),
        ({"confidence": None}, errors.InputTypeError, "confidence"),
        ({"sides": "left"}, errors.OptionError, "sides"),
        ({"shares": 0.5}, errors.InputTypeError, "shares must be a sequence"),
        ({"shares": []}, errors.OptionError, "at least one"),
        ({"shares": [1.5]}, errors.OptionError, "in \\(0, 1\\]"),
        ({"shares": [0.0]}, errors.OptionError, "shares"),
        ({"shares": [0.5, 0.5]}, errors.OptionError, "different"),
    ],
)
def test_bad_options_are_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lb.Stream(**options)


@pytest.mark.parametrize(
    ("scores", "member", "ids"),
    [
        ([1.0, math.nan], [0, 1], None),
        ([1.0, 2.0], [0], None),
        ([1.0, 2.0], [0, 3], None),
        ([1.0, 2.0], [0, 1], [7, 7]),
        ([1.0, 2.0], [0, 1], [0, 5]),
    ],
)
def test_a_batch_that_is_refused_changes_nothing(scores: Any, member: Any, ids: Any) -> None:
    ((first, coins),) = batches(2.0, [50])
    stream = lb.Stream().update(first, coins, ids=np.arange(50) - 49)
    before = pickle.dumps(stream)
    with pytest.raises(errors.InputError):
        stream.update(scores, member, ids=ids)
    assert pickle.dumps(stream) == before


def test_equal_scores_abstain() -> None:
    stream = fed(lb.Stream(), batches(3.0, [60]))
    before = stream.bound
    result = stream.update(np.ones(20), np.arange(20) < 10).result()
    assert stream.bound == before
    assert "20 examples abstained" in result.warnings[-1]


def test_recall_is_of_those_who_could_be_guessed() -> None:
    """All are guessed to be members: half of them are, and each of these was guessed right."""
    member = np.arange(100) % 2 == 0
    stream = lb.Stream(sides="member", shares=(1.0,))
    stream.update(member + np.arange(100) / 1000, member)
    assert stream.result().curve.recall[-1] == 1
