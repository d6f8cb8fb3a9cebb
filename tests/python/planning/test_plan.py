"""Inclusion plans: fair and reproducible coins, picking by position, files."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from torch.utils.data import Subset, TensorDataset

from leakbound import InclusionPlan
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError


def test_same_seed_same_coins_and_longer_plans_begin_with_shorter_ones() -> None:
    plan = InclusionPlan.create(1000, seed=7)
    assert plan == InclusionPlan.create(1000, seed=7)
    assert hash(plan) == hash(InclusionPlan.create(1000, seed=7))
    assert plan != InclusionPlan.create(1000, seed=8)
    assert plan != "plan"
    np.testing.assert_array_equal(plan.member[:77], InclusionPlan.create(77, seed=7).member)


def test_coins_of_a_seed_never_change() -> None:
    coins = InclusionPlan.create(64, seed=0).member
    assert np.packbits(coins).tobytes().hex() == "7aa84bc956179d65"


def test_a_new_plan_has_a_seed_of_its_own_that_tosses_its_coins_again(tmp_path: Path) -> None:
    plans = [InclusionPlan.create(200) for _ in range(20)]
    seeds = {plan.seed for plan in plans}
    assert len(seeds) == len(plans)
    assert max(seed.bit_length() for seed in seeds if seed is not None) > 110
    for plan in plans:
        assert plan == InclusionPlan.create(200, seed=plan.seed)
        plan.save(tmp_path / "plan.npz")
        assert InclusionPlan.load(tmp_path / "plan.npz").seed == plan.seed


def test_coins_are_fair_and_independent() -> None:
    member = InclusionPlan.create(10**6, seed=3).member
    assert stats.binomtest(int(member.sum()), member.size).pvalue > 1e-3
    changes = int((member[1:] != member[:-1]).sum())
    assert stats.binomtest(changes, member.size - 1).pvalue > 1e-3
    words = member.reshape(-1, 8) @ (1 << np.arange(8))
    assert stats.chisquare(np.bincount(words, minlength=256)).pvalue > 1e-3


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(np.arange(24).reshape(12, 2), id="array"),
        pytest.param(torch.arange(24).reshape(12, 2), id="tensor"),
        pytest.param(pd.DataFrame({"a": range(12)}, index=range(100, 112)), id="frame"),
        pytest.param(pd.Series(range(12), index=range(100, 112)), id="series"),
    ],
)
def test_arrays_keep_their_kind(items: Any) -> None:
    plan = InclusionPlan.create(12, seed=5)
    included, excluded = plan.included(items), plan.excluded(items)
    assert type(included) is type(items)
    np.testing.assert_array_equal(np.asarray(included), np.asarray(items)[plan.member])
    np.testing.assert_array_equal(np.asarray(excluded), np.asarray(items)[~plan.member])


@pytest.mark.parametrize("items", [list("abcdefghijkl"), tuple("abcdefghijkl"), range(12)])
def test_sequences_become_lists(items: Any) -> None:
    plan = InclusionPlan.create(12, seed=5)
    included, excluded = plan.included(items), plan.excluded(items)
    assert included == [item for item, coin in zip(items, plan.member, strict=True) if coin]
    assert excluded == [item for item, coin in zip(items, plan.member, strict=True) if not coin]


def test_datasets_become_subsets() -> None:
    plan = InclusionPlan.create(12, seed=5)
    dataset = TensorDataset(torch.arange(12))
    included = plan.included(dataset)
    assert isinstance(included, Subset)
    assert [int(included[i][0]) for i in range(len(included))] == plan.indices.tolist()
    assert len(plan.excluded(dataset)) == 12 - len(plan.indices)


@pytest.mark.parametrize(
    "ids", [None, [5, 3, 2**62], ["a", "bc", "é"], np.array([1, 2, 2**64 - 1], dtype="u8")]
)
@pytest.mark.parametrize("seed", [None, 0, 2**70])
def test_files_round_trip(tmp_path: Path, ids: Any, seed: int | None) -> None:
    plan = (
        InclusionPlan([True, False, True], ids=ids)
        if seed is None
        else InclusionPlan.create(3, seed=seed, ids=ids)
    )
    plan.save(tmp_path / "plan.npz")
    again = InclusionPlan.load(tmp_path / "plan.npz")
    assert again == plan
    assert again.ids.dtype == plan.ids.dtype
    assert [file.name for file in tmp_path.iterdir()] == ["plan.npz"]


def damaged(change: Callable[[bytearray], object]) -> bytes:
    """A plan with some of its bytes changed."""
    file = io.BytesIO()
    InclusionPlan.create(5000, seed=0).write(file)
    content = bytearray(file.getvalue())
    change(content)
    return bytes(content)


def archive(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        archive(inclusion_plan=3, drawn=[True], k=0, ids=[0], seed=""),
        archive(inclusion_plan=2, drawn=[3.5], k=0, ids=[0], seed=""),
        archive(inclusion_plan=2, drawn=np.array([object()]), k=0, ids=[0], seed=""),
        archive(scores=[1.0]),
        b"x",
        damaged(lambda content: content.__delitem__(slice(-100, None))),
        damaged(
            lambda content: content.__setitem__(len(content) // 3, content[len(content) // 3] ^ 255)
        ),
    ],
    ids=["a later layout", "no coins", "pickled", "another archive", "text", "cut", "flipped"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "plan.npz").write_bytes(content)
    with pytest.raises(FormatError, match=r"plan\.npz is not an InclusionPlan"):
        InclusionPlan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize(
    ("n", "seed", "error", "message"),
    [
        (0, 0, OptionError, "n must be at least 1 and at most 100000000, got 0"),
        (2.5, 0, InputTypeError, "n must be an integer"),
        (True, 0, InputTypeError, "n must be an integer"),
        (3, -1, OptionError, "seed must be at least 0, got -1"),
    ],
)
def test_bad_numbers(n: Any, seed: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        InclusionPlan.create(n, seed=seed)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a", "b"], InputError, "ids has 2 values"),
        (["a", "b", "a"], InputError, "more than once|both members and non-members"),
        ([1.0, 2.0, 3.0], InputTypeError, "ids"),
        (np.array(["a", 1, 2], dtype=object), InputTypeError, "all 64-bit integers or all strings"),
        (np.array([1, 2, 2**70], dtype=object), InputTypeError, "all 64-bit integers"),
    ],
)
def test_bad_ids(ids: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        InclusionPlan.create(3, seed=0, ids=ids)


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([1, 2], InputError, "items has 2 elements but the plan has 3"),
        (iter([1, 2, 3]), InputTypeError, "got list_iterator"),
        ({1, 2, 3}, InputTypeError, "got set"),
    ],
)
def test_bad_items(items: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        InclusionPlan.create(3, seed=0).included(items)


def test_ids_of_data_frames_need_no_pickle(tmp_path: Path) -> None:
    ids = pd.Series(["a", "b", "c"], dtype=object)
    InclusionPlan.create(3, seed=0, ids=ids).save(tmp_path / "plan.npz")
    assert InclusionPlan.load(tmp_path / "plan.npz").ids.tolist() == ["a", "b", "c"]


def test_coins_tossed_elsewhere_are_copied() -> None:
    with pytest.raises(InputError):
        InclusionPlan([0, 1, 2])
    tossed = np.array([1, 0, 1])
    plan = InclusionPlan(tossed, ids=["x", "y", "z"])
    tossed[:] = 0
    assert plan.member.tolist() == [True, False, True]
    assert plan.included(plan.ids).tolist() == ["x", "z"]
    assert not assert_type(plan.excluded(plan.member), NDArray[np.bool_]).any()
    assert assert_type(plan.excluded(["x", "y", "z"]), list[str]) == ["y"]
    assert repr(plan) == "InclusionPlan(n=3, members=2)"
