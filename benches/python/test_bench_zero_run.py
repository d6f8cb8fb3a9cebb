"""Zero-Run: 600 refits of the propensity model beside a loop over scikit-learn, and known odds.

The loop's 600 replicates would take a minute: 20 are timed and scaled.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import Claim
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.stats import match
from ratios import Ratio, measure

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
        slopes = np.r_[0.5, rng.normal(0, 0.15, width - 1)]
        odds = features @ slopes
        member = rng.random(2 * size) < 1 / (1 + np.exp(-odds))
        audited = member[:size]
        return cls(
            learn=features[size:],
            learnt=member[size:],
            features=features[:size],
            member=audited,
            scores=audited + odds[:size] + rng.normal(size=size),
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
def test_pure_epsilon_of_known_odds(
    record: Callable[[Ratio, Callable[[], object]], None], size: int
) -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(size=size)
    propensity = 1 / (1 + np.exp(-odds))
    member = rng.random(size) < propensity
    scores = 1.4 * member + odds + rng.normal(size=size)

    def ours() -> lb.ZeroRunResult:
        return lb.audit(scores, lb.ZeroRun(member, propensity), claim=lb.PureDP())

    assert 2 < ours().bound < 6
    ratio = measure(
        "Zero-Run, pure epsilon, known odds",
        ours,
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=size,
        rounds=5,
    )
    record(ratio, ours)


@pytest.mark.parametrize("correction", ["match", "tamper"])
def test_bootstrapped_audit(
    record: Callable[[Ratio, Callable[[], object]], None], correction: str
) -> None:
    rng = np.random.default_rng(0)
    game = Game.play(rng, SIZE, FEATURES)

    def ours() -> lb.ZeroRunResult:
        return game.audit(correction=correction)

    def loop() -> list[int]:
        kept = []
        for _ in range(TIMED):
            rows = rng.integers(0, SIZE, SIZE)
            model = CalibratedClassifierCV(LogisticRegression(), cv=5, ensemble=False)
            model.fit(game.learn[rows], game.learnt[rows])
            p = model.predict_proba(game.features)[:, 1]
            log_odds = np.log(p / (1 - p))
            uniforms = rng.random(SIZE)
            kept.append(int(match(game.member, log_odds=log_odds, uniforms=uniforms).sum()))
        return kept

    result = ours()
    check(result, largest=1)
    if correction == "match":
        assert abs(np.mean(loop()) / result.kept - 1) < 0.02
    ratio = measure(
        f"Zero-Run by {correction}, GDP, K = 600",
        ours,
        peer="scikit-learn loop (20 of 600, scaled)",
        run_peer=loop,
        size=SIZE,
        rounds=ROUNDS,
    )
    share = TIMED / REPLICATES
    record(replace(ratio, ratio=ratio.ratio * share, spread=ratio.spread * share), ours)


def check(result: lb.ZeroRunResult, largest: float) -> None:
    assert result.bootstrap is not None
    assert result.bootstrap.bounds.size == REPLICATES
    assert 0 < result.bound < largest


def test_pure_epsilon_over_refits(record: Callable[[Ratio, Callable[[], object]], None]) -> None:
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
    ratio = measure(
        "Zero-Run, pure epsilon, K = 600",
        ours,
        peer="its refits alone",
        run_peer=refits,
        size=size,
        rounds=ROUNDS,
    )
    record(ratio, ours)
