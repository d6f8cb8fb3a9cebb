"""Stored results read back, whatever their type."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from leakbound._base.checks import shown
from leakbound._base.records import SCHEMA, Record, parsed, text_of
from leakbound._base.types import PathInput
from leakbound.errors import FormatError

_TYPES: Final = {
    "leakbound": (
        "AuditResult",
        "DPSGDAudit",
        "DPStepAudit",
        "PanoramiaResult",
        "SyntheticResult",
        "TradeOff",
        "ZeroRunResult",
    ),
    "leakbound.dp_sgd": ("BatchesAudit",),
    "leakbound.panoramia": ("PanoramiaReport",),
    "leakbound.planning": ("CanariesNeeded", "Power"),
    "leakbound.propensity": ("Falsification", "FormTest", "Overlap"),
}
"""The types with a stored form of their own, and where they are."""
# What other files are, by the names that their JSON has
_OTHER_FILES: Final = {
    "nonce": "the opening of a commitment: read its folder by leakbound.planning.load_opening",
    "sha256": "a commitment: read it by leakbound.planning.Commitment.from_json",
    "predicateType": "the manifest of a bundle: load the result.json beside it",
}
# Characters of the longest literal of JSON, which may be cut in the middle
_LONGEST_LITERAL: Final = 5
_START_OF_ARCHIVE: Final = b"PK\x03\x04"
_STARTS_OF_REPORT: Final = (b"<!doctype", b"<html")


def load(path: PathInput) -> Any:
    """Read a result that was stored as JSON, whatever audit it is from.

    Parameters
    ----------
    path : str or os.PathLike
        A file that ``result.to_json(path)`` or the option ``--out`` of a command wrote, or JSON
        itself: text that begins with a brace.

    Returns
    -------
    Record
        The result, of the type that wrote it: `AuditResult`, `SyntheticResult`, `ZeroRunResult`,
        `PanoramiaResult`, `PanoramiaReport`, `DPSGDAudit`, `DPStepAudit`, `BatchesAudit`; also a
        forecast of `leakbound.planning`, a `TradeOff` or a test of propensities. It equals the
        result that was stored.

    Raises
    ------
    FormatError
        If the file is something else, which the message names: a plan, the folder of a bundle, a
        report, a file that ends too early, a result of a later version.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(400) % 2 == 0
    >>> result = lb.audit(member + np.arange(400) / 1e3, lb.Coins(member), seed=0)
    >>> lb.load(result.to_json()) == result
    True
    """
    source = path
    name = "the text"
    is_json = isinstance(path, str) and path.lstrip().startswith("{")
    if not is_json:
        source = Path(path)
        name = str(source)
        _refuse_files_of_other_kinds(source)
    try:
        return _stored_record(source)
    except FormatError as error:
        raise FormatError(f"{name} is not a stored result: {error}") from error


def _refuse_files_of_other_kinds(path: Path) -> None:
    """Refuse what is not a text file, and say what it is."""
    if path.is_dir():
        description = "a folder"
        if (path / "manifest.json").exists():
            description = "the folder of a bundle (leakbound verify checks it)"
        advice = "give the file that result.to_json wrote"
        result_file = path / "result.json"
        if result_file.exists():
            advice = f"load {result_file}"
        raise FormatError(f"{path} is {description}, not a stored result: {advice}")
    with path.open("rb") as file:
        start = file.read(64)
    if start.startswith(_START_OF_ARCHIVE):
        raise FormatError(f"{path} is {_archive_in_words(path)}")
    if start.lstrip().lower().startswith(_STARTS_OF_REPORT):
        raise FormatError(
            f"{path} is a report for people, without the result: store results by "
            "result.to_json(path), and load that file"
        )


def _archive_in_words(path: Path) -> str:
    """Return what a zip archive is."""
    try:
        with ZipFile(path) as archive:
            file_names = archive.namelist()
    except BadZipFile:
        return "an archive that ends too early, not a stored result"
    if "inclusion_plan.npy" in file_names:
        return "a plan, not a result: read it by leakbound.InclusionPlan.load(path)"
    return "a zip archive, such as .npz, not a stored result: store results by result.to_json(path)"


def _stored_record(source: Any) -> Record:
    """Read JSON of any of the types."""
    text = text_of(source)
    try:
        data = parsed(text)
    except FormatError as error:
        if _json_ends_too_early(text):
            raise FormatError("the file ends too early: copy or store it again") from error
        raise
    if not isinstance(data, dict):
        raise FormatError(
            f"it holds a {type(data).__name__}: write each result to a file of its own"
        )
    schema = data.get("schema")
    type_name = data.get("type")
    if type_name is None or schema is None:
        raise FormatError(_other_json_in_words(data))
    if type(schema) is int and schema > SCHEMA:
        raise FormatError(
            f"it has layout (schema) {schema}, and this version of leakbound reads {SCHEMA}: a "
            "later version wrote it, so install that one"
        )
    modules = {name: module for module, names in _TYPES.items() for name in names}
    if not isinstance(type_name, str) or type_name not in modules:
        raise FormatError(
            f"its type {shown(type_name)} is not stored by itself, as these are: "
            f"{', '.join(sorted(modules))}"
        )
    module = import_module(modules[type_name])
    record_type: type[Record] = getattr(module, type_name)
    return record_type.from_dict(data)


def _json_ends_too_early(text: str) -> bool:
    """Return whether text is the beginning of JSON, and nothing worse is wrong with it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        is_cut_literal = len(rest) <= _LONGEST_LITERAL
        is_cut = is_cut_literal or "Unterminated string" in error.msg
        return is_cut and not rest.endswith("}")
    except (ValueError, RecursionError):
        return False
    return False


def _other_json_in_words(data: dict[str, object]) -> str:
    """Return what JSON without a type is."""
    for name, description in _OTHER_FILES.items():
        if name in data:
            return f"it is {description}"
    return "it has no type and schema, which every stored result has"
