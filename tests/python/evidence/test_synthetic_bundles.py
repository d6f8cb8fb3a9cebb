"""Bundles of audits of synthetic tables, whatever their columns hold."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as lb
from bundles import MODEL, change, change_array, resealed, tampered, why
from command_line import leakbound
from leakbound.errors import FormatError, OptionError
from leakbound.evidence import verify_bundle

pytestmark = pytest.mark.usefixtures("few_trees")

PEOPLE = 60
ROLES: dict[str, Any] = {"person": "group", "word": "secret"}


def table() -> pd.DataFrame:
    """Return records with a column of every kind, two for each person."""
    rng = np.random.default_rng(0)
    size = 2 * PEOPLE
    days = pd.to_timedelta(rng.integers(0, 500, size), "D")
    frame = pd.DataFrame(
        {
            "number": rng.normal(40, 10, size).round(1),
            "word": rng.choice(["a", "b", "-", "NA"], size),
            "date": pd.Timestamp("2020-01-01") + days,
            "zoned": pd.Timestamp("2020-01-01", tz="UTC") + days,
            "flag": rng.random(size) < 0.5,
            "exact": [2**60 + int(one) for one in rng.integers(0, 100, size)],
            "coarse": rng.normal(size=size).astype(np.float32),
            "empty": [None] * size,
            "person": np.arange(size) // 2,
        }
    )
    frame.loc[3, "number"] = np.nan
    return frame


def tables() -> dict[str, pd.DataFrame]:
    """Return the tables of an audit of a generator that copies members, nearly as they are."""
    records = table()
    drawn = np.random.default_rng(1).permutation(PEOPLE)[: PEOPLE // 2]
    inside = records["person"].isin(drawn)
    members = records[inside]
    copies = members.assign(number=members["number"] + 0.01)
    return {"members": members, "nonmembers": records[~inside], "synthetic": copies}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("synthetic") / "bundle"
    result = lb.audit_synthetic(**tables(), columns=ROLES, missing=["-"], seed=1)
    assert result.bound > 0
    result.bundle(folder, **tables(), columns=ROLES, missing=["-"], model=MODEL)
    return folder


@pytest.fixture
def bundle(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "bundle"))


def test_a_bundle_of_every_kind_of_column_verifies(whole: Path) -> None:
    found = verify_bundle(whole)
    assert found.valid, found.why
    passed = {one.name: one.passed for one in found.checks}
    assert passed["audit"]
    assert passed["plan"] is None


def test_kinds_of_columns_come_back(whole: Path) -> None:
    stored = json.loads((whole / "audit.json").read_bytes())["tables"]["members"]
    kinds = {one["name"]: one["kind"] for one in stored}
    assert kinds == {
        "number": "number",
        "word": "text",
        "date": "date",
        "zoned": "zoned",
        "flag": "flag",
        "exact": "exact",
        "coarse": "number",
        "empty": "empty",
        "person": "number",
    }


def test_scores_of_ones_own_a_reference_and_a_policy(tmp_path: Path) -> None:
    given: dict[str, Any] = tables()
    given["reference"] = table().assign(number=1.5, exact=5)[:20]
    records = pd.concat([given["members"], given["nonmembers"]])
    own = {"length": pd.Series(records["number"].fillna(0).to_numpy(), index=records.index)}
    shuffled = {"length": own["length"].sample(frac=1, random_state=0)}
    result = lb.audit_synthetic(
        **given, attacks=shuffled, columns={"person": "group"}, cuts=lb.OutsideIn(), seed=2
    )
    result.bundle(tmp_path / "bundle", **given, attacks=own, columns={"person": "group"})
    assert why(tmp_path / "bundle") == ""


def test_other_tables_have_no_bundle(tmp_path: Path) -> None:
    result = lb.audit_synthetic(**tables(), columns=ROLES, missing=["-"], seed=1)
    others = tables() | {"synthetic": tables()["nonmembers"]}
    with pytest.raises(FormatError, match=r"gives another result.*pass the tables that were"):
        result.bundle(tmp_path / "bundle", **others, columns=ROLES, missing=["-"])
    with pytest.raises(FormatError, match="gives another result"):
        result.bundle(tmp_path / "bundle", **tables(), columns={"person": "group"})
    with pytest.raises(OptionError, match="SHA-256 of the model"):
        result.bundle(tmp_path / "bundle", **tables(), columns=ROLES, model="short")
    assert not (tmp_path / "bundle").exists()


def test_one_changed_cell_is_found(bundle: Path) -> None:
    numbers = np.load(bundle / "inputs.npz")["synthetic.0"]
    change_array(bundle, "synthetic.0", numbers + 20)
    assert why(bundle).startswith("files: ")
    resealed(bundle)
    assert why(bundle).startswith("audit: SyntheticResult.")


@pytest.mark.parametrize(
    ("place", "value", "found"),
    [
        ("tables/members/0/kind", "flag", r"members\.0 \(flag\) holds float64"),
        ("tables/members/0/kind", "other", "no name and kind of one"),
        ("tables/members/0/name", 3, "no name and kind of one"),
        ("tables/members/0", "number", "no name and kind of one"),
        ("tables/members", {}, "a list of columns"),
        ("tables/others", [], "tables members, nonmembers"),
        ("options/path", "x", "options are claim"),
        ("columns", [], "not a table of names"),
        ("attacks/names", "default", "not names"),
        ("attacks/own", True, "an array for each"),
        ("writing/decimal", 5, "not a decimal"),
        ("writing", None, "not a table of names"),
        ("attacks/names", ["inference"], "only one of the two has|is .* but recomputed"),
    ],
)
def test_a_hostile_bundle_is_invalid(bundle: Path, place: str, value: Any, found: str) -> None:
    tampered(bundle, "audit.json", change(place, value))
    verdict = verify_bundle(bundle)
    assert not verdict.valid
    assert verdict.why.startswith(("inputs: ", "audit: "))
    assert re.search(found, verdict.why), verdict.why


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("members.0", np.full(60, np.inf)),
        ("members.0", np.zeros((60, 2))),
        ("members.5", np.array(["1e5x"] * 60)),
        ("members.0.missing", np.zeros(60)),
        ("members.9", np.zeros(60)),
    ],
)
def test_hostile_arrays_are_invalid(bundle: Path, name: str, array: Any) -> None:
    change_array(bundle, name, array)
    resealed(bundle)
    assert why(bundle).startswith("inputs: ")


def test_the_command_writes_one(tmp_path: Path) -> None:
    for name, frame in tables().items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    arguments = [f"--{name}={tmp_path / name}.csv" for name in tables()]
    done = leakbound(
        "synthetic", *arguments, "--groups=person", "--secret=word", "--seed=1",
        f"--bundle={tmp_path / 'bundle'}",
    )  # fmt: skip
    assert "Bundle: " in done.err
    assert why(tmp_path / "bundle") == ""
