"""Bundles: everything needed to recompute a result, in one folder."""

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leakbound._base.canonical import is_digest, sha256
from leakbound._base.files import replacing_folder
from leakbound._base.types import ArrayInput, HasMember, JsonValue
from leakbound.errors import FormatError, OptionError
from leakbound.evidence import manifest
from leakbound.evidence.manifest import MANIFEST, SUMS
from leakbound.evidence.recipe import RESULTS, Recipe, departure, recipe_of
from leakbound.evidence.verification import flaw_of_written
from leakbound.planning import InclusionPlan
from leakbound.planning.commitment import Opening
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import Agreed, checked_protocol
from leakbound.report import render
from leakbound.results.base import Result


def write_bundle(
    folder: str | os.PathLike[str],
    result: Result,
    *,
    scores: ArrayInput | Mapping[str, ArrayInput],
    plan: ArrayInput | HasMember | Opening,
    protocol: Mapping[str, JsonValue] | None = None,
    model: str | None = None,
    vouchers: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    **inputs: Any,
) -> None:
    """Write everything needed to recompute a result to a folder, completely or not at all.

    Parameters
    ----------
    folder : str or os.PathLike
        A new or empty folder, or a bundle, which is replaced.
    result : AuditResult, ZeroRunResult or PanoramiaResult
        What the audit returned.
    scores : array-like or mapping
        The scores that were audited. With a protocol, audit and pass them as ``{name: scores}``.
    plan : InclusionPlan, ChoicePlan, array-like of shape (m,), or Opening
        Membership, or the candidates that were chosen; or the opening of their commitment, which
        has the protocol too.
    protocol : mapping, optional
        Rules of the audit, as `leakbound.planning.read_protocol` returns them.
    model : str, optional
        SHA-256 of the model, 64 hexadecimal digits.
    vouchers : mapping of str to str, optional
        Who vouches for an assumption, by its name; the default depends on its status.
    options : mapping, optional
        Options of the audit that the result does not store, by their names.
    **inputs : array-like
        Other data of the audit by their names, such as `propensity`, `features` or `prior`.
    """
    place = Path(folder)
    _check_place(place)
    if type(result).__name__ not in RESULTS:
        raise FormatError(
            f"a {type(result).__name__} cannot be recomputed from its options, so it has no bundle"
        )
    drawn: Any = plan
    opening = drawn if isinstance(drawn, Opening) else None
    if opening is not None:
        drawn, protocol = opening.plan, protocol or opening.protocol
    if isinstance(drawn, HasMember) and not isinstance(drawn, Plan):
        drawn = InclusionPlan(drawn.member, ids=getattr(drawn, "ids", None))
    if model is not None and not is_digest(model):
        raise OptionError(
            f"model must be the SHA-256 of the model, 64 hexadecimal digits, got {model!r:.80}"
        )
    # 1. The recipe of the audit, which is run once more from the files.
    data = _data_of(scores, drawn, inputs)
    agreed = None if protocol is None else checked_protocol(protocol)
    recipe = _recipe(result, data, dict(options or {}), agreed)
    content, arrays = recipe.encoded()
    # 2. The files, with those of a commitment if there is one.
    texts: dict[str, str] = {
        "audit.json": _json({"layout": manifest.LAYOUT, **content}),
        "result.json": result.to_json(),
        "assumptions.json": _json(manifest.assumptions_of(result, vouchers or {})),
    }
    if agreed is not None:
        texts["protocol.json"] = _json(agreed)
    if opening is not None:
        texts["opening.json"] = opening.to_json()
        texts["commitment.json"] = opening.commitment.to_json()
    try:
        files = {name: f"{text}\n".encode() for name, text in texts.items()}
    except UnicodeEncodeError:
        raise FormatError(
            "an argument holds text that UTF-8 cannot, such as half of a surrogate pair"
        ) from None
    files["report.html"] = render(result).encode()
    files["inputs.npz"] = written(
        lambda file: np.savez_compressed(file, allow_pickle=False, **arrays)
    )
    tossed = None
    if isinstance(drawn, Plan):
        files["plan.npz"], tossed = written(drawn.write), drawn.seed
    # 3. The statement about all files, and the sums over both.
    digests = {name: sha256(file) for name, file in files.items()}
    notes = manifest.notes_of(result, manifest.environment(), tossed)
    files[MANIFEST] = manifest.statement(digests, result, notes, model)
    files[SUMS] = manifest.sums(digests | {MANIFEST: sha256(files[MANIFEST])})
    _put(place, files)


def _check_place(place: Path) -> None:
    """Refuse a folder with other files, which would be lost."""
    if not place.exists():
        return
    held = {one.name for one in place.iterdir()} if place.is_dir() else {place.name}
    statement = place / MANIFEST
    ours = statement.is_file() and manifest.STATEMENT.encode() in statement.read_bytes()
    others = held - manifest.FILES.keys() if ours else held
    if others:
        raise OptionError(
            f"{place} contains {min(others)!r}, which would be lost: move it "
            "away, or choose another folder"
        )


def _recipe(
    result: Result,
    data: Mapping[str, Any],
    options: Mapping[str, Any],
    protocol: Mapping[str, JsonValue] | None,
) -> Recipe:
    """Return the recipe of a result, which must follow the protocol if there is one."""
    if protocol is None:
        return recipe_of(result, data, options)
    agreed = Agreed.of(protocol)
    recipe = recipe_of(result, data, {"cuts": agreed.options["cuts"], **options})
    wrong = departure(agreed, result, recipe)
    if wrong:
        raise FormatError(f"the audit does not follow the protocol: {wrong}")
    return recipe


def _data_of(scores: Any, plan: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the data arguments of the audit by name, with ids of scores and tables."""
    ids = inputs.pop("ids", None)
    if ids is None and hasattr(scores, "iloc"):
        ids = None if np.array_equal(scores.index, np.arange(len(scores))) else scores.index
    elif ids is None:
        ids = getattr(scores, "ids", None)
    named = {} if ids is None else {"ids": np.asarray(ids)}
    return {"scores": scores, "member": plan, **inputs, **named}


def _json(content: JsonValue) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


def written(write: Callable[[io.BytesIO], None]) -> bytes:
    """Return what a function writes to a file."""
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _put(place: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a folder, and put it in place only if the bundle verifies."""
    with replacing_folder(place) as new:
        for name, content in files.items():
            with (new / name).open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        wrong = flaw_of_written(new)
        if wrong:
            raise FormatError(f"this bundle would not verify: {wrong}")
