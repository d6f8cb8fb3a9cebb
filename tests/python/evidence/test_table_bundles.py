"""Bundles of audits whose features are a table of words, dates, categories and gaps."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import leakbound as lb
from bundles import change, change_array, resealed, tampered, why
from leakbound.errors import FormatError
from leakbound.evidence import verify_bundle

pytestmark = pytest.mark.usefixtures("few_trees")

SIZE = 240
RNG = np.random.default_rng(0)
MEMBER = RNG.permutation(np.arange(SIZE) < SIZE // 2)
SCORES = RNG.normal(size=SIZE) + 2.0 * MEMBER


def people() -> pd.DataFrame:
    """Return columns of every kind: a gap in many rows of one, and in few of others."""
    days = pd.to_timedelta(RNG.integers(0, 500, SIZE), "D")
    frame = pd.DataFrame(
        {
            "age": RNG.normal(40, 10, SIZE).round(1),
            "income": np.where(np.arange(SIZE) % 5 == 0, np.nan, RNG.normal(size=SIZE)),
            "city": RNG.choice(["Bern", "Oslo", "Rome"], SIZE),
            "site": pd.Categorical(RNG.integers(1, 4, SIZE)),
            "since": pd.Timestamp("2020-01-01") + days,
            "written": (pd.Timestamp("2020-01-01") + days).astype(str),
            "zoned": pd.Timestamp("2020-01-01", tz="UTC") + days,
            "smokes": RNG.random(SIZE) < 0.5,
            "exact": [2**60 + int(one) for one in RNG.integers(0, 100, SIZE)],
            "coarse": RNG.normal(size=SIZE).astype(np.float32),
            "empty": [None] * SIZE,
        }
    )
    frame.loc[3, "age"] = np.nan
    return frame


TABLE = people()
FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "mapping": lambda table: {name: table[name].tolist() for name in table},
}


def audited(features: Any, **options: Any) -> Any:
    return lb.audit(SCORES, lb.RandomSplit(MEMBER, features=features), seed=0, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table") / "bundle"
    audited(TABLE).bundle(folder, scores=SCORES, plan=MEMBER, features=TABLE)
    return folder


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def designs() -> dict[str, tuple[Any, dict[str, Any]]]:
    baseline = np.arange(SIZE) % 11
    return {
        "random split": (lb.RandomSplit(MEMBER, features=TABLE), {}),
        "zero-run": (lb.ZeroRun(MEMBER, features=TABLE), {}),
        "panoramia": (
            lb.Panoramia(MEMBER, baseline=baseline, features=TABLE),
            {"baseline": baseline},
        ),
    }


@pytest.mark.parametrize("name", designs())
def test_tables_of_features_verify(name: str, tmp_path: Path) -> None:
    design, inputs = designs()[name]
    result = lb.audit(SCORES, design, seed=0)
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=MEMBER, features=TABLE, **inputs)
    found = verify_bundle(tmp_path / "bundle")
    assert found.valid, found.why


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_the_table_will_do(form: str, tmp_path: Path) -> None:
    table = FORMS[form](TABLE.drop(columns="site"))
    audited(table).bundle(tmp_path / "bundle", scores=SCORES, plan=MEMBER, features=table)
    assert why(tmp_path / "bundle") == ""


def test_kinds_and_categories_are_stored(whole: Path) -> None:
    stored = json.loads((whole / "audit.json").read_bytes())["data"]["features"]
    kinds = {one["name"]: one["kind"] for one in stored["columns"]}
    assert kinds == {
        "age": "number",
        "income": "number",
        "city": "text",
        "site": "number",
        "since": "date",
        "written": "text",
        "zoned": "zoned",
        "smokes": "flag",
        "exact": "exact",
        "coarse": "number",
        "empty": "empty",
    }
    categorical = [one["name"] for one in stored["columns"] if one.get("categorical")]
    assert categorical == ["site"]


def test_rows_follow_their_index(tmp_path: Path) -> None:
    names = pd.Index([f"p{row}" for row in range(SIZE)])
    shuffled = TABLE.set_index(names).sample(frac=1, random_state=0)
    scores = pd.Series(SCORES, names)
    result = lb.audit(scores, lb.RandomSplit(MEMBER, features=shuffled), seed=0)
    result.bundle(tmp_path / "bundle", scores=scores, plan=MEMBER, features=shuffled)
    assert why(tmp_path / "bundle") == ""


def test_other_tables_have_no_bundle(tmp_path: Path) -> None:
    result = audited(TABLE)
    for other in (TABLE.assign(city="Bern"), TABLE.iloc[::-1].reset_index(drop=True)):
        with pytest.raises(FormatError, match="gives another result"):
            result.bundle(tmp_path / "bundle", scores=SCORES, plan=MEMBER, features=other)
    assert not (tmp_path / "bundle").exists()


def test_one_changed_cell_is_found(bundle: Path) -> None:
    cities = np.load(bundle / "inputs.npz")["features.2"]
    change_array(bundle, "features.2", np.where(MEMBER, "Rome", cities))
    assert why(bundle).startswith("files: ")
    resealed(bundle)
    assert why(bundle).startswith("audit: AuditResult.")


@pytest.mark.parametrize(
    ("place", "value", "found"),
    [
        ("columns/0/kind", "flag", r"features\.0 \(flag\) holds float64"),
        ("columns/0/kind", "word", "no name and kind of one"),
        ("columns/0/kind", ["text"], "no name and kind of one"),
        ("columns/0/name", 3, "no name and kind of one"),
        ("columns/0/categorical", False, "no name and kind of one"),
        ("columns/0/more", 1, "no name and kind of one"),
        ("columns/3/categorical", None, "no name and kind of one"),
        ("columns", {}, "a list of columns"),
        ("columns", [], "are no argument"),
        ("writing", [], "not a table of columns and their writing"),
        ("writing/missing", 5, "not a decimal"),
        ("columns/10/name", "another", "is .* but recomputed"),
        ("more", 1, "not a table of columns and their writing"),
    ],
)
def test_a_hostile_table_is_invalid(bundle: Path, place: str, value: Any, found: str) -> None:
    tampered(bundle, "audit.json", change(f"data/features/{place}", value))
    verdict = verify_bundle(bundle)
    assert not verdict.valid
    assert verdict.why.startswith(("inputs: ", "audit: "))
    assert re.search(found, verdict.why), verdict.why


def test_no_other_data_is_a_table(bundle: Path) -> None:
    def changed(content: Any) -> None:
        content["data"]["strata"] = content["data"].pop("features")

    tampered(bundle, "audit.json", changed)
    assert why(bundle).startswith("inputs: strata is ")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("features.0", np.full(SIZE, np.inf)),
        ("features.0", np.zeros((SIZE, 2))),
        ("features.0", np.array(["1"] * SIZE)),
        ("features.4", np.full(SIZE, np.datetime64("NaT", "us"))),
        ("features.8", np.array(["1e5x"] * SIZE)),
        ("features.0.missing", np.zeros(SIZE)),
        ("features.0.missing", np.zeros(SIZE - 1, dtype=np.bool_)),
        ("features.11", np.zeros(SIZE)),
    ],
)
def test_hostile_arrays_are_invalid(bundle: Path, name: str, array: Any) -> None:
    change_array(bundle, name, array)
    resealed(bundle)
    assert why(bundle).startswith("inputs: ")
