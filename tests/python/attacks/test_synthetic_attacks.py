"""Attacks on synthetic data: what they score, on which columns, and that they know no label."""

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leakbound import errors
from leakbound._base.tables import read_columns
from leakbound.attacks.synthetic import (
    ATTACKS,
    Tables,
    attribution,
    classifier,
    density_ratio,
    local_likelihood,
    nearest_synthetic,
    neighbourhood,
    similarity,
)
from leakbound.attacks.synthetic import scores as scoring
from leakbound.attacks.synthetic.encoding import pooled
from leakbound.attacks.synthetic.neighbours import nearest


def mixed(n: int, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """A table of all kinds of columns, with missing values and equal records."""
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01") + rng.integers(0, 90, n).astype("m8[D]")
    day[rng.random(n) < 0.1] = np.datetime64("NaT")
    pay = rng.lognormal(10, 1, n).round(-2)
    pay[rng.random(n) < 0.2] = np.nan
    table = {
        "age": rng.integers(20, 70, n),
        "pay": pay,
        "day": day,
        "town": rng.choice(["Bonn", "Nice", "Turin", ""], n),
        "street": rng.choice([f"street {i}" for i in range(40)], n),
        "married": rng.random(n) < 0.5,
    }
    twice = rng.integers(0, n, n // 10)
    again = rng.integers(0, n, n // 10)
    for values in table.values():
        values[again] = values[twice]
    return table


def rows(table: dict[str, np.ndarray[Any, Any]], order: Any) -> dict[str, np.ndarray[Any, Any]]:
    return {name: values[order] for name, values in table.items()}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("with_reference", [False, True])
def test_scores_know_records_and_not_their_place(attack: str, *, with_reference: bool) -> None:
    """Bit for bit: members and others can be stored in any order, or in the same one."""
    records, made = mixed(120, 0), mixed(70, 1)
    reference = mixed(50, 2) if with_reference else None
    order = np.random.default_rng(3).permutation(120)
    scores = ATTACKS[attack](Tables.of(records, made, reference=reference)).values
    shuffled = ATTACKS[attack](Tables.of(rows(records, order), made, reference=reference)).values
    assert np.array_equal(shuffled, scores[order])
    assert np.unique(scores).size > 2


def test_neither_types_nor_last_bits_move_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed draws the same pairs from any form of a table, on any machine."""
    records, made = mixed(120, 0), mixed(70, 1)
    tables = Tables.of(records, made)
    objects = {name: values[::-1].astype(object) for name, values in records.items()}
    assert np.array_equal(Tables.of(objects, made).place[::-1], tables.place)
    exact = np.arcsinh
    monkeypatch.setattr(np, "arcsinh", lambda x: np.nextafter(exact(x), np.inf))
    moved = Tables.of(records, made)
    assert np.array_equal(moved.place, tables.place)
    assert not np.array_equal(moved.points, tables.points)


@pytest.mark.parametrize("attack", ATTACKS)
def test_equal_records_have_equal_scores(attack: str) -> None:
    records = mixed(90, 4)
    tables = Tables.of(records, mixed(50, 5))
    scores = ATTACKS[attack](tables).values
    _, place, counts = np.unique(tables.place, return_inverse=True, return_counts=True)
    assert counts.max() > 1
    for point in np.flatnonzero(counts > 1):
        assert np.unique(scores[place == point]).size == 1


def test_large_tables_are_scored_from_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MOST_DENSITY_RECORDS", 60)
    monkeypatch.setattr(scoring, "MOST_TRAINING_RECORDS", 60)
    records, made = mixed(150, 6), mixed(100, 7)
    order = np.random.default_rng(8).permutation(150)
    for attack in (density_ratio, classifier):
        scores = attack(Tables.of(records, made, seed=1)).values
        again = attack(Tables.of(rows(records, order), made, seed=1)).values
        assert np.array_equal(again, scores[order])


def test_scores_by_hand() -> None:
    """On a line whose synthetic records have median 4.5 and quartiles 3.5 apart."""
    tables = Tables.of(np.array([[0.0], [1.0], [2.0], [4.0], [9.0]]), np.array([[1.0], [8.0]]))

    def at(x: float) -> float:
        return math.asinh((x - 4.5) / (3.5 / 1.349))

    assert nearest_synthetic(tables).values == pytest.approx(
        [at(0) - at(1), 0, at(1) - at(2), at(1) - at(4), at(8) - at(9)]
    )
    expected = math.log((at(8) - at(4)) / (at(9) - at(8)))
    assert attribution(tables).values[[0, 2, 3, 4]] == pytest.approx([0, 0, 0, expected])
    assert attribution(tables).values[1] > 100
    assert local_likelihood(tables).values.argmax() == 1
    assert neighbourhood(tables).values.tolist() == [1, 1, 0, 0, 1]


def test_local_likelihood_is_the_ratio_of_two_densities() -> None:
    """The kernel density at each synthetic record, with one of the records left out and with it."""
    rng = np.random.default_rng(9)
    tables = Tables.of(rng.normal(size=(9, 2)), rng.normal(size=(4, 2)))
    distances = np.linalg.norm(tables.synthetic[:, None] - tables.points[None], axis=2)
    kernel = (distances.min(1, keepdims=True) / distances) ** 16
    kernel -= kernel.min(axis=1, keepdims=True)
    ratio = [
        -np.log(np.maximum(np.delete(kernel, point, 1).sum(1) / kernel.sum(1), 1e-12)).sum()
        for point in range(9)
    ]
    assert local_likelihood(tables).values == pytest.approx(np.array(ratio)[tables.place])


FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "mapping": dict,
}


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_every_form_are_the_same(form: str) -> None:
    content: dict[str, list[Any]] = {
        "x": [1.5, None, 3.0, 4.0],
        "day": [dt.date(2024, 1, 1), dt.date(2024, 2, 1), None, dt.date(2024, 4, 1)],
        "word": ["a", "b", None, "a"],
        "flag": [True, None, False, True],
    }
    made = {name: values[1:] for name, values in content.items()}
    objects = {name: np.array(values, dtype=object) for name, values in content.items()}
    plain = Tables.of(objects, made)
    tables = Tables.of(FORMS[form](content), FORMS[form](made))
    assert np.array_equal(tables.points[tables.place], plain.points[plain.place])
    assert np.array_equal(tables.synthetic, plain.synthetic)


@pytest.mark.parametrize(
    ("records", "made", "note"),
    [
        ({"x": [1, 2, 3], "same": [5, 5, 5]}, {"x": [1], "same": [6]}, "'same' is the same in all"),
        ({"x": [1, 2], "gone": [None, None]}, {"x": [1], "gone": [2]}, "'gone' is missing in all"),
        (
            {"x": range(30), "name": [f"n{i}" for i in range(30)]},
            {"x": [1], "name": ["somebody"]},
            "'name' has no word in common",
        ),
        ({"x": [1, 2], "y": [1, 2]}, {"x": [1], "y": ["many"]}, "'y' is of another kind"),
    ],
)
def test_columns_that_say_nothing_are_named(records: Any, made: Any, note: str) -> None:
    (said,) = Tables.of(records, made).notes
    assert note in said


REFUSED: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ({"x": [1, 2]}, {"y": [1]}, {}, errors.InputError, "the synthetic table has no column 'x'"),
    ({"x": [1, 2]}, {"x": [np.inf]}, {}, errors.InputError, "infinite in 1 rows.*row 0"),
    ({"x": [1, 1]}, {"x": [1]}, {}, errors.InputError, "are equal in every column.*same"),
    ({"x": [None, None]}, {"x": [1]}, {}, errors.InputError, "missing in all"),
    ({"x": []}, {"x": [1]}, {}, errors.InputError, "at least one row"),
    ({"x": [1, 2], "y": [1]}, {"x": [1], "y": [1]}, {}, errors.InputError, "'x' has 2"),
    ([1, 2], [[1]], {}, errors.InputError, "a row for each record"),
    ({"x": [1j, 2]}, {"x": [1]}, {}, errors.InputError, "complex"),
    ({"x": np.ones((2, 2))}, {"x": [1]}, {}, errors.InputError, "one-dimensional"),
    ({"x": [1, 2]}, {"x": [1]}, {"categorical": ("y",)}, errors.OptionError, "names 'y'"),
]


@pytest.mark.parametrize(("records", "made", "options", "error", "words"), REFUSED)
def test_tables_that_cannot_be_compared(
    records: Any, made: Any, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Tables.of(records, made, **options)


def test_the_same_value_is_written_in_one_way_only() -> None:
    """Where members are doubles and others floats, or numbers and words, values would tell."""
    single = read_columns({"x": np.array([0.1], np.float32)}, "one")["x"]
    double = read_columns({"x": np.array([0.1])}, "other")["x"]
    assert np.unique(pooled(single, double, "x").values).size == 1
    text = read_columns({"x": ["0.1"]}, "text")["x"]
    assert np.unique(pooled(text, double, "x").values).size == 1
    words = read_columns({"x": ["some"]}, "words")["x"]
    with pytest.raises(errors.InputError, match="must not reveal membership"):
        pooled(double, words, "x")


MADE_OF: dict[str, tuple[Any, Any]] = {
    "half precision": (np.array([0.1, 7.3], np.float16), np.array([0.1, 7.3])),
    "half and single": (np.array([0.1, 7.3], np.float16), np.array([0.1, 7.3], np.float32)),
    "objects": (np.array([np.float32(0.1), np.float32(7.3)], object), np.array([0.1, 7.3])),
    "among words": (np.array([1, "a"], object), np.array([1.0, "a"], object)),
    "booleans among words": (np.array([True, "a"], object), np.array(["True", "a"])),
}


@pytest.mark.parametrize("types", MADE_OF)
def test_types_of_a_side_do_not_tell_it(types: str) -> None:
    members, others = (read_columns({"x": values}, "table")["x"] for values in MADE_OF[types])
    for one, other in ((members, others), (others, members)):
        values = pooled(one, other, "x").values
        assert values[:2].tolist() == values[2:].tolist()


def test_time_zones_do_not_tell_a_side() -> None:
    moment = pd.Series(pd.to_datetime(["2024-07-01T12:00", None, "2024-07-02T00:00"]))
    here = moment.dt.tz_localize("Europe/Berlin")
    zoned, utc, naive = (
        read_columns({"x": column}, "table")["x"]
        for column in (here, here.dt.tz_convert("UTC"), moment)
    )
    values = pooled(zoned, utc, "x").values
    assert np.array_equal(values[[0, 2]], values[[3, 5]])
    assert values[0] == np.datetime64("2024-07-01T10:00")
    with pytest.raises(errors.InputError, match="with a time zone for members and dates for"):
        pooled(zoned, naive, "x")
    mixed = [dt.datetime(2024, 7, 1, tzinfo=dt.UTC), dt.datetime(2024, 7, 1)]
    with pytest.raises(errors.InputError, match="with a time zone and dates without"):
        read_columns({"x": np.array(mixed, object)}, "the members")
    records = {"x": here, "y": [1.0, 2.0, 3.0]}
    assert not Tables.of(records, {"x": moment, "y": [1.0, 2.0, 3.0]}).notes


def test_searches_find_what_is_nearest() -> None:
    rng = np.random.default_rng(11)
    points = rng.normal(size=(3000, 8))
    points[:600] = points[0] + 1e-4 * rng.normal(size=(600, 8))  # close to each other
    points[600:1200, 2:] = 0
    points[600:1200] = points[600:1200].round()  # equally far from many
    queries = points[rng.integers(0, 3000, 800)] + 1e-5 * rng.normal(size=(800, 8))
    queries[::2] = rng.normal(size=(400, 8))
    found = nearest(points, queries, 11, what="", shown=False)
    apart = np.sqrt(((queries[:, None] - points) ** 2).sum(axis=2))
    assert np.array_equal(found.distances, np.take_along_axis(apart, found.indices, 1))
    assert (np.diff(np.sort(found.indices, axis=1), axis=1) > 0).all()  # no point is found twice
    assert np.array_equal(found.distances, np.sort(apart, axis=1)[:, :11])


def test_similarity_sees_copies_and_fresh_data() -> None:
    rng = np.random.default_rng(10)
    records, member = rng.normal(size=(400, 3)), np.arange(400) < 200
    fresh = similarity(Tables.of(records, rng.normal(size=(200, 3))), member)
    assert fresh.copies_of_members == fresh.copies_of_nonmembers == 0
    assert 0.35 < fresh.closer_to_members < 0.65
    assert fresh.expected == 0.5
    assert fresh.distance_to_members == pytest.approx(fresh.distance_to_nonmembers, rel=0.2)
    assert fresh.marginals > 0.9
    assert fresh.correlations > 0.9
    copied = similarity(Tables.of(records, records[:200]), member)
    assert copied.copies_of_members == copied.marginals == copied.correlations == 1
    assert copied.distance_to_members == copied.ratio_to_members == 0 < copied.ratio_to_nonmembers


def test_distances_are_as_gower_would_have_them() -> None:
    records: dict[str, list[Any]] = {
        "x": [0.0, 1.0, 2.0, 3.0, np.nan],
        "word": ["a", "a", "b", "c", "c"],
    }
    tables = Tables.of(records, {"x": [1.0], "word": ["b"]})
    at = tables.points[tables.place]

    def apart(one: int, other: int) -> float:
        return float(np.linalg.norm(at[one] - at[other]))

    assert apart(1, 2) == pytest.approx(math.hypot(1, math.asinh(0.5 / (1.5 / 1.349)) * 2))
    assert apart(3, 4) >= 1


def test_numbers_beyond_the_coarser_precision_stay_as_they_are() -> None:
    half, double = (
        read_columns({"x": np.array(values)}, "table")["x"]
        for values in (np.array([0.5], np.float16), [1e5])
    )
    assert pooled(half, double, "x").values.tolist() == [0.5, 1e5]
