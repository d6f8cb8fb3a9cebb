"""How an audit is run again: its design, its options as JSON, and its data as arrays."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self, TypeAlias, get_args

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
    "AuditResult": AuditResult,
    "PanoramiaResult": PanoramiaResult,
    "ZeroRunResult": ZeroRunResult,
}
"""Types of results that can be computed again, by name."""


def _types_by_name(types: Iterable[type]) -> dict[str, type]:
    # a family of functions cannot be stored
    return {kind.__name__: kind for kind in types if kind is not TradeOffFamily}


# Options that are made of a type and its fields
_OBJECT_OPTIONS = {
    "claim": _types_by_name(CLAIMS),
    "cuts": _types_by_name(CUT_POLICIES),
    "propensity": _types_by_name([LogisticPropensity]),
}
# Arguments that are data: arrays, the plan, or a model that the audit fits.
_DATA_ARGUMENTS = (
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
_ARRAY_ARGUMENTS = {*_DATA_ARGUMENTS, "prior"}
# Options that the audit chooses by default: those that were given are among what was asked.
_FILLED_IN_OPTIONS = {"cuts", "correction", "adversary", "uncertainty"}
_LIMITS = "lower and upper limits"
# Data that may be a table, and the parts of its JSON.
_TABLE_ARGUMENT = "features"
_TABLE_PARTS = {"columns", "writing"}

SYNTHETIC = "synthetic"
"""Name in bundles of the audit of a synthetic table."""
SHARE = 1e-9
"""Part of a number by which other versions and processors may differ."""
VERSIONS = ("leakbound", "python", "numpy")
"""Fields of a result about its origin, which no audit computes."""

# Place of a value in the JSON of a result.
_Place: TypeAlias = tuple[str | int, ...]
_ASKED_PLACE: _Place = ("options", "asked")
_IDS_PLACE: _Place = ("exposed", "ids")
_POLICY_PLACE: _Place = ("options", "cuts", "type")
# What the auditor stated: numbers that were computed from nothing differ in no place.
_STATED_FIELDS = {"confidence", "claim"}
# An input that is computed from those at hand: its digest has no last places.
_END_OF_COMPUTED_DIGEST: _Place = ("provenance", "sha256", "log_odds")
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
            may_be_array = name in _ARRAY_ARGUMENTS or isinstance(value, np.ndarray)
            is_option = isinstance(value, float | LogisticPropensity | None)
            if may_be_array and not is_option:
                data[name] = _data_json(name, value, arrays)
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
        parameters = parameters_of(audit)
        data_arguments = _ARRAY_ARGUMENTS if audit in DESIGNS else parameters
        is_table = isinstance(options, dict) and isinstance(data, dict)
        if not is_table or data.keys() - data_arguments:
            raise FormatError("options and data must be tables of arguments")
        unknown = {*options, *data} - parameters
        if unknown:
            raise FormatError(f"{audit} takes no {', '.join(sorted(unknown)):.60}")
        arguments: dict[str, object] = {}
        for name, option in options.items():
            arguments[name] = read_option(name, option)
        used_arrays: set[str] = set()
        for name, form in data.items():
            arguments[name] = _read_data(
                name, form=form, arrays=arrays, plan=plan, used_arrays=used_arrays
            )
        check_all_used(arrays, used_arrays)
        return cls(audit=audit, arguments=arguments)


def check_all_used(arrays: Mapping[str, AnyArray], used_arrays: set[str]) -> None:
    """Refuse arrays of a bundle that are part of no argument."""
    unused = set(arrays) - used_arrays
    if unused:
        raise FormatError(f"the arrays {', '.join(sorted(unused))} are no argument")


def recipe_of(result: Result, data: Mapping[str, object], options: Mapping[str, object]) -> Recipe:
    """Return the recipe that gives a result again, bit for bit, from its own options.

    Options that an audit filled in are left out, unless the result stores that they were asked for;
    `options` are taken as they are. What runs is the recipe as it is read back.
    """
    if "batches" in result.options:
        raise FormatError("a stream has no bundle: keep its batches, and feed them to a new one")
    audit = design_name(result)
    stored = _stored_options(result, audit)
    asked = {name: option for name, option in stored.items() if was_asked(result, name)}
    arguments = {**asked, **data, **options}
    if "design" in options:
        del arguments["design"]
    if arguments.get("member") is None and "member" not in parameters_of(audit):
        arguments.pop("member", None)  # a design from outside may call it otherwise
    content, arrays = Recipe(audit=audit, arguments=arguments).encoded()
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
    return name not in _FILLED_IN_OPTIONS or name in result.options.get("asked", ())


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
    recomputed = dict(_values_by_place(again.to_dict()))
    stored = dict(_values_by_place(result.to_dict()))
    # Options come first: they say why numbers differ.
    places = sorted({**recomputed, **stored}, key=lambda place: place[0] != "options")
    for place in places:
        if _may_differ(place, stored):
            continue
        name = ".".join(map(str, (type(result).__name__, *place)))
        if place not in recomputed or place not in stored:
            return f"only one of the two has {name}"
        if not exact and place[-3:] == _END_OF_COMPUTED_DIGEST:
            continue
        exactly = exact or place[0] in _STATED_FIELDS
        if not _are_the_same(recomputed[place], stored[place], exact=exactly):
            differs = (
                f"{name} is {shown(stored[place])}, but recomputed it is {shown(recomputed[place])}"
            )
            if place == _POLICY_PLACE:
                differs += _OTHER_DEFAULT
            return differs
    if result.checked is not None and not exact:  # a verdict that `again` does not give is refused
        with_stored_verdict = {**again.to_dict(), "checked": result.to_dict()["checked"]}
        type(again).from_dict(with_stored_verdict)
    return ""


def _may_differ(place: _Place, stored: Mapping[_Place, object]) -> bool:
    """Return whether a place of a stored result is not compared with the result computed again."""
    if place[0] == "checked":
        return True
    if place[-2:-1] == ("provenance",) and place[-1] in VERSIONS:
        return True
    if place[:2] == _IDS_PLACE and stored.get(_IDS_PLACE) == []:
        return True  # a result may leave out ids, as of an index, but has no others
    # older results do not store what was asked
    return place[:2] == _ASKED_PLACE and place not in stored


def _values_by_place(content: JsonValue, place: _Place = ()) -> Iterator[tuple[_Place, JsonValue]]:
    """Yield whatever JSON holds that is no table or list, or an empty one, with its place."""
    if not isinstance(content, dict | list) or not content:
        yield place, content
        return
    parts: Iterable[tuple[str | int, JsonValue]] = enumerate(content)
    if isinstance(content, dict):
        parts = content.items()
    for name, part in parts:
        yield from _values_by_place(part, (*place, name))


def _are_the_same(recomputed: object, stored: object, *, exact: bool) -> bool:
    """Return whether two values of results are the same, numbers perhaps except for rounding."""
    if exact or not isinstance(recomputed, float) or not isinstance(stored, float):
        return repr(recomputed) == repr(stored)  # with the sign of zeros, which a result prints
    if math.copysign(1, recomputed) != math.copysign(1, stored):
        return False
    return math.isclose(recomputed, stored, rel_tol=SHARE, abs_tol=0.0)


def design_name(result: Result) -> str:
    """Return the name of the design behind a result, or of the audit that made it."""
    if isinstance(result, SyntheticResult):
        return SYNTHETIC
    if isinstance(result, ZeroRunResult):
        return ZeroRun.name
    if isinstance(result, PanoramiaResult):
        return Panoramia.name
    return str(result.options.get("design", Coins.name))


def _stored_options(result: Result, audit: str) -> dict[str, object]:
    """Return the options of the audit that a result stores."""
    stored = {**result.options, "claim": result.claim, "confidence": result.confidence}
    if stored.get("uncertainty") == "given":
        del stored["uncertainty"]  # known propensities, which no option says
    c_upper = getattr(result, "c_upper", None)
    if c_upper is not None and not stored.get("real_nonmembers"):
        stored["c_upper"] = c_upper
    option_names = parameters_of(audit) - {*_DATA_ARGUMENTS}
    return {name: option for name, option in stored.items() if name in option_names}


def option_json(name: str, option: object) -> JsonValue:
    """Return an option as JSON: a claim or a policy as a table of its fields."""
    if isinstance(option, np.generic):
        option = option.item()
    content = encode(option)
    if isinstance(option, Policy):
        content = stored_policy(option)
    if not isinstance(content, dict):
        return content
    type_name = str(content.get("type"))
    types = _OBJECT_OPTIONS.get(name, {})
    kind: type | None = types.get(type_name)
    if kind is None and name == "cuts":
        kind = derived(Policy, type_name)
    if kind is None:
        raise FormatError(
            f"{name} is a {content.get('type', 'table')}, which a bundle cannot store"
        )
    stored_fields = {"type"}
    if is_dataclass(kind):
        stored_fields |= {field.name for field in fields(kind) if field.init}
    return {key: part for key, part in content.items() if key in stored_fields}


def read_option(name: str, content: object) -> object:
    """Return an option from JSON."""
    is_table = isinstance(content, dict)
    if name in _OBJECT_OPTIONS and (is_table or name != "cuts"):
        return build(content, name=name, kinds=_OBJECT_OPTIONS[name])
    if name in _DATA_ARGUMENTS or isinstance(content, dict | list):
        raise FormatError(f"{name} is {shown(content)}, which is not a value of this option")
    if content in ("inf", "-inf"):
        return float(content)
    return content


def _data_json(name: str, value: object, arrays: dict[str, AnyArray]) -> JsonValue:
    """Put the arrays of an argument among the others, and say what they make."""
    if isinstance(value, HasMember | Plan):
        return "plan"
    table = None
    if name == _TABLE_ARGUMENT:
        table = table_of(value, name)
    if table is not None:
        columns = list(stored_table(name, table, arrays))
        return {"columns": columns, "writing": stored_writing(table)}
    if isinstance(value, Mapping):
        _data_json(name, tuple(value.values()), arrays)
        return [str(key) for key in value]
    if isinstance(value, tuple):
        for number, part in enumerate(value):
            _data_json(f"{name}.{number}", part, arrays)
        return _LIMITS
    array = np.asarray(value)
    if array.dtype.kind == "O":
        element_types = {type(element) for element in array.ravel().tolist()}
        if element_types == {str}:
            array = array.astype(np.str_)
    if array.dtype.kind not in "biufSU":
        raise FormatError(f"{name} is a {type(value).__name__}, which a bundle cannot store")
    arrays[name] = array
    return "array"


def _read_data(
    name: str,
    form: object,
    arrays: Mapping[str, AnyArray],
    plan: object,
    used_arrays: set[str],
) -> object:
    """Return an argument of arrays: one, several by name, two limits, or the plan."""
    if form == "plan" and name == "member" and plan is not None:
        return plan
    if name == _TABLE_ARGUMENT and isinstance(form, dict):
        return _read_features(form, arrays, used_arrays)
    attack_names: list[Any] = []
    if isinstance(form, list) and name == "scores":
        attack_names = form
    is_limits = form == _LIMITS and name == "propensity"
    array_names = []
    if form == "array":
        array_names = [name]
    elif is_limits:
        array_names = [f"{name}.0", f"{name}.1"]
    else:
        array_names = [f"{name}.{number}" for number in range(len(attack_names))]
    are_texts = all(isinstance(attack, str) for attack in attack_names)
    are_distinct = are_texts and len(set(attack_names)) == len(attack_names)
    are_stored = array_names and arrays.keys() >= set(array_names)
    if not (are_distinct and are_stored):
        raise FormatError(f"{name} is {form!r:.80}, which is not data of a bundle")
    used_arrays.update(array_names)
    values = [arrays[array_name] for array_name in array_names]
    if attack_names:
        return dict(zip(attack_names, values, strict=True))
    if is_limits:
        return tuple(values)
    return values[0]


def _read_features(
    form: Mapping[str, Any], arrays: Mapping[str, AnyArray], used_arrays: set[str]
) -> dict[str, Column]:
    """Return the columns of a table of features."""
    writing = form.get("writing")
    if form.keys() != _TABLE_PARTS or not isinstance(writing, dict):
        raise FormatError(
            f"{_TABLE_ARGUMENT} is {shown(form)}, not a table of columns and their writing"
        )
    return read_table(
        _TABLE_ARGUMENT,
        form["columns"],
        arrays=arrays,
        writing=read_writing(writing, named=False),
        used_arrays=used_arrays,
    )


def departure(agreed: Agreement, result: Result, recipe: Recipe) -> str:
    """Return the first departure of an audit from its protocol; empty if there is none.

    Every option of the audit is compared, with its default where the protocol, or the audit, leaves
    it out, but a seed only where the protocol has one; so are the names of the attacks, and the
    guarantee that was checked.
    """
    designs = get_args(Design)
    if recipe.audit not in designs:
        return f"a protocol can be for {', '.join(designs)}, but this is {recipe.audit}"
    return (
        _departure_of_arrays(agreed, recipe)
        or _departure_of_options(agreed, recipe)
        or _departure_of_attacks(agreed, result)
        or _departure_of_check(agreed, result)
    )


def _array_arguments(recipe: Recipe) -> set[str]:
    """Return the names of arguments that a protocol leaves open and that are arrays."""
    names = set()
    for name in (*ARRAYS, "prior"):
        if isinstance(recipe.arguments.get(name), np.ndarray):
            names.add(name)
    return names


def _departure_of_arrays(agreed: Agreement, recipe: Recipe) -> str:
    """Return which array was given and not agreed on, or the other way round."""
    arrays = _array_arguments(recipe)
    if arrays == agreed.arrays:
        return ""
    name = min(arrays ^ agreed.arrays)
    if name in arrays:
        return f"{name}: an array was given, but the protocol has none"
    return f"{name}: the protocol requires an array, and none was given"


def _departure_of_options(agreed: Agreement, recipe: Recipe) -> str:
    """Return which option differs from the one agreed on."""
    audited = {**recipe.arguments, "design": recipe.audit}
    for name in _array_arguments(recipe):
        del audited[name]
    for name in OPTIONS:
        if name in ARRAYS or (name == "seed" and name not in agreed.options):
            continue  # a seed that was not agreed on is the audit's own
        default = DEFAULTS[name]
        agreed_option = agreed.options.get(name, default)
        audited_option = audited.get(name, default)
        if encode(agreed_option) != encode(audited_option):
            agreed_words = _option_in_words(name, agreed_option)
            audited_words = _option_in_words(name, audited_option)
            return f"{name}: the protocol has {agreed_words}, the audit {audited_words}"
    return ""


def _departure_of_attacks(agreed: Agreement, result: Result) -> str:
    """Return how the attacks differ from those agreed on."""
    agreed_attacks = list(agreed.attacks)
    attacks = result.options.get("attacks")
    if not isinstance(attacks, dict) or not attacks:
        return (
            f"attacks: the protocol has {agreed_attacks}, but scores have no name: give them as "
            "{name: scores}"
        )
    audited_attacks = list(attacks)
    if agreed_attacks == audited_attacks:
        return ""
    return f"attacks: the protocol has {agreed_attacks}, but {audited_attacks!r:.200} were audited"


def _departure_of_check(agreed: Agreement, result: Result) -> str:
    """Return how another guarantee was checked than agreed on."""
    checked = result.checked
    checked_guarantee: dict[str, Any] = {}
    if checked is not None:
        checked_guarantee = {
            checked.parameter: checked.value,
            "delta": checked.delta or 0.0,
            "relation": checked.compares or "add_remove",
        }
        if checked.c is not None:
            checked_guarantee["c"] = checked.c
    agreed_guarantee: dict[str, Any] = {}
    if agreed.checked is not None:
        agreed_guarantee = {"delta": 0.0, "relation": "add_remove", **agreed.checked}
    if agreed_guarantee == checked_guarantee:
        return ""
    return (
        f"checked: the protocol has {agreed.checked or 'nothing'}, but "
        f"{checked_guarantee or 'nothing'} was checked"
    )


def _option_in_words(name: str, option: object) -> str:
    if name == "cuts" and option is None:
        return '"auto"'
    return shown(encode(option))
