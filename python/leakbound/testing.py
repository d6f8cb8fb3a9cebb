"""Privacy claims as tests: a refuted claim fails, and one that cannot be tested says so.

As a plugin of pytest (``pytest_plugins = ["leakbound.testing"]`` in the topmost ``conftest.py``, or
``-p leakbound.testing``) it reports tests that are inconclusive as an outcome of their own, which
fails the run, and says at its end why they are; in JUnit's XML they have the property
``leakbound`` of value ``inconclusive``. Without pytest, `assert_not_refuted` works in other tests.
"""

import unittest
from collections.abc import Callable, Generator
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from leakbound._base.checks import choice, flag, instance, integer
from leakbound._base.types import Relation, Verdict
from leakbound.errors import OptionError
from leakbound.report.description import Description
from leakbound.results.base import Result
from leakbound.results.synthetic import Risks

if TYPE_CHECKING:
    from _pytest.nodes import Item
    from _pytest.reports import TestReport
    from _pytest.runner import CallInfo
    from _pytest.terminal import TerminalReporter

pytest: Any = None
if find_spec("pytest"):
    pytest = import_module("pytest")

# Verdicts, the most urgent last
_BY_URGENCY = ("not refuted", "inconclusive", "refuted")

__all__ = ["InconclusiveError", "RefutedError", "assert_not_refuted"]


class RefutedError(AssertionError):
    """An audit refuted a claimed guarantee."""


class InconclusiveError(AssertionError):
    """An audit could not test a claimed guarantee, or not strictly."""


def assert_not_refuted(
    result: Result,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    parameter: float | None = None,
    relation: Relation | None = None,
    c: float | None = None,
    most_certified: int | None = None,
    strict: bool = False,
    inconclusive: Literal["fail", "skip"] = "fail",
) -> None:
    """Fail unless an audit could have refuted a claimed guarantee and did not.

    Parameters
    ----------
    result : AuditResult, ZeroRunResult, PanoramiaResult, PanoramiaReport or DPSGDAudit
        What an audit returned. Of a `DPSGDAudit` nothing need be claimed: the mechanism as it was
        stated is then put to the test.
    epsilon, delta : float, optional
        The claimed guarantee; its δ is 0 if not given.
    parameter : float, optional
        In place of ε and δ, neither of which goes with it, the claimed value of the claim's own
        parameter, such as μ.
    relation : {"add_remove", "replace"}, optional
        What the claimed guarantee compares: needed where the bound is on replacing one example. A
        claim about adding or removing one is then converted, as by the result's `check`.
    c : float, optional
        The claimed closeness of a generator, for PANORAMIA.
    most_certified : int, optional
        For a synthetic table: so many hits at most may be certified of each risk that was looked
        at, such as 0. More of one are a refutation; the claim is inconclusive if no attack could
        have certified more, or the counts are withheld.
    strict : bool
        Whether warnings and assumptions that the data contradict make it inconclusive.
    inconclusive : {"fail", "skip"}
        What becomes of a claim that is inconclusive, because even a perfect attack could not have
        refuted it with these examples, or by `strict`: `InconclusiveError`, or the test is skipped
        (of unittest, where pytest is not installed).
        A claim that is refuted always raises `RefutedError`.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(300) % 2 == 0
    >>> result = lb.audit(np.sin(np.arange(300.0)), lb.Coins(member))
    >>> assert_not_refuted(result, epsilon=2.0)
    """
    __tracebackhide__ = True  # a failure shows the sentence, below the caller's own line
    flag(strict, name="strict")
    choice(inconclusive, name="inconclusive", allowed=Literal["fail", "skip"])
    instance(result, name="result", types=Result)
    guarantee: dict[str, object] = {
        "epsilon": epsilon,
        "delta": delta,
        "parameter": parameter,
        "relation": relation,
        "c": c,
    }
    claim_options = {name: value for name, value in guarantee.items() if value is not None}
    verdict: Verdict = "not refuted"
    summary = result.summary()
    answer = ""
    if claim_options or most_certified is None:
        verdict, summary, answer = _answer_to_claim(result, claim_options)
    if most_certified is not None:
        most = integer(most_certified, name="most_certified", least=0)
        of_risks = _answer_to_most_certified(result, most)
        verdict = max(verdict, of_risks.verdict, key=_BY_URGENCY.index)
        answer = " ".join(filter(None, (answer, of_risks.answer)))
    if verdict == "refuted":
        sentences = [answer]
        if claim_options:
            sentences.append(summary.headline)  # with the bound, which the answer does not name
        distinct_sentences = dict.fromkeys(filter(None, sentences))
        raise RefutedError(" ".join(distinct_sentences))
    if verdict == "not refuted":
        contradicted = [f"contradicted: {assumption.name}" for assumption in summary.contradicted]
        doubts = [*contradicted, *summary.warnings]
        if not strict or not doubts:
            return
        answer = f"{answer} But strict=True found: {'; '.join(doubts)}."
    if inconclusive == "skip":
        _skip(answer)
    raise InconclusiveError(answer)


class _Answer(NamedTuple):
    """What a result says about a claim."""

    verdict: Verdict
    summary: Description
    answer: str


def _answer_to_claim(result: Result, claim_options: dict[str, object]) -> _Answer:
    """Ask a result about a guarantee, or about the mechanism as it was stated."""
    try:
        signature(result.check).bind(**claim_options)
    except TypeError as error:
        raise OptionError(f"a {type(result).__name__} cannot be asked this: {error}") from None
    verdict = result.check(**claim_options)
    if claim_options:
        summary = result.with_check(**claim_options).summary()
        return _Answer(verdict, summary, summary.answer)
    summary = result.summary()
    return _Answer(verdict, summary, summary.headline)


def _answer_to_most_certified(result: Result, most: int) -> _Answer:
    """Ask a result about hits that are certified."""
    risks = getattr(result, "risks", None)
    if not isinstance(risks, Risks):
        raise OptionError(
            f"most_certified is about singling out, linkability and inference, and this "
            f"{type(result).__name__} has none of them: audit a synthetic table by these attacks"
        )
    return _Answer(risks.check(most), result.summary(), risks.answer(most))


def _skip(answer: str) -> NoReturn:
    """Skip a test of pytest, or of unittest where pytest is not installed."""
    if pytest is None:
        raise unittest.SkipTest(answer)
    raise pytest.skip.Exception(answer)


def _hook(**options: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as a hook of pytest, if that is installed."""
    if pytest is None:
        return lambda function: function
    mark: Callable[[Callable[..., Any]], Callable[..., object]] = pytest.hookimpl(**options)
    return mark


@_hook(wrapper=True)
def pytest_runtest_makereport(
    item: "Item", call: "CallInfo[None]"
) -> "Generator[None, TestReport, TestReport]":
    """Mark the reports of inconclusive tests, for the terminal and for JUnit."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(InconclusiveError):
        mark = ("leakbound", "inconclusive")
        item.user_properties.append(mark)
        report.user_properties.append(mark)
        report.longrepr = str(call.excinfo.value)
    return report


@_hook(tryfirst=True)
def pytest_report_teststatus(report: "TestReport") -> object:
    """Report inconclusive tests as such."""
    if report.failed and ("leakbound", "inconclusive") in getattr(report, "user_properties", ()):
        return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: "TerminalReporter") -> None:
    """Say why tests are inconclusive: pytest does so for outcomes of its own only."""
    for report in terminalreporter.stats.get("inconclusive", ()):
        terminalreporter.write_line(f"INCONCLUSIVE {report.nodeid}: {report.longrepr}")
