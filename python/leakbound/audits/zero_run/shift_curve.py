"""How a Zero-Run bound moves with the largest shift that an audited example may have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leakbound.audits.zero_run.proof import CORRECTIONS
from leakbound.claims import PureDP
from leakbound.cuts import Fixed
from leakbound.errors import AbstentionError, NoOverlapError, OptionError
from leakbound.results.zero_run import ShiftCurve

if TYPE_CHECKING:
    from leakbound._base.types import Correction, IntArray
    from leakbound.audits.zero_run.study import Study
    from leakbound.cuts import CutPolicy

__all__ = ["shift_curve"]

_SHARES = np.arange(1, 9) / 8
"""Shares of the examples that are left, but for those of equal |λ|."""


def shift_curve(study: Study, correction: Correction, guesses: int) -> ShiftCurve:
    """Audit ever larger shares of the examples, those of least |λ| first."""
    size = study.shift.largest
    points = []
    for limit in np.unique(np.quantile(size, _SHARES, method="higher")):
        left = np.flatnonzero(size <= limit)
        try:
            found = _bounds(study, correction, left, guesses)
        except (AbstentionError, NoOverlapError, OptionError):
            continue  # too few are left for this policy
        points.append((limit, left.size, *found))
    table = np.array(points).reshape(-1, 4)
    return ShiftCurve(
        max_log_odds=table[:, 0],
        examples=table[:, 1].astype(np.int64),
        bound=table[:, 2],
        naive=table[:, 3],
    )


def _bounds(
    study: Study, correction: Correction, left: IntArray, guesses: int
) -> tuple[float, float]:
    """Return the bound from some of the examples, and the naive one."""
    cuts: CutPolicy | None = study.cuts
    scans = isinstance(study.claim, PureDP) and correction != "tamper"
    scans = scans or (correction == "match" and study.chooses_inside)
    if isinstance(cuts, Fixed) or (cuts is None and not scans):
        cuts = Fixed(max(1, math.ceil(guesses * math.sqrt(left.size / study.examples))))
    part = replace(
        study,
        scores=study.scores[left],
        member=study.member[left],
        shift=study.shift.rows(left),
        uniforms=study.uniforms[:, left],
        cuts=cuts,
    )
    naive = part.without_shift(part.scores, part.member, cuts)
    return CORRECTIONS[correction](part).audit.bound, naive.bound
