"""What Zero-Run proves where log-odds are learnt, beside what it proves where they are known.

Games at ε = 1 and μ = 0.66 whose scores contain the log-odds: `GAMES=20 pytest -s` prints the mean
bounds, and the processor time of an audit, as in docs/theory/zero-run.md.
"""

import os
import time

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.odds import expit
from leakbound.claims import Claim
from validity.nuisance import Setting, gaussian, learnt, people, response

GAMES = int(os.environ.get("GAMES", "2"))
SETTINGS = (
    Setting(300, 1500, 30, 2),
    Setting(1000, 3000, 30, 2),
    Setting(60, 1500, 6, 1.5),
    Setting(3000, 3000, 5, 1),
    Setting(2000, 4000, 100, 2),
    Setting(0, 10_000, 50, 1),
    Setting(10_000, 10_000, 50, 1),
    Setting(10_000, 10_000, 50, 2),
)


@pytest.mark.parametrize("claim", [lb.PureDP(), lb.GaussianDP()], ids=["epsilon", "mu"])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_learnt_beside_known(setting: Setting, claim: Claim) -> None:
    truth = 0.66
    if isinstance(claim, lb.PureDP):
        truth = 1.0
    leak = response if truth == 1 else gaussian
    bounds = []
    spent = 0.0
    for seed in range(GAMES):
        rng = np.random.default_rng([seed, setting.audited, setting.features])
        game = people(setting, rng)
        scores = leak(game, truth, rng)
        start = time.process_time()
        model = learnt(setting, game) if setting.reference else lb.propensity.LogisticPropensity()
        over_set = lb.ZeroRun(game.member, model, features=game.features, falsify=False)
        found = lb.audit(scores, over_set, claim=claim, seed=seed).bound
        spent += time.process_time() - start
        known = lb.ZeroRun(game.member, expit(game.log_odds))
        bounds.append((found, lb.audit(scores, known, claim=claim, seed=seed).bound))
    over, beside = np.mean(bounds, axis=0)
    print(  # noqa: T201 (the table to report)
        f"{setting} {claim.name}: {over:.3f} of {beside:.3f} known = {over / beside:.2f}, largest "
        f"{max(bounds)[0]:.3f} of {truth}, {spent / GAMES:.2f} s"
    )
    assert 0 < over <= beside * 1.2
