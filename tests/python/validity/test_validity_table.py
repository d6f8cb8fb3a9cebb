"""The page of false claims in the docs: the defaults of each audit, on one page."""

from pathlib import Path

from validity.catalogue import cases

PAGE = Path(__file__).parents[3] / "docs/validity-table.md"
AUDITS = {"one-run", "random-split", "stream", "synthetic", "panoramia", "zero-run"}


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
