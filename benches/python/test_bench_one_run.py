"""The pure-ε audit over all cuts, from raw scores, beside `numpy.argsort` of the same scores."""

import subprocess
import sys

import numpy as np
import pytest

import leakbound as lb
from conftest import Compare

SIZES = [10_000, 100_000, 1_000_000, 10_000_000]
ROUNDS = {10_000: 51, 100_000: 21, 1_000_000: 9, 10_000_000: 5}


def scored(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Fair coins, and scores that tell a little about them."""
    rng = np.random.default_rng(size)
    member = rng.random(size) < 0.5
    return rng.normal(size=size) + 0.2 * member, member


AUDITS = {
    "scan, both sides": {"cuts": lb.KLScan(), "sides": "both"},
    "scan, members": {"cuts": lb.KLScan(), "sides": "member"},
    "union of all cuts, both sides": {"cuts": lb.UnionBound(), "sides": "both"},
    "union of all cuts, members": {"cuts": lb.UnionBound(), "sides": "member"},
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", AUDITS)
def test_audit(compare: Compare, name: str, size: int) -> None:
    scores, member = scored(size)
    result = lb.audit_one_run(scores, member, **AUDITS[name])
    assert 0 <= result.bound < 1
    assert result.m == size
    compare(
        name,
        lambda: lb.audit_one_run(scores, member, **AUDITS[name]),
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=size,
        rounds=ROUNDS[size],
    )


@pytest.mark.parametrize("size", [10_000, 100_000, 1_000_000])
def test_scan_of_every_cut(compare: Compare, size: int) -> None:
    scores, member = scored(size)
    every, auto = lb.KLScan(grid="all"), lb.KLScan(grid="auto")
    bounds = [lb.audit_one_run(scores, member, cuts=cuts).bound for cuts in (every, auto)]
    assert abs(bounds[0] - bounds[1]) < 0.01
    compare(
        "scan, both sides, grid='all'",
        lambda: lb.audit_one_run(scores, member, cuts=every),
        peer="numpy.argsort",
        run_peer=lambda: np.argsort(scores),
        size=size,
        rounds=5,
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
Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew here
before = kilobytes("VmRSS")
lb.audit_one_run(scores, member, cuts=lb.{cuts}())
print((kilobytes("VmHWM") - before) * 1024 / scores.nbytes)
"""


@pytest.mark.parametrize("cuts", ["KLScan", "UnionBound"])
def test_peak_memory(cuts: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond the caller's arrays, at most three copies of ten million scores."""
    script = MEMORY.format(size=10_000_000, cuts=cuts)
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    copies = float(run.stdout)
    with capsys.disabled():
        print(f"\n{cuts}: peak memory {copies:.2f} copies of the scores")
    assert copies <= 3
