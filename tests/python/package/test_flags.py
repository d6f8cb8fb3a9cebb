"""Every boolean option of every public function takes booleans, and nothing else for one."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flat
import leakbound as lb
from leakbound import panoramia, propensity, stats, validity
from leakbound.attacks import synthetic
from leakbound.attacks.synthetic.columns import read_columns
from leakbound.evidence import verify_bundle
from leakbound.torch import score, token_losses

rng = np.random.default_rng(3)
MEMBER = rng.random(60) < 0.5
SCORE = rng.normal(size=60)
X = rng.normal(size=(60, 2))
CROSSED = propensity.cross_fit(propensity.LogisticPropensity(), X, MEMBER)
EMBEDDING = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9))
TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6]])
COLUMNS = read_columns(X, "a table")
CURVE = lb.TradeOff.gaussian(1.0)
COUNTED = lb.Tally.of(SCORE, MEMBER)


def case(**options: Any) -> validity.Case:
    words = dict.fromkeys(("audit", "claim", "cuts", "sides", "truth"), "any")
    return validity.Case(**words, error=0.05, trial=lambda _: False, quick=1, **options)  # type: ignore[arg-type]


OPTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("leakbound.ApproxDP.lower_bound", "one_sided"): lambda **x: lb.ApproxDP(
        delta=1e-5
    ).lower_bound(9, 10, 10, 0.05, **x),
    ("leakbound.panoramia.Options", "union"): panoramia.Options,
    ("leakbound.panoramia.Options", "conditional"): panoramia.Options,
    ("leakbound.Tally.sum", "allow_repeats"): lambda **x: lb.Tally.sum([COUNTED], **x),
    ("leakbound.Panoramia", "real_nonmembers"): lambda **x: flat.panoramia(
        SCORE, SCORE, MEMBER, **x
    ),
    **{
        ("leakbound.ZeroRun", name): lambda **x: flat.zero_run(SCORE, MEMBER, np.full(60, 0.4), **x)
        for name in ("falsify", "release_refuted")
    },
    ("leakbound.evidence.verify_bundle", "page"): lambda **x: verify_bundle("nowhere", **x),
    ("leakbound.attacks.synthetic.Tables.of", "progress"): lambda **x: synthetic.Tables.of(
        X, X, **x
    ),
    ("leakbound.attacks.synthetic.Tables.of_columns", "progress"): lambda **x: (
        synthetic.Tables.of_columns({"the records": COLUMNS, "the synthetic table": COLUMNS}, **x)
    ),
    ("leakbound.propensity.ConfidenceSet.fit", "own_intercept"): lambda **x: (
        propensity.ConfidenceSet.fit(X, MEMBER, **x)
    ),
    ("leakbound.propensity.PropensityFit.bootstrap", "progress"): lambda **x: CROSSED.fits[
        0
    ].bootstrap(X, K=1, **x),
    ("leakbound.stats.binomial_tail", "log"): lambda **x: stats.binomial_tail(1, 2, 0.5, **x),
    ("leakbound.stats.fdp_lower_bound", "one_sided"): lambda **x: stats.fdp_lower_bound(
        9, 10, 10, claim=lb.GaussianDP(), **x
    ),
    ("leakbound.stats.fdp_p_value", "one_sided"): lambda **x: stats.fdp_p_value(
        9, 10, 10, tradeoff=CURVE, **x
    ),
    ("leakbound.stats.fdp_rejects", "one_sided"): lambda **x: stats.fdp_rejects(
        9, 10, 10, tradeoff=CURVE, **x
    ),
    ("leakbound.stats.kl_scan", "one_sided"): lambda **x: stats.kl_scan([True], beta=0.05, **x),
    ("leakbound.stats.one_run_epsilon", "one_sided"): lambda **x: stats.one_run_epsilon(
        9, 10, 10, delta=0.0, beta=0.05, **x
    ),
    ("leakbound.stats.one_run_p_value", "one_sided"): lambda **x: stats.one_run_p_value(
        9, 10, 10, epsilon=1.0, delta=0.0, **x
    ),
    ("leakbound.stats.poisson_binomial_tail", "log"): lambda **x: stats.poisson_binomial_tail(
        1, [0.5], **x
    ),
    ("leakbound.stats.poisson_binomial_tail_offsets", "log"): lambda **x: (
        stats.poisson_binomial_tail_offsets(1, [0.5], 0.0, **x)
    ),
    ("leakbound.torch.score", "progress"): lambda **x: score(
        EMBEDDING, (TOKENS, TOKENS), signal="cross_entropy", **x
    ),
    ("leakbound.torch.token_losses", "progress"): lambda **x: token_losses(
        EMBEDDING, (TOKENS, TOKENS), **x
    ),
    ("leakbound.validity.Case", "valid"): case,
    ("leakbound.validity.run", "progress"): lambda **x: validity.run([case()], **x),
}
"""For each option a call that is right but for it."""

RETURNED = {
    lb.ZeroRunResult,
    lb.cuts.Game,
    lb.cuts.ScoreGame,
    lb.cuts.TallyGame,
    synthetic.Tables,
    panoramia.Losses,
    propensity.Falsification,
    propensity.FormTest,
    propensity.PropensityFit,
    validity.Rate,
}
"""What the package makes and nobody else: their fields are not options."""


def public_modules() -> Iterator[Any]:
    """The faces of folders, and the demonstrations, which are run by their modules' names."""
    yield lb
    for info in pkgutil.walk_packages(lb.__path__, "leakbound."):
        module = importlib.import_module(info.name) if "__main__" not in info.name else lb
        if (info.ispkg and "._" not in info.name) or "run" in getattr(module, "__all__", ()):
            yield module


def callables(module: Any) -> Iterator[tuple[str, Any]]:
    """Public functions, classes and their public methods, by name."""
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if not callable(found):
            continue
        if found not in RETURNED:
            yield f"{module.__name__}.{name}", found
        if inspect.isclass(found) and found.__module__.startswith("leakbound."):
            for method, function in inspect.getmembers(found, callable):
                if not method.startswith("_"):
                    yield f"{module.__name__}.{name}.{method}", function


def flags() -> set[tuple[str, str]]:
    """Every boolean option, under the first name that its function has."""
    found: dict[tuple[int, str], tuple[str, str]] = {}
    for module in public_modules():
        for name, function in callables(module):
            try:
                signature = inspect.signature(function)
            except ValueError:  # of C
                continue
            for option in signature.parameters.values():
                if option.annotation in (bool, "bool") or isinstance(option.default, bool):
                    found.setdefault((id(function), option.name), (name, option.name))
    return set(found.values())


def test_every_boolean_option_is_tested_here() -> None:
    assert flags() == set(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=" ".join)
def test_what_is_no_boolean_is_refused(option: tuple[str, str]) -> None:
    for value in ("False", 1, 0, None, 1.0, np.array([True])):
        with pytest.raises(lb.errors.InputTypeError, match=f"{option[1]} must be True or False"):
            OPTIONS[option](**{option[1]: value})


def test_booleans_of_numpy_are_booleans() -> None:
    bool_: Any = np.True_
    assert stats.binomial_tail(1, 2, 0.5, log=bool_) == np.log(0.75)
