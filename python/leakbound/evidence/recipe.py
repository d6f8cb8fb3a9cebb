"""How an audit is run again: its function, its options and its data, as JSON and arrays."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.types import HasMember
from leakbound.audits import Coins, Panoramia, ZeroRun
from leakbound.audits.designs import DESIGNS, audit_of, design_of
from leakbound.audits.road import audit as leakbound_audit
from leakbound.claims import CLAIMS, TradeOffFamily
from leakbound.cuts import CUT_POLICIES
from leakbound.errors import FormatError, LeakboundError
from leakbound.evidence.comparison import difference
from leakbound.propensity import LogisticPropensity
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from leakbound._base.types import JsonValue
    from leakbound.results.base import Result

RESULTS: dict[str, type[Result]] = {
    kind.__name__: kind for kind in (AuditResult, PanoramiaResult, ZeroRunResult)
}
"""Types of results that can be computed again."""
_OBJECTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (*CLAIMS, *CUT_POLICIES, LogisticPropensity)
    if kind is not TradeOffFamily
}
"""What an argument may be besides numbers, words and arrays: made of its fields, nothing else."""
_DATA = {
    *("scores", "baseline", "member"),
    *("propensity", "features", "strata", "groups", "ids"),
}
"""Arguments that are not options."""
_ARRAYS = _DATA | {"prior"}
"""Arguments that are arrays, or may be."""
_NUMBERS = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Recipe:
    """The design of an audit by name, and all arguments, those of the design among them."""

    audit: str
    arguments: Mapping[str, Any]

    def run(self) -> Result:
        """Run the audit."""
        result: Result = audit_of(self.audit, **self.arguments)
        return result

    def encoded(self) -> tuple[dict[str, JsonValue], dict[str, NDArray[Any]]]:
        """Return the recipe as JSON, and the arrays that it refers to."""
        arrays: dict[str, NDArray[Any]] = {}
        arguments = {name: _encoded(value, arrays, name) for name, value in self.arguments.items()}
        return {"audit": self.audit, "arguments": arguments}, arrays

    @classmethod
    def decoded(cls, content: Any, arrays: Mapping[str, NDArray[Any]], plan: Any) -> Recipe:
        """Return the recipe of JSON and arrays; a plan stands for itself."""
        if not isinstance(content, dict) or content.keys() != {"audit", "arguments"}:
            message = "it has audit and arguments, and nothing else"
            raise FormatError(message)
        name, given = content["audit"], content["arguments"]
        if not isinstance(name, str) or name not in DESIGNS or not isinstance(given, dict):
            message = f"{name!r:.60} is none of the designs {', '.join(DESIGNS)}"
            raise FormatError(message)
        unknown = given.keys() - _parameters(name).keys()
        if unknown:
            message = f"{name} takes no {', '.join(sorted(unknown))!r:.60}"
            raise FormatError(message)
        used: set[str] = set()
        arguments = {
            key: _argument(key, _decoded(one, arrays, plan, used)) for key, one in given.items()
        }
        if used != set(arrays):
            message = f"the arrays {', '.join(sorted(set(arrays) - used))} are no argument"
            raise FormatError(message)
        return cls(name, arguments)


def recipe_of(result: Result, data: Mapping[str, Any], options: Mapping[str, Any]) -> Recipe:
    """Return the recipe that gives a result again, bit for bit, from its own options.

    Options that an audit fills in by itself are left out, or given as they were filled in, until
    the result is the same; `options` are given as they are. What is run is the recipe as it is read
    back from a bundle.
    """
    audit = design_name(result)
    known = _parameters(audit)
    options = {name: value for name, value in options.items() if name != "design"}
    unknown = (data.keys() | options.keys()) - known.keys()
    if unknown:
        message = f"{audit} takes no {', '.join(sorted(unknown))}"
        raise FormatError(message)
    found = ""
    for arguments in _attempts(result, known, {**data, **options}):
        recipe = Recipe.decoded(*Recipe(audit, arguments).encoded(), data.get("member"))
        try:
            again = recipe.run()
        except LeakboundError as error:
            found = found or str(error)
            continue
        differs = difference(again, result)
        if not differs:
            return recipe
        found = differs
    message = (
        f"these scores and this membership do not give the result again by {audit}: {found}; pass "
        "what it was audited with, and options that the result does not tell by options={…}"
    )
    raise FormatError(message)


def _attempts(
    result: Result, known: Mapping[str, inspect.Parameter], given: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield arguments to try: options that are filled in left out, then as they were filled in."""
    stored: dict[str, Any] = {"claim": result.claim, "confidence": result.confidence}
    if getattr(result, "c_upper", None) is not None and not result.options.get("real_nonmembers"):
        stored["c_upper"] = getattr(result, "c_upper")  # noqa: B009 (of one type of result)
    for name, value in result.options.items():
        if (name, value) == ("uncertainty", "given"):
            continue  # known propensities, which no option says
        if name in known and name not in _DATA | {"claim"}:
            made = revived(value)
            if made is not None:
                stored[name] = made
    stored = {name: value for name, value in stored.items() if name in known} | dict(given)
    automatic = [
        name
        for name in stored
        if known[name].default in (None, "conditional") and name not in {"seed", "claim", *given}
    ]
    left = {name: value for name, value in stored.items() if name not in automatic}
    yield left
    yield stored


def revived(value: Any) -> Any:
    """Return an option as an argument; None if it cannot be one."""
    if not isinstance(value, dict):
        return value
    kind = _OBJECTS.get(value.get("type", ""))
    if kind is None:
        return None
    names = {one.name for one in fields(kind) if one.init}
    try:
        return kind(**{name: one for name, one in value.items() if name in names})
    except (LeakboundError, TypeError):  # TypeError: a field is missing
        return None


def design_name(result: Result) -> str:
    """Return the name of the design behind a result."""
    if isinstance(result, ZeroRunResult):
        return ZeroRun.name
    if isinstance(result, PanoramiaResult):
        return Panoramia.name
    return str(result.options.get("design", Coins.name))


def _parameters(audit: str) -> Mapping[str, inspect.Parameter]:
    """Return what a design and its audit take."""
    known = dict(inspect.signature(design_of(audit)).parameters)
    known |= {
        k: v for k, v in inspect.signature(leakbound_audit).parameters.items() if k != "design"
    }
    return known


def _encoded(value: Any, arrays: dict[str, NDArray[Any]], name: str) -> JsonValue:
    if isinstance(value, HasMember):
        return {"plan": True}
    if isinstance(value, np.bool_ | np.integer):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return {"value": value}
    if isinstance(value, float | np.floating):
        number = float(value)
        return {"value": number} if math.isfinite(number) else {"number": str(number)}
    if type(value).__name__ in _OBJECTS and is_dataclass(value):
        content = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
        listed = {key: tuple(one) if isinstance(one, list) else one for key, one in content.items()}
        made = {key: _encoded(one, arrays, f"{name}.{key}") for key, one in listed.items()}
        return {"object": type(value).__name__, "fields": made}
    if isinstance(value, Mapping):
        return {
            "mapping": [
                [str(key), _encoded(one, arrays, f"{name}.{key}")] for key, one in value.items()
            ]
        }
    if isinstance(value, tuple):
        return {"tuple": [_encoded(one, arrays, f"{name}.{i}") for i, one in enumerate(value)]}
    array = np.asarray(value)
    if array.dtype.kind == "O" and {type(one) for one in array.ravel().tolist()} == {str}:
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufSU":
        message = f"{name} is a {type(value).__name__}, which a bundle cannot hold"
        raise FormatError(message)
    place = f"array-{len(arrays)}"
    arrays[place] = array
    return {"array": place}


def _argument(name: str, value: Any) -> Any:
    """Return a decoded argument if it is of a kind that this one can be."""
    kinds: dict[str, tuple[type[Any], ...]] = {
        "claim": (*CLAIMS,),
        "cuts": (*CUT_POLICIES, type(None)),
        "member": (np.ndarray, HasMember),
        "scores": (np.ndarray, dict),
        "propensity": (np.ndarray, tuple, LogisticPropensity),
    }
    plain: tuple[type[Any], ...] = (bool, int, float, str, type(None))
    arrays: tuple[type[Any], ...] = (np.ndarray,) if name in _ARRAYS else ()
    if not isinstance(value, kinds.get(name, plain + arrays)):
        message = f"{name} is {shown(value)}, which this argument cannot be"
        raise FormatError(message)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    if not all(isinstance(one, np.ndarray) for one in inner):
        message = f"{name} holds something else than arrays"
        raise FormatError(message)
    return value


def _decoded(content: Any, arrays: Mapping[str, Any], plan: Any, used: set[str]) -> Any:
    """Build an argument; whatever is wrong with it ends in an error of this package."""
    kind = next(iter(content), "") if isinstance(content, dict) else ""
    inner = content[kind] if kind else None
    if kind == "plan" and content == {"plan": True} and plan is not None:
        return plan
    if kind == "value" and len(content) == 1 and not isinstance(inner, dict | list):
        return inner
    if kind == "number" and len(content) == 1 and isinstance(inner, str) and inner in _NUMBERS:
        return _NUMBERS[inner]
    if kind == "array" and len(content) == 1 and isinstance(inner, str) and inner in arrays:
        if inner in used:
            message = f"{inner} stands for two arguments, and each has an array of its own"
            raise FormatError(message)
        used.add(inner)
        return arrays[inner]
    if kind == "tuple" and len(content) == 1 and isinstance(inner, list):
        return tuple(_decoded(one, arrays, plan, used) for one in inner)
    if kind == "mapping" and len(content) == 1 and isinstance(inner, list):
        pairs = [one for one in inner if isinstance(one, list) and len(one) == 2]
        names = [one[0] for one in pairs if isinstance(one[0], str)]
        if len(set(names)) == len(inner):
            return {key: _decoded(one, arrays, plan, used) for key, one in pairs}
    if isinstance(content, dict) and content.keys() == {"object", "fields"}:
        made, given = _OBJECTS.get(str(content["object"])), content["fields"]
        if made is not None and isinstance(given, dict):
            known = {one.name for one in fields(made) if one.init}
            if given.keys() <= known:
                values = {key: _decoded(one, {}, None, used) for key, one in given.items()}
                try:
                    return made(**values)
                except TypeError as error:
                    raise FormatError(str(error)) from error
    message = f"an argument is {content!r:.80}, which is none of a bundle"
    raise FormatError(message)
