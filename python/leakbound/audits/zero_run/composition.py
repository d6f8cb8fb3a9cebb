"""Zero-Run by composition: the worst shift of all examples is taken off what an audit proves."""

from dataclasses import replace

import numpy as np

from leakbound._base.records import Lazy
from leakbound.audits.zero_run.log_odds import OddsBox
from leakbound.audits.zero_run.study import ShiftProof, Study
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.errors import OptionError
from leakbound.stats.composition import remaining_leakage

_THEOREM = (
    "Features and model together leak at most the composition of what each leaks (Cebere, Even, "
    "Bleistein and Bellet, Theorem 4.1 and Corollary 1); what the worst shift of any audited "
    "example may leak is subtracted. "
)
_MEMBERS = "One threshold, fixed in advance, tested as if guesses at both ends had been made."


def by_composition(study: Study) -> ShiftProof:
    """Audit as if all coins were fair, and take off the largest |log-odds| of any example."""
    claim, odds = study.claim, study.odds
    if not isinstance(claim, PureDP | ApproxDP | GaussianDP):
        message = (
            f'correction="composition" is for pure, approximate and Gaussian DP, got {claim!r}: '
            'take "match"'
        )
        raise OptionError(message)
    if study.adversary == "paper_aware":
        message = 'correction="composition" does not tamper: take adversary="raw" or "residual"'
        raise OptionError(message)
    # 1. What is proved as if there were no shift.
    known, cuts = isinstance(odds, OddsBox), study.request.cuts
    ranks = study.ranked(study.ranked_by(odds) if isinstance(odds, OddsBox) else study.scores)
    pure = isinstance(claim, PureDP)
    counted = (not known and cuts is not None) if pure else (not known or study.one_sided)
    number, own = study.examples, None
    if counted or (cuts is None and isinstance(claim, ApproxDP)):
        number = study.planned(study.examples, study.level)
        cuts = Fixed(number)
    rows, signs = study.guessed(ranks, number)

    def proved(correct: int) -> float:
        """Return what correct guesses prove, all m examples counting, not m/2 of one-sided ones.

        The proof of m/2 needs coins that are fair given the features: where P(S = 1 | X) = .7 a
        guess is right with .7 although the model says nothing, above the ½ f̄ ≤ ½ that m/2 allows.
        """
        return claim.lower_bound(correct, number, study.examples, study.level)

    if counted:
        guesses, correct = number, int(study.right(rows, signs).sum())
        total, theorem = proved(correct), _MEMBERS
    else:
        own = study.as_coins(ranks, study.member, cuts)
        guesses, correct, total, theorem = own.guesses, own.correct, own.bound, own.theorem
    # 2. Less what features alone may leak.
    shift = (
        float(odds.largest.max()) if isinstance(odds, OddsBox) else odds.found.core.largest_shift()
    )

    def left(total: float, shift: float = shift) -> float:
        return remaining_leakage(total, shift, claim)

    bound = left(total)
    reason = "" if bound else f"the shift alone may leak as much as {shift:.3g} of ε"
    proof = study.proof(
        bound,
        correct,
        guesses,
        rows=rows,
        signs=signs,
        theorem=_THEOREM + theorem,
        ceiling=lambda: left(proved(min(number, int(study.member.sum())))),
        reason=reason,
        bounds=lambda draws: np.array([left(total, float(np.abs(one).max())) for one in draws]),
    )
    if isinstance(odds, OddsBox):
        if own is None:
            return proof
        ceiling = Lazy(lambda: left(own.ceiling))
        return replace(
            proof, reason=own.reason or reason, own=replace(own, bound=bound, _ceiling=ceiling)
        )
    log_odds = odds.found.log_odds()
    return replace(
        proof,
        ceiling=lambda: by_composition(study.perfect()).bound,
        options={"largest_log_odds": shift},
        at_estimate=left(total, float(np.abs(log_odds).max())),
        coefficients=odds.found.coefficients,
    )
