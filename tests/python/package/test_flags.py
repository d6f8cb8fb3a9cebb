"""Every boolean option of every public function takes booleans, and nothing else for one."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import flat
import leakbound as lb
from leakbound import benchmark, panoramia, propensity, stats
from leakbound._base.tables import read_columns
from leakbound.attacks import synthetic
from leakbound.evidence import verify_bundle
from leakbound.testing import assert_not_refuted
from leakbound.torch import score, token_losses
from public import callables

rng = np.random.default_rng(3)
MEMBER = rng.random(60) < 0.5
SCORE = rng.normal(size=60)
X = rng.normal(size=(60, 2))
EMBEDDING = torch.nn.Sequential(torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9))
TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6]])
COLUMNS = read_columns(X, "a table")
GAUSSIAN, CURVE = lb.GaussianDP(), lb.TradeOff.gaussian(1.0)
RESULT = flat.coins(SCORE, MEMBER)
COUNTS = (9, 10, 10)
zero_run: Any = partial(flat.zero_run, SCORE, MEMBER, np.full(60, 0.4))
two_tables = {"the records": COLUMNS, "the synthetic table": COLUMNS}
scored: Any = partial(score, EMBEDDING, (TOKENS, TOKENS), signal="cross_entropy")
ERROR: dict[str, Any] = {"delta": 0.0, "beta": 0.05}
CLAIMED: dict[str, Any] = {"epsilon": 1.0, "delta": 0.0}

audited: Any = partial(
    lb.audit_model,
    np.asarray,
    train=(X[:30], SCORE[:30]),
    test=(X[30:], SCORE[30:]),
    signal=lambda answer, _: answer[:, 0],
)

OPTIONS: dict[str, Callable[..., Any]] = {
    "audit_model challenge": audited,
    "ApproxDP.lower_bound one_sided": partial(lb.ApproxDP(delta=1e-5).lower_bound, *COUNTS, 0.05),
    "panoramia.Options union": panoramia.Options,
    "panoramia.Options conditional": panoramia.Options,
    "Panoramia real_nonmembers": partial(flat.panoramia, SCORE, SCORE, MEMBER),
    "Trials fixed": partial(lb.Trials, MEMBER),
    "ZeroRun falsify": zero_run,
    "ZeroRun release_refuted": zero_run,
    "benchmark.run reference": partial(benchmark.run, [lb.simulate.null], [None]),
    "benchmark.run progress": partial(benchmark.run, [lb.simulate.null], [None]),
    "dp_sgd.neighbouring_batches empty": partial(lb.dp_sgd.neighbouring_batches, [[1.0]], [2.0]),
    "dp_sgd.neighbouring_batches sweep": partial(lb.dp_sgd.neighbouring_batches, [[1.0]], [2.0]),
    "evidence.verify_bundle page": partial(verify_bundle, "nowhere"),
    "attacks.synthetic.Tables.of progress": partial(synthetic.Tables.of, X, X),
    "attacks.synthetic.Tables.of_columns progress": partial(
        synthetic.Tables.of_columns, two_tables
    ),
    "propensity.ConfidenceSet.fit own_intercept": partial(propensity.ConfidenceSet.fit, X, MEMBER),
    "stats.binomial_tail log": partial(stats.binomial_tail, 1, 2, 0.5),
    "stats.fdp_lower_bound one_sided": partial(stats.fdp_lower_bound, *COUNTS, claim=GAUSSIAN),
    "stats.fdp_p_value one_sided": partial(stats.fdp_p_value, *COUNTS, tradeoff=CURVE),
    "stats.fdp_rejects one_sided": partial(stats.fdp_rejects, *COUNTS, tradeoff=CURVE),
    "stats.one_run_epsilon one_sided": partial(stats.one_run_epsilon, *COUNTS, **ERROR),
    "stats.one_run_p_value one_sided": partial(stats.one_run_p_value, *COUNTS, **CLAIMED),
    "stats.poisson_binomial_tail log": partial(stats.poisson_binomial_tail, 1, [0.5]),
    "stats.poisson_binomial_tail_offsets log": partial(
        stats.poisson_binomial_tail_offsets, 1, [0.5], 0.0
    ),
    "testing.assert_not_refuted strict": partial(assert_not_refuted, RESULT),
    "torch.score progress": scored,
    "torch.token_losses progress": partial(token_losses, EMBEDDING, (TOKENS, TOKENS)),
}
"""For each option a call that is right but for it."""

RETURNED = {
    lb.ZeroRunResult,
    lb.results.PairResult,
    lb.cuts.Game,
    lb.cuts.ScoreGame,
    lb.cuts.TallyGame,
    synthetic.Tables,
    panoramia.Losses,
    propensity.Falsification,
    propensity.FormTest,
    propensity.PropensityFit,
}
"""What the package makes and nobody else: their fields are not options."""


def flags() -> set[str]:
    """Every boolean option, under the first name that its function has."""
    found: dict[tuple[int, str], str] = {}
    for name, function in callables():
        given = {} if function in RETURNED else inspect.signature(function).parameters
        for option in given.values():
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
