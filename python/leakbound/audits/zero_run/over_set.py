"""Zero-Run with learnt log-odds of a logistic model: bounds over a confidence set of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import check_length, complement
from leakbound._base.records import Lazy, encode
from leakbound.audits.engine.evidence import provenance
from leakbound.audits.zero_run.assumptions import conditions, learnt_propensities, one_law
from leakbound.audits.zero_run.candidates import WITHHELD
from leakbound.audits.zero_run.cross_fitting import Folds
from leakbound.audits.zero_run.least_favourable import (
    SET_SHARE,
    blinded,
    bound_over_set,
    correction_over_set,
)
from leakbound.audits.zero_run.propensities import audited_features, other_share
from leakbound.audits.zero_run.set_study import LeastFavourable
from leakbound.audits.zero_run.study import confidence_of, summary
from leakbound.audits.zero_run.subset import audited_rows
from leakbound.cuts import Fixed, OutsideIn
from leakbound.cuts.base import tie_warnings
from leakbound.errors import (
    FeaturesError,
    IncompatibleOptionsError,
    LengthMismatchError,
    PropensityFitError,
)
from leakbound.propensity import (
    ConfidenceSet,
    CrossFit,
    LogisticPropensity,
    bet_against_set,
    link_bent,
    products_missing,
)
from leakbound.propensity.data import check_features, distinct_columns
from leakbound.propensity.overlap import overlap
from leakbound.results.zero_run import LearntLogOdds

if TYPE_CHECKING:
    from leakbound._base.types import BoolArray, Correction, FloatArray, IntArray, JsonValue
    from leakbound.audits.zero_run.candidates import Candidates
    from leakbound.audits.zero_run.request import ZeroRunRequest
    from leakbound.claims import Claim
    from leakbound.propensity import FormTest, PropensityFit
    from leakbound.results import ScoreAudit
    from leakbound.results.zero_run import ZeroRunResult

_THEOREM = (
    "If log-odds of membership are linear in the features, the true coefficients are in a "
    "confidence set that rests on all labels but with probability {set:.3g}, in finite samples "
    "(cross-fitted universal inference: Wasserman, Ramdas and Balakrishnan 2020). At each of its "
    "members a bound holds with probability of error {test:.3g}; the least of them is above the "
    "truth with probability {both:.3g} at most, although both use the same labels (Berger and Boos "
    "1994). "
)
_AT_A_MEMBER: dict[Correction, str] = {
    "match": "At known log-odds: examples are kept so that membership is a fair coin for each, "
    "and audited as in one run; half of several draws must reach the bound at half of the level.",
    "poisson_binomial": "At known log-odds: under ε-DP a guess T is right with log-odds of at most "
    "ε + Tλ given the guesses before, so that correct guesses have an exact Poisson-binomial tail; "
    "two numbers of guesses, fixed in advance, share the level.",
    "tamper": "At known log-odds: guesses are dropped at random, so that shift makes none too "
    "likely right; half of all draws must reach the bound at half of the level.",
    "composition": "At known log-odds: features and model together leak at most what the two leak "
    "composed; the largest |log-odds| in the set are taken off.",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Learning:
    """What log-odds are learnt from besides the audited labels: features, and D' if there is one.

    `seen` is what tests of the model's form and predictions of scores may use; `guide` are
    log-odds that no audited label had a part in.
    """

    features: FloatArray
    seen: FloatArray
    reference: tuple[FloatArray, BoolArray] | None = None
    offset: float = 0.0
    own_intercept: bool = False
    guide: FloatArray | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, propensity: PropensityFit | CrossFit | LogisticPropensity, candidates: Candidates
    ) -> Learning:
        """Read a logistic model: fitted to D', or to be learnt from the audited labels alone."""
        member = candidates.member
        if isinstance(propensity, CrossFit):
            Folds(propensity, candidates).check()
            return cls(features=propensity.features, seen=propensity.features)
        given = candidates.features()
        given = audited_features(propensity, given, candidates.order.distinct_ids)
        table = check_features(given)
        if table.shape[0] != member.size:
            message = f"features has {table.shape[0]} rows and there are {member.size} scores"
            raise LengthMismatchError(message)
        if isinstance(propensity, LogisticPropensity):
            return cls(features=table, seen=table)
        return cls(
            features=table,
            seen=table,
            reference=(propensity.rows.features, propensity.rows.member),
            offset=propensity.offset,
            own_intercept=propensity.own_intercept,
            guide=propensity.log_odds(table),
            warnings=() if propensity.own_intercept else other_share(propensity, member),
        )

    @property
    def digested(self) -> dict[str, FloatArray | BoolArray]:
        """What was learnt from, under the names of their digests."""
        found: dict[str, FloatArray | BoolArray] = {"features": self.features}
        if self.reference is not None:
            found |= {
                "features of D'": self.reference[0],
                "member of D'": self.reference[1],
            }
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class SetAudit:
    """Audits one claim after the other over the same confidence set."""

    candidates: Candidates
    learning: Learning
    rows: IntArray
    columns: IntArray
    abstained: int
    found: ConfidenceSet | None
    refusal: str
    tests: tuple[FormTest, ...]
    blind: dict[str, FloatArray]

    @classmethod
    def prepare(cls, candidates: Candidates, learning: Learning) -> SetAudit:
        """Choose what is audited, find the set, test the model's form, blind the scores."""
        request, member = candidates.request, candidates.member
        _check(request, learning)
        largest = np.zeros(member.size) if learning.guide is None else np.abs(learning.guide)
        limit = request.max_log_odds
        scores = candidates.attacks.scores
        rows = audited_rows(scores.values(), largest, limit, request.seed)
        if isinstance(request.cuts, Fixed):
            request.cuts.check(rows.size)
        beyond = np.flatnonzero(largest > (np.inf if limit is None else limit))
        columns = _columns(learning)
        try:
            found, refusal = _confidence_set(candidates, learning, rows, beyond, columns), ""
        except PropensityFitError as error:
            found, refusal = None, str(error)
        tests: tuple[FormTest, ...] = ()
        if found is not None and request.falsify:
            seen = learning.seen[rows]
            more = None if learning.seen is learning.features else seen
            bets = bet_against_set(found, features=seen, seed=request.seed)
            tests = (products_missing(found, features=more), link_bent(found), bets)
        return cls(
            candidates=candidates,
            learning=learning,
            rows=rows,
            columns=columns,
            abstained=beyond.size,
            found=found,
            refusal=refusal,
            tests=tests,
            blind={
                name: blinded(
                    values[rows], learning.seen[rows], trees=request.falsify, seed=request.seed
                )
                for name, values in scores.items()
            },
        )

    def __call__(self, claim: Claim, confidence: float) -> ZeroRunResult:
        """Audit a claim at its share of what the set leaves of the probability of error."""
        request, attacks = self.candidates.request, self.candidates.attacks
        beta = complement(request.confidence)
        level = (1 - SET_SHARE) * complement(confidence)
        error = SET_SHARE * beta + level
        proof = self._proof(claim, correction_over_set(request.correction, claim), level)
        least = proof.least
        name = str(proof.options.get("attack", ""))
        scores, member = attacks.scores[name][self.rows], self.candidates.member[self.rows]
        audit = self._audit(least, claim, scores, member)
        options: dict[str, JsonValue] = {
            "uncertainty": "set",
            "set_level": SET_SHARE * beta,
            "propensity": _MODEL,
        }
        withheld = any(one.refuted for one in self.tests) and not request.release_refuted
        halved = least.correction == "match" and least.one_sided
        return self.candidates.result(
            audit,
            (scores, member),
            claim=claim,
            confidence=confidence if confidence == request.confidence else confidence_of(error),
            kind="conditional_lower_bound",
            bound=claim.nothing if withheld else least.bound,
            reason=WITHHELD if withheld else least.reason,
            theorem=_THEOREM.format(set=SET_SHARE * beta, test=level, both=error)
            + _AT_A_MEMBER[least.correction],
            assumptions=conditions(
                learnt_propensities(self.tests, self.refusal),
                one_law(self.learning.reference is not None),
                request,
                attacks.others,
            ),
            correction=least.correction,
            adversary=request.adversary or "residual",
            level=least.level,
            options=options | least.options | proof.options,
            warnings=self._warnings(scores, member),
            kept=least.kept,
            m_eff=least.kept / 2 if halved else float(least.kept),
            abstained=self.abstained,
            bootstrap=None,
            falsification=None,
            withheld=withheld,
            learnt=self._learnt(least, level),
            _overlap=Lazy(lambda: overlap(self._log_odds(), member)),
            _by_tampering=Lazy(lambda: None if withheld else self._by_tampering(proof)),
            _provenance=provenance(
                request.seed,
                **attacks.digested,
                member=self.candidates.member,
                **self.learning.digested,
            ),
        )

    def _proof(self, claim: Claim, correction: Correction, level: float) -> _SetProof:
        """Return what the best attack proves, every attack audited at its share of the level."""

        def prove(values: FloatArray, level: float) -> _SetProof:
            least = self._least(values, claim, correction, level)
            return _SetProof(claim=claim, scores=values, least=least)

        return replace(self.candidates.attacks, scores=self.blind).prove(level, prove)

    def _least(
        self, scores: FloatArray, claim: Claim, correction: Correction, level: float
    ) -> LeastFavourable:
        request, guide = self.candidates.request, self.learning.guide
        if self.found is None:
            return LeastFavourable.none(
                claim, self.refusal, correction, level, self.rows.size, request.sides
            )
        return bound_over_set(
            scores,
            self.found,
            claim=claim,
            level=level,
            sides=request.sides,
            correction=correction,
            guesses=request.cuts.guesses if isinstance(request.cuts, Fixed) else None,
            planned=None if guide is None else guide[self.rows],
            seed=request.seed,
        )

    def _audit(
        self, least: LeastFavourable, claim: Claim, scores: FloatArray, member: BoolArray
    ) -> ScoreAudit:
        """Return guesses and figures of what was proved."""

        def perfect() -> float:
            told = np.where(member, 1.0, -1.0)
            return self._least(told, claim, least.correction, least.level).bound

        cuts = OutsideIn() if "outside_in" in least.options else Fixed(max(1, least.guesses))
        audit = summary(
            scores,
            member,
            bound=least.bound,
            cut=(least.guesses, least.correct),
            path="member" if least.one_sided else "interleaved",
            successes=member[least.rows] == (least.signs > 0),
            ceiling=perfect,
            options={"cuts": encode(cuts)},
        )
        return replace(audit, reason=least.reason)

    def _by_tampering(self, proof: _SetProof) -> float | None:
        if proof.least.correction != "match":
            return None
        return self._least(proof.scores, proof.claim, "tamper", proof.least.level).bound

    def _learnt(self, least: LeastFavourable, level: float) -> LearntLogOdds | None:
        if self.found is None:
            return None
        return LearntLogOdds(
            level=self.found.level,
            test_level=level,
            reference=self.found.reference,
            estimate=self.found.coefficients,
            squared_radius=self.found.squared_radius,
            coefficients=least.coefficients,
            at_estimate=least.at_estimate,
            columns=self.columns,
            tests=self.tests,
        )

    def _log_odds(self) -> FloatArray:
        """Return log-odds of the audited examples to show: of largest likelihood if there is a set.

        Where there is none, those that D' suggests, or even ones.
        """
        if self.found is not None:
            return self.found.log_odds()
        guide = self.learning.guide
        return np.zeros(self.rows.size) if guide is None else guide[self.rows]

    def _warnings(self, scores: FloatArray, member: BoolArray) -> tuple[str, ...]:
        notes = [*tie_warnings(_core.Ranking(scores, member)), *self.learning.warnings]
        notes += [
            f"propensity model refuted (p = {one.p_value:.2g}, {one.test}): log-odds are not "
            "linear in the features, which may explain correct guesses"
            for one in self.tests
            if one.refuted
        ]
        if not self.candidates.request.falsify:
            notes.append("the form of the propensity model was not tested: falsify=False")
        idle = self.learning.features.shape[1] - self.columns.size
        if idle:
            notes.append(
                f"{idle} of {self.learning.features.shape[1]} features are constant or equal to "
                "one before them and were left out, which changes no log-odds"
            )
        return tuple(notes)


_HUGE = 1e100
"""The largest feature, in absolute value."""
_MODEL = "logistic regression, linear in the features"


@dataclass(frozen=True, kw_only=True)
class _SetProof:
    """What one attack proves over the set."""

    claim: Claim
    scores: FloatArray
    least: LeastFavourable
    options: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def bound(self) -> float:
        """The bound on the claim's parameter."""
        return self.least.bound

    @property
    def strength(self) -> float:
        """What proofs are compared by."""
        return self.claim.strength(self.bound)

    def with_options(self, more: dict[str, JsonValue]) -> _SetProof:
        """Return the same with more to say in the options."""
        return replace(self, options=self.options | more)


def _check(request: ZeroRunRequest, learning: Learning) -> None:
    """Refuse options that have no form over a confidence set."""
    refused = {
        "cuts": request.cuts is None or isinstance(request.cuts, Fixed),
        "adversary": request.adversary is None,
        "variant": request.variant == "directional",
    }
    other = next((name for name, fits in refused.items() if not fits), None)
    if other is not None:
        message = (
            f"{other}={getattr(request, other)!r} has no form over a confidence set of log-odds, "
            "which plans its own guesses and needs no refits: leave it out (cuts may be Fixed), or "
            'explore with uncertainty="bootstrap"'
        )
        raise IncompatibleOptionsError(message)
    if request.max_log_odds is None:
        return
    if learning.guide is None or learning.own_intercept:
        message = (
            "max_log_odds leaves examples out by log-odds that no audited label had a part in: fit "
            "the model to other examples whose share of members is that of the audit, or declare "
            "both shares: with_member_share(share, of_reference=share_of_those)"
        )
        raise IncompatibleOptionsError(message)


def _columns(learning: Learning) -> IntArray:
    tables = [learning.features]
    if learning.reference is not None:
        check_length(learning.reference[0][0], learning.features.shape[1], "features of D'")
        tables.append(learning.reference[0])
    together = np.vstack(tables)
    largest = np.abs(together).max(axis=0)
    if largest.max() > _HUGE:
        column = int(largest.argmax())
        message = (
            f"features has {largest[column]:.3g} in column {column}, beyond {_HUGE:g}, whose "
            "square is no number: give it in other units"
        )
        raise FeaturesError(message)
    return distinct_columns(together)


def _confidence_set(
    candidates: Candidates,
    learning: Learning,
    rows: IntArray,
    beyond: IntArray,
    columns: IntArray,
) -> ConfidenceSet:
    """Find the set from the audited labels, those of D', and those beyond the limit of log-odds.

    Were the last left out, which labels of D' the set rests on would depend on labels of D'.
    """
    member, request = candidates.member, candidates.request
    tables, labels, offsets = [learning.features[beyond]], [member[beyond]], [learning.offset]
    sizes = [beyond.size]
    if learning.reference is not None:
        tables.append(learning.reference[0])
        labels.append(learning.reference[1])
        offsets.append(0.0)
        sizes.append(learning.reference[1].size)
    others = sum(sizes)
    return ConfidenceSet.fit(
        learning.features[rows][:, columns],
        member[rows],
        reference=(np.vstack(tables)[:, columns], np.concatenate(labels)) if others else None,
        offsets=np.full(rows.size, learning.offset),
        reference_offsets=np.repeat(offsets, sizes) if others else None,
        own_intercept=learning.own_intercept,
        level=SET_SHARE * complement(request.confidence),
        seed=request.seed,
    )
