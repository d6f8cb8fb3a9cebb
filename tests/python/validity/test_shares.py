"""Every share of a level is held by an exact test, which fails when the share is doubled."""

import ast
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from scipy import stats

import leakbound
import spent_by_models
import spent_by_probes
import spent_by_rankings
from leakbound._base import shares
from two_sceptics import refuted

PACKAGE = Path(leakbound.__file__).parent
TABLE = PACKAGE / "_base" / "shares.py"
CHECKS = spent_by_rankings.CHECKS | spent_by_models.CHECKS | spent_by_probes.CHECKS


def test_every_row_has_an_exact_check() -> None:
    assert set(CHECKS) == set(shares.table())


@pytest.mark.parametrize(("name", "check"), [*CHECKS.items(), *spent_by_models.MORE])
def test_a_doubled_share_fails_its_check(
    name: str, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = shares.table()[name]
    check()
    monkeypatch.setattr(shares, name, replace(row, part=2 * row.part))
    with pytest.raises(AssertionError):
        check()


def test_parts_of_a_whole_add_up_to_one_at_most() -> None:
    spent: dict[str, float] = defaultdict(float)
    for row in shares.table().values():
        assert row.part > 0
        spent[row.whole] += row.part
    assert {whole: part for whole, part in spent.items() if part > 1} == {}


def test_parts_are_taken_of_a_whole_and_priced_alike() -> None:
    one = shares.Share("level", 0.5, "three tests", "union bound")
    assert one.of(0.12, 3) == pytest.approx(0.02)
    assert one.of(0.12, 3) * one.price(3) == pytest.approx(0.12)


@cache
def sources() -> list[tuple[str, ast.AST]]:
    """Return what may read or divide a level, of every file but the table's."""
    return [
        (str(path.relative_to(PACKAGE)), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != TABLE
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.BinOp)
    ]


def test_every_row_is_read() -> None:
    read = {
        node.attr
        for _, node in sources()
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "shares"
    }
    assert set(shares.table()) <= read


LEVELS = {"level", "draw_level", "percentile", "beta", "tau", "p_value", "complement"}
"""What code calls an error probability, or the function that returns one."""
ELSEWHERE = {
    ("claims/base.py", "level * counts['correct']"): "Markov's inequality, the level being whole",
    (
        "audits/policies/ladder.py",
        "self.level * (self.draws + 1)",
    ): "how many draws may reach as far",
    ("audits/policies/f_dp.py", "level * self.weights(rule)"): "one certificate spends it",
    ("audits/policies/f_dp.py", "level * self.weights(rule)[places]"): "the same, for a choice",
    ("audits/policies/f_dp.py", "level / test.examples"): "a δ that a search may round",
    ("audits/zero_run/levels.py", "share * self.level"): "the same after matching",
    ("audits/zero_run/audit.py", "odds.share * request.level"): "of AT_MEMBER",
    ("results/dp_sgd.py", "(1 - self.confidence) * (1 + ROUNDING)"): "an allowance for rounding",
    ("audits/road.py", "self.share * request.level"): "of FIXED_RUNS",
    (
        "audits/subgroups.py",
        "subgroups * complement(result.confidence)",
    ): "what all subgroups have together, in words",
    ("audits/policies/second_look.py", "share * level"): "κ of the scan at its part of PARTS",
    ("audits/split_challenge.py", "share.price() * count.p_value"): "the row of the view",
}
"""Products and quotients of a level that share nothing, and why."""


def named(node: ast.expr) -> str:
    """Return the last name of what is read or called."""
    if isinstance(node, ast.Call):
        return named(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return "complement" if named(node.right) == "confidence" else ""
    return node.id if isinstance(node, ast.Name) else ""


def is_divided(node: ast.AST) -> bool:
    """Whether a level is divided by something, or multiplied with it."""
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, ast.Div):
        return named(node.left) in LEVELS
    priced = any(ast.unparse(side).startswith("shares.") for side in (node.left, node.right))
    both = {named(node.left), named(node.right)}
    return isinstance(node.op, ast.Mult) and not priced and bool(both & LEVELS)


def test_no_level_is_divided_outside_the_table() -> None:
    """A level has one of a few names in this package; other names would pass unseen."""
    found = {(file, ast.unparse(node)) for file, node in sources() if is_divided(node)}
    assert found - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) - found == set()


@pytest.mark.parametrize(
    "text",
    ["level / 2", "0.5 * a.level", "complement(c) / 3", "(1 - r.confidence) / 2", "n * p_value"],
)
def test_a_divided_level_is_seen(text: str) -> None:
    assert is_divided(ast.parse(text, mode="eval").body)
    assert not is_divided(ast.parse(f"shares.PATHS.of({text})", mode="eval").body)


RATE, RUNS, CHANCE = 0.1, 500, 1e-3
"""Nominal rate of refutations, runs, and the chance that bad luck fails a test of the rate."""


def test_right_propensities_are_refuted_no_more_often_than_stated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By two sceptics, with power against twice the rate, and against sceptics at the whole level.

    The guesses of one say nothing of the other's, so that at the whole level each they refute in
    nearly 19 %.
    """
    most = int(stats.binom.isf(CHANCE, RUNS, RATE))
    assert stats.binom.sf(most, RUNS, 2 * RATE) >= 0.95
    assert refuted(RUNS, RATE) <= most
    monkeypatch.setattr(shares, "SCEPTICS", replace(shares.SCEPTICS, part=2.0))
    assert refuted(RUNS, RATE) > most
