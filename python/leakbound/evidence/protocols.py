"""Whether an audit did what its protocol said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leakbound._base.checks import shown
from leakbound._base.records import encode
from leakbound.audits.one_run.request import OneRunRequest
from leakbound.planning.protocol import ARRAYS, OPTIONS, Agreed

if TYPE_CHECKING:
    from leakbound.evidence.recipe import Recipe
    from leakbound.results.base import Result


def departure(agreed: Agreed, result: Result, recipe: Recipe) -> str:
    """Return where an audit departs from its protocol first; empty if nowhere.

    Every option of the audit is compared, with its default where the protocol, or the audit, leaves
    it out, but a seed only where the protocol has one; so are the names of the attacks, and the
    guarantee that was checked.
    """
    if recipe.audit != "audit_one_run":
        return f"a protocol is one of audit_one_run, and this is {recipe.audit}"
    given = recipe.arguments
    arrays = {name for name in (*ARRAYS, "prior") if isinstance(given.get(name), np.ndarray)}
    if arrays != agreed.given:
        name = min(arrays ^ agreed.given)
        if name in arrays:
            return f"{name}: an array was given, and the protocol does not name one"
        return f"{name}: the protocol names one, and none was given"
    options = {name: one for name, one in given.items() if name in OPTIONS}
    done = OneRunRequest(**{name: one for name, one in options.items() if name not in arrays})
    for name in OPTIONS:
        if name in ARRAYS or (name == "seed" and name not in agreed.options):
            continue  # a seed that was not agreed on is the audit's own
        said, did = getattr(agreed.request, name), getattr(done, name)
        if encode(said) != encode(did):
            return f"{name}: it says {_shown(name, said)}, and the audit was by {_shown(name, did)}"
    audited = result.options.get("attacks")
    names, listed = list(agreed.attacks), list(audited) if isinstance(audited, dict) else []
    if not listed:
        bare = "scores without a name audited: give them as {name: scores}"
        return f"attacks: {names} were agreed on, and {bare}"
    if names != listed:
        return f"attacks: {names} were agreed on, and {listed!r:.200} audited"
    wrong = _other_check(agreed.checked, result)
    return f"checked: {wrong}" if wrong else ""


def _shown(name: str, value: Any) -> str:
    return '"auto"' if name == "cuts" and value is None else shown(encode(value))


def _other_check(agreed: Any, result: Result) -> str:
    """Return how another guarantee was checked than agreed on."""
    one = result.checked
    found: dict[str, Any] = {}
    if one is not None:
        found = {one.parameter: one.value, "delta": one.delta or 0.0}
        found |= {"relation": one.compares or "add_remove"}
        found |= {} if one.c is None else {"c": one.c}
    stated = {} if agreed is None else {"delta": 0.0, "relation": "add_remove", **agreed}
    if stated == found:
        return ""
    return f"{agreed or 'nothing'} was agreed on, and {found or 'nothing'} checked"
