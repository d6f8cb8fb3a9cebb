"""Several attacks in one Zero-Run audit: the choice is paid for."""

from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
from leakbound.simulate import NoisySum, noisy_sum
from leakbound.stats import bootstrap_quantile

CLAIMS: list[Any] = [lb.PureDP(), lb.ApproxDP(delta=1e-6), lb.GaussianDP()]


@pytest.fixture(scope="module")
def game() -> NoisySum:
    return noisy_sum(1200, mu=2.5, shift=0.6, seed=3)


@pytest.fixture(scope="module")
def scores(game: NoisySum) -> dict[str, np.ndarray]:
    noise = np.random.default_rng(4).normal(size=(2, 1200)) * game.scores.std()
    return {"noisy": game.scores + noise[0], "clean": game.scores, "noise": noise[1]}


def draws(game: NoisySum) -> np.ndarray:
    odds = game.log_odds + 0.1 * np.random.default_rng(5).normal(size=(199, 1))
    return 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize(
    ("claim", "uncertain"),
    [*((claim, False) for claim in CLAIMS), (lb.GaussianDP(), True)],
    ids=str,
)
def test_the_best_attack_wins_at_its_share(
    game: NoisySum,
    scores: dict[str, np.ndarray],
    claim: Any,
    uncertain: bool,  # noqa: FBT001
) -> None:
    given = draws(game) if uncertain else game.propensity
    result = lb.audit(scores, lb.ZeroRun(game.member, given), claim=claim)
    share = 1 - 0.05 / 3
    alone = {
        name: lb.audit(values, lb.ZeroRun(game.member, given), claim=claim, confidence=share)
        for name, values in scores.items()
    }
    assert result.options["attack"] == "clean"
    bounds = {name: one.bound for name, one in alone.items()}
    assert result.options["attacks"] == pytest.approx(bounds, abs=1e-9)
    assert result.bound == pytest.approx(bounds["clean"], abs=1e-9)
    assert (result.kept, result.guesses) == (alone["clean"].kept, alone["clean"].guesses)
    only = lb.audit(game.scores, lb.ZeroRun(game.member, given), claim=claim)
    # The number of guesses is planned for the level, so that less of it may prove a little more.
    cost = max(0.0, only.bound - result.bound)
    assert result.options["attacks_cost"] == pytest.approx(cost, abs=1e-9)
    assert 0 < result.bound < only.bound + 0.1
    assert result.confidence == 0.95
    assert lb.ZeroRunResult.from_json(result.to_json()) == result


def test_several_attacks_share_the_level_of_a_family() -> None:
    game = noisy_sum(400, mu=3.0, shift=0.6, seed=3)
    claim = lb.TradeOffFamily(parameter="mean", tradeoff=lb.TradeOff.gaussian, bracket=(0.02, 20.0))
    noise = np.random.default_rng(6).normal(size=400)
    options: dict[str, Any] = {"claim": claim, "cuts": lb.Fixed(40)}
    attacks = {"noise": noise, "told": game.scores}
    result = flat.zero_run(attacks, game.member, game.propensity, **options)
    assert result.options["attack"] == "told"
    assert result.options["attacks"]["noise"] == 0.0 < result.bound
    only = flat.zero_run(game.scores, game.member, game.propensity, **options)
    assert result.options["attacks_cost"] == pytest.approx(only.bound - result.bound, rel=1e-9)
    one_run = flat.coins(attacks, game.member, **options)
    assert one_run.options["attacks"]["told"] == one_run.bound
    uncertain = flat.zero_run(game.scores, game.member, draws(game), **options)
    found = uncertain.bootstrap
    assert found is not None
    assert uncertain.bound == bootstrap_quantile(found.bounds, p=found.p)
    assert only.bound >= uncertain.bound > 0
