"""Reproductions: what they compute, and the program that prints and writes them."""

from itertools import pairwise
from pathlib import Path

import pytest

from at_hand import at_hand
from drawing import svg
from outcomes import read
from page import PAGE, ROWS, page
from reproduce import REPRODUCTIONS, main
from synthetic_tables import audits


def test_figures_are_what_the_paper_says_of_them() -> None:
    outcome = REPRODUCTIONS["fdp-confidence"].compute(full=False)
    place = {name: i for i, name in enumerate(outcome.columns)}
    for row in outcome.rows:
        theory, steinke, recursion, tight = (
            float(row[place[name]] or 0)
            for name in ("theory", "Steinke et al.", "Algorithm 3", "tight test")
        )
        assert steinke < recursion < tight < theory


def test_more_values_to_choose_from_prove_more() -> None:
    """But for chance, of which the games of few canaries leave a little."""
    outcome = REPRODUCTIONS["fdp-figure5"].compute(full=False)
    for canaries in (10_000, 100):
        for column in (3, 4):
            proved = [float(row[column] or 0) for row in outcome.rows if row[0] == canaries]
            assert all(more > less - 0.05 for less, more in pairwise(proved))
            assert proved[-1] > proved[0] + 0.1
            assert max(proved) < 0.1 + proved[-1] < float(outcome.rows[0][2] or 0)


@pytest.mark.validity
def test_table_1() -> None:
    """Steinke's column to 0.15; ours above 7.34, 3.33, 1.49, 0.72 and below the theory."""
    outcome = REPRODUCTIONS["fdp-table1"].compute(full=False)
    place = {name: i for i, name in enumerate(outcome.columns)}
    for row, least in zip(outcome.rows, (7.34, 3.33, 1.49, 0.72), strict=True):
        value = {name: float(row[i] or 0) for name, i in place.items()}
        assert value["theory (printed)"] == pytest.approx(value["theory"], abs=0.011)
        assert value["Steinke (printed)"] == pytest.approx(value["Steinke"], abs=0.15)
        low, high, tight = (
            value[name] for name in ("Algorithm 3, floor", "Algorithm 3, ceiling", "tight, floor")
        )
        assert least < low < high < value["ours (printed)"]
        assert low < tight < value["theory"]


@pytest.mark.validity
@pytest.mark.parametrize("name", ["fdp-figure1", "fdp-guesses"])
def test_slower_ones(name: str) -> None:
    outcome = REPRODUCTIONS[name].compute(full=False)
    place = {heading: i for i, heading in enumerate(outcome.columns)}
    for row in outcome.rows:
        assert float(row[place["Algorithm 3"]] or 0) <= float(row[place["theory"]] or 0)
    assert "<svg" in svg(outcome)


def test_the_program_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [*REPRODUCTIONS]
    main(["fdp-figure5", "--out", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "Figure 5" in shown
    assert "10,000" in shown
    assert {file.name for file in tmp_path.iterdir()} == {"fdp-figure5.parquet", "fdp-figure5.svg"}
    outcome = REPRODUCTIONS["fdp-figure5"].compute(full=False)
    assert read(tmp_path / "fdp-figure5.parquet") == outcome
    for arguments, message in (
        (["fdp-table9"], "must be among fdp-table1"),
        (["fdp-figure5", "--m", "9"], "fdp-figure5 takes no --m"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err


def test_tables_show_what_a_generator_gives_away() -> None:
    copies, trees, pairs, few, private = dict(at_hand(lambda: [*audits(600)])).values()
    assert copies.bound > 3
    assert trees.bound > 2
    assert pairs.bound < 0.8
    assert pairs.bound < few.bound < copies.bound
    assert private.bound <= 1
    assert private.check(epsilon=1.0, relation="replace") == "not refuted"
    assert copies.similarity.copies_of_members == 0


def test_the_page_is_made_of_the_stored_rows() -> None:
    assert {path.stem for path in ROWS.glob("*.parquet")} == {*REPRODUCTIONS}
    assert PAGE.read_text(encoding="utf-8") == page()


def test_stored_rows_are_what_the_commands_compute() -> None:
    """Those that take no time; the others are compared by who writes them again."""
    for name in ("fdp-figure5", "fdp-confidence"):
        stored, computed = read(ROWS / f"{name}.parquet"), REPRODUCTIONS[name].compute(full=False)
        assert stored.notes == computed.notes
        for ours, theirs in zip(stored.rows, computed.rows, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6)
