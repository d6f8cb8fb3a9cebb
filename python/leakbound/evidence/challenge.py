"""A challenge between an auditor and a trainer who do not trust each other."""

import csv
import io
import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leakbound._base.canonical import digest, sha256
from leakbound._base.files import read_array_file, replacing_folder
from leakbound._base.types import ArrayInput, JsonValue
from leakbound.errors import FormatError, OptionError
from leakbound.planning import Commitment, InclusionPlan, Opening, load_opening
from leakbound.planning.protocol import Agreed, checked_protocol
from leakbound.results import AuditResult

DEFAULT: dict[str, JsonValue] = {
    "claim": {"type": "PureDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "attacks": ["score"],
    "unit": "one canary",
    "canaries": "those of the file whose SHA-256 is canaries_sha256",
}
"""The protocol where none is given."""
# The probability of each coin of a challenge.
_FAIR = 0.5


def new_challenge(
    canaries: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    protocol: Mapping[str, JsonValue] | None = None,
) -> Commitment:
    """Toss a coin for each canary, commit to the coins, and lay out what each side gets.

    Parameters
    ----------
    canaries : str or os.PathLike
        A file of canaries: ``.csv`` with a header, ``.jsonl`` or ``.txt`` with one a line, or
        ``.npy`` with one in each row. Lines end in LF or CR LF, and in nothing else.
    folder : str or os.PathLike
        A new or empty folder. It gets ``for-the-trainer`` with the canaries to train on,
        ``secret`` with all of them and the coins, and ``public`` with the commitment, which is
        returned.
    protocol : mapping, optional
        What the audit will be; by default a bound on pure ε from one column of scores. The digest
        of the canaries is added, as `canaries_sha256`. A protocol that `judge_challenge` could not
        keep with so many canaries is refused.
    """
    source, place = Path(canaries), Path(folder)
    if place.exists() and any(place.iterdir()):
        message = f"{place} is not empty: a challenge needs a folder of its own"
        raise OptionError(message)
    if not source.is_file():
        message = f"{source} is no regular file: canaries are read from a file, as often as needed"
        raise OptionError(message)
    content = source.read_bytes()
    count, some = _records(source, content)
    if count < 2:
        message = f"{source} has {count} canaries: a challenge needs two at least"
        raise FormatError(message)
    plan, own = InclusionPlan.create(count), sha256(content)
    agreed = {"canaries_sha256": own, **(DEFAULT if protocol is None else protocol)}
    if agreed["canaries_sha256"] != own:
        message = (
            f"the protocol's canaries_sha256 is not the digest of {source}, {own}: leave it out, "
            "or name the file that it is of"
        )
        raise OptionError(message)
    # The audit is rehearsed before a coin is handed out.
    _check_judged(Agreed.of(checked_protocol(agreed)))
    opening = plan.commit(agreed)
    name = f"canaries{source.suffix.lower()}"
    with replacing_folder(place) as new:
        for part in ("for-the-trainer", "secret", "public"):
            (new / part).mkdir(mode=0o700 if part == "secret" else 0o777)
        (new / "for-the-trainer" / name).write_bytes(some(plan.indices.tolist()))
        (new / "secret" / name).write_bytes(content)
        opening.save(new / "secret")
        opening.commitment.to_json(new / "public" / "commitment.json")
    return opening.commitment


def opened_challenge(folder: str | os.PathLike[str]) -> Opening:
    """Open a challenge: its commitment, and that its canaries are those committed to.

    Parameters
    ----------
    folder : str or os.PathLike
        What `new_challenge` wrote. FormatError if coins, protocol, nonce or canaries are not what
        was committed to.
    """
    place = Path(folder)
    opening = load_opening(place / "secret")
    Commitment.from_json(place / "public" / "commitment.json").check(opening)
    digests = []
    for path in (place / "secret").glob("canaries.*"):
        with path.open("rb") as file:
            digests.append(digest(file))
    if digests != [opening.agreed.canaries_sha256]:
        message = f"{place / 'secret'} has other canaries than those committed to"
        raise FormatError(message)
    return opening


def judge_challenge(
    folder: str | os.PathLike[str],
    scores: ArrayInput | Mapping[str, ArrayInput],
    *,
    ids: ArrayInput,
    model: str | None = None,
) -> AuditResult:
    """Audit the scores of all canaries as the protocol says, and write the bundle.

    Parameters
    ----------
    folder : str or os.PathLike
        What `new_challenge` wrote; it gets the folder ``bundle``.
    scores : array-like of shape (m,), or mapping from the names of attacks
        From the trained model: a score for each canary, higher for likelier members. One array is
        of the one attack that the protocol names.
    ids : array-like of integers, shape (m,)
        Which canary each score is of: its place in the file, from 0.
    model : str, optional
        SHA-256 of the model, as the trainer published it.
    """
    opening = opened_challenge(folder)
    agreed = opening.agreed
    _check_judged(agreed)
    by_attack = scores if isinstance(scores, Mapping) else {agreed.attacks[0]: scores}
    if set(by_attack) != set(agreed.attacks):
        message = f"scores of {[*agreed.attacks]} were agreed on, and those of {[*by_attack]} given"
        raise OptionError(message)
    named = {name: by_attack[name] for name in agreed.attacks}
    places = np.asarray(ids)
    result = opening.audit(named, ids=places)
    result.bundle(Path(folder) / "bundle", scores=named, opening=opening, model=model, ids=places)
    return result


def _check_judged(agreed: Agreed) -> None:
    """Refuse a protocol for which scores of canaries, included by fair coins, are not enough."""
    if agreed.arrays:
        message = f"the protocol names {min(agreed.arrays)}, and a challenge has scores alone"
        raise OptionError(message)
    if agreed.options.get("prior", _FAIR) != _FAIR:
        message = "the protocol's prior is not 0.5, and the coins of a challenge are fair"
        raise OptionError(message)


def _records(source: Path, content: bytes) -> tuple[int, Callable[[list[int]], bytes]]:
    """Return how many canaries a file has, and what writes some of them as a file of its kind."""
    kind = source.suffix.lower()
    try:
        if kind == ".npy":
            rows = np.atleast_1d(read_array_file(io.BytesIO(content)))
            _check_distinct([row.tobytes() for row in rows])
            return len(rows), lambda places: _npy(rows[places])
        if kind in {".csv", ".jsonl", ".txt"}:
            lines = _lines(content.decode("utf-8-sig"))
            _check_distinct(_rows(lines) if kind == ".csv" else lines)
            for line in lines if kind == ".jsonl" else ():
                json.loads(line)
            header, canaries = (lines[:1], lines[1:]) if kind == ".csv" else ([], lines)
            return len(canaries), lambda places: "".join(
                f"{line}\n" for line in (*header, *(canaries[i] for i in places))
            ).encode()
    except (ValueError, RecursionError, csv.Error) as error:
        message = f"{source} is no file of canaries: {' '.join(str(error).split())}"
        raise FormatError(message) from error
    message = f"{source}: canaries are in a .csv, .jsonl, .txt or .npy file"
    raise FormatError(message)


def _lines(text: str) -> list[str]:
    """Return lines without blank ones after the last; refuse others that are blank."""
    # Other separators of lines than LF and CR LF are part of a canary.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines, 1):
        if not line or line[-1] == "\r":
            what = "ends in CR CR LF, and one CR would be lost" if line else "is blank"
            message = f"line {place} {what}: canaries are numbered by their lines"
            raise ValueError(message)
    return lines


def _rows(lines: list[str]) -> list[tuple[str, ...]]:
    """Return the fields of each line of a table but its header."""
    rows = [tuple(row) for row in csv.reader(lines, strict=True)]
    if len(rows) != len(lines):
        message = "a row goes over several lines, and a canary is a line: write .jsonl"
        raise ValueError(message)
    return rows[1:]


def _check_distinct(canaries: Sequence[Hashable]) -> None:
    """Refuse a canary that is there twice: one coin would include it and the other not."""
    first: dict[Hashable, int] = {}
    for place, canary in enumerate(canaries):
        if first.setdefault(canary, place) != place:
            message = f"canaries {first[canary]} and {place} (from 0) are the same"
            raise ValueError(message)


def _npy(rows: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, rows, allow_pickle=False)
    return file.getvalue()
