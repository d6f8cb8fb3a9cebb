"""Audits of one run from raw scores, beside `numpy.argsort` or `numpy.sort` of the same scores."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from ratios import Compare

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
ROUNDS = {10_000: 51, 100_000: 21, 1_000_000: 9, 10_000_000: 5}


def scored(size: int) -> tuple[FloatArray, BoolArray]:
    """Fair coins, and scores that tell a little about them."""
    rng = np.random.default_rng(size)
    member = rng.random(size) < 0.5
    return rng.normal(size=size) + 0.2 * member, member


def beside_argsort(
    compare: Compare, work: str, run: Callable[[], object], scores: FloatArray
) -> None:
    compare(
        work,
        run,
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=scores.size,
        rounds=ROUNDS[scores.size],
    )


def audited_coins(scores: FloatArray, member: BoolArray, **options: Any) -> lb.AuditResult:
    result: lb.AuditResult = lb.audit(scores, lb.Coins(member), **options)
    return result


AUDITS: dict[str, Callable[[FloatArray, BoolArray], lb.AuditResult]] = {
    "scan, both sides": audited_coins,
    "scan, members": partial(audited_coins, sides="member"),
    "union of all cuts, both sides": partial(audited_coins, cuts=lb.UnionBound()),
    "union of all cuts, members": partial(audited_coins, cuts=lb.UnionBound(), sides="member"),
}
CLAIMS: dict[str, lb.GaussianDP | lb.ApproxDP] = {
    "default of GaussianDP": lb.GaussianDP(),
    "default of ApproxDP": lb.ApproxDP(delta=1e-5),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", AUDITS)
def test_audit(compare: Compare, name: str, size: int) -> None:
    scores, member = scored(size)
    audit = partial(AUDITS[name], scores, member)
    result = audit()
    assert 0 <= result.bound < 1
    assert result.m == size
    beside_argsort(compare, work=name, run=audit, scores=scores)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CLAIMS)
def test_outside_in(compare: Compare, name: str, size: int) -> None:
    """Scores of members are 0 to 1 above the others: each audit has other counts to prove.

    Plans are made before anything is timed, as they are kept; a count is seldom proved twice.
    """
    scores, member = scored(size)
    claim = CLAIMS[name]
    rng = np.random.default_rng(0)

    def audit() -> lb.AuditResult:
        shifted = scores + rng.random() * member
        return lb.audit(shifted, lb.Coins(member), claim=claim)

    assert 0 < audit().bound < 5
    beside_argsort(compare, work=name, run=audit, scores=scores)


def test_tally(compare: Compare) -> None:
    """From scores in memory to their counts, beside a sort of the same scores."""
    scores, member = scored(10_000_000)
    counted = partial(lb.Tally.of, scores, member)
    assert counted().m == scores.size
    ratio = compare(
        "Tally.of",
        counted,
        peer="numpy.sort",
        run_peer=lambda: np.sort(scores),
        size=scores.size,
        rounds=ROUNDS[scores.size],
    )
    assert ratio.ratio < 2


@pytest.mark.parametrize("size", [10_000, 100_000, 1_000_000])
def test_scan_of_every_cut(compare: Compare, size: int) -> None:
    scores, member = scored(size)
    scan_of_every_cut = partial(audited_coins, scores, member, cuts=lb.KLScan(grid="all"))
    scan_of_some_cuts = partial(audited_coins, scores, member, cuts=lb.KLScan(grid="auto"))
    assert abs(scan_of_every_cut().bound - scan_of_some_cuts().bound) < 0.01
    work = "scan, both sides, grid='all'"
    beside_argsort(compare, work=work, run=scan_of_every_cut, scores=scores)


MEMORY = """
from pathlib import Path
import numpy as np
import leakbound as lb

def kilobytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))

rng = np.random.default_rng(0)
member = rng.random({size}) < 0.5
scores = rng.normal(size={size})
scores += 0.2 * member
Path("/proc/self/clear_refs").write_text("5")  # reset the high-water mark
before = kilobytes("VmRSS")
lb.audit(scores, lb.Coins(member), cuts=lb.{cuts}())
print((kilobytes("VmHWM") - before) * 1024 / scores.nbytes)
"""


@pytest.mark.parametrize("cuts", ["KLScan", "UnionBound"])
def test_peak_memory(cuts: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond the caller's arrays, at most three copies of ten million scores."""
    script = MEMORY.format(size=10_000_000, cuts=cuts)
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    copies = float(run.stdout)
    with capsys.disabled():
        sys.stdout.write(f"\n{cuts}: peak memory {copies:.2f} copies of the scores\n")
    assert copies <= 3
