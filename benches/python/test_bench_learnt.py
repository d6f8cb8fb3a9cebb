"""What Zero-Run proves where log-odds are learnt, beside what it proves where they are known.

Games at ε = 1 and μ = 0.66 whose scores contain the log-odds: `GAMES=20 pytest -s` prints the mean
bounds, and the processor time of an audit, as in docs/theory/zero-run.md.
"""

import os
import time
from typing import Any

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
    leak: Any = gaussian
    if isinstance(claim, lb.PureDP):
        truth = 1.0
        leak = response
    learnt_bounds = []
    known_bounds = []
    processor_seconds = 0.0
    for seed in range(GAMES):
        rng = np.random.default_rng([seed, setting.audited, setting.features])
        game = people(setting, rng)
        scores = leak(game, truth, rng)
        start = time.process_time()
        model: Any = lb.propensity.LogisticPropensity()
        if setting.reference:
            model = learnt(setting, game)
        over_set = lb.ZeroRun(game.member, model, features=game.features, falsify=False)
        learnt_bounds.append(lb.audit(scores, over_set, claim=claim, seed=seed).bound)
        processor_seconds += time.process_time() - start
        of_known = lb.ZeroRun(game.member, expit(game.log_odds))
        known_bounds.append(lb.audit(scores, of_known, claim=claim, seed=seed).bound)
    learnt_mean = np.mean(learnt_bounds)
    known_mean = np.mean(known_bounds)
    print(
        f"{setting} {claim.name}: {learnt_mean:.3f} of {known_mean:.3f} known = "
        f"{learnt_mean / known_mean:.2f}, largest {max(learnt_bounds):.3f} of {truth}, "
        f"{processor_seconds / GAMES:.2f} s"
    )
    assert 0 < learnt_mean <= known_mean * 1.2
