"""Zero-Run by composition: the worst shift of all examples is taken off what an audit proves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.records import Lazy, encode
from leakbound.audits.zero_run.study import Corrected, Study, summary, two_sided
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.errors import IncompatibleOptionsError
from leakbound.stats.composition import remaining_leakage

if TYPE_CHECKING:
    from leakbound.results import ScoreAudit

_THEOREM = (
    "Features and model together leak at most what the two leak composed (Cebere, Even, Bleistein "
    "and Bellet, Theorem 4.1 and Corollary 1); what the worst shift of any audited example may "
    "leak is taken off. "
)
_MEMBERS = "One cut, fixed in advance, tested as if guesses of both sides had been made."


def correct_by_composition(study: Study) -> Corrected:
    """Audit as if there were no shift, and take off the largest that any example may have."""
    if not isinstance(study.claim, PureDP | ApproxDP | GaussianDP):
        message = (
            f'correction="composition" is for pure, approximate and Gaussian DP, got '
            f'{study.claim!r}: take "match"'
        )
        raise IncompatibleOptionsError(message)
    if study.adversary == "paper_aware":
        message = 'correction="composition" does not tamper: take adversary="raw" or "residual"'
        raise IncompatibleOptionsError(message)
    claim = study.claim
    one_role = study.sides == "member" and not isinstance(claim, PureDP)
    together, theorem = (_of_members if one_role else _of_one_run)(study)
    shift = float(study.shift.largest.max())

    def left(total: float, shift: float) -> float:
        return remaining_leakage(total, shift, claim)

    bound = left(together.bound, shift)
    reason = "" if bound else f"the shift alone may leak as much as {shift:.3g} of ε"
    return Corrected(
        audit=replace(
            together,
            bound=bound,
            reason=together.reason or reason,
            _ceiling=Lazy(lambda: left(together.ceiling, shift)),
        ),
        kept=study.examples,
        m_eff=float(study.examples),
        theorem=_THEOREM + theorem,
        replicates=lambda draws: np.array(
            [left(together.bound, float(largest)) for largest in np.abs(draws).max(axis=1)]
        ),
    )


def _of_one_run(study: Study) -> tuple[ScoreAudit, str]:
    """Audit as if there were no shift; return what is proved, and why it holds."""
    values = study.ranked_by()
    ranks = np.empty(study.examples)
    ranks[np.argsort(-values, kind="stable")] = np.arange(study.examples, 0, -1)
    cuts = study.cuts
    if cuts is None and isinstance(study.claim, ApproxDP):
        cuts = Fixed(study.planned(study.examples))
    together = study.without_shift(ranks, study.member, cuts)
    return together, together.theorem


def _of_members(study: Study) -> tuple[ScoreAudit, str]:
    """Audit a fixed number of guesses of "member" by all m examples, not m/2 of them.

    The proof of m/2 needs coins that are fair given the features: where P(S = 1 | X) = .7 a guess
    is right with .7 although the model says nothing, above the ½ f̄ ≤ ½ that m/2 allows an example.
    """
    number = study.planned(study.examples)
    rows, signs = two_sided(study.ranked_by(), number, "member")
    successes = signs == study.signs[rows]
    correct = int(successes.sum())

    def bound(right: int) -> float:
        return study.bound(right, number, study.examples, halved=False)

    audit = summary(
        study.scores,
        study.member,
        bound=bound(correct),
        cut=(number, correct),
        path="member",
        successes=successes,
        ceiling=lambda: bound(min(number, int(study.member.sum()))),
        options={"cuts": encode(Fixed(number)), "level": study.level},
    )
    return audit, _MEMBERS
