"""Games of learnt log-odds whose attackers know the nuisance, and the rows that play them.

Scores that point along the error of an estimate make a number rise with that error, which no
resampling of the estimate shows, and a confidence set of log-odds covers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.numerics import expit, logit
from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits import ZeroRun, audit
from leakbound.claims import Claim, GaussianDP, PureDP
from leakbound.errors import FitError, InputError
from leakbound.propensity import (
    ConfidenceSet,
    FormTest,
    LogisticPropensity,
    PropensityFit,
    link_bent,
    products_missing,
)
from leakbound.propensity.falsification import REFUTED_BELOW
from validity.lengths import COSTLY
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = [
    "CAUCHIT",
    "KNOWLEDGE",
    "RIGHT_FORMS",
    "SEARCHED",
    "FormTrial",
    "NuisanceTrial",
    "People",
    "Setting",
    "gaussian",
    "knowing",
    "learnt",
    "nuisance_cases",
    "people",
    "response",
]

Features: TypeAlias = Literal["normal", "binary", "heavy", "heaviest", "lognormal", "collinear"]
"""Standard normal, 0 and 1, Student's t with three or with two degrees of freedom, of normal
logarithms, or one number for all and a tenth of it apart."""
Knowledge: TypeAlias = Literal["odds", "noisy", "bent", "error"]
"""What scores know: λ, λ + N(0, 1), a curved function of λ, or λ less its estimate."""

KNOWLEDGE: tuple[Knowledge, ...] = ("odds", "noisy", "bent", "error")

_RATIO = 4.0
"""Odds by which D' is short of others, if it is."""


@dataclass(frozen=True)
class Setting:
    """What makes log-odds hard to learn.

    Rows of D', rows audited, features and the standard deviation of the log-odds; the law of the
    features; the intercept; whether D' has another share of members, which nobody knows; how often
    a binary feature is 1; and whether Cauchy's law makes probabilities of what is linear.
    """

    reference: int
    audited: int
    features: int
    spread: float
    law: Features = "normal"
    intercept: float = 0.0
    thinned: bool = False
    share: float = 0.3
    cauchit: bool = False

    def __str__(self) -> str:
        words = [f"n={self.reference}", f"m={self.audited}", f"d={self.features}"]
        words.append(f"sd={self.spread:g}")
        if self.law != "normal":
            words.append(self.law)
        if self.intercept:
            words.append(f"intercept={self.intercept:g}")
        if self.thinned:
            words.append("thinned")
        if self.share != Setting.share:
            words.append(f"share={self.share:g}")
        if self.cauchit:
            words.append("cauchit")
        return ",".join(words)


@dataclass(frozen=True)
class People:
    """Audited examples with their log-odds of membership, D', and the coefficients."""

    features: FloatArray
    member: BoolArray
    log_odds: FloatArray
    reference: tuple[FloatArray, BoolArray]
    theta: FloatArray


def people(setting: Setting, rng: np.random.Generator) -> People:
    """Draw features, and memberships whose log-odds are linear in them, or whose cauchits are."""
    n, d = setting.reference, setting.features
    rows = n + setting.audited
    theta = rng.normal(size=d)
    theta *= setting.spread / np.linalg.norm(theta)
    if setting.law == "binary":
        features = (rng.random((rows, d)) < setting.share).astype(np.float64)
        theta /= np.sqrt(setting.share * (1 - setting.share))
    elif setting.law == "heavy":
        features = rng.standard_t(3, size=(rows, d)) / np.sqrt(3)
    elif setting.law == "heaviest":
        features = rng.standard_t(2, size=(rows, d))
    else:
        features = rng.normal(size=(rows, d))
        if setting.law == "lognormal":
            features = np.exp(features)
        if setting.law == "collinear":
            features = rng.normal(size=(rows, 1)) + features / 10
    log_odds = features @ theta
    if setting.law in ("binary", "lognormal"):
        log_odds -= log_odds.mean()
    log_odds += setting.intercept
    if setting.cauchit:
        log_odds = logit(0.5 + np.arctan(log_odds) / np.pi)
    member = rng.random(rows) < expit(log_odds)
    seen = np.arange(n)
    if setting.thinned:
        seen = seen[member[:n] | (rng.random(n) * _RATIO < 1)]
    return People(
        features[n:],
        member[n:],
        log_odds[n:],
        (features[seen], member[seen]),
        np.concatenate([[log_odds[0] - features[0] @ theta], theta]),
    )


def _game(setting: Setting, seed: int) -> tuple[People, np.random.Generator]:
    """Play the game of a seed, and return its stream."""
    rng = stream("nuisance", seed)
    return people(setting, rng), rng


def learnt(setting: Setting, game: People) -> PropensityFit | LogisticPropensity:
    """Return a model of D', or one to be learnt from audited labels where D' gives none."""
    plain = LogisticPropensity(calibration=None)
    try:
        fit = plain.fit(*game.reference)
    except InputError:
        return plain
    return fit.with_member_share(None) if setting.thinned else fit


def knowing(
    game: People,
    rng: np.random.Generator,
    what: Knowledge,
    estimate: FloatArray | None = None,
) -> FloatArray:
    """Return scores that saw no label, but know the log-odds, or how an estimate errs."""
    odds = game.log_odds
    if what == "noisy":
        return odds + rng.normal(size=odds.size)
    if what == "bent":
        return np.sign(odds) * odds**2 + np.sin(2 * odds)
    if what == "error" and estimate is not None:
        return odds - estimate
    return odds.copy()


def response(game: People, epsilon: float, rng: np.random.Generator) -> FloatArray:
    """Return randomised response of ε, plus what features tell about membership."""
    told = rng.random(game.member.size) < 1 / (1 + np.exp(-epsilon))
    return np.where(game.member == told, epsilon, -epsilon) + game.log_odds


def gaussian(game: People, mu: float, rng: np.random.Generator) -> FloatArray:
    """Return the Gaussian mechanism of μ, plus what features tell about membership."""
    seen = mu * game.member + rng.normal(size=game.member.size)
    scores: FloatArray = mu * (seen - mu / 2) + game.log_odds
    return scores


@dataclass(frozen=True, kw_only=True)
class NuisanceTrial:
    """Whether Zero-Run over a confidence set claims more than the truth.

    Where the truth is 0, the attacker is another one in each game, or all of them together.
    Nothing is falsified, since the bound has to hold by itself, but where the link is another one.
    """

    setting: Setting
    claim: Claim
    truth: float = 0.0
    sides: SidesChoice = "both"
    together: bool = False

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed."""
        game, rng = _game(self.setting, seed)
        model = learnt(self.setting, game)
        estimate = model.log_odds(game.features) if isinstance(model, PropensityFit) else None
        attacks = [knowing(game, rng, what, estimate) for what in KNOWLEDGE]
        one = seed % len(KNOWLEDGE)
        if self.truth:
            leak = response if isinstance(self.claim, PureDP) else gaussian
            attacks[one] = leak(game, self.truth, rng)
        result = audit(
            np.array(attacks) if self.together else attacks[one],
            ZeroRun(game.member, model, features=game.features, falsify=self.setting.cauchit),
            claim=self.claim,
            sides=self.sides,
            confidence=1 - ERROR,
            seed=seed % 2**63,
        )
        return result.bound > self.truth


@dataclass(frozen=True, kw_only=True)
class FormTrial:
    """Whether a test of the form refutes a logistic model, or misses a wrong one."""

    setting: Setting
    test: Callable[[ConfidenceSet], FormTest]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed."""
        game, _ = _game(self.setting, seed)
        reference = game.reference if self.setting.reference else None
        try:
            found = ConfidenceSet.fit(
                game.features, game.member, reference=reference, seed=seed % 2**63
            )
        except FitError:
            return False
        return self.test(found).refuted != self.setting.cauchit


SEARCHED = (
    Setting(300, 1500, 30, 2),
    Setting(1000, 3000, 30, 2),
    Setting(60, 1500, 6, 1.5),
    Setting(3000, 3000, 5, 1),
    Setting(2000, 4000, 100, 2),
    Setting(0, 600, 1, 1.5),
    Setting(0, 3000, 1, 1),
    Setting(30, 400, 10, 1.5),
    Setting(0, 1500, 10, 2),
    Setting(200, 1500, 20, 2),
    Setting(150, 1500, 50, 2),
    Setting(60, 1500, 6, 1.5, law="binary"),
    Setting(300, 1500, 30, 2, law="heavy"),
    Setting(60, 1500, 6, 1.5, law="heavy", intercept=-2.5),
    Setting(60, 1500, 6, 1.5, intercept=3),
    Setting(0, 400, 3, 8),
    Setting(200, 800, 5, 6),
    Setting(240, 1500, 6, 1.5, thinned=True),
)
"""Settings that a search for what is worst is tried on too."""
_SETTINGS = (
    *SEARCHED,
    Setting(10_000, 10_000, 50, 1),
    Setting(10_000, 10_000, 50, 2),
    Setting(300, 1500, 100, 2),
    Setting(300, 1500, 30, 2, law="binary"),
    Setting(60, 1500, 6, 1.5, law="heavy"),
    Setting(300, 1500, 20, 1, intercept=-3),
    Setting(600, 1500, 20, 2, thinned=True),
)
CAUCHIT = Setting(0, 1500, 4, 2.5, cauchit=True)
RIGHT_FORMS = (
    Setting(0, 800, 6, 1, law="binary", share=0.1),
    Setting(0, 800, 12, 0.9, law="binary", share=0.03),
    Setting(0, 3000, 12, 0.9, law="binary", share=0.03),
    Setting(0, 3000, 12, 0.5, law="binary", share=0.01),
    Setting(0, 10_000, 12, 0.5, law="binary", share=0.01),
    Setting(1000, 2000, 6, 0.9, law="binary", share=0.03),
    Setting(0, 800, 6, 1, law="heavy"),
    Setting(0, 1500, 8, 0.7, law="heaviest"),
    Setting(0, 1500, 8, 0.7, law="lognormal"),
    Setting(0, 800, 6, 1, law="collinear"),
    Setting(0, 1500, 4, 2.5),
)
"""Logistic models that tests of the form must not refute, however rare or heavy the features."""
_UNSEEN = 0.15
"""Share of models with Cauchy's link that the test of the link may pass."""
_VARIED = (Setting(60, 1500, 6, 1.5), Setting(300, 1500, 30, 2))
"""Settings of one-sided guesses, and of several attacks."""
_TRUTHS: tuple[tuple[Claim, float, str], ...] = (
    (PureDP(), 0.0, "knows-odds"),
    (GaussianDP(), 0.0, "knows-odds"),
    (PureDP(), 1.0, "ε=1"),
    (GaussianDP(), 0.66, "μ=0.66"),
)


def nuisance_cases() -> Iterator[Case]:
    """Yield the cases."""
    for setting in _SETTINGS:
        yield from _of(setting, "both")
    for setting in _VARIED:
        yield from _of(setting, "member")
        yield from _of(setting, "both", together=True)
    yield from _of(CAUCHIT, "both")
    yield from _of_forms()


def _of_forms() -> Iterator[Case]:
    """Yield cases of tests of the form, of right ones and of another link."""
    row = partial(Case, audit="form", claim="logistic", sides="both", long=COSTLY)
    for setting in RIGHT_FORMS:
        for test in (products_missing, link_bent):
            yield row(
                cuts=test.__name__,
                truth=str(setting),
                error=REFUTED_BELOW,
                trial=FormTrial(setting=setting, test=test),
            )
    yield row(
        cuts="link_bent",
        truth=str(CAUCHIT),
        error=_UNSEEN,
        trial=FormTrial(setting=CAUCHIT, test=link_bent),
    )


def _of(setting: Setting, sides: SidesChoice, *, together: bool = False) -> Iterator[Case]:
    """Yield the cases of one setting: nothing leaks, or as much as the claim allows."""
    for claim, truth, word in _TRUTHS:
        trial = NuisanceTrial(
            setting=setting, claim=claim, truth=truth, sides=sides, together=together
        )
        yield Case(
            audit="zero-run",
            claim=claim.name,
            cuts="fitted",
            sides=sides,
            truth=f"{word}{' together' if together else ''} {setting}",
            error=ERROR,
            trial=trial,
            long=100,
        )
