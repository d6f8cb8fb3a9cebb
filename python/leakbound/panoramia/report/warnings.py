"""What a reader of a run should know of its baseline, its generator and its propensities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.formatting import number
from leakbound.audits.engine.warnings import saturation_warnings

if TYPE_CHECKING:
    from leakbound.panoramia.report.table import PanoramiaRow, Saturation

__all__ = ["warnings_of"]

GROWTH = 0.05
"""Gain of c_lb from the last doubling of the training data that is still growth."""


def warnings_of(rows: tuple[PanoramiaRow, ...], saturation: Saturation) -> tuple[str, ...]:
    """Return what a reader should know of baseline and generator."""
    return (*_growing(saturation), *_crowded(rows), *_contradicted(rows), *_refuted(rows))


def _refuted(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    """Say where tests found what the propensity model does not know."""
    refuted = [result.refuted for row in rows for result in row.conditional]
    if not any(refuted):
        return ()
    note = (
        f"the propensity model was refuted in {sum(refuted)} of {len(refuted)} audits by Zero-Run, "
        "and the bounds of all seeds are withheld: examples say more of their coin than the "
        "baseline's score does, so that c_lb is not tight either"
    )
    return (note,)


def _growing(saturation: Saturation) -> tuple[str, ...]:
    if saturation.growth <= GROWTH:
        return ()
    before, last = saturation.examples[-2:]
    note = (
        f"the baseline's c_lb still grows with its training data: by {saturation.growth:.2f} from "
        f"{before:,} to {last:,} examples; with more of it c_lb would be larger and ε̃ smaller"
    )
    return (note,)


def _crowded(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    audits = [row for row in rows if row.audit == "PANORAMIA"]
    pairs = [
        (result.c_lb, result.baseline.ceiling) for row in audits[:1] for result in row.estimates
    ]
    c_lb, ceiling = (float(x) for x in np.mean(pairs, axis=0))
    return saturation_warnings(c_lb, lambda: ceiling)


def _contradicted(rows: tuple[PanoramiaRow, ...]) -> tuple[str, ...]:
    """Say where a baseline tells real non-members from members, which it should not."""
    audits = [row for row in rows if row.audit == "RM;RN"]
    bounds = [result.baseline.bound for row in audits[:1] for result in row.estimates]
    if not bounds or float(np.median(bounds)) <= 0:
        return ()
    note = (
        "the real non-members are not like the members: a baseline without the model tells them "
        f"apart (c >= {number(float(np.median(bounds)))} in the median over seeds), so that the "
        "audits against them, RM;RN and O(1), overstate ε; draw both from one distribution"
    )
    return (note,)
