"""Singling out, linkability and inference: what counts as a success, and that no label is seen."""

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest

from leakbound import errors
from leakbound.attacks.synthetic import Tables, inference, linkability, singling_out
from leakbound.attacks.synthetic import tables as joining
from leakbound.attacks.synthetic.risks import closeness
from leakbound.attacks.synthetic.scores import ATTACKS, RISKS


def scored(records: Any, made: Any, **options: Any) -> dict[str, list[float]]:
    tables = Tables.of(records, made, seed=0, **options)
    return {name: ATTACKS[name](tables).values.tolist() for name in RISKS}


def at(x: float, middle: float = 3.0, spread: float = 2 / 1.349) -> float:
    return math.asinh((x - middle) / spread)


def test_a_record_is_singled_out_if_it_is_twice_as_near_as_any_other() -> None:
    """On a line whose synthetic records have median 3 and quartiles 2 and 4."""
    made = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    records = np.array([[-20.0], [-20.0], [1.1], [4.5], [10.0]])
    found = singling_out(Tables.of(records, made)).values
    near = math.log((at(4.5) - at(1.0)) / (at(1.1) - at(1.0)))
    far = math.log((at(10.0) - at(4.0)) / (at(4.5) - at(4.0)))
    beyond = math.log((at(10.0) - at(5.0)) / (at(5.0) - at(4.5)))
    assert found == pytest.approx([0, 0, near, max(far, beyond), 0])
    equal = np.array([[1.1], [1.1], [4.5], [10.0]])  # of two equal records neither is alone
    assert singling_out(Tables.of(equal, made)).values[:2].tolist() == [0, 0]


def test_a_value_that_one_person_has_singles_out() -> None:
    names = [f"person {i}" for i in range(300)]
    ages = np.arange(300) % 7
    made: Any = {"name": ["person 3", "nobody", "person 5"], "age": [0, 1, 2]}
    everybody: Any = {"name": names, "age": ages}
    found = singling_out(Tables.of(everybody, made)).values
    shared: list[str] = [*names[:296], *["person 3"] * 4]
    fewer = singling_out(Tables.of(everybody | {"name": shared}, made)).values
    assert found[3] - fewer[3] >= math.log(4) - 1e-9
    assert found[5] > fewer[5] + 1 or fewer[5] >= math.log(4)
    common: Any = {"name": [f"person {i // 2}" for i in range(300)], "age": ages}
    assert (singling_out(Tables.of(common, made)).values == 0).mean() > 0.9


def test_closeness_by_hand() -> None:
    distances = np.array([[1.0, math.e, math.e**2], [1.0, 1.0, 1.0], [0.0, 1e-3, 1e-3]])
    assert closeness(distances) == pytest.approx([12 - math.log(2), 0, 0])
    assert closeness(np.ones((2, 1))).tolist() == [0, 0]
    copies = np.array([[0.01] * 5 + [1.0] * 5])  # a record that was copied five times
    assert closeness(copies) == pytest.approx([6 * math.log(100) - math.log(5)])


def grid(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    return {name: rng.normal(size=n).round(3) for name in "abcd"}


def test_halves_are_dealt_by_entropy() -> None:
    rng = np.random.default_rng(0)
    made = {"few": rng.integers(0, 2, 400), "many": rng.normal(size=400)}
    made |= {"some": rng.integers(0, 20, 400), "several": rng.integers(0, 5, 400)}
    tables = Tables.of(made, made)
    assert tables.halves == (("many", "few"), ("some", "several"))


def test_halves_link_where_both_are_nearest_to_one_record() -> None:
    rng = np.random.default_rng(1)
    records, made = grid(rng, 200), grid(rng, 150)
    for name, values in records.items():
        made[name][:20] = values[:20]  # whole copies, and copies of one half of the columns
    tables = Tables.of(records, made)
    first, second = tables.halves
    for place in range(20, 40):
        for half, row in ((first, place), (second, place + 40)):
            for name in half:
                made[name][row] = records[name][place]
    found = linkability(Tables.of(records, made)).values
    assert (found[:20] > 7).all()
    assert (found[20:40] == 0).all()
    twice = {name: np.append(values, values[:20]) for name, values in made.items()}
    assert (linkability(Tables.of(records, twice)).values[:20] == 0).all()  # a tie is no link


def test_a_secret_is_inferred_where_the_nearest_record_has_it() -> None:
    rng = np.random.default_rng(2)
    records, made = grid(rng, 200), grid(rng, 200)
    for name, values in records.items():
        made[name][:40] = values[:40]
    made["a"][20:40] = -made["a"][20:40] + 3  # the right record, with another value
    named = inference(Tables.of(records, made, secrets=("a",))).values
    assert (named[:20] > 0).all()
    assert (named[20:40] == 0).all()
    in_turn = inference(Tables.of(records, made)).values
    assert (in_turn[:20] > named[:20]).all()  # four secrets, added up


def test_numbers_are_right_where_few_values_are_as_close() -> None:
    """A guess of a number counts if at most 5 % of values are as close, whatever its sign is."""
    rng = np.random.default_rng(3)
    for sign in (1, -1):
        records, made = grid(rng, 100), grid(rng, 200)
        for name, values in records.items():
            made[name][:100] = values
        shifted = made | {"a": sign * (np.abs(made["a"]) + 100.0)}
        truth = records | {"a": sign * (np.abs(records["a"]) + 100.0)}
        near = shifted | {"a": shifted["a"] + 0.001}
        far = shifted | {"a": np.random.default_rng(4).permutation(shifted["a"])}
        assert (inference(Tables.of(truth, near, secrets=("a",))).values > 0).mean() > 0.95
        assert (inference(Tables.of(truth, far, secrets=("a",))).values > 0).mean() < 0.15


ODD: dict[str, tuple[Any, Any]] = {
    "one row": (np.arange(12.0).reshape(6, 2), np.array([[2.0, 3.0]])),
    "one column": (np.arange(8.0)[:, None], np.arange(8.0)[:, None] + 0.1),
    "one record": (np.array([[1.0], [1.0], [2.0]]), np.array([[1.0], [5.0]])),
    "constant columns": (np.column_stack([np.arange(9.0), np.ones(9)]), np.ones((5, 2))),
    "equal rows": (np.arange(80.0).reshape(40, 2), np.full((50, 2), 7.0)),
    "missing": (
        {"a": [1.0, None, 3.0], "b": ["x", None, "y"]},
        {"a": [None, 1.0], "b": ["x", "x"]},
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_tables_are_scored(case: str) -> None:
    records, made = ODD[case]
    for values in scored(records, made).values():
        assert np.isfinite(values).all()
        assert min(values) >= 0
    named = ("a",) if isinstance(records, dict) else ("0",)
    scored(records, made, secrets=named)


def test_a_secret_that_is_not_there_is_refused() -> None:
    with pytest.raises(errors.OptionError, match="secrets names 'c'"):
        Tables.of({"a": [1, 2], "b": [1, 2]}, {"a": [1], "b": [1]}, secrets=("c",))


def nasty(rng: np.random.Generator, n: int, kind: str) -> dict[str, Any]:
    """Words in other alphabets, dates, missing values, ids, ties, and every record three times."""
    day = dt.date(2024, 1, 1)
    table: dict[str, Any] = {
        "a": rng.normal(size=n).round(1),
        "b": rng.integers(0, 4, n),
        "c": rng.choice(["x", "y", "zed", "été"], n),
        "d": np.where(rng.random(n) < 0.3, np.nan, rng.lognormal(size=n).round(2)),
        "e": [day + dt.timedelta(days=int(days)) for days in rng.integers(0, 60, n)],
        "f": [f"id{value}" for value in rng.integers(0, 3 * n, n)],
        "g": rng.random(n) < 0.5,
    }
    if kind == "thrice":
        rows = np.arange(n) % (n // 3)
        table = {name: np.asarray(values, dtype=object)[rows] for name, values in table.items()}
    if kind == "flat":
        table |= {"a": np.zeros(n), "d": np.full(n, np.nan)}
    return table


@pytest.mark.parametrize("kind", ["plain", "thrice", "flat"])
@pytest.mark.parametrize("n", [12, 60, 200])
def test_scores_are_functions_of_the_set_of_records(
    kind: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, in any order of rows, also where halves are compared with a part only."""
    monkeypatch.setattr(joining, "MOST_LINK_RECORDS", 40)
    rng = np.random.default_rng([n, len(kind)])
    pool = nasty(rng, n, kind)
    others, part = nasty(rng, n // 2, kind), rng.choice(n, n // 4, replace=False)
    made = {
        name: [*list(others[name]), *np.asarray(values, dtype=object)[part]]
        for name, values in pool.items()
    }
    order = rng.permutation(n)
    turned = {name: np.asarray(values, dtype=object)[order] for name, values in pool.items()}
    found, again = scored(pool, made), scored(turned, made)
    for name in RISKS:
        assert np.array_equal(np.array(found[name])[order], again[name])
    assert any(max(values) > 0 for values in found.values())
