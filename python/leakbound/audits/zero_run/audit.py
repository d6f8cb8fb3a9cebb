"""Zero-Run: audits of a deployed model from given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import complement
from leakbound._base.records import Lazy, encode
from leakbound._base.types import ArrayInput, CoinSides, Correction, FloatArray, HasMember
from leakbound.audits import premises
from leakbound.audits.figures import histogram
from leakbound.audits.road import (
    Design,
    Listed,
    Request,
    aligned,
    delta_warnings,
    family_assumption,
)
from leakbound.audits.zero_run.learning import Learning, check_folds, learnt
from leakbound.audits.zero_run.log_odds import Knowledge, OddsBox, OddsSet, known
from leakbound.audits.zero_run.matching import by_matching
from leakbound.audits.zero_run.offsets import by_offsets
from leakbound.audits.zero_run.request import Candidates, ZeroRunOptions, ZeroRunRequest, conditions
from leakbound.audits.zero_run.study import ShiftProof, Study
from leakbound.audits.zero_run.tampering import by_composition, by_tampering
from leakbound.claims import FAMILIES, ApproxDP, Claim, GaussianDP, PureDP
from leakbound.claims.families import least_delta_to_store
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import Fixed, SecondLook, Weighted
from leakbound.cuts.games import tie_warnings
from leakbound.errors import OptionError
from leakbound.propensity import CrossFit, LogisticPropensity, PropensityFit, SklearnPropensity
from leakbound.results import Provenance
from leakbound.results.wording import GIVEN, Wording
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
# What a result has from the audit of the guesses.
_SHOWN = ("guesses", "correct", "path", "auc", "guessed", "searched", "_ceiling", "_curve", "_roc")
# Share of examples kept below which most of them are wasted.
_SCARCE = 0.1
_WITHHELD = (
    "the propensity model was refuted, so the bound is withheld: fit a richer one, or pass "
    "release_refuted=True to see the bound"
)


@dataclass(frozen=True, eq=False)
class ZeroRun(ZeroRunOptions, Design[Listed, ZeroRunResult]):
    """Nothing was randomised: these examples were in the training set, those were not.

    They may differ in distribution, so that correct guesses may say nothing about the model. The
    propensity π(x) = P(member | features x) says what features alone give away; a correction takes
    it out, and what is left refutes guarantees too strong to explain it.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Booleans, {0, 1} or {-1, +1}. What carries ids (a plan, a pandas index) is joined with the
        ids of the scores, propensities and features too.
    propensity : array-like, PropensityFit, LogisticPropensity, CrossFit, or two array-likes
        Propensities, shape (m,), taken as right; a model fitted to other examples (D'); a logistic
        model that is not fitted (the default), learnt from the audited labels; or a tuple of lower
        and upper limits, of which the worse one counts for each guess. To explore, K replicates of
        shape (K, m), or models of `propensity.cross_fit`, of which each audits the fold that it did
        not see at its share of the error probability, and the best fold wins; logistic ones are
        learnt from all audited labels instead, unless a bootstrap is asked for.
    correction : {"conditional", "match", "poisson_binomial", "tamper", "composition"}
        How shift is taken out; "conditional" is "poisson_binomial" for `PureDP`, else "match", or
        "tamper" where there are limits only.
    adversary : {"raw", "paper_aware", "residual"}, optional
        What guesses are ranked by: the scores; the scores less their median, weighted by what
        tampering leaves; or what scores say beyond features (`stats.residual_scores`). If None,
        "raw" for "composition", else "residual". Over a confidence set leave it out: what features
        predict of the scores is taken off, and guesses are balanced against features.
    variant : {"directional", "paper", "untampered"}
        How guesses are tampered with (`stats.tamper_probability`); for "poisson_binomial" Tλ
        ("directional") or |λ| (the others), which stays safe if λ is too large. "untampered" is
        "poisson_binomial" for `ApproxDP`, with |λ|, and Markov's inequality for failures; "match"
        proves more.
    uncertainty : {"set", "bootstrap", "none"}, optional
        What is done about the error of a model. "set", the default of logistic ones: the bound is
        the least over a confidence set of their coefficients, which holds the true ones in finite
        samples. "bootstrap", the default of others: a low percentile of refits, the procedure of
        the paper, which is no confidence bound; "none": the model is taken as it is. Both are of
        kind "exploratory_lower_bound" and refute nothing.
    features : array-like, shape (m, d), optional
        Features of the examples, for a model and tests of it.
    max_log_odds : float, optional
        Examples with |λ| above this are left out. Needed if propensities are 0 or 1. With a fitted
        model λ is that of D'.
    falsify : bool
        Whether tests, where there are features, try to refute the propensities: an independent
        model, and for a confidence set score tests of its form. They take scikit-learn.
    release_refuted : bool
        Whether to report the bound although the propensities were refuted, instead of 0. The
        assumption is "contradicted" all the same.

    Notes
    -----
    If `cuts` is None: `KLScan()` for `PureDP` by matching or with odds of its own for each guess,
    `OutsideIn()` for other claims by matching, else `Fixed` at a planned number. Over a confidence
    set `Fixed`, or if None a number that labels choose from the outside in (matching, where there
    is D'), and else planned ones. `docs/theory/zero-run.md` states what is tested, random and
    assumed.

    References
    ----------
    T. Cebere, M. Even, L. Bleistein and A. Bellet, "Privacy auditing with zero (0) training run".

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> log_odds = 1.5 * rng.normal(size=4000)
    >>> member = rng.random(4000) < 1 / (1 + np.exp(-log_odds))
    >>> shifted = log_odds + 0.5 * rng.normal(size=4000)  # knows features, not membership
    >>> result = lb.audit(shifted, lb.ZeroRun(member, 1 / (1 + np.exp(-log_odds))))
    >>> result.bound, result.naive > 0.5
    (0.0, True)
    """

    name: ClassVar[str] = "zero_run"
    wording: ClassVar[Wording] = GIVEN
    sides: ClassVar[tuple[CoinSides, ...]] = ("both", "member")
    claim: ClassVar[Claim] = GaussianDP()
    member: ArrayInput | HasMember
    propensity: Propensities = LogisticPropensity()  # noqa: RUF009 (frozen)

    def audit(self, scores: Listed, request: Request, /) -> ZeroRunResult:
        """See `Design.audit`."""
        if isinstance(request.cuts, SecondLook | Weighted):
            raise OptionError(
                f"cuts={request.cuts!r} is not for Zero-Run: use one that is fixed in advance"
            )
        shared = {one.name: getattr(request, one.name) for one in fields(request) if one.init}
        own = {one.name: getattr(self, one.name) for one in fields(ZeroRunOptions)}
        asked = ZeroRunRequest(**shared, **own)
        candidates = Candidates(asked, *aligned(scores, self.member, request.ids))
        if isinstance(self.propensity, CrossFit) and not _by_set(self.propensity, asked):
            return _by_folds(candidates, self.propensity)
        return ZeroRunAudit.prepare(candidates, self.propensity)(asked)


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
            """Return what tampering proves in place of matching, all else the same."""
            study, cuts = proof.study, proof.study.request.cuts
            if withheld or study.correction != "match":
                return None
            fixed = cuts if isinstance(cuts, Fixed) else None
            asked = replace(study.request, adversary=None, cuts=fixed)
            return _proved(replace(study, request=asked, correction="tamper")).bound

        told = premises.filled({name: scores}, member).get(name, "")
        kept = f"matching keeps {proof.kept} of {scores.size} examples"
        scarce = f"{kept}: members and non-members hardly overlap"
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
            **{name: getattr(audit, name) for name in _SHOWN},
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
                *(() if withheld else premises.with_filled(told, audit.warnings)),
                *tie_warnings(_core.Ranking(scores, member)),
                *what.warnings,
                *((scarce,) if proof.kept < _SCARCE * scores.size else ()),
                *delta_warnings(claim.delta, scores.size),
            ),
            rejected=_curve(request, 0.0 if withheld else proof.bound),
            least_delta=least_delta_to_store(claim, request.sides),
            correction=proof.study.correction,
            kept=proof.kept,
            m_eff=proof.m_eff,
            abstained=what.abstained,
            bootstrap=proof.bootstrap,
            falsification=what.falsification,
            withheld=withheld,
            learnt=None if what.learnt is None else replace(what.learnt, **least),
            _rejectable=Lazy(lambda: _curve(request, audit.ceiling)),
            _histogram=Lazy(lambda: histogram(scores, member)),
            _naive=Lazy(lambda: self.candidates.naive(request)),
            _overlap=what.overlap,
            _by_tampering=Lazy(tampered),
            _provenance=Lazy(
                lambda: Provenance.of(
                    request.seed, **attacks.digested, member=self.candidates.member, **what.digested
                )
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
                level=shares.AT_REPLICATE.of(level) if replicated else level,
                percentile=shares.PERCENTILE.of(level) if replicated else 0.0,
                refusal=what.refusal,
            )
            return _proved(study)

        level = what.share * complement(request.confidence)
        return replace(self.candidates.attacks, scores=what.scores).prove(level, prove)


def _proved(study: Study) -> ShiftProof:
    """Correct a study, and allow for the uncertainty of propensities with replicates."""
    if study.refusal:
        return study.proof(0.0, 0, 0, theorem="", reason=study.refusal)
    proof = CORRECTIONS[study.correction](study)
    draws = study.odds.draws if isinstance(study.odds, OddsBox) else None
    if draws is None or proof.bounds is None:
        return proof
    p = study.percentile
    replicates = Bootstrap(bounds=proof.bounds(draws), estimate=proof.bound, p=p)
    bound = bootstrap_quantile(replicates.bounds, p=p)
    reason = proof.reason or (
        f"the propensities are too uncertain: the bound is {replicates.estimate:.3g} at their "
        f"estimate, and {bound:.3g} under enough of their replicates"
    )
    # the audit is that at the estimate
    audit = proof.audit(study.scores)
    return replace(
        proof, bound=bound, reason="" if bound > 0 else reason, own=audit, bootstrap=replicates
    )


def _by_folds(candidates: Candidates, crossed: CrossFit) -> ZeroRunResult:
    """Audit every fold at its share of the error probability, by the model that did not see it.

    Given the memberships of the other folds, the propensities of a fold are fixed and its own
    memberships independent of them. The best fold counts; if the propensities of any were refuted,
    its result is returned instead, since all models are of one kind.
    """
    check_folds(crossed, candidates)
    attacks, request = candidates.attacks, candidates.request
    level = shares.FOLDS.of(complement(request.confidence), len(crossed.fits))
    results = []
    for rows, model in crossed.parts():
        own = replace(request, confidence=1 - level, features=crossed.features[rows], ids=None)
        part = replace(attacks, scores={name: v[rows] for name, v in attacks.scores.items()})
        fold = Candidates(own, ExampleOrder(), part, candidates.member[rows])
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
        _provenance=Lazy(
            lambda: Provenance.of(
                request.seed,
                **attacks.digested,
                member=candidates.member,
                features=crossed.features,
            )
        ),
    )


def correction_of(request: ZeroRunRequest, odds: OddsBox | OddsSet) -> Correction:
    """Return how shift is taken out."""
    claim, correction = request.claim, request.correction
    if request.variant == "untampered":
        if isinstance(claim, ApproxDP) and correction in {"conditional", "poisson_binomial"}:
            return "poisson_binomial"
        raise OptionError(
            f'variant="untampered" is for ApproxDP(δ) by correction="poisson_binomial", got '
            f"{claim!r} by {correction!r}: take another variant"
        )
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
