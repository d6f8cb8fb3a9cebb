"""What is handed over: bundles to recompute a result from, and bounds for a model card."""

import io
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakbound._base.alignment import ExampleOrder, picked
from leakbound._base.canonical import is_digest, sha256
from leakbound._base.files import recover_folder, replacing_folder
from leakbound._base.formatting import percent
from leakbound._base.tables import TableInput
from leakbound._base.types import ArrayInput, HasMember, JsonObject, JsonValue, PathInput
from leakbound.errors import FormatError, OptionError
from leakbound.evidence import manifest
from leakbound.evidence.manifest import MANIFEST, SUMS
from leakbound.evidence.recipe import RESULTS, Recipe, departure, recipe_of
from leakbound.evidence.tables import SyntheticInputs, TablesRecipe, tables_recipe_of
from leakbound.evidence.verification import flaw_of_written
from leakbound.planning import InclusionPlan
from leakbound.planning.commitment import Opening
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import Agreement, checked_protocol
from leakbound.report import render
from leakbound.report.description import KINDS
from leakbound.results.base import Audit, Result
from leakbound.results.synthetic import SyntheticResult

# Names of what a refuted curve implies.
_IMPLIED = {
    "advantage": "membership advantage",
    "tpr_at_fpr_0_001": "true positive rate at a false positive rate of 0.1 %",
    "tpr_at_fpr_0_01": "true positive rate at a false positive rate of 1 %",
    "posterior": "posterior of a flagged member, prior 1/2",
}


def write_bundle(
    folder: PathInput,
    result: Result,
    *,
    scores: ArrayInput | Mapping[str, ArrayInput],
    plan: ArrayInput | HasMember | Opening,
    protocol: Mapping[str, JsonValue] | None = None,
    model: str | None = None,
    vouchers: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    **inputs: object,
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
        Other data of the audit by their names, such as `propensity`, `prior` or `features`, which
        may be a table as the audit took it: words, dates and missing values are stored by column.
    """
    place = Path(folder)
    recover_folder(place)
    _check_place(place)
    if type(result).__name__ not in RESULTS:
        raise FormatError(
            f"a {type(result).__name__} cannot be recomputed from its options, so it has no bundle"
        )
    drawn: object = plan
    opening = None
    if isinstance(plan, Opening):
        opening = plan
        drawn = opening.plan
        protocol = protocol or opening.protocol
    elif isinstance(plan, HasMember) and not isinstance(plan, Plan):
        several = getattr(plan, "copies", 1)
        drawn = InclusionPlan(plan.member, ids=getattr(plan, "ids", None), copies=several)
    _check_model(model)
    # The recipe of the audit, which is run once more from the files.
    data = _data_of(scores, plan=drawn, inputs=inputs)
    agreed = None
    if protocol is not None:
        agreed = checked_protocol(protocol)
    recipe = _recipe(result, data=data, options=dict(options or {}), protocol=agreed)
    agreed_texts = _agreed_texts(agreed, opening)
    _write(place, result, recipe, model=model, vouchers=vouchers, texts=agreed_texts, plan=drawn)


def write_synthetic_bundle(
    folder: PathInput,
    result: SyntheticResult,
    *,
    members: TableInput,
    nonmembers: TableInput,
    synthetic: TableInput,
    reference: TableInput | None = None,
    columns: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    challenge: bool | None = None,
    attacks: Mapping[str, ArrayInput] | None = None,
    model: str | None = None,
    vouchers: Mapping[str, str] | None = None,
) -> None:
    """Write everything needed to recompute an audit of a synthetic table, completely or not at all.

    The bundle holds all records: where they are personal data, so is the bundle.

    Parameters
    ----------
    folder : str or os.PathLike
        A new or empty folder, or a bundle, which is replaced.
    result : SyntheticResult
        What `audit_synthetic` returned.
    members, nonmembers, synthetic, reference : table
        The tables that were audited.
    columns, missing, challenge : optional
        What columns are, marks of missing values, and whether records challenge the split, if the
        audit was given them.
    attacks : mapping of str to array-like, optional
        Scores of one's own, if they were audited; attacks of this package are known by the result.
    model : str, optional
        SHA-256 of the generator, 64 hexadecimal digits.
    vouchers : mapping of str to str, optional
        Who vouches for an assumption, by its name; the default depends on its status.
    """
    place = Path(folder)
    recover_folder(place)
    _check_place(place)
    _check_model(model)
    given = SyntheticInputs(
        members=members,
        nonmembers=nonmembers,
        synthetic=synthetic,
        reference=reference,
        columns=columns,
        missing=tuple(missing),
        challenge=challenge,
        attacks=attacks,
    )
    recipe = tables_recipe_of(result, given)
    _write(place, result, recipe, model=model, vouchers=vouchers, texts={}, plan=None)


def _write(
    place: Path,
    result: Result,
    recipe: Recipe | TablesRecipe,
    *,
    model: str | None,
    vouchers: Mapping[str, str] | None,
    texts: Mapping[str, str],
    plan: object,
) -> None:
    """Write the files of a bundle; `texts` are those of a protocol and of a commitment."""
    content, arrays = recipe.encoded()
    # 1. The files, with those of a commitment if there is one.
    files = _as_utf8(
        {
            "audit.json": _json({"layout": manifest.LAYOUT, **content}),
            "result.json": result.to_json(),
            "assumptions.json": _json(manifest.assumptions_of(result, vouchers or {})),
            **texts,
        }
    )
    files["report.html"] = render(result).encode()
    files["inputs.npz"] = written(
        lambda file: np.savez_compressed(file, allow_pickle=False, **arrays)
    )
    tossed = None
    if isinstance(plan, Plan):
        files["plan.npz"] = written(plan.write)
        tossed = plan.seed
    # 2. The statement about all files, and the sums over both.
    digests = {name: sha256(file) for name, file in files.items()}
    notes = manifest.notes_of(result, made=manifest.environment(), tossed=tossed)
    files[MANIFEST] = manifest.statement(digests, result=result, notes=notes, model=model)
    files[SUMS] = manifest.sums(digests | {MANIFEST: sha256(files[MANIFEST])})
    _put(place, files)


def _check_model(model: str | None) -> None:
    """Check that what names the model is a digest."""
    if model is not None and not is_digest(model):
        raise OptionError(
            f"model must be the SHA-256 of the model, 64 hexadecimal digits, got {model!r:.80}"
        )


def _agreed_texts(protocol: JsonObject | None, opening: Opening | None) -> dict[str, str]:
    """Return the files of a protocol and of a commitment, if there are any."""
    texts = {}
    if protocol is not None:
        texts["protocol.json"] = _json(protocol)
    if opening is not None:
        texts["opening.json"] = opening.to_json()
        texts["commitment.json"] = opening.commitment.to_json()
    return texts


def _as_utf8(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return the bytes of text files, each with a line break at its end."""
    try:
        return {name: f"{text}\n".encode() for name, text in texts.items()}
    except UnicodeEncodeError:
        raise FormatError(
            "an argument holds text that UTF-8 cannot, such as half of a surrogate pair"
        ) from None


def _check_place(place: Path) -> None:
    """Refuse a folder with other files, which would be lost."""
    if not place.exists():
        return
    held = {place.name}
    if place.is_dir():
        held = {one.name for one in place.iterdir()}
    statement = place / MANIFEST
    ours = statement.is_file() and manifest.STATEMENT.encode() in statement.read_bytes()
    others = held
    if ours:
        others = held - manifest.FILES.keys()
    if others:
        raise OptionError(
            f"{place} contains {min(others)!r}, which would be lost: move it "
            "away, or choose another folder"
        )


def _recipe(
    result: Result,
    data: Mapping[str, object],
    options: Mapping[str, object],
    protocol: Mapping[str, JsonValue] | None,
) -> Recipe:
    """Return the recipe of a result, which must follow the protocol if there is one."""
    if protocol is None:
        return recipe_of(result, data=data, options=options)
    agreed = Agreement.of(protocol)
    recipe = recipe_of(result, data=data, options={"cuts": agreed.options["cuts"], **options})
    wrong = departure(agreed, result=result, recipe=recipe)
    if wrong:
        raise FormatError(f"the audit does not follow the protocol: {wrong}")
    return recipe


def _data_of(scores: Any, plan: Any, inputs: dict[str, Any]) -> dict[str, object]:
    """Return the data arguments of the audit by name, with ids of scores and tables."""
    ids = inputs.pop("ids", None)
    if ids is None and hasattr(scores, "iloc"):
        if not np.array_equal(scores.index, np.arange(len(scores))):
            ids = scores.index
    elif ids is None:
        ids = getattr(scores, "ids", None)
    named = {}
    if ids is not None:
        named = {"ids": np.asarray(ids)}
        features = inputs.get("features")
        # A bundle has no index of features: their rows are put in the order of the scores.
        rows = ExampleOrder(named["ids"]).rows_of(features, "features")
        if rows is not None:
            inputs = {**inputs, "features": picked(features, rows)}
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


def model_index(result: Audit, *, model: str, dataset: str) -> list[JsonValue]:
    """Return the bounds of a result as the `model-index` of a Hugging Face model card.

    A bound on replacing one example has its ε only: it implies nothing about membership.

    Parameters
    ----------
    result : AuditResult, PanoramiaResult or ZeroRunResult
        A result that proves something, or tried to: not an estimate, nor an exploratory number.
    model, dataset : str
        Name of the model, and what was audited, in a few words.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(300) % 2 == 0
    >>> result = lb.audit(member + np.arange(300) / 1e4, lb.Coins(member))
    >>> index = model_index(result, model="digits", dataset="300 canaries")
    >>> index[0]["results"][0]["metrics"][0]["type"]
    'epsilon_lower_bound'
    """
    names: dict[str, object] = {"model": model, "dataset": dataset}
    for name, text in names.items():
        if not isinstance(text, str) or not text.strip():
            raise OptionError(f"{name} must be a non-empty name, got {text!r:.80}")
    implied = result.implied()
    said = result.summary()
    if not KINDS[result.kind].proves:
        raise OptionError(
            f"a result of kind {result.kind!r} is not a bound, not a metric of a model card"
        )
    tag = f"{KINDS[result.kind].tag} at {percent(result.confidence)} confidence"
    at = said.terms.at.strip() or f"at δ = {result.claim.delta:g}"
    bounds = [("epsilon", said.epsilon, f"ε {at}{said.terms.replaced}: {tag}")]
    if not result.claim.has_epsilon:
        own = f"{said.terms.symbol} of {said.terms.family}: {tag}"
        bounds = [(result.claim.parameter, result.bound, own)]
    if implied is not None:
        for name, words in _IMPLIED.items():
            value = float(getattr(implied, name))
            bounds.append((name, value, f"{words}: {tag}, implied by the refuted curve"))
    metrics: list[JsonValue] = []
    for name, value, words in bounds:
        if math.isfinite(value):
            metrics.append({"type": f"{name}_lower_bound", "value": value, "name": words})
    audit: JsonValue = {
        "task": {"type": "privacy-audit", "name": "Privacy audit"},
        "dataset": {"type": "canaries", "name": dataset},
        "metrics": metrics,
    }
    return [{"name": model, "results": [audit]}]
