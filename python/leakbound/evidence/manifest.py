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
from leakbound._base.checks import shown
from leakbound._base.records import digest, plain, sha256
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
_MOST_TEXT = 1 << 22
_MOST_RESULT = 1 << 24
_MOST_REPORT = 1 << 26
FILES = {
    "audit.json": _MOST_TEXT,
    "inputs.npz": MOST_ARRAYS,
    "result.json": _MOST_RESULT,
    "assumptions.json": _MOST_TEXT,
    "report.html": _MOST_REPORT,
    "plan.npz": MOST_ARRAYS,
    "protocol.json": _MOST_TEXT,
    "opening.json": _MOST_TEXT,
    "commitment.json": _MOST_TEXT,
    MANIFEST: _MOST_TEXT,
    SUMS: _MOST_TEXT,
}
"""Files that a bundle may hold, and the most bytes of each that are read."""
# Who vouches for an assumption, by its status.
_DEFAULT_VOUCHERS = {
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
    def of(cls, folder: Path, open_files: ExitStack) -> "Contents":
        """Open each file once: regular files of known names and sizes, and nothing else.

        Archives are digested block by block, and stay open in `open_files`, so that what is read
        later is the file that was digested.
        """
        contents = cls()
        bundle_files: dict[str, IO[bytes]] = {}
        for folder_entry in sorted(os.scandir(folder), key=lambda folder_entry: folder_entry.name):
            if folder_entry.name not in FILES:
                raise FormatError(
                    f"{folder_entry.name!r:.80} was added: it does not belong in a bundle"
                )
            bundle_file = _open_bundle_file(folder_entry)
            bundle_files[folder_entry.name] = open_files.enter_context(bundle_file)
        for file_name, bundle_file in bundle_files.items():
            if file_name.endswith(".npz"):
                contents.archives[file_name] = bundle_file
                contents.digests[file_name] = digest(bundle_file)
                bundle_file.seek(0)
            else:
                file_size = os.fstat(bundle_file.fileno()).st_size
                file_text = bundle_file.read(file_size)
                contents.texts[file_name] = file_text
                contents.digests[file_name] = sha256(file_text)
        return contents


def environment() -> dict[str, str]:
    """Return the versions that the last bits of a result depend on, and `KERNELS`."""
    system_names = [platform.system(), platform.machine(), *platform.libc_ver()]
    return {
        "leakbound": _core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "instructions": _core.simd(),
        "system": " ".join(system_names),
        KERNELS: _linear_algebra_kernels(),
    }


def _linear_algebra_kernels() -> str:
    """Return which kernels of linear algebra are loaded, where a package can tell."""
    if find_spec("threadpoolctl") is None:
        return "unknown"
    from threadpoolctl import threadpool_info

    kernels = set()
    for library in threadpool_info():
        if library["user_api"] == "blas":
            architecture = library.get("architecture", "")
            kernels.add(f"{library['internal_api']} {architecture}".strip())
    return ", ".join(sorted(kernels)) or "unknown"


def statement(
    file_digests: Mapping[str, str],
    result: Result,
    notes: Mapping[str, object],
    model: str | None,
) -> bytes:
    """Return the statement about files; `notes` has versions and seeds."""
    statement_subjects = []
    if model:
        statement_subjects.append(_subject_of_statement("model", model))
    for name, file_digest in sorted(file_digests.items()):
        statement_subjects.append(_subject_of_statement(name, file_digest))
    audit_subject = _subject_of_statement("audit.json", file_digests["audit.json"])
    audit_subject["annotations"] = notes
    attestation = {
        "_type": STATEMENT,
        "subject": statement_subjects,
        "predicateType": PREDICATE,
        "predicate": {**_test_outcome_of_result(result), "configuration": [audit_subject]},
    }
    manifest_text = json.dumps(attestation, indent=1, ensure_ascii=False)
    return f"{manifest_text}\n".encode()


def _subject_of_statement(subject_name: str, sha256: str) -> dict[str, object]:
    """Return a file, or the model, as an in-toto statement names it."""
    return {"name": subject_name, "digest": {"sha256": sha256}}


def sums(file_digests: Mapping[str, str]) -> bytes:
    """Return digests of files as `sha256sum` writes and checks them."""
    lines = [
        f"{file_digest}  {file_name}\n" for file_name, file_digest in sorted(file_digests.items())
    ]
    return "".join(lines).encode()


def notes_of(result: Result, environment: Mapping[str, str], plan_seed: int | None) -> JsonObject:
    """Return the notes on a result: versions, and the seeds of audit and plan."""
    seeds: JsonObject = {"audit": result.provenance.seed}
    if plan_seed is not None:
        seeds["plan"] = str(plan_seed)
    return {"layout": LAYOUT, **environment, "seeds": seeds}


def assumptions_of(result: Result, vouchers: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return what a result assumes, and who vouches for each."""
    assumption_names = {assumption.name for assumption in result.assumptions}
    unknown_names = vouchers.keys() - assumption_names
    if unknown_names:
        listed_names = ", ".join(sorted(map(str, unknown_names)))
        raise OptionError(f"vouchers has {listed_names}, which is not an assumption of the result")
    for assumption_name, voucher in vouchers.items():
        if not isinstance(voucher, str) or not voucher.strip():
            raise OptionError(
                f"vouchers has {shown(voucher)} for {assumption_name!r}: give a name as text"
            )
        plain(voucher, f"vouchers.{assumption_name}")
    listed_assumptions: list[JsonValue] = []
    for assumption in result.assumptions:
        default_voucher = _DEFAULT_VOUCHERS[assumption.status]
        listed_assumptions.append(
            {
                "name": assumption.name,
                "statement": assumption.statement,
                "status": assumption.status,
                "vouched for by": vouchers.get(assumption.name, default_voucher),
            }
        )
    return listed_assumptions


def _open_bundle_file(folder_entry: os.DirEntry[str]) -> IO[bytes]:
    """Open a regular file of limited size."""
    if not folder_entry.is_file(follow_symlinks=False):
        raise FormatError(f"{folder_entry.name} is not a regular file; links are not followed")
    # What is put in its place meanwhile, a link or a pipe, is not followed nor waited for.
    open_flags = os.O_RDONLY
    for flag_of_some_systems in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        open_flags |= getattr(os, flag_of_some_systems, 0)
    file_descriptor = os.open(folder_entry.path, open_flags)
    bundle_file = os.fdopen(file_descriptor, "rb")
    file_status = os.fstat(file_descriptor)
    most_bytes = FILES[folder_entry.name]
    if file_status.st_size <= most_bytes and stat.S_ISREG(file_status.st_mode):
        return bundle_file
    bundle_file.close()
    raise FormatError(
        f"{folder_entry.name} has {file_status.st_size:,} bytes, and at most {most_bytes:,} "
        "are read"
    )


def _test_outcome_of_result(result: Result) -> JsonObject:
    """Return the outcome of a claim: failed if refuted, passed if it could have been refuted."""
    checked_claim = result.checked
    tests_by_outcome: dict[str, list[JsonValue]] = {
        "passedTests": [],
        "warnedTests": [],
        "failedTests": [],
    }
    if checked_claim is None:
        return {"result": "WARNED", **tests_by_outcome}
    test_name = f"{checked_claim.parameter} <= {checked_claim.value!r}"
    if checked_claim.delta:
        test_name += f" at delta = {checked_claim.delta!r}"
    if checked_claim.c is not None:
        test_name += f" and c <= {checked_claim.c!r}"
    is_doubtful = result.warnings or result.summary().contradicted
    test_outcome = "WARNED"
    if checked_claim.verdict == "refuted":
        test_outcome = "FAILED"
    elif checked_claim.verdict == "not refuted" and not is_doubtful:
        test_outcome = "PASSED"
    tests_by_outcome[f"{test_outcome.lower()}Tests"].append(test_name)
    return {"result": test_outcome, **tests_by_outcome}
