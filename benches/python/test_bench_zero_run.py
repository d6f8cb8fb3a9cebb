"""Zero-Run: 600 refits of the propensity model beside a loop over scikit-learn, and known odds.

The loop's 600 replicates would take a minute: 20 are timed and scaled.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression

import leakbound as lb
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.stats import match
from ratios import Ratio, measure

SIZE = 10_000
FEATURES = 50
REPLICATES = 600
TIMED = 20
ROUNDS = 3


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
    features = rng.normal(size=(2 * SIZE, FEATURES))
    odds = features @ np.r_[0.5, rng.normal(0, 0.15, FEATURES - 1)]
    member = rng.random(2 * SIZE) < 1 / (1 + np.exp(-odds))
    learn = features[SIZE:]
    here = features[:SIZE]
    learnt = member[SIZE:]
    audited = member[:SIZE]
    scores = audited + odds[:SIZE] + rng.normal(size=SIZE)

    def ours() -> lb.ZeroRunResult:
        fit = LogisticPropensity().fit(learn, learnt)
        how: Any = correction
        design = lb.ZeroRun(
            audited,
            fit,
            features=here,
            correction=how,
            uncertainty="bootstrap",
            falsify=False,
        )
        return lb.audit(scores, design)

    def loop() -> list[int]:
        kept = []
        for _ in range(TIMED):
            rows = rng.integers(0, SIZE, SIZE)
            model = CalibratedClassifierCV(LogisticRegression(), cv=5, ensemble=False)
            p = model.fit(learn[rows], learnt[rows]).predict_proba(here)[:, 1]
            log_odds = np.log(p / (1 - p))
            kept.append(int(match(audited, log_odds=log_odds, uniforms=rng.random(SIZE)).sum()))
        return kept

    result = ours()
    assert result.bootstrap is not None
    assert result.bootstrap.bounds.size == REPLICATES
    assert 0 < result.bound < 1
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


def test_pure_epsilon_over_refits(record: Callable[[Ratio, Callable[[], object]], None]) -> None:
    """One walk of most replicates shows that they prove no less; the peer is the refits alone."""
    size = 10_000
    features = 10
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2 * size, features))
    odds = rows @ np.r_[0.5, rng.normal(0, 0.15, features - 1)]
    member = rng.random(2 * size) < 1 / (1 + np.exp(-odds))
    here = rows[:size]
    audited = member[:size]
    scores = audited + odds[:size] + rng.normal(size=size)

    def refits() -> PropensityFit:
        fit = LogisticPropensity().fit(rows[size:], member[size:])
        fit.bootstrap(here, K=REPLICATES)
        return fit

    def ours() -> lb.ZeroRunResult:
        fit = LogisticPropensity().fit(rows[size:], member[size:])
        design = lb.ZeroRun(audited, fit, features=here, uncertainty="bootstrap", falsify=False)
        return lb.audit(scores, design, claim=lb.PureDP())

    result = ours()
    assert result.bootstrap is not None
    assert result.bound == np.sort(result.bootstrap.bounds)[14] > 0
    ratio = measure(
        "Zero-Run, pure epsilon, K = 600",
        ours,
        peer="its refits alone",
        run_peer=refits,
        size=size,
        rounds=ROUNDS,
    )
    record(ratio, ours)
