"""Pure DP over a confidence set: the exact tail of correct guesses at the worst of its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.odds import expit
from leakbound.audits.zero_run.set_study import LeastFavourable, SetStudy, explained
from leakbound.propensity.confidence import balanced

if TYPE_CHECKING:
    from leakbound._base.types import FloatArray, IntArray

_CUTS = (1.0, 0.2)
"""Shares of the largest number of guesses at which pure DP is tested."""
_PLANNED_EPSILON = 0.5
"""ε that guesses under pure DP are balanced for."""
_CERTAIN = 250.0
"""Log-odds beyond which a guess counts as certain."""


def least_by_offsets(study: SetStudy) -> LeastFavourable:
    """Test the exact Poisson-binomial tail at two cuts, each at half the level."""
    examples = study.found.audited
    most = examples // 2 if study.one_sided else examples
    cuts = [max(1, round(share * most)) for share in _CUTS]
    if study.guesses is not None:
        cuts = [study.guesses]
    level = study.level / len(cuts)
    outcomes = []
    for cut in cuts:
        rows, signs = _guessed(study, cut)
        epsilon, coefficients, odds = study.found.core.least_epsilon(rows, signs, level=level)
        outcomes.append((max(0.0, epsilon), cut, rows, signs, coefficients, odds))
    bound, cut, rows, signs, coefficients, odds = max(outcomes, key=lambda one: one[0])
    correct = int(study.right(rows, signs).sum())
    here = study.found.log_odds()[rows] * signs
    at_estimate = _core.poisson_binomial_epsilon(
        np.clip(here, -_CERTAIN, _CERTAIN), np.array([correct]), beta=level, counts=None
    )
    return LeastFavourable(
        bound=bound,
        reason="" if bound else explained(correct, cut),
        at_estimate=max(0.0, float(at_estimate[0])),
        correction="poisson_binomial",
        level=study.level,
        guesses=cut,
        correct=correct,
        kept=examples,
        coefficients=coefficients,
        log_odds=odds,
        rows=rows,
        signs=signs,
        options={"numbers_of_guesses": [int(one) for one in cuts]},
        one_sided=study.one_sided,
    )


def _guessed(study: SetStudy, cut: int) -> tuple[IntArray, IntArray]:
    """Return balanced guesses about the examples that scores tell most of, at a fixed number."""
    up = _spread(_PLANNED_EPSILON + study.planned)
    down = _spread(_PLANNED_EPSILON - study.planned)
    one_sided = study.one_sided
    values = balanced(
        study.scores,
        study.found.features,
        up if one_sided else (up + down) / 2,
        odd=None if one_sided else (up - down) / 2,
        guesses=cut,
        labels=study.labels,
        one_sided=one_sided,
    )
    strength = values if one_sided else np.abs(values)
    rows = np.lexsort((study.ties, -strength))[:cut]
    signs = np.ones(cut, dtype=np.int64)
    if not one_sided:
        signs[values[rows] < 0] = -1
    return rows, signs


def _spread(x: FloatArray) -> FloatArray:
    chance = expit(x)
    return chance * (1 - chance)
