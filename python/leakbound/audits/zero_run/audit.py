"""Zero-Run: audits of a deployed model from given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from leakbound._base import shares
from leakbound._base.alignment import ExampleOrder
from leakbound._base.brief import brief
from leakbound._base.messages import OF_AUDITS, Message, Option, hinted
from leakbound._base.records import Lazy, encode
from leakbound._base.types import (
    ArrayInput,
    CoinSides,
    FloatArray,
    HasMember,
    JsonValue,
    Named,
    Strings,
)
from leakbound._base.types import Correction as CorrectionName
from leakbound.audits import premises
from leakbound.audits.arguments import asked
from leakbound.audits.figures import histogram_of
from leakbound.audits.premises import delta_warnings, family_assumption, refuse_replacing
from leakbound.audits.road import (
    AlignedScores,
    AnyAttacks,
    Design,
    Listed,
    Request,
    assemble,
    read,
)
from leakbound.audits.zero_run.correction import Correction, proof_of_fair_coins
from leakbound.audits.zero_run.game import ObservedGame
from leakbound.audits.zero_run.learning import (
    Learning,
    check_folds,
    check_options,
    learnt,
    table_of_folds,
)
from leakbound.audits.zero_run.log_odds import Odds, OddsSet, known_log_odds
from leakbound.audits.zero_run.matching import Match
from leakbound.audits.zero_run.offsets import PoissonBinomial
from leakbound.audits.zero_run.options import CorrectionChoice, Uncertainty, ZeroRunOptions
from leakbound.audits.zero_run.tampering import Composition, Tamper
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import Fixed, Proof, Weighted
from leakbound.cuts.games import ScoreGame, tie_warnings
from leakbound.cuts.policy import Shift
from leakbound.errors import OptionError
from leakbound.propensity import CrossFit, LogisticPropensity, PropensityFit, SklearnPropensity
from leakbound.results import Assumption, Provenance
from leakbound.results.one_run import as_epsilon
from leakbound.results.wording import GIVEN, Wording
from leakbound.results.zero_run import LearntLogOdds, ZeroRunResult

Propensities: TypeAlias = (
    ArrayInput | PropensityFit | CrossFit | LogisticPropensity | tuple[ArrayInput, ArrayInput]
)
LogisticModel: TypeAlias = PropensityFit | CrossFit | LogisticPropensity
CORRECTIONS: dict[CorrectionName, type[Correction]] = {
    one.name: one for one in (Match, PoissonBinomial, Tamper, Composition)
}
"""What takes shift out of a proof."""
# Share of examples kept below which most of them are wasted.
_FEW_KEPT = 0.1
_WITHHELD = Message(
    "the data contradict the propensity model, so the bound is withheld: fit a richer one, or pass "
    "{release_refuted=True} to {ZeroRun} to see the bound"
)


OBSERVED = (
    Assumption(
        "independent memberships",
        "Given the features, each audited example was in the training set independently of the "
        "others, with its propensity. The rest of training does not depend on which ones were.",
        "declared",
    ),
    Assumption(
        "add or remove one example",
        "The claim is about adding or removing one training example. Each candidate "
        "became a member independently of the others, and the audit set was chosen without knowing "
        "which of them did.",
        "declared",
    ),
)
"""What is assumed of memberships that nobody drew, and what they change of training."""


@hinted(**OF_AUDITS)
@dataclass(frozen=True, eq=False)
class ZeroRun(ZeroRunOptions, Design[Listed, ZeroRunResult]):
    """Nothing was randomised: these examples were in the training set, those were not.

    They may differ in distribution, so that correct guesses may say nothing about the model. The
    propensity π(x) = P(member | features x) says what features alone give away. A correction takes
    this into account; guarantees that cannot explain the remaining evidence are refuted.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Booleans, {0, 1} or {-1, +1}. What carries ids (a plan, a pandas index) is joined with the
        ids of the scores, propensities and features too.
    propensity : array-like, PropensityFit, LogisticPropensity, CrossFit, or two array-likes
        One of these:

        - propensities of shape (m,), taken as right;
        - lower and upper limits, as a tuple: for each guess, the worse limit counts;
        - a model that was fitted to other examples (D');
        - a logistic model that is not fitted (the default): it is learnt from the audited labels;
        - to explore, K replicates of shape (K, m);
        - to explore, models of `propensity.cross_fit`: each audits the fold that it did not see, at
          its share of the error probability, and the largest bound is reported. Logistic ones are
          learnt from all audited labels instead, unless a bootstrap is asked for.
    correction : {"conditional", "match", "poisson_binomial", "tamper", "composition"}
        How distribution shift is corrected; "conditional" is "poisson_binomial" for `PureDP`, else
        "match", or "tamper" where there are limits only.
    adversary : {"raw", "paper_aware", "residual"}, optional
        What guesses are ranked by. If None, "raw" for "composition", else "residual". Over a
        confidence set, leave it out: what features predict of the scores is subtracted, and guesses
        are balanced against features.

        - "raw": the scores.
        - "paper_aware": the distance of a score from the median, times the probability that
          tampering leaves the guess as it is.
        - "residual": the part of the score that features do not predict
          (`stats.residual_scores`). For "tamper", guesses are ranked by the probability that they
          are right and survive tampering.
    variant : {"directional", "paper", "untampered"}
        How guesses are tampered with (`stats.tamper_probability`); for "poisson_binomial" Tλ
        ("directional") or |λ| (the others), which stays safe if λ is too large. "untampered" is
        "poisson_binomial" for `ApproxDP`, with |λ|, and Markov's inequality for failures; "match"
        proves more.
    uncertainty : {"set", "bootstrap", "none"}, optional
        How to allow for the error of a model. "set", the default of logistic ones: the bound is the
        smallest over a confidence set of their coefficients, which holds the true ones in finite
        samples. "bootstrap", the default of others: a low percentile of refits, the procedure of
        the paper, which is not a confidence bound; "none": no error is assumed. Both results have
        kind "exploratory_lower_bound" and refute nothing.
    features : array-like or data frame, shape (m, d), optional
        Features of the examples, for a model and tests of it. Columns of a frame of any library may
        hold numbers, booleans, dates, words and categories, some missing: words become indicators
        of all but the most frequent one, those in fewer than 20 rows as one; dates become days; a
        missing value becomes the median or that word, with an indicator if 20 rows or more lack it.
        Constant columns and combinations of others are left out, which changes no log-odds.
    max_log_odds : float, optional
        Examples with |λ| above this are left out. Needed if propensities are 0 or 1. With a fitted
        model λ is that of D'.
    falsify : bool
        Whether to test the propensities, if there are features: by an independent model, and for a
        confidence set by score tests of its form. The tests need scikit-learn.
    release_refuted : bool
        Whether to report the bound instead of 0 if the data contradict the propensities. The
        assumption is "contradicted" all the same.

    Notes
    -----
    If `cuts` is None, matching uses `SecondLook()`, as for coins, and so does "poisson_binomial"
    for `PureDP`. Over a confidence set, the number of guesses of its first test is planned for
    `PureDP`, and wherever there is no D'. All other corrections plan their numbers of guesses. Over
    a confidence set `cuts` may be `Fixed`, or `SecondLook` where that is the default.
    `docs/theory/zero-run.md` states what is tested, random and assumed.

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

    __repr__ = brief

    def audit(self, scores: Listed, request: Request, /) -> ZeroRunResult:
        """See `Design.audit`."""
        if isinstance(request.cuts, Weighted):
            raise _weights_depend_on_scores(request.cuts)
        refuse_replacing(request.claim)
        examples = read(scores, self.member, request.ids)
        logistic_model = _logistic_model(self.propensity, self.uncertainty)
        if logistic_model is not None:
            learning = Learning.of(logistic_model, examples, self)
            check_options(self, request, learning)
            odds: Odds = learnt(examples, learning, self, request)
        elif isinstance(self.propensity, CrossFit):
            return self._best_of_folds(examples, self.propensity, request)
        else:
            odds = known_log_odds(examples, self.propensity, self, request)
        correction = correction_of(self, request, odds)
        return bound(examples, odds, correction, self, request)

    def _best_of_folds(
        self, examples: AlignedScores, crossed: CrossFit, request: Request
    ) -> ZeroRunResult:
        """Audit every fold at its share of the level, by the model that did not see it.

        Given the memberships of the other folds, the propensities of a fold are fixed and its own
        memberships independent of them. The best fold counts; if the propensities of any were
        refuted, its result is returned instead, since all models are of one kind.
        """
        check_folds(crossed, examples, self)
        attacks = examples.attacks
        level = shares.FOLDS.of(request.level, len(crossed.fits))
        of_fold = replace(request, confidence=1 - level, ids=None)
        table = table_of_folds(crossed)
        results = []
        for rows, model in crossed.parts():
            own = replace(self, features=crossed.features[rows])
            part = AlignedScores(ExampleOrder(), attacks.taken(rows), examples.member[rows])
            odds = known_log_odds(part, model, own, of_fold, table.taken(rows))
            correction = correction_of(own, of_fold, odds)
            results.append(bound(part, odds, correction, own, of_fold))
        withheld = [fold for fold, result in enumerate(results) if result.withheld]
        bounds = np.array([result.bound for result in results])
        chosen = withheld[0] if withheld else int(np.argmax(bounds))
        inputs = attacks.digested | {"member": examples.member, "features": crossed.features}
        best = results[chosen]
        return replace(
            best,
            options=best.options | {"fold": chosen, "folds": bounds.tolist(), "folds_level": level},
            confidence=request.confidence,
            _naive=Lazy(lambda: bound_without_correction(examples, request)),
            _provenance=Lazy(lambda: Provenance.of(request.seed, **inputs)),
        )


def bound(
    examples: AlignedScores,
    odds: Odds,
    correction: Correction,
    options: ZeroRunOptions,
    request: Request,
    drawn: tuple[Assumption, Assumption] = OBSERVED,
) -> ZeroRunResult:
    """Audit a claim by a correction, every attack at its share of the level.

    `drawn` is what is assumed of memberships, and of what they change.
    """
    level = odds.share * request.level
    # 1. What is proved at the level that the error of log-odds leaves.
    games = {name: _observed_game(examples, odds, name, request) for name in odds.scores}
    proof = AnyAttacks(games).prove(level, partial(correction.proof_at_level, odds))
    shift = proof.shift
    assert shift is not None
    game = games[str(proof.options.get("attack", ""))]
    # 2. The grounds for it.
    at_attack = shares.ATTACKS.of(level, len(games))
    assumed = conditions_of_zero_run(
        odds, drawn, options, shift.correction, examples.attacks.others
    )
    stated = _options_of_zero_run(odds, shift, options, request, at_attack)
    design = replace(
        odds,
        assumptions=(*assumed, *family_assumption(request.claim)),
        options={**stated, **odds.options},
        warnings=_warnings_of_zero_run(odds, shift, game, request.claim),
        inputs={**examples.attacks.digested, "member": examples.member, **odds.inputs},
    )
    fields = assemble(proof, design, request) | _fields_of_game(game)
    fields["warnings"] = _with_warning_of_part(game, fields["warnings"])
    # 3. Nothing is reported where the propensities were refuted.
    withheld = odds.refuted and not options.release_refuted
    if withheld:
        fields |= _withheld_fields(fields["options"], design.warnings)
    return ZeroRunResult(
        **fields,
        correction=shift.correction,
        kept=shift.kept,
        m_eff=shift.effective,
        abstained=odds.abstained,
        bootstrap=shift.bootstrap,
        falsification=odds.falsification,
        withheld=withheld,
        learnt=_learnt_log_odds(odds, shift, request),
        _naive=Lazy(lambda: bound_without_correction(examples, request)),
        _overlap=Lazy(lambda: odds.overlap(examples.member)),
        _by_tampering=Lazy(
            lambda: None if withheld else _bound_by_tampering(odds, game, correction, at_attack)
        ),
    )


def _weights_depend_on_scores(cuts: Weighted) -> OptionError:
    """Return the error of cuts that depend on scores."""
    message = "{cuts} is not for Zero-Run: use one that is fixed in advance"
    return OptionError(Message(message, cuts=Option("cuts", cuts)))


def _fields_of_game(game: ObservedGame) -> Named:
    """Return the fields of a result about all that was audited, whatever matching keeps."""
    return {
        "wording": GIVEN,
        "m": game.examples,
        "members": int(game.member.sum()),
        "_histogram": Lazy(lambda: histogram_of(game.shown())),
    }


def _withheld_fields(options: Named, warnings: Strings) -> Named:
    """Return the fields of a result that is withheld, as is what its parts prove."""
    others = {name: value for name, value in options.items() if name != "parts"}
    return {
        "bound": 0.0,
        "reason": _WITHHELD,
        "rejected": None,
        "options": others,
        "warnings": warnings,
    }


def _observed_game(
    examples: AlignedScores, odds: Odds, name: str, request: Request
) -> ObservedGame:
    """Return the game of an attack, of the examples that are audited."""
    return ObservedGame(
        scores=examples.attacks.scores[name][odds.rows],
        values=odds.scores[name],
        member=examples.member[odds.rows],
        sides=request.sides,
        seed=request.seed,
    )


def _options_of_zero_run(
    odds: Odds, shift: Shift, options: ZeroRunOptions, request: Request, level: float
) -> dict[str, JsonValue]:
    """Return the options of an attack's audit as results show them."""
    correction = options.correction if options.correction != "conditional" else None
    return {
        "correction": shift.correction,
        "sides": request.sides,
        "adversary": shift.adversary,
        "variant": options.variant,
        "max_log_odds": options.max_log_odds,
        "level": odds.level_of_test(level),
        "seed": request.seed,
        "claim": encode(request.claim),
        **asked(
            request.cuts,
            correction=correction,
            adversary=options.adversary,
            uncertainty=options.uncertainty,
        ),
    }


def _warnings_of_zero_run(
    odds: Odds, shift: Shift, game: ObservedGame, claim: Claim
) -> tuple[str, ...]:
    """Return what a reader should know of ties, log-odds, what is kept and δ."""
    notes = (*tie_warnings(game.ranked()), *odds.warnings)
    if shift.kept < _FEW_KEPT * game.examples:
        notes += (_matching_keeps_few(shift.kept, game.examples),)
    return notes + delta_warnings(claim.delta, game.examples)


def _matching_keeps_few(kept: int, examples: int) -> str:
    return f"matching keeps {kept} of {examples} examples: members and non-members hardly overlap"


def _with_warning_of_part(game: ObservedGame, warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return warnings with one of a part whose scores are all one, if there is any."""
    warning_of_part = premises.filled({"": game.scores}, game.member).get("", "")
    return premises.with_filled(warning_of_part, warnings)


def _bound_by_tampering(
    odds: Odds, game: ObservedGame, correction: Correction, level: float
) -> float | None:
    """Return what tampering proves in place of matching, all else the same; None if none was."""
    if not isinstance(correction, Match):
        return None
    cuts = correction.cuts if isinstance(correction.cuts, Fixed) else None
    tamper = Tamper(claim=correction.claim, cuts=cuts, variant=correction.variant)
    return tamper.proof_at_level(odds, game, level).bound


def correction_of(options: ZeroRunOptions, request: Request, odds: Odds) -> Correction:
    """Return how shift is taken out."""
    correction = CORRECTIONS[_correction_name(options, request.claim, odds)]
    return correction(
        claim=request.claim,
        cuts=request.cuts,
        adversary=options.adversary or correction.usual_adversary(odds),
        variant=options.variant,
    )


def _correction_name(options: ZeroRunOptions, claim: Claim, odds: Odds) -> CorrectionName:
    correction = options.correction
    if options.variant == "untampered":
        return _untampered_correction(correction, claim)
    if correction != "conditional":
        return correction
    if isinstance(claim, PureDP):
        return "poisson_binomial"
    if odds.limited:
        return "tamper"
    return "match"


def _untampered_correction(correction: CorrectionChoice, claim: Claim) -> CorrectionName:
    """Return the one correction that leaves guesses untampered, or refuse others."""
    if isinstance(claim, ApproxDP) and correction in {"conditional", "poisson_binomial"}:
        return "poisson_binomial"
    message = (
        '{variant="untampered"} is for {ApproxDP(δ)} by {correction="poisson_binomial"}, got '
        "{claim} by {by!r}: take another variant"
    )
    raise OptionError(Message(message, claim=claim.name, by=correction))


def bound_without_correction(examples: AlignedScores, request: Request) -> float:
    """Return the ε claimed by an audit that takes every membership for a fair coin."""
    claim = request.claim

    def prove(scores: FloatArray, level: float) -> Proof:
        game = ScoreGame(
            scores=scores, member=examples.member, sides=request.sides, seed=request.seed
        )
        return proof_of_fair_coins(claim, None, game, level)

    proved = examples.attacks.prove(request.level, prove).bound
    curve = claim.rejected(proved, request.sides)
    return as_epsilon(claim, proved, curve, claim.stored_least_delta(request.sides))


def _learnt_log_odds(odds: Odds, shift: Shift, request: Request) -> LearntLogOdds | None:
    """Return the confidence set, with the member at which least is proved."""
    if not isinstance(odds, OddsSet):
        return None
    found = odds.found
    return LearntLogOdds(
        level=found.level,
        test_level=shares.AT_MEMBER.of(request.level),
        reference=found.reference,
        estimate=found.coefficients,
        squared_radius=found.squared_radius,
        coefficients=shift.coefficients,
        at_estimate=shift.at_estimate,
        columns=odds.columns,
        tests=odds.tests,
    )


def conditions_of_zero_run(
    odds: Odds,
    drawn: tuple[Assumption, Assumption],
    options: ZeroRunOptions,
    correction: CorrectionName,
    others: str,
) -> tuple[Assumption, ...]:
    """Return what must be true for the bound to mean what it says.

    `drawn` is what is assumed of memberships and of what they change, and `others` what is assumed
    of other attacks, but for the verb's object.
    """
    model, source = odds.assumptions
    abstention = "No limit is set on log-odds."
    if options.max_log_odds is not None:
        abstention = (
            f"Examples are left out if their log-odds are beyond {options.limit:g}, whatever "
            "their score."
        )
    if correction == "match":
        abstention = (
            "Matching leaves examples out at random, with probabilities that depend on their "
            f"log-odds and membership, not on scores. {abstention}"
        )
    return (
        model,
        *drawn,
        source,
        Assumption(
            "scores without membership",
            "The scores come from the trained model and the examples only. All audit options were "
            f"chosen before membership was known, and {others} tried.",
            "declared",
        ),
        Assumption(
            "abstention by features only",
            f"Guesses and their order depend on scores and propensities only. {abstention}",
            "checked",
        ),
    )


def _logistic_model(propensity: Propensities, asked: Uncertainty | None) -> LogisticModel | None:
    """Return the model whose log-odds are learnt over a confidence set, or refuse what has none."""
    if asked in {None, "set"}:
        if isinstance(propensity, LogisticPropensity):
            return propensity
        if isinstance(propensity, PropensityFit | CrossFit) and propensity.logistic:
            return propensity
    _refuse_uncertainty(propensity, asked)
    return None


def _refuse_uncertainty(given: Any, asked: Uncertainty | None) -> None:
    """Refuse what is asked of the error of log-odds that have no confidence set, or no error."""
    fitted = isinstance(given, PropensityFit | CrossFit)
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
