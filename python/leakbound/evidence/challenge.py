"""A challenge between an auditor and a trainer who do not trust each other."""

import csv
import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import numpy as np

from leakbound._base.canonical import digest, sha256
from leakbound._base.files import read_array_file, replacing, replacing_folder
from leakbound._base.types import ArrayInput, JsonObject, JsonValue, PathInput
from leakbound.errors import FormatError, OptionError
from leakbound.evidence.bundle import written
from leakbound.planning import Commitment, InclusionPlan, Opening, load_opening
from leakbound.planning.protocol import Agreement, checked_protocol
from leakbound.results import AuditResult

DEFAULT: JsonObject = {
    "claim": {"type": "PureDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "attacks": ["score"],
    "unit": "one canary",
    "canaries": "those of the file whose SHA-256 is canaries_sha256",
}
"""The default protocol."""
# The probability of each coin of a challenge.
_FAIR = 0.5


def new_challenge(
    canaries: PathInput,
    folder: PathInput,
    *,
    protocol: Mapping[str, JsonValue] | None = None,
) -> Commitment:
    """Flip a coin for each canary, commit to the coins, and write the files for each side.

    Parameters
    ----------
    canaries : str or os.PathLike
        A file of canaries: ``.csv`` with a header, ``.jsonl`` or ``.txt`` with one per line, or
        ``.npy`` with one per row. Lines must end in LF or CR LF.
    folder : str or os.PathLike
        A new or empty folder. It gets ``for-the-trainer`` with the canaries to train on,
        ``secret`` with all of them and the coins, and ``public`` with the commitment, which is
        returned.
    protocol : mapping, optional
        Rules of the audit; by default a bound on pure ε from one column of scores. The digest of
        the canaries is added, as `canaries_sha256`. A protocol that `judge_challenge` could not
        follow with this number of canaries is refused.
    """
    source = Path(canaries)
    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        raise OptionError(f"{place} is not empty: choose a new folder")
    if not source.is_file():
        raise OptionError(
            f"{source} is not a regular file: save the canaries to a file, which is read twice"
        )
    content = source.read_bytes()
    count, some = _records(source, content)
    if count < 2:
        raise FormatError(f"{source} has {count} canaries: a challenge needs at least two")
    own = sha256(content)
    if protocol is None:
        protocol = DEFAULT
    agreed = {"canaries_sha256": own, **protocol}
    if agreed["canaries_sha256"] != own:
        raise OptionError(
            f"canaries_sha256 in the protocol differs from the digest of {source}, {own}: leave "
            "it out, or give the file with that digest"
        )
    # The audit is rehearsed before coins are flipped.
    read = Agreement.of(checked_protocol(agreed))
    _check_judged(read)
    plan = InclusionPlan.create(count, copies=read.options.get("copies", 1))
    opening = plan.commit(agreed)
    name = f"canaries{source.suffix.lower()}"
    with replacing_folder(place) as new:
        for part in ("for-the-trainer", "secret", "public"):
            (new / part).mkdir()
        trained = np.repeat(plan.indices, plan.copies).tolist()
        (new / "for-the-trainer" / name).write_bytes(some(trained))
        opening.save(new / "secret")
        with replacing(new / "secret" / name, secret=True) as file:
            file.write(content)
        opening.commitment.to_json(new / "public" / "commitment.json")
    return opening.commitment


def opened_challenge(folder: PathInput) -> Opening:
    """Open a challenge, and check that coins, protocol and canaries match the commitment.

    Parameters
    ----------
    folder : str or os.PathLike
        What `new_challenge` wrote. FormatError if coins, protocol, nonce or canaries are not what
        was committed to.
    """
    place = Path(folder)
    secret = place / "secret"
    opening = load_opening(secret)
    Commitment.from_json(place / "public" / "commitment.json").check(opening)
    digests = []
    for path in secret.glob("canaries.*"):
        with path.open("rb") as file:
            digests.append(digest(file))
    if digests != [opening.agreed.canaries_sha256]:
        raise FormatError(f"the canaries in {secret} do not match the commitment")
    return opening


def judge_challenge(
    folder: PathInput,
    scores: ArrayInput | Mapping[str, ArrayInput],
    *,
    ids: ArrayInput,
    model: str | None = None,
) -> AuditResult:
    """Audit the scores of all canaries by the rules of the protocol, and write the bundle.

    Parameters
    ----------
    folder : str or os.PathLike
        What `new_challenge` wrote; it gets the folder ``bundle``.
    scores : array-like of shape (m,), or mapping from the names of attacks
        A score of the trained model for each canary, higher for likelier members. One array is
        enough if the protocol has one attack.
    ids : array-like of integers, shape (m,)
        The canary of each score, by its position in the file, from 0.
    model : str, optional
        SHA-256 of the model, as the trainer published it.
    """
    opening = opened_challenge(folder)
    agreed = opening.agreed
    _check_judged(agreed)
    by_attack = scores if isinstance(scores, Mapping) else {agreed.attacks[0]: scores}
    if set(by_attack) != set(agreed.attacks):
        raise OptionError(
            f"the protocol has the attacks {[*agreed.attacks]}, but scores has {[*by_attack]}"
        )
    named = {name: by_attack[name] for name in agreed.attacks}
    places = np.asarray(ids)
    result = opening.audit(named, ids=places)
    result.bundle(Path(folder) / "bundle", scores=named, plan=opening, model=model, ids=places)
    return result


def _check_judged(agreed: Agreement) -> None:
    """Refuse a protocol that needs more than scores and fair coins."""
    if agreed.arrays:
        raise OptionError(
            f"the protocol has {min(agreed.arrays)}, but a challenge has only scores: leave it out"
        )
    if agreed.options.get("prior", _FAIR) != _FAIR:
        raise OptionError("leave the prior out of the protocol: the coins of a challenge are fair")


def _records(source: Path, content: bytes) -> tuple[int, Callable[[list[int]], bytes]]:
    """Return the number of canaries in a file, and a function that writes some of them."""
    kind = source.suffix.lower()
    try:
        if kind == ".npy":
            return _records_of_array(content)
        if kind in {".csv", ".jsonl", ".txt"}:
            return _records_of_text(content, kind)
    except (ValueError, RecursionError, csv.Error) as error:
        raise FormatError(
            f"{source} cannot be read as canaries: {' '.join(str(error).split())}"
        ) from error
    raise FormatError(f"{source}: canaries must be in a .csv, .jsonl, .txt or .npy file")


def _records_of_array(content: bytes) -> tuple[int, Callable[[list[int]], bytes]]:
    """Return the number of rows, and a function that writes some of them."""
    rows = np.atleast_1d(read_array_file(io.BytesIO(content)))
    _check_distinct([row.tobytes() for row in rows])

    def some(places: list[int]) -> bytes:
        return written(lambda file: np.save(file, rows[places], allow_pickle=False))

    return len(rows), some


def _records_of_text(content: bytes, kind: str) -> tuple[int, Callable[[list[int]], bytes]]:
    """Return the number of lines, without a header, and a function that writes some of them."""
    canaries = _lines(content.decode("utf-8-sig"))
    header: list[str] = []
    if kind == ".csv":
        _check_distinct(_rows(canaries))
        header = canaries[:1]
        canaries = canaries[1:]
    else:
        _check_distinct(canaries)
    if kind == ".jsonl":
        for line in canaries:
            json.loads(line)

    def some(places: list[int]) -> bytes:
        lines = [*header, *(canaries[i] for i in places)]
        return "".join(f"{line}\n" for line in lines).encode()

    return len(canaries), some


def _lines(text: str) -> list[str]:
    """Return lines without blank ones after the last; refuse others that are blank."""
    # Other separators of lines than LF and CR LF are part of a canary.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    for place, line in enumerate(lines, 1):
        if not line or line[-1] == "\r":
            what = "is blank"
            if line:
                what = "ends in CR CR LF, and one CR would be lost"
            raise ValueError(f"line {place} {what}: canaries are numbered by their lines")
    return lines


def _rows(lines: list[str]) -> list[tuple[str, ...]]:
    """Return the fields of each line of a table but its header."""
    rows = [tuple(row) for row in csv.reader(lines, strict=True)]
    if len(rows) != len(lines):
        raise ValueError("a row spans several lines, but a canary must be one line: use .jsonl")
    return rows[1:]


def _check_distinct(canaries: Sequence[Hashable]) -> None:
    """Refuse a duplicate canary: one coin could include it and the other not."""
    first: dict[Hashable, int] = {}
    for place, canary in enumerate(canaries):
        if first.setdefault(canary, place) != place:
            raise ValueError(f"canaries {first[canary]} and {place} (from 0) are the same")
