"""Zero-Run: audits of a deployed model from given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

import leakbound._core as _core
from leakbound._base.checks import complement
from leakbound._base.records import Lazy, encode
from leakbound._base.types import (
    ArrayInput,
    Correction,
    FloatArray,
)
from leakbound.audits.figures import histogram
from leakbound.audits.road import delta_warnings, family_assumption, provenance
from leakbound.audits.zero_run.composition import by_composition
from leakbound.audits.zero_run.learning import Learning, check_folds, learnt
from leakbound.audits.zero_run.log_odds import Knowledge, OddsBox, OddsSet, known
from leakbound.audits.zero_run.matching import by_matching
from leakbound.audits.zero_run.offsets import by_offsets
from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest, conditions
from leakbound.audits.zero_run.study import ShiftProof, Study
from leakbound.audits.zero_run.tampering import by_tampering
from leakbound.claims import FAMILIES, ApproxDP, PureDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import Fixed
from leakbound.cuts.policy import tie_warnings
from leakbound.errors import OptionError
from leakbound.propensity import CrossFit, LogisticPropensity, PropensityFit, SklearnPropensity
from leakbound.results.zero_run import Bootstrap, ZeroRunResult
from leakbound.stats.distribution_shift import bootstrap_quantile

Propensities: TypeAlias = (
    ArrayInput | PropensityFit | CrossFit | LogisticPropensity | tuple[ArrayInput, ArrayInput]
)
CORRECTIONS: dict[Correction, Callable[[Study], ShiftProof]] = {
    "match": by_matching,
    "poisson_binomial": by_offsets,
    "tamper": by_tampering,
    "composition": by_composition,
}
"""What takes shift out of a study."""
_SCARCE = 0.1
"""Share of examples kept below which most of them are wasted."""
_WITHHELD = (
    "the propensity model was refuted, so the bound is withheld: fit a richer one, or ask for the "
    "bound with release_refuted=True"
)


def audited(candidates: Candidates, propensity: Propensities) -> ZeroRunResult:
    """Audit candidates by what is known of their propensities."""
    if isinstance(propensity, CrossFit) and not _by_set(propensity, candidates.request):
        return _by_folds(candidates, propensity)
    return ZeroRunAudit.prepare(candidates, propensity)(candidates.request)


@dataclass(frozen=True, eq=False)
class ZeroRunAudit:
    """Examples and what is known of their log-odds: all but the claim and the correction."""

    candidates: Candidates
    known: Knowledge

    @classmethod
    def prepare(cls, candidates: Candidates, propensity: Propensities | Learning) -> "ZeroRunAudit":
        """Read the propensities, choose what is audited, and try to refute them."""
        if isinstance(propensity, Learning):
            return cls(candidates, learnt(candidates, propensity))
        if _by_set(propensity, candidates.request):
            logistic = cast("PropensityFit | CrossFit | LogisticPropensity", propensity)
            return cls(candidates, learnt(candidates, Learning.of(logistic, candidates)))
        return cls(candidates, known(candidates, propensity))

    def __call__(self, request: ZeroRunRequest) -> ZeroRunResult:
        """Audit a claim by a correction, every attack at its share of the level."""
        what, attacks, claim = self.known, self.candidates.attacks, request.claim
        # 1. What is proved at the level that the error of log-odds leaves.
        proof = self._proof(request)
        # 2. The guesses, in the words of every other audit: of the scores as they were given.
        name = str(proof.options.get("attack", ""))
        scores, member = attacks.scores[name][what.rows], self.candidates.member[what.rows]
        audit = proof.audit(scores)
        # 3. Nothing is reported where the propensities were refuted.
        withheld = what.refuted and not request.release_refuted

        def tampered() -> float | None:
            hidden = withheld or proof.study.correction != "match"
            return None if hidden else _tampered(proof.study).bound

        first, source = what.assumptions
        least: dict[str, Any] = {
            "coefficients": proof.coefficients,
            "at_estimate": proof.at_estimate,
        }
        return ZeroRunResult(
            claim=claim,
            confidence=float(request.confidence),
            kind=what.kind,
            bound=0.0 if withheld else proof.bound,
            reason=_WITHHELD if withheld else proof.reason,
            theorem=what.theorem + proof.theorem,
            assumptions=(
                first,
                *conditions(source, request, attacks.others),
                *family_assumption(claim),
            ),
            m=scores.size,
            members=int(member.sum()),
            guesses=audit.guesses,
            correct=audit.correct,
            path=audit.path,
            auc=audit.auc,
            options=audit.options
            | {
                "correction": proof.study.correction,
                "sides": request.sides,
                "adversary": proof.study.adversary,
                "variant": request.variant,
                "max_log_odds": request.max_log_odds,
                "level": proof.study.level,
                "seed": request.seed,
                "claim": encode(claim),
            }
            | what.options
            | proof.options,
            warnings=(
                *(() if withheld else audit.warnings),
                *tie_warnings(_core.Ranking(scores, member)),
                *what.warnings,
                *_scarce(proof),
                *delta_warnings(claim.delta, scores.size),
            ),
            rejected=_curve(request, 0.0 if withheld else proof.bound),
            correction=proof.study.correction,
            kept=proof.kept,
            m_eff=proof.m_eff,
            abstained=what.abstained,
            bootstrap=proof.bootstrap,
            falsification=what.falsification,
            withheld=withheld,
            learnt=None if what.learnt is None else replace(what.learnt, **least),
            _rejectable=Lazy(lambda: _curve(request, audit.ceiling)),
            _ceiling=Lazy(lambda: audit.ceiling),
            _curve=Lazy(lambda: audit.curve),
            _roc=Lazy(lambda: audit.roc),
            _histogram=Lazy(lambda: histogram(scores, member)),
            _naive=Lazy(lambda: self.candidates.naive(request)),
            _overlap=what.overlap,
            _by_tampering=Lazy(tampered),
            _provenance=provenance(
                request.seed, **attacks.digested, member=self.candidates.member, **what.digested
            ),
        )

    def _proof(self, request: ZeroRunRequest) -> ShiftProof:
        """Return what the best attack proves."""
        what = self.known
        replicated = isinstance(what.odds, OddsBox) and what.odds.draws is not None
        correction = correction_of(request, what.odds)

        def prove(values: FloatArray, level: float) -> ShiftProof:
            study = Study(
                request=request,
                correction=correction,
                scores=values,
                member=self.candidates.member[what.rows],
                odds=what.odds,
                level=level / 2 if replicated else level,
                refusal=what.refusal,
            )
            return _proved(study)

        level = what.share * complement(request.confidence)
        return replace(self.candidates.attacks, scores=what.scores).prove(level, prove)


def _scarce(proof: ShiftProof) -> tuple[str, ...]:
    """Say that matching wastes most of the examples."""
    kept, examples = proof.kept, proof.study.examples
    if kept >= _SCARCE * examples:
        return ()
    note = f"matching keeps {kept} of {examples} examples: members and non-members hardly overlap"
    return (note,)


def _proved(study: Study) -> ShiftProof:
    """Correct a study, and allow for the uncertainty of propensities with replicates."""
    if study.refusal:
        return ShiftProof.none(study, study.refusal)
    proof = CORRECTIONS[study.correction](study)
    draws = study.odds.draws if isinstance(study.odds, OddsBox) else None
    if draws is None or proof.bounds is None:
        return proof
    replicates = Bootstrap(bounds=proof.bounds(draws), estimate=proof.bound, p=study.level)
    bound = bootstrap_quantile(replicates.bounds, p=study.level)
    reason = proof.reason or (
        f"the propensities are too uncertain: the bound is {replicates.estimate:.3g} at their "
        f"estimate, and {bound:.3g} under enough of their replicates"
    )
    # the audit is that at the estimate
    audit = proof.audit(study.scores)
    return replace(
        proof, bound=bound, reason="" if bound > 0 else reason, own=audit, bootstrap=replicates
    )


def _tampered(study: Study) -> ShiftProof:
    """Return what tampering with guesses proves in place of matching, all else the same."""
    asked = study.request
    request = replace(
        asked,
        adversary=None,
        variant="directional" if asked.variant == "untampered" else asked.variant,
        cuts=asked.cuts if isinstance(asked.cuts, Fixed) else None,
    )
    return _proved(replace(study, request=request, correction="tamper"))


def _by_folds(candidates: Candidates, crossed: CrossFit) -> ZeroRunResult:
    """Audit every fold at its share of the error probability, by the model that did not see it.

    Given the memberships of the other folds, the propensities of a fold are fixed and its own
    memberships independent of them. The best fold counts; if the propensities of any were refuted,
    its result is returned instead, since all models are of one kind.
    """
    check_folds(crossed, candidates)
    attacks, request = candidates.attacks, candidates.request
    level = complement(request.confidence) / len(crossed.fits)
    results = []
    for rows, model in crossed.parts():
        own = replace(
            request,
            confidence=1 - level,
            features=crossed.features[rows],
            ids=None if request.ids is None else np.asarray(request.ids)[rows],
        )
        part = replace(attacks, scores={name: v[rows] for name, v in attacks.scores.items()})
        fold = Candidates.read(part.given, candidates.member[rows], own)
        results.append(ZeroRunAudit.prepare(fold, model)(own))
    refuted = [number for number, result in enumerate(results) if result.withheld]
    bounds = np.array([result.bound for result in results])
    chosen = refuted[0] if refuted else int(np.argmax(bounds))
    return replace(
        results[chosen],
        options=results[chosen].options
        | {"fold": chosen, "folds": bounds.tolist(), "folds_level": level},
        confidence=float(request.confidence),
        _naive=Lazy(lambda: candidates.naive(request)),
        _provenance=provenance(
            request.seed,
            **attacks.digested,
            member=candidates.member,
            features=crossed.features,
        ),
    )


def correction_of(request: ZeroRunRequest, odds: OddsBox | OddsSet) -> Correction:
    """Return how shift is taken out."""
    claim, correction = request.claim, request.correction
    if request.variant == "untampered":
        if isinstance(claim, ApproxDP) and correction in {"conditional", "poisson_binomial"}:
            return "poisson_binomial"
        message = (
            f'variant="untampered" is for ApproxDP(δ) by correction="poisson_binomial", got '
            f"{claim!r} by {correction!r}: take another variant"
        )
        raise OptionError(message)
    if correction != "conditional":
        return correction
    if isinstance(claim, PureDP):
        return "poisson_binomial"
    return "tamper" if isinstance(odds, OddsBox) and odds.limited else "match"


def _curve(request: ZeroRunRequest, bound: float) -> TradeOff | None:
    """Return the curve of a family at a bound; None if nothing is bounded, or no family."""
    claim = request.claim
    if not isinstance(claim, FAMILIES) or not bound:
        return None
    return claim.attained(bound, request.sides)


def _by_set(propensity: Propensities, request: ZeroRunRequest) -> bool:
    """Return whether log-odds are learnt over a confidence set, or refuse what has none."""
    asked, given = request.uncertainty, cast("Any", propensity)
    fitted = isinstance(given, PropensityFit | CrossFit)
    logistic = given.logistic if fitted else isinstance(given, LogisticPropensity)
    if logistic and asked in {None, "set"}:
        return True
    message = ""
    if isinstance(given, LogisticPropensity | SklearnPropensity):
        message = (
            "a model that is not fitted learns from the audited labels, which takes a logistic one "
            "and a confidence set: fit it to other examples, or cross-fit it (cross_fit)"
        )
    elif fitted and asked == "set":
        message = (
            'uncertainty="set" is for logistic models, the only ones with a confidence set: take '
            'LogisticPropensity, or explore with uncertainty="bootstrap"'
        )
    elif not fitted and asked is not None:
        replicated = not isinstance(given, tuple) and np.ndim(given) == 2
        if not (replicated and asked == "bootstrap"):
            message = (
                f'uncertainty="{asked}" is for propensities that are learnt, and these are given: '
                "leave it out, or pass a model"
            )
    if message:
        raise OptionError(message)
    return False
