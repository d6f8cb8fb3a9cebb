"""What text in tables stands for, and that two ways of writing do not tell who is a member."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from leakbound import errors
from leakbound._base.tables import Column, Writing, read_columns
from leakbound._base.text import settled


def columns(*tables: Any, decimal: str = ".") -> list[Column]:
    """Return the column of some tables, as settled together."""
    read = [read_columns({"c": one}, "a table", Writing(decimal=decimal)) for one in tables]
    return settled([one["c"] for one in read], "c")


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
