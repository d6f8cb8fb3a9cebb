"""Whether an audit did what its protocol said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakbound._base.records import encode
from leakbound._base.validation import shown
from leakbound.results.base import is_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leakbound._base.types import JsonValue
    from leakbound.evidence.recipe import Recipe
    from leakbound.results.base import Result

__all__ = ["departure"]


def departure(protocol: Mapping[str, JsonValue], result: Result, recipe: Recipe) -> str:
    """Return where an audit departs from its protocol first; empty if nowhere.

    What the protocol says is compared with the claim, the confidence, the attacks, the guarantee
    that was checked, and every option of its name; a table has to agree where it says something.
    The unit is for people to read.
    """
    done: dict[str, JsonValue] = {**result.options}
    done.pop("unit", None)  # a word for people, in the protocol
    done |= {"claim": encode(result.claim), "confidence": result.confidence}
    if protocol.get("cuts") == "auto" and recipe.arguments.get("cuts") is None:
        done["cuts"] = "auto"
    joint = result.options.get("joint")
    if joint is not None and is_share(result.confidence, joint):
        done["confidence"] = joint["confidence"]
    for name, agreed in protocol.items():
        if name == "attacks":
            wrong = _other_attacks(agreed, recipe.arguments.get("scores"))
        elif name == "checked":
            wrong = _other_check(agreed, result)
        elif name in done and not _agrees(agreed, done[name]):
            wrong = f"it says {shown(agreed)}, and the audit was by {shown(done[name])}"
        else:
            continue
        if wrong:
            return f"{name}: {wrong}"
    return ""


def _agrees(agreed: Any, done: Any) -> bool:
    if isinstance(agreed, dict):
        return isinstance(done, dict) and all(
            name in done and _agrees(one, done[name]) for name, one in agreed.items()
        )
    if isinstance(agreed, bool) or isinstance(done, bool):
        return agreed is done
    return bool(agreed == done)


def _other_attacks(agreed: Any, scores: Any) -> str:
    """Return how the attacks are others than those agreed on."""
    names = agreed if isinstance(agreed, list) else [agreed]
    if isinstance(scores, dict):
        audited = [str(name) for name in scores]
        return "" if audited == names else f"{names} were agreed on, and {audited} audited"
    return "" if len(names) == 1 else f"{names} were agreed on, and one was audited"


def _other_check(agreed: Any, result: Result) -> str:
    """Return how another guarantee was checked than agreed on."""
    one = result.checked
    found: dict[str, float] = {}
    if one is not None:
        found = {one.parameter: one.value, "delta": one.delta or 0.0}
        found |= {} if one.c is None else {"c": one.c}
    stated = {"delta": 0.0, **agreed} if isinstance(agreed, dict) else {}
    return "" if stated == found else f"{agreed} was agreed on, and {found or 'nothing'} checked"
