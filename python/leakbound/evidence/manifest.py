"""The content of a bundle: digests of its files in an in-toto Statement, and its report."""

import json
import os
import platform
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import numpy as np

import leakbound._core as _core
from leakbound._base.canonical import digest, plain, sha256
from leakbound._base.checks import shown
from leakbound._base.types import JsonObject, JsonValue
from leakbound.errors import FormatError, OptionError
from leakbound.results.base import Result

LAYOUT = 1
"""Number of the layout of bundles, raised whenever a file changes its name or meaning."""
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
KERNELS = "linear algebra"
"""What the last bits of a fitted model depend on, chosen by the processor: no version tells it."""
MOST_ARRAYS = 1 << 32
"""Bytes of the arrays of a bundle, unpacked: 5 columns of the most examples that are drawn."""
# Bytes of the largest file of text, but for the result and its page.
_TEXT = 1 << 22
FILES = {
    "audit.json": _TEXT,
    "inputs.npz": MOST_ARRAYS,
    "result.json": 1 << 24,
    "assumptions.json": _TEXT,
    "report.html": 1 << 26,
    "plan.npz": MOST_ARRAYS,
    "protocol.json": _TEXT,
    "opening.json": _TEXT,
    "commitment.json": _TEXT,
    MANIFEST: _TEXT,
    SUMS: _TEXT,
}
"""Files that a bundle may hold, and the most bytes of each that are read."""
# Who vouches for an assumption, by its status.
_VOUCHERS = {
    "checked": "leakbound, by the data",
    "declared": "the auditor",
    "approximate": "the auditor, roughly",
    "unverifiable": "nobody: the data cannot verify it",
    "contradicted": "nobody: the data contradict it",
}


@dataclass(frozen=True)
class Contents:
    """The files of a bundle: texts that were read, archives that are open, and all digests."""

    texts: dict[str, bytes] = field(default_factory=dict)
    archives: dict[str, IO[bytes]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, held: ExitStack) -> "Contents":
        """Open each file once: regular files of known names and sizes, and nothing else.

        Archives are digested block by block, and stay open in `held`, so that what is read later is
        the file that was digested.
        """
        content = cls()
        files: dict[str, IO[bytes]] = {}
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            if entry.name not in FILES:
                raise FormatError(f"{entry.name!r:.80} was added: it does not belong in a bundle")
            files[entry.name] = held.enter_context(_opened(entry))
        for name, file in files.items():
            if name.endswith(".npz"):
                content.archives[name] = file
                content.digests[name] = digest(file)
                file.seek(0)
            else:
                content.texts[name] = file.read(os.fstat(file.fileno()).st_size)
                content.digests[name] = sha256(content.texts[name])
        return content


def environment() -> dict[str, str]:
    """Return the versions that the last bits of a result depend on, and `KERNELS`."""
    return {
        "leakbound": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instructions": _core.simd(),
        "system": " ".join([platform.system(), platform.machine(), *platform.libc_ver()]),
        KERNELS: _kernels(),
    }


def _kernels() -> str:
    """Return which kernels of linear algebra are loaded, where a package can tell."""
    if find_spec("threadpoolctl") is None:
        return "unknown"
    from threadpoolctl import threadpool_info

    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    named = {f"{one['internal_api']} {one.get('architecture', '')}".strip() for one in libraries}
    return ", ".join(sorted(named)) or "unknown"


def statement(
    digests: Mapping[str, str], result: Result, notes: Mapping[str, object], model: str | None
) -> bytes:
    """Return the statement about files; `notes` has versions and seeds."""
    files = {name: _subject(name, digests[name]) for name in sorted(digests)}
    audit = files["audit.json"]
    subject = [*files.values()]
    if model:
        subject.insert(0, _subject("model", model))
    content = {
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": {**_outcome(result), "configuration": [{**audit, "annotations": notes}]},
    }
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _subject(name: str, sha256: str) -> JsonObject:
    return {"name": name, "digest": {"sha256": sha256}}


def sums(digests: Mapping[str, str]) -> bytes:
    """Return digests of files as `sha256sum` writes and checks them."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def notes_of(result: Result, made: Mapping[str, str], tossed: int | None) -> JsonObject:
    """Return the notes on a result: versions, and the seeds of audit and plan."""
    seeds: JsonObject = {"audit": result.provenance.seed}
    if tossed is not None:
        seeds["plan"] = str(tossed)
    return {"layout": LAYOUT, **made, "seeds": seeds}


def assumptions_of(result: Result, vouchers: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return what a result assumes, and who vouches for each."""
    unknown = vouchers.keys() - {one.name for one in result.assumptions}
    if unknown:
        named = ", ".join(sorted(map(str, unknown)))
        raise OptionError(f"vouchers has {named}, which is not an assumption of the result")
    for name, who in vouchers.items():
        if not isinstance(who, str) or not who.strip():
            raise OptionError(f"vouchers has {shown(who)} for {name!r}: give a name as text")
        plain(who, f"vouchers.{name}")
    return [
        {
            "name": one.name,
            "statement": one.statement,
            "status": one.status,
            "vouched for by": vouchers.get(one.name, _VOUCHERS[one.status]),
        }
        for one in result.assumptions
    ]


def _opened(entry: os.DirEntry[str]) -> IO[bytes]:
    """Open a regular file of limited size."""
    # What is put in its place meanwhile, a link or a pipe, is not followed nor waited for.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if not entry.is_file(follow_symlinks=False):
        raise FormatError(f"{entry.name} is not a regular file; links are not followed")
    file = os.fdopen(os.open(entry.path, flags | getattr(os, "O_BINARY", 0)), "rb")
    status = os.fstat(file.fileno())
    most = FILES[entry.name]
    if status.st_size <= most and stat.S_ISREG(status.st_mode):
        return file
    file.close()
    raise FormatError(f"{entry.name} has {status.st_size:,} bytes, and at most {most:,} are read")


def _outcome(result: Result) -> JsonObject:
    """Return the outcome of a claim: failed if refuted, passed if it could have been refuted."""
    claimed = result.checked
    tests: dict[str, list[JsonValue]] = {"passedTests": [], "warnedTests": [], "failedTests": []}
    if claimed is None:
        return {"result": "WARNED", **tests}
    name = f"{claimed.parameter} <= {claimed.value!r}"
    if claimed.delta:
        name += f" at delta = {claimed.delta!r}"
    if claimed.c is not None:
        name += f" and c <= {claimed.c!r}"
    doubted = result.warnings or result.summary().contradicted
    outcome = "WARNED"
    if claimed.verdict == "refuted":
        outcome = "FAILED"
    elif claimed.verdict == "not refuted" and not doubted:
        outcome = "PASSED"
    tests[f"{outcome.lower()}Tests"].append(name)
    return {"result": outcome, **tests}
