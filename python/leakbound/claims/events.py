"""Mechanisms as accountants describe them, `dp_accounting.DpEvent`, with less noise than they say.

An event is kept as text: its class and fields in JSON, so that results with it can be stored.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from leakbound._base.checks import integer, real
from leakbound._base.imports import needs
from leakbound._base.types import JsonObject, Relation, Sides
from leakbound.claims.dp_sgd import allowed, attained_of
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import InputTypeError, OptionError

# Of each event, the field of its noise, and the power of θ that less noise multiplies it by
_NOISE = {
    "GaussianDpEvent": ("noise_multiplier", -1),
    "LaplaceDpEvent": ("noise_multiplier", -1),
    "DiscreteLaplaceDpEvent": ("noise_parameter", 1),
    "MixtureOfGaussiansDpEvent": ("standard_deviation", -1),
    "TruncatedSubsampledGaussianDpEvent": ("noise_multiplier", -1),
}
# Of events that have others within, where
_INNER = {
    "ComposedDpEvent": "events",
    "SelfComposedDpEvent": "event",
    "PoissonSampledDpEvent": "event",
}
# Mechanisms composed, at most: the law of a sum of more takes too much memory, and time
_MOST = 10**6
_NOTHING = "NoOpDpEvent"
# Why the others are no family
_REFUSED = {
    "NonPrivateDpEvent": "it keeps nothing private, whatever its noise",
    "RandomizedResponseDpEvent": (
        "it has no noise to divide: audit a local mechanism with PureDP, whose ε is that of the "
        "response"
    ),
    "ZCDpEvent": "it states Rényi divergences, and no noise: claim ZeroConcentratedDP()",
}
# Losses are rounded up to multiples of this, and finer ones where ε is converted
_STEP = 1e-3
_FINEST = 2e-5
_ROUNDED = 1e-2
_SHORT = "DpEvent"


def described(event: object) -> str:
    """Return an event as text; refuse anything else."""
    with needs("dp", "from_event"):
        from dp_accounting import dp_event
    if not isinstance(event, dp_event.DpEvent):
        raise InputTypeError(f"event must be a dp_accounting.DpEvent, got {type(event).__name__}")
    return json.dumps(_content(event), sort_keys=True)


def _content(value: object) -> Any:
    """Return an event, and those within, as what JSON has."""
    if hasattr(value, "__attrs_attrs__"):
        fields = {one.name: _content(getattr(value, one.name)) for one in value.__attrs_attrs__}
        return {"type": type(value).__name__} | fields
    if isinstance(value, list | tuple):
        return [_content(one) for one in value]
    if hasattr(value, "item"):
        return value.item()  # of NumPy
    return value


def read(text: str) -> JsonObject:
    """Return the content of an event that is kept as text; refuse what is no family by its name."""
    try:
        content = json.loads(text)
        parts = [*_parts(content)]
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent: {error}") from error
    for one in parts:
        _check_part(one)
    count = count_of(content)
    if count > _MOST:
        raise OptionError(f"{name_of(content)} composes {count:,} mechanisms, of {_MOST:,} at most")
    return dict(content)


def _check_part(one: Any) -> None:
    """Refuse a part of an event that has no noise to divide, or is no event."""
    kind = None
    if isinstance(one, Mapping):
        kind = one.get("type")
    if not (isinstance(kind, str) and kind.endswith(_SHORT)):
        raise OptionError(f"event must be JSON of a dp_accounting.DpEvent, got {kind!r}")
    if kind in _REFUSED:
        raise OptionError(f"{kind} is not a family: {_REFUSED[kind]}")
    if kind not in {*_NOISE, *_INNER, _NOTHING}:
        raise OptionError(f"{kind} is not supported by dp_accounting's PLDAccountant")
    if kind in _NOISE:
        field, _ = _NOISE[kind]
        real(one.get(field), name=f"{field} of {kind}", above=0, below=math.inf)
    if kind in _INNER and not isinstance(one.get(_INNER[kind]), list | Mapping):
        raise OptionError(f"{kind} has no {_INNER[kind]}")
    if kind == "SelfComposedDpEvent":
        integer(one.get("count"), name=f"count of {kind}", least=0)


def _parts(content: object) -> Iterator[Any]:
    """Yield an event, and all within it."""
    yield content
    if not isinstance(content, Mapping):
        return
    inner = content.get("events", [])
    if isinstance(inner, list):
        for one in inner:
            yield from _parts(one)
    if "event" in content:
        yield from _parts(content["event"])


def check(content: JsonObject, relation: Relation) -> None:
    """Refuse events that the accountant does not support, by the part that it does not."""
    with needs("dp", "from_event"):
        accountant = _accountant(relation, _STEP)
    for one in reversed([*_parts(content)]):  # the innermost first
        if not accountant.supports(built(one)):
            inner = ""
            if isinstance(one.get("event"), Mapping):
                inner = f" of {one['event']['type']}"
            raise OptionError(
                f"{one['type']}{inner} is not supported by dp_accounting's PLDAccountant for "
                f"relation={relation!r}"
            )
    if not _has_effect(content):
        raise OptionError(f"nothing in {name_of(content)} has noise that can be divided")


def _has_effect(content: Mapping[str, Any]) -> bool:
    """Return whether an event shows anything of its data."""
    kind = content["type"]
    if kind in _NOISE:
        reached = [content.get("sampling_probability", 1), content.get("dataset_size", 1)]
        return bool(all(reached) and any(content.get("sensitivities", [1])))
    if kind == _NOTHING:
        return False
    if not (content.get("count", 1) and content.get("sampling_probability", 1)):
        return False
    inner = [*content.get("events", [])]
    if "event" in content:
        inner.append(content["event"])
    return any(_has_effect(one) for one in inner)


def built(content: Mapping[str, Any], divisor: float = 1.0) -> Any:
    """Return the event of some content, with all of its noise divided."""
    from dp_accounting import dp_event

    kind = str(content["type"])
    fields = {name: value for name, value in content.items() if name != "type"}
    if kind in _NOISE:
        field, power = _NOISE[kind]
        fields[field] = fields[field] * divisor**power
    if "event" in fields:
        fields["event"] = built(fields["event"], divisor)
    if "events" in fields:
        fields["events"] = [built(one, divisor) for one in fields["events"]]
    try:
        return getattr(dp_event, kind)(**fields)
    except TypeError as error:
        raise OptionError(f"{kind} has other fields: {error}") from error


def name_of(content: Mapping[str, Any]) -> str:
    """Return an event in short, such as "Composed(Gaussian(1), Laplace(2))"."""
    kind = str(content["type"]).removesuffix(_SHORT)
    said = list[str]()
    for name, value in content.items():
        if name == "type":
            continue
        if name == "events":
            said.extend(name_of(one) for one in value)
        elif isinstance(value, Mapping):
            said.append(name_of(value))
        elif isinstance(value, int | float):
            said.append(f"{value:g}")
        else:
            said.append(str(value))
    return f"{kind}({', '.join(said)})"


def count_of(content: Mapping[str, Any]) -> int:
    """Return how many mechanisms are composed, at most."""
    kind = content["type"]
    if kind == "SelfComposedDpEvent":
        return int(content["count"]) * count_of(content["event"])
    if kind == "ComposedDpEvent":
        return sum(count_of(one) for one in content["events"])
    return 1


def _accountant(relation: Relation, step: float) -> Any:
    from dp_accounting import NeighboringRelation as Neighbours
    from dp_accounting.pld import PLDAccountant

    neighbours = Neighbours.ADD_OR_REMOVE_ONE
    if relation == "replace":
        neighbours = Neighbours.REPLACE_ONE
    return PLDAccountant(neighbours, value_discretization_interval=step)


def _loss(text: str, relation: Relation, divisor: float, step: float) -> Any:
    """Return the law of the privacy loss of an event with less noise, rounded up."""
    accountant = _accountant(relation, step)
    accountant.compose(built(read(text), divisor))
    return accountant._pld  # noqa: SLF001 (its δ at a grid of ε, by `claims.dp_sgd`, is faster)


def _orders(relation: Relation, sides: Sides) -> list[str]:
    """Return the orders of the two data sets that guesses of some sides are about."""
    if sides == "member" and relation == "add_remove":
        return ["remove"]
    return ["remove", "add"]


@lru_cache(maxsize=512)
def of_event(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that an event with less noise obeys, by its pessimistic loss distribution."""
    loss = _loss(text, relation, divisor, _STEP)
    return allowed(loss, _orders(relation, sides))


@lru_cache(maxsize=512)
def attained_by(text: str, relation: Relation, divisor: float, sides: Sides) -> TradeOff:
    """Return a curve that allows less than an event with less noise.

    Its losses are rounded up by at most a step for each mechanism composed, so that at an ε that is
    larger by all of these its δ is at most the exact one.
    """
    count = count_of(read(text))
    step = min(_STEP, max(_FINEST, _ROUNDED / count))
    loss = _loss(text, relation, divisor, step)
    return attained_of(loss, _orders(relation, sides), count * step)
