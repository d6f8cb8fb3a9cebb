"""Zero-Run by matching: examples are kept so that the membership of each is a fair coin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.console import track
from leakbound._base.records import encode
from leakbound.audits.zero_run.propensities import no_overlap
from leakbound.audits.zero_run.study import Corrected, Study, summary
from leakbound.claims import PureDP
from leakbound.cuts import Fixed, KLScan, OutsideIn
from leakbound.errors import IncompatibleOptionsError
from leakbound.stats.distribution_shift import match, residual_scores

if TYPE_CHECKING:
    from leakbound._base.types import FloatArray
    from leakbound.results import ScoreAudit

_FINEST = 200
"""Parts of the number kept to which it is rounded up between replicates: a bound falls with it."""
_FEWEST = 2.0
"""Examples that matching must keep on average."""

_THEOREM = (
    "A member is kept with probability min(1, (1 - π)/π), a non-member with min(1, π/(1 - π)); "
    "given features and what is kept, membership of the kept examples is independent and fair, so "
    "an audit of one run applies to them. "
)


def correct_by_matching(study: Study) -> Corrected:
    """Audit the examples that matching keeps as in an audit of one run."""
    if study.shift.limited:
        message = (
            'correction="match" needs propensities, not limits: take "tamper" or '
            '"poisson_binomial", which use the worst one for each guess'
        )
        raise IncompatibleOptionsError(message)
    if study.adversary == "paper_aware":
        message = (
            'adversary="paper_aware" weighs guesses that tampering may drop, and matching '
            'drops none: take "residual" or "raw"'
        )
        raise IncompatibleOptionsError(message)
    matching = _Matching(study)
    first, theorem = matching.audit(study.shift.log_odds)
    kept = first.m
    one_sided = study.sides == "member" and not isinstance(study.claim, PureDP)
    return Corrected(
        audit=first,
        kept=kept,
        m_eff=kept / 2 if one_sided else float(kept),
        theorem=_THEOREM + theorem,
        replicates=matching.bounds,
    )


class _Matching:
    """Bounds of matched examples under any log-odds, with everything drawn held fixed."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._cuts = study.cuts
        expected = float((2 / (1 + np.exp(np.abs(study.shift.log_odds)))).sum())
        if expected < _FEWEST:
            found = f"matching keeps {expected:.2g} of {study.examples} examples, on average"
            raise no_overlap(found)
        if study.chooses_inside:
            self._cuts = OutsideIn()
        elif study.cuts is None and not isinstance(study.claim, PureDP):
            # the number kept depends on labels, its mean does not
            self._cuts = Fixed(study.planned(round(expected)))
        self._guesses = self._cuts.guesses if isinstance(self._cuts, Fixed) else 0
        if isinstance(self._cuts, KLScan | OutsideIn):
            self._cuts.check(study.examples)

    def audit(self, log_odds: FloatArray) -> tuple[ScoreAudit, str]:
        """Audit the examples kept under some log-odds; return what is proved, and why it holds."""
        study = self._study
        kept = match(study.member, log_odds, study.uniforms)
        values = study.scores[kept]
        if not self._suits(values.size):
            return self._nothing(values.size), ""
        if study.adversary == "residual" and np.isfinite(values).any():
            values = residual_scores(values, log_odds[kept], prior=0.5)
        ranks = np.empty(values.size)
        ranks[np.argsort(-values, kind="stable")] = np.arange(values.size, 0, -1)
        cuts = self._cuts
        if self._guesses > values.size:
            cuts = Fixed(values.size)
        audit = study.without_shift(ranks, study.member[kept], cuts)
        return audit, audit.theorem

    def _suits(self, kept: int) -> bool:
        """Return whether so many kept examples can be audited: their number depends on labels."""
        cuts, least = self._cuts, 2
        if isinstance(cuts, KLScan):
            least = max(least, cuts.min_guesses or 1)
        elif isinstance(cuts, OutsideIn) and cuts.levels is not None:
            least = max(least, *cuts.levels)
        return kept >= least

    def _nothing(self, kept: int) -> ScoreAudit:
        """Return an audit of too few examples."""
        study = self._study
        audit = summary(
            study.scores,
            study.member,
            bound=study.nothing,
            cut=(0, 0),
            path="member" if study.sides == "member" else "interleaved",
            successes=np.zeros(1, dtype=np.bool_),
            ceiling=lambda: study.nothing,
            options={"cuts": None if self._cuts is None else encode(self._cuts)},
        )
        reason = f"matching keeps {kept} of {study.examples} examples, too few for the cuts tested"
        return replace(audit, m=kept, reason=reason)

    def bounds(self, draws: FloatArray) -> FloatArray:
        """Return the bound under each row of log-odds."""
        return self._counted(draws) if self._guesses else self._audited(draws)

    def _counted(self, draws: FloatArray) -> FloatArray:
        """Return the bounds of a fixed number of guesses, of which only counts matter."""
        study = self._study
        counts = _core.matched_counts(
            study.scores,
            study.member,
            np.ravel(draws),
            study.uniforms,
            guesses=self._guesses,
            one_sided=study.sides == "member",
            residual=study.adversary == "residual",
        )
        step = max(1, study.examples // _FINEST) if draws.shape[0] > 1 else 1
        bounds = [
            study.bound(int(right), int(made), -(-int(kept) // step) * step)
            for kept, made, right in zip(*counts, strict=True)
        ]
        return np.array(bounds)

    def _audited(self, draws: FloatArray) -> FloatArray:
        audits = track(draws, "replicates", total=len(draws), shown=True)
        return np.array([self.audit(odds)[0].bound for odds in audits])
