"""Bundles that were tampered with are invalid, and say why; nothing of them is believed."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from bundles import resealed, summed, tampered, why, write
from commitments import PROTOCOL, scored
from leakbound.evidence import verify_bundle
from leakbound.planning import Opening

QUICK, LONG = 20, 200
"""Positions in each file."""
pytestmark = pytest.mark.usefixtures("drawn_once")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Opening]:
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    _, opening = write(folder)
    assert why(folder, commitment=opening.commitment) == ""
    return folder, opening


@pytest.fixture
def bundle(whole: tuple[Path, Opening], tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole[0], tmp_path / "bundle"))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_every_file_is_there(whole: tuple[Path, Opening]) -> None:
    assert len(names(whole[0])) == 12


@pytest.mark.parametrize(
    "positions", [QUICK, pytest.param(LONG, marks=pytest.mark.validity)], ids=["quick", "long"]
)
def test_a_flipped_byte_anywhere_is_seen(positions: int, bundle: Path) -> None:
    drawn = np.random.default_rng(0)
    for name in names(bundle):
        content = (bundle / name).read_bytes()
        for place in drawn.integers(0, len(content), positions).tolist():
            flipped = bytearray(content)
            flipped[place] ^= int(drawn.integers(1, 256))
            (bundle / name).write_bytes(flipped)
            found = why(bundle)
            assert found.startswith("files: "), (name, place, found)
            assert name in found or "SHA256SUMS" in found or "missing" in found
        (bundle / name).write_bytes(content)
    assert why(bundle) == ""


def test_files_missing_added_renamed_or_swapped(bundle: Path, tmp_path: Path) -> None:
    for name in names(bundle):
        (bundle / name).rename(tmp_path / "away")
        assert f"{name} is missing" in why(bundle)
        (tmp_path / "away").rename(bundle / f"x{name}")
        assert f"'x{name}' was added" in why(bundle)
        (bundle / f"x{name}").rename(bundle / name)
    (bundle / "plan.npz").rename(tmp_path / "away")
    (bundle / "inputs.npz").rename(bundle / "plan.npz")
    (tmp_path / "away").rename(bundle / "inputs.npz")
    assert "inputs.npz was changed" in why(bundle)


def test_what_is_no_regular_file_is_refused(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "passwd").write_bytes((bundle / "result.json").read_bytes())
    (bundle / "result.json").unlink()
    (bundle / "result.json").symlink_to(tmp_path / "passwd")
    assert "result.json is no regular file" in why(bundle)
    (bundle / "result.json").unlink()
    (bundle / "result.json").mkdir()
    assert "result.json is no regular file" in why(bundle)
    (bundle / "result.json").rmdir()
    os.mkfifo(bundle / "result.json")
    assert "result.json is no regular file" in why(bundle)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a\0b", ""])
def test_names_that_lead_elsewhere(name: str, bundle: Path) -> None:
    sums = bundle / "SHA256SUMS"
    kept = sums.read_bytes()
    sums.write_bytes(kept + f"{'0' * 64}  {name}\n".encode())
    assert "SHA256SUMS names" in why(bundle)
    sums.write_bytes(kept)

    path = bundle / "manifest.json"
    statement = json.loads(path.read_bytes())
    statement["subject"][3]["name"] = name
    path.write_text(json.dumps(statement, indent=1), encoding="utf-8")
    summed(bundle)
    assert "which is no file of this bundle" in why(bundle)


# --- forgers who put the seals back on ------------------------------------------------------------


def change(place: str, value: Any) -> Callable[[Any], Any]:
    """Return what sets one value, by its path."""

    def changed(content: Any) -> Any:
        *steps, last = [int(one) if one.isdigit() else one for one in place.split("/")]
        inner = content
        for step in steps:
            inner = inner[step]
        inner[last] = value
        return content

    return changed


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("result.json", "bound", 2.0, "audit: AuditResult.bound is 2.0, and computed again"),
        ("result.json", "bound", 99.0, "result: .* outside"),
        ("result.json", "auc", 0.75, "audit: AuditResult.auc"),
        ("result.json", "kind", "estimate", "result: .*kind"),
        ("result.json", "schema", 2, "result: .*its schema must be 1"),
        ("result.json", "type", "Panoramia", "result: .* of type"),
        ("result.json", "warnings", ["all is well"], "audit: .*warnings"),
        ("result.json", "theorem", "trust me", "audit: .*theorem"),
        ("result.json", "checked/verdict", "not refuted", "result: .*the bound gives"),
        ("result.json", "provenance/sha256/scores", "0" * 64, "audit: .*sha256"),
        ("result.json", "options/seed", 1, "audit: .*options.seed"),
        ("assumptions.json", "0/status", "checked", "assumptions: "),
        ("assumptions.json", "0", "none", "assumptions: "),
        ("assumptions.json", "0/name", "others", "assumptions: .*does not assume"),
        ("audit.json", "arguments/confidence/value", 0.9, "audit: "),
        ("audit.json", "arguments/sides", {"value": "member"}, "audit: "),
        ("audit.json", "arguments/claim/object", "GaussianDP", "audit: "),
        ("audit.json", "arguments/claim/object", "Popen", "none of a bundle"),
        ("audit.json", "arguments/claim/fields", {"x": {"value": 1}}, "none of a bundle"),
        ("audit.json", "arguments/checkpoint", {"value": "/tmp/x"}, "takes no 'checkpoint'"),
        ("audit.json", "arguments/nonsense", {"value": 1}, "takes no 'nonsense'"),
        ("audit.json", "arguments/seed", {"value": "x"}, "audit: seed must be an integer"),
        ("audit.json", "arguments/scores", {"array": "array-9"}, "none of a bundle"),
        ("audit.json", "arguments/scores", {"value": 3}, "is no argument|are no argument"),
        ("audit.json", "arguments/member", {"array": "array-0"}, "not that of the plan"),
        ("audit.json", "arguments", [], "none of the audits"),
        ("audit.json", "audit", "audit_panoramia", "takes no|makes no"),
        ("audit.json", "audit", "os.system", "none of the audits"),
        ("audit.json", "layout", 2, "another layout"),
        ("protocol.json", "confidence", 0.9, "protocol: confidence"),
        ("protocol.json", "unit", "one person", "commitment: protocol.json is not the one"),
        ("protocol.json", "checked", {"epsilon": 2.0}, "protocol: checked"),
        ("opening.json", "nonce", "00" * 31, "commitment: .*256 random bits"),
        ("opening.json", "nonce", "00" * 32, "commitment: .*not what was committed to"),
        ("opening.json", "protocol/unit", "one person", "commitment: .*not what was committed"),
        ("opening.json", "scheme", "mine", "commitment: an opening of scheme 'mine'"),
        ("commitment.json", "sha256", "00" * 32, "commitment: .*not what was committed to"),
        ("commitment.json", "examples", 299, "commitment: .*not what was committed to"),
        (
            "manifest.json",
            "predicate/result",
            "PASSED",
            "result: manifest.json is not the statement",
        ),
        ("manifest.json", "predicate/configuration", [], "manifest: "),
        ("manifest.json", "subject", {}, "manifest: "),
        ("manifest.json", "_type", "mine", "manifest.json is not the statement"),
        ("manifest.json", "subject/0/digest/sha256", None, "manifest"),
    ],
)
def test_forged_content_is_seen(
    name: str, place: str, value: Any, words: str, bundle: Path
) -> None:
    tampered(bundle, name, change(place, value))
    found = why(bundle)
    assert re.search(words, found), found
    assert "\n" not in found


@pytest.mark.parametrize("file", ["result.json", "audit.json", "manifest.json", "assumptions.json"])
@pytest.mark.parametrize("text", ["", "[]", "null", "{", "NaN", '"x"', "[" * 100_000, "\0", "\xff"])
def test_files_that_are_something_else(file: str, text: str, bundle: Path) -> None:
    (bundle / file).write_bytes(text.encode("latin-1"))
    if file != "manifest.json":
        resealed(bundle)
    else:
        summed(bundle)
    assert why(bundle)


def test_another_page_scores_or_plan(bundle: Path, whole: tuple[Path, Opening]) -> None:
    page = (bundle / "report.html").read_text(encoding="utf-8")
    (bundle / "report.html").write_text(page.replace("leaks", "is safe"), encoding="utf-8")
    resealed(bundle)
    assert "report: report.html is not the page" in why(bundle)
    shutil.copy(whole[0] / "report.html", bundle)

    _, scores = scored()
    np.savez_compressed(bundle / "inputs.npz", **{"array-0": scores + 1e-9})
    resealed(bundle)
    assert "audit: " in why(bundle)
    np.savez_compressed(bundle / "inputs.npz", **{"array-0": scores, "array-1": scores})
    resealed(bundle)
    assert "array-1 are no argument" in why(bundle)
    shutil.copy(whole[0] / "inputs.npz", bundle)

    lb.InclusionPlan.create(300, seed=6).save(bundle / "plan.npz")
    resealed(bundle)
    assert "plan: its seed is not that of the manifest" in why(bundle)
    plan, _ = scored()
    lb.InclusionPlan(~plan.member, seed=5).save(bundle / "plan.npz")
    resealed(bundle)
    assert "its coins are not those of its seed" in why(bundle)
    (bundle / "plan.npz").write_bytes(b"PK\x03\x04")
    resealed(bundle)
    assert "plan: the content is not an inclusion plan" in why(bundle)


def test_a_bundle_that_opens_another_commitment(bundle: Path) -> None:
    plan, _ = scored()
    other = plan.commit(PROTOCOL).commitment
    assert "not what was committed to" in why(bundle, commitment=other)
    for name in ("opening.json", "commitment.json"):
        (bundle / name).unlink()

        def drop(statement: Any, name: str = name) -> None:
            statement["subject"] = [one for one in statement["subject"] if one["name"] != name]

        tampered(bundle, "manifest.json", drop)
        expected = "one is missing" if name == "opening.json" else ""
        assert expected in why(bundle)
    assert "the bundle opens no commitment" in why(bundle, commitment=other)
    found = {one.name: one.passed for one in verify_bundle(bundle).checks}
    assert found["commitment"] is None


# --- other versions -------------------------------------------------------------------------------


def by_other_numpy(bundle: Path) -> None:
    def renamed(statement: Any) -> None:
        statement["predicate"]["configuration"][0]["annotations"]["numpy"] = "1.0.0"

    tampered(bundle, "manifest.json", renamed)


@pytest.mark.parametrize(
    ("share", "here", "elsewhere"),
    [(0.0, "", ""), (1e-13, "audit: ", ""), (1e-7, "audit: ", "audit: ")],
)
def test_numbers_of_another_version_may_differ_in_the_last_places(
    share: float, here: str, elsewhere: str, bundle: Path
) -> None:
    def moved(content: Any) -> None:
        content["bound"] *= 1 - share

    tampered(bundle, "result.json", moved)
    assert why(bundle)[:7] == here
    by_other_numpy(bundle)
    assert why(bundle)[:7] == elsewhere


def test_counts_and_choices_of_another_version_may_not_differ(bundle: Path) -> None:
    by_other_numpy(bundle)
    tampered(bundle, "result.json", change("warnings", ["put in other words"]))
    assert why(bundle) == ""
    found = {one.name: one for one in verify_bundle(bundle).checks}
    assert found["report"].passed is None
    assert "other versions" in found["audit"].words
    tampered(bundle, "result.json", change("guesses", 62))
    assert "audit: AuditResult.guesses is 62" in why(bundle)


def test_a_layout_of_another_version_is_named(bundle: Path) -> None:
    def renumbered(statement: Any) -> None:
        statement["predicate"]["configuration"][0]["annotations"]["layout"] = 2

    tampered(bundle, "manifest.json", renumbered)
    assert why(bundle) == "manifest: layout 2: this version of leakbound reads 1"
