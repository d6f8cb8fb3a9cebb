"""PANORAMIA killed or interrupted at any event of its files goes on to the same report."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json
import sys
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
import ended_at_events
from leakbound.generators import PCAMixture
from leakbound.panoramia import Options, run
from leakbound.panoramia.models import trees

trees.STAGES, trees.SIGNAL_TREES = (2, 4), 3  # small attacks: each event makes one again
rng = np.random.default_rng(0)
x = rng.normal(size=(300, 2))
y = (x[:, 0] + rng.normal(size=300) > 0).astype(int)
model = LogisticRegression().fit(x, y)
options = Options(helper=None, saturation=(), seeds=(0,))

def work(**kept):
    return run(model, (x, y), PCAMixture(), options=options, **kept).to_json()

expected = work()
ends = {}
for how in sys.argv[2:]:
    folder = Path(sys.argv[1], how)
    events, found = getattr(ended_at_events, how)(lambda: work(checkpoints=folder), folder)
    ends[how] = {"events": events, "same": found == expected}
print(json.dumps(ends))
"""
KEPT = ["made-of.json", "generated.npz", "targets.npz", "game-0-generated.npz"]
WAYS = ["killed_at_every_event", "interrupted_at_every_event"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which each way to end a run has a folder for its files."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def ends(kept: Path) -> Any:
    """Return, of each way, the events at which runs were ended, and whether the report is the same.

    One process for both: it takes longer to start than a run takes.
    """
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(kept), *WAYS],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("how", WAYS)
def test_a_run_that_is_ended_anywhere_goes_on_to_the_same_report(
    how: str, ends: Any, kept: Path
) -> None:
    assert ends[how]["same"]
    for name in KEPT:
        assert {f"fsync .{name}", f"os.rename .{name}"} <= {*ends[how]["events"]}
    assert {one.name for one in (kept / how).glob("[!.]*")} == {*KEPT}
