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
from leakbound._base.numerics import expit
from leakbound.claims import Claim
from validity.nuisance import Setting, gaussian, learnt, people, response

GAMES = int(os.environ.get("GAMES", "2"))
SETTINGS = (
    Setting(reference=300, audited=1500, features=30, spread=2),
    Setting(reference=1000, audited=3000, features=30, spread=2),
    Setting(reference=60, audited=1500, features=6, spread=1.5),
    Setting(reference=3000, audited=3000, features=5, spread=1),
    Setting(reference=2000, audited=4000, features=100, spread=2),
    Setting(reference=0, audited=10_000, features=50, spread=1),
    Setting(reference=10_000, audited=10_000, features=50, spread=1),
    Setting(reference=10_000, audited=10_000, features=50, spread=2),
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
        design_of_learnt = lb.ZeroRun(game.member, model, features=game.features, falsify=False)
        result_of_learnt = lb.audit(scores, design_of_learnt, claim=claim, seed=seed)
        processor_seconds += time.process_time() - start
        learnt_bounds.append(result_of_learnt.bound)
        design_of_known = lb.ZeroRun(game.member, expit(game.log_odds))
        result_of_known = lb.audit(scores, design_of_known, claim=claim, seed=seed)
        known_bounds.append(result_of_known.bound)
    learnt_mean = np.mean(learnt_bounds)
    known_mean = np.mean(known_bounds)
    print(
        f"{setting} {claim.name}: {learnt_mean:.3f} of {known_mean:.3f} known = "
        f"{learnt_mean / known_mean:.2f}, largest {max(learnt_bounds):.3f} of {truth}, "
        f"{processor_seconds / GAMES:.2f} s"
    )
    assert 0 < learnt_mean <= known_mean * 1.2
