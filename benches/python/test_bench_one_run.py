"""Audits of one run from raw scores, beside `numpy.argsort` or `numpy.sort` of the same scores."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
from ratios import Ratio, measure

_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]
Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
ROUNDS = {10_000: 51, 100_000: 21, 1_000_000: 9, 10_000_000: 5}


def scored(size: int) -> tuple[_Floats, _Bools]:
    """Fair coins, and scores that tell a little about them."""
    rng = np.random.default_rng(size)
    member = rng.random(size) < 0.5
    return rng.normal(size=size) + 0.2 * member, member


def beside_argsort(record: Record, work: str, run: Callable[[], object], scores: _Floats) -> None:
    ratio = measure(
        work,
        run,
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=scores.size,
        rounds=ROUNDS[scores.size],
    )
    record(ratio, run)


def _coins(scores: _Floats, member: _Bools, **options: Any) -> lb.AuditResult:
    found: lb.AuditResult = lb.audit(scores, lb.Coins(member), **options)
    return found


AUDITS: dict[str, Callable[[_Floats, _Bools], lb.AuditResult]] = {
    "scan, both sides": _coins,
    "scan, members": partial(_coins, sides="member"),
    "union of all cuts, both sides": partial(_coins, cuts=lb.UnionBound()),
    "union of all cuts, members": partial(_coins, cuts=lb.UnionBound(), sides="member"),
}
CLAIMS: dict[str, lb.GaussianDP | lb.ApproxDP] = {
    "default of GaussianDP": lb.GaussianDP(),
    "default of ApproxDP": lb.ApproxDP(delta=1e-5),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", AUDITS)
def test_audit(record: Record, name: str, size: int) -> None:
    scores, member = scored(size)
    audit = AUDITS[name]
    result = audit(scores, member)
    assert 0 <= result.bound < 1
    assert result.m == size
    beside_argsort(record, work=name, run=lambda: audit(scores, member), scores=scores)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CLAIMS)
def test_outside_in(record: Record, name: str, size: int) -> None:
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
    beside_argsort(record, work=name, run=audit, scores=scores)


def test_tally(record: Record) -> None:
    """From scores in memory to their counts, beside a sort of the same scores."""
    scores, member = scored(10_000_000)
    assert lb.Tally.of(scores, member).m == scores.size
    ratio = measure(
        "Tally.of",
        lambda: lb.Tally.of(scores, member),
        peer="numpy.sort",
        run_peer=lambda: np.sort(scores),
        size=scores.size,
        rounds=ROUNDS[scores.size],
    )
    assert ratio.ratio < 2
    record(ratio, lambda: lb.Tally.of(scores, member))


@pytest.mark.parametrize("size", [10_000, 100_000, 1_000_000])
def test_scan_of_every_cut(record: Record, size: int) -> None:
    scores, member = scored(size)
    every = lb.KLScan(grid="all")
    auto = lb.KLScan(grid="auto")
    bounds = [lb.audit(scores, lb.Coins(member), cuts=cuts).bound for cuts in (every, auto)]
    assert abs(bounds[0] - bounds[1]) < 0.01
    work = "scan, both sides, grid='all'"
    beside_argsort(
        record, work=work, run=lambda: lb.audit(scores, lb.Coins(member), cuts=every), scores=scores
    )


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
