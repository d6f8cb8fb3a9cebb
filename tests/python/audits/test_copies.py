"""Records that were inserted several times: what a bound on all copies says about one."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import leakbound as lb
from leakbound import InclusionPlan
from leakbound.claims import grouped, replacing
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import FormatError, InputTypeError, OptionError
from leakbound.planning import ChoicePlan, Opening, canaries_needed, ceiling, power
from leakbound.results import AuditResult
from validity.copies import CopiesTrial

PLAN = InclusionPlan.create(300, seed=5, copies=10)
SCORES = 10 * PLAN.member + np.random.default_rng(0).laplace(scale=2, size=300)
APPROX = lb.ApproxDP(delta=grouped(0.2, 1e-6, copies=10)[1])


def audited(claim: Any = None) -> AuditResult:
    return lb.audit(SCORES, lb.Coins(PLAN), claim=claim, seed=0)


def most_failures(epsilon: float, delta: float, copies: int, several: float) -> float:
    """Return the largest P_R(S) - e^E P_0(S) over all chains that are (ε, δ)-DP at each step."""
    rows, limits, odds = list[Any](), list[float](), math.exp(epsilon)
    for i in range(copies):
        for one, other in ((i, i + 1), (i + 1, i)):
            # p_one <= e^ε p_other + δ, and the same of the complement
            inside, outside = np.zeros(copies + 1), np.zeros(copies + 1)
            inside[[one, other]] = 1, -odds
            outside[[one, other]] = -1, odds
            rows += [inside, outside]
            limits += [delta, delta + odds - 1]
    target = np.zeros(copies + 1)
    target[[0, copies]] = math.exp(several), -1  # minimised
    found = linprog(target, A_ub=rows, b_ub=limits, bounds=(0, 1), method="highs")
    return float(-found.fun)


@pytest.mark.parametrize("copies", [1, 2, 3, 7])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.01), (0.1, 1e-3), (0.7, 1e-4)])
def test_no_chain_of_records_fails_more_often_than_group_privacy_says(
    copies: int, epsilon: float, delta: float
) -> None:
    several, failure = grouped(epsilon, delta, copies=copies)
    assert several == copies * epsilon
    assert failure < 1
    assert most_failures(epsilon, delta, copies, several) == pytest.approx(failure, rel=1e-6)
    # and at no smaller δ
    assert most_failures(epsilon, delta * 1.01, copies, several) > failure


@pytest.mark.parametrize("copies", [2, 3, 10])
def test_gaussian_and_pure_groups_are_their_closed_forms(copies: int) -> None:
    grid = np.linspace(0.001, 0.999, 99)
    composed = grid
    for _ in range(copies):
        composed = 1 - np.asarray(TradeOff.gaussian(0.3).f(composed))
    together = 1 - np.asarray(TradeOff.gaussian(0.3 * copies).f(grid))
    np.testing.assert_allclose(composed, together, atol=1e-9)
    assert grouped(0.3, copies=copies) == (copies * 0.3, 0.0)
    assert most_failures(0.3, 0.0, copies, copies * 0.3) == pytest.approx(0.0, abs=1e-12)


def test_two_records_that_are_replaced_are_four_that_are_added_or_removed() -> None:
    epsilon, delta = replacing(0.4, 1e-5)
    assert grouped(epsilon, delta, copies=2) == pytest.approx(grouped(0.4, 1e-5, copies=4))


@pytest.mark.parametrize("claim", [lb.PureDP(), APPROX, lb.GaussianDP()])
def test_a_bound_is_that_of_all_copies_over_their_number(claim: Any) -> None:
    alone = lb.audit(SCORES, lb.Coins(PLAN.member), claim=claim, seed=0)
    found = audited(claim)
    assert found.bound * 10 == pytest.approx(alone.bound, rel=1e-12)
    assert found.bound * 10 <= alone.bound
    assert found.ceiling * 10 == pytest.approx(alone.ceiling, rel=1e-12)
    np.testing.assert_allclose(found.curve.bound * 10, alone.curve.bound, rtol=1e-12)
    assert (found.correct, found.guesses) == (alone.correct, alone.guesses)
    assert found.copies == 10
    assert "copies" not in alone.options
    again = AuditResult.from_json(found.to_json())
    assert again == found
    assert again.copies == 10


def test_several_attacks_have_bounds_for_one_record() -> None:
    named = {"a": SCORES, "b": -SCORES}
    found = lb.audit(named, lb.Coins(PLAN), seed=0)
    alone = lb.audit(named, lb.Coins(PLAN.member), seed=0)
    assert found.options["attacks"]["a"] == found.bound
    assert found.options["attacks_cost"] == pytest.approx(alone.options["attacks_cost"] / 10)


def test_an_epsilon_and_a_verdict_at_delta_are_those_that_follow_for_all_copies() -> None:
    found, most = audited(APPROX), APPROX.delta
    for delta in (0.0, 1e-9, 1e-7, 1e-6, 1e-5):
        if 10 * delta > most:
            with pytest.raises(OptionError, match="for one, which implies δ ="):
                found.epsilon(delta)
            continue
        epsilon = found.epsilon(delta)
        assert 0 < epsilon <= found.bound
        # what is refuted is exactly what implies a guarantee that was refuted of ten
        below, above = 0.999 * epsilon, 1.001 * epsilon
        assert found.check(epsilon=below, delta=delta) == "refuted"
        assert most_failures(below, delta, 10, 10 * found.bound) <= most * (1 + 1e-9)
        if epsilon < found.bound:
            assert most_failures(above, delta, 10, 10 * above) > most
            with pytest.raises(OptionError, match="for one, which implies δ ="):
                found.check(epsilon=above, delta=delta)
    assert found.check(epsilon=0.2, delta=1e-6) == "refuted"
    compared = found.against(epsilon=0.2, delta=1e-6, relation="add_remove")
    assert compared.checked is not None
    assert compared.checked.proved == found.epsilon(1e-6)
    with pytest.raises(OptionError, match="claim epsilon and delta"):
        found.check(parameter=0.2)


def test_a_claim_about_adding_one_is_converted_for_replaced_copies() -> None:
    plan = ChoicePlan.create(200, 4, seed=1, copies=3)
    scores = 9 * np.eye(4)[plan.chosen] + np.random.default_rng(0).normal(size=(200, 4))
    claim = lb.ApproxDP(delta=grouped(*replacing(0.3, 1e-6), copies=3)[1])
    found = lb.audit(scores, lb.Choices(plan), claim=claim, seed=0)
    assert found.check(epsilon=0.3, delta=1e-6, relation="add_remove") == "refuted"
    with pytest.raises(OptionError, match="for one, which implies δ ="):
        found.check(epsilon=0.3, delta=2e-6, relation="add_remove")
    assert "for replacing one candidate" in found.summary().headline
    assert "3 copies of each at once" in found.summary().headline


def test_the_result_says_that_records_were_inserted_several_times() -> None:
    said = audited().summary()
    assert "the 10 copies of each at once" in said.headline
    assert said.design.endswith("inserted 10 times")
    assert any("10 copies" in text for text in said.paragraphs)
    theory = " ".join(text for one in said.sections for text in one.paragraphs)
    assert "group privacy" in theory
    assert any("at most 10 times" in one.statement for one in said.assumptions)
    little = lb.audit(np.random.default_rng(1).normal(size=300), lb.Coins(PLAN), seed=0).summary()
    assert "each inserted 10 times" in little.headline
    approx = audited(APPROX)
    stated = approx.summary().units["epsilon"].removeprefix("nats at δ = ")
    assert approx.check(epsilon=approx.bound * (1 - 1e-9), delta=float(stated)) == "refuted"
    assert f"(ε, {stated})-DP" in approx.summary().headline


def test_warnings_with_a_bound_say_that_it_is_of_all_copies() -> None:
    perfect = lb.audit(PLAN.member + np.arange(300) / 1e4, lb.Coins(PLAN), seed=0)
    (told,) = (text for text in perfect.warnings if "perfect attack" in text)
    assert told.endswith("(of 10 copies at once)")


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: InclusionPlan.create(9, copies=0), OptionError, "copies must be at least 1"),
    (lambda: InclusionPlan.create(9, copies=10), OptionError, "more than the 9 records"),
    (lambda: lb.Coins(PLAN.member, copies=-2), OptionError, "copies must be at least 1"),
    (lambda: lb.Coins(PLAN.member, copies=1.5), InputTypeError, "copies must be an integer"),  # type: ignore[arg-type]
    (lambda: lb.Choices([0, 1], k=2, copies=True), InputTypeError, "copies must be an integer"),
    (lambda: lb.Coins(PLAN, copies=2), OptionError, "drawn for 10 copies"),
    (
        lambda: lb.audit(SCORES, lb.Coins(PLAN.member, copies=301)),
        OptionError,
        "more than the 300 records",
    ),
    (lambda: lb.audit(SCORES, lb.RandomSplit(PLAN)), OptionError, "10 copies of each member"),
    (lambda: lb.Trials(PLAN), OptionError, "10 copies of each member"),
    (
        lambda: lb.audit(SCORES, lb.ZeroRun(PLAN, np.full(300, 0.5))),
        OptionError,
        "10 copies of each member",
    ),
    (lambda: lb.Stream().update(SCORES, PLAN), OptionError, "10 copies of each member"),
    (lambda: lb.Tally.of(SCORES, PLAN), OptionError, "10 copies of each member"),
    (lambda: audited(lb.LaplaceDP()), OptionError, "Laplace DP for 10 copies"),
    (lambda: audited(lb.GaussianDP(delta=1e-6)), OptionError, "failures of chance 1e-06 for 10"),
    (
        lambda: audited(lb.SubsampledGaussianDP(sampling_rate=0.1, steps=9)),
        OptionError,
        "DP-SGD with sampling rate 0.1",
    ),
    (lambda: power(100, 1.0, sides="pairs", copies=2), OptionError, "for a random split"),
    (lambda: power(100, 1.0, copies=101), OptionError, "more than the 100 records"),
    (lambda: grouped(1.0, copies=0), OptionError, "copies must be at least 1"),
]


@pytest.mark.parametrize(("make", "error", "words"), BAD)
def test_impossible_copies_are_refused(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_tally_is_counted_with_copies() -> None:
    tally = lb.Tally.of(SCORES, PLAN.member)
    alone = lb.audit(tally, lb.Coins(), seed=0)
    found = lb.audit(tally, lb.Coins(copies=10), seed=0)
    assert found.bound * 10 == pytest.approx(alone.bound)


def test_plans_carry_copies_and_repeat_what_they_include(tmp_path: Path) -> None:
    file = tmp_path / "plan.npz"
    plan = InclusionPlan.create(6, seed=1, copies=3)
    assert plan.included(list("abcdef")) == ["d"] * 3
    assert plan.excluded(list("abcdef")) == list("abcef")
    assert repr(plan) == "InclusionPlan(n=6, members=1, copies=3)"
    plan.save(file)
    assert InclusionPlan.load(file) == plan
    assert plan != InclusionPlan.create(6, seed=1)
    one = InclusionPlan.create(6, seed=1)
    one.save(file)  # layouts of single copies are as they were
    assert int(np.load(file)["inclusion_plan"]) == 2
    choices = ChoicePlan.create(3, k=2, seed=1, copies=2)
    table = np.arange(6).reshape(3, 2)
    taken = choices.included(table)
    np.testing.assert_array_equal(taken, np.repeat(table[np.arange(3), choices.chosen], 2))
    assert choices.included(table.tolist()) == taken.tolist()
    choices.save(file)
    assert ChoicePlan.load(file).copies == 2
    held = {**np.load(file), "copies": np.int64(0)}
    np.savez(file, **held)
    with pytest.raises(FormatError, match="copies must be at least 1"):
        ChoicePlan.load(file)


PROTOCOL: dict[str, Any] = {
    "claim": {"type": "PureDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "attacks": ["score"],
    "unit": "one canary",
    "canaries": "made up",
}


def test_a_protocol_has_the_copies_of_its_plan(tmp_path: Path) -> None:
    opening = PLAN.commit(PROTOCOL)
    assert opening.protocol["copies"] == 10
    single = Opening(InclusionPlan(PLAN.member), opening.protocol, opening.nonce)
    assert opening.commitment != single.commitment
    result = opening.audit({"score": SCORES})
    assert result.copies == 10
    result.bundle(tmp_path / "bundle", scores={"score": SCORES}, plan=opening)
    checked = lb.evidence.verify_bundle(tmp_path / "bundle", page=False)
    assert checked.valid, str(checked)
    with pytest.raises(OptionError, match="the protocol has 2 copies"):
        PLAN.commit({**PROTOCOL, "copies": 2})
    later = InclusionPlan(PLAN.member).commit({**PROTOCOL, "copies": 10})
    assert later.audit({"score": SCORES}).bound == result.bound


def test_a_bundle_without_a_protocol_repeats_an_audit_of_copies(tmp_path: Path) -> None:
    audited().bundle(tmp_path / "one", scores=SCORES, plan=PLAN)
    stated = lb.audit(SCORES, lb.Coins(PLAN.member, copies=10), seed=0)
    stated.bundle(tmp_path / "two", scores=SCORES, plan=PLAN.member)
    for folder in ("one", "two"):
        checked = lb.evidence.verify_bundle(tmp_path / folder, page=False)
        assert checked.valid, str(checked)


def test_a_plan_of_copies_is_worth_as_much_as_one_record_that_leaks_as_many_times_more() -> None:
    same: dict[str, Any] = {"simulations": 40, "seed": 1}
    several = power(200, 0.4, target=0.2, copies=5, **same)
    alone = power(200, 2.0, target=1.0, **same)
    assert several.copies == 5
    assert several.median == pytest.approx(alone.median / 5)
    assert several.probability == alone.probability
    assert several.ceiling == pytest.approx(ceiling(200) / 5) == ceiling(200, copies=5)
    assert ceiling(200, 50, copies=5) == pytest.approx(ceiling(200, 50) / 5)
    needed = canaries_needed(0.2, 0.4, copies=5, **same)
    assert needed.m == canaries_needed(1.0, 2.0, **same).m
    assert json.loads(several.to_json())["copies"] == 5
    assert "copies" not in json.loads(alone.to_json())


@pytest.mark.parametrize("mechanism", ["counts", "choices"])
@pytest.mark.parametrize("copies", [1, 2, 10])
def test_few_audits_claim_more_than_holds_for_one(mechanism: Any, copies: int) -> None:
    games = 300 if mechanism == "counts" else 200
    trial = CopiesTrial(m=200, copies=copies, mechanism=mechanism, error=0.05)
    false = sum(map(trial, range(games)))
    assert false <= 0.05 * games + 2 * math.sqrt(0.05 * 0.95 * games)
