"""Zero-Run without dropping anything: every guess has odds of its own to be right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.console import track
from leakbound._base.records import encode
from leakbound.audits.zero_run.study import Corrected, Study, summary, two_sided
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import Fixed, KLScan
from leakbound.errors import IncompatibleOptionsError
from leakbound.stats import kl_scan_offsets, poisson_binomial_epsilon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leakbound._base.types import BoolArray, FloatArray, IntArray, PathName

_BLOCK = 32
"""Replicates between two looks at the progress bar."""

_THEOREM = (
    "Given the trained model and the coins of the guesses before, a guess T is right with "
    "log-odds of at most ε + Tλ if training is ε-DP (Cebere, Even, Bleistein and Bellet, Theorem "
    "D.1, before its last relaxation). "
)
_FIXED = "One cut, fixed in advance: the exact Poisson-binomial tail."
_APPROX = (
    "Given features and guesses, correct guesses exceed a sum of coins with log-odds ε + |λ| by u "
    "or more with probability at most w = √(m(1 + e^-ε)δ/u), but for guesses that have "
    "probability w themselves (Cebere, Even, Bleistein and Bellet, Theorem D.2, with u in place of "
    "v under the root). Half of the error probability pays for 2w. "
)


class _Guesses:
    """One path: rows of the study in visiting order, and the guess about each."""

    def __init__(self, study: Study, name: PathName, rows: IntArray, signs: IntArray) -> None:
        self.name, self.rows, self.signs = name, rows, signs
        self.successes: BoolArray = signs == study.signs[rows]


def correct_by_offsets(study: Study) -> Corrected:
    """Audit guesses whose odds by shift alone are reckoned with, one by one."""
    _check(study)
    if isinstance(study.claim, ApproxDP):
        return _with_failures(study, study.claim.delta)
    paths = list(_paths(study))
    level = study.level / len(paths)
    values = [_at(study, path, level) for path in paths]
    best = max(range(len(paths)), key=lambda i: values[i][0])
    epsilon, guesses, correct = values[best]
    path = paths[best]

    def replicates(draws: FloatArray) -> FloatArray:
        together = [_rows(study, path, level, draws) for path in paths]
        largest: FloatArray = np.maximum(0.0, np.max(together, axis=0))
        return largest

    return Corrected(
        audit=summary(
            study.scores,
            study.member,
            bound=max(0.0, epsilon),
            cut=(guesses, correct),
            path=path.name,
            successes=path.successes,
            ceiling=lambda: _ceiling(study, level),
            options={
                "cuts": encode(_policy(study).at_level(level)),
                "paths": [one.name for one in paths],
                "level": level,
            },
        ),
        kept=study.examples,
        m_eff=float(study.examples),
        theorem=_THEOREM + (_FIXED if isinstance(study.cuts, Fixed) else KLScan().method),
        replicates=replicates,
    )


def _with_failures(study: Study, delta: float) -> Corrected:
    """Audit a fixed number of guesses of which a few may be right because a guarantee failed."""
    number = study.planned(study.examples)
    rows, signs = two_sided(study.ranked_by(), number, study.sides)
    path = _Guesses(study, "member" if study.sides == "member" else "interleaved", rows, signs)
    correct = int(path.successes.sum())

    def bounds(sizes: FloatArray, right: int) -> FloatArray:
        return np.array([_least_fixed(row, right, study, delta) for row in sizes])

    def ceiling() -> float:
        largest = study.shift.largest
        sizes = np.sort(largest if study.sides == "both" else largest[study.member])[:number]
        return float(bounds(sizes[None, :], sizes.size)[0])

    return Corrected(
        audit=summary(
            study.scores,
            study.member,
            bound=float(bounds(study.shift.largest[None, rows], correct)[0]),
            cut=(number, correct),
            path=path.name,
            successes=path.successes,
            ceiling=ceiling,
            options={"cuts": encode(Fixed(number)), "level": study.level},
        ),
        kept=study.examples,
        m_eff=float(study.examples),
        theorem=_APPROX + _FIXED,
        replicates=lambda draws: bounds(np.abs(draws[:, rows]), correct),
    )


def _least_fixed(sizes: FloatArray, correct: int, study: Study, delta: float) -> float:
    """Return inf{ε : not refuted}, for guesses with these |λ|.

    The number u of guesses set aside for failures falls as ε rises. So all that is refuted with the
    u of one ε, from there up, is refuted with u of its own, and ε rises until it stays.
    """
    epsilon = 0.0
    while True:
        failures = study.examples * (1 + math.exp(-epsilon)) * delta
        # 2√(failures / u) is at most half of the level
        aside = math.ceil(16 * failures / study.level**2)
        if aside >= correct:
            return epsilon
        found = float(poisson_binomial_epsilon(correct - aside, sizes, beta=study.level / 2))
        if found <= epsilon:
            return epsilon
        epsilon = found


def _check(study: Study) -> None:
    if not isinstance(study.claim, PureDP) and study.variant != "untampered":
        message = (
            f'correction="poisson_binomial" is for pure DP, got {study.claim!r}: take "match", '
            '"tamper" or "composition", or variant="untampered" for approximate DP'
        )
        raise IncompatibleOptionsError(message)
    cuts = study.cuts
    if cuts is not None and not isinstance(cuts, Fixed | KLScan):
        message = f"cuts={cuts!r} has no form for guesses of unlike odds: take KLScan() or Fixed(…)"
        raise IncompatibleOptionsError(message)
    if cuts is not None:
        cuts.check(study.examples)


def _paths(study: Study) -> Iterator[_Guesses]:
    values = study.ranked_by()
    if isinstance(study.cuts, Fixed):
        rows, signs = two_sided(values, study.cuts.guesses, study.sides)
        yield _Guesses(study, "member" if study.sides == "member" else "interleaved", rows, signs)
        return
    rows, signs = two_sided(values, study.examples, study.sides)
    if study.sides == "member":
        yield _Guesses(study, "member", rows, signs)
        return
    yield _Guesses(study, "members", rows[::2], signs[::2])
    if study.examples > 1:
        yield _Guesses(study, "non-members", rows[1::2], signs[1::2])
        yield _Guesses(study, "interleaved", rows, signs)


def _toward(study: Study, path: _Guesses) -> FloatArray:
    """Return the offsets of a path at the point estimate."""
    if study.variant != "directional":
        return study.shift.largest[path.rows]
    signs = np.zeros(study.examples)
    signs[path.rows] = path.signs
    return study.shift.against(signs)[path.rows]


def _at(study: Study, path: _Guesses, level: float) -> tuple[float, int, int]:
    """Return the largest ε refuted, and guesses and correct guesses there."""
    offsets, cuts = _toward(study, path), _policy(study)
    if isinstance(cuts, Fixed):
        correct = int(path.successes.sum())
        epsilon = float(poisson_binomial_epsilon(correct, offsets, beta=level))
        return epsilon, cuts.guesses, correct
    if path.rows.size < (cuts.min_guesses or 1):
        return 0.0, 0, 0  # one of both sides alone has too few
    bound = kl_scan_offsets(
        path.successes,
        offsets,
        beta=level,
        kappa=cuts.kappa,
        min_guesses=cuts.min_guesses or 1,
    )
    return bound.epsilon, bound.cut, bound.successes


def _policy(study: Study) -> Fixed | KLScan:
    return study.cuts if isinstance(study.cuts, Fixed | KLScan) else KLScan()


def _rows(study: Study, path: _Guesses, level: float, draws: FloatArray) -> FloatArray:
    """Return the largest ε refuted under each replicate."""
    here = draws[:, path.rows]
    offsets = here * path.signs if study.variant == "directional" else np.abs(here)
    cuts = _policy(study)
    if isinstance(cuts, Fixed):
        correct = np.full(len(offsets), path.successes.sum())
        found: FloatArray = poisson_binomial_epsilon(correct, offsets, beta=level)
        return found
    if path.rows.size < (cuts.min_guesses or 1):
        return np.zeros(len(offsets))
    walked = _core.Path.from_successes(path.successes)
    blocks = [offsets[i : i + _BLOCK] for i in range(0, len(offsets), _BLOCK)]
    what = f"replicates, {path.name}"
    return np.concatenate(
        [
            _core.kl_scan_offset_rows(
                walked,
                block.ravel(),
                beta=level,
                kappa=cuts.kappa,
                min_guesses=cuts.min_guesses or 1,
            )
            for block in track(blocks, what, total=len(blocks), shown=True)
        ]
    )


def _ceiling(study: Study, level: float) -> float:
    """Return the bound of an attack that is always right, about the most telling examples first."""
    signs = study.signs if study.sides == "both" else study.member.astype(np.int64)
    toward = study.shift.against(signs)
    if study.variant != "directional":
        toward = study.shift.largest
    offsets = np.sort(toward[signs != 0])
    if offsets.size == 0:
        return 0.0
    cuts = _policy(study)
    if isinstance(cuts, Fixed):
        offsets = offsets[: cuts.guesses]
        return float(poisson_binomial_epsilon(offsets.size, offsets, beta=level))
    least = cuts.min_guesses or 1
    if offsets.size < least:
        return 0.0
    successes = np.ones(offsets.size, dtype=np.bool_)
    bound = kl_scan_offsets(successes, offsets, beta=level, kappa=cuts.kappa, min_guesses=least)
    return float(bound.epsilon)
