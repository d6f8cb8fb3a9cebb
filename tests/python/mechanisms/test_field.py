"""The page on released libraries shows what was measured, and every row can be played."""

import importlib.util
import json
import pickle
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mst_aim

FIELD = Path(__file__).parents[3] / "benches" / "field"
CONTENT = tomllib.loads((FIELD / "field.toml").read_text(encoding="utf-8"))


@pytest.fixture
def field(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, which is no package."""
    spec = importlib.util.spec_from_file_location("field", FIELD / "field.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "field", module)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_what_was_measured(field: Any) -> None:
    stored = json.loads(field.RELEASED.read_text(encoding="utf-8"))["rows"]
    assert field.page_table(stored, CONTENT["rows"]) in field.PAGE.read_text(encoding="utf-8")
    assert {row["case"] for row in stored} == {row["case"] for row in CONTENT["rows"]}


def test_published_outputs_are_read_without_running_code(tmp_path: Path) -> None:
    file = tmp_path / "features.pkl"
    rng = np.random.default_rng(0)
    made = {kind: rng.normal(mean, 3.8, size=(700, 14)) for kind, mean in (("out", 0), ("in", 1))}
    file.write_bytes(pickle.dumps(made))
    features = mst_aim.read(file)
    scores, member = mst_aim.trials(features, 1000, seed=0)
    taken = np.sort(scores[member])
    sums = features["in"][: taken.size, mst_aim.ONES].sum(axis=1)
    np.testing.assert_array_equal(taken, np.sort(sums))
    file.write_bytes(pickle.dumps({"in": Path("a")}))
    with pytest.raises(pickle.UnpicklingError, match="no part of an array"):
        mst_aim.read(file)


def test_a_row_that_is_not_as_the_page_says_is_named(field: Any) -> None:
    row = {"case": "a", "released": "one", "without": "two", "skipped": ""}
    found = {**row, "faulty": {"refuted": 3}, "mended": {"refuted": 0}}
    assert field.surprises(found) == []
    assert field.surprises({**row, "skipped": "no wheel"}) == []
    found["mended"] = {"refuted": 1}
    assert field.surprises(found) == ["two was refuted (a)"]
    found["faulty"] = {"refuted": 2}
    assert field.surprises(found)[0] == "one was not refuted (a)"
    assert len(field.surprises({**found, "least": 1})) == 1


def test_each_bound_on_the_page_is_rounded_down(field: Any) -> None:
    assert (field.floored(0.3499), field.floored(2.0)) == ("0.34", "2.00")
    assert field.floored(0.33661, 3) == "0.336"


def test_each_bound_on_the_page_has_as_many_digits_as_refute_its_claim(field: Any) -> None:
    for line in re.findall(r"^\| .* \| [εμ] = .*$", field.PAGE.read_text(encoding="utf-8"), re.M):
        cells = line.split(" | ")
        claimed = float(re.findall(r"[\d.]+", cells[2])[0])
        assert float(cells[3].split()[0]) > claimed, line


def test_a_changed_package_leaves_other_environments_as_they_are(
    field: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field, "BUILT", tmp_path)
    packages = tmp_path / "mended" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    cached = tmp_path / "cached.py"
    cached.write_text("sensitivity = 0\n", encoding="utf-8")
    (packages / "noise.py").hardlink_to(cached)  # as uv installs
    place = field.Environment("mended", "lock", "3.11", "noise.py", "= 0", "= 1")
    assert place._patch() == ""
    assert (packages / "noise.py").read_text(encoding="utf-8") == "sensitivity = 1\n"
    assert cached.read_text(encoding="utf-8") == "sensitivity = 0\n"
    assert "is not the file" in place._patch()


@pytest.mark.parametrize("row", CONTENT["rows"], ids=lambda row: row["case"])
def test_rows_name_what_is_there(row: dict[str, Any]) -> None:
    case = FIELD / "cases" / f"{row['case']}.py"
    assert case.is_file()
    assert row["report"], "faults without a public report are not printed"
    for version in ("faulty", "mended"):
        if version in row:
            place = CONTENT["environments"][row[version]]
            lock = (FIELD / "locks" / f"{place['lock']}.txt").read_text(encoding="utf-8")
            assert all("==" in line for line in lock.split())
    if "old" in row:
        assert case.read_text(encoding="utf-8").count(row["old"]) == 1
    assert ("mended" in row) == ("without" in row)
