"""Mechanisms that accountants describe, as claims about their noise."""

import json
import math
from typing import Any

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import dp_event
from numpy.typing import NDArray

import leakbound as lb
from leakbound.claims import EventFamily, events, from_event
from leakbound.errors import InputTypeError, OptionError

BOTH = dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.LaplaceDpEvent(1.0)])
POWERS = np.linspace(0.02, 0.98, 40)


def claim(event: Any, relation: Any = "add_remove") -> EventFamily:
    return from_event(event, relation=relation)


EXACT: dict[str, tuple[Any, Any]] = {
    "Gaussian": (dp.GaussianDpEvent(1.0), lb.TradeOff.gaussian),
    "Gaussian, four times": (
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 4),
        lb.TradeOff.gaussian,
    ),
    "Laplace": (dp.LaplaceDpEvent(1.0), lb.TradeOff.laplace),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("divisor", [0.5, 1.0, 2.0])
def test_curves_are_on_either_side_of_the_exact_one(name: str, divisor: float) -> None:
    event, curve = EXACT[name]
    exact, family = curve(divisor), claim(event)
    above, below = family.curve(divisor, "both"), family.attained(divisor, "both")
    assert np.all(above.f(POWERS) <= exact.f(POWERS) + 1e-12)
    assert np.all(below.f(POWERS) >= exact.f(POWERS) - 1e-12)
    np.testing.assert_allclose(above.f(POWERS), below.f(POWERS), atol=0.02)
    for delta in (1e-2, 1e-5, 1e-14):
        assert below.epsilon(delta) <= exact.epsilon(delta)
    assert above.epsilon(1e-5) >= exact.epsilon(1e-5) - 1e-9


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_sampled_noise_is_that_of_the_family_of_dp_sgd(relation: Any) -> None:
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(2.0)), 30)
    known = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=30, relation=relation)
    family = claim(event, relation)
    for sides in ("member", "both"):
        found = family.curve(2.0, sides).f(POWERS)
        np.testing.assert_allclose(found, known.curve(1.0, sides).f(POWERS), atol=1e-9)
    at_most = known.curve(1.0, "both").epsilon(1e-5)
    assert at_most - 0.1 < family.attained(2.0, "both").epsilon(1e-5) <= at_most


def test_all_noise_is_divided() -> None:
    family = claim(BOTH)
    twice = claim(dp.ComposedDpEvent([dp.GaussianDpEvent(0.5), dp.LaplaceDpEvent(0.5)]))
    assert family.curve(2.0, "both") == twice.curve(1.0, "both")
    discrete = dp_event.DiscreteLaplaceDpEvent(0.7, 2)
    assert claim(discrete).curve(2.0, "both") == claim(
        dp_event.DiscreteLaplaceDpEvent(1.4, 2)
    ).curve(1.0, "both")
    mixture = claim(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5])).event
    half = dp_event.MixtureOfGaussiansDpEvent(0.5, [0.0, 1.0], [0.5, 0.5])
    assert events.built_event(events.read_event(mixture), 2.0) == half


REFUSED: dict[str, tuple[Any, str, str]] = {
    "not private": (dp.NonPrivateDpEvent(), "add_remove", "NonPrivateDpEvent is not a family"),
    "not private inside": (
        dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), dp.NonPrivateDpEvent()]),
        "add_remove",
        "NonPrivateDpEvent is not a family",
    ),
    "nothing": (dp.NoOpDpEvent(), "add_remove", r"nothing in NoOp\(\)"),
    "nothing often": (
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), 0),
        "add_remove",
        "nothing in SelfComposed",
    ),
    "nothing sampled": (
        dp.PoissonSampledDpEvent(0.0, dp.GaussianDpEvent(1.0)),
        "add_remove",
        "nothing in PoissonSampled",
    ),
    "no noise": (
        dp.GaussianDpEvent(0.0),
        "add_remove",
        "noise_multiplier of GaussianDpEvent must be above 0",
    ),
    "without replacement": (
        dp.SampledWithoutReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0)),
        "replace",
        "SampledWithoutReplacementDpEvent is not supported",
    ),
    "with replacement": (
        dp.SampledWithReplacementDpEvent(100, 10, dp.GaussianDpEvent(1.0)),
        "replace",
        "SampledWithReplacementDpEvent is not supported",
    ),
    "a tree": (
        dp.SingleEpochTreeAggregationDpEvent(1.0, 8),
        "add_remove",
        "SingleEpochTreeAggregationDpEvent is not supported",
    ),
    "a composition, sampled": (
        dp.PoissonSampledDpEvent(0.1, BOTH),
        "add_remove",
        "PoissonSampledDpEvent of ComposedDpEvent is not supported",
    ),
    "Laplace, replaced": (
        dp.LaplaceDpEvent(1.0),
        "replace",
        "LaplaceDpEvent is not supported .* for relation='replace'",
    ),
    "Laplace inside, replaced": (BOTH, "replace", "LaplaceDpEvent is not supported"),
    "randomised response": (
        dp.RandomizedResponseDpEvent(0.5, 4),
        "replace",
        "RandomizedResponseDpEvent is not a family: it has no noise",
    ),
    "zCDP": (dp.ZCDpEvent(0.5), "add_remove", "ZeroConcentratedDP"),
    "unsupported": (dp.UnsupportedDpEvent(), "add_remove", "UnsupportedDpEvent is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_family_is_refused_by_name(name: str) -> None:
    event, relation, said = REFUSED[name]
    with pytest.raises(OptionError, match=said):
        from_event(event, relation=relation)  # type: ignore[arg-type]


def test_a_relation_is_asked_for() -> None:
    with pytest.raises(OptionError, match="needs a relation"):
        from_event(dp.GaussianDpEvent(1.0))
    with pytest.raises(OptionError, match="relation must be one of"):
        from_event(dp.GaussianDpEvent(1.0), relation="zero_out")  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="got float"):
        from_event(1.0, relation="add_remove")


GAUSSIAN = '{"type": "GaussianDpEvent", "noise_multiplier": 1.0}'
STORED = {
    "no JSON": "must be JSON of a dp_accounting",
    "[1]": "must be JSON of a dp_accounting",
    "[" * 100_000: "must be JSON of a dp_accounting",
    '{"type": "os.system"}': "must be JSON of a dp_accounting",
    '{"event": {}}': "must be JSON of a dp_accounting",
    '{"type": "NonPrivateDpEvent"}': "is not a family",
    '{"type": "OtherDpEvent"}': "is not supported",
    '{"type": "GaussianDpEvent", "noise_multiplier": "x"}': "noise_multiplier",
    '{"type": "ComposedDpEvent"}': "has no events",
    f'{{"type": "SelfComposedDpEvent", "count": -1, "event": {GAUSSIAN}}}': "count of",
    f'{{"type": "SelfComposedDpEvent", "count": 1000000000, "event": {GAUSSIAN}}}': "1,000,000 at",
}


@pytest.mark.parametrize("text", STORED, ids=lambda text: text[:60])
def test_what_a_file_has_in_place_of_an_event_is_refused(text: str) -> None:
    with pytest.raises((OptionError, InputTypeError), match=STORED[text]):
        EventFamily(event=text, relation="add_remove")


def test_an_event_with_other_fields_is_refused_where_it_is_used() -> None:
    other = EventFamily(
        event='{"type": "GaussianDpEvent", "noise_multiplier": 1.0, "more": 2}',
        relation="add_remove",
    )
    with pytest.raises(OptionError, match="GaussianDpEvent has other fields"):
        other.tradeoff(1.0)


def released(less: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Gaussian and Laplace noise of scale 1 over `less`, and the log-likelihood ratio of both."""
    rng = np.random.default_rng(seed)
    member = rng.random(1_000) < 0.5
    first = member + rng.normal(0, 1 / less, 1_000)
    second = member + rng.laplace(0, 1 / less, 1_000)
    loss = less**2 * (first - 0.5) + less * (np.abs(second) - np.abs(second - 1))
    return loss, member


def test_less_noise_than_stated_is_refuted() -> None:
    family = claim(BOTH)
    right: list[float] = []
    wrong: list[float] = []
    for seed in range(2):
        for less, bounds in ((1.0, right), (1.5, wrong)):
            scores, member = released(less, seed)
            bounds.append(lb.audit(scores, lb.Trials(member), claim=family, seed=seed).bound)
    assert max(right) < 1 < min(wrong) < max(wrong) < 1.5
    assert min(right) > 0.7


def test_a_result_says_what_its_number_is() -> None:
    scores, member = released(1.5, 0)
    result = lb.audit(scores, lb.Coins(member), claim=claim(BOTH), seed=0)
    assert result.kind == "family_lower_bound"
    said = f"noise divided by ≥ {math.floor(100 * result.bound) / 100:.2f}"
    assert said in str(result)
    assert "noise-scaled Composed(Gaussian(1), Laplace(1))" in str(result)
    again = lb.AuditResult.from_json(result.to_json())
    assert again == result
    assert json.loads(again.claim.event)["type"] == "ComposedDpEvent"  # type: ignore[union-attr]
    assert result.check(parameter=0.9 * result.bound) == "refuted"
    assert 0 < result.epsilon(1e-5) < claim(BOTH).curve(1.5, "both").epsilon(1e-5)


def test_the_relation_must_be_that_of_the_design() -> None:
    scores, member = released(1.5, 0)
    replaced = claim(dp.GaussianDpEvent(1.0), "replace")
    with pytest.raises(OptionError, match="RandomSplit"):
        lb.audit(scores, lb.Coins(member), claim=replaced)
    with pytest.raises(OptionError, match='relation="replace"'):
        lb.audit(scores, lb.RandomSplit(member), claim=claim(BOTH))
    design = lb.RandomSplit(member)
    result = lb.audit(scores, design, claim=replaced, cuts=lb.Fixed(400), seed=0)
    assert result.check(parameter=1.01 * result.bound) == "not refuted"
