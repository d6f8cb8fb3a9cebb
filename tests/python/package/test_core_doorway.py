"""What comes in and out of the core: strange bytes, unaligned memory, panics, vector paths."""

import json
import math
import os
import subprocess
import sys
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
import leakbound._core as _core
from leakbound import cuts, errors, stats
from leakbound._base.checks import booleans, numbers, vector


def game(size: int = 300) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(5)
    member = rng.random(size) < 0.5
    return rng.normal(size=size) + 2 * member, member


def masked(flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The same booleans, true being the byte 255 as in a mask of an image."""
    return np.where(flags, 255, 0).astype(np.uint8).view(np.bool_)


def test_every_audit_reads_a_mask_as_booleans() -> None:
    scores, member = game()
    odds = np.full(member.size, 0.5)
    assert lb.audit(scores, lb.Coins(masked(member))) == lb.audit(scores, lb.Coins(member))
    weighted, shares = cuts.Weighted(), stats.normal_cdf(scores)
    assert lb.audit(shares, lb.Coins(masked(member)), cuts=weighted, sides="member").bound == (
        lb.audit(shares, lb.Coins(member), cuts=weighted, sides="member").bound
    )
    assert lb.audit(scores, lb.ZeroRun(masked(member), odds)).bound == (
        lb.audit(scores, lb.ZeroRun(member, odds)).bound
    )
    assert lb.audit(scores, lb.Panoramia(masked(member), baseline=-scores)).bound == (
        lb.audit(scores, lb.Panoramia(member, baseline=-scores)).bound
    )
    plan = lb.InclusionPlan(masked(member))
    assert plan == lb.InclusionPlan(member)
    assert lb.audit(scores, lb.Coins(plan)).bound == lb.audit(scores, lb.Coins(member)).bound


def test_every_number_reads_a_mask_as_booleans() -> None:
    scores, member = game(60)
    scan, offsets = stats.kl_scan(masked(member), beta=0.05), np.zeros(60)
    assert scan.p == stats.kl_scan(member, beta=0.05).p
    assert stats.kl_scan_offsets(masked(member), offsets, beta=0.05).epsilon == (
        stats.kl_scan_offsets(member, offsets, beta=0.05).epsilon
    )
    uniforms = np.linspace(0, 1, 60)
    assert (
        stats.match(masked(member), scores, uniforms) == stats.match(member, scores, uniforms)
    ).all()
    assert stats.shift_delta(scores, masked(member), 0.5) == stats.shift_delta(scores, member, 0.5)
    assert stats.poisson_binomial_tail(1, masked(np.array([True, False]))) == 1.0
    for whole in (booleans(vector(masked(member), "x"), "x"), numbers(masked(member), "member")):
        np.testing.assert_array_equal(whole.view(np.uint8), member.astype(np.uint8))


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
    assert stats.kl_scan([True] * 50, beta=0.05).cut == 50
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
