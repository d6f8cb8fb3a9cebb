"""Bundles: all that it takes to recompute a result, in one folder."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.canonical import plain
from leakbound._base.files import replacing_folder
from leakbound.errors import BundleError, IncompatibleOptionsError, OptionError
from leakbound.evidence.manifest import (
    FILES,
    LAYOUT,
    MANIFEST,
    STATEMENT,
    SUMS,
    environment,
    manifest,
    sums,
)
from leakbound.evidence.protocols import departure
from leakbound.evidence.recipe import RESULTS, recipe_of
from leakbound.planning import InclusionPlan
from leakbound.planning.commitment import Opening, checked_protocol
from leakbound.report import render

if TYPE_CHECKING:
    from leakbound._base.types import ArrayInput, HasMember, JsonValue
    from leakbound.results.base import Result

__all__ = ["assumptions_of", "page_of", "write_bundle"]

_VOUCHERS = {
    "checked": "leakbound, by the data",
    "declared": "the auditor",
    "approximate": "the auditor, roughly",
    "unverifiable": "nobody: it cannot be verified",
    "contradicted": "nobody: the data contradict it",
}
"""Who vouches for an assumption, by its status."""


def write_bundle(
    folder: str | os.PathLike[str],
    result: Result,
    *,
    scores: ArrayInput | Mapping[str, ArrayInput],
    plan: ArrayInput | HasMember | None = None,
    protocol: Mapping[str, JsonValue] | None = None,
    opening: Opening | None = None,
    accountant: Mapping[str, JsonValue] | None = None,
    model: str | None = None,
    vouchers: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> None:
    """Write a bundle; `Result.bundle` documents the arguments."""
    place = Path(folder)
    _check_place(place)
    if type(result).__name__ not in RESULTS:
        message = f"a {type(result).__name__} has no audit that can be run again from its options"
        raise BundleError(message)
    if opening is not None and (plan is not None or protocol is not None):
        message = "an opening has its own plan and protocol: leave out plan= and protocol="
        raise IncompatibleOptionsError(message)
    if opening is not None:
        plan, protocol = _as_plan(opening), opening.protocol
    if plan is None:
        message = "plan= is missing: the InclusionPlan, or who was a member"
        raise IncompatibleOptionsError(message)
    if model is not None and not re.fullmatch("[0-9a-f]{64}", str(model)):
        message = f"model is the SHA-256 of the model, 64 hexadecimal digits, got {model!r:.80}"
        raise OptionError(message)
    data = _data_of(scores, plan, dict(inputs or {}))
    recipe = recipe_of(result, data, dict(options or {}))
    content, arrays = recipe.encoded()
    files = {
        "audit.json": _json({"layout": LAYOUT, **content}),
        "inputs.npz": _archive(arrays),
        "result.json": (result.to_json() + "\n").encode(),
        "assumptions.json": _json(assumptions_of(result, vouchers or {})),
        "report.html": page_of(result),
    }
    if protocol is not None:
        agreed = checked_protocol(protocol)
        wrong = departure(agreed, result, recipe)
        if wrong:
            message = f"the audit is not what the protocol says: {wrong}"
            raise BundleError(message)
        files["protocol.json"] = _json(agreed)
    if isinstance(plan, InclusionPlan):
        kept = io.BytesIO()
        plan.write(kept)
        files["plan.npz"] = kept.getvalue()
    if opening is not None:
        files["opening.json"] = (opening.to_json() + "\n").encode()
        files["commitment.json"] = (opening.commitment.to_json() + "\n").encode()
    if accountant is not None:
        files["accountant.json"] = _json(plain(dict(accountant), "accountant"))
    seeds: dict[str, JsonValue] = {"audit": result.provenance.seed}
    if isinstance(plan, InclusionPlan) and plan.seed is not None:
        seeds["plan"] = str(plan.seed)
    notes = {"layout": LAYOUT, **environment(), "seeds": seeds}
    files[MANIFEST] = manifest(files, result, notes, model)
    files[SUMS] = sums(files)
    with replacing_folder(place) as new:
        for name, written in files.items():
            _write(new / name, written)


def assumptions_of(result: Result, vouchers: Mapping[str, str]) -> list[JsonValue]:
    """Return what a result assumes, and who vouches for each."""
    unknown = vouchers.keys() - {one.name for one in result.assumptions}
    if unknown:
        message = f"vouchers names {', '.join(sorted(unknown))}, which the result does not assume"
        raise OptionError(message)
    return [
        {
            "name": one.name,
            "statement": one.statement,
            "status": one.status,
            "vouched for by": vouchers.get(one.name, _VOUCHERS[one.status]),
        }
        for one in result.assumptions
    ]


def page_of(result: Result) -> bytes:
    """Return the page of a bundle."""
    return render(result).encode()


def _check_place(place: Path) -> None:
    """Refuse to put a bundle where something else is, which would be lost."""
    if not place.exists():
        return
    held = {one.name for one in place.iterdir()} if place.is_dir() else {place.name}
    if not held:
        return
    statement = place / MANIFEST
    if not statement.is_file() or STATEMENT.encode() not in statement.read_bytes()[:200]:
        message = f"{place} is there already, and is no bundle: name another folder"
        raise OptionError(message)
    others = held - FILES.keys() - {MANIFEST, SUMS}
    if others:
        message = (
            f"{place} holds {min(others)!r} too, which is of no bundle and would be lost: "
            "move it away, or name another folder"
        )
        raise OptionError(message)


def _as_plan(opening: Opening) -> InclusionPlan:
    if isinstance(opening.plan, InclusionPlan):
        return opening.plan
    return InclusionPlan(opening.plan.member, ids=opening.plan.ids)


def _data_of(scores: Any, plan: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the data arguments of the audit by name; ids of scores and of tables come along."""
    if isinstance(scores, Mapping) and set(scores) == {"baseline_scores", "attack_scores"}:
        data: dict[str, Any] = {**scores, "member": plan, **inputs}
    else:
        data = {"scores": scores, "member": plan, **inputs}
    if data.get("ids") is None:
        ids = getattr(scores, "ids", None)
        if hasattr(scores, "iloc"):
            ids = np.asarray(scores.index)
            ids = None if np.array_equal(ids, np.arange(ids.size)) else ids
        data.pop("ids", None)
        if ids is not None:
            data["ids"] = np.asarray(ids)
    return data


def _json(content: JsonValue) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _archive(arrays: Mapping[str, Any]) -> bytes:
    kept = io.BytesIO()
    np.savez_compressed(kept, allow_pickle=False, **arrays)
    return kept.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Write a file that is new, and see it reach the disk."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
