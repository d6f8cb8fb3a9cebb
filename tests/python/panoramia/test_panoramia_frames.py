"""Members in frames: words, dates, gaps and labels of words, as models were fitted to them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import leakbound as lb
from leakbound.errors import InputError, InputTypeError
from leakbound.generators import ChowLiuTree, SequentialCART
from leakbound.panoramia import Options
from leakbound.panoramia.frames import Frames, classes_of


def people(m: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    gaps = np.arange(m) % 9 == 0
    zoned = pd.Timestamp("2020-01-01", tz="Europe/Rome")
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, m),
            "city": rng.choice(["Rome", "Oslo", "Bern"], m),
            "ward": pd.Series(rng.choice(["a", "b"], m)).mask(gaps),
            "income": np.where(gaps, np.nan, rng.normal(size=m)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, m), "D"),
            "seen": zoned + pd.to_timedelta(rng.integers(0, 90_000, m), "s"),
            "smokes": rng.random(m) < 0.5,
            "visits": pd.Series(rng.integers(0, 5, m), dtype="Int64").mask(gaps),
            "class": pd.Categorical(rng.choice(["u", "v"], m)),
            "note": pd.Series(rng.choice(["x", "y"], m), dtype=object).mask(gaps, None),
            "weight": rng.normal(size=m).astype(np.float32),
        }
    )


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("library", FORMS)
def test_frames_come_back_as_they_were(library: str) -> None:
    table = FORMS[library](people(200))
    frames = Frames.of([table], None)
    assert frames is not None
    rows = frames.encoded(table)
    assert rows.dtype == np.float64
    assert np.isfinite(rows).all()
    assert rows.shape == (200, 13)
    assert frames.categorical == (1, 2, 4, 7, 9, 10, 11)
    back = frames.decoded(rows)
    assert type(back) is type(table)
    if library == "pandas":
        pd.testing.assert_frame_equal(back, table)
    elif library == "polars":
        assert back.equals(table)
    else:
        assert back.schema.equals(table.schema)
    np.testing.assert_array_equal(frames.encoded(back), rows)
    other = Frames.of([FORMS[library](people(200).iloc[::-1].reset_index(drop=True))], None)
    assert repr(other) == repr(frames)


def test_what_a_generator_makes_of_missing_values_is_no_trace() -> None:
    table = people(60)[["age", "income"]]
    frames = Frames.of([table], None)
    assert frames is not None
    made = np.array([[30.0, 1.5, 1.0], [30.6, 0.25, 0.0]])
    written = frames.written(made)
    assert written[0, 1] == frames.columns[1].median
    assert written[1].tolist() == [31.0, 0.25, 0.0]


def test_words_that_no_member_has_are_refused() -> None:
    table = people(60)[["city"]]
    frames = Frames.of([table], None)
    assert frames is not None
    for code in (0.5, -1.0, 3.0):
        with pytest.raises(InputError, match=r"the generator made .* codes of words are 0 to 2"):
            frames.decoded(np.array([[code]]))
    with pytest.raises(InputError, match="a frame with the columns of members: 'city'"):
        Frames.of([table, people(60)[["age"]]], None)
    with pytest.raises(InputTypeError, match="leave categorical out"):
        frames.with_categorical_columns(SequentialCART(categorical=(0,)))
    with pytest.raises(InputTypeError, match="whole numbers or words"):
        classes_of([["a", 1]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_with_words_is_audited(library: str) -> None:
    table = people(260)[["age", "city", "ward", "weight"]]
    y = np.where(table["age"] + 20 * table["weight"] > 45, "yes", "no")
    members = FORMS[library](table)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "ward"]),
        ("passthrough", ["age", "weight"]),
    )
    model = make_pipeline(columns, RandomForestClassifier(5, random_state=0)).fit(members, y)
    options = Options(seeds=(0,), saturation=(0.5,))
    generator = ChowLiuTree()
    report = lb.panoramia.run(model, (members, y), generator, options=options)
    (result,) = report.row("target").results
    assert isinstance(result, lb.PanoramiaResult)
    assert result.kind == "estimate"
    assert result.blind_baseline.guesses == result.baseline.guesses
