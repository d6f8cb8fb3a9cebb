"""Scores that know the true propensities, against learnt ones: they prove nothing."""

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.propensity import LogisticPropensity
from leakbound.stats import binomial_tail
from validity.catalogue import cases


def people(
    seed: int, n: int, features: int, spread: float
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return features, membership and its true log-odds, of a logistic model without leakage."""
    rng = np.random.default_rng([seed, 77])
    table = rng.normal(size=(n, features))
    log_odds = table @ np.full(features, spread / np.sqrt(features))
    return table, rng.random(n) < 1 / (1 + np.exp(-log_odds)), log_odds


@pytest.mark.parametrize(
    ("learnt", "features", "spread", "noise"), [(300, 30, 2.0, 1.0), (60, 6, 1.5, 0.0)]
)
def test_fitted_propensities_from_few_rows_prove_nothing(
    learnt: int, features: int, spread: float, noise: float
) -> None:
    """Three games at 95 %: two false claims would have probability .007 if one in 20 is false."""
    games, false, explored, refuted = 3, 0, 0, 0
    for seed in range(games):
        table, member, log_odds = people(seed, learnt + 1500, features, spread)
        fit = LogisticPropensity().fit(table[:learnt], member[:learnt])
        scores = log_odds[learnt:] + noise * np.random.default_rng(seed).normal(size=1500)
        result = lb.audit_zero_run(scores, member[learnt:], fit, features=table[learnt:], seed=seed)
        assert result.kind == "conditional_lower_bound"
        false += result.bound > 0
        refuted += result.withheld
        draws = lb.audit_zero_run(
            scores,
            member[learnt:],
            fit,
            features=table[learnt:],
            uncertainty="bootstrap",
            seed=seed,
        )
        assert (draws.kind, draws.withheld) == ("exploratory_lower_bound", draws.refuted)
        assert draws.bootstrap is not None
        explored += bool(np.median(draws.bootstrap.bounds) > 0)
    assert binomial_tail(false, games, 0.05) > 0.01
    assert refuted <= 1  # the model is right: what refutes it is chance
    assert explored == games  # and refits are no confidence bound


def test_learnt_propensities_of_panoramia_prove_nothing() -> None:
    """Two games at 95 %: two false claims would have probability .0025."""
    false = 0
    for seed in range(2):
        table, member, log_odds = people(seed, 600, 30, 2.0)
        rng = np.random.default_rng(seed)
        attack = log_odds + rng.normal(size=600)
        result = lb.audit_panoramia(rng.normal(size=600), attack, member, features=table, seed=seed)
        false += any(found.bound > 0 for found in result.conditionals)
    assert binomial_tail(false, 2, 0.05) > 0.01


def test_replicates_without_features_are_said_to_be_untested() -> None:
    table, member, log_odds = people(0, 900, 3, 1.0)
    fit = LogisticPropensity().fit(table[:600], member[:600])
    draws = 1 / (1 + np.exp(-fit.bootstrap(table[600:], K=79, progress=False)))
    untested = lb.audit_zero_run(log_odds[600:], member[600:], draws)
    assert untested.falsification is None
    assert untested.assumptions[0].status == "unverifiable"
    assert sum("nothing tested them" in text for text in untested.warnings) == 1
    tested = lb.audit_zero_run(log_odds[600:], member[600:], draws, features=table[600:])
    assert tested.falsification is not None
    assert not any("nothing tested them" in text for text in tested.warnings)


def test_the_validity_suite_plays_attackers_that_know_the_nuisance() -> None:
    found = cases("fitted both knows-odds n=60,m=1500,d=6,sd=1.5")
    assert {case.claim for case in found} == {"Gaussian DP", "pure DP"}
    assert not any(found[0].trial(seed) for seed in range(4))
