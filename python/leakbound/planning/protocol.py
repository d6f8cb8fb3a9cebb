"""Protocols: the rules of an audit, written down before training, read and rehearsed."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, NoReturn

import numpy as np

from leakbound._base.checks import choice, integer, real, shown
from leakbound._base.messages import Message
from leakbound._base.records import derived, is_digest, plain
from leakbound._base.types import (
    AnyArray,
    FloatArray,
    JsonObject,
    JsonValue,
    MemberInput,
    Named,
    Relation,
    Strings,
)
from leakbound.audits.coins import Coins
from leakbound.audits.designs import DESIGNS, DesignOfProtocol, audit_of, parameters_of
from leakbound.audits.road import Listed, Request
from leakbound.claims import CLAIMS, Claim, PureDP, TradeOffFamily
from leakbound.claims.families import check_epsilon_at
from leakbound.cuts import CUT_POLICIES, Policy
from leakbound.errors import LeakboundError, MissingExtraError, OptionError
from leakbound.results import AuditResult

# What a protocol must contain.
PROTOCOL = ("attacks", "canaries", "claim", "confidence", "cuts", "sides", "unit")
# The options of an audit of one run. A protocol fixes each, also by leaving it out.
DEFAULTS: Mapping[str, object] = {
    "claim": PureDP(),
    "confidence": 0.95,
    "cuts": None,
    "sides": "auto",
    "seed": None,
    "design": Coins.name,
    "prior": 0.5,
    "copies": 1,
    "strata": None,
    "groups": None,
    "aggregate": "mean",
    "features": None,
}
OPTIONS = tuple(DEFAULTS)
# Options of one value for each example, as a prior may be: a protocol names them by a word.
ARRAYS = ("strata", "groups", "features")
# What a protocol may contain besides.
_FURTHER_NAMES = ("checked", "canaries_sha256", "notes")
# Columns of tables that are not scores.
_RESERVED_COLUMNS = {"id", "member", "split"}


@dataclass(frozen=True)
class Agreement:
    """A protocol that was read and can be carried out."""

    attacks: Strings
    # Options of `audit` and of its design, the claim and the cuts as objects.
    options: Mapping[str, Any]
    # Options that will be an array, which the protocol names by a word.
    arrays: frozenset[str] = frozenset()
    # The guarantee that will be checked.
    checked: Mapping[str, object] | None = None
    canaries_sha256: str | None = None

    def __post_init__(self) -> None:
        options_of_request: Named = {"seed": 0}
        for field in fields(Request):
            if field.name in self.options:
                options_of_request[field.name] = self.options[field.name]
        Request(**options_of_request)
        choice(self.options.get("design", Coins.name), name="design", allowed=DesignOfProtocol)

    @classmethod
    def of(cls, protocol: Mapping[str, JsonValue]) -> "Agreement":
        """Read a protocol; OptionError says which of its names is wrong, and how."""
        names_of_arrays = {option_name for option_name in ARRAYS if option_name in protocol}
        if isinstance(protocol.get("prior"), str):
            names_of_arrays |= {"prior"}
        for option_name in ("unit", "canaries", *sorted(names_of_arrays)):
            text = protocol[option_name]
            if not isinstance(text, str) or not text.strip():
                _refuse_protocol(f"{option_name} is {shown(text)}: give text")
        options: Named = {
            option_name: protocol[option_name]
            for option_name in OPTIONS
            if option_name in protocol and option_name not in names_of_arrays
        }
        options["claim"] = build(protocol["claim"], name="claim", kinds=_CLAIMS)
        options["cuts"] = None
        if protocol["cuts"] != "auto":
            options["cuts"] = build(protocol["cuts"], name="cuts", kinds=_CUTS)
        if "prior" in options:
            options["prior"] = real(options["prior"], name="prior", above=0, below=1)
        if "copies" in options:
            options["copies"] = integer(options["copies"], name="copies", least=1)
        canaries_digest: Any = protocol.get("canaries_sha256")
        if "canaries_sha256" in protocol and not is_digest(canaries_digest):
            _refuse_protocol(
                f"canaries_sha256 is {shown(canaries_digest)}; it must have 64 hexadecimal digits"
            )
        checked_guarantee = None
        if "checked" in protocol:
            checked_guarantee = _checked_guarantee(protocol["checked"], options["claim"])
        return cls(
            attacks=_checked_attack_columns(protocol["attacks"]),
            options=options,
            arrays=frozenset(names_of_arrays),
            checked=checked_guarantee,
            canaries_sha256=canaries_digest,
        )

    def audit(self, scores: Listed, member: MemberInput, **options: object) -> AuditResult:
        """Audit scores by options of the protocol."""
        design_name = str(options.pop("design", Coins.name))
        for option_name in options.keys() - parameters_of(design_name):
            option_value = options.pop(option_name)
            is_default = isinstance(
                option_value, str | float | int
            ) and option_value == DEFAULTS.get(option_name)
            if not is_default:
                _refuse_protocol(
                    f"{option_name}= does not apply to {DESIGNS[design_name]}: leave it out"
                )
        result: AuditResult = audit_of(design_name, scores, member=member, **options)
        return result

    def with_checked_guarantee(self, result: AuditResult) -> AuditResult:
        """Return a result in which the guarantee of the protocol is checked, if it has one."""
        if self.checked is None:
            return result
        guarantee = dict(self.checked)
        if "epsilon" not in guarantee:
            guarantee["parameter"] = guarantee.pop(result.claim.parameter)
        return result.with_check(**guarantee)

    def rehearse(self, drawn: AnyArray, k: int) -> None:
        """Audit scores without information: raise OptionError if the audit or its check refuses."""
        options = dict(self.options)
        if k:
            options["k"] = k
        number_of_examples = drawn.size
        share_of_members = (drawn.astype(bool).sum() + 1) / (number_of_examples + 2)
        # Arrays that the protocol only names: each says nothing about membership.
        uninformative_arrays = {
            "prior": np.full(number_of_examples, share_of_members),
            "strata": np.zeros(number_of_examples, np.int64),
            "groups": np.arange(number_of_examples),
            "features": np.zeros((number_of_examples, 1)),
        }
        options |= {name: uninformative_arrays[name] for name in self.arrays}
        uninformative_scores: FloatArray = np.arange(
            number_of_examples * max(1, k), dtype=np.float64
        )
        if k:
            uninformative_scores = uninformative_scores.reshape(number_of_examples, k)
        uninformative_attacks = dict.fromkeys(self.attacks, uninformative_scores)
        try:
            self.with_checked_guarantee(self.audit(uninformative_attacks, drawn, **options))
        except MissingExtraError:
            raise
        except LeakboundError as error:
            message = (
                "the protocol cannot be kept: its audit of these {size:,} examples is refused: "
                "{error}"
            )
            raise OptionError(Message(message, size=number_of_examples, error=error)) from error


def checked_protocol(protocol: object) -> JsonObject:
    """Return a copy of a protocol in a form with only one spelling."""
    if not isinstance(protocol, Mapping):
        _refuse_protocol(f"a protocol must be a table, got {type(protocol).__name__}")
    content = plain(dict(protocol), "protocol")
    assert isinstance(content, dict)
    missing_names = [option_name for option_name in PROTOCOL if option_name not in content]
    if missing_names:
        _refuse_protocol(
            f"the protocol must also set {', '.join(missing_names)}: otherwise they could be "
            "chosen after training"
        )
    known_names = (*PROTOCOL, *OPTIONS, *_FURTHER_NAMES)
    for option_name in content:
        if option_name not in known_names:
            _refuse_unknown_option(option_name, known_names)
    try:
        Agreement.of(content)
    except LeakboundError as error:
        raise OptionError(Message("the protocol's {error}", error=error)) from error
    return content


def _refuse_unknown_option(name: str, known_names: Strings) -> NoReturn:
    """Refuse a name that is not an option of the audit, and say which was perhaps meant."""
    close_names = difflib.get_close_matches(name[:60], known_names, n=1)
    hint = ""
    if close_names:
        hint = f" (did you mean {close_names[0]!r}?)"
    _refuse_protocol(
        f"the protocol has {name!r:.60}, which is not an option of this audit{hint}; "
        "put remarks for readers under notes"
    )


def build(value: object, name: str, kinds: Mapping[str, type[object]]) -> object:
    """Build a claim or a policy from its table: its type, and its fields by name.

    Fields of a policy may be policies, which have tables of their own, or infinite.
    """
    type_to_build = None
    options_of_type: Named = {}
    if isinstance(value, dict) and "type" in value:
        options_of_type = {
            option_name: _built_field(option_value, f"{name}.{option_name}", kinds)
            for option_name, option_value in value.items()
            if option_name != "type"
        }
        type_name = str(value["type"])
        type_to_build = kinds.get(type_name)
        if type_to_build is None and name.startswith("cuts"):
            type_to_build = derived(Policy, type_name)
    if type_to_build is None:
        example = '"auto" or { type = "KLScan" }'
        if name == "claim":
            example = '{ type = "PureDP" }'
        _refuse_protocol(
            f"{name} is {shown(value)}, which this version does not know: use a table such as "
            f"{example}, its type one of {', '.join(kinds)}"
        )
    try:
        signature(type_to_build).bind(**options_of_type)
        return type_to_build(**options_of_type)
    except LeakboundError as error:
        message: str = Message("{name}: {error}", name=name, error=error)
    except TypeError as error:
        message = f"{name}: {type_to_build.__name__}: {error}"
    raise OptionError(message)


def _built_field(value: object, name: str, kinds: Mapping[str, type[object]]) -> object:
    """Return a field of a claim or a policy as it was before it was stored."""
    if isinstance(value, dict) and "type" in value:
        return build(value, name=name, kinds=kinds)
    if isinstance(value, dict):
        return {key: _built_field(part, f"{name}.{key}", kinds) for key, part in value.items()}
    if isinstance(value, list):
        return [_built_field(part, name=name, kinds=kinds) for part in value]
    if value in {"inf", "-inf"}:
        return float(str(value))
    return value


_CLAIMS = {claim.__name__: claim for claim in CLAIMS if claim is not TradeOffFamily}
_CUTS = {policy.__name__: policy for policy in CUT_POLICIES}


def _refuse_protocol(message: str) -> NoReturn:
    raise OptionError(message)


def _checked_attack_columns(attack_names: object) -> Strings:
    """Check the names of attacks: those of columns of a table."""
    if not isinstance(attack_names, list) or not attack_names:
        _refuse_protocol(
            f"attacks is {shown(attack_names)}: list the names of the scores that will be audited"
        )
    for name in attack_names:
        is_plain = isinstance(name, str) and name == name.strip() and name.isprintable()
        if not is_plain or not name or "," in name or name in _RESERVED_COLUMNS:
            _refuse_protocol(
                f"attacks has {shown(name)}, which cannot be the name of a column of scores: use a "
                f"word without a comma, other than {', '.join(sorted(_RESERVED_COLUMNS))}"
            )
    if len(set(attack_names)) < len(attack_names):
        _refuse_protocol(f"attacks is {shown(attack_names)}: list each name once")
    return tuple(attack_names)


def _checked_guarantee(guarantee: object, claim: Claim) -> Named:
    """Check the guarantee to check: ε and δ, or the claim's own parameter."""
    parameter = claim.parameter
    known_names = {"epsilon", "delta", "relation", parameter}
    if (
        not isinstance(guarantee, dict)
        or guarantee.keys() - known_names
        or len({"epsilon", parameter} & guarantee.keys()) != 1
        or ("delta" in guarantee and "epsilon" not in guarantee)
    ):
        alternative = ""
        if parameter != "epsilon":
            alternative = f", or {parameter} alone"
        _refuse_protocol(
            f"checked is {shown(guarantee)}: give epsilon and delta{alternative}, and relation for "
            "a random split"
        )
    for part_name in guarantee.keys() - {"relation"}:
        real(guarantee[part_name], name=f"checked: {part_name}", least=0)
    if "relation" in guarantee:
        choice(guarantee["relation"], name="checked: relation", allowed=Relation)
    if "epsilon" in guarantee:
        check_epsilon_at(claim, guarantee.get("delta", 0.0))
    return dict(guarantee)
