"""Absurd numbers of guesses, examples and repetitions: an answer, or an error with the limit."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import benchmark, cuts, errors, planning, simulate, stats
from leakbound.claims import ApproxDP, GaussianDP, LaplaceDP
from leakbound.claims.tradeoff import TradeOff
from leakbound.generators import ChowLiuTree, PCAMixture, SequentialCART
from leakbound.planning import canaries
from leakbound.propensity import LogisticPropensity

ENORMOUS = [2**53, 2**127]
MOST = 10**8
"""Guesses under f-DP."""
SECONDS, MEMORY = 30, 4 << 30
"""Of one processor, and bytes of address space, that a call below may take."""


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def alone(program: str) -> str:
    """Run a program with little time and memory and return what it prints."""
    run = subprocess.run(
        [sys.executable, "-c", f"import numpy as np\nimport leakbound as lb\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("guesses", [MOST + 1, *ENORMOUS])
@pytest.mark.parametrize("test", ["tight", "recursion"])
def test_guesses_under_f_dp_have_a_limit(guesses: int, test: Any) -> None:
    counts = guesses // 4 * 3, guesses, float(guesses)
    for call in (
        partial(stats.fdp_rejects, tradeoff=TradeOff.gaussian(0.5)),
        partial(stats.fdp_p_value, tradeoff=TradeOff.gaussian(0.5)),
        partial(stats.fdp_lower_bound, claim=GaussianDP()),
        partial(stats.composition_bound, epsilon_ds=0.1, claim=GaussianDP()),
    ):
        with pytest.raises(errors.OptionError, match=f"guesses must be at most {MOST} under f-DP"):
            call(*counts, test=test)


def test_most_guesses_under_f_dp_take_seconds() -> None:
    out = alone(
        "from leakbound import stats\n"
        "from leakbound.claims.tradeoff import TradeOff\n"
        "n = 10**8\n"
        "for mu in (0.0, 0.5):\n"
        "    curve = TradeOff.gaussian(mu)\n"
        "    for correct in (n // 2 + 10**5, 3 * n // 4, n):\n"
        "        stats.fdp_rejects(correct, n, n, tradeoff=curve)\n"
        "print(stats.fdp_p_value(n // 2 + 10_000, n, n, tradeoff=TradeOff.gaussian(0.0)) < 0.05)\n"
        "print(stats.fdp_lower_bound(3 * n // 4, n, n, claim=lb.GaussianDP()) > 0.4)\n"
        "print(stats.fdp_p_value(3 * n // 4, n, 1e300, tradeoff=TradeOff.gaussian(0.5)))"
    )
    assert out.splitlines()[:2] == ["True", "True"]


def test_beyond_ten_million_guesses_the_recursion_stands_for_the_tight_test() -> None:
    curve = TradeOff.gaussian(0.0)
    for guesses, same in ((10_000_000, False), (10_000_001, True)):
        counts = guesses // 2 + 3000, guesses, guesses
        tight = stats.fdp_p_value(*counts, tradeoff=curve)
        recursion = stats.fdp_p_value(*counts, tradeoff=curve, test="recursion")
        assert (tight == recursion) is same
        assert tight <= recursion < 0.05
    counts = 6_100_000, 10_000_001, 10_000_001
    for claim in (GaussianDP(), LaplaceDP()):
        tight = stats.fdp_lower_bound(*counts, claim=claim)
        assert tight == stats.fdp_lower_bound(*counts, claim=claim, test="recursion") > 0


@pytest.mark.parametrize(
    "bound",
    [
        *("steinke", "coupling", "zero_run", "exact"),
        pytest.param("panoramia", marks=pytest.mark.validity),
    ],
)
def test_every_form_takes_the_most_guesses(bound: str) -> None:
    out = alone(
        "from leakbound import stats\n"
        "n = 2**32 - 1\n"
        "for correct in (n, 3 * (n // 4), 0):\n"
        f"    options = dict(delta=1e-12, bound={bound!r})\n"
        "    p = stats.one_run_p_value(correct, n, n, epsilon=1.0, **options)\n"
        "    assert 0 < p <= 1\n"
        "    print(stats.one_run_epsilon(correct, n, n, beta=0.05, **options))"
    )
    found = [float(line) for line in out.splitlines()]
    assert found[0] > 15
    assert found[1] == pytest.approx(1.0986, abs=1e-3)
    assert found[2] == 0.0


FEATURES = np.random.default_rng(0).normal(size=(60, 2))
MEMBER = np.random.default_rng(1).random(60) < 0.5
GENERATORS = [kind().fit(FEATURES) for kind in (ChowLiuTree, PCAMixture, SequentialCART)]
LIMITS: dict[int, list[Callable[[int], object]]] = {
    10**8: [
        lambda m: simulate.null(m, seed=0),
        lambda m: simulate.gaussian(m, 1.0, seed=0),
        lambda m: simulate.mixture(m, seed=0),
        lambda m: simulate.randomized_response(m, 1.0, seed=0),
        lb.InclusionPlan.create,
        lambda m: planning.power(m, 1.0),
        lambda m: planning.power(m, 1.0, claim=ApproxDP(delta=1e-5)),
        lambda m: planning.power(m, 1.0, claim=GaussianDP()),
        lambda m: planning.canaries_needed(2.0, 3.0, most=m),
        planning.ceiling,
        lambda m: planning.ceiling(m, claim=GaussianDP()),
        lambda m: benchmark.run([simulate.null], [cuts.KLScan()], [lb.PureDP()], m=[m], seeds=[0]),
        *(partial(one.sample, seed=0) for one in GENERATORS),
    ],
    10**6: [
        lambda size: planning.power(100, 1.0, simulations=size),
        lambda size: planning.canaries_needed(2.0, 3.0, simulations=size),
        lambda K: LogisticPropensity().fit(FEATURES, MEMBER).bootstrap(FEATURES, K=K),  # noqa: N803
        lambda steps: lb.SubsampledGaussianDP(sampling_rate=0.01, steps=steps),
    ],
}
"""Calls that take at most so many of something."""


@pytest.mark.parametrize("most", LIMITS)
def test_sizes_have_a_limit(most: int) -> None:
    for call in LIMITS[most]:
        for size in (most + 1, *ENORMOUS):
            with pytest.raises(errors.OptionError, match=f"at most {most}"):
                call(size)


def test_tokens_of_canaries_have_limits() -> None:
    for n, length in ((10**8, 2), (2, 10**8), (10**4, 10**4 + 1), (2**40, 2**40)):
        with pytest.raises(errors.OptionError, match=r"(n|length) must be at least . and at most"):
            canaries.random_tokens(n, length, vocabulary=2)
    for make in (partial(canaries.random_tokens, 1, 2), partial(canaries.new_tokens, [[0, 1]])):
        with pytest.raises(errors.OptionError, match="vocabulary must be at least 2 and at most"):
            make(vocabulary=2**53 + 1)
    with pytest.raises(errors.OptionError, match="m must be at least 1 and at most"):
        planning.ceiling(2**53 + 1, 10)


def test_shares_of_a_stream_are_few() -> None:
    with pytest.raises(errors.OptionError, match="at most 100; got"):
        lb.Stream(shares=[(i + 1) / 100_000 for i in range(100_000)])


def test_a_long_batch_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    game = simulate.gaussian(500, 1.5, seed=3)
    shares = [(i + 1) / 10 for i in range(10)]
    for sides in ("both", "member"):
        whole = lb.Stream(shares=shares, sides=sides).update(game.scores, game.member)
        with monkeypatch.context() as patch:
            patch.setattr("leakbound.audits.stream._MOMENTS", 100)
            parts = lb.Stream(shares=shares, sides=sides).update(game.scores, game.member)
        assert parts.bound == whole.bound > 0
        assert parts.result() == whole.result()


INTERRUPTED = """
import os, signal, threading
from leakbound import planning, simulate, stats

counts, form = (3 * (2**30 - 1), 2**32 - 1, 2**32 - 1), dict(delta=1e-12, beta=0.05)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("interrupted", stats.one_run_epsilon(90, 100, 100, delta=0, beta=0.05) > 0)
"""


@pytest.mark.parametrize(
    "call",
    [
        "stats.one_run_epsilon(*counts, **form, bound='zero_run')",
        "planning.power(10**8, 1.0, simulations=1)",
        "planning.power(10**8, planning.Gaussian(1.0), sides='pairs', simulations=1)",
        "simulate.gaussian(10**8, 1.0, seed=0)",
    ],
)
def test_ctrl_c_ends_what_takes_long(call: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(call=call)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stdout == "interrupted True\n", run.stderr
