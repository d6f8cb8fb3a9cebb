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
from leakbound._base.files import recover_folder, replacing_folder
from leakbound._base.formatting import percent
from leakbound._base.records import is_digest, sha256
from leakbound._base.tables import TableInput
from leakbound._base.types import ArrayInput, HasMember, JsonObject, JsonValue, PathInput
from leakbound.errors import FormatError, OptionError
from leakbound.evidence import manifest
from leakbound.evidence.manifest import MANIFEST, SUMS
from leakbound.evidence.recipe import RESULTS, Recipe, recipe_departure, recipe_of
from leakbound.evidence.synthetic_recipe import SyntheticInputs, TablesRecipe, tables_recipe_of
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
_IMPLIED_QUANTITIES = {
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
    bundle_folder = Path(folder)
    recover_folder(bundle_folder)
    _check_bundle_is_replaceable(bundle_folder)
    if type(result).__name__ not in RESULTS:
        raise FormatError(
            f"a {type(result).__name__} cannot be recomputed from its options, so it has no bundle"
        )
    membership: object = plan
    opening = None
    if isinstance(plan, Opening):
        opening = plan
        membership = opening.plan
        protocol = protocol or opening.protocol
    elif isinstance(plan, HasMember) and not isinstance(plan, Plan):
        ids = getattr(plan, "ids", None)
        copies = getattr(plan, "copies", 1)
        membership = InclusionPlan(plan.member, ids=ids, copies=copies)
    _check_model_digest(model)
    # The recipe of the audit, which is run once more from the files.
    data_arguments = _data_arguments_of_audit(scores, membership, inputs)
    agreed_protocol = None
    if protocol is not None:
        agreed_protocol = checked_protocol(protocol)
    recipe = _recipe_that_follows_protocol(
        result,
        data_arguments=data_arguments,
        audit_options=dict(options or {}),
        protocol=agreed_protocol,
    )
    protocol_files = _bundle_files_of_protocol(agreed_protocol, opening)
    _write_verified_bundle(
        bundle_folder,
        result,
        recipe,
        model=model,
        vouchers=vouchers,
        protocol_files=protocol_files,
        membership=membership,
    )


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
    bundle_folder = Path(folder)
    recover_folder(bundle_folder)
    _check_bundle_is_replaceable(bundle_folder)
    _check_model_digest(model)
    tables_and_options = SyntheticInputs(
        members=members,
        nonmembers=nonmembers,
        synthetic=synthetic,
        reference=reference,
        columns=columns,
        missing=tuple(missing),
        challenge=challenge,
        attacks=attacks,
    )
    recipe = tables_recipe_of(result, tables_and_options)
    _write_verified_bundle(
        bundle_folder,
        result,
        recipe,
        model=model,
        vouchers=vouchers,
        protocol_files={},
        membership=None,
    )


def _write_verified_bundle(
    bundle_folder: Path,
    result: Result,
    recipe: Recipe | TablesRecipe,
    *,
    model: str | None,
    vouchers: Mapping[str, str] | None,
    protocol_files: Mapping[str, str],
    membership: object,
) -> None:
    """Write the files of a bundle; `protocol_files` are those of a protocol and of a commitment."""
    recipe_json, arrays = recipe.encoded()
    # 1. The files, with those of a commitment if there is one.
    assumptions = manifest.assumptions_of(result, vouchers or {})
    text_files = {
        "audit.json": _bundle_json({"layout": manifest.LAYOUT, **recipe_json}),
        "result.json": result.to_json(),
        "assumptions.json": _bundle_json(assumptions),
        **protocol_files,
    }
    files = _bundle_texts_as_utf8(text_files)
    # As whoever verifies it will: options from outside may be of types that JSON has not.
    result_read_back = type(result).from_json(text_files["result.json"])
    files["report.html"] = render(result_read_back).encode()
    files["inputs.npz"] = bytes_written(
        lambda file: np.savez_compressed(file, allow_pickle=False, **arrays)
    )
    plan_seed = None
    if isinstance(membership, Plan):
        files["plan.npz"] = bytes_written(membership.write)
        plan_seed = membership.seed
    # 2. The statement about all files, and the sums over both.
    digests = {file_name: sha256(file_content) for file_name, file_content in files.items()}
    notes = manifest.notes_of(result, manifest.environment(), plan_seed)
    files[MANIFEST] = manifest.statement(digests, result=result, notes=notes, model=model)
    digests[MANIFEST] = sha256(files[MANIFEST])
    files[SUMS] = manifest.sums(digests)
    _write_bundle_files(bundle_folder, files)


def _check_model_digest(model: str | None) -> None:
    """Check that what names the model is a digest."""
    if model is not None and not is_digest(model):
        raise OptionError(
            f"model must be the SHA-256 of the model, 64 hexadecimal digits, got {model!r:.80}"
        )


def _bundle_files_of_protocol(
    protocol: JsonObject | None, opening: Opening | None
) -> dict[str, str]:
    """Return the files of a protocol and of a commitment, if there are any."""
    files = {}
    if protocol is not None:
        files["protocol.json"] = _bundle_json(protocol)
    if opening is not None:
        files["opening.json"] = opening.to_json()
        files["commitment.json"] = opening.commitment.to_json()
    return files


def _bundle_texts_as_utf8(text_files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the bytes of text files, each with a line break at its end."""
    try:
        return {file_name: f"{text}\n".encode() for file_name, text in text_files.items()}
    except UnicodeEncodeError:
        raise FormatError(
            "an argument holds text that UTF-8 cannot, such as half of a surrogate pair"
        ) from None


def _check_bundle_is_replaceable(folder: Path) -> None:
    """Refuse a folder with other files, which would be lost."""
    if not folder.exists():
        return
    present = {folder.name}
    if folder.is_dir():
        present = {path.name for path in folder.iterdir()}
    foreign_files = present
    manifest_file = folder / MANIFEST
    if manifest_file.is_file():
        is_bundle = manifest.STATEMENT.encode() in manifest_file.read_bytes()
        if is_bundle:
            foreign_files = present - manifest.FILES.keys()
    if foreign_files:
        raise OptionError(
            f"{folder} contains {min(foreign_files)!r}, which would be lost: move it "
            "away, or choose another folder"
        )


def _recipe_that_follows_protocol(
    result: Result,
    data_arguments: Mapping[str, object],
    audit_options: Mapping[str, object],
    protocol: Mapping[str, JsonValue] | None,
) -> Recipe:
    """Return the recipe of a result, which must follow the protocol if there is one."""
    if protocol is None:
        return recipe_of(result, data=data_arguments, options=audit_options)
    agreement = Agreement.of(protocol)
    with_agreed_cuts = {"cuts": agreement.options["cuts"], **audit_options}
    recipe = recipe_of(result, data=data_arguments, options=with_agreed_cuts)
    departure_found = recipe_departure(agreement, result=result, recipe=recipe)
    if departure_found:
        raise FormatError(f"the audit does not follow the protocol: {departure_found}")
    return recipe


def _data_arguments_of_audit(
    scores: Any, membership: Any, inputs: dict[str, Any]
) -> dict[str, object]:
    """Return the data arguments of the audit by name, with ids of scores and tables."""
    example_ids = inputs.pop("ids", None)
    if example_ids is None and hasattr(scores, "iloc"):
        counting_index = np.arange(len(scores))
        if not np.array_equal(scores.index, counting_index):
            example_ids = scores.index
    elif example_ids is None:
        example_ids = getattr(scores, "ids", None)
    arguments = {"scores": scores, "member": membership, **inputs}
    if example_ids is None:
        return arguments
    arguments["ids"] = np.asarray(example_ids)
    features = inputs.get("features")
    # A bundle has no index of features: their rows are put in the order of the scores.
    feature_rows = ExampleOrder(arguments["ids"]).rows_of(features, "features")
    if feature_rows is not None:
        arguments["features"] = picked(features, feature_rows)
    return arguments


def _bundle_json(content: JsonValue) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)


def bytes_written(write_to: Callable[[io.BytesIO], None]) -> bytes:
    """Return what a function writes to a file."""
    file = io.BytesIO()
    write_to(file)
    return file.getvalue()


def _write_bundle_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files to a folder, and put it in place only if the bundle verifies."""
    with replacing_folder(folder) as new_folder:
        for file_name, file_content in files.items():
            with (new_folder / file_name).open("xb") as file:
                file.write(file_content)
                file.flush()
                os.fsync(file.fileno())
        flaw = flaw_of_written(new_folder)
        if flaw:
            raise FormatError(f"this bundle would not verify: {flaw}")


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
    for option, name in names.items():
        if not isinstance(name, str) or not name.strip():
            raise OptionError(f"{option} must be a non-empty name, got {name!r:.80}")
    implied = result.implied()
    summary = result.summary()
    kind_of_result = KINDS[result.kind]
    if not kind_of_result.proves:
        raise OptionError(
            f"a result of kind {result.kind!r} is not a bound, not a metric of a model card"
        )
    claim = result.claim
    terms = summary.terms
    tag = f"{kind_of_result.tag} at {percent(result.confidence)} confidence"
    metrics: list[JsonValue] = []

    def add_metric(name: str, value: float, words: str) -> None:
        if math.isfinite(value):
            metrics.append({"type": f"{name}_lower_bound", "value": value, "name": words})

    if claim.has_epsilon:
        at_delta = terms.at.strip() or f"at δ = {claim.delta:g}"
        add_metric("epsilon", summary.epsilon, f"ε {at_delta}{terms.replaced}: {tag}")
    else:
        add_metric(claim.parameter, result.bound, f"{terms.symbol} of {terms.family}: {tag}")
    if implied is not None:
        for name, words in _IMPLIED_QUANTITIES.items():
            value = float(getattr(implied, name))
            add_metric(name, value, f"{words}: {tag}, implied by the refuted curve")
    audit: JsonValue = {
        "task": {"type": "privacy-audit", "name": "Privacy audit"},
        "dataset": {"type": "canaries", "name": dataset},
        "metrics": metrics,
    }
    return [{"name": model, "results": [audit]}]
