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
_OTHERS: Final = {
    "nonce": "the opening of a commitment: read its folder by leakbound.planning.load_opening",
    "sha256": "a commitment: read it by leakbound.planning.Commitment.from_json",
    "predicateType": "the manifest of a bundle: load the result.json beside it",
}
# Characters of the longest literal of JSON, which may be cut in the middle
_LITERAL: Final = 5
_ARCHIVE: Final = b"PK\x03\x04"


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
    text = path
    name = "the text"
    if not isinstance(path, str) or not path.lstrip().startswith("{"):
        place = Path(path)
        name = str(place)
        _refuse_others(place)
        text = place
    try:
        return _record(text)
    except FormatError as error:
        raise FormatError(f"{name} is not a stored result: {error}") from error


def _refuse_others(place: Path) -> None:
    """Refuse what is not a text file, and say what it is."""
    if place.is_dir():
        what = "a folder"
        if (place / "manifest.json").exists():
            what = "the folder of a bundle (leakbound verify checks it)"
        advice = "give the file that result.to_json wrote"
        if (place / "result.json").exists():
            advice = f"load {place / 'result.json'}"
        raise FormatError(f"{place} is {what}, not a stored result: {advice}")
    with place.open("rb") as file:
        start = file.read(64)
    if start.startswith(_ARCHIVE):
        raise FormatError(f"{place} is {_of_archive(place)}")
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise FormatError(
            f"{place} is a report for people, without the result: store results by "
            "result.to_json(path), and load that file"
        )


def _of_archive(place: Path) -> str:
    """Return what a zip archive is."""
    try:
        with ZipFile(place) as archive:
            parts = set(archive.namelist())
    except BadZipFile:
        return "an archive that ends too early, not a stored result"
    if "inclusion_plan.npy" in parts:
        return "a plan, not a result: read it by leakbound.InclusionPlan.load(path)"
    return "a zip archive, such as .npz, not a stored result: store results by result.to_json(path)"


def _record(source: Any) -> Record:
    """Read JSON of any of the types."""
    text = text_of(source)
    try:
        data = parsed(text)
    except FormatError as error:
        if _ends_early(text):
            raise FormatError("the file ends too early: copy or store it again") from error
        raise
    if not isinstance(data, dict):
        raise FormatError(
            f"it holds a {type(data).__name__}: write each result to a file of its own"
        )
    schema = data.get("schema")
    kind = data.get("type")
    if kind is None or schema is None:
        raise FormatError(_other(data))
    if type(schema) is int and schema > SCHEMA:
        raise FormatError(
            f"it has layout (schema) {schema}, and this version of leakbound reads {SCHEMA}: a "
            "later version wrote it, so install that one"
        )
    homes = {name: module for module, names in _TYPES.items() for name in names}
    if not isinstance(kind, str) or kind not in homes:
        raise FormatError(
            f"its type {shown(kind)} is not stored by itself, as these are: "
            f"{', '.join(sorted(homes))}"
        )
    found: type[Record] = getattr(import_module(homes[kind]), kind)
    return found.from_dict(data)


def _ends_early(text: str) -> bool:
    """Return whether text is the beginning of JSON, and nothing worse is wrong with it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        cut = "Unterminated string" in error.msg or len(rest) <= _LITERAL
        return cut and not rest.endswith("}")
    except (ValueError, RecursionError):
        return False
    return False


def _other(data: dict[str, object]) -> str:
    """Return what JSON without a type is."""
    known = (words for name, words in _OTHERS.items() if name in data)
    missing = "it has no type and schema, which every stored result has"
    what = next(known, "")
    if what:
        return f"it is {what}"
    return missing
