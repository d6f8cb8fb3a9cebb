"""Commitments: a digest of the coins and the protocol of an audit, published before training."""

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from leakbound._base.files import secret_folder, write_text
from leakbound._base.records import canonical_json, is_digest, parsed, sha256, text_of
from leakbound._base.types import ArrayInput, JsonObject, JsonValue, Named, PathInput
from leakbound.audits.road import Listed
from leakbound.errors import FormatError, OptionError
from leakbound.planning.protocol import Agreement, checked_protocol
from leakbound.results import AuditResult

# How a digest is computed: the number rises whenever the same content would give another digest.
SCHEME = "leakbound commitment 1"
# Bytes of a nonce: 256 bits, so that nobody can guess the coins.
NONCE = 32
# Bytes of the largest protocol, opening or commitment that is read.
_MOST_BYTES = 1 << 20
# Dots in a line of TOML: its parser takes time by the square of the parts of a name.
_MOST_DOTS = 200


@dataclass(frozen=True)
class Commitment:
    """The digest of an audit's coins, nonce and protocol: publish it before training.

    It reveals nothing about the coins, and nobody can find other coins or another protocol that it
    would open to, unless SHA-256 is broken.

    Parameters
    ----------
    sha256 : str
        The digest: 64 hexadecimal digits.
    examples : int
        Number of coins.
    scheme : str
        How the digest is computed.
    """

    sha256: str
    examples: int
    scheme: str = SCHEME

    def __post_init__(self) -> None:
        _check_commitment_scheme(self.scheme)
        if not is_digest(self.sha256) or type(self.examples) is not int or self.examples < 1:
            raise FormatError(
                "a commitment has a digest of 64 hexadecimal digits and a number of examples"
            )

    def check(self, opening: "Opening") -> None:
        """Raise FormatError if an opening does not match the commitment."""
        opened = opening.commitment
        if opened != self:
            raise FormatError(
                f"the commitment has the digest {self.sha256[:16]}… and {self.examples:,} coins, "
                f"but nonce, plan and protocol give {opened.sha256[:16]}… and "
                f"{opened.examples:,}: one of these three was changed"
            )

    def to_json(self, path: PathInput | None = None) -> str:
        """Return the commitment as JSON, and write it to the file `path` if given."""
        stored_content = {"scheme": self.scheme, "sha256": self.sha256, "examples": self.examples}
        json_text = json.dumps(stored_content, indent=1)
        if path is not None:
            write_text(path, json_text + "\n")
        return json_text

    @classmethod
    def from_json(cls, source: str | bytes | os.PathLike[str]) -> Self:
        """Read a commitment; raise FormatError if it is not one of this version.

        `source` is the JSON itself, as text or bytes, or the path of a file of it; a str that does
        not start with a brace is a path.
        """
        field_names = {"scheme", "sha256", "examples"}
        stored_content = _json_object_with_fields(
            source, field_names, name_of_object="a commitment"
        )
        return cls(**stored_content)


@dataclass(frozen=True, eq=False)
class Opening:
    """The opening of a commitment: keep it secret until the audit.

    Parameters
    ----------
    plan : InclusionPlan or ChoicePlan
        What was drawn, and the id of each example.
    protocol : dict
        What the audit will be: see `read_protocol`.
    nonce : str
        256 random bits as 64 hexadecimal digits.
    """

    plan: Any
    protocol: Mapping[str, JsonValue]
    nonce: str

    def __post_init__(self) -> None:
        if not is_digest(self.nonce):
            raise FormatError(
                f"a nonce is {2 * NONCE} hexadecimal digits in lower case, 256 random bits"
            )
        object.__setattr__(self, "protocol", checked_protocol(self.protocol))
        if self.protocol.get("seed") is None:
            raise OptionError(
                "the protocol of an opening fixes the seed: plan.commit(protocol) draws one"
            )
        planned_copies = self.plan.copies
        agreed_copies = self.protocol.get("copies", 1)
        if planned_copies not in {1, agreed_copies}:
            raise OptionError(
                f"the protocol has {agreed_copies} copies of each member, and the plan "
                f"{planned_copies}: state copies = {planned_copies} in the protocol"
            )
        if len(self.to_json().encode()) >= _MOST_BYTES:
            raise OptionError(
                f"the protocol is too long: openings of {_MOST_BYTES:,} bytes are not read"
            )

    def __repr__(self) -> str:
        # nonce, plan and the seed of the protocol are secret until the audit
        return f"Opening(plan={self.plan!r}, sha256={self.commitment.sha256!r})"

    @property
    def agreed(self) -> Agreement:
        """The protocol, as the audit takes it."""
        return Agreement.of(self.protocol)

    def audit(self, scores: Listed, **arrays: ArrayInput) -> AuditResult:
        """Audit by the protocol, with its seed, and test the guarantee that it names.

        Parameters
        ----------
        scores : mapping of str to array_like of shape (m,), or (m, k) for choices
            The scores of each attack that the protocol names.
        **arrays : array_like of shape (m,)
            Options such as `strata` that the protocol names by a word, and `ids`.
        """
        agreement = self.agreed
        options = {**agreement.options, **arrays}
        result = agreement.audit(scores, self.plan, **options)
        return agreement.with_checked_guarantee(result)

    @property
    def commitment(self) -> Commitment:
        """The digest of nonce, coins, ids and protocol."""
        digest = sha256(canonical_json(self._committed_content()))
        return Commitment(sha256=digest, examples=len(self.plan))

    def _committed_content(self) -> JsonObject:
        plan = self.plan
        committed_content: JsonObject = {
            "scheme": SCHEME,
            "nonce": self.nonce,
            "ids": plan.ids.tolist(),
            "protocol": dict(self.protocol),
        }
        if plan.copies > 1:
            committed_content["copies"] = plan.copies
        if plan.unit != "example":
            committed_content["unit"] = plan.unit
        if plan.k:
            committed_content |= {"choices": plan.drawn.tolist(), "k": plan.k}
        else:
            coins = np.where(plan.drawn, b"1", b"0").astype("S1")
            committed_content["coins"] = coins.tobytes().decode("ascii")
        return committed_content

    def save(self, folder: PathInput) -> None:
        """Write ``plan.npz`` and ``opening.json``, which only their owner can read, to a folder.

        A folder that is new or empty becomes the owner's alone.
        """
        secret_place = secret_folder(folder)
        self.plan.save(secret_place / "plan.npz")
        write_text(secret_place / "opening.json", self.to_json() + "\n", secret=True)

    def to_json(self) -> str:
        """Return nonce and protocol as JSON; the plan is another file."""
        stored_content = {"scheme": SCHEME, "nonce": self.nonce, "protocol": self.protocol}
        return json.dumps(stored_content, indent=1, ensure_ascii=False)


def read_opening(source: str | bytes | os.PathLike[str], plan: object) -> Opening:
    """Read nonce and protocol next to a plan; raise FormatError if they are invalid."""
    field_names = {"scheme", "nonce", "protocol"}
    stored_content = _json_object_with_fields(source, field_names, name_of_object="an opening")
    _check_commitment_scheme(stored_content["scheme"])
    try:
        return Opening(
            plan=plan, protocol=stored_content["protocol"], nonce=stored_content["nonce"]
        )
    except (OptionError, TypeError) as error:
        raise FormatError(f"not an opening: {error}") from error


def read_protocol(path: PathInput) -> JsonObject:
    """Read a protocol from TOML, or from JSON if the file is named ``.json``.

    Parameters
    ----------
    path : str or os.PathLike
        The file. It must set `claim` (a table with the claim's type and parameters),
        `confidence`, `cuts` (a table with the policy's type and options, or "auto"), `sides`,
        `attacks` (the names of the scores that will be audited), `unit` (what one example is) and
        `canaries` (how they are made). Other options of `audit` can be set, and have their
        defaults otherwise. OptionError or InputTypeError says what is missing or invalid. `checked`
        is the guarantee to check, `canaries_sha256` the digest of a
        file of canaries, and `notes` are remarks for readers.
    """
    protocol_file = Path(path)
    parse_protocol: Callable[[str], object] = _parsed_toml_protocol
    if protocol_file.suffix == ".json":
        parse_protocol = parsed
    try:
        protocol_content = parse_protocol(text_of(protocol_file, _MOST_BYTES))
    except (ValueError, RecursionError) as error:
        message = " ".join(str(error).split())
        raise OptionError(f"{protocol_file} is not a protocol: {message}") from error
    return checked_protocol(protocol_content)


def _check_commitment_scheme(scheme: object) -> None:
    if scheme != SCHEME:
        raise FormatError(f"this version reads the scheme {SCHEME!r}, got {scheme!r:.60}")


def _parsed_toml_protocol(text: str) -> Named:
    if any(line.count(".") > _MOST_DOTS for line in text.split("\n")):
        raise ValueError(f"it has a line of more than {_MOST_DOTS} dots")
    return tomllib.loads(text)


def _json_object_with_fields(
    source: str | bytes | os.PathLike[str], field_names: set[str], name_of_object: str
) -> Named:
    """Read an object of JSON that has certain fields and no others."""
    try:
        stored_object = parsed(text_of(source, _MOST_BYTES))
        flaw = f"it must have exactly {', '.join(sorted(field_names))}"
    except FormatError as error:
        stored_object = None
        flaw = str(error)
    if not isinstance(stored_object, dict) or stored_object.keys() != field_names:
        raise FormatError(f"not {name_of_object} of leakbound: {flaw}")
    return stored_object
