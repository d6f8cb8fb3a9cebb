"""What comes in and out of the core: strange bytes, unaligned memory, panics, vector paths."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import errors, stats
from leakbound._base.checks import booleans, numbers, vector

M = 300
MEMBER = np.random.default_rng(5).random(M) < 0.5
SCORES = np.random.default_rng(6).normal(size=M) + 2 * MEMBER
SHARES, ODDS = np.linspace(0, 1, M), np.full(M, 0.5)
READERS: dict[str, Callable[[Any], Any]] = {
    "fair coins": lambda m: lb.audit(SCORES, lb.Coins(m)),
    "coins of a plan": lambda m: lb.audit(SCORES, lb.Coins(lb.InclusionPlan(m))).bound,
    "weights": lambda m: lb.audit(SHARES, lb.Coins(m), cuts=lb.cuts.Weighted(), sides="member"),
    "Zero-Run": lambda m: lb.audit(SCORES, lb.ZeroRun(m, ODDS)).bound,
    "PANORAMIA": lambda m: lb.audit(SCORES, lb.Panoramia(m, baseline=-SCORES)).bound,
    "kl_scan_offsets": lambda m: stats.kl_scan_offsets(m, ODDS, beta=0.05).epsilon,
    "match": lambda m: stats.match(m, SCORES, SHARES).tolist(),
    "shift_delta": lambda m: stats.shift_delta(SCORES, m, 0.5),
    "poisson_binomial_tail": lambda m: stats.poisson_binomial_tail(100, m),
    "booleans": lambda m: booleans(vector(m, "x"), "x").view(np.uint8).tolist(),
    "numbers": lambda m: numbers(m, "x").view(np.uint8).tolist(),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_mask_of_bytes_0_and_255_is_read_as_booleans(read: Callable[[Any], Any]) -> None:
    mask = np.where(MEMBER, 255, 0).astype(np.uint8).view(np.bool_)
    assert read(mask) == read(MEMBER)


def test_the_core_reads_every_byte_but_0_as_true() -> None:
    """Straight at the core, where a `bool` of Rust with the byte 255 would be undefined."""
    flags = np.arange(256, dtype=np.uint8).view(np.bool_)
    assert _core.Path.from_successes(flags).correct == 255
    assert _core.Ranking(np.arange(256.0), flags).members == 255
    assert _core.Path.from_successes(flags[::-3]).correct == 85
    counts = _core.matched_counts(
        np.arange(256.0),
        flags,
        np.zeros(256),
        np.full(256, 0.5),
        guesses=256,
        one_sided=True,
        residual=False,
    )
    assert [int(column[0]) for column in counts] == [256, 256, 255]


@pytest.mark.parametrize("place", ["in place", "on the pool", "in a task"])
def test_a_panic_is_an_error_that_asks_to_be_reported(
    place: Literal["in place", "on the pool", "in a task"], capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        with pytest.raises(errors.InternalError, match=r"on purpose at .*enter\.rs:\d+; .*report"):
            _core._panic(place)
    # The pool still works, and nothing was printed.
    assert stats.kl_scan_offsets([True] * 50, [0.0] * 50, beta=0.05).cut == 50
    assert capfd.readouterr() == ("", "")


ON_A_PATH = """
import json
import numpy as np
import leakbound as lb
from leakbound import _core, stats

rng = np.random.default_rng(7)
bounds = []
for m in (20, 333, 4000):
    member = rng.random(m) < 0.5
    scores, odds = rng.normal(size=m) + 1.2 * member, rng.normal(size=m)
    for claim in (lb.PureDP(), lb.ApproxDP(delta=1e-6), lb.GaussianDP()):
        bounds.append(lb.audit(scores, lb.Coins(member), claim=claim, seed=0).bound)
    joined = 1 / (1 + np.exp(-odds)) > rng.random(m)
    shares = 1 / (1 + np.exp(-odds))
    for correction in ("conditional", "match", "tamper"):
        seen = scores + 1.2 * joined - 1.2 * member
        claim = lb.GaussianDP() if correction == "match" else lb.PureDP()
        design = lb.ZeroRun(joined, shares, correction=correction)
        bounds.append(lb.audit(seen, design, claim=claim, seed=0).bound)
    bounds.append(lb.audit(scores, lb.Panoramia(member, baseline=odds)).bound)
    offsets = np.clip(10 * odds, -300, 300)
    for beta in (1e-300, 0.05, 0.9):
        bounds.append(stats.poisson_binomial_epsilon(m // 2, offsets, beta=beta))
    bounds.append(stats.poisson_binomial_tail(m // 2, shares, log=True))
    bounds.append(stats.poisson_binomial_tail_offsets(m // 3, 250 * np.sign(odds), 380.0, log=True))
print(json.dumps([_core.simd(), [float(bound) for bound in bounds]]))
"""


def on_path(name: str) -> tuple[str, list[float]]:
    run = subprocess.run(
        [sys.executable, "-c", ON_A_PATH],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"LEAKBOUND_SIMD": name},
    )
    assert run.returncode == 0, run.stderr
    used, bounds = json.loads(run.stdout)
    return used, bounds


def test_every_vector_path_gives_the_same_bounds() -> None:
    used, portable = on_path("portable")
    assert used == "portable"
    assert sum(bound > 0 and math.isfinite(bound) for bound in portable) > 15
    # A path that this machine does not run falls back to its widest.
    for name in ("avx2", "avx512", ""):
        np.testing.assert_allclose(on_path(name)[1], portable, rtol=1e-12, atol=1e-300)
