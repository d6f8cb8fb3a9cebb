"""Bundles as tests write them, and put seals back on after tampering."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from commitments import PROTOCOL, scored
from leakbound._base.types import AnyArray
from leakbound.evidence import verify_bundle
from leakbound.planning import Opening

__all__ = [
    "MODEL",
    "NOTES",
    "change",
    "change_array",
    "resealed",
    "summed",
    "tampered",
    "why",
    "write",
]

MODEL = "ab" * 32
NOTES = "predicate/configuration/0/annotations"


def write(folder: Path, m: int = 300) -> tuple[Any, Opening]:
    """Write a bundle with all files that one can have; return the result and the opening."""
    plan, scores = scored(m)
    opening = plan.commit(PROTOCOL | {"checked": {"epsilon": 1.0}})
    result = opening.audit({"loss": scores})
    result.bundle(
        folder,
        scores={"loss": scores},
        plan=opening,
        model=MODEL,
        vouchers={"independent fair coins": "A. Auditor"},
    )
    return result, opening


def resealed(folder: Path) -> None:
    """Put right digests over changed files, as a forger would."""
    path = folder / "manifest.json"
    statement = json.loads(path.read_bytes())
    described = [*statement["subject"], *statement["predicate"]["configuration"]]
    for one in described:
        file = folder / one["name"]
        if file.exists():
            one["digest"]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_bytes((json.dumps(statement, indent=1, ensure_ascii=False) + "\n").encode())
    summed(folder)


def summed(folder: Path) -> None:
    """Write the file of sums over whatever is there."""
    names = sorted(file.name for file in folder.iterdir() if file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def tampered(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change the JSON of a file and put the seals back on."""
    path = folder / name
    content = json.loads(path.read_bytes())
    content = change(content) or content
    indent = None if name == "result.json" else 1
    path.write_bytes((json.dumps(content, indent=indent, ensure_ascii=False) + "\n").encode())
    resealed(folder)


def change_array(folder: Path, name: str, values: AnyArray) -> None:
    """Put an array among the inputs, or in the place of one, with the seals as they were."""
    archive = dict(np.load(folder / "inputs.npz"))
    archive[name] = values
    np.savez_compressed(folder / "inputs.npz", allow_pickle=False, **archive)


def why(folder: Path, **options: Any) -> str:
    """Return why a bundle is invalid; empty if it is valid."""
    found = verify_bundle(folder, **options)
    assert found.valid == (str(found) == "VALID")
    return found.why


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
