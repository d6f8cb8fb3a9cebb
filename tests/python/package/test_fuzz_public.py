"""Public functions with arguments of any kind: a result, or a refusal with a name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from fuzz import fuzz
from leakbound import attacks, claims, generators, planning, simulate, stats
from leakbound.claims.tradeoff import TradeOff
from leakbound.planning import ChoicePlan, canaries
from leakbound.propensity import LogisticPropensity

COUNTS: list[Any] = [0, 1, 5, 12, [3, 4, 5], np.array([2, 20])]
SHARES: list[Any] = [0.0, 0.3, 1.0, [0.1, 0.5, 0.9], np.array([0.25, 0.5])]
REALS: list[Any] = [0.0, -2.5, 1.5, [0.0, 1.0, 2.0], np.array([-1.0, 3.0])]
LEVELS: list[Any] = [0.05, 0.5]
FEW: list[Any] = [1, 3, 8, 20]
EPSILONS: list[Any] = [0.0, 0.5, 2.0]
MEMBERS: list[Any] = [[1, 0, 1, 0, 1], [True] * 5, np.array([1, -1, 1, -1, 1])]
SCORES: list[Any] = [[0.1, 0.2, 0.3, 0.4, 0.5], np.zeros(5), np.arange(5)]
CURVES: list[Any] = [TradeOff.gaussian(1.0), TradeOff.approx(0.5, 0.1), TradeOff.laplace(2.0)]
FLAGS: list[Any] = [True, False]
TESTS: dict[str, Sequence[Any]] = {
    "correct": [1, 3, 5],
    "guesses": [5, 8],
    "m": [8, 20.0],
    "k": [2, 3],
    "one_sided": FLAGS,
}
CALLS: dict[str, tuple[Callable[..., Any], Mapping[str, Sequence[Any]]]] = {
    "normal_cdf": (stats.normal_cdf, {"x": REALS}),
    "normal_quantile": (stats.normal_quantile, {"p": SHARES}),
    "log_normal_cdf": (stats.log_normal_cdf, {"x": REALS}),
    "binomial_tail": (stats.binomial_tail, {"v": COUNTS, "n": COUNTS, "p": SHARES, "log": FLAGS}),
    "clopper_pearson": (stats.clopper_pearson, {"v": COUNTS, "n": COUNTS, "beta": LEVELS}),
    "poisson_binomial_tail": (
        stats.poisson_binomial_tail,
        {"v": COUNTS, "p": SHARES, "counts": [None, [1, 2, 3]], "log": FLAGS},
    ),
    "poisson_binomial_tail_offsets": (
        stats.poisson_binomial_tail_offsets,
        {"v": COUNTS, "offsets": REALS, "epsilon": EPSILONS},
    ),
    "poisson_binomial_epsilon": (
        stats.poisson_binomial_epsilon,
        {"v": COUNTS, "offsets": REALS, "beta": LEVELS},
    ),
    "match": (
        stats.match,
        {"member": MEMBERS, "log_odds": SCORES, "uniforms": [[0.1, 0.2, 0.3, 0.4, 0.5]]},
    ),
    "tamper_probability": (
        stats.tamper_probability,
        {"guesses": [[1, -1, 0, 1, 1]], "log_odds": SCORES, "epsilon": [None, 1.0]},
    ),
    "bootstrap_quantile": (stats.bootstrap_quantile, {"values": SCORES, "p": LEVELS}),
    "residual_scores": (stats.residual_scores, {"scores": SCORES, "log_odds": SCORES}),
    "shift_mu": (stats.shift_mu, {"epsilon_ds": EPSILONS}),
    "shift_delta": (
        stats.shift_delta,
        {"log_odds": SCORES, "member": MEMBERS, "epsilon": EPSILONS},
    ),
    "one_run_p_value": (stats.one_run_p_value, {**TESTS, "epsilon": EPSILONS, "delta": [0.0, 0.1]}),
    "one_run_epsilon": (stats.one_run_epsilon, {**TESTS, "delta": [0.0, 0.1], "beta": LEVELS}),
    "fdp_rejects": (stats.fdp_rejects, {**TESTS, "tradeoff": CURVES, "tau": LEVELS}),
    "fdp_p_value": (stats.fdp_p_value, {**TESTS, "tradeoff": CURVES}),
    "kl_scan_offsets": (
        stats.kl_scan_offsets,
        {"successes": MEMBERS, "offsets": SCORES, "beta": LEVELS, "min_guesses": FEW},
    ),
    "TradeOff": (
        TradeOff,
        {
            "family": ["gaussian", "table"],
            "parameters": [{"mu": [1.0], "delta": [0.0]}, {"alpha": [0, 1], "f": [1, 0]}],
        },
    ),
    "TradeOff.gaussian": (TradeOff.gaussian, {"mu": EPSILONS, "delta": [0.0, 0.1]}),
    "TradeOff.laplace": (TradeOff.laplace, {"epsilon": EPSILONS}),
    "TradeOff.table": (TradeOff.table, {"alpha": [[0, 0.5, 1]], "f": [[1, 0.2, 0], [0.5, 0.1, 0]]}),
    "TradeOff.profile": (TradeOff.profile, {"epsilon": [[-1.0, 1.0]], "delta": [[0.7, 0.2]]}),
    "curve.f": (
        lambda curve, x: TradeOff.f(curve, x) if isinstance(curve, TradeOff) else None,
        {"curve": CURVES, "x": SHARES},
    ),
    "curve.delta": (CURVES[0].delta, {"epsilon": REALS}),
    "curve.epsilon": (CURVES[1].epsilon, {"delta": SHARES}),
    "curve.inverse": (CURVES[2].inverse, {"x": SHARES}),
    "TradeOff.from_json": (TradeOff.from_json, {"source": [CURVES[0].to_json()]}),
    "grouped": (claims.grouped, {"epsilon": EPSILONS, "delta": [0.0, 0.1], "copies": FEW}),
    "replacing": (claims.replacing, {"epsilon": EPSILONS, "delta": [0.0, 0.1]}),
    "ceiling": (planning.ceiling, {"m": [8, 100], "guesses": [None, 5], "confidence": [0.9, 0.95]}),
    "InclusionPlan": (
        lb.InclusionPlan,
        {"member": MEMBERS, "ids": [None, list("abcde")], "seed": [None, 3], "copies": [1, 2]},
    ),
    "ChoicePlan": (
        ChoicePlan,
        {"chosen": [[0, 1, 2], [1, 1]], "k": [3, 4], "ids": [None, [1, 2, 3]], "copies": [1, 2]},
    ),
    "included": (lb.InclusionPlan.create(5, seed=1).included, {"items": SCORES}),
    "candidates": (ChoicePlan.create(2, 2, seed=1).included, {"items": [["ab", "cd"]]}),
    "subset": (lb.InclusionPlan.create(5, seed=1).subset, {"rows": [[0, 1], [4]]}),
    "Tally.of": (lb.Tally.of, {"scores": SCORES, "member": MEMBERS, "bits": [20, 8]}),
    "Tally": (
        lb.Tally,
        {"keys": [[300_000]], "examples_at": [[3]], "members_at": [[1]], "bits": [20]},
    ),
}
"""Functions, and usual values of their arguments."""


RNG = np.random.default_rng(0)
MANY_MEMBERS: list[Any] = [RNG.random(40) < 0.5, (RNG.random(40) < 0.5).astype(int)]
MANY_SCORES: list[Any] = [RNG.normal(size=40), RNG.normal(size=40).round()]
FEATURES: list[Any] = [RNG.normal(size=(40, 2)), RNG.normal(size=(40, 1))]
CLAIMS: list[Any] = [lb.PureDP(), lb.ApproxDP(delta=0.01), lb.GaussianDP(), lb.LaplaceDP()]
REFERENCES: dict[str, Sequence[Any]] = {
    "trained_on": [None, RNG.random((3, 5)) < 0.5],
    "ids": [None],
}
SEEDS: list[Any] = [0, 3]


def audited(scores: Any, member: Any, **options: Any) -> float:
    return lb.audit(scores, lb.Coins(member), **options).bound


def split(scores: Any, member: Any, **options: Any) -> float:
    return lb.audit(scores, lb.RandomSplit(member), **options).bound


def streamed(scores: Any, member: Any, **options: Any) -> float:
    return lb.Stream(**options).update(scores, member).bound


def corrected(scores: Any, member: Any, propensity: Any) -> float:
    return lb.audit(scores, lb.ZeroRun(member, propensity=propensity)).bound


def fitted(features: Any, member: Any) -> object:
    return LogisticPropensity().fit(features, member)


AUDITS: dict[str, tuple[Callable[..., Any], Mapping[str, Sequence[Any]]]] = {
    "Coins": (
        audited,
        {
            "scores": MANY_SCORES,
            "member": MANY_MEMBERS,
            "claim": CLAIMS,
            "confidence": [0.9],
            "sides": ["auto", "member", "both"],
            "cuts": ["auto", lb.KLScan(), lb.Fixed(5)],
            "seed": SEEDS,
        },
    ),
    "RandomSplit": (
        split,
        {"scores": MANY_SCORES, "member": MANY_MEMBERS, "claim": CLAIMS[:2], "seed": SEEDS},
    ),
    "Stream": (
        streamed,
        {
            "scores": MANY_SCORES,
            "member": MANY_MEMBERS,
            "claim": CLAIMS,
            "sides": ["both", "member"],
            "shares": [(0.5,), (0.1, 0.9)],
        },
    ),
    "ZeroRun": (
        corrected,
        {"scores": MANY_SCORES, "member": MANY_MEMBERS, "propensity": [np.full(40, 0.5)]},
    ),
    "LogisticPropensity": (fitted, {"features": FEATURES, "member": MANY_MEMBERS}),
    "margin_threshold": (
        attacks.margin_threshold,
        {"logits": [RNG.normal(size=(5, 3))], "labels": [[0, 1, 2, 0, 1]], "ids": [list("abcde")]},
    ),
    "offline_lira": (
        attacks.offline_lira,
        {"margins": SCORES, "reference_margins": [RNG.normal(size=(3, 5))], **REFERENCES},
    ),
    "rmia": (
        attacks.rmia,
        {
            "log_probabilities": [-RNG.random(5)],
            "reference_log_probabilities": [-RNG.random((3, 5))],
            "offline_scale": [0.3],
            **REFERENCES,
        },
    ),
    "chunk_texts": (
        generators.chunk_texts,
        {"texts": [["to be or not to be"] * 3], "length": [4], "most": [2], "seed": SEEDS},
    ),
    "ChowLiuTree": (generators.ChowLiuTree().fit, {"members": FEATURES}),
    "PCAMixture": (generators.PCAMixture().fit, {"members": FEATURES}),
    "sample": (
        generators.ChowLiuTree().fit(FEATURES[0]).sample,
        {"n": FEW, "seed": SEEDS},
    ),
    "gaussian": (simulate.gaussian, {"m": FEW, "mu": EPSILONS, "seed": SEEDS}),
    "randomized_response": (
        simulate.randomized_response,
        {"m": FEW, "epsilon": EPSILONS, "seed": SEEDS},
    ),
    "random_tokens": (
        canaries.random_tokens,
        {"n": FEW, "length": [4], "vocabulary": [10], "seed": SEEDS},
    ),
    "KLScan": (lb.KLScan, {"kappa": [None, 2.0], "min_guesses": FEW, "grid": ["all", (1, 2)]}),
    "Fixed": (lb.Fixed, {"guesses": FEW}),
}
"""The same of audits, attacks, generators and games."""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore")
def test_audits_answer_or_refuse_by_name(seed: int) -> None:
    outcomes = fuzz(AUDITS, 600, seed)
    assert not outcomes.wrong, "\n".join(outcomes.wrong)
    assert min(outcomes.counts["results"], outcomes.counts["named refusals"]) > 100


@pytest.mark.parametrize("seed", range(3))
def test_public_functions_answer_or_refuse_by_name(seed: int) -> None:
    outcomes = fuzz(CALLS, 1500, seed)
    assert not outcomes.wrong, "\n".join(outcomes.wrong)
    assert outcomes.counts["results"] > 300
    assert outcomes.counts["named refusals"] > 300
    assert sum(outcomes.counts.values()) == 2 * outcomes.counts["calls"]
