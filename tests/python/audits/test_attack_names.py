"""Columns of a table that are no attacks are not audited as attacks."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
from leakbound.errors import InputError

RNG = np.random.default_rng(0)
MEMBER = RNG.random(200) < 0.5
NOISE = RNG.normal(size=200)


@pytest.mark.parametrize("name", ["member", "id"])
@pytest.mark.parametrize("design", [lb.Coins, lb.RandomSplit])
def test_columns_of_files_that_are_no_scores_are_refused(name: str, design: Any) -> None:
    frame = pd.DataFrame({"score": NOISE, name: MEMBER})
    with pytest.raises(InputError, match=f"'{name}', which is not an attack.*'score'"):
        lb.audit(frame, design(MEMBER))


def test_archives_are_read_alike(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", score=NOISE, member=MEMBER)
    with np.load(tmp_path / "a.npz") as archive, pytest.raises(InputError, match="not an attack"):
        lb.audit(archive, lb.Coins(MEMBER))


@pytest.mark.parametrize("values", [MEMBER, MEMBER.astype(int), np.where(MEMBER, 1, -1)])
def test_membership_under_another_name_is_refused(values: Any) -> None:
    frame = pd.DataFrame({"score": NOISE, "trained": values})
    with pytest.raises(InputError, match="'trained' of scores is membership itself"):
        lb.audit(frame, lb.Coins(MEMBER))


def test_a_named_attack_may_be_right_about_all() -> None:
    frame = pd.DataFrame({"score": NOISE, "other": ~MEMBER})
    assert lb.audit(frame, lb.Coins(MEMBER), seed=0).bound == 0
    attacks = {"score": NOISE, "verbatim": MEMBER.astype(float)}
    assert lb.audit(attacks, lb.Coins(MEMBER), seed=0).bound > 2
