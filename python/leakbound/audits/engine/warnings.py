"""What a reader of a result should know; nothing here changes a bound."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from leakbound._base.formatting import down

if TYPE_CHECKING:
    from collections.abc import Callable

    import leakbound._core as _core
    from leakbound._base.records import Lazy
    from leakbound.audits.engine.trial import Trial

__all__ = [
    "delta_warnings",
    "inverted_warnings",
    "ranking_warnings",
    "saturation_warnings",
    "tie_warnings",
]

_INVERTED = 3
"""Standard deviations below 1/2 from which an AUC looks inverted rather than random."""
_TIED = 0.1
"""Share of tied examples from which fewer ties may prove more."""
_NEAR = 0.9
"""Share of the ceiling from which more examples may prove more."""
_CROWDED = 2 / 3
"""Share of its ceiling above which c_lb leaves little room for ε̃."""
_REFERENCE = 1.0
"""The ε that a perfect attack should at least be able to refute."""
_FEW = 1000
"""With more examples than this a perfect attack refutes the reference."""


def ranking_warnings(trial: Trial, ceiling: Lazy[float]) -> tuple[str, ...]:
    """Say what looks wrong with a ranking, or limits what it can prove.

    Parameters
    ----------
    trial : Trial
        The policy and the winning path.
    ceiling : Lazy of float
        Bound of a perfect attack; computed only where it may matter.

    Returns
    -------
    tuple of str
        Warnings, often none.
    """
    notes = (_tied(trial.ranking), _moved(trial), _limit(trial, ceiling))
    return inverted_warnings(trial.ranking) + tuple(note for note in notes if note)


def delta_warnings(delta: float, examples: int) -> tuple[str, ...]:
    """Say that a δ is no small one for so many examples.

    Parameters
    ----------
    delta : float
        δ of the claim; 0 for pure DP.
    examples : int
        m.

    Returns
    -------
    tuple of str
        One warning, or none.
    """
    if delta < 1 / examples:
        return ()
    note = (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that gives one "
        "example away entirely satisfies the claim, and large ε are hard to refute"
    )
    return (note,)


def saturation_warnings(c_lb: float, ceiling: Callable[[], float]) -> tuple[str, ...]:
    """Say that a generator is so easily told from real data that ε̃ has little room.

    Parameters
    ----------
    c_lb : float
        What the baseline proves.
    ceiling : callable
        Returns what a perfect attack would prove; called where that may matter.

    Returns
    -------
    tuple of str
        A warning, or nothing.
    """
    if c_lb <= 0 or c_lb <= _CROWDED * (reached := ceiling()):
        return ()
    room = down(reached - c_lb)
    note = (
        f"the generator is easily told from real data: c_lb = {down(c_lb)}, and a perfect attack "
        f"on these examples reaches {down(reached)}, so that ε̃ cannot exceed {room} whatever the "
        "model leaks; use a better generator, or more examples"
    )
    return (note,)


def tie_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that many ties were broken at random.

    Parameters
    ----------
    ranking : Ranking
        The examples ranked by scores as given.

    Returns
    -------
    tuple of str
        One warning, or none.
    """
    share = ranking.tied / ranking.examples
    if share <= _TIED:
        return ()
    note = (
        f"{100 * share:.0f}% of the examples share their score with another; their order was "
        "drawn at random, so a score of finer precision may prove more"
    )
    return (note,)


def inverted_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that scores are higher on non-members.

    Parameters
    ----------
    ranking : Ranking
        The examples ranked by scores.

    Returns
    -------
    tuple of str
        One warning, or none.
    """
    members, others = ranking.members, ranking.examples - ranking.members
    # the spread of the AUC of scores that say nothing: Mann and Whitney 1947
    spread = math.sqrt((ranking.examples + 1) / (12 * max(1, members * others)))
    below = (0.5 - ranking.auc) / spread
    if below <= _INVERTED:
        return ()
    note = (
        f"AUC {ranking.auc:.3f} is {below:.1f} standard deviations below 1/2: the scores look "
        "inverted (higher must mean likelier a member); they are used as given"
    )
    return (note,)


def _tied(ranking: _core.Ranking) -> str:
    share = ranking.tied / ranking.examples
    if share <= _TIED:
        return ""
    return (
        f"{100 * share:.0f}% of the examples share their score with another; cuts fall only "
        "between blocks of ties, so a score of finer precision may prove more"
    )


def _moved(trial: Trial) -> str:
    (guesses, _), fixed = trial.cut, trial.cuts.fixed_guesses
    if fixed is None or guesses == fixed:
        return ""
    return f"the cut moved from {fixed} to {guesses} guesses, the end of a block of tied scores"


def _limit(trial: Trial, ceiling: Lazy[float]) -> str:
    best, fixed = trial.best, trial.cuts.fixed_guesses is not None
    if (fixed or trial.ranking.examples <= _FEW) and ceiling.value <= _REFERENCE:
        needed = _needed(trial)
        enough = (
            f"at least {needed} {'guesses' if fixed else 'examples'}" if needed else "other cuts"
        )
        return (
            f"even a perfect attack would reach {down(ceiling.value)} only: {enough} are "
            f"needed to refute {trial.cuts.strength} = {_REFERENCE:g}"
        )
    if best.successes > _NEAR * best.cut and best.logit >= _NEAR * ceiling.value:
        return (
            f"the bound is close to {down(ceiling.value)}, all that a perfect attack would have "
            "reached: more examples may prove more"
        )
    return ""


def _needed(trial: Trial) -> int | None:
    """Return the least number of examples (or of fixed guesses) that can refute the reference."""

    def suffices(size: int) -> bool:
        examples = size if trial.cuts.fixed_guesses is None else 2 * size
        return trial.perfect(trial.cuts.with_guesses(size, examples), examples) > _REFERENCE

    low, high = 1, 2
    while not suffices(high):
        if high > trial.cuts.horizon:
            return None
        low, high = high, 2 * high
    return low + bisect_left(range(low, high + 1), True, key=suffices)  # noqa: FBT003
