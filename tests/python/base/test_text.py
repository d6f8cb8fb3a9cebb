"""What text in tables stands for, and that two ways of writing do not tell who is a member."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakbound import errors
from leakbound._base.tables import Column, Writing, read_columns
from leakbound._base.text import settled, suspicion


def columns(
    *tables: Any,
    decimal: str = ".",
    thousands: str = "",
    missing: tuple[str, ...] = (),
    codes: bool = False,
) -> list[Column]:
    """Return the column of some tables, as settled together."""
    writing = Writing(decimal, thousands, missing)
    read = [read_columns({"c": one}, f"table {i}", writing) for i, one in enumerate(tables)]
    return settled([one["c"] for one in read], "c", codes=codes)


KINDS: dict[str, tuple[list[str], str, list[Any]]] = {
    "whole numbers": (["1", "-2", "+3"], "number", [1.0, -2.0, 3.0]),
    "numbers with marks": (["1", "NA", "2.5", " ", "null"], "number", [1.0, None, 2.5, None, None]),
    "exact numbers": (["9007199254740993", "1.5"], "number", [2**53 + 1, 1.5]),
    "large decimals": (["9007199254740993.0", "1e20"], "number", [2**53 + 1, 1e20]),
    "large doubles": (["9007199254740994.0", "1e+300"], "number", [2.0**53 + 2, 1e300]),
    "beyond 64 bits": ([str(2**70), str(2**70 + 1)], "number", [2**70, 2**70 + 1]),
    "codes": (["007", "12"], "word", ["007", "12"]),
    "codes with an e": (["1e999", "12"], "word", ["1e999", "12"]),
    "names of infinity": (["inf", "12"], "word", ["inf", "12"]),
    "thousands": (["1_000", "12"], "word", ["1_000", "12"]),
    "commas": (["1,5", "12"], "word", ["1,5", "12"]),
    "days": (["2024-01-01", ""], "date", [np.datetime64("2024-01-01"), None]),
    "moments": (["2024-01-01T00:30"], "date", [np.datetime64("2024-01-01T00:30")]),
    "with a zone": (
        ["2024-01-01T00:30+01:00", "2024-01-01 01:00:00Z"],
        "date",
        [np.datetime64("2023-12-31T23:30"), np.datetime64("2024-01-01T01:00")],
    ),
    "other dates": (["31.12.2024"], "word", ["31.12.2024"]),
    "booleans": (["true", "FALSE", "NA"], "flag", ["True", "False", None]),
    "words": ([" Bonn", "NA", ""], "word", ["Bonn", "NA", None]),
    "nothing": (["", "NA"], "empty", [None, None]),
}


@pytest.mark.parametrize("case", KINDS)
def test_words_are_what_all_of_them_are(case: str) -> None:
    words, kind, values = KINDS[case]
    (column,) = columns(words)
    assert column.kind == kind
    there = [
        None if gone else value for value, gone in zip(column.values, column.missing, strict=True)
    ]
    assert there == values
    assert [type(one) is int for one in there] == [type(one) is int for one in values]


def test_a_column_is_what_all_tables_together_say() -> None:
    first, second = columns(["1", "2"], ["many", "1"])
    assert (first.kind, second.kind) == ("word", "word")
    first, second = columns(["1", "2"], [0.5, None])
    assert (first.kind, second.kind) == ("number", "number")
    first, second = columns(["1", "2"], np.array(["2024-01-01"], "M8[D]"))
    assert (first.kind, second.kind) == ("word", "date")
    first, second = columns(["20240102"], np.array(["2024-01-01"], "M8[D]"))
    assert (first.kind, second.kind) == ("date", "date")


def test_a_decimal_comma_is_read_where_it_is_named() -> None:
    (column,) = columns(["1,5", "9007199254740993"], decimal=",")
    assert column.values.tolist() == [1.5, 2**53 + 1]
    assert columns(["1.5", "2"], decimal=",")[0].kind == "word"


def test_numbers_of_all_types_are_the_same() -> None:
    forms: list[Any] = [
        ["1.5", "-0.25", "3"],
        [Decimal("1.50"), Decimal("-0.25"), Decimal(3)],
        [1.5, -0.25, 3],
        ["1.5", Decimal("-0.25"), 3],
        np.array([1.5, -0.25, 3], np.longdouble),
    ]
    for form in forms:
        (column,) = columns(form)
        assert (column.kind, column.values.tolist()) == ("number", [1.5, -0.25, 3.0])


def test_dates_with_and_without_a_time_zone_are_refused() -> None:
    with pytest.raises(errors.InputError, match="column 'c' has dates with a time zone and"):
        columns(["2024-01-01T00:00+01:00", ""], ["2024-01-01T00:00", "null"])


@pytest.mark.parametrize(
    ("one", "other"), [("2024-01-{:02}", "{:02}/01/2024"), ("{}.5", "{},5"), ("{}", "{} years")]
)
def test_two_ways_of_writing_are_refused_where_they_tell_who_is_a_member(
    one: str, other: str
) -> None:
    def written(form: str, days: range) -> list[str]:
        return [form.format(day) for day in days] + [""]

    for forms in ((one, other), (other, one)):
        with pytest.raises(errors.InputError, match=r"column 'c' holds (dates|numbers) in one"):
            columns(*(written(form, range(10, 28)) for form in forms))
    few = columns(*(written(form, range(10, 12)) for form in (one, other)))
    assert {column.kind for column in few} == {"word"}  # as chance may have it


NUMBERS = [f"{1 + i / 7:.2f}" for i in range(60)]


def marked(mark: str, every: int) -> list[str]:
    """Return numbers as text, and a mark in their place in one of so many rows."""
    return [mark if row % every == 3 % every else number for row, number in enumerate(NUMBERS)]


@pytest.mark.parametrize("every", [10, 4, 2])
@pytest.mark.parametrize(
    "mark",
    ["NA", "n/a", "NULL", "NaN", ".", ".a", ".Z", "\\N", "-", "k. A.", "#N/A", "\u2013", "<NA>"],
)
def test_marks_of_missing_values_leave_numbers_numbers(mark: str, every: int) -> None:
    first, second = columns(marked(mark, every), NUMBERS)
    (expected,) = columns(marked("", every))
    assert first.kind == second.kind == "number"
    assert first.missing.tolist() == expected.missing.tolist()
    assert first.marks == {mark: int(first.missing.sum())}
    assert not second.marks
    numbers = [None if word == mark else float(word) for word in marked(mark, every)]
    beside, typed = columns(marked(mark, every), numbers)  # of a frame
    assert beside.missing.tolist() == typed.missing.tolist()


def test_a_mark_in_every_cell_is_no_value() -> None:
    (column,) = columns(["."] * 5)
    assert column.kind == "empty"
    assert column.missing.all()


@pytest.mark.parametrize("word", ["<0.5", "refused", "12 kg", "Infinity", "2024-01-01"])
def test_few_words_among_numbers_are_refused_by_table_row_and_option(word: str) -> None:
    rows = marked(word, 10)
    message = rf"column 'c' of table 1 holds numbers, but '{word}' at row 3 .* missing=\['{word}'\]"
    with pytest.raises(errors.InputError, match=message):
        columns(NUMBERS, rows)
    first, second = columns(NUMBERS, rows, missing=(word,))
    assert (first.kind, second.kind) == ("number", "number")
    assert np.flatnonzero(second.missing).tolist() == [*range(3, 60, 10)]
    first, second = columns(NUMBERS, rows, codes=True)
    assert (first.kind, second.kind) == ("word", "word")


def test_few_words_among_dates_are_refused() -> None:
    days = [f"2024-03-{1 + row % 28:02}" for row in range(40)]
    assert columns([*days, "0000-00-00", "NA"])[0].kind == "date"
    with pytest.raises(errors.InputError, match="holds dates, but 'soon' at row 40 "):
        columns([*days, "soon"])


def test_limits_of_detection_are_numbers_however_many_there_are() -> None:
    with pytest.raises(errors.InputError, match=r"missing=\['<0.5'\]"):
        columns(marked("<0.5", 2))


def test_codes_beside_numbers_are_words() -> None:
    assert columns([f"{code:05}" for code in range(9_900, 11_000)])[0].kind == "word"


@pytest.mark.parametrize("form", ["number", "text", "mixed"])
def test_named_marks_are_missing_in_every_form(form: str) -> None:
    cells: list[Any] = [1.5, -9, 2, -9, 4]
    cells = [*map(str, cells)] if form == "text" else cells
    cells = [*cells, "NA"] if form == "mixed" else cells
    (column,) = columns(cells, missing=("-9.0",))
    assert column.kind == "number"
    assert column.missing.tolist()[:5] == [False, True, False, True, False]
    (words,) = columns(["low", "Unknown", "high"], missing=("unknown",))
    assert words.missing.tolist() == [False, True, False]
    (dates,) = columns(np.array(["2024-01-01", "9999-12-31"], "M8[D]"), missing=("9999-12-31",))
    assert dates.missing.tolist() == [False, True]


SUSPECTS = {
    "{} kg": "has numbers such as",
    "\u20ac {}": "has numbers such as",
    "{},5": "has numbers such as",
    "1{:02}.05.2024": "has dates such as",
    "{:02}MAY2024": "has dates such as",
    "P{}": "",
    "0{}": "",
    "10.0.0.{}": "",
}


@pytest.mark.parametrize("form", SUSPECTS)
def test_words_that_look_like_numbers_or_dates_are_noted(form: str) -> None:
    (column,) = columns([form.format(day).removeprefix("1") for day in range(10, 29)])
    assert column.kind == "word"
    assert suspicion(column, "c").startswith(SUSPECTS[form])
    assert bool(suspicion(column, "c")) == bool(SUSPECTS[form])


def test_many_words_among_numbers_are_noted() -> None:
    (column,) = columns([*NUMBERS, *["refused"] * 20])
    assert suspicion(column, "c") == "has numbers in 75% of its cells, and 'refused'"


@pytest.mark.parametrize(
    ("written", "sign"), [("\u00a0", " "), ("\u202f", " "), ("\u2019", "'"), ("\u2009", " ")]
)
def test_typeset_signs_of_thousands_are_those_that_are_typed(written: str, sign: str) -> None:
    rows = [f"{row * row:,}".replace(",", written) for row in range(20, 60)]
    with pytest.raises(errors.InputError, match=r"thousands separators, .* --thousands, or"):
        columns(rows)
    (column,) = columns(rows, thousands=sign)
    assert column.values.tolist() == [row * row for row in range(20, 60)]


@pytest.mark.parametrize("sign", [",", "'", " ", "."])
def test_signs_of_thousands_are_refused_or_read(sign: str) -> None:
    rows = [f"{row * row:,}".replace(",", sign) for row in range(20, 60)]
    with pytest.raises(
        errors.InputError, match=f"of table 0 has thousands separators, such as .1{sign}0"
    ):
        columns(rows)
    if sign == ".":
        (column,) = columns(rows, decimal=",", thousands=sign)
    else:
        (column,) = columns(rows, thousands=sign)
        assert columns([*rows, "1.5"], thousands=sign)[0].kind == "number"
    assert column.values.tolist() == [row * row for row in range(20, 60)]
    assert columns(rows, codes=True)[0].kind == ("number" if sign == "." else "word")
    assert columns(["1.125", "2.5", "3"])[0].kind == "number"
    decimals = [f"{40 + row / 7:.3f}" for row in range(60)]
    assert columns([*decimals, "-9", "-8", "0"])[0].kind == "number"  # codes


TEXT = st.text(st.sampled_from("0159.,-<e NAk/_"), max_size=4)


@given(st.lists(TEXT, min_size=1, max_size=40), st.lists(TEXT, min_size=1, max_size=40), st.data())
def test_what_is_missing_does_not_depend_on_the_table(
    one: list[str], other: list[str], data: st.DataObject
) -> None:
    """Rows that move to the other table are read as they were."""
    cells = [*one, *other]
    order = data.draw(st.permutations(range(len(cells))))

    def read(rows: list[str]) -> tuple[str, dict[str, bool]]:
        try:
            parts = columns(rows[: len(one)], rows[len(one) :])
        except errors.InputError as error:
            return str(error).split(" of table")[0], {}
        missing = np.concatenate([part.missing for part in parts]).tolist()
        kinds = {part.kind for part in parts} - {"empty"}
        return " ".join(kinds), dict(zip(rows, missing, strict=True))

    first, second = read(cells), read([cells[row] for row in order])
    assert first[1] == second[1]
    assert first[0] == second[0]
