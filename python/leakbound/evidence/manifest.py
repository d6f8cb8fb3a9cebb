"""What a bundle holds, as an in-toto Statement about a test; and the digests of its files."""

from __future__ import annotations

import json
import os
import platform
import stat
from typing import TYPE_CHECKING, Any

import numpy as np

import leakbound._core as _core
from leakbound._base.canonical import sha256
from leakbound._base.records import parsed
from leakbound.errors import BundleError, ResultFormatError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from leakbound._base.types import JsonValue
    from leakbound.results.base import Result

__all__ = [
    "FILES",
    "LAYOUT",
    "MANIFEST",
    "SUMS",
    "environment",
    "manifest",
    "read_files",
    "read_json",
    "sums",
]

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
_LARGEST = 1 << 34
"""Bytes of the largest file that is read."""


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
    files: Mapping[str, bytes], result: Result, notes: Mapping[str, Any], model: str | None
) -> bytes:
    """Return the statement about files; `notes` has versions and seeds."""
    listed = [_described(name, content) for name, content in sorted(files.items())]
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


def sums(files: Mapping[str, bytes]) -> bytes:
    """Return digests of files as `sha256sum` writes and checks them."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files)).encode()


def read_files(folder: Path) -> dict[str, bytes]:
    """Read all of a bundle once: regular files of known names and nothing else."""
    known = {*FILES, MANIFEST, SUMS}
    found = {}
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.name not in known:
            message = f"{entry.name!r:.80} was added: bundles hold no such file"
            raise BundleError(message)
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):
            message = f"{entry.name} is no regular file: a link could lead out of the bundle"
            raise BundleError(message)
        if status.st_size > _LARGEST:
            message = f"{entry.name} has more than {_LARGEST:,} bytes"
            raise BundleError(message)
        descriptor = os.open(entry.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as file:
            found[entry.name] = file.read(_LARGEST + 1)
    return found


def read_json(content: bytes, name: str) -> Any:
    """Read a file of a bundle as JSON, strictly."""
    try:
        return parsed(content.decode("utf-8"))
    except (ValueError, ResultFormatError) as error:
        message = f"{name}: {' '.join(str(error).split())}"
        raise BundleError(message) from error


def _described(name: str, content: bytes) -> dict[str, Any]:
    return {
        "name": name,
        "digest": {"sha256": sha256(content)},
        "annotations": {"size": len(content), "what": FILES[name]},
    }


def _outcome(result: Result) -> dict[str, JsonValue]:
    """Return what a claim came to: failed if refuted, passed if it could have been and was not."""
    one = result.checked
    tests: dict[str, list[JsonValue]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    if one is None:
        return {"result": "WARNED", **tests}
    name = f"{one.parameter} {one.relation} {one.value!r}"
    name += f" at delta = {one.delta!r}" if one.delta else ""
    name += f" and c <= {one.c!r}" if one.c is not None else ""
    passed = one.verdict == "not refuted" and not result.warnings and not result.contradicted()
    outcome = "FAILED" if one.verdict == "refuted" else "PASSED" if passed else "WARNED"
    tests[f"{outcome.lower()}Tests"].append(name)
    return {"result": outcome, **tests}
