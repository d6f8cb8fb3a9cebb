"""Zero-Run without dropping anything: every guess has odds of its own to be right."""

import math
from dataclasses import dataclass

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray, IntArray, PathName
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet
from leakbound.audits.zero_run.study import ShiftProof, Study, least_fixed
from leakbound.claims import ApproxDP, PureDP
from leakbound.cuts import Fixed, KLScan
from leakbound.errors import OptionError
from leakbound.stats import poisson_binomial_epsilon

# Shares of the largest number of guesses at which pure DP is tested over a set.
_CUTS = (1.0, 0.2)
# ε that guesses over a set are balanced for.
_PLANNED_EPSILON = 0.5
# What the least ε found over a set is lowered by: ascents may have left this much.
_LEFT = 5e-4
# Log-odds beyond which a guess counts as certain.
_CERTAIN = 250.0

_THEOREM = (
    "Given the trained model and the coins of earlier guesses, a guess T is right with log-odds "
    "of at most ε + Tλ if training is ε-DP (Cebere, Even, Bleistein and Bellet, Theorem D.1, "
    "before its last relaxation). "
)
_FIXED = "One threshold, fixed in advance: the exact Poisson-binomial tail."
_APPROX = (
    "Given features and guesses, correct guesses exceed a sum of coins with log-odds ε + |λ| by u "
    "or more with probability at most w = √(m(1 + e^-ε)δ/u), but for guesses that have "
    "probability w themselves (Cebere, Even, Bleistein and Bellet, Theorem D.2, with u in place of "
    "v under the root). Half of the error probability is spent on 2w. "
)
_BOTH = "Two numbers of guesses, fixed in advance, were tested, each at half of the level."
_AT_A_MEMBER = "Two numbers of guesses, fixed in advance, share the level of its exact tail."


def by_offsets(study: Study) -> ShiftProof:
    """Audit guesses whose odds by shift alone are reckoned with, one by one."""
    cuts = _checked(study)
    if isinstance(study.odds, OddsSet):
        return _over_set(study, study.odds)
    if isinstance(study.claim, ApproxDP):
        return _with_failures(study, study.odds, study.claim.delta)
    box = study.odds
    paths = _paths(study, box, cuts)
    level = shares.OFFSET_PATHS.of(study.level, len(paths))
    (epsilon, guesses, correct), path = (-math.inf, 0, 0), paths[0]
    for one in paths:
        right, offsets = study.right(one.rows, one.signs), one.offsets(study, box)
        found = _largest(right, offsets, cuts, level, floor=epsilon)
        if one is paths[0] or found[0] > epsilon:
            (epsilon, guesses, correct), path = found, one
    bound = max(0.0, epsilon)

    def bounds(draws: FloatArray) -> FloatArray:
        largest = np.zeros(len(draws))
        for path in paths:
            largest = np.maximum(largest, _replicated(study, path, cuts, level, draws, largest))
        return largest

    def ceiling() -> float:
        """Return the bound of an attack that is right about the most telling examples first."""
        rows = np.arange(study.examples) if not study.one_sided else np.flatnonzero(study.member)
        offsets = np.sort(_Guesses("member", rows, study.signs[rows]).offsets(study, box))
        if isinstance(cuts, Fixed):
            offsets = offsets[: cuts.guesses]
        always = np.ones(offsets.size, dtype=np.bool_)
        return _largest(always, offsets, cuts, level)[0] if offsets.size else 0.0

    return study.proof(
        bound,
        correct,
        guesses,
        rows=path.rows,
        signs=path.signs,
        theorem=_THEOREM + (_FIXED if isinstance(cuts, Fixed) else KLScan().method),
        ceiling=ceiling,
        scanned=isinstance(cuts, KLScan),
        searched=cuts.searched(study.examples, study.request.sides),
        path=path.name,
        options={"cuts": cuts.described(level), "paths": [one.name for one in paths]},
        bounds=bounds,
    )


@dataclass(frozen=True, eq=False)
class _Guesses:
    """One path: rows in visiting order, and the guess about each."""

    name: PathName
    rows: IntArray
    signs: IntArray

    def offsets(self, study: Study, box: OddsBox) -> FloatArray:
        """Return what shift adds to the log-odds of each guess: Tλ, or |λ| in other variants."""
        if study.request.variant != "directional":
            return box.largest[self.rows]
        return box.toward(self.rows, self.signs)


def _checked(study: Study) -> Fixed | KLScan:
    """Return the cuts, if claim and cuts have a form for guesses of unlike odds."""
    if not isinstance(study.claim, PureDP) and study.request.variant != "untampered":
        message = (
            f'correction="poisson_binomial" is for pure DP, got {study.claim!r}: take "match", '
            '"tamper" or "composition"'
        )
        # A confidence set has no form of the variant.
        if isinstance(study.odds, OddsBox):
            message += ', or variant="untampered" for approximate DP'
        raise OptionError(message)
    cuts = study.request.cuts or KLScan()
    if not isinstance(cuts, Fixed | KLScan):
        raise OptionError(
            f"cuts={cuts!r} is not for guesses with different odds: use KLScan() or Fixed(…)"
        )
    cuts.check(study.examples)
    return cuts


def _paths(study: Study, box: OddsBox, cuts: Fixed | KLScan) -> list[_Guesses]:
    """Return the top, the bottom and both in turn, where the number of guesses is not fixed."""
    number = cuts.guesses if isinstance(cuts, Fixed) else study.examples
    rows, signs = study.guessed(study.ranked_by(box), number)
    whole = _Guesses("member" if study.one_sided else "interleaved", rows, signs)
    if isinstance(cuts, Fixed) or study.one_sided:
        return [whole]
    top = _Guesses("members", rows[::2], signs[::2])
    bottom = _Guesses("non-members", rows[1::2], signs[1::2])
    return [whole, top, bottom] if number > 1 else [top]


def _largest(
    right: BoolArray,
    offsets: FloatArray,
    cuts: Fixed | KLScan,
    level: float,
    *,
    floor: float = -math.inf,
) -> tuple[float, int, int]:
    """Return the largest ε refuted, or less where that is below a floor, and guesses there."""
    if isinstance(cuts, Fixed):
        correct = int(right.sum())
        epsilon = float(poisson_binomial_epsilon(correct, offsets, beta=level))
        return epsilon, cuts.guesses, correct
    least = cuts.min_guesses or 1
    if right.size < least:
        return 0.0, 0, 0  # one of both sides alone has too few
    path = _core.Path.from_successes(right)
    bound = _core.kl_scan_offsets(
        path, offsets, beta=level, kappa=cuts.kappa, min_guesses=least, floor=floor
    )
    return bound.epsilon, bound.cut, bound.successes


def _replicated(
    study: Study,
    path: _Guesses,
    cuts: Fixed | KLScan,
    level: float,
    draws: FloatArray,
    floors: FloatArray,
) -> FloatArray:
    """Return the largest ε refuted under each replicate, or less where that is below its floor."""
    here, right = draws[:, path.rows], study.right(path.rows, path.signs)
    offsets = here * path.signs if study.request.variant == "directional" else np.abs(here)
    if isinstance(cuts, Fixed):
        correct = np.full(len(offsets), right.sum())
        found: FloatArray = poisson_binomial_epsilon(correct, offsets, beta=level)
        return found
    least, kappa = cuts.min_guesses or 1, cuts.kappa
    if right.size < least:
        return np.zeros(len(offsets))
    walked = _core.Path.from_successes(right)
    return _core.kl_scan_offset_rows(
        walked, offsets.ravel(), beta=level, kappa=kappa, min_guesses=least, floors=floors
    )


def _with_failures(study: Study, box: OddsBox, delta: float) -> ShiftProof:
    """Audit a fixed number of guesses of which a few may be right because a guarantee failed."""
    number = study.planned(study.examples, study.level)
    rows, signs = study.guessed(study.ranked_by(box), number)
    correct, largest = int(study.right(rows, signs).sum()), box.largest
    level = shares.COUNT.of(study.level)

    def bound(sizes: FloatArray, right: int) -> float:
        """Return inf{ε : not refuted}, for guesses with these |λ|.

        The number u of guesses set aside for failures falls as ε rises. So all that is refuted with
        the u of one ε, from there up, is refuted with u of its own.
        """

        def refuted(epsilon: float) -> float:
            failures = study.examples * (1 + math.exp(-epsilon)) * delta
            # 2√(failures / u) is at most their part of the level
            aside = math.ceil(4 / shares.FAILURES.part**2 * failures / study.level**2)
            if aside >= right:
                return epsilon
            return float(poisson_binomial_epsilon(right - aside, sizes, beta=level))

        return least_fixed(refuted)

    def ceiling() -> float:
        sizes = np.sort(largest[study.member] if study.one_sided else largest)[:number]
        return bound(sizes, sizes.size)

    epsilon = bound(largest[rows], correct)
    return study.proof(
        epsilon,
        correct,
        number,
        rows=rows,
        signs=signs,
        theorem=_APPROX + _FIXED,
        ceiling=ceiling,
        bounds=lambda draws: np.array([bound(row, correct) for row in np.abs(draws[:, rows])]),
    )


def _over_set(study: Study, odds: OddsSet) -> ShiftProof:
    """Test the exact Poisson-binomial tail at two cuts, each at half the level."""
    found, cuts = odds.found, study.request.cuts
    most = study.examples // 2 if study.one_sided else study.examples
    numbers = [max(1, round(share * most)) for share in _CUTS]
    if isinstance(cuts, Fixed):
        numbers = [cuts.guesses]
    level = shares.SET_NUMBERS.of(study.level, len(numbers))
    outcomes = []
    for number in numbers:
        rows, signs = _telling(study, odds, number)
        epsilon, coefficients, _ = found.core.least_epsilon(rows, signs, level=level)
        outcomes.append((max(0.0, epsilon - _LEFT), rows, signs, coefficients))
    bound, rows, signs, coefficients = max(outcomes, key=lambda one: one[0])
    correct = int(study.right(rows, signs).sum())
    likeliest = np.clip(found.log_odds()[rows] * signs, -_CERTAIN, _CERTAIN)
    return study.proof(
        bound,
        correct,
        rows.size,
        rows=rows,
        signs=signs,
        theorem=_THEOREM + _AT_A_MEMBER,
        ceiling=lambda: by_offsets(study.perfect()).bound,
        searched=_BOTH if len(numbers) > 1 else "",
        options={"numbers_of_guesses": [*numbers]},
        at_estimate=max(0.0, float(poisson_binomial_epsilon(correct, likeliest, beta=level))),
        coefficients=coefficients,
    )


def _telling(study: Study, odds: OddsSet, number: int) -> tuple[IntArray, IntArray]:
    """Return balanced guesses about the examples that scores tell most of, at a fixed number."""
    up, down = (expit(_PLANNED_EPSILON + sign * odds.guide) for sign in (1, -1))
    up, down = up * (1 - up), down * (1 - down)
    if study.one_sided:
        values = study.balanced(odds, up, number)
        strength, signs = values, np.ones(values.size, dtype=np.int64)
    else:
        values = study.balanced(odds, (up + down) / 2, number, odd=(up - down) / 2)
        strength, signs = np.abs(values), np.where(values < 0, -1, 1)
    rows = np.lexsort((study.ties, -strength))[:number]
    return rows, signs[rows]
