"""Log-odds of membership that are learnt: a confidence set of the coefficients of a logistic model.

A bound that is right where the log-odds are known is computed at every member of the set; the least
one is above the truth only if the true log-odds are outside of the set, or the bound at them errs:
with probability p_set + p_test at most, although both use the same labels (Berger and Boos, "P
values maximized over a confidence set for the nuisance parameter", 1994).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.checks import check_length, complement
from leakbound.audits.zero_run.log_odds import OddsBox, OddsSet, audited_features, other_share
from leakbound.audits.zero_run.residuals import beyond_features, usable
from leakbound.cuts import Fixed
from leakbound.errors import (
    FeaturesError,
    IncompatibleOptionsError,
    LengthMismatchError,
    PropensityFitError,
    UnmatchedIdsError,
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
from leakbound.results import Assumption
from leakbound.results.zero_run import LearntLogOdds

if TYPE_CHECKING:
    from leakbound._base.types import BoolArray, FloatArray, IntArray, JsonValue, Kind
    from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest
    from leakbound.audits.zero_run.study import ShiftProof
    from leakbound.propensity import FormTest, Overlap, PropensityFit

SET_SHARE = 0.2
"""Share of the probability of error that the confidence set takes: a smaller set pays for it."""
_HUGE = 1e100
"""The largest feature, in absolute value: the square of a larger one may be no number."""

_THEOREM = (
    "If log-odds of membership are linear in the features, the true coefficients are in a "
    "confidence set that rests on all labels but with probability {set:.3g}, in finite samples "
    "(cross-fitted universal inference: Wasserman, Ramdas and Balakrishnan 2020). At each of its "
    "members a bound holds with probability of error {test:.3g}; the least of them is above the "
    "truth with probability {both:.3g} at most, although both use the same labels (Berger and Boos "
    "1994). "
)
_MODEL = (
    "Log-odds of membership are a linear function of the features (a logistic model), with any "
    "coefficients, and all labels are independent given the features"
)


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
            check_folds(propensity, candidates)
            return cls(features=propensity.features, seen=propensity.features)
        given = candidates.features()
        table = check_features(audited_features(propensity, given, candidates.order.distinct_ids))
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


@dataclass(frozen=True, kw_only=True, eq=False)
class LearntOdds:
    """The confidence set of the audited examples, tests of the model's form, and blinded scores."""

    learning: Learning
    rows: IntArray
    scores: dict[str, FloatArray]
    member: BoolArray
    abstained: int
    columns: IntArray
    found: ConfidenceSet | None
    refusal: str
    tests: tuple[FormTest, ...]

    kind: Kind = "conditional_lower_bound"
    falsification: None = None

    @classmethod
    def read(cls, candidates: Candidates, learning: Learning) -> LearntOdds:
        """Choose what is audited, find the set, test the model's form, blind the scores."""
        request, member = candidates.request, candidates.member
        _check(request, learning)
        largest = np.zeros(member.size) if learning.guide is None else np.abs(learning.guide)
        rows = candidates.audited(largest)
        beyond = np.flatnonzero(largest > request.limit)
        columns = _columns(learning)
        found, refusal = None, ""
        try:
            found = _confidence_set(candidates, learning, rows, beyond, columns)
        except PropensityFitError as error:
            refusal = str(error)
        tests: tuple[FormTest, ...] = ()
        seen, trees, seed = learning.seen[rows], request.falsify, request.seed
        if found is not None and request.falsify:
            more = None if learning.seen is learning.features else seen
            bets = bet_against_set(found, features=seen, seed=seed)
            tests = (products_missing(found, features=more), link_bent(found), bets)
        blind = {
            name: usable(beyond_features(usable(values[rows]), seen, trees=trees, seed=seed))
            for name, values in candidates.attacks.scores.items()
        }
        return cls(
            learning=learning,
            rows=rows,
            scores=blind,
            member=member[rows],
            abstained=beyond.size,
            columns=columns,
            found=found,
            refusal=refusal,
            tests=tests,
        )

    @property
    def odds(self) -> OddsSet | OddsBox:
        """The set; where there is none, what D' suggests, or even log-odds: nothing is proved."""
        guide = np.zeros(self.rows.size)
        if self.learning.guide is not None:
            guide = self.learning.guide[self.rows]
        return OddsBox.of_member(guide) if self.found is None else OddsSet(self.found, guide)

    @property
    def refuted(self) -> bool:
        """Whether a test refuted the model's form."""
        return any(one.refuted for one in self.tests)

    def level(self, level: float) -> float:
        """Return what the set leaves of the probability of error."""
        return (1 - SET_SHARE) * level

    def theorem(self, text: str, request: ZeroRunRequest) -> str:
        """Return why a bound holds, given why it does at known log-odds."""
        error = complement(request.confidence)
        shares = {"set": SET_SHARE * error, "test": self.level(error)}
        return _THEOREM.format(**shares, both=sum(shares.values())) + text

    def assumptions(self) -> tuple[Assumption, Assumption]:
        """Say what is known of the model, and what it was learnt from."""
        tried = "; ".join(f"{one.test}: p = {one.p_value:.2g}" for one in self.tests)
        text = f"{_MODEL}; not refuted ({tried}). Missing features and mild misfit pass unseen."
        if self.refusal:
            text = f"{_MODEL}; no confidence set: {self.refusal}."
        elif not self.tests:
            text = f"{_MODEL}; the form was not tested."
        elif self.refuted:
            text = f"{_MODEL}: REFUTED. {tried}."
        source = (
            "No score had a part in the propensities. The audited labels have, which the "
            "confidence set allows for"
        )
        others = "; those of the other examples follow the same log-odds, whatever their features."
        return (
            Assumption("propensities", text, "contradicted" if self.refuted else "unverifiable"),
            Assumption(
                "propensities from labels alone",
                source + ("." if self.learning.reference is None else others),
                "declared",
            ),
        )

    def warnings(self, _kept: int, /) -> tuple[str, ...]:
        """Say what limits the audit; often nothing."""
        notes = [
            f"propensity model refuted (p = {one.p_value:.2g}, {one.test}): log-odds are not "
            "linear in the features, which may explain correct guesses"
            for one in self.tests
            if one.refuted
        ]
        if not self.tests and not self.refusal:
            notes.append("the form of the propensity model was not tested: falsify=False")
        width = self.learning.features.shape[1]
        if width > self.columns.size:
            notes.append(
                f"{width - self.columns.size} of {width} features are constant or equal to one "
                "before them and were left out, which changes no log-odds"
            )
        return (*self.learning.warnings, *notes)

    def options(self, request: ZeroRunRequest) -> dict[str, JsonValue]:
        """Return what is done about the error of the log-odds."""
        return {
            "uncertainty": "set",
            "set_level": SET_SHARE * complement(request.confidence),
            "propensity": "logistic regression, linear in the features",
        }

    def overlap(self) -> Overlap:
        """Return how far members and non-members can be compared, at the likeliest log-odds."""
        odds = self.odds
        likeliest = odds.estimate if isinstance(odds, OddsBox) else odds.found.log_odds()
        return overlap(likeliest, self.member)

    def record(self, proof: ShiftProof, request: ZeroRunRequest) -> LearntLogOdds | None:
        """Return the set that a bound holds over, for a result."""
        if self.found is None:
            return None
        return LearntLogOdds(
            level=self.found.level,
            test_level=self.level(complement(request.confidence)),
            reference=self.found.reference,
            estimate=self.found.coefficients,
            squared_radius=self.found.squared_radius,
            coefficients=proof.coefficients,
            at_estimate=proof.at_estimate,
            columns=self.columns,
            tests=self.tests,
        )

    @property
    def digested(self) -> dict[str, FloatArray | BoolArray]:
        """What was learnt from, under the names of its digests."""
        read: dict[str, FloatArray | BoolArray] = {"features": self.learning.features}
        if self.learning.reference is not None:
            features, member = self.learning.reference
            read |= {"features of D'": features, "member of D'": member}
        return read


def check_folds(crossed: CrossFit, candidates: Candidates) -> None:
    """Check that folds are those of the audited examples."""
    if candidates.request.features is not None:
        message = "a CrossFit has the features of the audited examples: leave out features"
        raise IncompatibleOptionsError(message)
    check_length(crossed.fold, candidates.attacks.examples, "the folds of propensity")
    other = np.flatnonzero(crossed.member != candidates.member)
    if other.size:
        message = (
            "propensity was cross-fitted with another membership, or with the examples in another "
            f"order than the scores ({other.size} rows differ, the first being row {other[0]}): "
            "cross-fit in the order of the scores"
        )
        raise UnmatchedIdsError(message)


def _check(request: ZeroRunRequest, learning: Learning) -> None:
    """Refuse options that have no form over a confidence set."""
    fits = {
        "cuts": request.cuts is None or isinstance(request.cuts, Fixed),
        "adversary": request.adversary is None,
        "variant": request.variant == "directional",
    }
    for name in [name for name, fit in fits.items() if not fit]:
        message = (
            f"{name}={getattr(request, name)!r} has no form over a confidence set of log-odds, "
            "which plans its own guesses and needs no refits: leave it out (cuts may be Fixed), or "
            'explore with uncertainty="bootstrap"'
        )
        raise IncompatibleOptionsError(message)
    if request.max_log_odds is not None and (learning.guide is None or learning.own_intercept):
        message = (
            "max_log_odds leaves examples out by log-odds that no audited label had a part in: fit "
            "the model to other examples whose share of members is that of the audit, or declare "
            "both shares: with_member_share(share, of_reference=share_of_those)"
        )
        raise IncompatibleOptionsError(message)


def _columns(learning: Learning) -> IntArray:
    """Return the columns that a model needs: none is huge, constant or equal to another one."""
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
    tables, labels = [learning.features[beyond]], [member[beyond]]
    offsets = [np.full(beyond.size, learning.offset)]
    if learning.reference is not None:
        tables.append(learning.reference[0])
        labels.append(learning.reference[1])
        offsets.append(np.zeros(learning.reference[1].size))
    others = np.concatenate(labels)
    return ConfidenceSet.fit(
        learning.features[rows][:, columns],
        member[rows],
        reference=(np.vstack(tables)[:, columns], others) if others.size else None,
        offsets=np.full(rows.size, learning.offset),
        reference_offsets=np.concatenate(offsets) if others.size else None,
        own_intercept=learning.own_intercept,
        level=SET_SHARE * complement(request.confidence),
        seed=request.seed,
    )
