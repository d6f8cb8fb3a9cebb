"""Rows whose truth is a verdict or a sentence: a correct system is not accused too often."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.claims import FAMILIES
from leakbound.errors import OptionError
from leakbound.results import AuditResult, PanoramiaResult
from leakbound.results.base import Audit
from leakbound.stats import binomial_tail
from leakbound.testing import InconclusiveError, RefutedError, assert_not_refuted
from validity.doubled import doubled
from validity.questions import Question
from validity.suite import Case, most_errors, run
from validity.verdicts import (
    ERROR,
    GAMES,
    ChoiceResponses,
    SplitNoise,
    SplitResponses,
    System,
    systems,
    verdict_cases,
)

ROWS = {case.name: case for case in verdict_cases() if case.quick}
SYSTEMS = systems()


def name_of(one: Case | System) -> str:
    return one.row("verdict", bool, 0).name if isinstance(one, System) else one.name


@pytest.mark.parametrize("name", ROWS)
def test_correct_systems_are_not_accused_too_often(name: str) -> None:
    (rate,) = run([ROWS[name]], tests=len(ROWS)).rates
    assert rate.verdict == "holds", f"accused in {rate.errors} of {rate.repetitions} games"


def test_games_are_enough_to_see_twice_the_nominal_rate() -> None:
    """Exactly, and whatever the seeds."""
    assert {case.quick for case in ROWS.values()} == {GAMES}
    assert {case.error for case in ROWS.values()} == {ERROR}
    least = most_errors(GAMES, ERROR, len(ROWS)) + 1
    assert binomial_tail(least, GAMES, 2 * ERROR) >= 0.8


def test_every_design_and_claim_has_a_row_of_verdicts() -> None:
    designs = ("coins", "random_split", "choices", "trials", "stream", "zero_run")
    listed = {(one.design, type(one.claim), bool(one.claim.delta)) for one in SYSTEMS}
    kinds = ((lb.PureDP, False), (lb.ApproxDP, True), (lb.GaussianDP, False), (lb.GaussianDP, True))
    assert listed >= {(design, *kind) for design in designs for kind in kinds}
    assert listed >= {("panoramia", *kind) for kind in kinds[:2]}
    assert all(case.long >= 100 for case in verdict_cases())


def known(result: Audit, question: Question) -> str:
    """Return the verdict on a question, or that it was refused."""
    try:
        return result.check(**question.claimed)
    except OptionError:
        assert not question.certain
        return "refused"


@pytest.mark.parametrize("one", SYSTEMS, ids=name_of)
def test_questions_are_within_reach_and_all_doors_agree(one: System) -> None:
    """A claim that no attack could refute would show nothing."""
    _, result = one.trial.outcome(0)
    for question in one.questions:
        verdict = known(result, question)
        alone = one.cuts == "joint" and "c" not in question.claimed
        if question.certain:
            assert verdict in ({"inconclusive"} if alone else {"refuted", "not refuted"})
        else:
            assert verdict != "refuted", question
        through_other_doors(result, question.claimed, verdict)


RAISED = {"refuted": RefutedError, "inconclusive": InconclusiveError, "refused": OptionError}
"""What `assert_not_refuted` raises for a verdict."""


def through_other_doors(result: Audit, claimed: Any, verdict: str) -> None:
    if verdict == "not refuted":
        assert_not_refuted(result, **claimed)
    else:
        with pytest.raises(RAISED[verdict]):
            assert_not_refuted(result, **claimed)
    if verdict == "refused":
        with pytest.raises(OptionError):
            result.with_check(**claimed)
    else:
        beside = result.with_check(**claimed)
        assert beside.checked is not None
        assert beside.checked.verdict == verdict
        assert type(result).from_json(beside.to_json()).checked == beside.checked
        said = beside.summary()
        assert not said.leaks or verdict == "refuted"
        assert ("is refuted" in said.answer) == (verdict == "refuted")
        assert ("is not refuted" in said.answer) == (verdict == "not refuted")
        assert ("nconclusive" in said.answer or "cannot" in said.answer) == (
            verdict == "inconclusive"
        )
    if isinstance(result, AuditResult) and "epsilon" in claimed and "relation" in claimed:
        beside_an_accountant(result, claimed, verdict)


def beside_an_accountant(result: AuditResult, claimed: Any, verdict: str) -> None:
    stated = {"delta": 0.0, **claimed}
    if verdict == "refused" or claimed["relation"] != result.relation:
        with pytest.raises(OptionError):
            result.against(**stated)
        return
    compared = result.against(**stated).checked
    assert compared is not None
    assert compared.verdict == verdict
    assert compared.proved == result.epsilon(stated["delta"])


def faults(kind: type[Audit]) -> dict[str, Callable[..., str]]:
    """Return ways in which `check` of a kind of result was wrong, or could be, by name."""
    check: Any = kind.check

    def without_conversion(result: Any, *, relation: Any = None, **claimed: Any) -> str:
        if relation == "add_remove" and result.relation == "replace":
            relation = "replace"
        return str(check(result, relation=relation, **claimed))

    def parameter_without_conversion(result: Any, **claimed: Any) -> str:
        wrong = without_conversion if "parameter" in claimed else check
        return str(wrong(result, **claimed))

    def epsilon_without_conversion(result: Any, **claimed: Any) -> str:
        wrong = without_conversion if "epsilon" in claimed else check
        return str(wrong(result, **claimed))

    def without_an_end(result: Any, **claimed: Any) -> str:
        curve = result.rejected if isinstance(result.claim, FAMILIES) else None
        if curve is not None and "epsilon" in claimed:
            least = curve.epsilon(claimed.get("delta") or 0.0)
            if math.isinf(least):
                return "refuted"
        return str(check(result, **claimed))

    def reach(result: Any, **claimed: Any) -> str:
        verdict = str(check(result, **claimed))
        return "refuted" if verdict == "inconclusive" else verdict

    def without_c(result: Any, *, c: Any = None, **claimed: Any) -> str:
        return str(check(result, c=None if c is None else 0.0, **claimed))

    def at_the_ceiling(result: Any, **claimed: Any) -> str:
        verdict = str(check(result, **claimed))
        return "refuted" if verdict == "not refuted" else verdict

    return {
        "parameter not converted": parameter_without_conversion,
        "epsilon not converted": epsilon_without_conversion,
        "no finite epsilon": without_an_end,
        "inconclusive is refuted": reach,
        "c is left out": without_c,
        "ceiling for bound": at_the_ceiling,
    }


PLANTED = (
    (AuditResult, "parameter not converted", "pure DP random-split default"),
    (AuditResult, "parameter not converted", "pure DP choices default"),
    (AuditResult, "parameter not converted", "approximate choices default"),
    (AuditResult, "parameter not converted", "Gaussian DP choices default"),
    (AuditResult, "epsilon not converted", "pure DP random-split default"),
    (AuditResult, "epsilon not converted", "approximate choices default"),
    (AuditResult, "epsilon not converted", "Gaussian DP choices default"),
    (AuditResult, "no finite epsilon", "Gaussian DP choices default"),
    (AuditResult, "no finite epsilon", "Gaussian failures choices default"),
    (AuditResult, "no finite epsilon", "Gaussian DP zero-run fixed"),
    (AuditResult, "ceiling for bound", "pure DP coins default"),
    (PanoramiaResult, "inconclusive is refuted", "pure DP panoramia joint"),
    (PanoramiaResult, "c is left out", "pure DP panoramia joint"),
)
"""A kind of result, a fault in its verdicts, and words of a row at the boundary that sees it."""


def row_of(words: str, truth: str = "boundary") -> Case:
    wanted = {"verdict", truth, *words.split()}
    (row,) = (case for name, case in ROWS.items() if fits(wanted, name))
    return row


def fits(wanted: set[str], name: str) -> bool:
    words = set(name.split())
    return wanted <= words and ("failures" in words) == ("failures" in wanted)


@contextmanager
def planted(kind: type[Audit], fault: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "check", faults(kind)[fault])
        yield


@pytest.mark.parametrize(("kind", "fault", "words"), PLANTED)
def test_rows_fail_where_verdicts_are_wrong(kind: type[Audit], fault: str, words: str) -> None:
    row = row_of(words)
    with planted(kind, fault):
        (rate,) = run([row], tests=len(ROWS)).rates
    assert rate.verdict == "fails", f"accused in {rate.errors} of {rate.repetitions} games only"


@pytest.mark.parametrize("words", ["pure DP random-split default", "pure DP choices default"])
def test_rows_fail_where_the_level_is_twice_what_is_stated(words: str) -> None:
    row = row_of(words, "noise")
    with doubled():
        (rate,) = run([row], tests=len(ROWS)).rates
    assert rate.verdict == "fails", f"accused in {rate.errors} of {rate.repetitions} games only"


def test_pages_fail_where_they_call_a_correct_system_leaky() -> None:
    words = {"sentence", "boundary", "pure", "choices"}
    (row,) = (case for name, case in ROWS.items() if words <= set(name.split()))
    with planted(AuditResult, "parameter not converted"):
        (rate,) = run([row], tests=len(ROWS)).rates
    assert rate.verdict == "fails"


def test_what_replaces_one_example_is_twice_as_leaky() -> None:
    """The odds of the two answers, counted, are e^(2ε); noise of pairs is 2μ apart."""
    split = SplitResponses(pairs=50_000, epsilon=1.0)(3)
    members, others = split.scores[split.member], split.scores[~split.member]
    right, wrong = np.sum((members > 0) & (others < 0)), np.sum((members < 0) & (others > 0))
    assert math.log(right / wrong) == pytest.approx(2.0, abs=0.06)

    choices = ChoiceResponses(m=50_000, k=4, epsilon=1.0)(4)
    named = choices.scores > 0
    one = named.sum(axis=1) == 1
    found = named[np.arange(one.size), choices.member][one].mean()
    assert math.log(3 * found / (1 - found)) == pytest.approx(2.0, abs=0.06)

    noise = SplitNoise(pairs=50_000, mu=0.7)(5)
    first, of_first = noise.scores[::2], noise.member[::2]
    assert first[of_first].mean() - first[~of_first].mean() == pytest.approx(1.4, abs=0.04)
    assert first[of_first].std() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("design", ["random_split", "choices"])
def test_the_delta_that_becomes_that_of_the_bound_is_answered_whatever_it_rounds_to(
    design: str,
) -> None:
    systems_of = {one.design: one for one in SYSTEMS if one.claim.name.startswith("approx")}
    _, result = systems_of[design].trial.outcome(1)
    for epsilon in np.linspace(0.01, 9.0, 300).tolist():
        delta = result.claim.delta / (1 + math.exp(epsilon))
        verdict = result.check(epsilon=epsilon, delta=delta, relation="add_remove")
        if verdict != "inconclusive":
            assert (verdict == "refuted") == (result.bound > 2 * epsilon)


def test_failures_of_one_example_are_those_of_the_claim_for_replacing_one() -> None:
    """With a rate δ of failures each, (e^ε p - q) of the reports stays what pure DP leaves."""
    told = SplitResponses(pairs=50_000, epsilon=1.0, failure=0.1)(6)
    assert np.mean(np.abs(told.scores) > 10) == pytest.approx(0.1, abs=0.006)
    assert np.all((told.scores > 10) <= told.member)
