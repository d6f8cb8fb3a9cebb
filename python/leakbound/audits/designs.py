"""Designs by name, and audits of options that were stored as one set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakbound.audits.coins import Coins
from leakbound.audits.design import audit
from leakbound.audits.panoramia.audit import Panoramia
from leakbound.audits.random_split import RandomSplit
from leakbound.audits.zero_run.design import ZeroRun

if TYPE_CHECKING:
    from leakbound.audits.design import Design, Scores

DESIGNS: dict[str, type[Design[Any]]] = {
    kind.name: kind for kind in (Coins, RandomSplit, Panoramia, ZeroRun)
}
"""All designs, by the names that results have of them."""
SHARED = ("claim", "confidence", "cuts", "sides", "ids", "seed")
"""Options of `leakbound.audit`, whatever the design; others are the design's own."""


def audit_of(design: str, scores: Scores, **options: Any) -> Any:
    """Audit scores by the name of a design and all options together, as they are stored."""
    shared = {name: options.pop(name) for name in SHARED if name in options}
    return audit(scores, DESIGNS[design](**options), **shared)
