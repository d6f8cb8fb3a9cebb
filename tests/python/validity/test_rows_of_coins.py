"""The rows of `make test` whose members fair coins drew; the others are beside.

The page of false claims in the docs shows the defaults of each audit.
"""

from pathlib import Path

import pytest

from validity import suite
from validity.catalogue import cases
from validity.defaults import either_end_cases
from validity.doubled import check

ROWS = [case for case in cases() if case.quick]
PAGE = Path(__file__).parents[3] / "docs/theory/validity-table.md"
AUDITS = {"one-run", "random-split", "stream", "synthetic", "panoramia", "zero-run"}
HERE = [case for case in ROWS if case.audit == "one-run"]


@pytest.mark.parametrize("case", HERE, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims(case: suite.Case) -> None:
    check(case, tests=len(ROWS))


ENDS = list(either_end_cases())
"""A grid of its own: the catalogue has its long runs."""


@pytest.mark.parametrize("case", ENDS, ids=lambda case: case.name.replace(" ", "-"))
def test_false_claims_of_guesses_from_either_end(case: suite.Case) -> None:
    check(case, tests=len(ENDS))


def test_the_rows_are_few_and_no_two_have_one_name() -> None:
    assert 60 <= len(ROWS) <= 88
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)


def test_the_page_is_one_page_of_rows_that_are_played() -> None:
    known = {case.name for case in cases()}
    audit, rows = "", list[str]()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        audit = line.removeprefix("## ") if line.startswith("## ") else audit
        if line.startswith("| ") and not line.startswith("| claim"):
            *case, _, _, _, _, _, expected, outcome = line.strip("| ").split(" | ")
            assert expected == outcome
            rows.append(" ".join((audit, *case)))
    assert len(rows) <= 80
    assert len(set(rows)) == len(rows)
    assert set(rows) <= known
    assert {row.split()[0] for row in rows} >= AUDITS
