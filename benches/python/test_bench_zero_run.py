"""Zero-Run: 600 refits of the propensity model beside a loop over scikit-learn, and known odds.

The loop's 600 replicates would take a minute: 20 are timed and scaled.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import Claim
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.stats import match
from ratios import Compare

SIZE = 10_000
FEATURES = 50
REPLICATES = 600
TIMED = 20
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Game:
    """Features and membership of D', and features, membership and scores that are audited."""

    learn: FloatArray
    learnt: BoolArray
    features: FloatArray
    member: BoolArray
    scores: FloatArray

    @classmethod
    def play(cls, rng: np.random.Generator, size: int, width: int) -> "Game":
        """Draw as many examples of both."""
        features = rng.normal(size=(2 * size, width))
        slopes = np.append(0.5, rng.normal(loc=0, scale=0.15, size=width - 1))
        log_odds = features @ slopes
        member = rng.random(2 * size) < expit(log_odds)
        audited_member = member[:size]
        return cls(
            learn=features[size:],
            learnt=member[size:],
            features=features[:size],
            member=audited_member,
            scores=audited_member + log_odds[:size] + rng.normal(size=size),
        )

    def fit(self) -> PropensityFit:
        """Learn propensities."""
        return LogisticPropensity().fit(self.learn, self.learnt)

    def audit(self, claim: Claim | None = None, **options: Any) -> lb.ZeroRunResult:
        """Learn propensities, and audit over their refits, without a test of them."""
        design = lb.ZeroRun(
            self.member,
            self.fit(),
            features=self.features,
            uncertainty="bootstrap",
            falsify=False,
            **options,
        )
        return lb.audit(self.scores, design, claim=claim)


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_pure_epsilon_of_known_odds(compare: Compare, size: int) -> None:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=size)
    propensity = expit(log_odds)
    member = rng.random(size) < propensity
    scores = 1.4 * member + log_odds + rng.normal(size=size)

    def ours() -> lb.ZeroRunResult:
        return lb.audit(scores, lb.ZeroRun(member, propensity), claim=lb.PureDP())

    assert 2 < ours().bound < 6
    compare(
        "Zero-Run, pure epsilon, known odds",
        ours,
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=size,
        rounds=5,
    )


@pytest.mark.parametrize("correction", ["match", "tamper"])
def test_bootstrapped_audit(compare: Compare, correction: str) -> None:
    rng = np.random.default_rng(0)
    game = Game.play(rng, SIZE, FEATURES)

    def ours() -> lb.ZeroRunResult:
        return game.audit(correction=correction)

    def loop() -> list[int]:
        matched_examples = []
        for _ in range(TIMED):
            resampled_rows = rng.integers(0, SIZE, size=SIZE)
            model = CalibratedClassifierCV(LogisticRegression(), cv=5, ensemble=False)
            model.fit(game.learn[resampled_rows], game.learnt[resampled_rows])
            propensities = model.predict_proba(game.features)[:, 1]
            uniforms = rng.random(SIZE)
            is_matched = match(game.member, log_odds=logit(propensities), uniforms=uniforms)
            matched_examples.append(int(is_matched.sum()))
        return matched_examples

    result = ours()
    check(result, largest=1)
    if correction == "match":
        assert abs(np.mean(loop()) / result.kept - 1) < 0.02
    compare(
        f"Zero-Run by {correction}, GDP, K = 600",
        ours,
        peer="scikit-learn loop (20 of 600, scaled)",
        run_peer=loop,
        size=SIZE,
        rounds=ROUNDS,
        peer_share=TIMED / REPLICATES,
    )


def check(result: lb.ZeroRunResult, largest: float) -> None:
    assert result.bootstrap is not None
    assert result.bootstrap.bounds.size == REPLICATES
    assert 0 < result.bound < largest


def test_pure_epsilon_over_refits(compare: Compare) -> None:
    """One walk of most replicates shows that they prove no less; the peer is the refits alone."""
    size = 10_000
    game = Game.play(np.random.default_rng(0), size, 10)

    def refits() -> PropensityFit:
        fit = game.fit()
        fit.bootstrap(game.features, K=REPLICATES)
        return fit

    def ours() -> lb.ZeroRunResult:
        return game.audit(claim=lb.PureDP())

    check(ours(), largest=3)
    compare(
        "Zero-Run, pure epsilon, K = 600",
        ours,
        peer="its refits alone",
        run_peer=refits,
        size=size,
        rounds=ROUNDS,
    )
