"""Bundles that were tampered with are invalid, and say why; nothing of them is believed."""

import errno
import itertools
import json
import os
import re
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from bundles import NOTES, change, resealed, summed, tampered, why
from command_line import leakbound
from commitments import PROTOCOL, scored
from leakbound._base import files
from leakbound._base.records import parsed
from leakbound.errors import FormatError, MissingExtraError
from leakbound.evidence import manifest, recipe, verify_bundle
from leakbound.evidence.manifest import MANIFEST
from leakbound.planning import Opening

QUICK, LONG = 8, 200
"""Positions in each file."""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


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
        assert name in why(bundle)
        (tmp_path / "away").rename(bundle / f"x{name}")
        assert f"'x{name}' was added" in why(bundle)
        (bundle / f"x{name}").rename(bundle / name)
    (bundle / "plan.npz").rename(tmp_path / "away")
    (bundle / "inputs.npz").rename(bundle / "plan.npz")
    (tmp_path / "away").rename(bundle / "inputs.npz")
    assert "'inputs.npz' was changed" in why(bundle)


def test_what_is_no_regular_file_is_refused(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "passwd").write_bytes((bundle / "result.json").read_bytes())
    (bundle / "result.json").unlink()
    (bundle / "result.json").symlink_to(tmp_path / "passwd")
    assert "result.json is not a regular file" in why(bundle)
    (bundle / "result.json").unlink()
    (bundle / "result.json").mkdir()
    assert "result.json is not a regular file" in why(bundle)
    (bundle / "result.json").rmdir()
    os.mkfifo(bundle / "result.json")
    assert "result.json is not a regular file" in why(bundle)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a\0b", ""])
def test_names_that_lead_elsewhere(name: str, bundle: Path) -> None:
    sums = bundle / "SHA256SUMS"
    kept = sums.read_bytes()
    sums.write_bytes(kept + f"{'0' * 64}  {name}\n".encode())
    assert "SHA256SUMS does not match these files" in why(bundle)
    sums.write_bytes(kept)

    path = bundle / "manifest.json"
    statement = json.loads(path.read_bytes())
    statement["subject"][3]["name"] = name
    path.write_text(json.dumps(statement, indent=1), encoding="utf-8")
    summed(bundle)
    assert "manifest.json does not match these files" in why(bundle)


PURE = {"type": "PureDP"}

# --- forgers who put the seals back on ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("result.json", "bound", 2.0, "audit: AuditResult.bound is 2.0, but recomputed"),
        ("result.json", "bound", 99.0, "result: .* outside"),
        ("result.json", "kind", "estimate", "result: .*contradict"),
        ("result.json", "type", "Panoramia", "result: .* of type"),
        ("result.json", "checked/verdict", "not refuted", "result: .*the bound gives"),
        ("result.json", "options/attack", "margin", "audit: .*options.attack"),
        ("result.json", "options/attacks", {"margin": 2.0}, "protocol: attacks: "),
        ("assumptions.json", "0/status", "checked", "assumptions: "),
        ("assumptions.json", "0/name", "others", "assumptions: .*is not an assumption"),
        ("audit.json", "options/confidence", 0.9, "protocol: confidence"),
        ("audit.json", "options/claim/type", "GaussianDP", "protocol: claim"),
        ("audit.json", "options/claim", [PURE, PURE], "claim is .* does not know"),
        ("audit.json", "options/claim", None, "inputs: claim is None"),
        ("audit.json", "options/claim/type", "Fixed", "inputs: claim is .* does not know"),
        ("audit.json", "options/claim/type", "Popen", "inputs: claim is .* does not know"),
        ("audit.json", "options/claim/x", 1, "inputs: claim: PureDP: got an unexpected .*'x'"),
        ("audit.json", "options/design", "coins", "inputs: coins takes no design"),
        ("audit.json", "options/confidence", {}, "inputs: confidence is {}"),
        ("audit.json", "options/scores", None, "inputs: scores is None"),
        ("audit.json", "options/checkpoint", "/tmp/x", "takes no checkpoint"),
        ("audit.json", "options/seed", "x", "seed: the protocol has 0"),
        ("audit.json", "options", [], "options and data must be tables"),
        ("audit.json", "data/scores", [PURE], "not data of a bundle"),
        ("audit.json", "data/scores/0", "margin", "audit: .*attack"),
        ("audit.json", "data/scores", ["loss", "loss"], "not data of a bundle"),
        ("audit.json", "data/scores", ["loss", "more"], "not data of a bundle"),
        ("audit.json", "data/features", "array", "coins takes no features"),
        ("audit.json", "data/scores", "array", "not data of a bundle"),
        ("audit.json", "data/member", "array", "not data of a bundle"),
        ("audit.json", "data/claim", "array", "options and data must be tables"),
        ("audit.json", "audit", "panoramia", "takes no|does not give a"),
        ("audit.json", "audit", "os.system", "must be one of"),
        ("audit.json", "layout", 2, "another layout"),
        ("protocol.json", "unit", "one person", "commitment: protocol.json does not match"),
        ("protocol.json", "checked", {"epsilon": 2.0}, "protocol: checked"),
        ("opening.json", "nonce", "00" * 31, "commitment: .*256 random bits"),
        ("opening.json", "protocol/unit", "one person", "commitment: .*was changed"),
        ("opening.json", "scheme", "mine", "commitment: this version reads the scheme .*'mine'"),
        ("commitment.json", "sha256", "00" * 32, "commitment: .*was changed"),
        ("manifest.json", "predicate/result", "PASSED", "manifest.json does not match"),
        ("manifest.json", f"{NOTES}/certified", "by nobody", "manifest.json does not match"),
        ("manifest.json", f"{NOTES}/seeds/audit", 7, "result and this plan: seeds"),
        ("manifest.json", f"{NOTES}/numpy", ["2"], "result and this plan: numpy"),
        ("manifest.json", "subject", {}, "manifest: "),
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
@pytest.mark.parametrize("text", ["", "null", "{", "[" * 100_000, "\xff"])
def test_files_that_are_something_else(file: str, text: str, bundle: Path) -> None:
    (bundle / file).write_bytes(text.encode("latin-1"))
    if file != "manifest.json":
        resealed(bundle)
    else:
        summed(bundle)
    assert why(bundle)


@pytest.mark.parametrize(
    ("more", "words"),
    [("}{}", "not JSON"), ("}\0", "not JSON"), (', "layout": 1}', "occurs twice in one object")],
)
def test_what_is_written_can_be_read_in_one_way(more: str, words: str, bundle: Path) -> None:
    text = (bundle / "audit.json").read_text(encoding="utf-8").rstrip().removesuffix("}")
    (bundle / "audit.json").write_text(text + more, encoding="utf-8")
    resealed(bundle)
    assert words in why(bundle)


def test_no_two_files_stand_in_for_each_other(bundle: Path) -> None:
    for one, other in itertools.combinations(names(bundle), 2):
        kept = {file.name: file.read_bytes() for file in bundle.iterdir()}
        (bundle / one).write_bytes(kept[other])
        (bundle / other).write_bytes(kept[one])
        (summed if MANIFEST in {one, other} else resealed)(bundle)
        assert why(bundle), (one, other)
        for name, content in kept.items():
            (bundle / name).write_bytes(content)


def test_another_page_scores_or_plan(bundle: Path, whole: tuple[Path, Opening]) -> None:
    page = (bundle / "report.html").read_text(encoding="utf-8")
    (bundle / "report.html").write_text(page.replace("leaks", "is safe"), encoding="utf-8")
    resealed(bundle)
    assert "report: report.html is not the report" in why(bundle)
    shutil.copy(whole[0] / "report.html", bundle)

    _, scores = scored()
    np.savez_compressed(bundle / "inputs.npz", **{"scores.0": scores + 1e-9})
    resealed(bundle)
    assert "audit: " in why(bundle)
    np.savez_compressed(bundle / "inputs.npz", **{"scores.0": scores, "ids": scores})
    resealed(bundle)
    assert "arrays ids are no argument" in why(bundle)
    shutil.copy(whole[0] / "inputs.npz", bundle)

    lb.InclusionPlan.create(300, seed=6).save(bundle / "plan.npz")
    resealed(bundle)
    assert "result and this plan: seeds" in why(bundle)
    plan, _ = scored()
    lb.InclusionPlan(~plan.member, seed=5).save(bundle / "plan.npz")
    resealed(bundle)
    assert "its coins do not follow from its seed" in why(bundle)
    (bundle / "plan.npz").write_bytes(b"PK\x03\x04")
    resealed(bundle)
    assert "plan: the content is not an InclusionPlan" in why(bundle)


def test_a_bundle_that_opens_another_commitment(bundle: Path) -> None:
    plan, _ = scored()
    other = plan.commit(PROTOCOL).commitment
    assert "was changed" in why(bundle, commitment=other)
    for name in ("opening.json", "commitment.json"):
        (bundle / name).unlink()

        def drop(statement: Any, name: str = name) -> None:
            statement["subject"] = [one for one in statement["subject"] if one["name"] != name]

        tampered(bundle, "manifest.json", drop)
        expected = "is missing" if name == "opening.json" else ""
        assert expected in why(bundle)
    assert "the bundle has no opening" in why(bundle, commitment=other)
    found = {one.name: one.passed for one in verify_bundle(bundle).checks}
    assert found["commitment"] is None


# --- sizes ---------------------------------------------------------------------------------------


def test_files_are_no_larger_than_is_read(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the size that the system tells, before a byte of them is read."""
    limits = {"report.html": 26, "inputs.npz": 32, "audit.json": 22, "result.json": 24}
    for name, most in ((name, 1 << bits) for name, bits in limits.items()):
        kept = (bundle / name).read_bytes()
        with (bundle / name).open("r+b") as file:
            file.truncate(most + 1)  # a hole, which takes no room
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "digest", lambda _: pytest.fail("it was read"))
            found = why(bundle)
        assert found == f"files: {name} has {most + 1:,} bytes, and at most {most:,} are read"
        (bundle / name).write_bytes(kept)


def test_a_large_file_is_digested_block_by_block(bundle: Path) -> None:
    with (bundle / "inputs.npz").open("r+b") as file:
        file.truncate(1 << 28)
    tracemalloc.start()
    assert "'inputs.npz' was changed" in why(bundle)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 24


def test_archives_that_unpack_to_more_than_is_read(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the sizes that their headers tell, before anything is unpacked."""
    monkeypatch.setattr(manifest, "MOST_ARRAYS", 1000)
    read = files.Archive.__getitem__

    def unread(archive: Any, name: str) -> Any:
        return pytest.fail("it was unpacked") if "scores" in name else read(archive, name)

    monkeypatch.setattr(files.Archive, "__getitem__", unread)
    assert re.search("inputs.npz: its arrays have .* at most 1,000 are read", why(bundle))


def test_verifying_ends_when_its_time_is_up(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def audited(*_: Any, **__: Any) -> Any:
        while True:
            pass

    monkeypatch.setattr(recipe, "audit_of", audited)
    answer = leakbound("verify", bundle, "--most-seconds", "0.5")
    assert answer.code == 2
    assert "takes more than 0.5 seconds; no verdict" in answer.err
    assert "VALID" not in answer.out
    assert leakbound("verify", bundle, "--most-seconds", "0").code == 2


def test_archives_of_very_many_arrays(bundle: Path) -> None:
    with zipfile.ZipFile(bundle / "inputs.npz", "w") as archive:
        for i in range(8001):
            archive.writestr(f"array-{i}.npy", b"")
    resealed(bundle)
    assert "inputs.npz holds 8,001 arrays: at most 8,000 are read" in why(bundle)


# --- what a terminal shows ------------------------------------------------------------------------


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b[1;32mVALID", "\u202eDILAV", "\u2028VALID"])
def test_words_of_a_bundle_do_nothing_to_a_terminal(hostile: str, bundle: Path) -> None:
    tampered(bundle, "manifest.json", change(f"{NOTES}/leakbound", hostile))
    found = verify_bundle(bundle)
    assert all(one.words.isprintable() for one in found.checks)
    answer = leakbound("verify", bundle)
    assert answer.code in {0, 1}
    assert all(line.isprintable() for line in answer.out.split("\n"))
    assert hostile not in answer.out
    (bundle / f"{hostile}.html").write_bytes(b"")
    answer = leakbound("verify", bundle)
    assert answer.code == 1
    assert all(line.isprintable() for line in answer.out.split("\n"))


def test_markup_in_words_is_printed(bundle: Path) -> None:
    tampered(bundle, "result.json", change("type", "[red]1[/red]"))
    assert "is of type '[red]1[/red]'" in leakbound("verify", bundle).out


# --- what is not there --------------------------------------------------------------


def test_a_missing_package_is_no_verdict(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: Any) -> Any:
        raise MissingExtraError("scikit-learn is not installed")

    monkeypatch.setattr(recipe.Recipe, "run", lacking)
    with pytest.raises(MissingExtraError):
        verify_bundle(bundle)
    assert leakbound("verify", bundle).code == 2


def test_a_disk_or_a_memory_that_fails_is_no_verdict(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest bundle on a machine with bad sectors, or little memory, is not INVALID."""

    def failing(error: BaseException) -> Callable[..., Any]:
        def fail(*_: Any, **__: Any) -> Any:
            raise error

        return fail

    unread = OSError(errno.EIO, "Input/output error")
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "digest", failing(unread))
        with pytest.raises(OSError, match="Input/output"):
            verify_bundle(bundle)
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", failing(MemoryError()))
        with pytest.raises(MemoryError):
            verify_bundle(bundle)
        answer = leakbound("verify", bundle)
        assert (answer.code, "INVALID" in answer.out) == (2, False)
        assert "not enough memory for this bundle; no verdict" in answer.err


def test_a_name_that_comes_twice_is_found_at_once() -> None:
    pairs = ",".join(f'"{i}":0' for i in range(200_000))
    with pytest.raises(FormatError, match="'199999' occurs twice"):
        parsed("{" + pairs + ',"199999":0}')
