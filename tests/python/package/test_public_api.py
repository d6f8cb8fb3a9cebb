"""The names and signatures that other people's code relies on."""

import dataclasses
import inspect
from collections.abc import Callable

import pytest

import leakbound as lb
from leakbound import (
    attacks,
    audits,
    canaries,
    claims,
    cuts,
    errors,
    generators,
    integrations,
    planning,
    propensity,
    results,
    simulate,
    stats,
    validity,
)
from leakbound.claims import tradeoff

MODULES = [
    lb,
    audits,
    canaries,
    claims,
    cuts,
    errors,
    generators,
    integrations,
    propensity,
    results,
    simulate,
    stats,
    tradeoff,
    validity,
    planning,
]
GAMES = [getattr(simulate, name) for name in simulate.__all__ if name.islower()]
STATS = [getattr(stats, name) for name in stats.__all__]
SUITE = [validity.attack_cases, validity.run]
PLANNING = [planning.best_guesses, planning.canaries_needed, planning.ceiling, planning.power]
MEMBERS = [
    generators.chunk_texts,
]
AUDITS = [lb.audit_one_run, lb.audit_panoramia, lb.audit_synthetic, lb.audit_zero_run]
PROPENSITY = [propensity.falsify, propensity.cross_fit, propensity.hold_out]
INTEGRATIONS = [integrations.accounted_by, lb.watch_dp_sgd]
CANARIES = [getattr(canaries, name) for name in canaries.__all__ if name.islower()]
FUNCTIONS = [
    *CANARIES,
    attacks.score,
    *INTEGRATIONS,
    *AUDITS,
    *GAMES,
    *STATS,
    *SUITE,
    *PLANNING,
    *MEMBERS,
    *PROPENSITY,
]
ERRORS = [getattr(errors, name) for name in errors.__all__]

SIGNATURES = {
    lb.audit_one_run: (
        "(scores, member=None, *, claim=PureDP(), confidence=0.95, cuts=None, sides='both', "
        "prior=0.5, design='coins', strata=None, groups=None, aggregate='mean', features=None, "
        "ids=None, seed=None)"
    ),
    lb.audit_panoramia: (
        "(baseline_scores, attack_scores, member, *, confidence=0.95, cuts=None, gamma=0.0, "
        "delta=0.0, tail='exact', relaxation='knapsack', max_recall=1.0, real_nonmembers=False, "
        "c_upper=None, features=None, ids=None, seed=None)"
    ),
    lb.watch_dp_sgd: (
        "(optimizer, *, canaries=1000, sampling_rate, max_steps, step_canaries=None, "
        "examples=None, seed=None)"
    ),
    lb.DPSGDAudit.report: "(self, path, *, title='Audit of a training run with DP-SGD', model='', "
    "auditor='', date='', signal='', notes='')",
    integrations.DPSGDWatch.audit: "(self, *, accounted=None, claim=None, confidence=0.95)",
    integrations.accounted_by: "(engine, *, delta)",
    lb.audit_synthetic: (
        "(members, nonmembers, synthetic, *, reference=None, claim=PureDP(), attacks='default', "
        "confidence=0.95, cuts=None, strata=None, groups=None, categorical=(), challenge=None, "
        "seed=None, progress=True)"
    ),
    simulate.null: "(m, *, seed)",
    simulate.gaussian: "(m, mu, *, seed, k=2)",
    simulate.randomized_response: "(m, epsilon, *, fraction=1.0, delta=0.0, seed)",
    generators.ChowLiuTree: "(*, categorical=(), intervals=24)",
    generators.Filtered: "(generator, *, share=0.01, seed=0)",
    generators.FolderOfSamples: "(path, *, labeler=None)",
    generators.GaussianCopula: "(*, categorical=())",
    generators.Generator.fit: "(self, members, labels=None)",
    generators.LanguageModel: (
        "(model, *, epochs=10, batch_size=32, learning_rate=0.0005, prompts=0.3, "
        "samples_per_prompt=8, top_k=200, temperature=1.0, seed=0, device='cpu')"
    ),
    generators.MemberSplit.create: "(n, *, shares=None, ids=None, documents=None, seed=0)",
    generators.NoisyMarginals: (
        "(*, domain, epsilon=1.0, categorical=(), intervals=16, centre=0, seed=0)"
    ),
    generators.PCAMixture: "(*, components=40, mixtures=40, labeler=<factory>, seed=0)",
    generators.Sampler.sample: "(self, n, *, seed)",
    generators.SequentialCART: "(*, categorical=(), leaf=15)",
    generators.check_duplicates: "(samples, members)",
    generators.chunk_texts: "(texts, *, encode=None, length=64, most=50, seed=0)",
    stats.normal_cdf: "(x)",
    stats.normal_quantile: "(p)",
    stats.log_normal_cdf: "(x)",
    stats.binomial_tail: "(v, n, p, *, log=False)",
    stats.clopper_pearson: "(v, n, *, beta)",
    stats.kl_scan: (
        "(successes, *, beta, kappa=None, min_guesses=1, grid='all', delta=0.0, one_sided=True)"
    ),
    stats.one_run_p_value: (
        "(correct, guesses, m, *, epsilon, delta, k=2, bound='exact', one_sided=False)"
    ),
    stats.one_run_epsilon: (
        "(correct, guesses, m, *, delta, beta, k=2, bound='exact', one_sided=False)"
    ),
    stats.fdp_rejects: (
        "(correct, guesses, m, *, tradeoff, tau=0.05, k=2, one_sided=False, test='tight')"
    ),
    stats.fdp_p_value: ("(correct, guesses, m, *, tradeoff, k=2, one_sided=False, test='tight')"),
    stats.fdp_lower_bound: (
        "(correct, guesses, m, *, claim, tau=0.05, k=2, one_sided=False, test='tight')"
    ),
    stats.kl_scan_offsets: "(successes, offsets, *, beta, kappa=None, min_guesses=1)",
    stats.ville_mixture: "(successes, *, beta)",
    stats.union_bound: "(successes, *, beta, grid='all', ratio=1.5)",
    lb.audit_zero_run: (
        "(scores, member, propensity, *, claim=GaussianDP(delta=0.0), correction='conditional', "
        "confidence=0.95, cuts=None, sides='both', adversary=None, variant='directional', "
        "uncertainty=None, features=None, max_log_odds=None, falsify=True, "
        "release_refuted=False, ids=None, seed=None)"
    ),
    stats.match: "(member, log_odds, uniforms)",
    stats.tamper: "(guesses, log_odds, uniforms, *, variant='directional', epsilon=None)",
    stats.tamper_probability: "(guesses, log_odds, *, variant='directional', epsilon=None)",
    stats.bootstrap_quantile: "(values, *, p)",
    lb.OneRunStream: (
        "(claim=PureDP(), confidence=0.95, *, sides='both', shares=(1.0, 0.25, 0.0625))"
    ),
    lb.OneRunStream.update: "(self, scores, member, *, ids=None)",
    lb.AuditResult.check: "(self, *, epsilon=None, delta=None, parameter=None, relation=None)",
    lb.AuditResult.against: "(self, *, epsilon, delta, relation, unit='example', source='')",
    attacks.score: "(model, X, y, *, signal='logit_margin', ids=None)",
    canaries.mislabelled: "(x, y, n, *, seed=None)",
    canaries.random_pixels: "(x, y, n, *, seed=None)",
    canaries.random_tokens: "(n, length, *, vocabulary, seed=None)",
    canaries.new_tokens: "(prefixes, *, vocabulary, seed=None)",
    lb.AuditResult.epsilon: "(self, delta=0.0)",
    lb.AuditResult.to_json: "(self, path=None)",
    lb.AuditResult.plot: "(self, kind='bound', ax=None)",
    lb.AuditResult.report: "(self, path, *, title='Privacy audit', model='', auditor='', date='', "
    "signal='', claim=None, notes='')",
    lb.PanoramiaResult.check: "(self, *, epsilon, delta=0.0, c=None)",
}


def bare(function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__qualname__)
def test_signature(function: Callable[..., object]) -> None:
    assert bare(function) == SIGNATURES[function]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_public_names_exist_are_listed_once_and_documented(module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]
    assert len(names) == len(set(names))
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name} has no docstring"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_parameter_is_documented(function: Callable[..., object]) -> None:
    text = inspect.getdoc(function) or ""
    for section in ("Parameters\n", "Returns\n", "Raises\n", "Examples\n"):
        assert section in text
    for name in inspect.signature(function).parameters:
        assert any(
            name in line.split(" :")[0].split(", ") for line in text.splitlines() if " :" in line
        ), f"{name} is not documented"


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_switches_are_never_positional(function: Callable[..., object]) -> None:
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, bool):
            assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_every_error_is_ours_and_a_builtin(error: type[Exception]) -> None:
    assert issubclass(error, errors.LeakboundError)
    builtin = (ValueError, TypeError, RuntimeError, ImportError)
    assert error is errors.LeakboundError or issubclass(error, builtin)


@pytest.mark.parametrize(
    "value",
    [
        lb.PureDP(),
        lb.ApproxDP(delta=1e-5),
        lb.GaussianDP(),
        lb.LaplaceDP(),
        lb.KLScan(),
        lb.UnionBound(),
        lb.Fixed(3),
        lb.Weighted(),
    ],
    ids=repr,
)
def test_claims_and_policies_are_frozen_values(value: object) -> None:
    assert dataclasses.replace(value) == value  # type: ignore[type-var]
    assert hash(dataclasses.replace(value)) == hash(value)  # type: ignore[type-var]
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.kappa = 1  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert lb.__version__ == version("leakbound")
