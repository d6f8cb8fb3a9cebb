"""How an audit is run again: its design, its options as JSON, and its data as arrays."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self, get_args

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.derived import derived
from leakbound._base.features import table_of
from leakbound._base.records import encode
from leakbound._base.tables import Column
from leakbound._base.types import AnyArray, HasMember, JsonObject, JsonValue
from leakbound.audits import Coins, Panoramia, ZeroRun
from leakbound.audits.designs import DESIGNS, audit_of, is_known, parameters_of
from leakbound.claims import CLAIMS, TradeOffFamily
from leakbound.cuts import CUT_POLICIES, Policy
from leakbound.cuts.policy import stored as stored_policy
from leakbound.errors import FormatError, LeakboundError
from leakbound.evidence.columns import read_table, read_writing, stored_table, stored_writing
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import ARRAYS, DEFAULTS, OPTIONS, Agreement, Design, build
from leakbound.propensity import LogisticPropensity
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult
from leakbound.results.base import Result
from leakbound.results.synthetic import SyntheticResult

RESULTS: dict[str, type[Result]] = {
    kind.__name__: kind for kind in (AuditResult, PanoramiaResult, ZeroRunResult)
}
"""Types of results that can be computed again."""
# Options that are made of a type and its fields; a family of functions cannot be stored.
_OBJECTS = {
    name: {kind.__name__: kind for kind in kinds if kind is not TradeOffFamily}
    for name, kinds in (
        ("claim", CLAIMS),
        ("cuts", CUT_POLICIES),
        ("propensity", (LogisticPropensity,)),
    )
}
# Arguments that are data: arrays, the plan, or a model that the audit fits.
_DATA = (
    "scores",
    "baseline",
    "member",
    "propensity",
    "features",
    "labels",
    "strata",
    "groups",
    "ids",
)
# Arguments that may be arrays.
_ARRAYS = {*_DATA, "prior"}
# Options that the audit chooses by default: those that were given are among what was asked.
_FILLED_IN = {"cuts", "correction", "adversary", "uncertainty"}
_ASKED = ("options", "asked")
_LIMITS = "lower and upper limits"
# Data that may be a table, and what says so.
_TABLE = "features"
_COLUMNS = {"columns", "writing"}

SYNTHETIC = "synthetic"
"""Name in bundles of the audit of a synthetic table."""
SHARE = 1e-9
"""Part of a number by which other versions and processors may differ."""
VERSIONS = ("leakbound", "python", "numpy")
"""Fields of a result about its origin, which no audit computes."""
# What the auditor stated: numbers that were computed from nothing differ in no place.
_STATED = {"confidence", "claim"}
# An input that is computed from those at hand: its digest has no last places.
_COMPUTED = ("provenance", "sha256", "log_odds")
_NAMES = ("exposed", "ids")
_POLICY = ("options", "cuts", "type")
_OTHER_DEFAULT = (
    ": if the default was another in the version that made it, verify it by that version, or audit "
    "and bundle again with cuts= as stated"
)


@dataclass(frozen=True)
class Recipe:
    """The design of an audit by name, and all arguments, those of the design among them."""

    audit: str
    arguments: Mapping[str, Any]

    @property
    def fitted(self) -> bool:
        """Whether the audit fits a model to features."""
        return "features" in self.arguments

    def run(self) -> Result:
        """Run the audit."""
        result: Result = audit_of(self.audit, **self.arguments)
        return result

    def encoded(self) -> tuple[JsonObject, dict[str, AnyArray]]:
        """Return the recipe as JSON, and its arrays, named by their arguments."""
        arrays: dict[str, AnyArray] = {}
        data: JsonObject = {}
        options: JsonObject = {}
        for name, value in self.arguments.items():
            held = name in _ARRAYS or isinstance(value, np.ndarray)
            if held and not isinstance(value, float | LogisticPropensity | None):
                data[name] = _stored(name, value=value, arrays=arrays)
            else:
                options[name] = option_json(name, value)
        return {"audit": self.audit, "options": options, "data": data}, arrays

    @classmethod
    def decoded(cls, content: object, arrays: Mapping[str, AnyArray], plan: object) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if not isinstance(content, dict) or content.keys() != {"audit", "options", "data"}:
            raise FormatError("it must have exactly audit, options and data")
        audit = content["audit"]
        options = content["options"]
        data = content["data"]
        if not isinstance(audit, str) or not is_known(audit):
            raise FormatError(
                f"unknown design {audit!r:.60}: it must be one of {', '.join(DESIGNS)}, or its "
                "module be imported"
            )
        held = _ARRAYS if audit in DESIGNS else parameters_of(audit)
        if not isinstance(options, dict) or not isinstance(data, dict) or data.keys() - held:
            raise FormatError("options and data must be tables of arguments")
        if unknown := {*options, *data} - parameters_of(audit):
            raise FormatError(f"{audit} takes no {', '.join(sorted(unknown)):.60}")
        arguments = {name: read_option(name, value) for name, value in options.items()}
        used: set[str] = set()
        for name, form in data.items():
            arguments[name] = _read_data(name, form=form, arrays=arrays, plan=plan, used=used)
        if used != set(arrays):
            raise FormatError(f"the arrays {', '.join(sorted(set(arrays) - used))} are no argument")
        return cls(audit=audit, arguments=arguments)


def recipe_of(result: Result, data: Mapping[str, object], options: Mapping[str, object]) -> Recipe:
    """Return the recipe that gives a result again, bit for bit, from its own options.

    Options that an audit filled in are left out, unless the result stores that they were asked for;
    `options` are taken as they are. What runs is the recipe as it is read back.
    """
    if "batches" in result.options:
        raise FormatError("a stream has no bundle: keep its batches, and feed them to a new one")
    audit = design_name(result)
    given = {**data, **options}
    if "design" in options:
        del given["design"]
    if given.get("member") is None and "member" not in parameters_of(audit):
        given.pop("member", None)  # a design from outside may call it otherwise
    own = _own_options(result, audit)
    stated = {name: own[name] for name in own if was_asked(result, name)}
    content, arrays = Recipe(audit=audit, arguments=stated | given).encoded()
    recipe = Recipe.decoded(content, arrays, data.get("member"))
    differs = run_and_compared(recipe.run, result)
    if differs:
        raise FormatError(
            f"auditing these scores and this membership by {audit} gives another result: "
            f"{differs}; pass the original data, and options that the result does not store as "
            "options={…}"
        )
    return recipe


def was_asked(result: Result, name: str) -> bool:
    """Return whether an option was given, and not filled in by the audit."""
    return name not in _FILLED_IN or name in result.options.get("asked", ())


def run_and_compared(run: Callable[[], Result], result: Result) -> str:
    """Run an audit again; return its first difference from a result, or why it failed."""
    try:
        return difference(run(), result)
    except LeakboundError as error:
        return str(error)


def difference(again: Result, result: Result, *, exact: bool = True) -> str:
    """Return the first difference between two results; empty if there is none.

    Versions are ignored, and so is the claim that was checked, but its verdict must follow from
    the bound of `again`. Unless exact, numbers may differ by the relative amount `SHARE`, except
    claim and confidence, which are not computed; digests of computed numbers are then ignored.
    Everything else must be equal, whatever version a result names.
    """
    one = dict(_leaves(again.to_dict()))
    other = dict(_leaves(result.to_dict()))
    # Options come first: they say why numbers differ.
    places = sorted(dict.fromkeys([*one, *other]), key=lambda place: place[0] != "options")
    for place in places:
        if place[0] == "checked" or (place[-2:-1] == ("provenance",) and place[-1] in VERSIONS):
            continue
        if place[:2] == _NAMES and other.get(_NAMES) == []:
            continue  # a result may leave out ids, as of an index, but has no others
        if place[:2] == _ASKED and place not in other:
            continue  # older results do not store what was asked
        name = ".".join(map(str, (type(result).__name__, *place)))
        if place not in one or place not in other:
            return f"only one of the two has {name}"
        if not exact and place[-3:] == _COMPUTED:
            continue
        if not _same(one[place], other[place], exact=exact or place[0] in _STATED):
            differs = f"{name} is {shown(other[place])}, but recomputed it is {shown(one[place])}"
            if place == _POLICY:
                differs += _OTHER_DEFAULT
            return differs
    if result.checked is not None and not exact:  # a verdict that `again` does not give is refused
        type(again).from_dict(again.to_dict() | {"checked": result.to_dict()["checked"]})
    return ""


def _leaves(content: JsonValue, place: tuple[str | int, ...] = ()) -> Iterator[Any]:
    """Yield whatever JSON holds that is no table or list, or an empty one, with its place."""
    if not isinstance(content, dict | list) or not content:
        yield place, content
        return
    parts: Iterable[tuple[str | int, Any]] = enumerate(content)
    if isinstance(content, dict):
        parts = content.items()
    for name, part in parts:
        yield from _leaves(part, (*place, name))


def _same(one: object, other: object, *, exact: bool) -> bool:
    if exact or not (isinstance(one, float) and isinstance(other, float)):
        return repr(one) == repr(other)  # with the sign of zeros, which a result prints
    signs = math.copysign(1, one) == math.copysign(1, other)
    return signs and math.isclose(one, other, rel_tol=SHARE, abs_tol=0.0)


def design_name(result: Result) -> str:
    """Return the name of the design behind a result, or of the audit that made it."""
    if isinstance(result, SyntheticResult):
        return SYNTHETIC
    if isinstance(result, ZeroRunResult):
        return ZeroRun.name
    if isinstance(result, PanoramiaResult):
        return Panoramia.name
    return str(result.options.get("design", Coins.name))


def _own_options(result: Result, audit: str) -> dict[str, object]:
    """Return the options of the audit that a result stores."""
    own = {**result.options, "claim": result.claim, "confidence": result.confidence}
    if own.get("uncertainty") == "given":
        del own["uncertainty"]  # known propensities, which no option says
    if getattr(result, "c_upper", None) is not None and not own.get("real_nonmembers"):
        own["c_upper"] = getattr(result, "c_upper")  # noqa: B009 (of one type of result)
    taken = parameters_of(audit) - {*_DATA}
    return {name: value for name, value in own.items() if name in taken}


def option_json(name: str, value: object) -> JsonValue:
    """Return an option as JSON: a claim or a policy as a table of its fields."""
    if isinstance(value, np.generic):
        value = value.item()
    content = encode(value)
    if isinstance(value, Policy):
        content = stored_policy(value)
    if not isinstance(content, dict):
        return content
    kind: object = _OBJECTS.get(name, {}).get(str(content.get("type")))
    if kind is None and name == "cuts":
        kind = derived(Policy, str(content.get("type")))
    if kind is None:
        raise FormatError(
            f"{name} is a {content.get('type', 'table')}, which a bundle cannot store"
        )
    parts = fields(kind) if is_dataclass(kind) else ()
    stored = {one.name for one in parts if one.init} | {"type"}
    return {key: part for key, part in content.items() if key in stored}


def read_option(name: str, content: object) -> object:
    """Return an option from JSON."""
    if name in _OBJECTS and (isinstance(content, dict) or name != "cuts"):
        return build(content, name=name, kinds=_OBJECTS[name])
    if name in _DATA or isinstance(content, dict | list):
        raise FormatError(f"{name} is {shown(content)}, which is not a value of this option")
    if content in ("inf", "-inf"):
        return float(content)
    return content


def _stored(name: str, value: object, arrays: dict[str, AnyArray]) -> JsonValue:
    """Put the arrays of an argument among the others, and say what they make."""
    if isinstance(value, HasMember | Plan):
        return "plan"
    table = None
    if name == _TABLE:
        table = table_of(value, name)
    if table is not None:
        columns = list(stored_table(name, table, arrays))
        return {"columns": columns, "writing": stored_writing(table)}
    if isinstance(value, Mapping):
        _stored(name, value=tuple(value.values()), arrays=arrays)
        return [str(key) for key in value]
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            _stored(f"{name}.{place}", value=part, arrays=arrays)
        return _LIMITS
    array = np.asarray(value)
    if array.dtype.kind == "O" and {type(part) for part in array.ravel().tolist()} == {str}:
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufSU":
        raise FormatError(f"{name} is a {type(value).__name__}, which a bundle cannot store")
    arrays[name] = array
    return "array"


def _read_data(
    name: str, form: object, arrays: Mapping[str, object], plan: object, used: set[str]
) -> object:
    """Return an argument of arrays: one, several by name, two limits, or the plan."""
    if form == "plan" and name == "member" and plan is not None:
        return plan
    if name == _TABLE and isinstance(form, dict):
        return _read_features(form, arrays, used)
    names = []
    if isinstance(form, list) and name == "scores":
        names = form
    limits = []
    if form == _LIMITS and name == "propensity":
        limits = [0, 1]
    places = [name]
    if form != "array":
        places = [f"{name}.{i}" for i, _ in enumerate(names or limits)]
    texts = all(isinstance(one, str) for one in names)
    distinct = texts and len(set(names)) == len(names)
    if not (places and distinct and set(places) <= arrays.keys()):
        raise FormatError(f"{name} is {form!r:.80}, which is not data of a bundle")
    used |= set(places)
    values = [arrays[place] for place in places]
    if names:
        return dict(zip(names, values, strict=True))
    if limits:
        return tuple(values)
    return values[0]


def _read_features(
    form: Mapping[str, Any], arrays: Mapping[str, Any], used: set[str]
) -> dict[str, Column]:
    """Return the columns of a table of features."""
    writing = form.get("writing")
    if form.keys() != _COLUMNS or not isinstance(writing, dict):
        raise FormatError(f"{_TABLE} is {shown(form)}, not a table of columns and their writing")
    return read_table(_TABLE, form["columns"], arrays, read_writing(writing, named=False), used)


def departure(agreed: Agreement, result: Result, recipe: Recipe) -> str:
    """Return the first departure of an audit from its protocol; empty if there is none.

    Every option of the audit is compared, with its default where the protocol, or the audit, leaves
    it out, but a seed only where the protocol has one; so are the names of the attacks, and the
    guarantee that was checked.
    """
    if recipe.audit not in (known := get_args(Design)):
        return f"a protocol can be for {', '.join(known)}, but this is {recipe.audit}"
    arguments = recipe.arguments
    arrays = set()
    for name in (*ARRAYS, "prior"):
        if isinstance(arguments.get(name), np.ndarray):
            arrays.add(name)
    if arrays != agreed.arrays:
        name = min(arrays ^ agreed.arrays)
        if name in arrays:
            return f"{name}: an array was given, but the protocol has none"
        return f"{name}: the protocol requires an array, and none was given"
    done = {name: arguments[name] for name in arguments.keys() & {*OPTIONS} - arrays}
    done["design"] = recipe.audit
    for name in OPTIONS:
        if name in ARRAYS or (name == "seed" and name not in agreed.options):
            continue  # a seed that was not agreed on is the audit's own
        default = DEFAULTS[name]
        said = agreed.options.get(name, default)
        did = done.get(name, default)
        if encode(said) != encode(did):
            return f"{name}: the protocol has {_shown(name, said)}, the audit {_shown(name, did)}"
    wrong = _other_attacks(list(agreed.attacks), result)
    if wrong:
        return f"attacks: the protocol has {wrong}"
    wrong = _other_check(agreed.checked, result)
    if wrong:
        return f"checked: {wrong}"
    return ""


def _other_attacks(agreed: list[str], result: Result) -> str:
    """Return how the attacks differ from those agreed on."""
    audited = result.options.get("attacks")
    if not isinstance(audited, dict) or not audited:
        return f"{agreed}, but scores have no name: give them as {{name: scores}}"
    listed = list(audited)
    if agreed != listed:
        return f"{agreed}, but {listed!r:.200} were audited"
    return ""


def _shown(name: str, value: object) -> str:
    if name == "cuts" and value is None:
        return '"auto"'
    return shown(encode(value))


def _other_check(agreed: Any, result: Result) -> str:
    """Return how another guarantee was checked than agreed on."""
    one = result.checked
    checked: dict[str, Any] = {}
    if one is not None:
        checked = {one.parameter: one.value, "delta": one.delta or 0.0}
        checked["relation"] = one.compares or "add_remove"
        if one.c is not None:
            checked["c"] = one.c
    stated = {}
    if agreed is not None:
        stated = {"delta": 0.0, "relation": "add_remove", **agreed}
    if stated == checked:
        return ""
    return f"the protocol has {agreed or 'nothing'}, but {checked or 'nothing'} was checked"
