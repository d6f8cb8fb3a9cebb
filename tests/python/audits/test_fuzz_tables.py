"""Tables of every container and type: the result of the plain form, or a refusal that helps."""

import datetime as dt
import enum
import json
import tempfile
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from scipy.sparse import csr_matrix

import leakbound as lb
from leakbound._base.tables import Writing, read_columns
from leakbound._base.text import settled
from leakbound.attacks.synthetic.encoding import pooled
from leakbound.cli.files import Signs
from leakbound.cli.synthetic_data import read_table
from leakbound.errors import InputError

pytestmark = pytest.mark.usefixtures("few_trees")

N = 48
RNG = np.random.default_rng(12)
X = RNG.integers(0, 9, N)
"""A second column, so that no table is without any."""
BERLIN = ZoneInfo("Europe/Berlin")
START = dt.datetime(2024, 3, 1, 7, 30)
CODES = RNG.integers(0, 40, N).tolist()
GONE = set(RNG.permutation(N)[:9].tolist())


class Content(NamedTuple):
    """Values as people have them, the same in plain types, and the types that hold them."""

    values: list[Any]
    plain: list[Any]
    numpy: str | None = None
    pandas: str | None = None
    polars: Any = None
    arrow: Any = None
    in_text: bool = True
    """Whether csv holds them, too."""


class Colour(enum.Enum):
    """Words that are no text."""

    RED = 1
    BLUE = 2

    def __str__(self) -> str:
        return self.name.lower()


def of_integers() -> Iterator[tuple[str, Content]]:
    for bits in (8, 16, 32, 64):
        for sign in ("int", "uint"):
            name = f"{sign}{bits}"
            values = [code - (20 if sign == "int" else 0) for code in CODES]
            nullable = {"int": "Int", "uint": "UInt"}[sign] + str(bits)
            kinds = getattr(pl, nullable), getattr(pa, name)()
            yield name, Content(values, values, name, nullable, *kinds)
    large = [2**60 + code for code in CODES]
    yield "large", Content(large, large, "int64", "Int64", pl.Int64, pa.int64())
    large = [2**63 + code for code in CODES]
    yield "large and unsigned", Content(large, large, "uint64", "UInt64", pl.UInt64, pa.uint64())
    huge = [2**70 + code for code in CODES]
    yield "huge", Content(huge, huge, None, "object", pl.Int128, pa.decimal128(38))
    both = [2**63 + code if code % 2 else -(2**62) - code for code in CODES]
    yield "of both signs", Content(both, both, None, "object", pl.Int128, pa.decimal128(38))
    yield (
        "small and large",
        Content(
            [c if c % 2 else 2**60 + c for c in CODES],
            [c if c % 2 else 2**60 + c for c in CODES],
            "int64",
            "Int64",
            pl.Int64,
            pa.int64(),
        ),
    )
    yield (
        "large and halves",
        Content(
            [c + 0.5 if c % 2 else 2**60 + c for c in CODES],
            [c + 0.5 if c % 2 else 2**60 + c for c in CODES],
        ),
    )


def of_floats() -> Iterator[tuple[str, Content]]:
    eighths = [code / 8 for code in CODES]
    yield "float16", Content(eighths, eighths, "float16", "float16", pl.Float32, pa.float16())
    yield "float32", Content(eighths, eighths, "float32", "Float32", pl.Float32, pa.float32())
    yield "float64", Content(eighths, eighths, "float64", "Float64", pl.Float64, pa.float64())
    yield "longdouble", Content(eighths, eighths, "longdouble", "longdouble", pl.Float64)
    far = [(-1) ** code * 1.7e308 * ((1 + code) / 50) for code in CODES]
    yield "of all sizes", Content(far, far, "float64", "Float64", pl.Float64, pa.float64())
    yield "fractions", Content([Fraction(code, 8) for code in CODES], eighths, in_text=False)
    yield "NumPy's own", Content([np.float64(one) for one in eighths], eighths)
    cents = [Decimal(code) / 4 for code in CODES]
    yield (
        "decimals",
        Content(
            cents,
            [float(one) for one in cents],
            None,
            "object",
            pl.Decimal(9, 2),
            pa.decimal128(9, 2),
        ),
    )
    whole = [Decimal(10**20 + code) for code in CODES]
    yield (
        "large decimals",
        Content(
            whole, [int(one) for one in whole], None, "object", pl.Decimal(38, 0), pa.decimal128(38)
        ),
    )
    mixed = [Decimal(c) if c % 3 else np.int8(c) if c % 2 else float(c) for c in CODES]
    yield "numbers of all types", Content(mixed, [float(code) for code in CODES])


def of_moments() -> Iterator[tuple[str, Content]]:
    days = [dt.date(2024, 1, 1) + dt.timedelta(code) for code in CODES]
    plain = [np.datetime64(day, "us") for day in days]
    yield "days", Content(days, plain, "datetime64[D]", "object", pl.Date, pa.date32())
    moments = [START + dt.timedelta(hours=code) for code in CODES]
    plain = [np.datetime64(one, "us") for one in moments]
    for unit in ("s", "ms", "us", "ns"):
        name = f"datetime64[{unit}]"
        kind: Any = pl.Datetime if unit == "s" else pl.Datetime(cast("Any", unit))
        yield name, Content(moments, plain, name, name, kind, pa.timestamp(unit))
    yield "moments as text", Content([str(one) for one in moments], plain, "U", "str")
    yield "moments of ISO 8601", Content([one.isoformat() for one in moments], plain, "U", "str")
    zoned = [one.replace(tzinfo=BERLIN) for one in moments]
    utc = [np.datetime64(one.astimezone(dt.UTC).replace(tzinfo=None), "us") for one in zoned]
    yield (
        "with a zone",
        Content(
            zoned,
            utc,
            None,
            "datetime64[us, Europe/Berlin]",
            pl.Datetime("us", "Europe/Berlin"),
            pa.timestamp("us", "Europe/Berlin"),
        ),
    )
    yield "with zones as text", Content([one.isoformat() for one in zoned], utc, "U", "str")
    spans = [dt.timedelta(minutes=code) for code in CODES]
    seconds = [one.total_seconds() for one in spans]
    for unit in ("s", "ms", "us", "ns"):
        name = f"timedelta64[{unit}]"
        kind = pl.Duration if unit == "s" else pl.Duration(cast("Any", unit))
        yield name, Content(spans, seconds, name, name, kind, pa.duration(unit), in_text=False)


def of_words() -> Iterator[tuple[str, Content]]:
    names = [f"name {code}" for code in CODES]
    yield "words", Content(names, names, "U", "str", pl.String, pa.string())
    yield "large words", Content(names, names, "U", "object", pl.String, pa.large_string())
    yield (
        "categories",
        Content(
            names, names, None, "category", pl.Categorical, pa.dictionary(pa.int8(), pa.string())
        ),
    )
    few = [f"name {code % 5}" for code in CODES]
    levels = pl.Enum([f"name {i}" for i in range(5)])
    yield (
        "levels",
        Content(few, few, "U", "category", levels, pa.dictionary(pa.int8(), pa.string())),
    )
    yield (
        "numbers that are categories",
        Content(CODES, CODES, None, "category", pl.Int8, pa.dictionary(pa.int8(), pa.int64())),
    )
    blanks = [f"  {name} " for name in names]
    yield "words and blanks", Content(blanks, names, "U", "str", pl.String, pa.string())
    raw = [name.encode() for name in names]
    yield "bytes", Content(raw, names, "S", "object", pl.Binary, pa.binary(), in_text=False)
    yield (
        "odd bytes",
        Content(
            [b"\xff" + one for one in raw],
            ["\udcff" + one for one in names],
            "S",
            "object",
            pl.Binary,
            pa.binary(),
            in_text=False,
        ),
    )
    codes = [f"{code:03}" for code in CODES]
    yield "codes", Content(codes, codes, "U", "str", pl.String, pa.string())
    numbers = [str(code) for code in CODES]
    yield "numbers as text", Content(numbers, CODES, "U", "str", pl.String, pa.string())
    yield (
        "large numbers as text",
        Content(
            [str(2**70 + code) for code in CODES],
            [2**70 + code for code in CODES],
            "U",
            "str",
            pl.String,
            pa.string(),
        ),
    )
    odd: list[Any] = [f"name {code}" if code % 2 else code for code in CODES]
    yield "words and numbers", Content(odd, [str(one) for one in odd])
    flags = [code % 2 == 0 for code in CODES]
    yield "booleans", Content(flags, flags, "bool", "boolean", pl.Boolean, pa.bool_())
    yield "booleans as text", Content([str(x).lower() for x in flags], flags, "U", "str", pl.String)
    ids = [uuid.UUID(int=code) for code in CODES]
    yield "ids", Content(ids, [str(one) for one in ids])
    colours = [Colour.RED if flag else Colour.BLUE for flag in flags]
    yield "of an enumeration", Content(colours, [str(one) for one in colours])
    times = [dt.time(code % 24, 30) for code in CODES]
    yield (
        "times of day",
        Content(times, [str(one) for one in times], None, "object", pl.Time, pa.time64("us")),
    )
    periods = [*pd.period_range("2024-01", periods=N, freq="M")]
    yield "periods", Content(periods, [str(one) for one in periods], None, "period[M]")


CONTENTS = dict(chain(of_integers(), of_floats(), of_moments(), of_words()))


class NoSuchError(Exception):
    """A container that has no column of a type."""


def array(content: Content, *, dtype: str | None = "own") -> Any:
    kind = content.numpy if dtype == "own" else dtype
    if kind is None:
        raise NoSuchError
    gaps = None in content.values
    if gaps and np.dtype(kind).kind not in "fMm":
        raise NoSuchError
    return np.array(content.values, dtype=kind)


def objects(values: list[Any]) -> Any:
    return np.fromiter(values, dtype=object, count=len(values))


def series(content: Content, kind: Any = "own") -> Any:
    kind = content.pandas if kind == "own" else kind
    if kind is None:
        raise NoSuchError
    if kind in {"float16", "longdouble"}:
        return pd.Series(content.values, dtype="float64").astype(kind)
    return pd.Series(content.values, dtype=kind)


def polars(content: Content) -> Any:
    if content.polars is None:
        raise NoSuchError
    return pl.Series("c", content.values, dtype=content.polars, strict=False)


def arrow(content: Content) -> Any:
    if content.arrow is None:
        raise NoSuchError
    plain = content.arrow if not pa.types.is_dictionary(content.arrow) else content.arrow.value_type
    made = pa.array(content.values, plain)
    return made if plain is content.arrow else made.dictionary_encode()


def arrow_of_pandas(content: Content) -> Any:
    if content.arrow is None or content.arrow == pa.float16():
        raise NoSuchError
    return pd.Series(arrow(content).to_pandas(types_mapper=pd.ArrowDtype))


Build: TypeAlias = Callable[[Content, Any], Any]
"""What makes a table of a column and another one, of whole numbers."""


def masked(content: Content) -> Any:
    gone = [value is None for value in content.values]
    filled = [content.values[0] if value is None else value for value in content.values]
    return np.ma.array(array(content._replace(values=filled)), mask=gone)


def records(column: Any, x: Any) -> Any:
    table = np.empty(x.size, dtype=[("c", column.dtype), ("x", x.dtype)])
    table["c"], table["x"] = column, x
    return table


def file(suffix: str) -> Path:
    return Path(tempfile.mkdtemp(dir=FOLDER[0])) / f"table{suffix}"


FOLDER: list[str] = [tempfile.gettempdir()]


def in_csv(content: Content, x: Any) -> Any:
    if not content.in_text:
        raise NoSuchError
    path = file(".csv")
    pd.DataFrame({"c": objects(content.values), "x": x}).to_csv(path, index=False)
    return read_table(path, Signs(), Writing())


def in_json(content: Content, x: Any) -> Any:
    if not content.in_text:
        raise NoSuchError
    records = [
        {"c": value, "x": other} for value, other in zip(content.values, x.tolist(), strict=True)
    ]
    path = file(".jsonl")
    path.write_text("".join(json.dumps(one, default=str) + "\n" for one in records))
    return read_table(path, Signs(), Writing())


def in_parquet(content: Content, x: Any) -> Any:
    path = file(".parquet")
    parquet.write_table(pa.table({"c": arrow(content), "x": x}), path)
    return read_table(path, Signs(), Writing())


CONTAINERS: dict[str, Build] = {
    "objects": lambda c, x: {"c": objects(c.values), "x": x},
    "lists": lambda c, x: {"c": c.values, "x": x.tolist()},
    "tuples": lambda c, x: {"c": (*c.values,), "x": (*x.tolist(),)},
    "arrays": lambda c, x: {"c": array(c), "x": x},
    "strides": lambda c, x: {"c": np.repeat(array(c), 2)[::2], "x": x},
    "2-d objects": lambda c, x: np.column_stack([objects(c.values), x.astype(object)]),
    "records": lambda c, x: records(array(c), x),
    "mappings": lambda c, x: [{"c": a, "x": b} for a, b in zip(c.values, x.tolist(), strict=True)],
    "masked": lambda c, x: {"c": masked(c), "x": x},
    "pandas": lambda c, x: pd.DataFrame({"c": series(c), "x": x}),
    "pandas objects": lambda c, x: pd.DataFrame({"c": objects(c.values), "x": x}),
    "pandas of Arrow": lambda c, x: pd.DataFrame({"c": arrow_of_pandas(c), "x": x}),
    "series": lambda c, x: {"c": series(c), "x": pd.Series(x)},
    "polars": lambda c, x: pl.DataFrame({"c": polars(c), "x": x}),
    "polars, lazy": lambda c, x: pl.DataFrame({"c": polars(c), "x": x}).lazy(),
    "polars series": lambda c, x: {"c": polars(c), "x": pl.Series(x)},
    "Arrow": lambda c, x: pa.table({"c": arrow(c), "x": x}),
    "Arrow in pieces": lambda c, x: pa.concat_tables(
        [pa.table({"c": arrow(c)[rows], "x": x[rows]}) for rows in (slice(9), slice(9, None))]
    ),
    "a batch of Arrow": lambda c, x: pa.record_batch({"c": arrow(c), "x": pa.array(x)}),
    "a reader of Arrow": lambda c, x: pa.table({"c": arrow(c), "x": x}).to_reader(),
    "Arrow arrays": lambda c, x: {"c": arrow(c), "x": pa.array(x)},
    "csv": in_csv,
    "JSON lines": in_json,
    "parquet": in_parquet,
}
UNABLE = (
    NoSuchError,
    TypeError,
    ValueError,
    NotImplementedError,
    OverflowError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
)
"""What libraries raise that hold no such column."""


def parts(content: Content, build: Build) -> list[Any]:
    """Return members, non-members and a synthetic table, each made by itself."""
    cut = (slice(start, None, 3) for start in range(3))
    return [build(content._replace(values=content.values[rows]), X[rows]) for rows in cut]


def audited(tables: list[Any]) -> tuple[Any, ...]:
    """Return the numbers and warnings of an audit of tables."""
    how: dict[str, Any] = {"attacks": "attribution", "challenge": False, "seed": 1}
    result = lb.audit_synthetic(*tables, **how)
    notes = [one.replace("'c'", "'0'") for one in result.warnings]
    return (*result.provenance.sha256.values(), result.bound, result.correct, result.m, notes)


def columns(tables: list[Any]) -> tuple[Any, ...]:
    """Return the first column as an audit reads it: its kind, and bytes that equal values share."""
    members, others, made = (next(iter(read_columns(one, "it").values())) for one in tables)
    together = pooled(members, others, "c")
    (third,) = settled([made], "c", kind=together.kind)
    kinds = [column.kind.replace("zoned", "date") for column in (together, third)]
    return (*kinds, together.content.tobytes(), third.content.tobytes())


def with_gaps(content: Content) -> Content:
    """Return the same with missing values."""

    def holed(values: list[Any]) -> list[Any]:
        return [None if row in GONE else value for row, value in enumerate(values)]

    return content._replace(values=holed(content.values), plain=holed(content.plain))


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "with gaps"])
@pytest.mark.parametrize("name", CONTENTS)
def test_every_container_gives_the_result_of_the_plain_form(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, gaps: bool
) -> None:
    monkeypatch.setitem(globals(), "FOLDER", [str(tmp_path)])
    content = with_gaps(CONTENTS[name]) if gaps else CONTENTS[name]
    plain = parts(content._replace(values=content.plain), CONTAINERS["objects"])
    expected = {look: look(plain) for look in (audited, columns)}
    turn = [*CONTENTS].index(name) + gaps
    tried = 0
    for place, (container, build) in enumerate(CONTAINERS.items()):
        try:
            tables = parts(content, build)
        except UNABLE:
            continue
        tried += 1
        # Whole audits take their time: of a sixteenth of all containers, others in turn.
        look = audited if (place + turn) % 16 == 0 else columns
        assert look(tables) == expected[look], container
    assert tried >= 4


REFUSED: dict[str, tuple[Any, str]] = {
    "complex numbers": ([1j, 2.0], "neither numbers"),
    "complex array": (np.array([1j, 2]), "complex128, which is neither"),
    "lists": ([[1, 2], [3]], "holds list values such as"),
    "arrays": ([np.ones(2), np.ones(2)], "holds ndarray values"),
    "objects": ([object(), object()], "holds object values"),
    "mappings": ([{"a": 1}, {"a": 2}], "holds dict values"),
    "sets": ([{1}, {2}], "holds set values"),
    "polars lists": (pl.Series([[1], [2]]), "holds List"),
    "polars structs": (pl.Series([{"a": 1}, {"a": 2}]), "holds Struct"),
    "Arrow lists": (pa.array([[1], [2]]), "holds List"),
    "pandas lists": (pd.Series([[1], [2]]), "holds list values"),
    "raw memory": (np.zeros(2, "V3"), "neither numbers"),
    "infinity": ([1.0, np.inf], "is infinite in 1 rows, the first being row 1"),
    "infinite decimals": ([Decimal("Infinity"), Decimal(1)], "is infinite"),
    "huge numbers": ([10**400, 1], "is infinite"),
    "zones": ([START, START.replace(tzinfo=dt.UTC)], "dates with a time zone and dates without"),
    "two axes": (np.ones((2, 2)), "must be one-dimensional"),
    "no axis": (np.float64(1), "must be a list or an array"),
    "a word": ("ab", "must be a list or an array"),
    "nothing": (None, "must be a list or an array"),
    "no values": ([], "at least one row"),
    "too many values": ([1, 2, 3], "differ in length"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_column_is_refused_by_its_name(case: str) -> None:
    column, words = REFUSED[case]
    good = {"c": [1, 2], "x": [3, 4]}
    for place in range(3):
        tables: list[dict[str, Any]] = [good, good, good]
        tables[place] = {"c": column, "x": [3, 4]}
        with pytest.raises(InputError, match=words):
            audited(tables)


NO_TABLES: dict[str, tuple[Any, str]] = {
    "a path": (Path("a.csv"), "got a path: read the file first"),
    "a word": ("a.csv", "got a path: read the file first"),
    "nothing": (None, "must be a data frame"),
    "a number": (3, "must be a data frame"),
    "a list": ([1, 2], "must be a data frame"),
    "ragged lists": ([[1, 2], [3]], "cannot be read as a table"),
    "an empty mapping": ({}, "at least one row and one column"),
    "an empty frame": (pd.DataFrame({"c": [], "x": []}), "at least one row"),
    "no columns": (pl.DataFrame(), "at least one row"),
    "an empty Arrow table": (
        pa.table({"c": pa.array([], pa.int64()), "x": []}),
        "at least one row",
    ),
    "one name twice": (pd.DataFrame([[1, 2]], columns=["c", "c"]), "several columns named 'c'"),
    "one name in two types": (pd.DataFrame([[1, 2]], columns=[1, "1"]), "several columns named"),
    "keys of two types": ({1: [1], "1": [2]}, "several columns named '1'"),
    "an Arrow name twice": (pa.Table.from_arrays([pa.array([1])] * 2, ["c", "c"]), "'c'"),
    "a query that fails": (pl.LazyFrame({"c": [1]}).select("d"), "cannot be read as a table"),
}


@pytest.mark.parametrize("case", NO_TABLES)
def test_what_is_no_table_is_refused(case: str) -> None:
    table, words = NO_TABLES[case]
    good = {"c": [1, 2], "x": [3, 4]}
    for tables in ([table, good, good], [good, table, good], [good, good, table]):
        with pytest.raises(InputError, match=words):
            audited(tables)


def test_what_libraries_round_is_as_they_round_it() -> None:
    """pandas makes doubles of integers with gaps: no digits are made up on one side only."""
    content = with_gaps(CONTENTS["large"])
    inside, outside, made = parts(content, lambda c, x: pd.DataFrame({"c": c.values, "x": x}))
    exact = parts(content, CONTAINERS["polars"])
    assert inside["c"].dtype == np.float64
    assert columns([inside, outside, made]) == columns([inside, exact[1], made])


def test_missing_marks_of_all_libraries() -> None:
    marks = [None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT"), np.float32("nan")]
    for value in (1.5, 2**60 + 1, "word", START, True, Decimal(3), dt.timedelta(1)):
        column = read_columns({"c": [*marks, value]}, "it")["c"]
        assert column.missing.tolist() == [True] * len(marks) + [False]
    assert read_columns({"c": marks}, "it")["c"].kind == "empty"


def contents(table: Any) -> list[bytes]:
    """Return the columns of a table as bytes that equal values share."""
    read = read_columns(table, "it").values()
    return [one.content.tobytes() for column in read for one in settled([column], "c")]


def test_other_objects_that_hold_tables() -> None:
    numbers = np.column_stack([X, X[::-1] / 8])
    expected = contents(numbers)
    levels = pd.DataFrame(numbers, columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    words = np.array([str(one) for one in X], dtype=np.dtypes.StringDType())
    forms: list[Any] = [
        csr_matrix(numbers),
        torch.tensor(numbers),
        {"a": torch.tensor(X), "b": numbers[:, 1]},
        levels,
        levels.astype(pd.SparseDtype("float64", 0.0)),
        {"a": words, "b": iter(numbers[:, 1])},
        numbers.tolist(),
    ]
    for form in forms:
        assert contents(form) == expected


@pytest.mark.parametrize("engine", ["datasets", "duckdb", "dask.dataframe"])
def test_tables_of_engines(engine: str) -> None:
    module = pytest.importorskip(engine)
    plain = pd.DataFrame({"a": X, "b": X[::-1] / 8})
    made: dict[str, Callable[[], Any]] = {
        "datasets": lambda: module.Dataset.from_pandas(plain),
        "duckdb": lambda: module.from_df(plain),
        "dask.dataframe": lambda: module.from_pandas(plain, npartitions=2),
    }
    assert contents(made[engine]()) == contents(plain)


def test_one_column_is_a_table() -> None:
    for table in (pd.Series(X, name="c"), pl.Series("c", X), pd.Series(X)):
        (column,) = read_columns(table, "it").values()
        assert column.values.tolist() == X.tolist()
