"""Every boolean option of every public function takes booleans, and nothing else for one."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
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


COUNTS = (9, 10, 10)
WORDS = dict.fromkeys(("audit", "claim", "cuts", "sides", "truth"), "any")
case: Any = partial(validity.Case, **WORDS, error=0.05, trial=lambda _: False, quick=1)  # type: ignore[arg-type]
zero_run: Any = partial(flat.zero_run, SCORE, MEMBER, np.full(60, 0.4))
two_tables = {"the records": COLUMNS, "the synthetic table": COLUMNS}
scored: Any = partial(score, EMBEDDING, (TOKENS, TOKENS), signal="cross_entropy")
one_run: Any = partial(stats.one_run_epsilon, *COUNTS, delta=0.0, beta=0.05)

OPTIONS: dict[str, Callable[..., Any]] = {
    "ApproxDP.lower_bound one_sided": partial(lb.ApproxDP(delta=1e-5).lower_bound, *COUNTS, 0.05),
    "panoramia.Options union": panoramia.Options,
    "panoramia.Options conditional": panoramia.Options,
    "Panoramia real_nonmembers": partial(flat.panoramia, SCORE, SCORE, MEMBER),
    "ZeroRun falsify": zero_run,
    "ZeroRun release_refuted": zero_run,
    "evidence.verify_bundle page": partial(verify_bundle, "nowhere"),
    "attacks.synthetic.Tables.of progress": partial(synthetic.Tables.of, X, X),
    "attacks.synthetic.Tables.of_columns progress": partial(
        synthetic.Tables.of_columns, two_tables
    ),
    "propensity.ConfidenceSet.fit own_intercept": partial(propensity.ConfidenceSet.fit, X, MEMBER),
    "propensity.PropensityFit.bootstrap progress": partial(CROSSED.fits[0].bootstrap, X, K=1),
    "stats.binomial_tail log": partial(stats.binomial_tail, 1, 2, 0.5),
    "stats.fdp_lower_bound one_sided": partial(
        stats.fdp_lower_bound, *COUNTS, claim=lb.GaussianDP()
    ),
    "stats.fdp_p_value one_sided": partial(stats.fdp_p_value, *COUNTS, tradeoff=CURVE),
    "stats.fdp_rejects one_sided": partial(stats.fdp_rejects, *COUNTS, tradeoff=CURVE),
    "stats.kl_scan one_sided": partial(stats.kl_scan, [True], beta=0.05),
    "stats.one_run_epsilon one_sided": one_run,
    "stats.one_run_p_value one_sided": partial(
        stats.one_run_p_value, *COUNTS, epsilon=1.0, delta=0.0
    ),
    "stats.poisson_binomial_tail log": partial(stats.poisson_binomial_tail, 1, [0.5]),
    "stats.poisson_binomial_tail_offsets log": partial(
        stats.poisson_binomial_tail_offsets, 1, [0.5], 0.0
    ),
    "torch.score progress": scored,
    "torch.token_losses progress": partial(token_losses, EMBEDDING, (TOKENS, TOKENS)),
    "validity.Case valid": case,
    "validity.run progress": lambda **x: validity.run([case()], **x),
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


def flags() -> set[str]:
    """Every boolean option, under the first name that its function has."""
    found: dict[tuple[int, str], str] = {}
    for module in public_modules():
        for name, function in callables(module):
            try:
                signature = inspect.signature(function)
            except ValueError:  # of C
                continue
            for option in signature.parameters.values():
                if option.annotation in (bool, "bool") or isinstance(option.default, bool):
                    found.setdefault((id(function), option.name), f"{name} {option.name}")
    return {name.removeprefix("leakbound.") for name in found.values()}


def test_every_boolean_option_is_tested_here() -> None:
    assert flags() == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_no_boolean_is_refused(name: str) -> None:
    option = name.rsplit(maxsplit=1)[-1]
    for value in ("False", 1, 0, None, 1.0, np.array([True])):
        with pytest.raises(lb.errors.InputTypeError, match=f"{option} must be True or False"):
            OPTIONS[name](**{option: value})


def test_booleans_of_numpy_are_booleans() -> None:
    bool_: Any = np.True_
    assert stats.binomial_tail(1, 2, 0.5, log=bool_) == np.log(0.75)
