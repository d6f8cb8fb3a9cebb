"""How an audit is run again: its design, its options as JSON, and its data as arrays."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Self, TypeAlias, get_args

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.features import table_of
from leakbound._base.messages import Message
from leakbound._base.records import derived, encode
from leakbound._base.tables import Column
from leakbound._base.types import AnyArray, HasMember, JsonObject, JsonValue
from leakbound.audits import Coins, Panoramia, ZeroRun
from leakbound.audits.designs import DESIGNS, DesignOfProtocol, audit_of, is_known, parameters_of
from leakbound.claims import CLAIMS, TradeOffFamily
from leakbound.cuts import CUT_POLICIES, Policy
from leakbound.cuts.policy import stored as stored_policy
from leakbound.errors import FormatError, LeakboundError, OptionError
from leakbound.evidence.stored_tables import read_table, read_writing, stored_table, stored_writing
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import ARRAYS, DEFAULTS, OPTIONS, Agreement, build
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


def _recipe_types_by_name(types: Iterable[type]) -> dict[str, type]:
    # a family of functions cannot be stored
    return {kind.__name__: kind for kind in types if kind is not TradeOffFamily}


# Options that are made of a type and its fields
_OBJECT_OPTIONS = {
    "claim": _recipe_types_by_name(CLAIMS),
    "cuts": _recipe_types_by_name(CUT_POLICIES),
    "propensity": _recipe_types_by_name([LogisticPropensity]),
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
        stored_arrays: dict[str, AnyArray] = {}
        data_forms: JsonObject = {}
        options: JsonObject = {}
        for argument_name, argument in self.arguments.items():
            may_be_array = argument_name in _ARRAY_ARGUMENTS or isinstance(argument, np.ndarray)
            is_option = isinstance(argument, float | LogisticPropensity | None)
            if may_be_array and not is_option:
                data_forms[argument_name] = _recipe_data_json(
                    argument_name, argument, stored_arrays
                )
            else:
                options[argument_name] = option_json(argument_name, argument)
        return {"audit": self.audit, "options": options, "data": data_forms}, stored_arrays

    @classmethod
    def decoded(
        cls, recipe_json: object, stored_arrays: Mapping[str, AnyArray], plan: object
    ) -> Self:
        """Return the recipe stored as JSON and arrays."""
        if not isinstance(recipe_json, dict) or recipe_json.keys() != {"audit", "options", "data"}:
            raise FormatError("it must have exactly audit, options and data")
        design = recipe_json["audit"]
        stored_options = recipe_json["options"]
        data_forms = recipe_json["data"]
        if not isinstance(design, str) or not is_known(design):
            raise FormatError(
                f"unknown design {design!r:.60}: it must be one of {', '.join(DESIGNS)}, or its "
                "module be imported"
            )
        design_parameters = parameters_of(design)
        data_arguments = _ARRAY_ARGUMENTS
        if design not in DESIGNS:
            data_arguments = design_parameters
        is_table = isinstance(stored_options, dict) and isinstance(data_forms, dict)
        if not is_table or data_forms.keys() - data_arguments:
            raise FormatError("options and data must be tables of arguments")
        unknown = {*stored_options, *data_forms} - design_parameters
        if unknown:
            raise FormatError(f"{design} takes no {', '.join(sorted(unknown)):.60}")
        arguments: dict[str, object] = {}
        for argument_name, stored_option in stored_options.items():
            if isinstance(stored_option, list) and design not in DESIGNS:
                arguments[argument_name] = _read_list_option(argument_name, stored_option)
            else:
                arguments[argument_name] = read_option(argument_name, stored_option)
        unread_arrays = dict(stored_arrays)
        for argument_name, stored_form in data_forms.items():
            arguments[argument_name] = _read_recipe_data(
                argument_name, stored_form, unread_arrays, plan
            )
        check_all_arrays_read(unread_arrays)
        return cls(audit=design, arguments=arguments)


def check_all_arrays_read(unread_arrays: Mapping[str, AnyArray]) -> None:
    """Refuse arrays of a bundle that are part of no argument."""
    if unread_arrays:
        raise FormatError(f"the arrays {', '.join(sorted(unread_arrays))} are no argument")


def recipe_of(result: Result, data: Mapping[str, object], options: Mapping[str, object]) -> Recipe:
    """Return the recipe that gives a result again, bit for bit, from its own options.

    Options that an audit filled in are left out, unless the result stores that they were asked for;
    `options` are taken as they are. What runs is the recipe as it is read back.
    """
    if "batches" in result.options:
        raise FormatError("a stream has no bundle: keep its batches, and feed them to a new one")
    audit = design_name(result)
    stored_options = _recipe_options_of_result(result, audit)
    asked_options = {
        option_name: option
        for option_name, option in stored_options.items()
        if was_asked(result, option_name)
    }
    arguments = {**asked_options, **data, **options}
    if "design" in options:
        del arguments["design"]
    if arguments.get("member") is None and "member" not in parameters_of(audit):
        arguments.pop("member", None)  # a design from outside may call it otherwise
    recipe_json, stored_arrays = Recipe(audit=audit, arguments=arguments).encoded()
    recipe = Recipe.decoded(recipe_json, stored_arrays, data.get("member"))
    try:
        flaw = flaw_of_rerun(recipe.run, result)
    except Exception as error:
        policy = recipe.arguments.get("cuts")
        if policy is None or type(policy) in CUT_POLICIES:
            raise
        message = (
            "{policy} fails once it was stored and read back ({kind}: {error}): its fields must be "
            "text, numbers, other policies, or lists of these, not functions, arrays or NaN"
        )
        raise OptionError(
            Message(message, policy=type(policy).__name__, kind=type(error).__name__, error=error)
        ) from error
    if flaw:
        raise FormatError(
            f"auditing these scores and this membership by {audit} gives another result: "
            f"{flaw}; pass the original data, and options that the result does not store as "
            "options={…}"
        )
    return recipe


def was_asked(result: Result, option_name: str) -> bool:
    """Return whether an option was given, and not filled in by the audit."""
    return option_name not in _FILLED_IN_OPTIONS or option_name in result.options.get("asked", ())


def flaw_of_rerun(run: Callable[[], Result], result: Result) -> str:
    """Run an audit again; return its first difference from a result, or why it failed."""
    try:
        return difference_of_rerun(run(), result)
    except LeakboundError as error:
        return str(error)


def difference_of_rerun(again: Result, result: Result, *, exact: bool = True) -> str:
    """Return the first difference between two results; empty if there is none.

    Versions are ignored, and so is the claim that was checked, but its verdict must follow from
    the bound of `again`. Unless exact, numbers may differ by the relative amount `SHARE`, except
    claim and confidence, which are not computed; digests of computed numbers are then ignored.
    Everything else must be equal, whatever version a result names.
    """
    recomputed_values = dict(_result_values_by_place(again.to_dict()))
    stored_values = dict(_result_values_by_place(result.to_dict()))
    # Options come first: they say why numbers differ.
    places_of_values = sorted(
        {**recomputed_values, **stored_values},
        key=lambda place_of_value: place_of_value[0] != "options",
    )
    for place_of_value in places_of_values:
        if _is_exempt_from_rerun(place_of_value, stored_values):
            continue
        name_of_place = ".".join(map(str, (type(result).__name__, *place_of_value)))
        if place_of_value not in recomputed_values or place_of_value not in stored_values:
            return f"only one of the two has {name_of_place}"
        if not exact and place_of_value[-3:] == _END_OF_COMPUTED_DIGEST:
            continue
        must_be_exact = exact or place_of_value[0] in _STATED_FIELDS
        if not _are_equal_after_rerun(
            recomputed_values[place_of_value], stored_values[place_of_value], exact=must_be_exact
        ):
            stored_words = shown(stored_values[place_of_value])
            recomputed_words = shown(recomputed_values[place_of_value])
            sentence = f"{name_of_place} is {stored_words}, but recomputed it is {recomputed_words}"
            if place_of_value == _POLICY_PLACE:
                sentence += _OTHER_DEFAULT
            return sentence
    if result.checked is not None and not exact:  # a verdict that `again` does not give is refused
        with_stored_verdict = {**again.to_dict(), "checked": result.to_dict()["checked"]}
        type(again).from_dict(with_stored_verdict)
    return ""


def _is_exempt_from_rerun(place_of_value: _Place, stored_values: Mapping[_Place, object]) -> bool:
    """Return whether a place of a stored result is not compared with the result computed again."""
    if place_of_value[0] == "checked":
        return True
    if place_of_value[-2:-1] == ("provenance",) and place_of_value[-1] in VERSIONS:
        return True
    if place_of_value[:2] == _IDS_PLACE and stored_values.get(_IDS_PLACE) == []:
        return True  # a result may leave out ids, as of an index, but has no others
    # older results do not store what was asked
    return place_of_value[:2] == _ASKED_PLACE and place_of_value not in stored_values


def _result_values_by_place(
    json_value: JsonValue, place: _Place = ()
) -> Iterator[tuple[_Place, JsonValue]]:
    """Yield whatever JSON holds that is no table or list, or an empty one, with its place."""
    if not isinstance(json_value, dict | list) or not json_value:
        yield place, json_value
        return
    parts_by_key: Iterable[tuple[str | int, JsonValue]] = enumerate(json_value)
    if isinstance(json_value, dict):
        parts_by_key = json_value.items()
    for key, part in parts_by_key:
        yield from _result_values_by_place(part, (*place, key))


def _are_equal_after_rerun(recomputed_value: object, stored_value: object, *, exact: bool) -> bool:
    """Return whether two values of results are the same, numbers perhaps except for rounding."""
    if exact or not isinstance(recomputed_value, float) or not isinstance(stored_value, float):
        # with the sign of zeros, which a result prints
        return repr(recomputed_value) == repr(stored_value)
    if math.copysign(1, recomputed_value) != math.copysign(1, stored_value):
        return False
    return math.isclose(recomputed_value, stored_value, rel_tol=SHARE, abs_tol=0.0)


def design_name(result: Result) -> str:
    """Return the name of the design behind a result, or of the audit that made it."""
    if isinstance(result, SyntheticResult):
        return SYNTHETIC
    if isinstance(result, ZeroRunResult):
        return ZeroRun.name
    if isinstance(result, PanoramiaResult):
        return Panoramia.name
    return str(result.options.get("design", Coins.name))


def _recipe_options_of_result(result: Result, audit: str) -> dict[str, object]:
    """Return the options of the audit that a result stores."""
    stored_options = {**result.options, "claim": result.claim, "confidence": result.confidence}
    if stored_options.get("uncertainty") == "given":
        del stored_options["uncertainty"]  # known propensities, which no option says
    c_upper = getattr(result, "c_upper", None)
    if c_upper is not None and not stored_options.get("real_nonmembers"):
        stored_options["c_upper"] = c_upper
    option_names = parameters_of(audit) - {*_DATA_ARGUMENTS}
    return {
        option_name: option
        for option_name, option in stored_options.items()
        if option_name in option_names
    }


def option_json(option_name: str, option: object) -> JsonValue:
    """Return an option as JSON: a claim or a policy as a table of its fields."""
    if isinstance(option, np.generic):
        option = option.item()
    option_fields = encode(option)
    if isinstance(option, Policy):
        option_fields = stored_policy(option)
    if not isinstance(option_fields, dict):
        return option_fields
    type_name = str(option_fields.get("type"))
    option_types = _OBJECT_OPTIONS.get(option_name, {})
    option_type: type | None = option_types.get(type_name)
    if option_type is None and option_name == "cuts":
        option_type = derived(Policy, type_name)
    if option_type is None:
        raise FormatError(
            f"{option_name} is a {option_fields.get('type', 'table')}, which a bundle cannot store"
        )
    stored_fields = {"type"}
    if is_dataclass(option_type):
        stored_fields |= {field.name for field in fields(option_type) if field.init}
    return {
        field_name: stored_value
        for field_name, stored_value in option_fields.items()
        if field_name in stored_fields
    }


def read_option(option_name: str, option_content: object) -> object:
    """Return an option from JSON."""
    is_table = isinstance(option_content, dict)
    if option_name in _OBJECT_OPTIONS and (is_table or option_name != "cuts"):
        return build(option_content, name=option_name, kinds=_OBJECT_OPTIONS[option_name])
    if option_name in _DATA_ARGUMENTS or isinstance(option_content, dict | list):
        raise FormatError(
            f"{option_name} is {shown(option_content)}, which is not a value of this option"
        )
    if option_content in ("inf", "-inf"):
        return float(option_content)
    return option_content


def _read_list_option(option_name: str, option_content: list[object]) -> list[object]:
    """Return an option of a design from outside that is a list, perhaps of lists."""
    values: list[object] = []
    for part in option_content:
        if isinstance(part, list):
            values.append(_read_list_option(option_name, part))
        else:
            values.append(read_option(option_name, part))
    return values


def _recipe_data_json(
    argument_name: str, argument: object, stored_arrays: dict[str, AnyArray]
) -> JsonValue:
    """Put the arrays of an argument among the others, and say what they make."""
    if isinstance(argument, HasMember | Plan):
        return "plan"
    feature_table = None
    if argument_name == _TABLE_ARGUMENT:
        feature_table = table_of(argument, argument_name)
    if feature_table is not None:
        stored_columns = list(stored_table(argument_name, feature_table, stored_arrays))
        return {"columns": stored_columns, "writing": stored_writing(feature_table)}
    if isinstance(argument, Mapping):
        _recipe_data_json(argument_name, tuple(argument.values()), stored_arrays)
        return [str(key) for key in argument]
    if isinstance(argument, tuple):
        for part_number, array_part in enumerate(argument):
            _recipe_data_json(f"{argument_name}.{part_number}", array_part, stored_arrays)
        return _LIMITS
    argument_array = np.asarray(argument)
    if argument_array.dtype.kind == "O":
        element_types = {type(element) for element in argument_array.ravel().tolist()}
        if element_types == {str}:
            argument_array = argument_array.astype(np.str_)
    if argument_array.dtype.kind not in "biufSU":
        raise FormatError(
            f"{argument_name} is a {type(argument).__name__}, which a bundle cannot store"
        )
    stored_arrays[argument_name] = argument_array
    return "array"


def _read_recipe_data(
    argument_name: str, stored_form: object, unread_arrays: dict[str, AnyArray], plan: object
) -> object:
    """Return an argument of arrays: one, several by name, two limits, or the plan."""
    if stored_form == "plan" and argument_name == "member" and plan is not None:
        return plan
    if argument_name == _TABLE_ARGUMENT and isinstance(stored_form, dict):
        return _read_recipe_features(stored_form, unread_arrays)
    attack_names: list[Any] = []
    if isinstance(stored_form, list) and argument_name == "scores":
        attack_names = stored_form
    is_limits = stored_form == _LIMITS and argument_name == "propensity"
    array_count = len(attack_names)
    if is_limits:
        array_count = 2
    array_names = [f"{argument_name}.{number}" for number in range(array_count)]
    if stored_form == "array":
        array_names = [argument_name]
    are_texts = all(isinstance(attack_name, str) for attack_name in attack_names)
    are_distinct = are_texts and len(set(attack_names)) == len(attack_names)
    are_stored = array_names and unread_arrays.keys() >= set(array_names)
    if not (are_distinct and are_stored):
        raise FormatError(f"{argument_name} is {stored_form!r:.80}, which is not data of a bundle")
    arrays_of_argument = [unread_arrays.pop(array_name) for array_name in array_names]
    if attack_names:
        return dict(zip(attack_names, arrays_of_argument, strict=True))
    if is_limits:
        return tuple(arrays_of_argument)
    return arrays_of_argument[0]


def _read_recipe_features(
    stored_form: Mapping[str, Any], unread_arrays: dict[str, AnyArray]
) -> dict[str, Column]:
    """Return the columns of a table of features."""
    writing = stored_form.get("writing")
    if stored_form.keys() != _TABLE_PARTS or not isinstance(writing, dict):
        raise FormatError(
            f"{_TABLE_ARGUMENT} is {shown(stored_form)}, not a table of columns and their writing"
        )
    return read_table(
        _TABLE_ARGUMENT,
        stored_form["columns"],
        unread_arrays=unread_arrays,
        writing=read_writing(writing, named=False),
    )


def recipe_departure(agreed: Agreement, result: Result, recipe: Recipe) -> str:
    """Return the first departure of an audit from its protocol; empty if there is none.

    Every option of the audit is compared, with its default where the protocol, or the audit, leaves
    it out, but a seed only where the protocol has one; so are the names of the attacks, and the
    guarantee that was checked.
    """
    designs = get_args(DesignOfProtocol)
    if recipe.audit not in designs:
        return f"a protocol can be for {', '.join(designs)}, but this is {recipe.audit}"
    return (
        _recipe_departure_of_arrays(agreed, recipe)
        or _recipe_departure_of_options(agreed, recipe)
        or _recipe_departure_of_attacks(agreed, result)
        or _recipe_departure_of_check(agreed, result)
    )


def _array_arguments_of_recipe(recipe: Recipe) -> set[str]:
    """Return the names of arguments that a protocol leaves open and that are arrays."""
    array_arguments = set()
    for argument_name in (*ARRAYS, "prior"):
        if isinstance(recipe.arguments.get(argument_name), np.ndarray):
            array_arguments.add(argument_name)
    return array_arguments


def _recipe_departure_of_arrays(agreed: Agreement, recipe: Recipe) -> str:
    """Return which array was given and not agreed on, or the other way round."""
    array_arguments = _array_arguments_of_recipe(recipe)
    if array_arguments == agreed.arrays:
        return ""
    argument_name = min(array_arguments ^ agreed.arrays)
    if argument_name in array_arguments:
        return f"{argument_name}: an array was given, but the protocol has none"
    return f"{argument_name}: the protocol requires an array, and none was given"


def _recipe_departure_of_options(agreed: Agreement, recipe: Recipe) -> str:
    """Return which option differs from the one agreed on."""
    audited_options = {**recipe.arguments, "design": recipe.audit}
    for option_name in _array_arguments_of_recipe(recipe):
        del audited_options[option_name]
    for option_name in OPTIONS:
        if option_name in ARRAYS or (option_name == "seed" and option_name not in agreed.options):
            continue  # a seed that was not agreed on is the audit's own
        default_option = DEFAULTS[option_name]
        agreed_option = agreed.options.get(option_name, default_option)
        audited_option = audited_options.get(option_name, default_option)
        if encode(agreed_option) != encode(audited_option):
            agreed_words = _recipe_option_in_words(option_name, agreed_option)
            audited_words = _recipe_option_in_words(option_name, audited_option)
            return f"{option_name}: the protocol has {agreed_words}, the audit {audited_words}"
    return ""


def _recipe_departure_of_attacks(agreed: Agreement, result: Result) -> str:
    """Return how the attacks differ from those agreed on."""
    agreed_attacks = list(agreed.attacks)
    audited_scores = result.options.get("attacks")
    if not isinstance(audited_scores, dict) or not audited_scores:
        return (
            f"attacks: the protocol has {agreed_attacks}, but scores have no name: give them as "
            "{name: scores}"
        )
    audited_attacks = list(audited_scores)
    if agreed_attacks == audited_attacks:
        return ""
    return f"attacks: the protocol has {agreed_attacks}, but {audited_attacks!r:.200} were audited"


def _recipe_departure_of_check(agreed: Agreement, result: Result) -> str:
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


def _recipe_option_in_words(option_name: str, option: object) -> str:
    if option_name == "cuts" and option is None:
        return '"auto"'
    return shown(encode(option))
