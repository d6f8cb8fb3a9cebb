"""PANORAMIA killed or interrupted at any event of its files goes on to the same report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from sklearn.linear_model import LogisticRegression
import ended_at_events
from leakbound.generators import PCAMixture
from leakbound.panoramia import Options, run

rng = np.random.default_rng(0)
x = rng.normal(size=(300, 2))
y = (x[:, 0] + rng.normal(size=300) > 0).astype(int)
model = LogisticRegression().fit(x, y)
options = Options(helper=None, saturation=(), seeds=(0,))
folder = Path(sys.argv[1])

def work(**kept):
    return run(model, (x, y), PCAMixture(), options=options, **kept).to_json()

expected = work()
ended = getattr(ended_at_events, sys.argv[2])
events, found = ended(lambda: work(checkpoints=folder), folder)
print(*sorted(events), sep="\\n")
print("the same" if found == expected else "another report")
"""
KEPT = ["made-of.json", "generated.npz", "targets.npz", "game-0-generated.npz"]


@pytest.mark.parametrize("how", ["killed_at_every_event", "interrupted_at_every_event"])
def test_a_run_that_is_ended_anywhere_goes_on_to_the_same_report(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), how],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
    )
    *events, said = run.stdout.splitlines()
    assert said == "the same", run.stderr
    for name in KEPT:
        assert {f"fsync .{name}", f"os.rename .{name}"} <= {*events}
    assert {one.name for one in folder.glob("[!.]*")} == {*KEPT}
