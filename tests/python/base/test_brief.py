"""Representations and signatures: short, and without what is secret."""

import inspect
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from commitments import PROTOCOL
from leakbound._base.brief import brief
from leakbound._base.types import ArrayInput
from leakbound.audits.dp_sgd.canaries import CanaryDesign
from leakbound.planning import ChoicePlan
from public import callables

SEED = 20261129
MEMBER = np.arange(400) % 2 == 0
FEATURES = np.linspace(0.0, 1.0, 1200).reshape(400, 3)
PLANS = [
    lb.InclusionPlan.create(60, seed=SEED),
    lb.InclusionPlan.create(60, seed=SEED, copies=2),
    ChoicePlan.create(60, k=3, seed=SEED),
]
DESIGNS = [
    lb.Coins(MEMBER),
    lb.Coins(MEMBER, prior=np.full(400, 0.4)),
    lb.Choices(np.arange(400) % 3, 3),
    lb.Trials(MEMBER),
    lb.RandomSplit(MEMBER, strata=np.arange(400) // 40, features=FEATURES),
    lb.ZeroRun(MEMBER, np.full(400, 0.3), features=FEATURES),
    lb.Panoramia(MEMBER, baseline=np.arange(400.0), features=FEATURES),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_plans_do_not_show_their_seed(plan: lb.InclusionPlan | ChoicePlan) -> None:
    assert str(SEED) not in f"{plan!r} {plan}"
    assert plan.seed == SEED
    if isinstance(plan, lb.InclusionPlan):
        assert str(SEED) not in repr(lb.Coins(plan))


def test_an_opening_shows_neither_nonce_nor_seed() -> None:
    opening = PLANS[0].commit(PROTOCOL | {"seed": SEED})
    assert opening.nonce not in repr(opening)
    assert str(SEED) not in repr(opening)
    assert opening.commitment.sha256 in repr(opening)


def test_canaries_of_dp_sgd_do_not_show_their_seed() -> None:
    design = CanaryDesign.create(
        canaries=8, step_canaries=2, sampling_rate=0.5, max_steps=3, seed=SEED
    )
    assert design.seed == SEED
    assert str(SEED) not in repr(design)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda one: type(one).__name__)
def test_designs_show_the_shapes_of_arrays(design: Any) -> None:
    assert repr(design) == brief(design)
    assert len(repr(design)) < 300
    assert "<array of 400" in repr(design)


def test_parts_of_results_show_the_shapes_of_arrays() -> None:
    result = lb.audit(MEMBER + np.arange(400) / 1e3, lb.Coins(MEMBER), seed=0)
    for part in (result.roc, result.curve, result.histogram, result.exposed):
        assert "<array of" in repr(part)
        assert len(repr(part)) < 300


def test_short_lists_are_shown() -> None:
    assert "k=3" in repr(DESIGNS[2])
    assert repr(lb.Coins([True, False])).startswith("Coins(member=[True, False], prior=0.5")


@pytest.mark.parametrize(("name", "found"), dict(callables()).items())
def test_signatures_do_not_list_the_types_that_numpy_reads(name: str, found: object) -> None:
    if not callable(found):
        return
    try:
        shown = str(inspect.signature(found))
    except ValueError:  # of built-in methods
        return
    assert "numpy._typing" not in shown, name


def test_an_alias_in_words_goes_into_other_annotations() -> None:
    assert repr(ArrayInput) == "array-like"
    assert repr(ArrayInput | None) == "array-like | None"
    assert repr(float | ArrayInput) == "float | array-like"
    assert str(dict[str, ArrayInput] | ArrayInput) == "dict[str, array-like] | array-like"
