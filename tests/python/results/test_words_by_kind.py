"""What is said of a number follows from its kind, and from whether anything was refuted.

The rules are held for every kind that there is, on every surface: headline, verdict, captions,
page, console and JSON. A kind without an example here fails the first test.
"""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from typing import get_args

import numpy as np
import pytest

import leakbound as lb
from leakbound import report
from leakbound._base.formatting import number
from leakbound._base.types import Kind
from leakbound.claims import FAMILIES
from leakbound.cli import output
from leakbound.report.description import KINDS
from oracle_calls import coins, panoramia, synthetic, zero_run
from pages import words_of

Result = lb.AuditResult | lb.PanoramiaResult
LEAK, NONE = 2.5, 0.0
CONDITIONS = {"the propensities are right", "log-odds of membership are linear in the features"}


MAKERS: dict[str, Callable[[float], Result]] = {
    "pure DP": lambda leak: coins("leaks" if leak else "noise"),
    "Gaussian DP": lambda leak: coins("leaks" if leak else "noise", "gaussian"),
    "DP-SGD, whose bound is from above": lambda leak: coins("leaks" if leak else "few", "dp-sgd"),
    "generated non-members": lambda leak: panoramia(leak=leak, shift=1.0),
    "real non-members": lambda leak: panoramia(leak=leak, real_nonmembers=True),
    "Zero-Run, pure": lambda leak: zero_run("pure", leak=leak),
    "Zero-Run, Gaussian": lambda leak: zero_run("gaussian", leak=leak),
    "Zero-Run, over a set": lambda leak: zero_run(
        "pure", given="labels", features=True, falsify=False, leak=leak
    ),
    "Zero-Run, exploratory": lambda leak: zero_run("pure", given="replicates", leak=leak),
}


@cache
def made(name: str, leak: float) -> Result:
    return MAKERS[name](leak)


@pytest.fixture(params=[(name, leak) for name in MAKERS for leak in (LEAK, NONE)], ids=str)
def result(request: pytest.FixtureRequest) -> Result:
    return made(*request.param)


def figure_words(found: Result) -> Iterator[str]:
    for figure in found.summary().figures:
        yield from (figure.title, figure.caption)


def console(found: Result) -> str:
    with redirect_stdout(io.StringIO()) as said:
        output.show(claimed(found))
    return said.getvalue()


def page(found: Result) -> str:
    text = re.sub(
        r"<section class=\"references\">.*?</section>",
        "",
        report.render(claimed(found)),
        flags=re.DOTALL,
    )
    return words_of(text)


@cache
def surfaces(found: Result) -> dict[str, str]:
    """All that is said of a result; options are what the caller wrote."""
    said = found.to_dict() | {"options": None}
    return {
        "headline": found.summary().headline,
        "verdict": found.verdict,
        "evidence": " ".join(found.summary().paragraphs),
        "answer": claimed(found).summary().answer,
        "captions": " ".join(figure_words(found)),
        "console": console(found),
        "page": page(found),
        "JSON": str(said),
    }


def claimed(found: Result) -> Result:
    return found.with_check(epsilon=0.01, **({"delta": 1e-5} if is_family(found) else {}))


def headlines(found: Result) -> list[str]:
    """Sentences that stand alone: of the audit, and about a claim."""
    return [found.summary().headline, claimed(found).summary().answer]


def is_family(found: Result) -> bool:
    return isinstance(found.claim, FAMILIES)


def test_every_kind_has_an_example_with_and_without_a_refutation() -> None:
    seen = {
        (made(name, leak).kind, made(name, leak).refutes)
        for name in MAKERS
        for leak in (LEAK, NONE)
    }
    for kind in get_args(Kind):
        assert (kind, False) in seen
        assert ((kind, True) in seen) == KINDS[kind].proves


def test_the_kind_says_what_the_number_is(result: Result) -> None:
    said = surfaces(result)
    assert KINDS[result.kind].tag in said["page"]
    assert KINDS[result.kind].tag in said["console"]
    assert f"'{result.kind}'" in said["JSON"]


def test_the_page_has_all_grounds(result: Result) -> None:
    page = surfaces(result)["page"]
    stated = (text for one in result.assumptions for text in (one.name, one.statement, one.status))
    for text in (*stated, *result.warnings, *result.provenance.sha256.values(), result.reason):
        assert words_of(text) in page


def test_a_number_that_is_no_bound_is_never_said_to_prove(result: Result) -> None:
    if KINDS[result.kind].proves:
        return
    for surface, text in surfaces(result).items():
        assert not re.search(r"\bprove[sdn]?\b|[Tt]his model leaks|is refuted", text), surface


def test_an_invalid_number_is_never_written_as_a_bound(result: Result) -> None:
    written = " ".join([result.summary().formula, *(one.name for one in result.summary().metrics)])
    signs = re.findall(r"≥|≤|at least|at most", written)
    assert bool(signs) == (result.kind != "exploratory_lower_bound")


def test_only_a_bound_without_condition_or_family_is_said_to_hold_for_every_procedure(
    result: Result,
) -> None:
    for surface, text in surfaces(result).items():
        assert "is not ε-differentially private" not in text, surface
    says = " ".join(result.summary().meaning.says)
    plain = result.refutes and not result.summary().terms.condition and not is_family(result)
    assert ("The bound is a lower limit:" in says) == plain


def test_a_conditional_refutation_names_its_condition(result: Result) -> None:
    condition = result.summary().terms.condition
    if not condition:
        for words in CONDITIONS:
            assert not any(words in text for text in headlines(result))
        return
    if result.refutes:
        for text in (*headlines(result), result.verdict):
            assert condition in text.lower()
    for text in result.summary().meaning.says[:2] if result.refutes else ():
        assert condition in text
    said = surfaces(result)
    assert "propensities" in {one.name for one in result.assumptions}
    if result.refutes:
        assert condition in said["page"].lower()
        assert condition in said["console"].lower()
    (other,) = CONDITIONS - {condition.removeprefix("if ")}
    for surface, text in said.items():
        assert other not in text.lower(), surface


def test_a_bound_on_a_family_names_the_family(result: Result) -> None:
    names = {one.name for one in result.assumptions}
    assert ("family of trade-off functions" in names) == is_family(result)
    if not is_family(result):
        return
    said = surfaces(result)
    family = result.claim.name
    if result.refutes:
        says = result.summary().meaning.says[0]
        epsilon = number(result.summary().epsilon)
        assert f"with ε < {epsilon} at δ = 1e-05 holds" in says  # as headlines say it
        alone, *others = headlines(result)
        for text in (*others, result.verdict, *result.summary().meaning.says[:2]):
            assert family in text
        noise = isinstance(result.claim, lb.SubsampledGaussianDP)
        assert ("if training is DP-SGD (q = 0.1, 10 steps)" if noise else family) in alone
    assert (f"outside {family}" in said["page"]) == KINDS[result.kind].proves
    assert f"the claimed family, {family}" in said["page"]
    assert f"the claimed family, {family}" in said["JSON"]


def test_what_refutes_nothing_accuses_nobody(result: Result) -> None:
    if result.refutes:
        return
    for text in (
        *headlines(result),
        result.verdict,
        *figure_words(result),
        *result.summary().meaning.says,
    ):
        assert not re.search(r"\bleaks\b|is refuted|no guarantee of .* holds", text)
    said = surfaces(result)
    assert "This model leaks" not in said["page"] + said["console"]


def test_warnings_are_in_the_paragraph_and_the_console_has_seed_and_assumptions(
    result: Result,
) -> None:
    said = result.summary()
    for text in result.warnings:
        assert f"Warning: {text.removesuffix('.')}." in str(said)
        assert f"warning: {output.spelled(text)}" in console(result)
    for one in said.assumptions:
        assert f"{one.status}: {one.name}. {one.statement}" in console(result)
    assert {one.name for one in result.assumptions} <= {one.name for one in said.assumptions}
    assert f"seed: {result.provenance.seed};" in console(result)


def test_some_examples_have_warnings() -> None:
    assert any(made(name, leak).warnings for name in MAKERS for leak in (LEAK, NONE))


def perfect(claim: lb.claims.Claim | None = None) -> lb.AuditResult:
    member = np.arange(6) % 2 == 0
    return lb.audit(1.0 * member, lb.Coins(member), claim=claim, seed=0)


CEILINGS: dict[str, tuple[Callable[[], Result], str]] = {
    "few coins": (perfect, "even a perfect attack would reach only ε = "),
    "few coins, a δ": (lambda: perfect(lb.ApproxDP(delta=1e-5)), "would reach only ε = "),
    "few coins, Gaussian": (lambda: perfect(lb.GaussianDP()), r"only ε = [\d.]+ at δ = .* \(μ = "),
    "pairs": (lambda: synthetic("copies", "pure", challenge=False), r"\(a perfect attack: ε = "),
    "generated": (lambda: panoramia(leak=3.0, shift=1.0), r"\(a perfect attack: c \+ ε = "),
    "real": (lambda: panoramia(leak=9.0, real_nonmembers=True), r"\(a perfect attack: ε = "),
    "a baseline": (lambda: panoramia(leak=0.0, shift=9.0), r"on these examples reaches c = "),
    "given features": (lambda: zero_run("pure", leak=9.0), r"\(a perfect attack: ε = "),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_a_ceiling_in_a_warning_has_its_unit(name: str) -> None:
    make, words = CEILINGS[name]
    told = " ".join(make().warnings)
    assert re.search(words, told), told


def test_more_examples_are_asked_for_once() -> None:
    for found in (perfect(), perfect().with_check(epsilon=4.0)):
        assert str(found).count("even a perfect attack reaches") == 1
        assert "To prove more" not in str(found)
    assert str(synthetic("copies", "pure", challenge=False)).count("a perfect attack: ε") == 1


def test_no_guess_right_is_not_put_down_to_chance() -> None:
    member = np.arange(600) % 2 == 0
    noise = np.random.default_rng(0).normal(size=600)
    right = str(lb.audit(noise - member, lb.Coins(member), seed=0))
    assert "Random guesses do as well." in right
    assert "Chance can explain" not in right


def test_ties_of_secrets_are_ties_of_margins() -> None:
    chosen = np.random.default_rng(0).integers(100, size=60)
    found = lb.audit(np.eye(100)[chosen], lb.Choices(chosen, k=100), seed=0)
    assert found.warnings[0].startswith("100 % of the secrets share their margin with another")
    assert "(by chance: 1 time)" in str(found)
