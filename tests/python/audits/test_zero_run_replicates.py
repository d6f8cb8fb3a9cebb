"""Pure DP under replicates of the propensities: the percentile, and the bounds it does not need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from leakbound._base.types import SidesChoice

REPLICATES = 150


def audited(
    m: int, error: float, advantage: float, sides: SidesChoice, confidence: float
) -> lb.ZeroRunResult:
    """Audit members that score higher, with log-odds known up to an error."""
    rng = np.random.default_rng(m)
    odds = rng.normal(size=m)
    member = rng.random(m) < 1 / (1 + np.exp(-odds))
    scores = advantage * member + odds + rng.normal(size=m)
    draws = odds + error * rng.normal(size=(REPLICATES, m))
    design = lb.ZeroRun(member, 1 / (1 + np.exp(-draws)), uncertainty="bootstrap")
    claim = lb.PureDP()
    return lb.audit(scores, design, claim=claim, sides=sides, confidence=confidence, seed=1)


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize(
    ("m", "error", "advantage", "confidence"),
    [(900, 0.1, 1.0, 0.95), (700, 1.0, 3.0, 0.9), (500, 0.3, 0.4, 0.8), (300, 0.2, -1.0, 0.95)],
)
def test_the_percentile_is_that_of_all_bounds(
    m: int, error: float, advantage: float, confidence: float, sides: SidesChoice
) -> None:
    result = audited(m, error, advantage, sides, confidence)
    assert result.bootstrap is not None
    assert "value" not in result.bootstrap._bounds.__dict__  # computed when asked for
    rank = int(round(1 - confidence, 9) / 2 * (REPLICATES + 1))
    assert result.bound == np.sort(result.bootstrap.bounds)[rank - 1]
    assert (result.bound > 0) == (advantage > 0)


def test_the_percentile_does_not_depend_on_threads() -> None:
    play = (
        "import json, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from {Path(__file__).stem} import audited\n"
        "print(json.dumps(audited(1500, 0.3, 2.0, 'both', 0.9).bound))\n"
    )

    def bound(threads: int) -> float:
        run = subprocess.run(
            [sys.executable, "-c", play],
            capture_output=True,
            check=True,
            env=os.environ | {"RAYON_NUM_THREADS": str(threads)},
        )
        return float(json.loads(run.stdout))

    assert bound(1) == bound(3) > 1


def test_bounds_that_were_not_computed_are_stored() -> None:
    result = audited(300, 0.2, 2.0, "both", 0.9)
    again = lb.ZeroRunResult.from_json(result.to_json())
    assert again == result
    assert again.bootstrap is not None
    assert result.bootstrap is not None
    np.testing.assert_array_equal(again.bootstrap.bounds, result.bootstrap.bounds)
