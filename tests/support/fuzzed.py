"""Public functions, and usual values of their arguments, for the fuzzer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import leakbound as lb
from leakbound import attacks, claims, generators, planning, propensity, simulate, stats
from leakbound import torch as of_torch
from leakbound.claims.tradeoff import TradeOff
from leakbound.generators import Samples, SequentialCART, check_duplicates, split_members
from leakbound.mechanisms import GRR, LaplaceNoise, audit_mechanism
from leakbound.planning import ChoicePlan, canaries, canaries_needed
from leakbound.propensity import LogisticPropensity, SklearnPropensity

__all__ = ["AUDITS", "CALLS", "DESIGNS", "LEARNERS", "Calls"]

Calls: TypeAlias = dict[str, tuple[Callable[..., Any], Mapping[str, Sequence[Any]]]]

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
CALLS: Calls = {
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
    return float(lb.audit(scores, lb.Coins(member), **options).bound)


def split(scores: Any, member: Any, **options: Any) -> float:
    return float(lb.audit(scores, lb.RandomSplit(member), **options).bound)


def streamed(scores: Any, member: Any, **options: Any) -> float:
    return lb.Stream(**options).update(scores, member).bound


def corrected(scores: Any, member: Any, propensity: Any) -> float:
    return lb.audit(scores, lb.ZeroRun(member, propensity=propensity)).bound


def fitted(features: Any, member: Any) -> object:
    return LogisticPropensity().fit(features, member)


AUDITS: Calls = {
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

M = 60
MEMBER = np.arange(M) % 2 == 0
SCORED: list[Any] = [RNG.normal(size=M) + MEMBER, RNG.normal(size=M).round(1), RNG.random(M) < 0.5]
TOSSED: list[Any] = [RNG.random(M) < 0.5, (RNG.random(M) < 0.5).astype(np.int8)]
PARTED: list[Any] = [RNG.permutation(M) < 30, RNG.permutation(M) < 45]
TABLE: list[Any] = [RNG.normal(size=(M, 3)), RNG.integers(0, 3, (M, 2)).astype(float)]
ODDS: list[Any] = [np.full(M, 0.5), RNG.random(M) * 0.8 + 0.1]
POLICIES: list[Any] = [
    None,
    lb.KLScan(),
    lb.OutsideIn(),
    lb.Fixed(5),
    lb.UnionBound(),
    lb.Weighted(),
]
SIDES: list[Any] = ["auto", "both", "member"]
ALL_CLAIMS: list[Any] = [
    *CLAIMS,
    lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10),
    lb.TradeOffFamily(parameter="mu", tradeoff=TradeOff.gaussian, bracket=(0.0, 20.0)),
]


def trials(scores: Any, member: Any, fixed: Any, **options: Any) -> float:
    return float(lb.audit(scores, lb.Trials(member, fixed=fixed), **options).bound)


def whole(scores: Any, member: Any, **options: Any) -> float:
    how = {key: options.pop(key) for key in ("strata", "groups", "aggregate", "features", "labels")}
    return float(lb.audit(scores, lb.RandomSplit(member, **how), **options).bound)


def chosen(scores: Any, choice: Any, k: Any, **options: Any) -> float:
    return float(lb.audit(scores, lb.Choices(choice, k), **options).bound)


def odds(scores: Any, member: Any, prior: Any, copies: Any, **options: Any) -> float:
    return float(lb.audit(scores, lb.Coins(member, prior=prior, copies=copies), **options).bound)


def shifted(scores: Any, member: Any, **options: Any) -> float:
    names = ("propensity", "features", "correction", "adversary", "variant", "uncertainty")
    how = {key: options.pop(key) for key in (*names, "max_log_odds", "falsify")}
    return float(lb.audit(scores, lb.ZeroRun(member, **how), **options).bound)


def guessed(scores: Any, member: Any, baseline: Any, **options: Any) -> float:
    return float(lb.audit(scores, lb.Panoramia(member, baseline=baseline), **options).bound)


def counted(scores: Any, member: Any, bits: Any, **options: Any) -> float:
    return float(lb.audit(lb.Tally.of(scores, member, bits=bits), lb.Coins(), **options).bound)


def paired(scores: Any, member: Any, ids: Any, strata: Any, **options: Any) -> float:
    pairing = lb.Pairing(**options)
    tally = lb.PairTally.of(scores, member, ids, strata=strata, pairing=pairing)
    return lb.audit(tally, lb.RandomSplit()).bound


def described(scores: Any, member: Any, **options: Any) -> str:
    """Return a result with all that it says, and read it back."""
    result = lb.audit(scores, lb.Coins(member), **options)
    again = lb.AuditResult.from_json(result.to_json())
    return str(again) + repr(again.summary())


def noisy(data: float, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


DESIGNS: Calls = {
    "Coins": (
        odds,
        {
            "scores": SCORED,
            "member": TOSSED,
            "prior": [0.5, 0.4, ODDS[1]],
            "copies": [None, 2],
            "claim": ALL_CLAIMS,
            "cuts": POLICIES,
            "sides": SIDES,
            "ids": [None, np.arange(M), [f"r{i}" for i in range(M)]],
            "seed": SEEDS,
        },
    ),
    "Trials": (
        trials,
        {
            "scores": SCORED,
            "member": TOSSED,
            "fixed": FLAGS,
            "claim": [lb.PureDP(), lb.ApproxDP(delta=0.01)],
            "seed": SEEDS,
        },
    ),
    "RandomSplit": (
        whole,
        {
            "scores": SCORED,
            "member": PARTED,
            "strata": [None, np.arange(M) // 30],
            "groups": [None],
            "aggregate": ["mean", "max", "log_mean_exp"],
            "features": [None],
            "labels": [None],
            "claim": ALL_CLAIMS,
            "cuts": POLICIES,
            "seed": SEEDS,
        },
    ),
    "Choices": (
        chosen,
        {
            "scores": [RNG.normal(size=(M, 3)), RNG.integers(0, 2, (M, 3))],
            "choice": [RNG.integers(0, 3, M), ChoicePlan.create(M, 3, seed=1)],
            "k": [3],
            "claim": ALL_CLAIMS,
            "seed": SEEDS,
        },
    ),
    "ZeroRun": (
        shifted,
        {
            "scores": SCORED,
            "member": TOSSED,
            "propensity": [*ODDS, (ODDS[1] * 0.9, ODDS[1])],
            "features": [None, TABLE[0]],
            "correction": ["conditional", "match", "poisson_binomial", "tamper", "composition"],
            "adversary": [None, "raw", "residual"],
            "variant": ["directional", "paper", "untampered"],
            "uncertainty": [None],
            "max_log_odds": [None, 3.0],
            "falsify": [False],
            "claim": [*CLAIMS],
            "seed": SEEDS,
        },
    ),
    "Panoramia": (
        guessed,
        {"scores": SCORED[:2], "member": TOSSED, "baseline": SCORED[:2], "seed": SEEDS},
    ),
    "Tally": (
        counted,
        {
            "scores": SCORED,
            "member": TOSSED,
            "bits": [20, 8, 32],
            "claim": CLAIMS,
            "cuts": POLICIES,
            "sides": SIDES,
            "seed": SEEDS,
        },
    ),
    "PairTally": (
        paired,
        {
            "scores": SCORED,
            "member": PARTED,
            "ids": [np.arange(M), [f"r{i}" for i in range(M)]],
            "strata": [None, np.arange(M) % 3],
            "seed": SEEDS,
            "bits": [20, 12],
            "buckets": [1, 16],
            "stratum": [None, "stratum"],
            "unit": ["example", "user"],
            "centre": [0.0, 0.5],
            "spread": [1.0, 2.0],
        },
    ),
    "to_json": (described, {"scores": SCORED, "member": TOSSED, "claim": CLAIMS, "seed": SEEDS}),
    "audit_mechanism": (
        audit_mechanism,
        {
            "run": [noisy, LaplaceNoise(epsilon=1.0).run],
            "d0": [0.0],
            "d1": [1.0],
            "claim": CLAIMS,
            "parameter": [0.5, 3.0],
            "score": [lambda outputs: outputs],
            "most_runs": [20, 60],
            "seed": SEEDS,
        },
    ),
    "GRR": (GRR, {"k": [2, 5], "epsilon": EPSILONS}),
    "power": (
        planning.power,
        {"m": [50, 200], "truth": [planning.Gaussian(1.0)], "simulations": [10], "seed": SEEDS},
    ),
    "canaries_needed": (
        canaries_needed,
        {
            "target": [0.5],
            "truth": [planning.Gaussian(3.0)],
            "most": [300],
            "simulations": [10],
            "seed": SEEDS,
        },
    ),
    "mixture": (
        simulate.mixture,
        {"m": FEW, "mu": EPSILONS, "dependence": [0.0, 0.5], "seed": SEEDS},
    ),
    "null": (simulate.null, {"m": FEW, "seed": SEEDS}),
}
"""Every design, with its options and claims, tallies, and plans."""


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


NETWORK = network()
INPUTS = torch.randn(12, 3, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(12) % 3
CLASSIFIER = LogisticRegression().fit(TABLE[0], np.arange(M) % 3)
FIT = LogisticPropensity().fit(TABLE[0], TOSSED[0])
MARGINS: list[Any] = [RNG.normal(size=12)]


def scored(model: Any, inputs: Any, labels: Any, **options: Any) -> Any:
    return of_torch.score(model, (inputs, labels), progress=False, **options).values


def of_classifier(inputs: Any, labels: Any, **options: Any) -> Any:
    return attacks.score(CLASSIFIER, inputs, labels, **options).values


def learnt(outputs: Any, member: Any, **options: Any) -> Any:
    return attacks.learnt_score(outputs, member, model=LogisticRegression(), **options).scores


def crossed(features: Any, member: Any, folds: Any, seed: Any) -> Any:
    return propensity.cross_fit(LogisticPropensity(), features, member, folds=folds, seed=seed)


def of_sklearn(features: Any, member: Any, seed: Any) -> Any:
    fit = SklearnPropensity(LogisticRegression()).fit(features, member, seed=seed)
    return fit.predict(TABLE[0])


def regularised(l2: Any, calibration: Any, folds: Any, features: Any) -> Any:
    model = LogisticPropensity(l2, calibration, folds=folds)
    return model.fit(features, TOSSED[0]).log_odds(features)


def mixed(members: Any, components: Any, mixtures: Any, n: Any, seed: Any) -> Any:
    model = generators.PCAMixture(components=components, mixtures=mixtures)
    return model.fit(members).sample(n, seed=seed)


LEARNERS: Calls = {
    "torch.score": (
        scored,
        {
            "model": [NETWORK],
            "inputs": [INPUTS, INPUTS.numpy()],
            "labels": [LABELS, LABELS.numpy(), LABELS.tolist()],
            "signal": ["logit_margin", "cross_entropy"],
            "batch_size": [4, 256],
            "device": ["cpu"],
            "ids": [None, list(range(12))],
        },
    ),
    "attacks.score": (
        of_classifier,
        {
            "inputs": [TABLE[0]],
            "labels": [np.arange(M) % 3],
            "signal": ["logit_margin", "cross_entropy"],
            "ids": [None, np.arange(M)],
        },
    ),
    "learnt_score": (
        learnt,
        {
            "outputs": TABLE,
            "member": TOSSED,
            "seed": SEEDS,
            "strata": [None, np.arange(M) % 2],
            "groups": [None, np.arange(M) // 2],
            "ids": [None],
        },
    ),
    "offline_lira": (
        attacks.offline_lira,
        {
            "margins": MARGINS,
            "reference_margins": [RNG.normal(size=(8, 12))],
            "trained_on": [None, RNG.random((8, 12)) < 0.5],
            "ids": [None, list(range(12))],
        },
    ),
    "rmia": (
        attacks.rmia,
        {
            "log_probabilities": [-RNG.random(12)],
            "reference_log_probabilities": [-RNG.random((8, 12))],
            "offline_scale": [0.3, 1.0],
            "trained_on": [None, RNG.random((8, 12)) < 0.5],
        },
    ),
    "cross_fit": (crossed, {"features": TABLE, "member": TOSSED, "folds": [2, 3], "seed": SEEDS}),
    "SklearnPropensity": (of_sklearn, {"features": TABLE[:1], "member": TOSSED, "seed": SEEDS}),
    "LogisticPropensity": (
        regularised,
        {"l2": [1.0, 0.1], "calibration": [None, "platt"], "folds": [2, 5], "features": TABLE},
    ),
    "predict": (FIT.predict, {"X": TABLE}),
    "overlap": (FIT.with_member_share, {"share": [0.3, 0.5]}),
    "hold_out": (propensity.hold_out, {"ids": [np.arange(M), list("abcde")], "size": [2, 3]}),
    "SequentialCART": (
        lambda members, leaf, n, seed: SequentialCART(leaf=leaf).fit(members).sample(n, seed=seed),
        {"members": TABLE, "leaf": [2, 5], "n": FEW, "seed": SEEDS},
    ),
    "ChowLiuTree": (
        lambda members, n, seed: generators.ChowLiuTree().fit(members).sample(n, seed=seed),
        {
            "members": [*TABLE, pd.DataFrame({"a": list("xyz") * 20, "b": range(60)})],
            "n": FEW,
            "seed": SEEDS,
        },
    ),
    "PCAMixture": (
        mixed,
        {"members": TABLE, "components": [2, 50], "mixtures": [1, 2], "n": FEW, "seed": SEEDS},
    ),
    "Samples": (Samples, {"values": TABLE}),
    "split_members": (
        split_members,
        {"n": FEW, "shares": [{"member": 0.5, "other": 0.5}], "seed": SEEDS},
    ),
    "check_duplicates": (check_duplicates, {"samples": TABLE, "members": TABLE}),
}
"""Torch, attacks, propensities and generators."""
