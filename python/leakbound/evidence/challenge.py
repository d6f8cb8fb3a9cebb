"""A challenge between an auditor and a trainer who do not trust each other."""

import csv
import io
import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from leakbound._base.files import read_array_file, replacing, replacing_folder
from leakbound._base.records import digest, sha256
from leakbound._base.types import ArrayInput, JsonObject, JsonValue, PathInput
from leakbound.errors import FormatError, OptionError
from leakbound.evidence.bundle import bytes_written
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
# Writes the canaries at some positions to a file of the same form.
_WriteSelected: TypeAlias = Callable[[list[int]], bytes]


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
    canary_file = Path(canaries)
    challenge_folder = Path(folder)
    if challenge_folder.exists() and any(challenge_folder.iterdir()):
        raise OptionError(f"{challenge_folder} is not empty: choose a new folder")
    if not canary_file.is_file():
        raise OptionError(
            f"{canary_file} is not a regular file: save the canaries to a file, which is read twice"
        )
    canary_bytes = canary_file.read_bytes()
    count, write_selected = _read_canaries(canary_file, canary_bytes)
    if count < 2:
        raise FormatError(f"{canary_file} has {count} canaries: a challenge needs at least two")
    digest_of_canaries = sha256(canary_bytes)
    if protocol is None:
        protocol = DEFAULT
    protocol = {"canaries_sha256": digest_of_canaries, **protocol}
    if protocol["canaries_sha256"] != digest_of_canaries:
        raise OptionError(
            f"canaries_sha256 in the protocol differs from the digest of {canary_file}, "
            f"{digest_of_canaries}: leave it out, or give the file with that digest"
        )
    # The audit is rehearsed before coins are flipped.
    agreed = Agreement.of(checked_protocol(protocol))
    _check_can_be_judged(agreed)
    copies = agreed.options.get("copies", 1)
    plan = InclusionPlan.create(count, copies=copies)
    opening = plan.commit(protocol)
    file_name = f"canaries{canary_file.suffix.lower()}"
    with replacing_folder(challenge_folder) as new_folder:
        trainer_folder = new_folder / "for-the-trainer"
        secret_folder = new_folder / "secret"
        public_folder = new_folder / "public"
        for part in (trainer_folder, secret_folder, public_folder):
            part.mkdir()
        included = np.repeat(plan.indices, plan.copies).tolist()
        (trainer_folder / file_name).write_bytes(write_selected(included))
        opening.save(secret_folder)
        with replacing(secret_folder / file_name, secret=True) as file:
            file.write(canary_bytes)
        opening.commitment.to_json(public_folder / "commitment.json")
    return opening.commitment


def opened_challenge(folder: PathInput) -> Opening:
    """Open a challenge, and check that coins, protocol and canaries match the commitment.

    Parameters
    ----------
    folder : str or os.PathLike
        What `new_challenge` wrote. FormatError if coins, protocol, nonce or canaries are not what
        was committed to.
    """
    challenge_folder = Path(folder)
    secret_folder = challenge_folder / "secret"
    opening = load_opening(secret_folder)
    commitment = Commitment.from_json(challenge_folder / "public" / "commitment.json")
    commitment.check(opening)
    canary_digests = []
    for canary_file in secret_folder.glob("canaries.*"):
        with canary_file.open("rb") as file:
            canary_digests.append(digest(file))
    if canary_digests != [opening.agreed.canaries_sha256]:
        raise FormatError(f"the canaries in {secret_folder} do not match the commitment")
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
    _check_can_be_judged(agreed)
    scores_by_attack = scores
    if not isinstance(scores_by_attack, Mapping):
        scores_by_attack = {agreed.attacks[0]: scores_by_attack}
    if set(scores_by_attack) != set(agreed.attacks):
        raise OptionError(
            f"the protocol has the attacks {[*agreed.attacks]}, but scores has "
            f"{[*scores_by_attack]}"
        )
    ordered_scores = {attack: scores_by_attack[attack] for attack in agreed.attacks}
    canary_positions = np.asarray(ids)
    result = opening.audit(ordered_scores, ids=canary_positions)
    result.bundle(
        Path(folder) / "bundle",
        scores=ordered_scores,
        plan=opening,
        model=model,
        ids=canary_positions,
    )
    return result


def _check_can_be_judged(agreed: Agreement) -> None:
    """Refuse a protocol that needs more than scores and fair coins."""
    if agreed.arrays:
        raise OptionError(
            f"the protocol has {min(agreed.arrays)}, but a challenge has only scores: leave it out"
        )
    if agreed.options.get("prior", _FAIR) != _FAIR:
        raise OptionError("leave the prior out of the protocol: the coins of a challenge are fair")


def _read_canaries(canary_file: Path, canary_bytes: bytes) -> tuple[int, _WriteSelected]:
    """Return the number of canaries in a file, and a function that writes some of them."""
    canary_suffix = canary_file.suffix.lower()
    try:
        if canary_suffix == ".npy":
            return _read_canary_array(canary_bytes)
        if canary_suffix in {".csv", ".jsonl", ".txt"}:
            return _read_canary_lines(canary_bytes, canary_suffix)
    except (ValueError, RecursionError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"{canary_file} cannot be read as canaries: {reason}") from error
    raise FormatError(f"{canary_file}: canaries must be in a .csv, .jsonl, .txt or .npy file")


def _read_canary_array(canary_bytes: bytes) -> tuple[int, _WriteSelected]:
    """Return the number of rows, and a function that writes some of them."""
    stored_canaries = read_array_file(io.BytesIO(canary_bytes))
    canaries = np.atleast_1d(stored_canaries)
    _check_distinct([canary.tobytes() for canary in canaries])

    def write_selected(positions: list[int]) -> bytes:
        selected_canaries = canaries[positions]
        return bytes_written(lambda file: np.save(file, selected_canaries, allow_pickle=False))

    return len(canaries), write_selected


def _read_canary_lines(canary_bytes: bytes, canary_suffix: str) -> tuple[int, _WriteSelected]:
    """Return the number of lines, without a header, and a function that writes some of them."""
    canary_lines = _canary_lines(canary_bytes.decode("utf-8-sig"))
    header_line: list[str] = []
    if canary_suffix == ".csv":
        _check_distinct(_canary_rows(canary_lines))
        header_line = canary_lines[:1]
        canary_lines = canary_lines[1:]
    else:
        _check_distinct(canary_lines)
    if canary_suffix == ".jsonl":
        for canary_line in canary_lines:
            json.loads(canary_line)

    def write_selected(positions: list[int]) -> bytes:
        selected_canaries = [canary_lines[position] for position in positions]
        selected_lines = [f"{canary_line}\n" for canary_line in header_line + selected_canaries]
        return "".join(selected_lines).encode()

    return len(canary_lines), write_selected


def _canary_lines(text: str) -> list[str]:
    """Return lines without blank ones after the last; refuse others that are blank."""
    # Other separators of lines than LF and CR LF are part of a canary.
    canary_lines = [canary_line.removesuffix("\r") for canary_line in text.split("\n")]
    while canary_lines and not canary_lines[-1]:
        canary_lines.pop()
    for line_number, canary_line in enumerate(canary_lines, start=1):
        flaw = ""
        if not canary_line:
            flaw = "is blank"
        elif canary_line.endswith("\r"):
            flaw = "ends in CR CR LF, and one CR would be lost"
        if flaw:
            raise ValueError(f"line {line_number} {flaw}: canaries are numbered by their lines")
    return canary_lines


def _canary_rows(canary_lines: list[str]) -> list[tuple[str, ...]]:
    """Return the fields of each line of a table but its header."""
    canary_rows = [tuple(canary_row) for canary_row in csv.reader(canary_lines, strict=True)]
    if len(canary_rows) != len(canary_lines):
        raise ValueError("a row spans several lines, but a canary must be one line: use .jsonl")
    return canary_rows[1:]


def _check_distinct(canaries: Sequence[Hashable]) -> None:
    """Refuse a duplicate canary: one coin could include it and the other not."""
    first_positions: dict[Hashable, int] = {}
    for position, canary in enumerate(canaries):
        first_position = first_positions.setdefault(canary, position)
        if first_position != position:
            raise ValueError(f"canaries {first_position} and {position} (from 0) are the same")
