"""What mechanisms return: each value is audited as it is, or refused by name."""

import array
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.stats import binom

import leakbound as lb
from command_line import printed_by_each
from leakbound import errors
from leakbound.mechanisms import audit_mechanism
from leakbound.mechanisms.outputs import features_of
from leakbound.mechanisms.worker import pack, unpack

RUNS = 10
LARGE, HUGE = 2**53 + 1, 2**63 + 1
Make = Callable[[Any], Any]


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Released:
    value: float


def outputs_of(run: Callable[[int], Any]) -> list[Any]:
    """Return what a score is passed, of runs that return what a function of their number does."""
    numbers, passed = itertools.count(), list[Any]()

    def score(outputs: Any) -> Any:
        passed.extend(outputs)
        return np.zeros(len(outputs))

    def mechanism(_data: Any, _rng: Any) -> Any:
        return run(next(numbers))

    audit_mechanism(
        mechanism, 0, 1, lb.PureDP(), parameter=9.0, score=score, most_runs=RUNS, seed=0
    )
    return passed


OF_ONE: dict[str, Make] = {
    "scalar": lambda values: values[0],
    "array without dimensions": lambda values: np.array(values[0]),
    "tensor without dimensions": lambda values: torch.tensor(values[0]),
    "scalar of arrow": lambda values: pa.scalar(values[0]),
}
OF_TWO: dict[str, Make] = {
    "array": np.array,
    "column": lambda values: np.array(values)[:, None],
    "read-only view": lambda values: np.broadcast_to(np.array(values), (2, len(values))),
    "array of objects": lambda values: np.array(values, dtype=object),
    "list": list,
    "tuple": tuple,
    "list of lists": lambda values: [list(values), list(values)],
    "list of arrays": lambda values: [np.array(values), np.array(values)],
    "list of arrays without dimensions": lambda values: [np.array(one) for one in values],
    "mask of nothing": lambda values: np.ma.masked_array(values, mask=False),
    "series of pandas": lambda values: pd.Series(values, index=["b", "a"]),
    "frame of pandas": lambda values: pd.DataFrame({"x": values, "y": values}),
    "frame of pandas, beside floats": lambda values: pd.DataFrame({"x": values, "y": [0.5, 0.5]}),
    "series of polars": pl.Series,
    "frame of polars": lambda values: pl.DataFrame({"x": values, "y": values}),
    "array of arrow": pa.array,
    "table of arrow": lambda values: pa.table({"x": values, "y": values}),
    "tensor": torch.tensor,
    "list of tensors": lambda values: [torch.tensor(one) for one in values],
}
CONTAINERS = OF_ONE | OF_TWO
VALUES: dict[str, Callable[[int], list[Any]]] = {
    "float": lambda n: [0.5 + n, -1.5],
    "infinite": lambda n: [float("inf") * (-1) ** n, -float("inf")],
    "float32": lambda n: [np.float32(0.1 + n), np.float32(-1.5)],
    "integer": lambda n: [n, -7],
    "large integer": lambda n: [LARGE + n, -LARGE],
    "unsigned": lambda n: [np.uint64(HUGE + n), np.uint64(HUGE)],
    "huge": lambda n: [HUGE + n, -HUGE],
    "boolean": lambda n: [n % 2 == 0, True],
    "number and boolean": lambda n: [n + 0.5, True],
    "enumeration": lambda n: [Level(1 + n % 2), Level.LOW],
}
PLAIN = {"float", "infinite", "float32", "integer", "large integer", "boolean"}


def told(error: errors.LeakboundError) -> None:
    """Assert that an error says which run it is about, and what to do."""
    assert str(error).startswith("run 0 on d")
    assert "return a number, text" in str(error)


def cells(output: Any) -> set[Any]:
    """Return the numbers of an output, each as exact as it is there."""
    if isinstance(output, list | tuple):
        return set().union(*map(cells, output))
    if hasattr(output, "to_dict") and hasattr(output, "columns"):
        return set().union(*(cells(output[name].to_list()) for name in output.columns))
    if hasattr(output, "to_list"):
        return cells(output.to_list())
    if isinstance(output, dict):
        return set().union(*(cells(value) for value in output.values()))
    return set(np.ravel(output).tolist())


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", VALUES)
def test_numbers_are_audited_as_they_are(container: str, kind: str) -> None:
    def run(number: int) -> Any:
        return CONTAINERS[container](VALUES[kind](number))

    try:
        run(0)
    except Exception:  # the container takes no such values
        assert kind not in PLAIN
        return
    found = outputs_of(run)
    for number, output in enumerate(found):
        expected = set(VALUES[kind](number)[: 1 if container in OF_ONE else 2])
        beside = {0.5} if "beside floats" in container else set()
        assert (
            cells(output)
            == {one.item() if hasattr(one, "item") else one for one in expected} | beside
        )


def ones() -> Iterator[float]:
    yield 1.0


def nested() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


REFUSED: dict[str, Any] = {
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
    "masked alone": np.ma.masked,
    "masked in a list": [1.0, np.ma.masked],
    "masked array in a tuple": ([1.0, 2.0], np.ma.masked_array([1.0, 2.0], mask=[True, True])),
    "generator": ones(),
    "range of a map": map(float, [1, 2]),
    "object": Released(1.0),
    "object in a dictionary": {"released": [Released(1.0)]},
    "function": ones,
    "in itself": nested(),
    "lazy frame": pl.LazyFrame({"x": [1.0]}),
    "record": np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    "sparse tensor": torch.eye(2).to_sparse(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_by_type(name: str) -> None:
    with pytest.raises(errors.InputTypeError) as refused:
        outputs_of(lambda _: REFUSED[name])
    told(refused.value)


TAKEN: dict[str, Any] = {
    "word": "positive",
    "number as a word": "1.5",
    "number beside a word": [1, "2"],
    "lone surrogate": "\ud800",
    "bytes": b"\x01\x02",
    "words of numpy": np.array(["a", "b"]),
    "nothing": None,
    "nothing in a list": [1.0, None],
    "nothing released": [],
    "complex": 1 + 2j,
    "complex array": np.array([1 + 1j]),
    "decimal": Decimal("0.1"),
    "decimal beside a float": [0.5, Decimal("0.1")],
    "fraction": Fraction(1, 3),
    "huge integer": 10**30,
    "large integers and floats": [LARGE, 0.5],
    "huge integers and floats": [10**30, 0.5],
    "date": date(2026, 1, 2),
    "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "time of day": time(3, 4),
    "duration": timedelta(days=-1, microseconds=3),
    "date of numpy": np.datetime64("2026-01-02"),
    "duration of numpy": np.timedelta64(3, "s"),
    "set": {1.0, 2.0},
    "frozen set in a tuple": (frozenset({"a", "b"}), ()),
    "dictionary": {"count": 3, 4: [None, {"x": (True, b"")}]},
    "ragged": [[1.0], [1.0, 2.0]],
    "objects of numpy": np.array([1, "a", None], dtype=object),
}


@pytest.mark.parametrize("name", TAKEN)
def test_other_outputs_are_kept_as_they_are(name: str) -> None:
    value = TAKEN[name]
    for found in (*outputs_of(lambda _: value), unpack(pack(value))):
        kinds = {type(value)}
        if isinstance(value, np.generic):
            kinds.add(np.ndarray)
        assert type(found) in kinds
        np.testing.assert_equal(found, value)
    assert pack(unpack(pack(value))) == pack(value)


FRAMES: dict[str, Any] = {
    "frame of pandas": pd.DataFrame({"x": [LARGE, None], "y": ["a", None]}, index=["b", "a"]),
    "two columns of one name": pd.DataFrame([[1, "a"]], columns=["x", "x"]),
    "no rows": pd.DataFrame({"x": []}),
    "dates": pd.DataFrame({"x": pd.to_datetime(["2026-01-02"])}),
    "words as categories": pd.DataFrame({"x": pd.Categorical(["a", "b"])}),
    "missing of pandas": pd.DataFrame({"x": pd.Series([LARGE, None], dtype="Int64")}),
    "series of pandas": pd.Series(["a", "b"], name="x", index=[3, 1]),
    "frame of polars": pl.DataFrame({"x": ["a", None], "y": [1.5, 2.5]}),
    "series of polars": pl.Series("x", [LARGE, None]),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_keep_names_order_and_cells(name: str) -> None:
    frame = FRAMES[name]
    found = outputs_of(lambda _: frame)[0]
    assert type(found) is type(frame)
    assert pack(found) == pack(frame)
    assert found.shape == frame.shape
    if isinstance(frame, pd.DataFrame):
        assert list(found.columns) == list(frame.columns)
        assert list(found.index) == list(frame.index)
    if name == "missing of pandas":
        assert found["x"].to_list() == [LARGE, None]


def test_missing_cells_of_arrow_are_kept() -> None:
    assert outputs_of(lambda _: pa.array([LARGE, None]))[0] == [LARGE, None]


def always(value: Any) -> Callable[[int], Any]:
    return lambda _: value


def test_missing_times_and_nanoseconds_are_kept() -> None:
    for missing in (pd.NaT, pd.NA):
        assert outputs_of(always(missing)) == [None] * RUNS
    whole = pd.DataFrame({"x": pd.Series([1, None], dtype="boolean")})
    assert outputs_of(lambda _: whole)[0]["x"].to_list() == [True, None]
    for made in (pd.Timestamp, pd.Timedelta):
        found = outputs_of(partial(made, unit="ns"))
        assert len({pack(one) for one in found}) == RUNS


class AwkwardError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_exceptions_without_words_and_odd_decimals_are_outputs() -> None:
    def run(number: int) -> Any:
        if number % 2:
            raise AwkwardError
        return Decimal("sNaN")

    found = outputs_of(run)
    assert found[1].name == "AwkwardError"
    assert len(features_of(found)) > 1


FEATURES = """
from leakbound.mechanisms.outputs import features_of
words = ["a", "b", "an", "ill", "omen"]
outputs = [set(words[:n]) | {frozenset(words[n:])} for n in range(5)] * 2
print([column.tolist() for column in features_of(outputs)])
"""


def test_features_do_not_depend_on_the_order_of_sets() -> None:
    said = printed_by_each(FEATURES)
    assert len(said) == 1


def test_words_that_would_be_too_many_features_are_refused() -> None:
    outputs = [[f"{run} {place}" for place in range(200)] for run in range(600)]
    with pytest.raises(errors.InputError, match="pass score"):
        features_of(outputs)


def packed_header(header: bytes) -> bytes:
    return len(header).to_bytes(8, "big") + header


NO_MESSAGES = {
    "empty": b"",
    "short": b"abc",
    "cut short": pack([1, 2])[:-3],
    "no elements": packed_header(b'["tuple"]'),
    "endless": b"\xff" * 8 + b"[",
    "division by zero": packed_header(b'["fraction", "0x1", "0x0"]'),
    "no decimal": packed_header(b'["decimal", "one"]'),
    "negative shape": packed_header(b'["array", "<f8", [-1]]') + bytes(8),
}


@pytest.mark.parametrize("content", NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_bytes_that_are_no_message_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="packed"):
        unpack(content)


VARYING: dict[str, tuple[Any, Any]] = {
    "length": ([1.0], [1.0, 2.0]),
    "dimensions": (1.0, [1.0]),
    "kind": (0.5, 1),
    "sign": (-1, np.uint64(HUGE)),
    "boolean": (True, 1),
    "nothing": (1.0, None),
}


@pytest.mark.parametrize("name", VARYING)
def test_a_score_gets_a_list_where_shapes_or_kinds_differ(name: str) -> None:
    first, later = VARYING[name]
    found = outputs_of(lambda number: first if number < 3 else later)
    assert [cells(one) for one in found] == [cells(first)] * 3 + [cells(later)] * (RUNS - 3)
    assert found[3] is None or np.asarray(found[3]).dtype == np.asarray(later).dtype


def test_widths_of_numbers_may_vary() -> None:
    widths: list[Any] = [np.float16(0.5), np.float32(0.1), 0.1, np.longdouble("0.1")]
    found = outputs_of(lambda number: widths[number % 4])
    assert [found[number] == widths[number % 4] for number in range(RUNS)] == [True] * RUNS


def test_what_a_mechanism_writes_to_its_output_later_is_not_audited() -> None:
    buffer = np.zeros(1)
    kept = array.array("d", [0.0])

    def run(number: int) -> Any:
        buffer[0] = kept[0] = number
        return [buffer, torch.from_numpy(buffer), kept][number % 2 * 2]

    assert np.ravel(outputs_of(run)).tolist() == list(range(RUNS))


def test_large_integers_are_told_apart_by_what_is_learnt() -> None:
    """The answer is in a last bit that float64 has no room for."""

    def run(data: int, _rng: np.random.Generator) -> int:
        return 2**60 + data

    result = audit_mechanism(run, 0, 1, lb.PureDP(), parameter=1.0, most_runs=200, seed=0)
    assert result.check(parameter=1.0) == "refuted"


# What comes out on d0, and on d1 more often by the factor e^½ that a claim of ε = ½ allows
_RARE: dict[str, Callable[[], Any]] = {
    "raises": lambda: 1 / 0,
    "NaN": lambda: float("nan"),
    "a key": lambda: {"n": 3, "rare": 1},
    "a length": lambda: [1.0, 1.0],
}
_USUAL: dict[str, Callable[[], Any]] = {"a key": lambda: {"n": 3}, "a length": lambda: [1.0]}


def false_claims(kind: str, games: int, level: float) -> int:
    """Count audits that claim more than a mechanism attains."""
    epsilon, false = 0.5, 0
    usual = _USUAL.get(kind, lambda: 1.0)

    def run(data: int, rng: np.random.Generator) -> Any:
        if rng.random() < 0.3 * np.exp(epsilon * data):
            return _RARE[kind]()
        return usual()

    for game in range(games):
        result = audit_mechanism(
            *(run, 0, 1, lb.PureDP()),
            parameter=epsilon,
            confidence=1 - level,
            most_runs=150,
            seed=game,
        )
        false += result.bound > epsilon
    return false


@pytest.mark.validity
@pytest.mark.parametrize("kind", _RARE)
def test_right_mechanisms_are_refuted_as_rarely_as_promised(kind: str) -> None:
    games, level = 1000, 0.1
    most = binom.ppf(0.999, games, level)
    assert binom.cdf(most, games, 2 * level) < 1e-6
    assert false_claims(kind, games, level) <= most
