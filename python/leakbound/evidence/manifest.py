"""What a bundle holds, as an in-toto Statement about a test; and the digests of its files."""

from __future__ import annotations

import io
import json
import os
import platform
import stat
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

import leakbound._core as _core
from leakbound._base.canonical import digest
from leakbound._base.records import parsed
from leakbound.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from leakbound._base.types import JsonValue
    from leakbound.results.base import Result

LAYOUT = 1
"""Number of the layout of bundles, raised whenever a file changes its name or meaning."""
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
FILES: dict[str, str] = {
    "audit.json": "the audit and its arguments",
    "inputs.npz": "the arrays among them",
    "result.json": "what came of it",
    "assumptions.json": "what it assumes, and who vouches for it",
    "report.html": "the page for people",
    "plan.npz": "who was drawn",
    "protocol.json": "what was to be done",
    "opening.json": "what opens the commitment",
    "commitment.json": "what was published before training",
    "accountant.json": "what the accountant was told",
}
"""Files that a bundle may hold besides manifest and sums."""
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
MOST_ARRAYS = 1 << 32
"""Bytes of the arrays of a bundle, unpacked: 5 columns of the most examples that are drawn."""
_LARGEST: dict[str, int] = {
    "inputs.npz": MOST_ARRAYS,
    "plan.npz": MOST_ARRAYS,
    "result.json": 1 << 24,
    "report.html": 1 << 26,
}
_LARGEST_TEXT = 1 << 22
"""Bytes of the largest file of each name, and of those that are not named."""


class Seal(NamedTuple):
    """What a manifest says of a file."""

    size: int
    sha256: str


def seal(content: bytes) -> Seal:
    """Return size and digest of what is at hand."""
    return Seal(*digest(io.BytesIO(content)))


@dataclass(frozen=True)
class Contents:
    """The files of a bundle: texts that were read, archives that are open, and their seals."""

    texts: dict[str, bytes] = field(default_factory=dict)
    archives: dict[str, IO[bytes]] = field(default_factory=dict)
    seals: dict[str, Seal] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, held: ExitStack) -> Contents:
        """Open each file once: regular files of known names and sizes, and nothing else.

        Archives are digested block by block, and stay open in `held`, so that what is read later is
        the file that was digested.
        """
        known, found = {*FILES, MANIFEST, SUMS}, cls()
        files: dict[str, IO[bytes]] = {}
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            if entry.name not in known:
                message = f"{entry.name!r:.80} was added: bundles hold no such file"
                raise FormatError(message)
            files[entry.name] = held.enter_context(_opened(entry))
        for name, file in files.items():
            if name.endswith(".npz"):
                found.archives[name] = file
                found.seals[name] = Seal(*digest(file))
                file.seek(0)
            else:
                size = os.fstat(file.fileno()).st_size
                _check_size(name, size)
                found.texts[name] = file.read(size)
                found.seals[name] = seal(found.texts[name])
        return found


def environment() -> dict[str, str]:
    """Return what the last bits of a result depend on."""
    return {
        "leakbound": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instructions": _core.simd(),
        "system": " ".join([platform.system(), platform.machine(), *platform.libc_ver()]),
    }


def manifest(
    files: Mapping[str, Seal], result: Result, notes: Mapping[str, Any], model: str | None
) -> bytes:
    """Return the statement about files; `notes` has versions and seeds."""
    listed = [_described(name, one) for name, one in sorted(files.items())]
    subject: list[Any] = [{"name": "model", "digest": {"sha256": model}}] if model else []
    statement = {
        "_type": STATEMENT,
        "subject": subject + listed,
        "predicateType": PREDICATE,
        "predicate": {
            **_outcome(result),
            "configuration": [
                {**one, "annotations": {**one["annotations"], **notes}}
                for one in listed
                if one["name"] == "audit.json"
            ],
        },
    }
    return (json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode()


def sums(files: Mapping[str, Seal]) -> bytes:
    """Return digests of files as `sha256sum` writes and checks them."""
    return "".join(f"{files[name].sha256}  {name}\n" for name in sorted(files)).encode()


def seeds(result: Result, plan: int | None) -> dict[str, JsonValue]:
    """Return the seeds that a manifest names: those of the audit, and of the plan if it has one."""
    found: dict[str, JsonValue] = {"audit": result.provenance.seed}
    return found if plan is None else found | {"plan": str(plan)}


def read_json(content: bytes, name: str) -> Any:
    """Read a file of a bundle as JSON, strictly."""
    try:
        return parsed(content.decode("utf-8"))
    except (ValueError, FormatError) as error:
        message = f"{name}: {' '.join(str(error).split())}"
        raise FormatError(message) from error


def _opened(entry: os.DirEntry[str]) -> IO[bytes]:
    """Open a file that is one, and no larger than it may be."""
    _check_regular(entry.name, entry.stat(follow_symlinks=False))
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.fdopen(os.open(entry.path, flags | getattr(os, "O_BINARY", 0)), "rb")
    try:
        status = os.fstat(file.fileno())
        _check_regular(entry.name, status)
        _check_size(entry.name, status.st_size)
    except BaseException:
        file.close()
        raise
    return file


def _check_regular(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        message = f"{name} is no regular file: a link could lead out of the bundle"
        raise FormatError(message)


def _limit(name: str) -> int:
    return _LARGEST.get(name, _LARGEST_TEXT)


def _check_size(name: str, size: int) -> None:
    if size > _limit(name):
        message = f"{name} has {size:,} bytes, and at most {_limit(name):,} are read"
        raise FormatError(message)


def _described(name: str, one: Seal) -> dict[str, Any]:
    return {
        "name": name,
        "digest": {"sha256": one.sha256},
        "annotations": {"size": one.size, "what": FILES[name]},
    }


def _outcome(result: Result) -> dict[str, JsonValue]:
    """Return what a claim came to: failed if refuted, passed if it could have been and was not."""
    one = result.checked
    tests: dict[str, list[JsonValue]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    if one is None:
        return {"result": "WARNED", **tests}
    name = f"{one.parameter} <= {one.value!r}"
    name += f" at delta = {one.delta!r}" if one.delta else ""
    name += f" and c <= {one.c!r}" if one.c is not None else ""
    passed = (
        one.verdict == "not refuted" and not result.warnings and not result.summary().contradicted
    )
    outcome = "FAILED" if one.verdict == "refuted" else "PASSED" if passed else "WARNED"
    tests[f"{outcome.lower()}Tests"].append(name)
    return {"result": outcome, **tests}
