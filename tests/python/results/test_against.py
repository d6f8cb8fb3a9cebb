"""An accountant's ε beside what is proved: one δ, one relation, one unit."""

import json
import re
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound import errors, report
from leakbound.claims import replacing
from leakbound.results import Checked
from pages import words_of

M = 300
rng = np.random.default_rng(4)
COINS = rng.random(M) < 0.5
SPLIT = rng.permutation(M) < M // 2
NOISE = rng.normal(size=M)
DELTA = 1e-5


def audit(claim: Any, member: Any = COINS, **options: Any) -> lb.AuditResult:
    result: lb.AuditResult = flat.coins(NOISE + 3 * member, member, claim=claim, **options)
    return result


APPROX = audit(lb.ApproxDP(delta=DELTA))
GAUSSIAN = audit(lb.GaussianDP())
REPLACING = audit(lb.ApproxDP(delta=DELTA), SPLIT, design="random_split")
USERS = audit(
    lb.ApproxDP(delta=DELTA), SPLIT, design="random_split", groups=[f"u{i}" for i in range(M)]
)


@pytest.mark.parametrize(("result", "delta"), [(APPROX, DELTA), (APPROX, 1e-7), (GAUSSIAN, 1e-6)])
def test_proved_and_accounted_are_at_one_delta(result: lb.AuditResult, delta: float) -> None:
    found = result.against(epsilon=8, delta=delta, relation="add_remove", source="opacus prv")
    proved = result.epsilon(delta)
    assert 0 < proved < 8
    assert found.checked == Checked(
        "epsilon",
        8.0,
        delta,
        result.check(epsilon=8, delta=delta),
        compares="add_remove",
        proved=proved,
        source="opacus prv",
    )
    interval = f"[{proved - 0.005:.2f}, 8]"
    assert found.checked is not None
    assert found.checked.interval == interval
    assert f"Accounted ε = 8 at δ = {delta:g} (opacus prv), proved ε ≥" in found.summary().answer
    metric = found.summary().metrics[0]
    assert (metric.value, metric.note) == (interval, "opacus prv; adding or removing one example")
    assert found.summary().numbers["proved_value"] == proved
    assert type(found).from_json(found.to_json()) == found != result
    assert result.checked is None


def test_an_accountant_below_what_is_proved_is_refuted() -> None:
    found = GAUSSIAN.against(epsilon=0.5, delta=DELTA, relation="add_remove")
    assert found.checked is not None
    assert found.checked.verdict == "refuted"
    assert found.checked.source is None
    assert re.fullmatch(r"\d\.\d\d > 0.5", found.checked.interval)
    assert "is refuted within Gaussian DP" in found.summary().answer
    assert "Accounted ε = 0.5 at δ = 1e-05, proved" in found.summary().answer


def test_a_page_shows_both() -> None:
    found = APPROX.against(epsilon=8, delta=DELTA, relation="add_remove")
    assert found.checked is not None
    shown = words_of(report.render(found))
    assert found.checked.interval in shown
    assert found.summary().answer in shown


def test_mixed_relations_are_refused_with_the_conversion() -> None:
    twice, failure = replacing(2.0, DELTA)
    with pytest.raises(errors.OptionError) as caught:
        REPLACING.against(epsilon=2, delta=DELTA, relation="add_remove")
    assert "replacing one example, and the accountant's guarantee on adding" in str(caught.value)
    assert f"leakbound.claims.replacing, ({twice:g}, {failure:.3g})" in str(caught.value)
    with pytest.raises(errors.OptionError, match="which is not a guarantee"):
        REPLACING.against(epsilon=20, delta=DELTA, relation="add_remove")
    with pytest.raises(errors.OptionError, match="audit a random split"):
        APPROX.against(epsilon=2, delta=DELTA, relation="replace")
    found = REPLACING.against(epsilon=8, delta=DELTA, relation="replace").checked
    assert found is not None
    assert found.proved == REPLACING.bound


def test_mixed_units_are_refused_with_the_conversion() -> None:
    with pytest.raises(errors.OptionError, match=r"\(kε, \(e\^\(kε\) - 1\)"):
        USERS.against(epsilon=2, delta=DELTA, relation="replace")
    with pytest.raises(errors.OptionError, match="for k examples of a user"):
        APPROX.against(epsilon=2, delta=DELTA, relation="add_remove", unit="user")
    found = USERS.against(epsilon=8, delta=DELTA, relation="replace", unit="user")
    assert found.summary().metrics[0].note == "stated; replacing one user"
    assert type(found).from_json(found.to_json()) == found


def test_a_candidate_and_a_record_are_examples() -> None:
    drawn = rng.integers(3, size=M)
    scores = rng.normal(size=(M, 3)) + 4 * (drawn[:, None] == np.arange(3))
    values = rng.normal(size=(200, 2))
    for result, name in (
        (lb.audit(scores, lb.Choices(drawn, k=3)), "candidate"),
        (lb.audit_synthetic(values[:100], values[100:], values[:100], seed=0), "record"),
    ):
        found = result.against(epsilon=8, delta=0, relation="replace")
        assert found.checked is not None
        assert found.checked.proved == result.bound
        assert found.summary().metrics[0].note == f"stated; replacing one {name}"
        with pytest.raises(errors.OptionError, match="by group privacy"):
            result.against(epsilon=8, delta=0, relation="replace", unit="user")


def test_a_bound_that_knows_nothing_of_the_delta_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="says nothing about delta"):
        audit(lb.PureDP()).against(epsilon=8, delta=DELTA, relation="add_remove")
    with pytest.raises(errors.OptionError, match="says nothing about delta"):
        APPROX.against(epsilon=8, delta=1e-4, relation="add_remove")


@pytest.mark.parametrize(
    "change", [{"proved": 99.0}, {"verdict": "refuted"}, {"compares": "replace"}]
)
def test_a_stored_form_against_its_own_bound_is_refused(change: dict[str, Any]) -> None:
    stored = json.loads(
        APPROX.against(epsilon=8, delta=DELTA, relation="add_remove", source="x").to_json()
    )
    stored["checked"] |= change
    with pytest.raises(errors.FormatError):
        lb.AuditResult.from_dict(stored)
