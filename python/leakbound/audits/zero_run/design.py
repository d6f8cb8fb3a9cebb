"""Zero-Run: a deployed model, given members and non-members, without any training.

Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero (0) training run".
"""

from dataclasses import dataclass, field, fields
from typing import ClassVar

from leakbound._base.tally import Tally
from leakbound._base.types import (
    Adversary,
    ArrayInput,
    CorrectionChoice,
    HasMember,
    Uncertainty,
    ZeroRunVariant,
)
from leakbound.audits.road import Design, Request, Scores
from leakbound.audits.zero_run.audit import Propensities, audited
from leakbound.audits.zero_run.request import Candidates, ZeroRunRequest
from leakbound.claims import Claim, GaussianDP
from leakbound.errors import OptionError
from leakbound.results.zero_run import ZeroRunResult


@dataclass(frozen=True, eq=False)
class ZeroRun(Design[ZeroRunResult]):
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
        model that is not fitted, to be learnt from the audited labels alone; or a tuple of lower
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
    is D'), and else planned ones. `docs/zero-run.md` says of each correction what is tested, what
    is random and what is assumed.

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
    claim: ClassVar[Claim] = GaussianDP()
    member: ArrayInput | HasMember
    propensity: Propensities
    correction: CorrectionChoice = field(default="conditional", kw_only=True)
    adversary: Adversary | None = field(default=None, kw_only=True)
    variant: ZeroRunVariant = field(default="directional", kw_only=True)
    uncertainty: Uncertainty | None = field(default=None, kw_only=True)
    features: ArrayInput | None = field(default=None, kw_only=True)
    max_log_odds: float | None = field(default=None, kw_only=True)
    falsify: bool = field(default=True, kw_only=True)
    release_refuted: bool = field(default=False, kw_only=True)

    def audit(self, scores: Scores, request: Request, /) -> ZeroRunResult:
        """See `Design.audit`."""
        if isinstance(scores, Tally):
            message = "ZeroRun tells examples apart by propensity, and a tally only counts them"
            raise OptionError(message)
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        member, propensity = own.pop("member"), own.pop("propensity")
        shared = {one.name: getattr(request, one.name) for one in fields(request) if one.init}
        asked = ZeroRunRequest(**shared, **own)
        return audited(Candidates.read(scores, member, asked), propensity)
