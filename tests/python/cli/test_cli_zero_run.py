"""`leakbound zero-run`: propensities from a column or learnt, and how it ends."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import command_line
import leakbound as lb
from leakbound.propensity import LogisticPropensity
from noisy_sums import noisy_sum

GAME = noisy_sum(1200, mu=2.5, shift=0.6, features=2, seed=3)
leakbound = partial(command_line.leakbound, "zero-run")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.npz"
    columns = {f"x{i}": GAME.features[:, i] for i in range(2)}
    np.savez(path, score=GAME.scores, member=GAME.member, propensity=GAME.propensity, **columns)  # type: ignore[arg-type]
    return path


def test_the_column_of_propensities(table: Path) -> None:
    answer = leakbound(table, "--json-full")
    assert answer.code == 0
    expected = lb.audit(GAME.scores, lb.ZeroRun(GAME.member, GAME.propensity))
    assert lb.ZeroRunResult.from_json(answer.out) == expected


def test_features_are_learnt_from_all_rows(table: Path) -> None:
    answer = leakbound(table, "--features", "x0,x1", "--json-full")
    found = lb.ZeroRunResult.from_json(answer.out)
    assert (found.m, found.kind) == (1200, "conditional_lower_bound")
    assert found == lb.audit(
        GAME.scores, lb.ZeroRun(GAME.member, LogisticPropensity(), features=GAME.features)
    )


def test_the_exit_code_is_that_of_the_claim(table: Path) -> None:
    found = lb.audit(GAME.scores, lb.ZeroRun(GAME.member, GAME.propensity))
    between = (found.bound + found.ceiling) / 2
    claims = {"mu=0.2": 1, f"mu={between}": 0, "mu=90": 3, "eps=0.1,delta=1e-5": 1}
    codes = {claim: leakbound(table, "--claim", claim).code for claim in claims}
    assert codes == claims


def test_refuted_propensities_are_withheld(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    odds = 3 * rng.normal(size=2000) ** 2 - 3
    member = rng.random(2000) < 1 / (1 + np.exp(-odds))
    x = np.sqrt((odds + 3) / 3) * rng.choice([-1, 1], 2000)
    path = tmp_path / "scores.npz"
    np.savez(path, score=rng.normal(size=2000) + odds, member=member, x=x)
    answer = leakbound(path, "--features", "x")
    assert "Withheld" in answer.out
    assert "Withheld" not in leakbound(path, "--features", "x", "--release-refuted").out
